"""Several devices: where the arrays of a run lie.

A mesh of devices has an axis "chains", an axis "sites", or both. Along "chains" every device steps chains of its own,
all in one program; they hear of each other only while a kernel is tuned, when what a step was like for each chain is
handed to all devices, so that every one averages the same numbers in the same order. Along "sites" arrays with an
entry per site are cut into slabs of the first axis of the space, and the compiler exchanges what lies at their edges.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from discrax.core.checks import describe, whole
from discrax.core.programs import compiled
from discrax.core.space import Space
from discrax.core.xla import materialised

CHAINS, SITES = "chains", "sites"
_ACCEPTED = 'a number of devices, a list of them, or a jax.sharding.Mesh with axes "chains", "sites" or both'


def find_devices(
    devices: Any, space: Space, num_chains: int, *, name: str = "num_chains", cuts_sites: bool = True
) -> "Devices | None":
    """The devices that a user asked for; a sentence if there are none such, or if they do not share the work evenly.

    `name` is that of the number of chains; without `cuts_sites` all devices share the chains.
    """
    if devices is None:
        return None
    mesh = _mesh_of(devices)
    num_parts, num_slabs = (mesh.shape.get(axis, 1) for axis in (CHAINS, SITES))
    if SITES in mesh.axis_names and not cuts_sites:
        raise ValueError('A mesh must have the one axis "chains" here; only sample cuts sites into slabs.')
    if num_chains % num_parts:
        raise ValueError(
            f"{name} must be a multiple of the devices that share the chains, but {num_chains} chains cannot be "
            f"spread over {num_parts} devices evenly; use {-(-num_chains // num_parts)} a device."
        )
    if space.shape[0] % num_slabs:
        raise ValueError(
            f"The first axis of the space must be a multiple of the devices that share the sites, but {space.shape[0]} "
            f"rows of sites cannot be cut into {num_slabs} slabs of one size."
        )
    missing = set(range(jax.process_count())) - {device.process_index for device in mesh.devices.flat}
    if missing:
        raise ValueError(
            f"Every process must have a part in a run, but of {jax.process_count()} processes number {min(missing)} "
            "has none of these devices; use all that jax.devices() lists."
        )
    counts = {space.shape[0], math.prod(space.shape)} if SITES in mesh.axis_names else set()
    return Devices(mesh, frozenset(counts))


def _mesh_of(devices: Any) -> Mesh:
    if isinstance(devices, Mesh):
        if not devices.axis_names or not set(devices.axis_names) <= {CHAINS, SITES}:
            raise ValueError(f'A mesh must have axes "chains", "sites" or both, but has {devices.axis_names}.')
        return Mesh(devices.devices, devices.axis_names)  # whose axes the compiler may use as it likes
    if isinstance(devices, Sequence | np.ndarray) and not isinstance(devices, str):
        listed = list(np.ravel(np.asarray(devices, object)))
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
    """A mesh of devices, and what lies where on it.

    Axes of chains, here and below: a number or None for each array of a tree, or for all arrays below a node of it;
    what has None is of no chain in particular.
    """

    mesh: Mesh
    site_counts: frozenset[int]  # how long an axis is along which sites are cut; none where they are whole

    def place(self, tree: Any, axes: Any = None) -> Any:
        """Arrays where they belong, by their axes of chains; what is there already stays."""
        arrays, rest = eqx.partition(tree, _is_array)
        return eqx.combine(_map_axes(self._put, axes, arrays), rest)

    def _put(self, leaf: Any, axis: int | None) -> Any:
        leading = () if axis is None else (*(None,) * axis, CHAINS if CHAINS in self.mesh.axis_names else None)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):  # JAX sends keys to other processes as data only
            data = jax.device_put(jax.random.key_data(leaf), NamedSharding(self.mesh, PartitionSpec(*leading)))
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
        sites = (SITES,) if self.site_counts.intersection(leaf.shape[len(leading) : len(leading) + 1]) else ()
        return jax.device_put(leaf, NamedSharding(self.mesh, PartitionSpec(*leading, *sites)))

    def divide(self, function: Callable, takes: Any, gives: Any, **settings: Any) -> tuple[Callable, dict[str, Any]]:
        """What to call or to compile with which settings, instead of `function(..., **settings)`.

        `takes` and `gives` are the axes of chains of what it takes and returns.
        """
        if SITES in self.mesh.axis_names:  # the compiler finds out by itself what to exchange
            return function, settings
        return run_on_each, settings | {"function": function, "mesh": self.mesh, "takes": takes, "gives": gives}


def compiled_on(
    devices: Devices | None,
    function: Callable,
    arguments: tuple,
    settings: dict[str, Any],
    *,
    takes: tuple,
    gives: Any,
    axes: Any = None,
) -> tuple[Callable[[], Any], float]:
    """As `compiled`, but for a program that has its arguments already, each where it belongs.

    `takes` and `gives`: the axes of chains, see `Devices`; `axes` are those of several runs, as in `compiled`.
    """
    if devices is not None:
        after_runs = 0 if axes is None else 1  # the runs lie along the first axis
        places = jax.tree.map(lambda axis: None if axis is None else axis + after_runs, takes, is_leaf=_is_none)
        arguments = devices.place(arguments, places)
        function, settings = devices.divide(function, takes, gives, **settings)
    program, seconds = compiled(function, arguments, settings, axes)
    return partial(program, arguments), seconds


def run_on_each(*arguments: Any, function: Callable, mesh: Mesh, takes: tuple, gives: Any, **settings: Any) -> Any:
    """`function` of the chains of each device. It is also handed `of_all`, a function that makes of a tree of arrays
    with a leading axis of chains those of the chains of all devices.
    """
    arrays, static = eqx.partition(arguments, eqx.is_array)
    returned: dict[str, Any] = {}

    def on_one(arrays: Any) -> Any:
        # The compiler drops an axis of one chain and then rounds otherwise: a single one is stepped beside a copy.
        counts = jax.tree.leaves(
            _map_axes(lambda leaf, axis: None if axis is None else leaf.shape[axis], takes, arrays)
        )
        copies = 2 if counts[0] == 1 and mesh.size > 1 else 1

        def copy(leaf: Any, axis: int | None) -> Any:
            return leaf if axis is None else jnp.concatenate([leaf] * copies, axis=axis)

        def drop(leaf: Any, axis: int | None) -> Any:
            if axis is None or copies == 1:
                return leaf
            all_of_it = materialised(leaf)  # else the compiler sees that half of it is not needed
            return jax.lax.slice_in_dim(all_of_it, 0, leaf.shape[axis] // copies, axis=axis)

        def of_all(tree: Any) -> Any:
            return jax.tree.map(lambda leaf: jax.lax.all_gather(drop(leaf, 0), CHAINS, tiled=True), tree)

        own = eqx.combine(_map_axes(copy, takes, arrays), static)
        out = function(*own, of_all=of_all, **settings)
        out, returned["static"] = eqx.partition(out, eqx.is_array)
        return _map_axes(drop, gives, out)

    program = jax.shard_map(
        on_one,
        mesh=mesh,
        in_specs=(_specs(takes),),
        out_specs=_specs(gives),
        check_vma=False,  # that what has no axis of chains stays the same everywhere: it comes of the same numbers
    )
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):  # others set one for all of JAX (NetKet does)
        return eqx.combine(program(arrays), returned["static"])


def _map_axes(function: Callable[[Any, int | None], Any], axes: Any, tree: Any) -> Any:
    """`function(array, axis)` of all arrays of a tree."""

    def below(axis: int | None, part: Any) -> Any:
        return jax.tree.map(lambda leaf: function(leaf, axis), part)

    return jax.tree.map(below, axes, tree, is_leaf=_is_none)


def _specs(axes: Any) -> Any:
    def spec(axis: int | None) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, CHAINS)

    return jax.tree.map(spec, axes, is_leaf=_is_none)


def _is_none(node: Any) -> bool:
    return node is None


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
