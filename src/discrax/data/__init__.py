"""Data: sets of images for energy models and where they lie, and streams of rows that do not fit into memory."""

from discrax.data.folder import data_arrays, data_file, data_files, use_data
from discrax.data.images import IMAGE_SETS, Images, load_images
from discrax.data.stream import RowStream, write_rows

__all__ = [
    "IMAGE_SETS",
    "Images",
    "RowStream",
    "data_arrays",
    "data_file",
    "data_files",
    "load_images",
    "use_data",
    "write_rows",
]
