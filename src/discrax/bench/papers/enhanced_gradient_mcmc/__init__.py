"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces"."""

SUITES = ("sampling", "step_sizes", "energy_models")
