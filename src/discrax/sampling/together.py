"""Several runs as one compiled program: targets of one shape, kernels of one kind, each run with its own arrays.

Small problems leave a GPU idle and cost a compilation each. Here the arrays of all runs are stacked along a leading
axis and one program steps them all; each is tuned by itself, and its draws are those that `sample` would give it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from discrax.core.driver import Adapter, Recorder, chunk_length, drive, start
from discrax.core.kernel import Kernel, Sized, replaced
from discrax.core.programs import reads_user_code
from discrax.core.target import Target, check_target
from discrax.curvature.hessian import Preconditioned
from discrax.samplers import build_kernel
from discrax.sampling.checks import (
    chain_keys,
    check_counts,
    check_gradient,
    check_law,
    check_start,
    initial_states,
    possible_starts,
)
from discrax.sampling.result import Result
from discrax.sampling.sample import Phase, adapters_of, as_told, codes, collected, warmup_chunk, work_per_step

Tree = TypeVar("Tree")


def structure_of(tree: Any) -> Any:
    """What must be equal for two trees to be stacked: everything but the values of arrays (and a kernel's capacity)."""
    if isinstance(tree, Sized) and hasattr(tree, "capacity"):
        tree = replaced(tree, capacity=0)
    arrays, static = eqx.partition(tree, eqx.is_array_like)
    shapes = tuple((np.shape(leaf), str(jnp.result_type(leaf))) for leaf in jax.tree.leaves(arrays))
    leaves, structure = jax.tree.flatten(static)
    return jax.tree.structure(arrays), shapes, structure, tuple(leaves)


def can_be_together(target: Target, kernel: Kernel) -> bool:
    """Whether runs like this can be stacked: a Hessian is found on the host, run by run."""
    return not isinstance(kernel, Preconditioned) or kernel.is_prepared


@reads_user_code()
def sample_together(
    keys: Sequence[PRNGKeyArray],
    targets: Sequence[Target],
    samplers: Sequence[str | Kernel],
    *,
    num_chains: int,
    num_warmup: int,
    num_samples: int,
    thinning: int = 1,
    init: Sequence[Array | np.ndarray | None] | None = None,
    keep: str | Callable[[Array], Any] = "draws",
    adaptation: Sequence[Adapter | str | None] | None = None,
) -> list[Result]:
    """`sample` for each (key, target, sampler), all in one program. They must differ in the values of arrays only."""
    count = len(targets)
    check_counts(num_chains, num_warmup, num_samples, thinning, None)
    kernels, all_keys, starts, adapters = [], [], [], []
    for i in range(count):
        check_target(targets[i])
        for_init, chains = chain_keys(keys[i], num_chains)
        x = initial_states(for_init, targets[i], num_chains, None if init is None else init[i])
        starts.append(x if init is not None and init[i] is not None else possible_starts(for_init, targets[i], x))
        all_keys.append(chains)
        kernel = build_kernel(samplers[i], targets[i])
        check_gradient(targets[i], kernel)
        check_law(targets[i], kernel)
        found = adapters_of("auto" if adaptation is None else adaptation[i], kernel) if num_warmup else ()
        adapters.append(found[0].planned(kernel, num_warmup) if found else None)
        if isinstance(kernel, Sized):
            kernel = kernel.sized(targets[i], room=bool(found))
        kernels.append(kernel)
    kernels = of_one_size(kernels)
    for what, trees in {"targets": targets, "samplers": kernels, "adaptations": adapters}.items():
        if any(structure_of(tree) != structure_of(trees[0]) for tree in trees):
            raise ValueError(f"Runs that share a program have {what} of one structure; run these one by one.")

    target, stacked_keys = stacked(targets), stacked(all_keys)
    adapter = None if adapters[0] is None else stacked(adapters)
    recorder = Recorder(codes if keep == "draws" else as_told(keep) if callable(keep) else None)
    ensemble, compile_seconds = start(target, stacked(kernels), stacked(starts), recorder, batched=True)
    for states, kernel in zip(apart(ensemble.states, count), kernels, strict=True):
        check_start(states, kernel)
    work = count * work_per_step(targets[0], num_chains)

    def advance(phases: list[Phase], ensemble, chunks):
        for chunk in chunks:
            shares = chunk._replace(seconds=chunk.seconds / count, compile_seconds=chunk.compile_seconds / count)
            for phase, recorded in zip(phases, apart(chunk.recorded, count), strict=True):
                phase.store(shares._replace(recorded=recorded))
            ensemble = chunk.ensemble
        return ensemble

    def resize(kernel: Kernel) -> Kernel:
        if not isinstance(kernel, Sized):
            return kernel
        roomy = [each.sized(t, room=True) for each, t in zip(apart(kernel, count), targets, strict=True)]
        return stacked(of_one_size(roomy))

    warmup = [Phase("warm-up", num_warmup, False) for _ in targets]
    reports: list[list[Any]] = [[] for _ in targets]
    if adapter is not None:
        memories = [a.init(t, k) for a, t, k in zip(adapters, targets, kernels, strict=True)]
        ensemble = ensemble._replace(memory=stacked(memories))
    length = chunk_length(num_samples, work * thinning)
    if num_warmup:
        settings: dict[str, Any] = {"batched": True}
        if adapter is not None:
            is_sized = isinstance(kernels[0], Sized)
            chunk = warmup_chunk(num_warmup) if is_sized else chunk_length(num_warmup, work)
            settings |= {"adapter": adapter, "resize": resize, "chunk": chunk, "recorder": Recorder(None)}
        else:  # nothing is tuned: warm-up is drawing, by the same program
            length = chunk_length(math.gcd(num_warmup, num_samples), work * thinning)
            settings |= {"chunk": length, "recorder": recorder}
        chunks = drive(stacked_keys, target, ensemble, num_warmup, **settings)
        ensemble = advance(warmup, ensemble, chunks)
        kernels = apart(ensemble.kernel, count)
        if adapter is not None:
            memories = apart(ensemble.memory, count)
            for i in range(count):
                kernels[i], report = adapters[i].freeze(targets[i], kernels[i], memories[i])
                reports[i].append(report)
    if isinstance(kernels[0], Sized):
        kernels = of_one_size(
            [k.sized(t, room=False) for k, t in zip(kernels, targets, strict=True) if isinstance(k, Sized)]
        )
    ensemble = ensemble._replace(kernel=stacked(kernels), memory=None)
    drawn = [Phase("sampling", num_samples, False) for _ in targets]
    settings = {"chunk": length, "thinning": thinning, "recorder": recorder, "batched": True}
    ensemble = advance(drawn, ensemble, drive(stacked_keys, target, ensemble, num_samples, **settings))
    ends = apart(ensemble, count)
    return [
        collected(
            targets[i], ends[i], [warmup[i]], drawn[i], reports[i], keep, False, thinning, compile_seconds / count
        )
        for i in range(count)
    ]


def of_one_size(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Kernels with the largest of their capacities."""
    if not isinstance(kernels[0], Sized) or not hasattr(kernels[0], "capacity"):
        return list(kernels)
    most = max(kernel.capacity for kernel in kernels)  # pyright: ignore[reportAttributeAccessIssue]
    return [replaced(kernel, capacity=most) for kernel in kernels]


# Stacking and taking apart is done on the host: on an accelerator every slice would be a program of its own.
def stacked(trees: Sequence[Tree]) -> Tree:
    parts = [eqx.partition(tree, eqx.is_array_like) for tree in trees]
    arrays = jax.tree.map(_stack, *(arrays for arrays, _ in parts))
    return eqx.combine(arrays, parts[0][1])


def _stack(*leaves: Any) -> Array:
    if isinstance(leaves[0], jax.Array) and jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]), jnp.result_type(leaves[0]))


def apart(tree: Tree, count: int) -> list[Tree]:
    arrays, static = eqx.partition(tree, eqx.is_array)
    arrays = jax.device_get(arrays)
    return [eqx.combine(jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), arrays), static) for i in range(count)]
