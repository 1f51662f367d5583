"""The numbers of docs/interop/numpyro.md: `DiscraxGibbs` beside NumPyro's `DiscreteHMCGibbs`, on the same models.

Both have the same inner kernel and chains side by side, and run in turns within one process, chunk by chunk; what is
timed are draws after warm-up, nothing is compiled then. ESS is that of NumPyro's diagnostics, of the elements of the
discrete sites that are not all but certain (posterior mean of an indicator between 2% and 98%).

    python benchmarks/interop_numpyro.py            all problems
    python benchmarks/interop_numpyro.py mixture    one of them
"""

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import NUTS, DiscreteHMCGibbs

from discrax.interop.numpyro import DiscraxGibbs

sample: Any = numpyro.sample  # its own type is the union of what every distribution may return
CHAINS, TURNS = 4, 5


def regression_data(rows: int = 100, columns: int = 200, active: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Columns of standard normal numbers, of which the first few matter."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(rows, columns)).astype(np.float32)
    slopes = np.zeros(columns, np.float32)
    slopes[:active] = np.linspace(0.4, 1.5, active) * rng.choice([-1, 1], active)
    return matrix, (matrix @ slopes + rng.normal(size=rows)).astype(np.float32)


def spike_and_slab(matrix: Any, y: Any) -> None:
    """Regression whose coefficients are sampled."""
    share, noise = sample("share", dist.Beta(1.0, 9.0)), sample("noise", dist.HalfNormal(2.0))
    with numpyro.plate("columns", matrix.shape[1]):
        included = sample("included", dist.Bernoulli(share))
        slope = sample("slope", dist.Normal(0.0, 1.0))
    sample("y", dist.Normal(matrix @ (included * slope), noise), obs=y)


def mixture(x: Any) -> None:
    """Three Gaussians, with the assignment of each row."""
    weights = sample("weights", dist.Dirichlet(jnp.ones(3)))
    means = sample("gap", dist.HalfNormal(3.0)) * jnp.arange(-1.0, 2.0)  # in order: there is one mode
    with numpyro.plate("rows", len(x)):
        z = sample("z", dist.Categorical(weights))
        sample("x", dist.Normal(means[z], 1.0), obs=x)


def potts(image: Any) -> None:
    """A hidden segmentation in three colours, smooth, seen through noise."""
    means = sample("gap", dist.HalfNormal(3.0)) * jnp.arange(-1.0, 2.0)
    with numpyro.plate("rows", image.shape[0], dim=-2), numpyro.plate("columns", image.shape[1], dim=-1):
        z = sample("z", dist.Categorical(jnp.ones(3) / 3))
        sample("image", dist.Normal(means[z], 1.0), obs=image)
    numpyro.factor("smooth", 0.8 * (jnp.sum(z[1:] == z[:-1]) + jnp.sum(z[:, 1:] == z[:, :-1])))


def mixture_data() -> tuple[np.ndarray]:
    """A thousand rows."""
    rng = np.random.default_rng(1)
    return ((rng.choice([-2.0, 0.0, 2.0], 1000) + rng.normal(size=1000)).astype(np.float32),)


def potts_data(side: int = 32) -> tuple[np.ndarray]:
    """Three stripes."""
    rng = np.random.default_rng(2)
    stripes = np.repeat([-1.0, 0.0, 1.0], [side // 3, side // 3, side - 2 * (side // 3)])
    return ((stripes[None, :] + rng.normal(size=(side, side))).astype(np.float32),)


class Problem(NamedTuple):
    """A model with its data, and how it is sampled."""

    model: Callable
    data: Callable[[], tuple]
    site: str
    sampler: str
    num_steps: int
    warmup: int
    draws: tuple[int, int]  # a turn: ours, and theirs


PROBLEMS = {
    "spike-and-slab, 200 columns": Problem(spike_and_slab, regression_data, "included", "pas", 3, 200, (100, 100)),
    "mixture, 1,000 assignments": Problem(mixture, mixture_data, "z", "dlmc", 5, 100, (100, 6)),
    "hidden Potts model, 32 x 32": Problem(potts, potts_data, "z", "dmala", 10, 100, (100, 6)),
}


class Contender:
    """A kernel with chains side by side, compiled and warm."""

    def __init__(self, kernel: Any, args: tuple, problem: Problem, num_draws: int):
        site = problem.site
        begin = lambda key: kernel.init(key, problem.warmup, None, args, {})  # noqa: E731
        keys = jax.random.split(jax.random.key(3), CHAINS)
        if isinstance(kernel, DiscraxGibbs):
            states, step = begin(keys), lambda state: kernel.sample(state, args, {})
        else:
            states, step = jax.vmap(begin)(keys), jax.vmap(lambda state: kernel.sample(state, args, {}))

        def draw(states: Any, _: Any) -> tuple[Any, jax.Array]:
            states = step(states)
            return states, states.z[site].astype(jnp.int8)

        def some(states: Any, length: int) -> Any:
            return jax.jit(lambda states: jax.lax.scan(draw, states, None, length=length)).lower(states).compile()

        self.draw, self.drawn, self.seconds = some(states, num_draws), [], 0.0
        for _ in range(-(-problem.warmup // num_draws)):
            states, _ = self.draw(states)
        self.states = jax.block_until_ready(states)

    def turn(self) -> None:
        """Draws, and their seconds."""
        begin = time.perf_counter()
        self.states, draws = jax.block_until_ready(self.draw(self.states))
        self.seconds += time.perf_counter() - begin
        self.drawn.append(np.asarray(draws))

    def indicators(self) -> np.ndarray:
        """(chains, draws, elements) of whether an element is not 0."""
        draws = np.concatenate(self.drawn).swapaxes(0, 1)
        return (draws.reshape(*draws.shape[:2], -1) != 0).astype(np.float32)


def compare(name: str, problem: Problem) -> None:
    """One row of the table."""
    args = problem.data()
    ours = DiscraxGibbs(NUTS(problem.model), problem.sampler, num_steps=problem.num_steps)
    contenders = [
        Contender(kernel, args, problem, draws)
        for kernel, draws in zip((ours, DiscreteHMCGibbs(NUTS(problem.model))), problem.draws, strict=True)
    ]
    for _ in range(TURNS):
        for contender in contenders:
            contender.turn()
    both = [contender.indicators() for contender in contenders]
    means = [x.mean(axis=(0, 1)) for x in both]
    counts = [(mean > 0.02) & (mean < 0.98) for mean in means]
    ess = [np.asarray(effective_sample_size(x[..., counts[0] & counts[1]])) for x in both]
    rates = [np.median(e) / c.seconds for e, c in zip(ess, contenders, strict=True)]
    # Of the difference of the two means, element by element.
    errors = np.sqrt(sum(x[..., counts[0] & counts[1]].var(axis=(0, 1)) / e for x, e in zip(both, ess, strict=True)))
    z = (means[0] - means[1])[counts[0] & counts[1]] / errors
    print(
        f"| {name} | {problem.sampler} x {problem.num_steps} | {rates[0]:.1f} | {rates[1]:.2f} | "
        f"{rates[0] / rates[1]:.0f} | {np.sqrt(np.mean(z**2)):.2f} of {len(z)} |",
        flush=True,
    )
    for who, c, e in zip(("ours", "theirs"), contenders, ess, strict=True):
        print(
            f"  {who}: {c.seconds:.1f} s, {len(c.drawn) * len(c.drawn[0])} draws, median ESS {np.median(e):.0f}",
            file=sys.stderr,
        )
    state = contenders[0].states
    print(f"  accept_prob {state.accept_prob.mean():.2f}, arrays {state.arrays}", file=sys.stderr)


if __name__ == "__main__":
    print("| problem | sampler | ours, ESS/s | DiscreteHMCGibbs, ESS/s | ratio | r.m.s. z of the means |")
    print("|---|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
            compare(name, problem)
