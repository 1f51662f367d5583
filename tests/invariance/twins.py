"""Kernels with one deliberate flaw each, of the kind found in published code; without the flaw they are exact.

The flaw is a leaf, so that a kernel with it shares its program with the kernel without.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Integer, Key

import discrax as dx


def _info(log_accept: Float[Array, ""], is_accepted: Bool[Array, ""]) -> dx.Info:
    zero = jnp.float32(0)
    return dx.Info(jnp.exp(jnp.minimum(log_accept, 0)), is_accepted, zero, zero + 1, zero + 1, jnp.asarray(False))


def _value(target: dx.Target, x: Integer[Array, " n"]) -> Float[Array, ""]:
    return target.log_prob(target.space.embed(x))


FLAWS = ("asymmetric", "mixed chains", "weights of the wrong state", "no reverse path", "no proposal ratio")


def _number(flaw: str | None) -> Int[Array, ""]:
    return jnp.asarray(-1 if flaw is None else FLAWS.index(flaw))


class Textbook(dx.Kernel):
    """Metropolis-Hastings without caches: subclasses propose. `flaw` is what is wrong with them, None if nothing is."""

    flaw: Int[Array, ""] = eqx.field(converter=_number, default=None, kw_only=True)

    def has(self, flaw: str) -> Bool[Array, ""]:
        return self.flaw == FLAWS.index(flaw)

    def propose(
        self, key: Key[Array, ""], target: dx.Target, x: Integer[Array, " n"]
    ) -> tuple[Integer[Array, " n"], Float[Array, ""]]:
        """A proposal y and log q(x | y) - log q(y | x)."""
        raise NotImplementedError

    def init(self, target: dx.Target, x: Integer[Array, " n"]) -> dx.State:
        return dx.State(x, _value(target, x), ())

    def step(self, key: Key[Array, ""], target: dx.Target, state: dx.State) -> tuple[dx.State, dx.Info]:
        for_proposal, for_decision = jax.random.split(key)
        y, log_proposal_ratio = self.propose(for_proposal, target, state.x)
        value = _value(target, y)
        log_accept = value - state.log_prob + log_proposal_ratio
        log_accept = jnp.where(self.has("mixed chains"), of_next_chain(log_accept), log_accept)
        is_accepted = jnp.log(jax.random.uniform(for_decision)) < log_accept
        after = dx.State(jnp.where(is_accepted, y, state.x), jnp.where(is_accepted, value, state.log_prob), ())
        return after, _info(log_accept, is_accepted)


@custom_vmap
def of_next_chain(value: Float[Array, ""]) -> Float[Array, ""]:
    """A mis-broadcast index: under vmap every chain sees the value of its neighbour."""
    return value


@of_next_chain.def_vmap
def _(axis_size, in_batched, values):
    return jnp.roll(values, 1), True


class Walk(Textbook):
    """One site moves one level up or down. At the ends of the grid it stays; if it is "asymmetric", it turns round."""

    def propose(self, key, target, x):
        for_site, for_direction = jax.random.split(key)
        site = jax.random.randint(for_site, (), 0, x.size)
        moved = x[site] + 2 * jax.random.bernoulli(for_direction).astype(x.dtype) - 1
        top = target.space.num_levels - 1
        turned_round = jnp.where(moved < 0, 1, jnp.where(moved > top, top - 1, moved))
        moved = jnp.where(self.has("asymmetric"), turned_round, jnp.clip(moved, 0, top))
        return x.at[site].set(moved.astype(x.dtype)), jnp.float32(0)


def _log_weights(target: dx.Target, x: Integer[Array, " n"]) -> Float[Array, " n"]:
    """log sqrt of the first-order ratios of all flips."""
    return target.space.ratios_from_gradient(x, jax.grad(target.log_prob)(target.space.embed(x))) / 2


class Path(Textbook):
    """A path of fixed length without replacement, on two levels: GWG where the length is 1, PAS where it is more."""

    length: int = eqx.field(static=True)

    def propose(self, key, target, x):
        here = _log_weights(target, x)
        path = jax.lax.top_k(here + jax.random.gumbel(key, here.shape), self.length)[1]
        y = x.at[path].set(1 - x[path])
        there = jnp.where(self.has("weights of the wrong state"), here, _log_weights(target, y))
        forth, back = self._log_probability(here, path), self._log_probability(there, path[::-1])
        return y, jnp.where(self.has("no reverse path"), 0, back) - forth

    def _log_probability(self, log_weights, path):
        total = 0.0
        for site in path:
            total += log_weights[site] - jax.nn.logsumexp(log_weights)
            log_weights = log_weights.at[site].set(-jnp.inf)
        return total


class Langevin(Textbook):
    """DMALA on two levels with the penalty 1/2."""

    def propose(self, key, target, x):
        here = _log_weights(target, x) - 0.5
        flips = jax.random.bernoulli(key, jax.nn.sigmoid(here))
        y = jnp.where(flips, 1 - x, x)
        there = _log_weights(target, y) - 0.5
        forth, back = (jnp.sum(flips * logits - jax.nn.softplus(logits)) for logits in (here, there))
        return y, jnp.where(self.has("no proposal ratio"), 0, back - forth)


class Wrapper(dx.Kernel):
    """A kernel of the library, used wrongly."""

    kernel: eqx.AbstractVar[dx.Kernel]

    def init(self, target: dx.Target, x: Integer[Array, "*shape"]) -> dx.State:
        return self.kernel.init(target, x)


class WrongTemperature(Wrapper):
    """Forgets the temperature of its target."""

    kernel: dx.Kernel

    def step(self, key, target, state):
        return self.kernel.step(key, target.target, state)


class StaleCache(Wrapper):
    """Moves, but leaves the cached log-ratios where they were."""

    kernel: dx.Kernel

    def step(self, key, target, state):
        after, info = self.kernel.step(key, target, state)
        return after._replace(cache=state.cache), info


class LengthOfState(Wrapper):
    """Adapts while it draws: the length of the path depends on the state it starts from."""

    kernel: dx.Kernel

    def step(self, key, target, state):
        length = jnp.where(state.x[0] == 0, 1.0, 3.0).astype(jnp.float32)
        kernel = eqx.tree_at(lambda kernel: kernel.path_length, self.kernel, length)
        return kernel.step(key, target, state)
