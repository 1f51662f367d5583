"""Regression with binary unknowns: which coefficients are on.

- `LogisticRegression`: coefficients in {0, 1} of a logistic model, uniform prior (Sun et al., 2023).
- `SparseLinearRegression`: inclusion indicators of a linear model, its coefficients and noise integrated out under a
  ridged g-prior (Rhodes and Gutmann, 2022).
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from discrax.core.checks import checked_arguments, real_array
from discrax.core.space import Binary, Space
from discrax.core.target import Target

_AT_ONCE = 1 << 14  # states of an enumeration
_WORST_ERROR = 0.05  # of log pi, by the rounding of nearly dependent columns


class LogisticRegression(Target):
    """log pi(x) = sum_i y_i v_i - log(1 + exp(v_i)),   v = X e,   x in {0, 1}^d,   y in {0, 1}^m.

    The log-ratios of flips come from the gradient X' (y - sigmoid(v)), as in the paper.
    """

    space: Space
    X: Float[Array, "m d"]
    y: Float[Array, " m"]

    def __init__(self, X: ArrayLike, y: ArrayLike):
        X, y = _checked_data(X, y)
        if not np.isin(y, (0, 1)).all():
            raise ValueError("The outcomes of a logistic regression are 0 or 1, but y holds other values.")
        self.space = Binary(X.shape[1])
        self.X, self.y = jnp.asarray(X, jnp.result_type(float)), jnp.asarray(y, jnp.result_type(float))

    @classmethod
    @checked_arguments
    def simulated(
        cls, seed: int, num_rows: int = 50, dimension: int = 100, num_active: int = 7
    ) -> "LogisticRegression":
        """The paper's data: rows N(0, D (I + 11' / 4) D / 4), D_jj = exp(-1/4 + j / (d - 1)); the first ones are on."""
        if not 0 <= num_active <= dimension:
            raise ValueError(f"num_active must lie in 0..{dimension}, but got {num_active}.")
        rng = np.random.default_rng(seed)
        scales = np.exp(-0.25 + np.linspace(0, 1, dimension))
        X = 0.5 * scales * (rng.normal(size=(num_rows, dimension)) + 0.5 * rng.normal(size=(num_rows, 1)))
        v = X[:, :num_active].sum(axis=1)
        return cls(X, rng.random(num_rows) < 1 / (1 + np.exp(-v)))

    def log_prob(self, e: Float[Array, " d"]) -> Float[Array, ""]:
        v = jnp.matmul(self.X, e, precision=jax.lax.Precision.HIGHEST)
        return jnp.sum(self.y * v - jax.nn.softplus(v))


class SparseLinearRegression(Target):
    """Inclusion indicators s in {0, 1}^D of y ~ N(X_s w, sigma^2 I), X_s = X diag(s), and independent extra sites.

    With A = X_s' X_s, w | sigma^2 ~ N(0, g sigma^2 (A + lam I)^-1) and sigma^2 ~ InverseGamma(alpha, beta),

        p(s | y) ~ Gamma(sum s + a) Gamma(D - sum s + b) (|A + lam I| / |(1 + g) A + lam I|)^(1/2)
                   (2 beta + y'y - g y' X_s ((1 + g) A + lam I)^-1 X_s' y)^-(alpha + N / 2)

    (the printed form lacks the square root and the inverse). The last `num_extra` sites are Bernoulli(`extra_prob`).

    Equal columns enter only by how many of them are on, n_k = sum of s_j^2 over the copies j of column k: with the
    distinct columns F, A has the non-zero eigenvalues of n^(1/2) F'F n^(1/2). That matrix is small, and it stays well
    conditioned in single precision where A is singular.

    The likelihood is nearly flat in s off its corners (rescaling an active column changes nothing), so a gradient tells
    of the prior alone. Samplers that use exact log-ratios see more.
    """

    space: Space
    gram: Float[Array, "r r"]  # F'F
    projection: Float[Array, " r"]  # F'y
    copies: Float[Array, "r D"]  # 1 where column j of X is column k of F
    total: Float[Array, ""]  # y'y
    g: Float[Array, ""]
    lam: Float[Array, ""]
    noise: Float[Array, "2"]  # alpha, beta
    prior: Float[Array, "2"]  # a, b
    extra_logit: Float[Array, ""]
    num_rows: int = eqx.field(static=True)

    @checked_arguments
    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        num_extra: int = 0,
        g: float = 20.0,
        lam: float = 0.001,
        noise: tuple[float, float] = (0.1, 0.1),
        prior: tuple[float, float] = (0.001, 10.0),
        extra_prob: float = 0.001,
    ):
        X, y = _checked_data(X, y)
        positive = {"g": g, "lam": lam, "noise": min(noise), "prior": min(prior)}
        for name, value in positive.items():
            if not value > 0:
                raise ValueError(f"{name} must be positive, but got {value}.")
        if not 0 < extra_prob < 1:
            raise ValueError(f"extra_prob must lie strictly between 0 and 1, but got {extra_prob}.")
        self.num_rows, D = X.shape
        self.space = Binary(D + num_extra)
        F, group = np.unique(X, axis=1, return_inverse=True)
        copies = np.equal.outer(np.arange(F.shape[1]), group.reshape(-1))
        gram = F.T @ F
        dtype = jnp.result_type(float)
        _check_precision(gram, copies.sum(axis=1), g, lam, dtype)
        self.gram, self.projection = jnp.asarray(gram, dtype), jnp.asarray(F.T @ y, dtype)
        self.copies, self.total = jnp.asarray(copies, dtype), jnp.asarray(y @ y, dtype)
        self.g, self.lam = jnp.asarray(g, dtype), jnp.asarray(lam, dtype)
        self.noise, self.prior = jnp.asarray(noise, dtype), jnp.asarray(prior, dtype)
        self.extra_logit = jnp.asarray(math.log(extra_prob) - math.log1p(-extra_prob), dtype)

    @classmethod
    @checked_arguments
    def simulated(
        cls, seed: int, num_extra: int = 80, num_rows: int = 20, num_covariates: int = 5, num_copies: int = 4
    ) -> "SparseLinearRegression":
        """The paper's data: covariates uniform on {0, 1, 2}, each repeated; y is the sum of the covariates."""
        F = np.random.default_rng(seed).integers(0, 3, (num_rows, num_covariates))
        return cls(np.tile(F, num_copies), F.sum(axis=1), num_extra=num_extra)

    @property
    def num_columns(self) -> int:
        """D, the number of sites that belong to the regression."""
        return self.copies.shape[1]

    def log_prob(self, e: Float[Array, " sites"]) -> Float[Array, ""]:
        s, extra = e[: self.num_columns], e[self.num_columns :]
        total, (a, b), (alpha, beta) = jnp.sum(s), self.prior, self.noise
        prior = (
            jax.lax.lgamma(total + a) + jax.lax.lgamma(self.num_columns - total + b) + self.extra_logit * jnp.sum(extra)
        )

        n = jnp.matmul(self.copies, jnp.square(s), precision=jax.lax.Precision.HIGHEST)
        # sqrt has no slope at 0, but log pi has slope 0 in s there.
        root = jnp.where(n > 0, jnp.sqrt(jnp.where(n > 0, n, 1)), 0)
        A, c = root[:, None] * self.gram * root[None, :], jnp.sqrt(self.g) * root * self.projection
        ridge = self.lam * jnp.eye(len(A), dtype=e.dtype)
        before = jnp.diagonal(jnp.linalg.cholesky(A + ridge))
        # The last row of the factor of [[M, c], [c', t]] ends in (t - c' M^-1 c)^(1/2). Here that is at least
        # (t / (1 + g))^(1/2), so it needs no clamp.
        bordered = jnp.block(
            [[(1 + self.g) * A + ridge, c[:, None]], [c[None, :], (2 * beta + self.total)[None, None]]]
        )
        after = jnp.diagonal(jnp.linalg.cholesky(bordered))
        log_ratio = jnp.sum(jnp.log(before)) - jnp.sum(jnp.log(after[:-1]))
        return prior + log_ratio - (2 * alpha + self.num_rows) * jnp.log(after[-1])

    @checked_arguments
    def exact_marginals(self, limit: int = 1 << 20) -> tuple[Float[np.ndarray, " sites"], Float[np.ndarray, "D D 2 2"]]:
        """P(x_i = 1) of all sites, and P(s_i = k, s_j = l) of the D sites of the regression, in double precision.

        Sums over how many copies of each distinct column are on: at most 2^D terms, and few if there are many copies.
        """
        copies = np.asarray(self.copies, int)
        sizes = copies.sum(axis=1)
        num_counts = math.prod(int(size) + 1 for size in sizes)
        if num_counts > limit:
            raise ValueError(
                f"Exact marginals sum over at most {limit:,} states, but this posterior has {num_counts:,}; use fewer "
                "columns or raise `limit`."
            )
        counts = np.array(list(itertools.product(*(range(size + 1) for size in sizes))), np.int16)
        parts = np.array_split(counts, -(-len(counts) // _AT_ONCE))
        values = np.concatenate([self._log_weights(part, sizes) for part in parts])
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        first, second = np.zeros(len(sizes)), np.zeros((len(sizes), len(sizes)))
        for part, weight in zip(parts, np.split(weights, np.cumsum([len(part) for part in parts])[:-1]), strict=True):
            first += weight @ part
            second += (weight[:, None] * part).T @ part
        # Of m copies with n on, two different ones are both on with probability n (n - 1) / (m (m - 1)).
        pairs = np.outer(sizes, sizes) - np.diag(sizes)
        both = (second - np.diag(first)) / np.where(pairs == 0, 1, pairs)
        group = copies.argmax(axis=0)
        on = (first / sizes)[group]
        both = both[group[:, None], group[None, :]]
        np.fill_diagonal(both, on)
        rows, columns = np.broadcast_arrays(on[:, None], on[None, :])
        pairwise = np.stack([1 - rows - columns + both, columns - both, rows - both, both], axis=-1)
        extra = np.full(self.space.num_sites - self.num_columns, 1 / (1 + np.exp(-float(self.extra_logit))))
        return np.concatenate([on, extra]), np.maximum(pairwise, 0).reshape(*both.shape, 2, 2)

    def _log_weights(self, counts: np.ndarray, sizes: np.ndarray) -> Float[np.ndarray, " states"]:
        """log of the posterior of all states with these counts together: `log_prob` and the number of such states."""
        gram, projection, noise = (np.asarray(a, np.float64) for a in (self.gram, self.projection, self.noise))
        g, lam, D, (a, b) = float(self.g), float(self.lam), self.num_columns, np.asarray(self.prior, np.float64)
        prior = np.array([math.lgamma(on + a) + math.lgamma(D - on + b) for on in range(D + 1)])
        choices = np.zeros((len(sizes), int(sizes.max()) + 1))
        for row, size in zip(choices, sizes, strict=True):
            row[: size + 1] = [math.log(math.comb(size, on)) for on in range(size + 1)]
        values = prior[counts.sum(axis=1, dtype=int)] + choices[np.arange(len(sizes)), counts].sum(axis=1)

        root = np.sqrt(counts.astype(np.float64))
        A, ridge = root[:, :, None] * gram * root[:, None, :], lam * np.eye(len(gram))
        before, after = np.linalg.cholesky(A + ridge), (1 + g) * A + ridge
        explained = np.linalg.solve(after, (root * projection)[..., None])[..., 0]
        for factor, sign in ((before, 1), (np.linalg.cholesky(after), -1)):
            values += sign * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        rest = 2 * noise[1] + float(self.total) - g * (root * projection * explained).sum(axis=1)
        return values - (noise[0] + self.num_rows / 2) * np.log(np.maximum(rest, 2 * noise[1]))


def _checked_data(X: ArrayLike, y: ArrayLike) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
    X, y = real_array("X", X), real_array("y", y)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"A regression needs X of shape (m, d) and y of shape (m,), but got {X.shape} and {y.shape}.")
    if not X.size:
        raise ValueError(f"A regression needs at least one row and one column, but X has shape {X.shape}.")
    return X, y


def _check_precision(gram: np.ndarray, sizes: np.ndarray, g: float, lam: float, dtype: Any) -> None:
    """Rounding moves an eigenvalue t of A by eps |A|, and log pi by g times that over t + lam."""
    used = np.flatnonzero(np.diag(gram))  # a column of zeros is no trouble
    if not used.size:
        return
    smallest = max(0.0, np.linalg.eigvalsh(gram[np.ix_(used, used)])[0])
    error = g * float(jnp.finfo(dtype).eps) * (sizes * np.diag(gram)).sum() / (smallest + lam)
    if error > _WORST_ERROR:
        raise ValueError(
            f"The distinct columns of X are nearly dependent: with lam = {lam}, rounding to {np.dtype(dtype)} may move "
            f"log pi by {error:.2g}. Use a larger lam, or double precision (jax.config, jax_enable_x64)."
        )
