"""Sun et al. (2023), "Stochastic gradient discrete Langevin dynamics"."""

SUITES = ("circuits", "facilities", "prompts", "sampling", "tall_data")
