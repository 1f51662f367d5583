"""Spike-and-slab regression in PyMC: `DiscraxStep` and `from_model` beside PyMC's own `BinaryGibbsMetropolis`.

    python benchmarks/interop_pymc.py                 both problems
    python benchmarks/interop_pymc.py sampled         one of them: sampled, integrated

200 columns, of which 10 matter. In the first, which is that of benchmarks/interop_numpyro.py, the coefficients are
sampled, in the second they are integrated out:

    sampled      gamma_j ~ Bernoulli(share), s_j ~ Normal(0, 1)      y ~ Normal(X (gamma * s), noise)     100 rows
    integrated   gamma_j ~ Bernoulli(0.05)                           y ~ Normal(0, I + 4 X diag(gamma) X')  60 rows

NUTS has the continuous variables that the step named has not. Printed for each sampler: effective draws per second of
the inclusion indicators whose probability is neither below 2 nor above 98 per cent (the median and the least of them;
seconds of the processor, of all its cores, spent on drawing alone, after tuning and compiling), and how far the
inclusion probabilities are from those of the longest run: the root mean square and the largest of the differences in
standard errors, z, where p is that of both runs together,

    z = (p_1 - p_2) / sqrt(p (1 - p) (1 / ESS_1 + 1 / ESS_2))

which are about 1 and about 3 where the posteriors are the same.
"""

import argparse
import os
import time
import warnings
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of small matrices; more would wait for each other, on the clock

import jax
import numpy as np

warnings.filterwarnings("ignore", category=FutureWarning)

import arviz as az  # noqa: E402
import pymc as pm  # noqa: E402

import discrax as dx  # noqa: E402
from discrax.core.observers import Draws  # noqa: E402
from discrax.extend import Run  # noqa: E402
from discrax.interop.pymc import DiscraxStep, from_model, values_of  # noqa: E402

COLUMNS, MATTER = 200, 10


def regression_data(rows: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Columns of standard normal numbers, of which the first few matter."""
    rng = np.random.default_rng(0)
    X, slopes = rng.normal(size=(rows, COLUMNS)), np.zeros(COLUMNS)
    slopes[:MATTER] = np.linspace(least, 1.5, MATTER) * rng.choice([-1, 1], MATTER)
    return X, X @ slopes + rng.normal(size=rows)


def sampled() -> pm.Model:
    """The regression whose coefficients are sampled."""
    X, y = regression_data(100, 0.4)
    with pm.Model() as model:
        share, noise = pm.Beta("share", 1.0, 9.0), pm.HalfNormal("noise", 2.0)
        gamma: Any = pm.Bernoulli("gamma", share, shape=COLUMNS)
        slope: Any = pm.Normal("slope", 0.0, 1.0, shape=COLUMNS)
        pm.Normal("y", X @ (gamma * slope), noise, observed=y)
    return model


def integrated() -> pm.Model:
    """The one whose coefficients are integrated out."""
    X, y = regression_data(60, 0.3)
    with pm.Model() as model:
        gamma: Any = pm.Bernoulli("gamma", 0.05, shape=COLUMNS)
        pm.MvNormal("y", mu=np.zeros(60), cov=np.eye(60) + 4 * (X * gamma) @ X.T, observed=y)
    return model


class Clock:
    """A callback of pm.sample: the seconds between the last draw of tuning and the last draw, of all chains."""

    def __init__(self):
        self.seconds, self.begin = 0.0, None

    def __call__(self, trace, draw):
        now = time.process_time()
        if not draw.tuning and self.begin is not None:
            self.seconds += now - self.begin
        self.begin = now


def by_pymc(model: pm.Model, make_step, draws: int, tune: int) -> tuple[np.ndarray, float]:
    """Indicators of shape (chains, draws, columns), and the seconds of drawing them."""
    clock = Clock()
    with model:
        trace: Any = pm.sample(
            draws, tune=tune, step=make_step(), chains=2, cores=1, progressbar=False, random_seed=1, callback=clock,
            compute_convergence_checks=False,
        )  # fmt: skip
    return trace.posterior["gamma"].values, clock.seconds


def by_discrax(model: pm.Model, draws: int, tune: int) -> tuple[np.ndarray, float]:
    """The same from `discrax.sample` of the model's target, all chains side by side."""
    target = from_model(model)
    tuned = dx.sample(jax.random.key(1), target, "dmala", num_chains=4, num_warmup=tune, num_samples=10)
    run = Run.prepare(jax.random.key(2), target, tuned.kernel, 4, init=np.asarray(tuned.draws)[:, -1])
    gamma, begin = [], 0.0
    for progress in run.steps(draws + 10, thinning=10, observe=(Draws(),), chunk=10):
        gamma.append(np.asarray(progress.handed[0][0]))
        begin = begin or time.process_time()  # the first chunk is compiled
    return values_of(model, np.concatenate(gamma[1:]).swapaxes(0, 1))["gamma"], time.process_time() - begin


def effective(gamma: np.ndarray) -> np.ndarray:
    """Effective draws of each indicator; one that never changes has none that can be told."""
    ess = [az.ess(gamma[..., j].astype(float), method="mean") for j in range(gamma.shape[-1])]
    return np.minimum(np.array(ess), gamma.shape[0] * gamma.shape[1])


def of_sampled(draws: int, gradients: bool) -> dict[str, tuple[np.ndarray, float]]:
    """Draws of the regression whose coefficients are sampled."""
    model = sampled()
    return {
        '`DiscraxStep(pairs={"gamma": "slope"})`': by_pymc(
            model, lambda: DiscraxStep(pairs={"gamma": "slope"}), draws, 500
        ),
        "`DiscraxStep()`": by_pymc(model, DiscraxStep, draws, 500),
        "`BinaryGibbsMetropolis`": by_pymc(model, lambda: [pm.BinaryGibbsMetropolis([model["gamma"]])], draws, 500),
    }


def of_integrated(draws: int, gradients: bool) -> dict[str, tuple[np.ndarray, float]]:
    """Draws of the one whose coefficients are integrated out; with dmala too, whose gradient misleads it here."""
    model, draws = integrated(), draws // 5
    found = {
        "`DiscraxStep()`": by_pymc(model, DiscraxStep, 2 * draws, 5),
        "`BinaryGibbsMetropolis`": by_pymc(model, lambda: pm.BinaryGibbsMetropolis([model["gamma"]]), draws, 5),
    }
    if gradients:
        found['`DiscraxStep(sampler="dmala")`'] = by_pymc(model, lambda: DiscraxStep(sampler="dmala"), draws, 50)
        found["dmala, 4 chains of `from_model`"] = by_discrax(model, draws, 500)
    return found


PROBLEMS = {"sampled": of_sampled, "integrated": of_integrated}


def main() -> None:
    """Runs them one after another and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help=", ".join(PROBLEMS))
    parser.add_argument("--draws", type=int, default=1500)
    parser.add_argument("--gradients", action="store_true", help="dmala too, where coefficients are integrated out")
    settings = parser.parse_args()
    for problem in settings.problems:
        print(f"\n{problem}")
        compare(PROBLEMS[problem](settings.draws, settings.gradients))


def compare(found: dict[str, tuple[np.ndarray, float]]) -> None:
    """Prints the table of one problem."""
    for name, (gamma, seconds) in found.items():
        print(name, gamma.shape, f"{seconds:.1f} s", f"{gamma.sum(-1).mean():.2f} in the model on average")
    ess = {name: effective(gamma) for name, (gamma, _) in found.items()}
    mean = {name: gamma.mean((0, 1)) for name, (gamma, _) in found.items()}
    best = max(ess, key=lambda name: np.median(ess[name]))
    undecided = (mean[best] > 0.02) & (mean[best] < 0.98)
    if not undecided.any():
        raise SystemExit("The longest run has no indicator that is undecided, so there is nothing to compare.")
    print(f"{undecided.sum()} indicators are undecided; the longest run is {best}.")
    print("| sampler | ESS per second, median | least | r.m.s. z | largest z |\n|---|---|---|---|---|")
    for name, (_, seconds) in found.items():
        mine, other = ess[name][undecided], ess[best][undecided]
        p = (mean[name][undecided] * mine + mean[best][undecided] * other) / (mine + other)
        z = (mean[name] - mean[best])[undecided] / np.sqrt(p * (1 - p) * (1 / mine + 1 / other))
        off = " | " if name == best else f"{np.sqrt(np.mean(z**2)):.2f} | {np.abs(z).max():.1f}"
        print(f"| {name} | {np.median(mine / seconds):.2f} | {(mine / seconds).min():.2f} | {off} |")


if __name__ == "__main__":
    main()
