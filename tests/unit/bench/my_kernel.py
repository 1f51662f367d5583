"""What a user writes to have a sampler of their own in a table."""

import discrax as dx


class TwoFlips(dx.samplers.rwm):
    """A random walk that begins with two sites a step."""

    def __init__(self):
        super().__init__(path_length=2.0)
