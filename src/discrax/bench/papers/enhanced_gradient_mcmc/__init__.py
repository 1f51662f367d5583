"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces"."""

SUITES = ("sampling", "energy_models")
