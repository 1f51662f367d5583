"""Sun et al. (2023), "Any-scale balanced samplers for discrete space"."""

SUITES = ("sampling", "energy_models", "readings")
