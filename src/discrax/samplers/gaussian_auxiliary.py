"""Second-order proposals by a Gaussian auxiliary variable: AVG, PAVG, and the any-scale balanced samplers AB.

Let M = W + D be positive semidefinite, W an approximation of the Hessian of log pi and D diagonal. A Gaussian
u ~ N(R x, I) with R'R = M, added to the state, cancels the coupling W between the sites (Zhang et al., 2012; Rhodes and
Gutmann, 2022; Sun et al., 2023). All that is ever needed of it is e = R'(u - R x) ~ N(0, M). Given e, every site draws
its level with logits

    l_ic = alpha (r_ic + e_i z_ic) - (alpha D_i + 1 / sigma) z_ic^2 / 2,     z_ic = v_c - x_i,     l_i,x_i = 0

where r are the log-ratios of single-site changes (a gradient times z): e is a random addition to the gradient. Seen
from y, the same u has e' = e - M (y - x), so with q at x given e, at y given e',

    log A = log pi(y) - log pi(x) + e'(y - x) - (y - x)' M (y - x) / 2 + log q(x | y, e') - log q(y | x, e)

which is exact for any alpha, sigma, D and M >= 0. These are the members:

    AVG         W = 0, D = 2 / step_size                                  alpha = 1, sigma = infinity
    PAVG        W = gamma M_0, D = 2 / step_size + max(0, -lambda_min(W)) alpha = 1, sigma = infinity
    AB-1st      W = 0, D = 0                                              alpha and sigma tuned: DMALA with g = t^alpha
    AB-diagonal W diagonal, D = -W, so that M = 0 and e = 0               alpha and sigma tuned
    AB-shift    W, D = lambda I with the smallest lambda                  alpha and sigma tuned
    AB-max      W, the D with the smallest lambda_max(W + D)              alpha and sigma tuned
    AB-trace    W, the D with the smallest trace                          alpha and sigma tuned

Where log pi is quadratic with Hessian W, alpha = 1 and sigma = infinity accept always: e decouples the sites, and the
step is a block Gibbs update of all of them. (Printed forms of AB lack the pull of x in 1 / sigma; this is the corrected
one.)
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe, number, real_array
from discrax.core.kernel import Info, Knob, State, replaced
from discrax.core.levels import at_level
from discrax.core.space import Categorical, Space
from discrax.core.target import ExactRatios, Target, offered
from discrax.curvature.build import build_metric
from discrax.curvature.diagonal import TIES
from discrax.curvature.hessian import LARGEST, Hessian, find_hessian
from discrax.curvature.matrices import checked_matrix, diagonal_matrix
from discrax.curvature.metric import Isotropic, Metric, Spectral
from discrax.samplers.balancing import Power
from discrax.samplers.factorised import Logits, factorised_step
from discrax.samplers.informed import Informed, check_ratios
from discrax.samplers.langevin import langevin_logits, positive


class _GaussianAuxiliary(Informed):
    alpha: eqx.AbstractVar[Float[Array, ""]]
    stiffness: eqx.AbstractVar[Float[Array, ""]]  # 1 / sigma
    metric: eqx.AbstractVar[Metric | None]

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target, balancing, metric = self.seen(target), Power(self.alpha), self.metric
        if metric is None:

            def first_order(state: State) -> Logits:
                return langevin_logits(target, state, balancing, self.stiffness)

            return factorised_step(key, target, state, first_order(state), lambda there: (first_order(there), 0.0))

        space = target.space
        for_noise, for_step = random.split(key, 2)
        e = metric.draw(for_noise, _embedded_shape(space))
        alpha, flat = self.alpha.astype(e.dtype), self.stiffness.astype(e.dtype)

        def logits(state: State, e: Float[Array, "n *levels"]) -> Logits:
            x = state.x.reshape(-1)
            stiffness = alpha * _of_moves(space, x, metric.diagonal) + flat
            return langevin_logits(target, state, balancing, stiffness, space.ratios_from_gradient(x, e))

        def reverse(there: State) -> tuple[Logits, Float[Array, ""]]:
            move = space.embed(there.x.reshape(-1)) - space.embed(state.x.reshape(-1))
            pulled = metric.product(move)
            return logits(there, e - pulled), jnp.sum(move * (e - pulled / 2))

        return factorised_step(for_step, target, state, logits(state, e), reverse)


def _embedded_shape(space: Space) -> tuple[int, ...]:
    return (space.num_sites, space.num_levels) if isinstance(space, Categorical) else (space.num_sites,)


def _of_moves(space: Space, x: Integer[Array, " n"], D: Float[Array, "..."]) -> Float[Array, "..."]:
    """z'Dz / |z|^2 of all changes of a site: D itself, and for a one-hot site the mean of D at both levels."""
    if not D.ndim or D.shape[0] == space.num_sites:
        return D
    of_levels = D.reshape(space.num_sites, -1)
    return of_levels.mean(axis=1) if space.has_two_levels else (of_levels + at_level(of_levels, x)[:, None]) / 2


class AnyScale(_GaussianAuxiliary):
    """The AB samplers: `rule` is "first", "diagonal", "shift", "max", "max, any" or "trace"."""

    sigma: Float[Array, ""]
    alpha: Float[Array, ""]
    metric: Metric | None
    rule: str = eqx.field(static=True)
    wants_estimate: bool = eqx.field(static=True)

    def __init__(self, rule: str, sigma: float = 0.1, alpha: float = 0.5, W: Any = None, ratios: str = "exact"):
        is_infinite = isinstance(sigma, float | np.floating) and sigma == np.inf
        self.sigma = jnp.asarray(np.inf, jnp.float32) if is_infinite else positive("sigma", sigma)
        self.alpha = jnp.asarray(number("alpha", alpha, above=0, most=1), jnp.float32)
        self.metric, self.rule, self.wants_estimate = None, rule, isinstance(W, str)
        self.ratios = check_ratios(ratios)
        if isinstance(W, str) and W != "estimate":
            raise ValueError(f'W is a matrix, "estimate" or None (exact where the target tells it), but got {W!r}.')
        if W is not None and not self.wants_estimate:
            hessian = Hessian(checked_matrix(W), "W as given")
            self.metric, _ = build_metric(hessian, rule, exact_ratios=False)

    @property
    def stiffness(self) -> Float[Array, ""]:
        """1 / sigma."""
        return 1 / self.sigma

    @property
    def is_prepared(self) -> bool:
        return self.rule == "first" or self.metric is not None

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "..."] | None = None
    ) -> tuple["AnyScale", str | None]:
        hessian = None if self.is_prepared else find_hessian(target, draws, estimates=self.wants_estimate)
        return (self, None) if hessian is None else self.with_hessian(target, hessian)

    def with_hessian(self, target: Target, hessian: Hessian) -> tuple["AnyScale", str]:
        """With the D that its rule finds for W, and a sentence about it."""
        exact_ratios = offered(self.seen(target), ExactRatios) is not None
        if exact_ratios and hessian.matrix.shape[0] > target.space.num_sites:
            # One-hot: they hold all that W has between the levels of one site.
            hessian = replace(hessian, matrix=np.where(_of_one_site(target, hessian.matrix), 0, hessian.matrix))
        metric, how = build_metric(hessian, self.rule, exact_ratios=exact_ratios)
        # They are one program, whatever their rule was.
        return replaced(self, metric=metric, rule="prepared", wants_estimate=False), how

    def knobs(self, target: Target) -> dict[str, Knob]:
        # Fine: the best alpha grows with sigma, a ridge that coarse points miss, and (infinity, 1) is a second summit.
        return {
            "sigma": Knob(self.sigma, 1e-4, 1e6, (0.1, 0.4, 1.0, 2.0, 4.0, 10.0, 1000.0)),
            "alpha": Knob(self.alpha, 0.05, 1.0, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        }


class PAVG(_GaussianAuxiliary):
    """AVG, and with a symmetric M (given, from a quadratic target, or estimated in warm-up) PAVG."""

    metric: Isotropic | Spectral
    wants_matrix: bool = eqx.field(static=True)
    tunes_gamma: bool = eqx.field(static=True)

    def __init__(
        self,
        step_size: float = 1.0,
        M: Any = None,
        gamma: float = 1.0,
        wants_matrix: bool = True,
        ratios: str = "exact",
    ):
        self.ratios = check_ratios(ratios)
        self.metric, gamma = Isotropic(positive("step_size", step_size)), number("gamma", gamma)
        self.wants_matrix, self.tunes_gamma = wants_matrix, M is not None
        if M is not None:
            M = checked_matrix(M, "M")
            self.metric = Spectral.of(_dense(M), step_size, gamma)

    @property
    def alpha(self) -> Float[Array, ""]:
        """Always 1."""
        return jnp.ones((), jnp.float32)

    @property
    def stiffness(self) -> Float[Array, ""]:
        """Always 0: sigma is infinite."""
        return jnp.zeros((), jnp.float32)

    @property
    def step_size(self) -> Float[Array, ""]:
        """The variance that the auxiliary variable adds to a move, in units of the embedding."""
        return self.metric.step_size

    @property
    def gamma(self) -> Float[Array, ""]:
        """The multiple of M; 0 where there is none."""
        return self.metric.gamma if isinstance(self.metric, Spectral) else jnp.zeros((), jnp.float32)

    @property
    def is_prepared(self) -> bool:
        return not self.wants_matrix or isinstance(self.metric, Spectral)

    def prepare(
        self, target: Target, *, tuning: bool, draws: Integer[np.ndarray, "..."] | None = None
    ) -> tuple["PAVG", str | None]:
        hessian = None if self.is_prepared else find_hessian(target, draws, estimator="moments")
        if hessian is None:
            return self, None
        M = _dense(hessian.matrix)
        if len(M) > target.space.num_sites:  # one-hot: couplings between levels of one site mean nothing
            M = np.where(_of_one_site(target, M) & ~np.eye(len(M), dtype=bool), 0, M)
        if offered(self.seen(target), ExactRatios) is not None:
            M = M - np.diag(np.diag(M))  # exact log-ratios hold it already
        metric = Spectral.of(M, self.metric.step_size)
        return replaced(self, metric=metric, tunes_gamma=not hessian.is_exact), hessian.origin

    def knobs(self, target: Target) -> dict[str, Knob]:
        knobs = {"step_size": Knob(self.step_size, 1e-3, 1e5)}
        return knobs | ({"gamma": Knob(self.gamma, -1e3, 1e3, (1.0,))} if self.tunes_gamma else {})

    def with_knobs(self, **values: Float[Array, ""]) -> "PAVG":
        return replaced(self, metric=replaced(self.metric, **values))


def _of_one_site(target: Target, matrix: Float[np.ndarray, "m m"]) -> Bool[np.ndarray, "m m"]:
    """Which entries are between levels of one site, of a matrix for one-hot embeddings."""
    site = np.arange(len(matrix)) // target.space.num_levels
    return site[:, None] == site


def _dense(matrix: Any) -> Float[np.ndarray, "m m"]:
    if matrix.shape[0] > LARGEST:
        raise ValueError(
            f"PAVG needs all eigenvectors of M, for at most {LARGEST:,} rows, but M has {matrix.shape[0]:,}; "
            "ab_shift and ab_trace keep a sparse M sparse."
        )
    return np.asarray(matrix.todense() if hasattr(matrix, "todense") else matrix, float)


def avg(step_size: float = 1.0, ratios: str = "exact") -> PAVG:
    """The auxiliary variable Gibbs-like sampler without a preconditioner."""
    return PAVG(step_size, wants_matrix=False, ratios=ratios)


def pavg(step_size: float = 1.0, M: Any = None, gamma: float = 1.0, ratios: str = "exact") -> PAVG:
    """AVG with a symmetric M: as given, that of a quadratic target, or estimated in warm-up."""
    return PAVG(step_size, M, gamma, ratios=ratios)


def ab_first(sigma: float = 0.1, alpha: float = 0.5, ratios: str = "exact") -> AnyScale:
    """Any-scale balanced proposals of first order."""
    return AnyScale("first", sigma, alpha, ratios=ratios)


def ab_diagonal(sigma: float = 0.1, alpha: float = 0.5, W: Any = None, ratios: str = "gradient") -> AnyScale:
    """Any-scale balanced proposals with a diagonal W: no auxiliary variable, and a step costs what `ab_first` costs.

    W is an array of a number per site (per site and level for one-hot ones), a matrix whose diagonal counts, or as in
    `ab_shift`. It is what gradients lack: exact ratios hold it already.
    """
    if W is not None and not isinstance(W, str) and np.ndim(W) == 1 and not hasattr(W, "tocoo"):
        W = diagonal_matrix(real_array("W", W))
    return AnyScale("diagonal", sigma, alpha, W, ratios)


def ab_shift(sigma: float = 0.1, alpha: float = 0.5, W: Any = None, ratios: str = "exact") -> AnyScale:
    """Any-scale balanced proposals of second order, D = lambda I.

    W is a matrix, "estimate" (in warm-up), or None: that of a quadratic target, else estimated.
    """
    return AnyScale("shift", sigma, alpha, W, ratios)


def ab_max(
    sigma: float = 0.1, alpha: float = 0.5, W: Any = None, ratios: str = "exact", ties: str = "trace"
) -> AnyScale:
    """Any-scale balanced proposals of second order, D with the least lambda_max(W + D) (W as in `ab_shift`).

    Many D have it. `ties` is "trace": one of small trace, which moves furthest; or "none": whichever comes, as in the
    paper.
    """
    if not isinstance(ties, str) or ties not in TIES:
        raise ValueError(f"ties must be {' or '.join(map(repr, TIES))}, but got {describe(ties)}.")
    return AnyScale("max" if ties == "trace" else "max, any", sigma, alpha, W, ratios)


def ab_trace(sigma: float = 0.1, alpha: float = 0.5, W: Any = None, ratios: str = "exact") -> AnyScale:
    """Any-scale balanced proposals of second order, D with the smallest trace (W as in `ab_shift`)."""
    return AnyScale("trace", sigma, alpha, W, ratios)
