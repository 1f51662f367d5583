"""How long a run is, and what is kept of it."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
from jaxtyping import Array

from discrax.core.checks import yes_or_no
from discrax.core.observers import Draws, Moments, Observer, Stats
from discrax.core.target import Target
from discrax.sampling.checks import check_counts, check_keep, check_run_memory

_FEW_DRAWS = 20_000


class Plan(NamedTuple):
    """How long a run is, and what is kept of it."""

    num_warmup: int
    num_samples: int
    thinning: int
    keep: str | Callable[[Array], Any]
    keep_warmup: bool = False
    chunk_size: int | None = None
    progress: bool | None = False  # whether to show it
    in_memory: bool = True  # and not in a folder
    stats: Observer = Stats()

    def check(self, target: Target, num_chains: int) -> None:
        """A ValueError or TypeError, in a sentence, if it makes no sense."""
        check_counts(num_chains, self.num_warmup, self.num_samples, self.thinning, self.chunk_size)
        draw = self.draw_of(target)
        check_keep(self.keep, target.space, draw)
        yes_or_no("keep_warmup", self.keep_warmup)
        kept_warmup = self.num_warmup if self.keep_warmup else 0
        if self.in_memory:
            check_run_memory(target.space, self.keep, num_chains, self.num_samples, kept_warmup, draw)

    def draw_of(self, target: Target) -> Any:
        """The shapes and types of what is handed over of a draw, before `keep`: its codes."""
        return jax.ShapeDtypeStruct(target.space.shape, target.space.dtype)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who looks at the draws."""
        return (Moments(),) if self.keep == "moments" else (self.stats, Draws())

    @property
    def keep_of_draw(self) -> Callable[[Array], Any] | bool:
        """The user's function of a draw, or True."""
        keep = self.keep
        if callable(keep) and isinstance(keep, eqx.Module):  # what it reads are arguments of the program
            return cast(Callable[[Array], Any], keep)
        # An identity of its own: a user's function may be unhashable, and what it reads may have changed.
        return (lambda x: keep(x)) if callable(keep) else True

    @property
    def is_short(self) -> bool:
        """Whether drawing by the program of warm-up, which does a little more than it need, costs less than another."""
        is_plain = self.keep != "moments" and self.thinning == 1 and self.chunk_size is None
        return is_plain and self.num_samples <= _FEW_DRAWS
