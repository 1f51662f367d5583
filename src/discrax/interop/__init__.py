"""Doors to other libraries, one file each: dimod, Flax, networkx."""
