"""Doors to other libraries: BlackJAX, dimod, Flax, NetKet, networkx, NumPyro, pgmpy, PyMC; factor graphs in files."""
