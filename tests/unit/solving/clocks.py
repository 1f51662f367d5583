"""Clocks that the tests turn, so that no test waits for time to pass."""

from discrax.solving.clock import Clock, SearchBudget


class Hands:
    """A time that passes when it is told to, and by `tick` at every look; compilation with it."""

    def __init__(self, tick=0.0):
        self.time, self.compiled, self.tick = 0.0, 0.0, tick

    def now(self):
        self.time += self.tick
        return self.time

    def clock(self, seconds=None, **options):
        return self.make(SearchBudget(seconds, **options))

    def make(self, budget, **options):
        """What `Clock(budget, ...)` makes, by these hands."""
        return Clock(budget, now=self.now, compiled=lambda: self.compiled, **options)

    def compile(self, seconds):
        self.time += seconds
        self.compiled += seconds
