"""Sun et al. (2022), "Optimal scaling for locally balanced proposals in discrete spaces"."""

SUITES = ("sampling", "sites_needed", "energy_models")
