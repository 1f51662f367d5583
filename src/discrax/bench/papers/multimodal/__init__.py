"""Not a paper: laws with many modes, on which local samplers stay where they begin, and what helps."""

SUITES = ("laws", "digits")
