"""PyMC: a step method for the discrete variables of a model, and targets from models that are discrete throughout.

    from discrax.interop.pymc import DiscraxStep, from_model

    with model:
        trace = pm.sample(step=DiscraxStep())  # NUTS for what is continuous, as ever

    target = from_model(model)  # then discrax.sample(key, target, ...)

Both read the model through PyTensor's JAX backend, with a gradient by the discrete variables: see `pymc_model`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray, UInt32

from discrax.adaptation.acceptance import AcceptanceRate, Memory, with_scale
from discrax.core import random
from discrax.core.checks import describe, whole
from discrax.core.extras import import_extra
from discrax.core.kernel import Kernel, State, rated_knob, replaced
from discrax.core.metropolis import select
from discrax.core.target import AppliedTarget, Target
from discrax.interop.pairs import recenter
from discrax.interop.pymc_model import backend, block_of, conditional
from discrax.interop.pymc_pairs import PairsOfModel
from discrax.samplers import build_kernel, get_sampler, gibbs
from discrax.sampling.checks import check_gradient

pm: Any = import_extra("pymc", "This adapter needs", "pymc")
_steps: Any = import_extra("pymc.step_methods.compound", "This adapter needs", "pymc")

__all__ = ["DiscraxStep", "from_model", "values_of"]


def from_model(model: Any = None) -> Target:
    """The posterior of a model whose free variables are all discrete, as it is now.

    Its sites are those of the variables one after another, as `values_of` takes them apart: a Binary space where every
    site has two values, else a Categorical one. The precision is JAX's own when this is called.

    Args:
        model: that of the context by default.
    """
    model = _checked(model)
    discrete = _discrete(model)
    others = [variable.name for variable in model.free_RVs if variable not in discrete]
    if others:
        raise ValueError(
            f"A target is of discrete variables alone, but {', '.join(others)} of the model are continuous; sample it "
            "with pm.sample(step=DiscraxStep()), or integrate them out."
        )
    log_prob = conditional(model, discrete)
    return Target.from_log_prob(lambda e: log_prob((), e), block_of(model, discrete).space)


def values_of(model: Any, codes: Integer[np.ndarray, "*batch n"]) -> dict[str, Integer[np.ndarray, "..."]]:
    """The values of the model's variables in states of `from_model(model)`, such as draws, by name.

    Each has the shape (*batch, *shape of the variable).
    """
    model = _checked(model)
    return block_of(model, _discrete(model)).values(codes)


class DiscraxStep(_steps.BlockedStep):
    """A step method of PyMC: all discrete variables together, by a sampler of discrax.

    A draw of PyMC is `num_steps` steps of the sampler, given the values that the others have. While PyMC tunes, the
    sampler's scale is tuned to its best acceptance rate, then it is frozen. It computes in double precision.

    Args:
        vars: the variables to sample; by default, all discrete ones of the model.
        sampler: a name that `discrax samplers` lists, or a kernel. "gibbs" suits any model; those that follow
            gradients, such as "dmala" and "pas", suit models that are nearly linear in their discrete variables.
        num_steps: of the sampler for each draw; by default, as many as there are sites. Where it is a multiple of them,
            "gibbs" takes them in turn, all of them in each draw; else at random.
        pairs: `{"included": "slope"}` where the model has the indicators `included` as a factor of the coefficients
            `slope`, of the same shape. This step has both then: by `num_steps` informed flips of an indicator with
            its coefficient integrated out, and all coefficients drawn anew half way, accepted by the model at the
            end; `sampler` has the other discrete variables.
        model: that of the context by default.
    """

    name = "discrax"
    stats_dtypes_shapes: ClassVar[dict] = {
        "tune": (bool, []),
        "accept": (np.float64, []),
        "jump": (np.float64, []),
        "pairs_accept": (np.float64, []),
    }

    def __init__(
        self,
        vars: Any = None,
        *,
        sampler: str | Kernel = "gibbs",
        num_steps: int | None = None,
        pairs: Mapping[str, str] | None = None,
        model: Any = None,
        rng: Any = None,
        **of_pymc: Any,
    ):
        self.model = _checked(model)
        self.variables = _chosen(self.model, vars)
        self.block = block_of(self.model, self.variables)
        names = set(self.block.names)
        num_steps = self.block.space.num_sites if num_steps is None else num_steps
        self.pairs = PairsOfModel(self.model, pairs, self.block) if pairs else None
        if self.pairs is not None:
            self.block, names = self.pairs.rest, names.union(self.pairs.names)
            self.variables = [self.model[name] for name in self.block.names]
        self.vars = [value for value in self.model.value_vars if value.name in names]
        self.others = [value.name for value in self.model.value_vars if value.name not in self.block.names]
        self.sampler, self.num_steps = sampler, whole("num_steps", num_steps, least=1)
        if isinstance(sampler, str):
            get_sampler(sampler)
        self.rng = pm.util.get_random_generator(rng)
        self._target = None
        self.reset_tuning()

    @staticmethod
    def competence(var: Any, has_grad: bool = False) -> Any:
        """Whether PyMC may give it a variable by itself: one that is discrete and has a finite support."""
        model = pm.modelcontext(None)
        try:
            block_of(model, [model.values_to_rvs.get(var, var)])
        except (ValueError, KeyError):
            return _steps.Competence.INCOMPATIBLE
        return _steps.Competence.COMPATIBLE

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
        """The point with other values of the variables, and what happened."""
        backend()
        stats = {"tune": self.tune, "accept": np.nan, "jump": 0.0, "pairs_accept": np.nan}
        with jax.enable_x64(True):
            if self.pairs is not None:
                values, u, accept, jump = self.pairs.move(point, self._center, self._bits(), self.num_steps)
                if self.tune:
                    self._center = recenter(self._center, np.asarray(u), self._num_tuned)
                    self._num_tuned += 1
                point = {**point, **{name: np.asarray(value) for name, value in values.items()}}
                stats |= {"pairs_accept": float(accept), "jump": float(jump)}
            if self.block.names:
                others = tuple(np.asarray(point[name]) for name in self.others)
                kernel, codes, is_tuning = self._ready(others), self.block.codes(point), np.array(self.tune)
                x, self._memory, accept, jump = _advance(
                    self._target, kernel, others, codes, self._memory, self._bits(), is_tuning, self.num_steps
                )
                point = {**point, **self.block.values(np.asarray(x))}
                stats |= {"accept": float(accept), "jump": stats["jump"] + float(jump)}
        return point, [stats]

    def _bits(self) -> UInt32[np.ndarray, "2"]:
        return self.rng.integers(2**32, size=2, dtype=np.uint32)

    def stop_tuning(self) -> None:
        """The scale is from now on the mean of its path."""
        self.tune = False
        if self._memory is not None and self._memory.steps > 0:
            self._memory = self._memory._replace(log_scale=self._memory.mean_log_scale)

    def reset_tuning(self) -> None:
        """Tuning begins anew, as it does with every chain."""
        self.tune, self._kernel, self._memory = True, None, None
        num_pairs = 0 if self.pairs is None else self.pairs.paired.sites.space.num_sites
        self._center, self._num_tuned = np.zeros(num_pairs), 0

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled, which another process does for itself."""
        return self.__dict__ | {"_target": None, "_kernel": None, "_memory": None}

    def _ready(self, others: tuple[np.ndarray, ...]) -> Kernel:
        """The kernel with room for its present scale."""
        if self._target is None:
            self._target = AppliedTarget(
                params=(), apply=conditional(self.model, self.variables), space=self.block.space
            )
        if self._kernel is None:
            target = replaced(self._target, params=tuple(map(jnp.asarray, others)))
            # A scan begins with the first site in every draw: it must come to the last one.
            is_swept = self.sampler == "gibbs" and self.num_steps % self.block.space.num_sites == 0
            kernel = build_kernel(gibbs("systematic") if is_swept else self.sampler, target)
            if not kernel.is_exact:
                raise ValueError(f"A step method samples the model's own law, but {type(kernel).__name__} another one.")
            check_gradient(target, kernel)
            self._kernel, _ = kernel.prepare(target, tuning=True)
            is_tuned = rated_knob(kernel, target) is not None
            self._memory = AcceptanceRate().init(target, kernel) if is_tuned else None
        elif self.tune and self._kernel.capacity is not None and self._memory is not None:
            now, _ = with_scale(self._target, self._kernel, self._memory.log_scale)
            self._kernel, _ = now.prepare(self._target, tuning=True)
        return self._kernel


@eqx.filter_jit
def _advance(
    target: AppliedTarget,
    kernel: Kernel,
    others: tuple[np.ndarray, ...],
    x: Integer[np.ndarray, " n"],
    memory: Memory | None,
    bits: UInt32[np.ndarray, "2"],
    is_tuning: Bool[np.ndarray, ""],
    num_steps: int,
) -> tuple[Integer[Array, " n"], Memory | None, Float[Array, ""], Float[Array, ""]]:
    """`num_steps` steps of one chain: where it is, what tuning remembers, the mean acceptance and the way it made."""
    target = replaced(target, params=others)
    key, is_on = jax.random.wrap_key_data(jnp.asarray(bits), impl="threefry2x32"), jnp.asarray(is_tuning)
    adapter = None if memory is None else AcceptanceRate().plan(target, kernel, num_steps)

    def one(carry: tuple[State, Memory | None], key: PRNGKeyArray) -> tuple[tuple[State, Memory | None], Any]:
        state, memory = carry
        scaled = kernel if memory is None else with_scale(target, kernel, memory.log_scale)[0]
        state, info = scaled.step(key, target, state)
        if adapter is not None and memory is not None:
            _, new = adapter.update(target, scaled, memory, state, info)
            memory = select(is_on, new, memory)
        return (state, memory), (info.accept_prob, info.jump)

    start = kernel.init(target, jnp.asarray(x)), memory
    (state, memory), (accept, jump) = jax.lax.scan(one, start, random.split(key, num_steps))
    return state.x, memory, jnp.mean(accept), jnp.sum(jump)


def _checked(model: Any) -> Any:
    if model is not None and not isinstance(model, pm.Model):
        raise TypeError(f"model is a pymc.Model, but got {describe(model)}.")
    return pm.modelcontext(model)


def _discrete(model: Any) -> list[Any]:
    values = model.discrete_value_vars
    discrete = [variable for variable in model.free_RVs if model.rvs_to_values[variable] in values]
    if not discrete:
        raise ValueError("The model has no discrete variable that is not observed, so there is nothing to sample.")
    return discrete


def _chosen(model: Any, variables: Any) -> list[Any]:
    """The random variables that a user names, by themselves or by their value variables."""
    discrete = _discrete(model)
    if variables is None:
        return discrete
    chosen = [model.values_to_rvs.get(each, each) for each in np.atleast_1d(np.array(variables, object))]
    for variable in chosen:
        if variable not in discrete:
            raise ValueError(
                f"DiscraxStep samples discrete variables of the model that are not observed, but got {variable}."
            )
    return chosen
