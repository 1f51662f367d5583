"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics"."""

SUITES = ("circuits", "optimisation", "prompts", "sampling", "tall_data")
