"""Sun et al. (2022), "Optimal scaling for locally balanced proposals in discrete spaces"."""

SUITES = ("sampling", "energy_models")
