"""Doors to other libraries, one file each: BlackJAX, dimod, Flax, NetKet, networkx, NumPyro, pgmpy, PyMC; and mixed models."""
