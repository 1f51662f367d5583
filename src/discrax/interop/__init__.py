"""Doors to other libraries, one file each: dimod, networkx, NumPyro."""
