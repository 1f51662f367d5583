"""Data sets: where they lie, and images of them for energy models."""

from discrax.data.folder import data_file, data_files, use_data
from discrax.data.images import IMAGE_SETS, Images, load_images

__all__ = ["IMAGE_SETS", "Images", "data_file", "data_files", "load_images", "use_data"]
