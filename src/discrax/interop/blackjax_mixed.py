"""Mixed targets by turns: a few steps of ours on the sites given the values, then one of BlackJAX's on the values.

Each half leaves log pi(x, z) invariant, and so does their product. What a kernel of ours keeps between steps holds for
the values at which it was found, so it is found anew after they have moved.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.checks import describe, whole, yes_or_no
from discrax.core.driver import Adapter, Ensemble
from discrax.core.interrupts import Interrupts, listening
from discrax.core.kernel import Info, Kernel, Knob, State, reevaluate
from discrax.core.observers import Draws, Observer, Stats
from discrax.core.programs import reads_user_code
from discrax.core.target import Target
from discrax.interop.blackjax_block import Block, from_blackjax
from discrax.interop.blackjax_tuning import Joint
from discrax.interop.mixed import Given, Mixed
from discrax.samplers import build_kernel
from discrax.sampling.auto import default_adapter
from discrax.sampling.checks import chain_keys, check_gradient, check_start, initial_states, possible_starts
from discrax.sampling.fingerprint import fingerprint
from discrax.sampling.folder import RunFolder
from discrax.sampling.plan import Plan
from discrax.sampling.result import Result
from discrax.sampling.run import Run
from discrax.sampling.sample import check_adaptation, draw

_WIDEST_START = 2.0  # values start uniformly between minus this and this


class Values(NamedTuple):
    """The continuous half of a chain, and how its last step went."""

    z: Any
    of_sites: Any  # the cache of the kernel of the sites
    accept_prob: Float[Array, ""]
    is_divergent: Bool[Array, ""]
    evals: Float[Array, ""]


class Alternate(Kernel):
    """`discrete_steps` of a kernel on the sites given the values, then one step of a block on the values."""

    discrete: Kernel
    block: Block
    discrete_steps: int = eqx.field(static=True)

    @property
    def capacity(self) -> int | None:
        """That of the kernel of the sites."""
        return self.discrete.capacity

    def with_capacity(self, capacity: int) -> "Alternate":
        """With another one of the kernel of the sites."""
        return Alternate(self.discrete.with_capacity(capacity), self.block, self.discrete_steps)

    @property
    def is_exact(self) -> bool:
        """Whether the kernel of the sites is."""
        return self.discrete.is_exact

    @property
    def keeps_totals(self) -> bool:
        """Whether the kernel of the sites does."""
        return self.discrete.keeps_totals

    def knobs(self, target: Target) -> dict[str, Knob]:
        """Those of the kernel of the sites."""
        return self.discrete.knobs(_mixed(target).given(_mixed(target).zeros))

    def prepare(self, target: Target, *, tuning: bool, draws: Any = None) -> tuple["Alternate", str | None]:
        """With its kernel of the sites prepared."""
        at_zero = _mixed(target).given(_mixed(target).zeros)
        discrete, note = self.discrete.prepare(at_zero, tuning=tuning, draws=draws)
        return Alternate(discrete, self.block, self.discrete_steps), note

    def init(self, target: Target, x: Integer[Array, "*shape"]) -> State:
        """With all values 0."""
        return self.start(_mixed(target), x, _mixed(target).zeros)

    def start(self, target: Mixed, x: Integer[Array, "*shape"], z: Any) -> State:
        """The state of a chain that starts at the codes x and the values z."""
        x, value, cache = self.discrete.init(target.given(z), x)
        zero = jnp.zeros((), jnp.float32)
        return State(x, value, Values(z, cache, zero, jnp.zeros((), bool), zero))

    def step(self, key: PRNGKeyArray, target: Target, state: State) -> tuple[State, Info]:
        target, cache = _mixed(target), state.cache
        for_sites, for_values = random.split(key, 2)
        given = target.given(cache.z)
        sites = self.arrive(given, State(state.x, state.log_prob, cache.of_sites))

        def one_step(sites: State, key: PRNGKeyArray) -> tuple[State, Info]:
            return self.discrete.step(key, given, sites)

        sites, info = jax.lax.scan(one_step, sites, random.split(for_sites, self.discrete_steps))
        moved = self.block.step(for_values, cache.z, target.density(sites.x))
        values = Values(moved.z, sites.cache, moved.accept_prob, moved.is_divergent, moved.evals)
        return State(sites.x, moved.log_prob.astype(state.log_prob.dtype), values), _of_steps(info, moved.evals)

    def arrive(self, given: Given, sites: State) -> State:
        """The state of the sites after the values have moved."""
        return reevaluate(self.discrete, given, sites)


def _mixed(target: Target) -> Mixed:
    if not isinstance(target, Mixed):
        raise TypeError(f"target must be a discrax.Mixed, but got {describe(target)}.")
    return target


def _of_steps(info: Info, evals: Float[Array, ""]) -> Info:
    """One Info of several steps on the sites and one on the values: costs add up, the rest is the sites', averaged."""
    means = Info(*(jnp.mean(stat, dtype=jnp.float32) for stat in info))
    is_any = {"is_accepted": jnp.any(info.is_accepted), "is_invalid": jnp.any(info.is_invalid)}
    return means._replace(evals=jnp.sum(info.evals) + evals, **is_any)


class BothDraws(Draws):
    """The codes and the values of every draw, and how the block moved."""

    def look(self, target: Target, memory: None, states: State, info: Info) -> tuple[None, Any]:
        cache = states.cache
        stats = {"acceptance_rate": cache.accept_prob, "diverging": cache.is_divergent, "n_steps": cache.evals - 1}
        return None, {"x": states.x, "z": cache.z, "stats": stats}


class MixedPlan(Plan):
    """A plan whose draws are of both halves; its `keep` is a function of what `BothDraws` hands over of one."""

    def draw_of(self, target: Target) -> Any:
        """The codes, the values and the statistics of the values' half, of a target at values z."""
        assert isinstance(target, Given)
        z = jax.tree.map(lambda zero: jax.ShapeDtypeStruct(zero.shape, zero.dtype), target.z)
        number = jax.ShapeDtypeStruct((), jnp.float32)
        stats = {"acceptance_rate": number, "diverging": jax.ShapeDtypeStruct((), bool), "n_steps": number}
        return {"x": super().draw_of(target), "z": z, "stats": stats}

    @property
    def keep_of_draw(self) -> Callable[[Any], Any] | bool:
        """The function of a draw, or True where all of it is kept."""
        return True if self.keep is _everything else super().keep_of_draw

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who looks at the draws."""
        return Stats(), BothDraws()


# The verb: its parameters are what a user may say of a run, and all but two have defaults.
@reads_user_code()
@listening()
def sample_mixed(
    key: PRNGKeyArray,
    target: Mixed,
    discrete: str | Kernel = "pas",
    continuous: str | Block = "nuts",
    *,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_samples: int = 1000,
    thinning: int = 1,
    discrete_steps: int = 1,
    init: Array | np.ndarray | None = None,
    init_values: Any = None,
    adaptation: Adapter | Sequence[Adapter] | str | None = "auto",
    keep: str | Callable[[Array, Any], Any] = "draws",
    folder: str | Path | None = None,
    progress: bool | None = None,
) -> Result:
    """Draws of a mixed target: `discrete_steps` steps on the sites, then one on the values, turn by turn.

    - `discrete`: a registry name or a kernel. It sees log pi(x, z) at the present z as a function of x, and its
      gradient, so samplers that need more of a target are refused.
    - `continuous`: "nuts", or what `from_blackjax` makes.
    - `init`: codes of shape (*sites) or (chain, *sites); uniformly random by default.
    - `init_values`: z, or z with a leading axis of chains in every array; uniform in (-2, 2) by default.
    - `adaptation`: of the kernel of the sites, as in `discrax.sample`, one rule. The step size and the diagonal mass of
      BlackJAX's half are tuned in the same warm-up, from all chains, unless `from_blackjax` was given them.
    - `keep`: "draws", or a function of the codes and of z, whose values are `result.kept`; then there are no draws.
    - `folder`: draws go there chunk by chunk, and the same call goes on from where it ended, as in `discrax.sample`.
      `discrax.load` has codes, values and statistics of the values' half under "x", "z" and "stats" in `kept`.

    All chains are on one device, and none of the draws of warm-up are kept. Of the result, `draws` are the codes,
    (chain, draw, *sites), and `kept` the values by name ("z" where they have none), (chain, draw, *shape); `to_arviz`
    has both in its posterior. `stats` has besides "acceptance_rate", "diverging" and "n_steps" of the values' half.
    `result.states.x` and `.cache.z` are where it ended.
    """
    target = _mixed(target)
    at_zero = target.given(target.zeros)
    plan = MixedPlan(num_warmup, num_samples, thinning, _kept_of(keep), progress=progress, in_memory=folder is None)
    plan.check(at_zero, num_chains)
    whole("discrete_steps", discrete_steps, least=1, most=10**6)
    yes_or_no("progress", progress is not None and progress)
    kernel = alternate(target, discrete, continuous, discrete_steps)
    kernel, note = kernel.prepare(target, tuning=True)
    rules = check_adaptation(adaptation)
    if len(rules) > 1:
        raise ValueError(f"adaptation of a mixed target must be one rule, but got {len(rules)}.")
    ours = default_adapter(at_zero, kernel.discrete) if adaptation == "auto" else (rules or (None,))[0]
    with Interrupts() as interrupts, ExitStack() as opened:
        run = _begin(key, target, kernel, num_chains, init, init_values)
        run = run if note is None else run.with_reports([note])
        store = None
        if folder is not None:
            parts: dict[str, Any] = {"kernel": kernel.discrete, "block": kernel.block.words, "adaptation": ours}
            parts |= {"discrete_steps": discrete_steps, "init_values": run.ensemble.states.cache.z}
            words = fingerprint(key, at_zero, init, plan, num_chains, parts)
            store = opened.enter_context(RunFolder(folder, at_zero, plan, words))
        has_rule = ours is not None or kernel.block.tuned
        (result,) = draw(run, [Joint(ours) if has_rule else None], plan, interrupts, store)
    both: dict[str, Any] = result.kept or {"x": None, "z": None, "stats": {}}  # none where warm-up was interrupted
    kept = both["kept"] if "kept" in both else None if both["z"] is None else target.named(both["z"])
    return replace(result, draws=both.get("x"), kept=kept, stats=result.stats | both["stats"], target=target)


def _everything(both: Any) -> Any:
    return both


def _kept_of(keep: Any) -> Callable[[Any], dict[str, Any]]:
    """What is kept of what `BothDraws` hands over, by what a user wants kept."""
    if isinstance(keep, str) and keep == "draws":
        return _everything
    if not callable(keep):
        raise ValueError(f"keep is 'draws' or a function of the codes and of z, but got {describe(keep)}.")
    return lambda both: {"kept": keep(both["x"], both["z"]), "stats": both["stats"]}


def alternate(target: Mixed, discrete: str | Kernel, continuous: str | Block, discrete_steps: int) -> Alternate:
    """The kernel of both halves, with first guesses of what warm-up tunes; a sentence if one does not fit."""
    at_zero = target.given(target.zeros)
    kernel = build_kernel(discrete, at_zero)
    check_gradient(at_zero, kernel)
    if not kernel.prepare(at_zero, tuning=True)[0].is_prepared:
        raise ValueError(
            f"{type(kernel).__name__} learns the curvature of a target from its draws, which a mixed target changes "
            "with its values; pass it the matrix or use another sampler, such as 'pas'."
        )
    block = from_blackjax(continuous) if isinstance(continuous, str) else continuous
    if not isinstance(block, Block):
        raise TypeError(f"continuous must be 'nuts' or what from_blackjax makes, but got {describe(continuous)}.")
    num_values = sum(leaf.size for leaf in jax.tree.leaves(target.zeros))
    return Alternate(kernel, block.sized(num_values), discrete_steps)


@eqx.filter_jit
def _first_states(kernel: Alternate, target: Mixed, x: Integer[Array, "chains *shape"], z: Any) -> State:
    return jax.vmap(lambda x, z: kernel.start(target, x, z))(x, z)


def _begin(key: PRNGKeyArray, target: Mixed, kernel: Alternate, num_chains: int, init: Any, init_values: Any) -> Run:
    """The chains before their first step."""
    for_init, keys = chain_keys(key, num_chains)
    for_sites, for_values = random.split(for_init, 2)
    x = initial_states(for_sites, target, num_chains, init)
    if init_values is None:
        leaves, tree = jax.tree.flatten(target.zeros)
        of_leaf = zip(random.split(for_values, len(leaves)), leaves, strict=True)
        far = [random.uniform(key, num_chains * zero.size).reshape(num_chains, *zero.shape) for key, zero in of_leaf]
        init_values = jax.tree.unflatten(tree, [_WIDEST_START * (2 * u - 1) for u in far])
    z = target.values(init_values, num_chains)
    if init is None:
        x = possible_starts(for_sites, target, x, lambda x: _first_states(kernel, target, x, z).log_prob)
    states = _first_states(kernel, target, x, z)
    check_start(states, kernel)
    return Run((target,), target, keys, Ensemble(jnp.zeros((), jnp.uint32), states, kernel), x, ((),))
