"""Several devices: where the arrays of a run lie.

A mesh of devices has an axis "chains", an axis "sites", or both. Along "chains" every device steps chains of its own,
all in one program; they hear of each other only while a kernel is tuned, when what a step was like for each chain is
handed to all devices, so that every one averages the same numbers in the same order. Along "sites" arrays with an
entry per site are cut into slabs of the first axis of the space, and the compiler exchanges what lies at their edges.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Key

from discrax.core.checks import describe, whole
from discrax.core.space import Space

CHAINS, SITES = "chains", "sites"
_ACCEPTED = 'a number of devices, a list of them, or a jax.sharding.Mesh with axes "chains", "sites" or both'


def find_devices(devices: Any, space: Space, num_chains: int) -> "Devices | None":
    """The devices that a user asked for; a sentence if there are none such, or if they do not share the work evenly."""
    if devices is None:
        return None
    found = Devices(_mesh_of(devices))
    if num_chains % found.size(CHAINS):
        raise ValueError(
            f"num_chains must be a multiple of the devices that share the chains, but {num_chains} chains cannot be "
            f"spread over {found.size(CHAINS)} devices evenly; use {-(-num_chains // found.size(CHAINS))} a device."
        )
    if space.shape[0] % found.size(SITES):
        raise ValueError(
            f"The first axis of the space must be a multiple of the devices that share the sites, but {space.shape[0]} "
            f"rows of sites cannot be cut into {found.size(SITES)} slabs of one size."
        )
    missing = set(range(jax.process_count())) - {device.process_index for device in found.mesh.devices.flat}
    if missing:
        raise ValueError(
            f"Every process must have a part in a run, but of {jax.process_count()} processes number {min(missing)} "
            "has none of these devices; use all that jax.devices() lists."
        )
    return found


def _mesh_of(devices: Any) -> Mesh:
    if isinstance(devices, Mesh):
        if not devices.axis_names or not set(devices.axis_names) <= {CHAINS, SITES}:
            raise ValueError(f'A mesh must have axes "chains", "sites" or both, but has {devices.axis_names}.')
        return Mesh(devices.devices, devices.axis_names)  # whose axes the compiler may use as it likes
    if isinstance(devices, Sequence | np.ndarray) and not isinstance(devices, str):
        listed = list(devices)
        if not listed or len(set(map(id, listed))) < len(listed) or any(not _is_device(each) for each in listed):
            raise TypeError(f"devices must be {_ACCEPTED}, but the list has {describe(devices)}.")
        return Mesh(np.asarray(listed), (CHAINS,))
    if isinstance(devices, bool) or not isinstance(devices, int | np.integer):
        raise TypeError(f"devices must be {_ACCEPTED}, but got {describe(devices)}.")
    whole("devices", devices, least=1)
    there = jax.devices()
    if devices > len(there):
        raise ValueError(
            f"devices must be at most {len(there)}, as JAX sees no more here ({there[0].platform}), but got {devices}; "
            "XLA_FLAGS=--xla_force_host_platform_device_count=8 in the environment makes eight of a CPU."
        )
    return Mesh(np.asarray(there[:devices]), (CHAINS,))


def _is_device(it: Any) -> bool:
    return isinstance(it, jax.Device)


class Devices(NamedTuple):
    """A mesh of devices, and what lies where on it."""

    mesh: Mesh

    def size(self, axis: str) -> int:
        """Devices along an axis; 1 where there is no such axis."""
        return self.mesh.shape.get(axis, 1)

    def spread(self, tree: Any, space: Space) -> Any:
        """Arrays with a leading axis of chains, spread over the devices."""
        return self._put(tree, space, (CHAINS if CHAINS in self.mesh.axis_names else None,))

    def share(self, tree: Any, space: Space) -> Any:
        """Arrays of a target, a kernel or an adapter: whole on every device, but for slabs of sites."""
        return self._put(tree, space, ())

    def place(self, keys: Key[Array, " chains"], target: Any, ensemble: Any, adapter: Any) -> tuple[Any, ...]:
        """What a chunk of a run needs, each where it belongs; what is there already stays."""
        space = target.space
        ensemble = ensemble._replace(
            step=self.share(ensemble.step, space),
            states=self.spread(ensemble.states, space),
            kernel=self.share(ensemble.kernel, space),
            memory=self.share(ensemble.memory, space),
            observed=self.spread(ensemble.observed, space),
        )
        return self.spread(keys, space), self.share(target, space), ensemble, self.share(adapter, space)

    def divide(self, function: Callable, settings: dict[str, Any]) -> tuple[Callable, dict[str, Any]]:
        """What to compile for a chunk, instead of `function(..., **settings)`."""
        if SITES in self.mesh.axis_names:  # the compiler finds out by itself what to exchange
            return function, settings
        return run_on_each, settings | {"function": function, "mesh": self.mesh}

    def _put(self, tree: Any, space: Space, leading: tuple[str | None, ...]) -> Any:
        counts = {space.shape[0], math.prod(space.shape)} if SITES in self.mesh.axis_names else set()

        def put(leaf: Any) -> Any:
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX sends keys to other processes as data only
                data = jax.device_put(jax.random.key_data(leaf), NamedSharding(self.mesh, PartitionSpec(*leading)))
                return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
            sites = (SITES,) if counts.intersection(leaf.shape[len(leading) : len(leading) + 1]) else ()
            return jax.device_put(leaf, NamedSharding(self.mesh, PartitionSpec(*leading, *sites)))

        arrays, rest = eqx.partition(tree, _is_array)
        return eqx.combine(jax.tree.map(put, arrays), rest)


def run_on_each(
    keys: Key[Array, " chains"],
    target: Any,
    ensemble: Any,
    adapter: Any,
    *,
    function: Callable,
    mesh: Mesh,
    **settings: Any,
) -> tuple[Any, Any, Any]:
    """`function` (the driver's `run_chunk`) of the chains of each device."""
    arrays, static = eqx.partition((keys, target, ensemble, adapter), eqx.is_array)
    returned: dict[str, Any] = {}

    # The compiler drops an axis of one chain and then rounds otherwise: a single chain is stepped beside a copy of it.
    copies = 2 if keys.shape[0] == mesh.size > 1 else 1

    def copy(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.concatenate([leaf] * copies), tree)

    def drop(tree: Any, axis: int = 0) -> Any:
        return jax.tree.map(lambda leaf: jax.lax.slice_in_dim(leaf, 0, leaf.shape[axis] // copies, axis=axis), tree)

    def on_one(arrays: Any) -> tuple[Any, Any, Any]:
        keys, target, ensemble, adapter = eqx.combine(arrays, static)
        ensemble = ensemble._replace(states=copy(ensemble.states), observed=copy(ensemble.observed))
        adapter = None if adapter is None else _OfAllChains(adapter, drop)
        after, handed, info = function(copy(keys), target, ensemble, adapter, **settings)
        after = after._replace(states=drop(after.states), observed=drop(after.observed))
        after, returned["static"] = eqx.partition(after, eqx.is_array)
        return after, drop(handed, axis=1), jax.lax.pmean(info, CHAINS)

    everywhere, spread = PartitionSpec(), PartitionSpec(CHAINS)
    places = type(ensemble)(step=everywhere, states=spread, kernel=everywhere, memory=everywhere, observed=spread)
    program = jax.shard_map(
        on_one,
        mesh=mesh,
        in_specs=((spread, everywhere, places, everywhere),),
        out_specs=(places, PartitionSpec(None, CHAINS), everywhere),
        check_vma=False,  # that kernels stay the same everywhere: all are tuned from the same numbers
    )
    after, handed, info = program(arrays)
    return eqx.combine(after, returned["static"]), handed, info


class _OfAllChains:
    """An adapter on one of several devices: it is told of the chains of all."""

    def __init__(self, adapter: Any, drop: Callable[[Any], Any]):
        self._adapter, self._drop = adapter, drop

    def update(self, target: Any, kernel: Any, memory: Any, states: Any, info: Any) -> tuple[Any, Any]:
        """The next (kernel, memory), the same on every device."""
        # What is not read is not sent.
        states, info = jax.tree.map(
            lambda leaf: jax.lax.all_gather(leaf, CHAINS, tiled=True), self._drop((states, info))
        )
        return self._adapter.update(target, kernel, memory, states, info)


def gather(tree: Any) -> Any:
    """Arrays of which other processes have parts, whole and on the host; everything else as it is."""
    is_elsewhere = lambda leaf: isinstance(leaf, jax.Array) and not leaf.is_fully_addressable  # noqa: E731
    return jax.tree.map(lambda leaf: process_allgather(leaf, tiled=True) if is_elsewhere(leaf) else leaf, tree)


def bring_home(tree: Any) -> Any:
    """Arrays that lie on several devices, whole and on the default one; everything else as it is."""
    is_spread = lambda leaf: isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1  # noqa: E731
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(gather(leaf))) if is_spread(leaf) else leaf, tree)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)
