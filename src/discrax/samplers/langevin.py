"""Discrete Langevin proposals: DMALA (also NCG or DLP), its unadjusted form DULA, and DLP with a diagonal metric.

With the log-ratios r_ic of all single-site changes at x and the squared length d_ic of each move in the embedding,
every site draws its level with logits

    l_ic = log g(exp(r_ic)) - D_i d_ic / (2 eps),     l_i,x_i = 0

With g = sqrt, D = 1 and first-order ratios this is the discrete Langevin proposal of Zhang et al. (2022) and Rhodes and
Gutmann (2022); `step_size` is their eps. For two levels it is one Bernoulli draw a site, flipped with probability
sigmoid(l_i).

- DMALA: D = 1, accepted or rejected; most efficient at acceptance 0.574.
- DULA: D = 1, never rejected, so it samples another law than the target's, nearer to it the smaller eps is.
- DLPTrace: D is the smallest diagonal, by its trace, that makes W + D positive, where W approximates the Hessian of
  log pi: sites with strong couplings make shorter steps (Sun et al., 2023, where eps is sigma / 2).
"""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core.checks import describe, number, real_array
from discrax.core.kernel import Info, Knob, State, replaced
from discrax.core.levels import is_level
from discrax.core.target import Target, effective_ratios
from discrax.core.xla import numpy_for
from discrax.curvature.diagonal import smallest_trace
from discrax.curvature.hessian import find_hessian
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.factorised import Factorised, Logits, factorised_step
from discrax.samplers.informed import check_ratios

_SCALES = (-30.0, 12.0)  # the logarithms of scales that make sense


class _Langevin(Factorised):
    step_size: Float[Array, ""]
    balancing: Balancing

    def __init__(self, step_size: float = 0.2, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        self.step_size, self.ratios = positive("step_size", step_size), check_ratios(ratios)
        self.balancing = get_balancing(balancing)

    @property
    def stiffness(self) -> Float[Array, "*n"]:
        """D / eps: a number, or one per site."""
        return 1 / self.step_size

    def logits(self, target: Target, state: State) -> Logits:
        return langevin_logits(target, state, self.balancing, self.stiffness)

    def knobs(self, target: Target) -> dict[str, Knob]:
        return {"step_size": step_size_knob(self.step_size, target, self.target_rate)}


class DMALA(_Langevin):
    """Metropolis-adjusted discrete Langevin."""

    # Written out, though it adds nothing: type checkers make a constructor of the fields where a class has none.
    def __init__(self, step_size: float = 0.2, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        super().__init__(step_size, balancing, ratios)


class DULA(_Langevin):
    """Unadjusted discrete Langevin."""

    is_exact: ClassVar[bool] = False

    def __init__(self, step_size: float = 1.0, balancing: str | Balancing = "sqrt", ratios: str = "exact"):
        super().__init__(step_size, balancing, ratios)

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target = self.seen(target)
        logits = self.logits(target, state)
        return factorised_step(key, target, state, logits, lambda there: (logits, 0.0), is_adjusted=False)

    def knobs(self, target: Target) -> dict[str, Knob]:
        return {}


class DLPTrace(_Langevin):
    """DMALA with a step size per site, from the curvature of the target."""

    diagonal: Float[Array, " n"] | None

    def __init__(
        self,
        step_size: float = 0.2,
        balancing: str | Balancing = "sqrt",
        diagonal: ArrayLike | None = None,
        ratios: str = "exact",
    ):
        super().__init__(step_size, balancing, ratios)
        self.diagonal = None
        if diagonal is not None:
            diagonal = real_array("diagonal", diagonal)
            if diagonal.ndim != 1 or not (diagonal >= 0).all():
                raise ValueError(f"diagonal holds one number >= 0 per site, but got {describe(diagonal)}.")
            self.diagonal = jnp.asarray(diagonal, jnp.result_type(float))

    @property
    def stiffness(self) -> Float[Array, "*n"]:
        return 1 / self.step_size if self.diagonal is None else self.diagonal / self.step_size

    @property
    def is_prepared(self) -> bool:
        return self.diagonal is not None

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "..."] | None = None
    ) -> tuple["DLPTrace", str | None]:
        hessian = None if self.is_prepared else find_hessian(target, draws)
        if hessian is None:
            return self, None
        found = smallest_trace(hessian.matrix)
        of_sites = found.values.reshape(target.space.num_sites, -1).max(axis=1)  # of a one-hot site, its largest
        # A site without couplings would have D = 0: no limit on its moves, and no scale to tune.
        values = np.maximum(of_sites, 1e-2 * max(of_sites.mean(), 1e-6))
        values = values / values.mean()  # so that step sizes mean what they mean in DMALA
        diagonal = jnp.asarray(values, jnp.result_type(float))
        return replaced(self, diagonal=diagonal), f"{hessian.origin}; {found}"

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        if self.diagonal is not None and len(self.diagonal) != target.space.num_sites:
            raise ValueError(
                f"diagonal holds one number per site, but it has {len(self.diagonal)} and the target "
                f"{target.space.num_sites}."
            )
        return super().init(target, x)


def langevin_logits(
    target: Target, state: State, balancing: Balancing, stiffness: Float[Array, "..."], push: Logits | None = None
) -> Logits:
    """log g(exp(r + push)) - stiffness d / 2, 0 at x_i; `stiffness`: a number, or one per site or move."""
    space, x = target.space, state.x.reshape(-1)
    ratios = effective_ratios(target, state.x, state.cache)
    stiffness = stiffness.astype(ratios.dtype)
    if stiffness.ndim == 1 and ratios.ndim > 1:
        stiffness = stiffness[:, None]
    pushed = ratios if push is None else ratios + push
    logits = balancing(pushed) - stiffness * space.squared_moves(x) / 2
    logits = jnp.where(jnp.isneginf(ratios), -jnp.inf, logits)  # barred moves stay barred whatever g(0) is
    return logits if space.has_two_levels else jnp.where(is_level(x, space.num_levels), 0, logits)


def total_log_rate(target: Target, state: State, balancing: Balancing) -> Float[Array, ""]:
    """log Z(x), Z the sum of g over all single-site changes."""
    ratios = effective_ratios(target, state.x, state.cache)
    rates = jnp.where(jnp.isneginf(ratios), -jnp.inf, balancing(ratios))
    if not target.space.has_two_levels:
        rates = jnp.where(is_level(state.x.reshape(-1), target.space.num_levels), -jnp.inf, rates)
    return logsumexp(rates)


def step_size_knob(step_size: Float[Array | np.ndarray, ""], target: Target, rate: float) -> Knob:
    """The step size eps as a knob.

    Its coordinate is s = log of the factor that the penalty puts on the shortest move, s = -d_min / (2 eps), as long as
    moves are rare. Above s = -1 it continues smoothly as the logarithm of eps.
    """
    shortest = target.space.smallest_squared_move

    def to_scale(step_size: Any) -> Any:
        xp = numpy_for(step_size, shortest)
        s = -xp.asarray(shortest) / (2 * xp.asarray(step_size))
        return xp.where(s < -1, s, -1 - xp.log(-s)).astype(jnp.float32)

    def from_scale(scale: Any) -> Any:
        xp = numpy_for(scale, shortest)
        scale = xp.clip(xp.asarray(scale), *_SCALES)
        s = xp.where(scale < -1, scale, -xp.exp(-(scale + 1)))
        return (-xp.asarray(shortest) / (2 * s)).astype(jnp.float32)

    low, high = (from_scale(np.float32(end)) for end in _SCALES)
    return Knob(step_size, low, high, rate=rate, to_scale=to_scale, from_scale=from_scale)


def positive(name: str, value: float) -> Float[Array, ""]:
    """A scale as a leaf."""
    return jnp.asarray(number(name, value, above=0), jnp.float32)
