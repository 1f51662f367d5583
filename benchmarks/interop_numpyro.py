"""The numbers of docs/interop/numpyro.md: `DiscraxGibbs` beside NumPyro's `DiscreteHMCGibbs`, on the same models.

Both have the same inner kernel and chains side by side, and run in turns within one process, chunk by chunk; what is
timed are draws after warm-up, nothing is compiled then. The seconds are those of the fastest turn of each, times the
number of turns. ESS is that of NumPyro's diagnostics, of the elements of the discrete sites that are not all but
certain (posterior mean of an indicator between 2% and 98%).

    python benchmarks/interop_numpyro.py            all problems
    python benchmarks/interop_numpyro.py spike      one of them: spike, mixture, Potts
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
from numpyro.infer.gibbs import with_conditioning

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
    ours: dict[str, dict]  # settings of DiscraxGibbs by name
    warmup: int
    draws: tuple[int, int]  # a turn: ours, and theirs


PAIRS = {"pairs": {"included": "slope"}, "num_steps": 20}
PROBLEMS = {
    "spike-and-slab, 200 columns": Problem(
        spike_and_slab,
        regression_data,
        "included",
        {
            "pas x 3": {"num_steps": 3},
            "pairs x 20": PAIRS,
            "pairs x 20, inner_every=16": {**PAIRS, "inner_every": 16},
        },
        200,
        (320, 100),
    ),
    "mixture, 1,000 assignments": Problem(
        mixture, mixture_data, "z", {"dlmc x 5": {"sampler": "dlmc", "num_steps": 5}}, 100, (100, 10)
    ),
    "hidden Potts model, 32 x 32": Problem(
        potts, potts_data, "z", {"dlmc x 10": {"sampler": "dlmc", "num_steps": 10}}, 100, (100, 20)
    ),
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

        def some(states: Any) -> Any:
            return jax.lax.scan(draw, states, None, length=num_draws)

        self.draw, self.drawn, self.seconds = jax.jit(some).lower(states).compile(), [], []
        for _ in range(-(-problem.warmup // num_draws)):
            states, _ = self.draw(states)
        self.states = jax.block_until_ready(states)

    def turn(self) -> None:
        """Draws, and their seconds."""
        begin = time.perf_counter()
        self.states, draws = jax.block_until_ready(self.draw(self.states))
        self.seconds.append(time.perf_counter() - begin)
        self.drawn.append(np.asarray(draws))

    @property
    def num_draws(self) -> int:
        """Of each chain."""
        return sum(map(len, self.drawn))

    @property
    def time(self) -> float:
        """The seconds of all draws, at the pace of the fastest turn."""
        return len(self.seconds) * min(self.seconds)

    def indicators(self) -> np.ndarray:
        """(chains, draws, elements) of whether an element is not 0."""
        draws = np.concatenate(self.drawn).swapaxes(0, 1)
        return (draws.reshape(*draws.shape[:2], -1) != 0).astype(np.float32)


def seconds_of_inner(kernel: Any, contender: Contender, args: tuple, problem: Problem) -> float:
    """Of one step of the inner kernel alone, all chains, where a contender is."""
    values = {problem.site: contender.states.z[problem.site]}
    step = jax.vmap(lambda state, v: kernel.inner_kernel.sample(state, args, with_conditioning({}, v)))
    some = jax.jit(lambda s, v: jax.lax.scan(lambda s, _: (step(s, v), None), s, None, length=50)[0])
    seconds = []
    for _ in range(4):  # the first compiles
        begin = time.perf_counter()
        jax.block_until_ready(some(contender.states.hmc_state, values))
        seconds.append((time.perf_counter() - begin) / 50)
    return min(seconds)


def compare(name: str, problem: Problem) -> None:
    """The rows of a problem."""
    args = problem.data()
    kernels: dict[str, Any] = {k: DiscraxGibbs(NUTS(problem.model), **v) for k, v in problem.ours.items()}
    kernels["DiscreteHMCGibbs"] = DiscreteHMCGibbs(NUTS(problem.model))
    contenders = {
        who: Contender(kernel, args, problem, problem.draws[not isinstance(kernel, DiscraxGibbs)])
        for who, kernel in kernels.items()
    }
    for _ in range(TURNS):
        for contender in contenders.values():
            contender.turn()
    drawn = {who: contender.indicators() for who, contender in contenders.items()}
    counts = np.all([(x.mean(axis=(0, 1)) > 0.02) & (x.mean(axis=(0, 1)) < 0.98) for x in drawn.values()], axis=0)
    drawn = {who: x[..., counts] for who, x in drawn.items()}
    ess = {who: np.asarray(effective_sample_size(x)) for who, x in drawn.items()}
    rates = {who: ess[who] / contenders[who].time for who in ess}
    theirs = rates["DiscreteHMCGibbs"]
    variance = {who: x.var(axis=(0, 1)) / ess[who] for who, x in drawn.items()}
    for who, rate in rates.items():
        if who == "DiscreteHMCGibbs":
            continue
        z = drawn[who].mean(axis=(0, 1)) - drawn["DiscreteHMCGibbs"].mean(axis=(0, 1))
        z /= np.sqrt(variance[who] + variance["DiscreteHMCGibbs"])
        print(
            f"| {name} | {who} | {np.median(rate):.0f} | {np.median(theirs):.1f} | "
            f"**{np.median(rate) / np.median(theirs):.1f}** | {rate.min():.1f} | {theirs.min():.2f} | "
            f"**{rate.min() / theirs.min():.1f}** | {np.sqrt(np.mean(z**2)):.2f} | {np.abs(z).max():.1f} of {len(z)} |",
            flush=True,
        )
    inner = seconds_of_inner(kernels["DiscreteHMCGibbs"], contenders["DiscreteHMCGibbs"], args, problem)
    for who, c in contenders.items():
        each = 1e3 * c.time / c.num_draws
        print(f"  {who}: {each:.2f} ms a draw, median ESS {np.median(ess[who]):.0f} of {CHAINS * c.num_draws}, "
              f"least {ess[who].min():.0f}", file=sys.stderr)  # fmt: skip
    bound = CHAINS / inner / np.median(theirs)
    print(f"  the inner kernel alone: {1e3 * inner:.2f} ms a step; independent draws after each step of it would have "
          f"{bound:.1f} times the median of DiscreteHMCGibbs", file=sys.stderr)  # fmt: skip


COLUMNS = "problem | ours | median ESS/s | theirs | ratio | least ESS/s | theirs | ratio | r.m.s. z | largest z"

if __name__ == "__main__":
    print(f"| {COLUMNS} |")
    print("|" + "---|" * len(COLUMNS.split(" | ")))
    for name, problem in PROBLEMS.items():
        if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
            compare(name, problem)
