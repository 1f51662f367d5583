"""What a tempered run has to tell: exchange rates, the barrier, round trips, log Z; and if its ladder is too short."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from discrax.core.kernel import Info, Kernel, State
from discrax.core.observers import STATS, Observer, Stats
from discrax.core.target import Target
from discrax.sampling.ladder_tuning import LadderReport, gap_barriers
from discrax.sampling.log_normaliser_estimates import LogNormaliser, log_normaliser_of_path
from discrax.sampling.tempering import Tempering

_FEW_EXCHANGES = 0.1  # of neighbours, below which replicas are held up between them


class LadderStats(Observer):
    """`Stats` of the target's rung, the round trips so far, and V of the first replica of every rung."""

    def init(self, target: Target, states: State) -> None:
        return None

    def look(self, target: Target, memory: None, states: State, info: Info) -> tuple[None, Array]:
        _, stats = Stats().look(target, None, states, info)
        rungs = states.cache
        trips = rungs.trips[:, None].astype(jnp.float32)
        return None, jnp.concatenate([stats, trips, rungs.values[:, :, 0].astype(jnp.float32)], axis=-1)

    def unpack(self, handed: Array | np.ndarray, thinning: int) -> dict[str, np.ndarray]:
        handed = np.asarray(handed)
        count = len(STATS)
        named = Stats().unpack(handed[..., :count], thinning)
        return named | {"round_trips": handed[..., count], "log_ratio": handed[..., count + 1 :]}


@dataclass(frozen=True, repr=False)
class TemperingReport:
    """How the replicas of a tempered run went up and down its ladder."""

    betas: Float[np.ndarray, " rungs"]
    exchange_rates: Float[np.ndarray, " gaps"]  # mean probability of an exchange of each pair of neighbours
    barrier: float  # Lambda: 2 Lambda + 1 rungs make most round trips for their cost
    round_trips: Float[np.ndarray, " chains"] | None  # from the target's rung to the hottest and back, by chain
    num_draws: int
    log_ratios: Any = field(repr=False)  # (chain, draw, rung), or None
    log_first: float = field(repr=False)  # log Z at b = 0; NaN where it is not known

    @cached_property
    def log_normaliser(self) -> LogNormaliser | None:
        """log Z of the target by stepping stones and by thermodynamic integration; None where no statistics were kept.

        Where log Z of the law at b = 0 is not known, that of the target is relative to it.
        """
        if self.log_ratios is None or not self.num_draws:
            return None
        first = 0.0 if np.isnan(self.log_first) else self.log_first
        return log_normaliser_of_path(np.asarray(self.log_ratios), self.betas, first)

    @property
    def warning(self) -> str | None:
        """A sentence where the ladder is too short for its barrier, or nothing went round."""
        num_rungs, wanted = len(self.betas), int(np.ceil(2 * self.barrier)) + 1
        worst = int(np.argmin(self.exchange_rates))
        if self.exchange_rates[worst] < _FEW_EXCHANGES:
            return (
                f"The ladder is too short: rungs {worst} and {worst + 1} exchange {self.exchange_rates[worst]:.1%} of "
                f"the time. The barrier is {self.barrier:.1f}, which wants {wanted} rungs, and there are {num_rungs}."
            )
        if self.round_trips is not None and not self.round_trips.any():
            return (
                f"No replica went from the target to the hottest rung and back in {self.num_draws} draws, so that "
                "the draws have the modes that warm-up found; draw more, or take a sampler that moves further a step."
            )
        return None

    def __str__(self) -> str:
        rates = self.exchange_rates
        lines = [
            f"{len(self.betas)} rungs from beta {self.betas[0]:.3g} to 1; exchange rates {rates.min():.2f} to "
            f"{rates.max():.2f}; barrier {self.barrier:.2f}"
        ]
        if self.round_trips is not None:
            trips = self.round_trips
            lines.append(f"round trips per chain: {trips.mean():.1f} (least {trips.min():.0f})")
        if self.log_normaliser is not None:
            lines.append(f"log Z{' / Z_0' if np.isnan(self.log_first) else ''} = {self.log_normaliser}")
        return "\n".join(lines + ([] if self.warning is None else [self.warning]))

    __repr__ = __str__


def report_tempering(kernel: Kernel, stats: Mapping[str, Any], reports: Sequence[Any]) -> TemperingReport | None:
    """From the draws of a run, and where these have no statistics from its warm-up; None where it was not tempered."""
    if not isinstance(kernel, Tempering):
        return None
    betas, log_first = np.asarray(kernel.betas, np.float64), float(kernel.log_first)
    if "log_ratio" not in stats or not stats["log_ratio"].shape[1]:
        found = [each for each in reports if isinstance(each, LadderReport)]
        if not found:
            return None
        rates, barrier = np.asarray(found[-1].exchange_rates), found[-1].barrier
        return TemperingReport(betas, rates, barrier, None, 0, None, log_first)
    values = np.asarray(stats["log_ratio"], np.float64)
    with np.errstate(over="ignore"):
        changes = (betas[:-1] - betas[1:]) * (values[..., 1:] - values[..., :-1])
        rates = np.exp(np.minimum(changes, 0)).mean(axis=(0, 1))
    trips = np.asarray(stats["round_trips"])
    barrier = float(gap_barriers(rates).sum())
    num_draws = values.shape[1]
    return TemperingReport(betas, rates, barrier, trips[:, -1] - trips[:, 0], num_draws, values, log_first)
