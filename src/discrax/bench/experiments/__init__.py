"""What a cell measures: mixing, optimisation, training, infilling, prompts, stochastic targets."""
