"""NumPyro models with many discrete sites: a kernel for `numpyro.infer.MCMC`, and targets of discrete models.

    from discrax.interop.numpyro import DiscraxGibbs

    kernel = DiscraxGibbs(NUTS(model), sampler="pas")
    mcmc = MCMC(kernel, num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized")

Discrete sites are found from the trace of the model, and all elements of all of them are the sites of one space: plates
and vectors move whole. `pairs={"included": "slope"}` moves indicators together with the coefficients that they switch
on. Sites marked with `infer={"enumerate": "parallel"}` are left to NumPyro.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Integer

from discrax.adaptation import AcceptanceRate
from discrax.adaptation.acceptance import with_scale
from discrax.core import random
from discrax.core.checks import describe, whole
from discrax.core.closures import capture
from discrax.core.extras import import_extra
from discrax.core.kernel import Info, Kernel, State, rated_knob, reevaluate
from discrax.core.target import FunctionTarget, Target, embedding_of
from discrax.interop import pairs as in_pairs
from discrax.interop.numpyro_sites import OneByOne, Sites, find_sites, is_first_order_far, latent_trace
from discrax.interop.paired import Paired, find_pairs
from discrax.samplers import build_kernel

_RATIOS = ("auto", "gradient", "exact")

__all__ = ["DiscraxGibbs", "DiscraxGibbsState", "from_model", "values_of"]

_WHAT = "discrax.interop.numpyro needs"
HMC = import_extra("numpyro.infer", _WHAT, "numpyro").HMC
MCMCKernel = import_extra("numpyro.infer.mcmc", _WHAT, "numpyro").MCMCKernel
gibbs = import_extra("numpyro.infer.gibbs", _WHAT, "numpyro")
is_prng_key = import_extra("numpyro.util", _WHAT, "numpyro").is_prng_key
log_density = import_extra("numpyro.infer.util", _WHAT, "numpyro").log_density


class DiscraxGibbsState(NamedTuple):
    """Where a chain is: what `extra_fields` of `MCMC.run` may name."""

    i: Array  # the number of draws made
    z: dict[str, Array]  # the values of all sites, continuous ones unconstrained
    hmc_state: Any  # of the inner kernel
    rng_key: Array
    law: Any  # a PairLaw of the pairs, given all other sites
    center: Any  # the products of the pairs about which it is expanded, as tuned
    chain: Any  # the State of the discrete sites that are not in pairs
    arrays: Any  # of the sampler: its scale, as tuned
    memory: Any  # of the adapter
    accept_prob: Array  # of the discrete steps, on average
    pairs_accept_prob: Array  # of the moves of pairs
    jump: Array  # the number of elements that they changed, those that came back counted each time

    @property
    def diverging(self) -> Array:
        """Whether the inner kernel's step diverged."""
        return self.hmc_state.diverging


class DiscraxGibbs(MCMCKernel):
    """Steps of a sampler of discrax for all discrete sites at once, then one of an inner kernel for the others.

    In warm-up the scale of the sampler is tuned to its paper's acceptance rate, by the mean of all chains where they
    are vectorised; then it is frozen.

    Args:
        inner: `HMC(model)` or `NUTS(model)` of NumPyro.
        sampler: a name (`discrax samplers` lists them) or a kernel, such as `dx.samplers.dmala()`.
        num_steps: steps of the sampler for one of the inner kernel. Those that change one element each need more.
        ratios: where informed samplers have log-ratios from. "gradient": from one gradient of the model's multilinear
            form. "exact": from the model at every change of one element. "auto": from the gradient, unless the model
            has no such form, or most of what it says is far off where the first chain starts.
        pairs: `{"included": "slope"}` where the model has the indicators `included` as a factor of the coefficients
            `slope`, of the same shape. They are then moved together, an indicator with its coefficient integrated
            out, by `num_steps` informed flips and one acceptance by the model; `sampler` has the other discrete sites.
        inner_every: after warm-up the inner kernel moves in every so-many-th draw, and rests in the others.
    """

    sample_field = "z"
    default_fields = ("z", "diverging")

    def __init__(
        self,
        inner: Any,
        sampler: str | Kernel = "pas",
        *,
        num_steps: int = 10,
        ratios: str = "auto",
        pairs: Mapping[str, str] | None = None,
        inner_every: int = 1,
    ):
        if not isinstance(inner, HMC) or inner.model is None:
            raise TypeError(
                "inner must be a kernel of NumPyro with a model, such as NUTS(model), but got " + describe(inner) + "."
            )
        self.inner_kernel = inner.wrap_model(gibbs.conditioned)
        self.sampler = sampler
        if ratios not in _RATIOS:
            raise ValueError(f"ratios must be {', '.join(map(repr, _RATIOS))}, but got {describe(ratios)}.")
        if not isinstance(pairs, Mapping | None):
            raise TypeError(f"pairs must be {{discrete site: continuous site}}, but got {describe(pairs)}.")
        self.ratios, self.pairs = ratios, dict(pairs or {})
        self.num_steps = whole("num_steps", num_steps, least=1)
        self.inner_every = whole("inner_every", inner_every, least=1)
        self._sites: Sites | None = None
        self._paired: Paired[Sites] | None = None

    @property
    def model(self) -> Callable:
        """The model, conditioned on discrete values where it is given some."""
        return self.inner_kernel.model

    def init(
        self, rng_key: Array, num_warmup: int, init_params: Any, model_args: tuple, model_kwargs: dict | None
    ) -> DiscraxGibbsState:
        """The first state, at discrete values from their priors unless `init_params` has them."""
        kwargs = {} if model_kwargs is None else model_kwargs
        sites, _ = find_sites(self.model, model_args, kwargs)
        if not sites.names:
            raise ValueError(
                "DiscraxGibbs needs a model with discrete sites, but all of its latent sites are continuous or "
                "enumerated by NumPyro; give MCMC the inner kernel alone."
            )
        self._all_sites, self._num_warmup = sites, num_warmup
        begin = partial(self._begin, model_args, kwargs)
        if is_prng_key(rng_key):
            state = first = begin(rng_key, init_params)
        else:
            state = jax.vmap(begin)(rng_key, init_params)
            first = jax.tree.map(lambda leaf: leaf[0], state)
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(first)):
            return state  # chains that are drawn inside a transformation of JAX's cannot be looked at
        z, values = first.hmc_state.z, {name: first.z[name] for name in sites.names}
        if self._paired is not None:
            self._paired.check(self._density(model_args, kwargs, values), z)
        if self._sites is not None and self.ratios == "auto" and self._has_form:
            far = jax.jit(lambda z, v, x: is_first_order_far(self._target(model_args, self._given(kwargs, v), z), x))
            self._has_form = not bool(far(z, values, first.chain.x))
        return state

    def _begin(self, args: tuple, kwargs: dict, rng_key: Array, init_params: Any) -> DiscraxGibbsState:
        sites = self._all_sites
        rng_key, for_values, for_inner = jax.random.split(rng_key, 3)
        given = dict(init_params or {})
        drawn = sites.codes(
            {name: s["value"] for name, s in latent_trace(for_values, self.model, args, kwargs).items()}
        )
        values = sites.values(drawn) | {name: given.pop(name) for name in sites.names if name in given}
        hmc_state = self.inner_kernel.init(
            for_inner, self._num_warmup, given or None, args, gibbs.with_conditioning(kwargs, values)
        )
        self._paired, rest = find_pairs(self.pairs, sites, hmc_state.z)
        self._sites = rest if rest.names else None
        chain, arrays, memory = self._first_chain(args, self._given(kwargs, values), values, hmc_state.z)
        center = () if self._paired is None else jnp.zeros_like(self._paired.vectors(values, hmc_state.z)[1])
        law = jax.jit(partial(self._law, args, kwargs))(values, hmc_state.z, center)
        zero, z = jnp.zeros((), jnp.float32), {**values, **hmc_state.z}
        count = jnp.zeros((), jnp.int32)
        return DiscraxGibbsState(count, z, hmc_state, rng_key, law, center, chain, arrays, memory, zero, zero, zero)

    def _given(self, kwargs: dict, values: Mapping[str, Array]) -> dict:
        """The model's keywords, for what the sampler sees of it: it is conditioned on the pairs."""
        mine = () if self._paired is None else self._paired.sites.names
        return gibbs.with_conditioning(kwargs, {name: values[name] for name in mine})

    def _first_chain(self, args: tuple, kwargs: dict, values: Any, z: Any) -> tuple[Any, Any, Any]:
        """The state, the arrays and the memory of the sampler of the sites that are not in pairs."""
        sites = self._sites
        if sites is None:
            return (), (), ()
        self._has_form = self._finds_form(args, kwargs, z)
        target = self._target(args, kwargs, z)
        kernel = self._prepared(target)
        adapter = self._adapter(target, kernel)
        memory = () if adapter is None else adapter.init(target, kernel)
        chain = jax.jit(lambda kwargs, z, x: kernel.init(self._target(args, kwargs, z), x))(
            kwargs, z, sites.codes(values)
        )
        arrays, self._static = eqx.partition(kernel, eqx.is_array)
        return chain, arrays, memory

    def _density(self, args: tuple, kwargs: dict, values: Mapping[str, Array]) -> Callable:
        """The log-density by the values of the pairs and by continuous ones, given other discrete values."""
        return lambda mine, z: -self._potential(args, kwargs, {**values, **mine}, z)

    def _law(self, args: tuple, kwargs: dict, values: Mapping[str, Array], z: Any, center: Any) -> Any:
        paired = self._paired
        if paired is None:
            return ()
        log_density = self._density(args, kwargs, values)
        odds = paired.sites.odds(lambda mine: log_density(mine, paired.without(z)))
        return in_pairs.expand(paired.density(log_density, z), odds, center)

    def _finds_form(self, args: tuple, kwargs: dict, z: Any) -> bool:
        assert self._sites is not None
        if self.ratios == "exact" or self._sites.has_form(lambda v: -self._potential(args, kwargs, v, z)):
            return self.ratios != "exact"
        if self.ratios == "gradient":
            raise ValueError(
                "ratios='gradient' needs a model with a multilinear form, but this one does more with its discrete "
                "sites than to index, compare and add; use ratios='auto' or 'exact'."
            )
        return False

    def _prepared(self, target: Target) -> Kernel:
        kernel = build_kernel(self.sampler, target)
        if not kernel.is_exact:
            raise ValueError(
                f"{type(kernel).__name__} samples another law than the model's, and the inner kernel would follow it; "
                "use an exact sampler, such as 'dmala'."
            )
        if not kernel.is_prepared:
            raise ValueError(
                f"{type(kernel).__name__} learns the curvature of one target, but that of the discrete sites changes "
                "with the others; use 'pas', 'dmala' or 'dlmc'."
            )
        return kernel.prepare(target, tuning=True)[0]

    def _adapter(self, target: Target, kernel: Kernel) -> AcceptanceRate | None:
        if rated_knob(kernel, target) is None:
            return None
        return AcceptanceRate().plan(target, kernel, self._num_warmup * self.num_steps)

    def _potential(self, args: tuple, kwargs: dict, values: Mapping[str, Array], z: Any) -> Array:
        return self.inner_kernel.get_potential_fn(args, gibbs.with_conditioning(kwargs, values))(z)

    def _target(self, args: tuple, kwargs: dict, z: Any) -> Target:
        """The law of the discrete sites, given the others."""
        assert self._sites is not None
        return self._sites.target(lambda values: -self._potential(args, kwargs, values, z), self._has_form)

    def sample(self, state: DiscraxGibbsState, model_args: tuple, model_kwargs: dict | None) -> DiscraxGibbsState:
        """The next state of a chain, or of all of them where they are vectorised."""
        kwargs = {} if model_kwargs is None else model_kwargs
        is_one, of_all = is_prng_key(state.rng_key), partial(jax.lax.pmean, axis_name="chains")

        def step(is_moving: bool) -> Callable[[DiscraxGibbsState], DiscraxGibbsState]:
            if is_one:
                return partial(self._step, model_args, kwargs, lambda value: value, is_moving)
            return jax.vmap(partial(self._step, model_args, kwargs, of_all, is_moving), axis_name="chains")

        if self.inner_every == 1:
            return step(True)(state)
        i = state.i if is_one else state.i[0]
        is_moving = (i < self._num_warmup) | ((i - self._num_warmup) % self.inner_every == 0)
        return jax.lax.cond(is_moving, step(True), step(False), state)

    def _step(
        self, args: tuple, kwargs: dict, of_all: Callable[[Array], Array], is_moving: bool, state: DiscraxGibbsState
    ) -> DiscraxGibbsState:
        rng_key, for_steps, for_pairs = jax.random.split(state.rng_key, 3)
        values = {name: state.z[name] for name in self._all_sites.names}
        if self._paired is not None:
            f = self._paired.density(self._density(args, kwargs, values), state.hmc_state.z)
            g, s = self._paired.vectors(values, state.hmc_state.z)
            g, s, decision = in_pairs.move(random.as_threefry(for_pairs), f, state.law, g, s, self.num_steps)
            indicators, coefficients = self._paired.named(g, s)
            values |= indicators
            inner = state.hmc_state._replace(z={**state.hmc_state.z, **coefficients})
            center = in_pairs.recenter(state.center, g * s, state.i)
            center = jnp.where(state.i < self._num_warmup, center, state.center)
            state = state._replace(hmc_state=inner, center=center, pairs_accept_prob=decision.accept_prob)
        if self._sites is not None:
            target = self._target(args, self._given(kwargs, values), state.hmc_state.z)
            chain, arrays, memory, info = self._move(target, random.as_threefry(for_steps), of_all, state)
            values |= self._sites.values(chain.x)
            state = state._replace(chain=chain, arrays=arrays, memory=memory, accept_prob=jnp.mean(info.accept_prob))
            state = state._replace(jump=jnp.sum(info.jump))
        given = gibbs.with_conditioning(kwargs, values)
        hmc_state = self.inner_kernel.refresh(state.hmc_state, args, given)
        if is_moving:
            hmc_state = self.inner_kernel.sample(hmc_state, args, given)
        # The law of the pairs changes with the other sites alone.
        is_same = not is_moving and self._sites is None
        law = state.law if is_same else self._law(args, kwargs, values, hmc_state.z, state.center)
        z = {**values, **hmc_state.z}
        return state._replace(i=state.i + 1, z=z, hmc_state=hmc_state, rng_key=rng_key, law=law)

    def _move(
        self, target: Target, key: Array, of_all: Callable[[Array], Array], state: DiscraxGibbsState
    ) -> tuple[State, Any, Any, Info]:
        """Steps of the discrete sites; in warm-up they tune the kernel, and the last one of it freezes it."""
        kernel: Kernel = eqx.combine(state.arrays, self._static)
        adapter, is_tuning = self._adapter(target, kernel), state.hmc_state.i < self._num_warmup

        def one(carry: tuple[State, Any, Any], t: Array) -> tuple[tuple[State, Any, Any], Info]:
            chain, arrays, memory = carry
            kernel: Kernel = eqx.combine(arrays, self._static)
            chain, info = kernel.step(random.fold_in(key, t), target, chain)
            if adapter is not None:
                shared = info._replace(accept_prob=of_all(info.accept_prob))
                tuned, remembered = adapter.update(target, kernel, memory, chain, shared)
                new = (eqx.filter(tuned, eqx.is_array), remembered)
                arrays, memory = jax.tree.map(partial(jnp.where, is_tuning), new, (arrays, memory))
            return (chain, arrays, memory), info

        start = (reevaluate(kernel, target, state.chain), state.arrays, state.memory)
        (chain, arrays, memory), info = jax.lax.scan(one, start, jnp.arange(self.num_steps))
        if adapter is not None:
            frozen, _ = with_scale(target, eqx.combine(arrays, self._static), memory.mean_log_scale)
            is_last = state.hmc_state.i == self._num_warmup - 1
            arrays = jax.tree.map(partial(jnp.where, is_last), eqx.filter(frozen, eqx.is_array), arrays)
        return chain, arrays, memory, info

    def postprocess_fn(self, model_args: tuple, model_kwargs: dict | None) -> Callable[[dict], dict]:
        """Makes of a draw the values of all sites, constrained, and of deterministic ones."""
        names = self._all_sites.names

        def values(z: dict[str, Array]) -> dict[str, Array]:
            discrete = {name: z[name] for name in names}
            others = {name: value for name, value in z.items() if name not in names}
            given = gibbs.with_conditioning(model_kwargs, discrete)
            return {**discrete, **self.inner_kernel.postprocess_fn(model_args, given)(others)}

        return values

    def get_diagnostics_str(self, state: DiscraxGibbsState) -> str:
        """What the progress bar says of a chain."""
        inner = self.inner_kernel.get_diagnostics_str(state.hmc_state)
        pairs = f"; pairs acc. prob={float(state.pairs_accept_prob):.2f}" if self._paired is not None else ""
        return f"{inner}; discrete acc. prob={float(state.accept_prob):.2f}{pairs}"


class ModelTarget(FunctionTarget):
    """What `from_model` makes of a model with a multilinear form."""

    sites: Sites = eqx.field(static=True)


class IndexedModelTarget(OneByOne):
    """What `from_model` makes of any other model."""

    sites: Sites = eqx.field(static=True)


def from_model(model: Callable, *args: Any, **kwargs: Any) -> ModelTarget | IndexedModelTarget:
    """The posterior of a NumPyro model all of whose latent sites are discrete, as a target.

    Its space has one site for every element of every site of the model, by name and in row-major order. `values_of`
    makes values of the model of its codes.
    """
    sites, others = find_sites(model, args, kwargs)
    if others:
        raise ValueError(
            "from_model takes models whose latent sites are discrete and not enumerated, but "
            f"{', '.join(map(repr, others))} are not; use DiscraxGibbs(NUTS(model)), or fix them by "
            "numpyro.handlers.condition."
        )
    if not sites.names:
        raise ValueError(
            "from_model takes models with discrete latent sites, but this one has none that is not enumerated."
        )
    density = lambda values: log_density(model, args, kwargs, values)[0]  # noqa: E731
    has_form = sites.has_form(density)
    target, kind = sites.target(density, has_form), ModelTarget if has_form else IndexedModelTarget
    return kind(function=capture(target.log_prob, embedding_of(target.space)), space=target.space, sites=sites)


def values_of(
    target: ModelTarget | IndexedModelTarget, x: Integer[Array, "*batch n"]
) -> dict[str, Integer[Array, "..."]]:
    """The values of the sites of a model, each of shape (*batch, *shape of the site), at codes of its target."""
    if not isinstance(target, ModelTarget | IndexedModelTarget):
        raise TypeError(f"values_of takes a target that from_model made, but got {describe(target)}.")
    return target.sites.values(x)
