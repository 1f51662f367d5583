"""How cells are run: together or alone, here or elsewhere, each stored with the program that made it."""
