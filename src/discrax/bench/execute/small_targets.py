"""Small targets on which a kernel can be proved right or wrong before it is measured on large ones.

A kernel that is not of the package is put to `check_kernel` on a small target of every kind of space that the cells
have: as many axes, two or three levels, all pairs of sites coupled. What it reports of a step is compared with what it
did.
"""

from collections.abc import Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Experiment, input_of, target_of
from discrax.core.kernel import Kernel
from discrax.core.space import Binary, Categorical, Ordinal, Space, Spin
from discrax.core.target import Target
from discrax.exact import check_kernel
from discrax.targets import Quadratic

_SHAPES = {True: {1: (5,), 2: (2, 3)}, False: {1: (4,), 2: (2, 2)}}  # by whether there are two levels, and by axes


def small_target(space: Space) -> Target:
    """log pi = e'We + b'e with random W and b, with all that a quadratic target offers."""
    rng, n = np.random.default_rng(0), space.num_sites
    pairs = np.triu(0.3 * rng.normal(size=(n, n)), 1)
    levels = (space.num_levels,) if isinstance(space, Categorical) else ()
    return Quadratic(space, pairs + pairs.T, rng.normal(size=(*space.shape, *levels)))


def shrink(space: Space) -> Space:
    """A space of the same kind and as many axes, small enough to enumerate."""
    axes = len(space.shape)
    shape = _SHAPES[space.has_two_levels].get(axes) or (2, 2, 2, *(1 for _ in range(axes - 3)))
    if isinstance(space, Ordinal):
        return Ordinal(shape, np.asarray(space.values)[:3])
    if isinstance(space, Categorical):
        return Categorical(shape, min(space.num_levels, 3))
    return Spin(shape) if isinstance(space, Spin) else Binary(shape)


def spaces_of(cells: Iterable[Cell]) -> list[Space]:
    """Small spaces of every kind that the targets of cells have, one target of each address looked at."""
    found: dict[tuple, Space] = {}
    for cell in {cell.target.address: cell for cell in cells}.values():
        for space in _spaces_at(cell):
            if space.totals is None:
                key = type(space), len(space.shape), min(space.num_levels, 3)
                found.setdefault(key, shrink(space))
    return list(found.values()) or [Binary((2, 3))]


def _spaces_at(cell: Cell) -> Iterator[Space]:
    try:
        is_sampled = not isinstance(cell.measure(), Experiment)
        made = target_of(cell.target) if is_sampled else input_of(cell.target)
        if isinstance(made, Target):
            yield made.space
        for problem in getattr(made, "problems", ())[:1]:  # instances of a search
            yield problem.space
    except Exception:  # its cells will say why it cannot be made
        return


def prove(name: str, kernel: Kernel, cells: Iterable[Cell]) -> None:
    """Raises a sentence if a kernel is wrong on a small target of the cells' spaces.

    Spaces that it does not take are left out: there its cells say so. One that calls itself inexact is only asked
    whether it reports what it does.
    """
    advice = "Mend it, or run it all the same with --unchecked, which the report will say."
    for space in spaces_of(cells):
        if not isinstance(space, kernel.spaces):
            continue
        where = f"a small {type(space).__name__} target of shape {space.shape}"
        target = small_target(space)
        try:
            _check_report(kernel, target)
            verdict = check_kernel(kernel, target, num_chains=20_000, num_steps=4) if kernel.is_exact else True
        except Exception as error:
            raise ValueError(f"{name} cannot be put beside the others. On {where}: {error} {advice}") from error
        if not verdict:
            raise ValueError(f"{name} does not sample the law of {where}: check_kernel {verdict}. {advice}")


def _check_report(kernel: Kernel, target: Target) -> None:
    """Whether a step's `Info.jump` is how far the state went, and `Info.evals` can be a number of evaluations."""
    kernel, _ = kernel.prepare(target, tuning=False)
    for_states, for_steps = jax.random.split(jax.random.key(0))
    x = jax.vmap(target.space.random)(jax.random.split(for_states, 500))

    def step(key, x):
        after, info = kernel.step(key, target, kernel.init(target, x))
        return target.space.distance(x, after.x), info.jump, info.evals

    moved, reported, evals = map(np.asarray, jax.jit(jax.vmap(step))(jax.random.split(for_steps, 500), x))
    if not (np.isfinite(evals) & (evals >= 0)).all() or not evals.any():
        raise ValueError(
            f"it reports {evals.min():g} evaluations of the target in a step; `Info.evals` is how many it has made, 1 "
            "for one of log pi or of its gradient."
        )
    wrong = ~np.isclose(moved, reported, rtol=1e-3)
    if wrong.any():
        place = int(jnp.argmax(wrong))
        raise ValueError(
            f"it reports a jump of {reported[place]:g} in a step that went {moved[place]:g} far; `Info.jump` is "
            "space.distance(x, y), and 0 where the proposal is rejected."
        )
