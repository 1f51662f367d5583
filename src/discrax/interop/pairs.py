"""Indicators and the coefficients that they switch on, moved in pairs: spike-and-slab models.

A log-density of n indicators g in {0, 1} and n coefficients s of the form

    f(g, s) = P(g) + R(s) + Q(g * s)        product by element; Q(0) = R(0) = 0

leaves s_j to its prior R where g_j = 0. If g alone moves, a coefficient gets in when its prior happens to draw a value
that fits the data. Here g_j is flipped with s_j integrated out, and s_j is drawn after it. This is done for the law

    f~(g, s) = a'g + c's - s'Ls / 2 + b'u + u'(H - D)u / 2,    u = g * s

of second order, in R about s = 0 and in Q about some u, with L and D diagonal and H without a diagonal: s_j given all
others is Gaussian under either g_j. With m = c + b + Hu and K = L + D, the log-odds of g_j = 1, without s_j, are

    odds_j = a_j - c_j^2 / (2 L_j) + log(L_j / K_j) / 2 + m_j^2 / (2 K_j)

One flip is chosen among all by the weights w_j = sigmoid((1 - 2 g_j) odds_j), and accepted with probability
min(1, Z / Z'), Z = sum_j w_j: the weights are balanced, so the odds cancel. That is reversible for f~, and so it is to
draw all coefficients anew between two equal numbers of such steps, from

    s | g ~ Normal(M^-1 (c + g * b), M^-1),    M = diag(L + g * D) - diag(g) H diag(g)

The end of it all is accepted by (f - f~)' - (f - f~), which is 0 where f is of second order (a Gaussian regression).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from discrax.core import random
from discrax.core.metropolis import Decision, decide, select

_LEAST_PRECISION = 1e-6  # where the density of a coefficient bends up

Vector = Float[Array, " n"]
LogDensity = Callable[[Vector, Vector], Float[Array, ""]]


class PairLaw(NamedTuple):
    """The law f~ of second order."""

    a: Vector
    c: Vector
    off: Vector  # L, the precision of a coefficient that is switched off
    on: Vector  # K, and of one that is switched on
    b: Vector
    h: Float[Array, "n n"]

    def log_density(self, g: Vector, s: Vector) -> Float[Array, ""]:
        """f~, up to a constant."""
        u = g * s
        return self.a @ g + s @ (self.c - self.off * s / 2) + u @ (self.b + (self.h @ u - (self.on - self.off) * u) / 2)

    def log_odds(self, field: Vector) -> Vector:
        """Of g_j = 1 without s_j, where Hu is given."""
        from_slabs = (self.c + self.b + field) ** 2 / self.on - self.c**2 / self.off
        return self.a + (from_slabs + jnp.log(self.off / self.on)) / 2


class Pairs(NamedTuple):
    """Where a chain is."""

    g: Vector
    s: Vector
    field: Vector  # Hu
    weights: Vector  # w


def expand(f: LogDensity, a: Vector, center: Vector) -> PairLaw:
    """f~ of f, whose log-odds of the indicators at s = 0 are a; Q is expanded about u = center, R about 0."""
    zeros, ones = jnp.zeros_like(a), jnp.ones_like(a)
    slope = jax.grad(lambda u: f(ones, u) - f(zeros, u))
    hessian = jax.jacfwd(slope)(center)
    bend = jnp.maximum(-jnp.diagonal(hessian), 0)  # D
    h = jnp.fill_diagonal(hessian, 0, inplace=False)
    c, curvature = jax.jvp(jax.grad(lambda s: f(zeros, s)), (zeros,), (ones,))  # R is a sum over elements
    off = jnp.maximum(-curvature, _LEAST_PRECISION)
    return PairLaw(a, c, off, off + bend, slope(center) - h @ center + bend * center, h)


def recenter(center: Any, u: Any, count: int | Array) -> Any:
    """The mean of where u was in tuning, later draws weighing more; `count` were before."""
    return center + (u - center) * 2 / (count + 2)


def misfit(f: LogDensity, g: Vector, s: Vector) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How far f is from P(g) + R(s) + Q(g * s) at a state, and the size of what is compared."""
    zeros, ones, u = jnp.zeros_like(s), jnp.ones_like(s), g * s
    q = f(ones, u) - f(zeros, u) - f(ones, zeros) + f(zeros, zeros)
    terms = jnp.stack([f(g, s), f(g, zeros), f(zeros, s), f(zeros, zeros), f(ones, u), f(zeros, u)])
    return jnp.abs(terms[0] - terms[1] - terms[2] + terms[3] - q), jnp.max(jnp.abs(terms))


def arrive(law: PairLaw, g: Vector, s: Vector, field: Vector) -> Pairs:
    """A state, with the weights of its flips."""
    return Pairs(g, s, field, jax.nn.sigmoid((1 - 2 * g) * law.log_odds(field)))


def flip(law: PairLaw, here: Pairs, key: PRNGKeyArray, waits: Vector, noise: Array) -> Pairs:
    """One step, reversible for f~: of flips that wait for times of rate w_j the first one."""
    j = jnp.argmin(waits / here.weights)
    was, will = here.g[j], 1 - here.g[j]
    precision = jnp.where(will, law.on[j], law.off[j])
    value = (law.c[j] + will * (law.b[j] + here.field[j])) / precision + noise / jnp.sqrt(precision)
    field = here.field + law.h[j] * (will * value - was * here.s[j])
    there = arrive(law, here.g.at[j].set(will), here.s.at[j].set(value), field)
    decision = decide(key, jnp.log(jnp.sum(here.weights)) - jnp.log(jnp.sum(there.weights)))
    return select(decision.is_accepted, there, here)


def redraw(law: PairLaw, here: Pairs, noise: Vector) -> Pairs:
    """All coefficients anew, by f~ given g; none where M has no Cholesky factor."""
    g = here.g
    precision = jnp.diag(law.off + g * (law.on - law.off)) - g[:, None] * law.h * g
    root = jnp.linalg.cholesky(precision)
    half = solve_triangular(root, law.c + g * law.b, lower=True)
    s = solve_triangular(root, half + noise, lower=True, trans="T")
    return select(jnp.all(jnp.isfinite(s)), arrive(law, g, s, law.h @ (g * s)), here)


def move(
    key: PRNGKeyArray, f: LogDensity, law: PairLaw, g: Vector, s: Vector, num_steps: int, redraws: bool = False
) -> tuple[Vector, Vector, Decision]:
    """Flips by f~, with all coefficients drawn anew half way if asked for; what comes out is accepted or not by f."""
    for_sites, for_values, for_flips, for_end, for_redraw = random.split(key, 5)
    parts = 2 if redraws else 1
    num_steps = -(-num_steps // parts)
    chosen = (
        random.split(for_flips, parts * num_steps).reshape(parts, num_steps),
        -jnp.log(random.uniform(for_sites, parts * num_steps * len(g))).reshape(parts, num_steps, -1),
        random.normal(for_values, parts * num_steps).reshape(parts, num_steps),
    )
    end = arrive(law, g, s, law.h @ (g * s))
    for part in range(parts):
        if part:
            end = redraw(law, end, random.normal(for_redraw, len(g)))
        these = jax.tree.map(lambda each, part=part: each[part], chosen)
        end, _ = jax.lax.scan(lambda here, each: (flip(law, here, *each), None), end, these)
    by_law = law.log_density(end.g, end.s) - law.log_density(g, s)
    decision = decide(for_end, f(end.g, end.s) - f(g, s), -by_law)
    g, s = select(decision.is_accepted, (end.g, end.s), (g, s))
    return g, s, decision
