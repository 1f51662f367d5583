"""Energy models: targets whose float leaves are trained.

Any `Target` is a model: its parameters are its float leaves, but for those of its space and of the fields that its
class names in `fixed`. `targets.RBM`, `targets.CategoricalRBM` and the quadratic family (`targets.Ising.dense(J)`,
`targets.Potts.graph(...)`) can be trained as they are. Here are those that exist to be trained:

    NetworkModel     log pi(x) = network(x) + base'e + bias'e + s'J s / 2,    e the embedding, s = 2 e - 1
    PairwisePotts    log pi(x) = sum_{i<j} J_ij(x_i, x_j) + sum_i h_i(x_i)
    FunctionModel    log pi(x) = function(parameters, e)
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray
from numpy.typing import ArrayLike

from discrax.core import checks, random
from discrax.core.closures import Captured, capture
from discrax.core.levels import at_level
from discrax.core.space import Binary, Categorical, Space, Spin, check_space
from discrax.core.target import Evaluation, ExactRatios, Target, check_log_prob, embedding_of
from discrax.learn.frequencies import smoothed
from discrax.learn.networks import ConvNet, ResNet, initialised
from discrax.targets.coupling import Dense
from discrax.targets.quadratic import Quadratic


class NetworkModel(Target):
    """A network on images plus, where they are given, independent sites and pairs of sites.

    Binary images enter the network as one channel of -1 and +1, categorical ones as a channel per level. `base` holds
    the log-odds (binary) or logits (categorical) of independent sites that stay as they are; `bias` is the same, but
    trained; `couplings` is J, which only its symmetric part matters of.
    """

    space: Binary | Categorical
    network: Callable[[Array], Array]
    base: Float[Array, "..."] | None
    bias: Float[Array, "..."] | None
    couplings: Float[Array, "n n"] | None
    fixed: ClassVar[tuple[str, ...]] = ("base",)

    def __init__(
        self,
        network: Callable[[Array], Array],
        space: Binary | Categorical,
        *,
        base: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        couplings: ArrayLike | None = None,
    ):
        check_space(space)
        if not callable(network):
            raise TypeError(f"network must be a function of images, but got {checks.describe(network)}.")
        if len(space.shape) != 2:
            raise ValueError(f"A network model has sites (height, width), but the space has shape {space.shape}.")
        embedded = space.shape if isinstance(space, Binary) else (*space.shape, space.num_levels)
        self.space, self.network = space, network
        self.base = _of_shape("base", base, embedded)
        self.bias = _of_shape("bias", bias, embedded)
        if couplings is not None and not isinstance(space, Binary):
            raise ValueError("Couplings between pixels are for binary images; use targets.CategoricalRBM for others.")
        self.couplings = _of_shape("couplings", couplings, (space.num_sites, space.num_sites))

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        image = 2 * e[None] - 1 if isinstance(self.space, Binary) else jnp.moveaxis(e, -1, 0)
        value = self.network(image)
        for logits in (self.base, self.bias):
            value = value if logits is None else value + jnp.sum(logits * e)
        if self.couplings is not None:
            s, J = 2 * e.reshape(-1) - 1, without_diagonal_gradient(self.couplings)
            # The default precision of an accelerator would lose the third digit of a sum over all pairs.
            value = value + jnp.dot(s, jnp.matmul(J, s, precision=jax.lax.Precision.HIGHEST)) / 2
        return value


@checks.checked_arguments
def resnet(
    key: PRNGKeyArray,
    shape: tuple[int, int] = (28, 28),
    *,
    num_levels: int = 2,
    width: int = 64,
    num_blocks: int = 8,
    frequencies: ArrayLike | None = None,
    variance: float = 2.0,
) -> NetworkModel:
    """The residual network of Grathwohl et al. (2021), on top of independent pixels with the data's `frequencies`.

    Weights begin with variance `variance` / (inputs of the layer): 2 is He's, 1/3 that of the papers' code.
    """
    key, space = random.as_threefry(key), image_space(shape, num_levels)
    checks.whole("width", width, least=1)
    checks.whole("num_blocks", num_blocks, least=0)
    base = None if frequencies is None else log_odds(frequencies, space)
    variance = checks.number("variance", variance, above=0)
    channels = 1 if num_levels == 2 else num_levels
    network = initialised(key, ResNet, channels, width, num_blocks, variance=variance)
    return NetworkModel(network, space, base=base)


@checks.checked_arguments
def convnet(
    key: PRNGKeyArray, shape: tuple[int, int] = (16, 16), *, num_levels: int = 2, quadratic: bool = False
) -> NetworkModel:
    """The convolutional network of Rhodes and Gutmann (2022); `quadratic` adds couplings of all pairs and a bias."""
    space, (for_network, for_pairs) = image_space(shape, num_levels), random.split(random.as_threefry(key), 2)
    if quadratic and num_levels != 2:
        raise ValueError(f"Couplings between pixels are for binary images, but num_levels is {num_levels}.")
    network = initialised(for_network, ConvNet, 1 if num_levels == 2 else num_levels, shape)
    if not quadratic:
        return NetworkModel(network, space)
    return NetworkModel(network, space, bias=np.zeros(shape), couplings=random_couplings(for_pairs, space.num_sites))


@checks.checked_arguments
def random_couplings(key: PRNGKeyArray, num_sites: int, scale: float = 0.01) -> Float[Array, "n n"]:
    """A symmetric matrix of small normal numbers, 0 on the diagonal, to start from."""
    key, num_sites = random.as_threefry(key), checks.whole("num_sites", num_sites, least=1)
    matrix = checks.number("scale", scale) * jax.random.normal(key, (num_sites, num_sites), jnp.result_type(float))
    return jnp.where(jnp.eye(num_sites, dtype=bool), 0, (matrix + matrix.T) / 2)


class PairwisePotts(ExactRatios):
    """Categorical sites with a table of q x q numbers for each pair of sites, as in direct coupling analysis.

    `couplings` is J of shape (n, q, n, q). Only its symmetric part counts, and tables J_ii count for nothing.
    """

    space: Categorical
    couplings: Float[Array, "n q n q"]
    fields: Float[Array, "n q"]

    def __init__(self, couplings: ArrayLike, fields: ArrayLike):
        fields = jnp.asarray(checks.real_array("fields", fields), jnp.result_type(float))
        if fields.ndim != 2:
            raise ValueError(f"fields must have shape (sites, levels), but has shape {fields.shape}.")
        self.space = Categorical(fields.shape[0], fields.shape[1])
        self.fields = fields
        self.couplings = jnp.asarray(checks.real_array("couplings", couplings), jnp.result_type(float))
        if self.couplings.shape != 2 * fields.shape:
            raise ValueError(f"couplings must have shape {2 * fields.shape}, but has shape {self.couplings.shape}.")

    @classmethod
    def untrained(cls, frequencies: ArrayLike) -> "PairwisePotts":
        """Independent sites with the frequencies (sites, levels) of the data, and no couplings."""
        p = checks.real_array("frequencies", frequencies)
        if p.ndim != 2 or (p < 0).any() or (p > 1).any():
            raise ValueError(f"frequencies must be probabilities (sites, levels), but got an array of shape {p.shape}.")
        logits = np.log(smoothed(p, p.shape[-1]))
        return cls(np.zeros(2 * logits.shape), logits)

    def _effects(self, e: Float[Array, "n q"]) -> Float[Array, "n q"]:
        """sum_j J_ij(c, x_j) for every site i and level c, of the symmetric part without J_ii."""
        n = self.fields.shape[0]
        own = jnp.eye(n, dtype=bool)[:, None, :, None]
        pairs = jnp.where(own, 0, (self.couplings + jnp.transpose(self.couplings, (2, 3, 0, 1))) / 2)
        flat = jnp.matmul(pairs.reshape(e.size, e.size), e.reshape(-1), precision=jax.lax.Precision.HIGHEST)
        return flat.reshape(e.shape)

    def log_prob(self, e: Float[Array, "n q"]) -> Float[Array, ""]:
        return jnp.sum(e * (self.fields + self._effects(e) / 2))

    def evaluate(self, x: Integer[Array, " n"]) -> Evaluation:
        e = self.space.embed(x)
        effects = self._effects(e)
        of_levels = self.fields + effects
        if self.space.has_two_levels:
            ratios = at_level(of_levels, 1 - x) - at_level(of_levels, x)
        else:
            ratios = of_levels - at_level(of_levels, x)[:, None]
        return Evaluation(jnp.sum(e * (self.fields + effects / 2)), ratios)


class FunctionModel(Target):
    """log pi(x) = function(parameters, e), for networks of any library."""

    function: Callable[[Any, Array], Array] = eqx.field(static=True)
    parameters: Any
    space: Space

    def log_prob(self, e: Float[Array, "..."]) -> Float[Array, ""]:
        return self.function(self.parameters, e)


def from_function(function: Callable[[Any, Array], Array], parameters: Any, space: Space) -> FunctionModel:
    """A model of any function of parameters (a pytree of arrays) and of the embedding of a state."""
    if not callable(function):
        raise TypeError(f"function must be callable with (parameters, embedding), but got {type(function).__name__}.")
    check_space(space)
    try:
        parameters = jax.tree.map(jnp.asarray, parameters)
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters must be a tree of arrays, but got {checks.describe(parameters)}.") from error
    check_log_prob(lambda e: function(parameters, e), space)
    captured = capture(function, parameters, embedding_of(space))
    return FunctionModel(function=captured, parameters=parameters, space=space)


def trained_parts(model: Target) -> Any:
    """A tree like the model's with True at every leaf that training changes."""

    def is_trained(node: Any) -> Any:  # what a function closed over is no parameter
        return jax.tree.map(lambda _: False, node) if isinstance(node, Captured) else eqx.is_inexact_array(node)

    spec = jax.tree.map(is_trained, model, is_leaf=lambda node: isinstance(node, Captured))
    for name in ("space", *getattr(model, "fixed", ())):
        nothing = jax.tree.map(lambda _: False, getattr(model, name))
        spec = eqx.tree_at(lambda it, name=name: getattr(it, name), spec, nothing, is_leaf=lambda leaf: leaf is None)
    return spec


def without_constants(model: Target) -> Target:
    """The model, without a gradient in parameters that only add a constant: the diagonal of J on spins, s_i^2 = 1."""
    if not (isinstance(model, Quadratic) and isinstance(model.space, Spin) and isinstance(model.coupling, Dense)):
        return model
    return eqx.tree_at(lambda it: it.coupling.matrix, model, without_diagonal_gradient(model.coupling.matrix))


def without_diagonal_gradient(J: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """J, whose diagonal training does not change. Its gradient would be rounding errors, which Adam makes steps of."""
    return jnp.where(jnp.eye(len(J), dtype=bool), jax.lax.stop_gradient(J), J)


def log_odds(frequencies: ArrayLike, space: Space) -> Float[np.ndarray, "..."]:
    """The logits of independent sites: log-odds of being 1 where there are two levels, else a logit per level."""
    p = checks.real_array("frequencies", frequencies)
    expected = space.shape if space.has_two_levels else (*space.shape, space.num_levels)
    if p.shape != expected or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"frequencies must be probabilities of shape {expected}, but got shape {p.shape}.")
    p = smoothed(p, space.num_levels)
    return np.log(p) - np.log1p(-p) if space.has_two_levels else np.log(p)


def image_space(shape: Sequence[int], num_levels: int) -> Binary | Categorical:
    """The space of images: black and white, or with several levels per pixel."""
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ValueError(f"Images have a shape (height, width), but got {checks.describe(shape)}.")
    checks.whole("num_levels", num_levels, least=2)
    return Binary(shape) if num_levels == 2 else Categorical(shape, num_levels)


def _of_shape(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    array = jnp.asarray(checks.real_array(name, value), jnp.result_type(float))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, but has shape {array.shape}.")
    return array
