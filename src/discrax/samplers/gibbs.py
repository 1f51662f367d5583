"""Gibbs sampling: sites are redrawn from their exact conditionals, so nothing is ever rejected.

With r_c = log pi(x with x_i = c) - log pi(x), the conditional of site i is softmax_c(r_c); for two levels the site
flips with probability sigmoid(r). Five scans:

- `random`: one uniformly chosen free site a step;
- `systematic`: one free site a step, in order;
- `chromatic`: all sites in a step, one colour after another (`chromatic.py`);
- `elimination`: all sites in a step, in blocks that are drawn together (of a product of tables; `elimination.py`);
- `layers`: all hidden units given the sites, then all sites given the hidden units (of a Boltzmann machine whose
  hidden units are summed out).
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe
from discrax.core.kernel import Info, Kernel, State, scalar_info
from discrax.core.levels import bar_missing, draw_levels
from discrax.core.statistics import compensated_add
from discrax.core.target import Layered, Target, Tempered, log_prob, temper
from discrax.core.xla import materialised
from discrax.samplers.balancing import unknown_name
from discrax.samplers.chromatic import ChromaticGibbs
from discrax.samplers.conditionals import conditional_ratios, redraw, start_scan
from discrax.samplers.elimination import EliminationGibbs
from discrax.samplers.elimination_plan import single_site_note


class Gibbs(Kernel):
    """Redraws one free site a step: a random one, or the next."""

    scan: str = eqx.field(static=True)
    sites_changed: ClassVar[int | str | None] = 1
    evaluates_levels: ClassVar[bool] = True

    def prepare(self, target: Target, *, tuning: bool = False, draws: Any = None) -> tuple["Gibbs", str | None]:
        """As it is, with a sentence where its moves do not connect the states of a target."""
        return self, single_site_note(target)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        return start_scan(target, x)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, (position, error) = target.space, state.cache
        for_site, for_level = random.split(key, 2)
        num_free = jnp.asarray(space.num_free, jnp.int32)
        pick = position if self.scan == "systematic" else random.integers(for_site, 1, num_free)[0]
        site, x = space.free_site(pick), state.x.reshape(-1)
        ratios = conditional_ratios(target, state.x, site, state.log_prob)
        word = random.words(for_level, 1)[0]
        new, change, is_invalid = redraw(word, space, x[site], ratios, temper(target, ratios))
        jump = space.distance(x[site], new)
        value, error = compensated_add(state.log_prob, error, change)
        after = State(x.at[site].set(new).reshape(space.shape), value, ((position + 1) % num_free, error))
        return after, scalar_info(1, True, jump, space.num_levels - 1, is_invalid)


class LayerGibbs(Kernel):
    """Redraws the hidden units, then all sites."""

    needs: ClassVar[tuple[type[Target], ...]] = (Layered,)

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        layered = self._layered(target)
        return State(x, log_prob(target, x), layered.hidden_logits(target.space.embed(x)))

    def queries(self, target: Target, evals: float) -> float:
        return target.space.num_levels * target.space.num_sites  # those of Gibbs site by site

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        space, layered, hidden = target.space, self._layered(target), state.cache
        bits = random.words(key, hidden.size + space.num_sites)
        h = random.to_uniform(bits[: hidden.size]) < jax.nn.sigmoid(hidden)
        logits = layered.site_logits(h.astype(hidden.dtype)).reshape(space.num_sites, -1)
        if space.has_two_levels:
            new = random.to_uniform(bits[hidden.size :]) < jax.nn.sigmoid(logits[:, 0])
        else:
            new = draw_levels(bits[hidden.size :], bar_missing(logits, space.levels_at()))
        x = materialised(new.astype(space.dtype).reshape(space.shape))
        if space.frozen is not None:
            x = jnp.where(space.frozen.mask, state.x, x)
        after = State(x, log_prob(target, x), layered.hidden_logits(space.embed(x)))
        return after, scalar_info(1, True, space.distance(state.x, x), 1, False)

    def _layered(self, target: Target) -> Layered:
        if isinstance(target, Tempered):
            raise ValueError(
                "Gibbs sampling by layers takes no temperature: given its hidden units a tempered machine's sites are "
                "not independent; use another sampler, such as 'pas'."
            )
        assert isinstance(target, Layered)
        return target


SCANS = ("random", "systematic", "chromatic", "elimination", "layers")


def gibbs(scan: str = "random") -> Kernel:
    """Gibbs sampling; `scan` is "random", "systematic", "chromatic", "elimination" or "layers"."""
    if not isinstance(scan, str):
        raise TypeError(f"scan must be a name ({', '.join(SCANS)}), but got {describe(scan)}.")
    if scan not in SCANS:
        raise unknown_name("scan", scan, SCANS)
    if scan == "layers":
        return LayerGibbs()
    if scan == "elimination":
        return EliminationGibbs()
    return ChromaticGibbs() if scan == "chromatic" else Gibbs(scan)
