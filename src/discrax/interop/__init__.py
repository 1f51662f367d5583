"""Doors to other libraries, one file each: dimod, netket, networkx, pymc."""
