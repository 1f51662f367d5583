"""What the pilot of "auto" tried, what it chose, and what a user should know of it."""

from typing import NamedTuple

from discrax.sampling.agreement import HIGH_RHAT, Apart


class Trial(NamedTuple):
    """What a pilot saw of one sampler."""

    name: str
    score: float  # per second or evaluation
    acceptance: float
    log_prob: float  # the mean over the last part
    spread: float  # standard deviation of log_prob there
    rhat: float  # of log_prob between the chains there; NaN for one chain
    seconds_per_step: float  # of all chains
    share_rhat: float = float("nan")  # of the share of sites at a level, the largest of the first levels

    @property
    def disagrees(self) -> bool:
        """Whether its chains are in different places."""
        return self.rhat > HIGH_RHAT or self.share_rhat > HIGH_RHAT


class AutoReport(NamedTuple):
    """What the pilot tried and chose."""

    chosen: str
    score: str
    trials: tuple[Trial, ...]  # best first
    behind: tuple[str, ...]  # passed over: their chains had not come as far
    left_out: tuple[str, ...]  # for want of time, or because they could not win
    failed: tuple[tuple[str, str], ...]
    seconds: float
    cost: str = "seconds"
    apart: Apart | None = None  # the chains of the chosen one disagree for good
    is_tempered: bool = False  # for that

    def __str__(self) -> str:
        if not self.trials:
            return f"auto chose {self.chosen} without a pilot: its draws are exact, and nothing else would be tried"
        tried = ", ".join(f"{trial.name} {trial.score:.3g}" for trial in self.trials)
        more = f"; passed over, at improbable states: {', '.join(self.behind)}" if self.behind else ""
        stuck = ", ".join(trial.name for trial in self.trials if trial.disagrees)
        more += f"; their chains did not agree: {stuck}" if stuck else ""
        more += f"; not tried: {', '.join(self.left_out)}" if self.left_out else ""
        failed = "".join(f"; {name} failed: {why}" for name, why in self.failed)
        per = self.cost.removesuffix("s")
        return f"auto chose {self.chosen} in {self.seconds:.0f} s ({self.score} per {per}: {tried}{more}{failed})"

    def warning(self) -> str | None:
        """What a user should know who trusts the choice."""
        if self.is_tempered:
            return (
                f"The run is tempered (discrax.Ladder()): the chains of {self.chosen} stayed apart in the pilot "
                f"({self.apart})."
            )
        rhat = next((trial.rhat for trial in self.trials if trial.name == self.chosen), float("nan"))
        if not rhat > HIGH_RHAT:
            return None
        return (
            f"In the pilot the chains of {self.chosen} did not agree (R-hat of log pi {rhat:.2f}): the choice may be "
            "poor; try another sampler by name, discrax.auto(seconds=60, score='ess'), more warm-up, or starts by init."
        )
