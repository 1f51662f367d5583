"""Does `sampler="auto"` choose well? For every kind of target, all candidates in full and what the pilot took.

    python benchmarks/auto.py [--chains 20] [--seconds 20] [--out FILE]

The full runs have 500 steps of warm-up and 500 draws; scores are jump distance per second, and effective sample size of
log pi per second, of all chains.
"""

import argparse
import json
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

import discrax as dx
from discrax.sampling.auto import candidates_for


def targets() -> dict[str, dx.Target]:
    rng = np.random.default_rng(0)
    spins = rng.normal(size=(100, 100)) / 10
    rotation = np.linalg.qr(rng.normal(size=(100, 100)))[0]
    gaussian = -(rotation * np.linspace(0.3, 3, 100)) @ rotation.T
    pattern = jnp.asarray(rng.normal(size=(40, 60)) / 8)

    def regression(e):
        return -jnp.sum(jnp.logaddexp(0.0, pattern @ e)) + 0.3 * jnp.sum(pattern[:10] @ e)

    def quartic(e):
        return -0.05 * jnp.sum(e**4) + 0.5 * jnp.sum(e[1:] * e[:-1])

    def words(e):
        return 0.5 * jnp.sum(jnp.sin(3 * jnp.arange(12.0)) * jnp.sum(e[1:] * jnp.roll(e, 1, axis=1)[:-1], axis=0))

    return {
        "Bernoulli 800": dx.targets.Bernoulli(rng.uniform(0.15, 0.85, 800)),
        "Categorical 200x8": dx.targets.Independent(rng.normal(size=(200, 8))),
        "Ising 50x50, 0.2": dx.targets.Ising.lattice((50, 50), 0.2, 0.1),
        "Ising 20x20, 0.44": dx.targets.Ising.lattice((20, 20), 0.4407),
        "Ising BA 400": dx.targets.Ising.graph(nx.barabasi_albert_graph(400, 4, seed=0), 0.1),
        "Ising dense 100": dx.targets.Ising.dense((spins + spins.T) / 2 * (1 - np.eye(100))),
        "QUBO 100": dx.targets.Quadratic.from_qubo(rng.normal(size=(100, 100)) / 5),
        "Potts 30x30x4": dx.targets.Potts.lattice((30, 30), 4, 0.7),
        "Gaussian 100x21": dx.targets.Quadratic(dx.Ordinal(100, np.arange(21.0)), gaussian, -10 * gaussian.sum(1)),
        "regression 60": dx.Target.from_log_prob(regression, dx.Binary(60)),
        "quartic 30x13": dx.Target.from_log_prob(quartic, dx.Ordinal(30, np.linspace(-3, 3, 13))),
        "chain 50x12": dx.Target.from_log_prob(words, dx.Categorical(50, 12)),
    }


def scores(result: dx.Result) -> tuple[float, float]:
    steps_per_second = result.num_draws / result.seconds
    jump = float(result.stats["jump"].mean()) * result.num_chains * steps_per_second
    ess = float(dx.diagnostics.ess(result.stats["lp"]).sum()) / result.seconds
    return jump, ess


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for title, target in targets().items():
        if arguments.only and not any(part in title for part in arguments.only):
            continue
        settings: dict[str, Any] = {
            "num_chains": arguments.chains,
            "num_warmup": 500,
            "num_samples": 500,
            "progress": False,
        }
        full = {}
        for name, sampler in dict(candidates_for(target, differentiable=True)).items():
            full[name] = scores(dx.sample(jax.random.key(1), target, sampler, **settings))
        settings["num_samples"] = 1
        spec = dx.auto(arguments.seconds)
        report = dx.sample(jax.random.key(0), target, spec, **settings).reports[0]
        best = max(full, key=lambda name: full[name][0])
        share = full[report.chosen][0] / full[best][0]
        rows.append({"target": title, "chosen": report.chosen, "best": best, "share": share, "full": full})
        print(
            f"{title:18} chose {report.chosen:17} in {report.seconds:4.0f} s, best {best:17} share {share:5.2f}   "
            + ", ".join(f"{name} {jump:.3g} ({ess:.3g})" for name, (jump, ess) in full.items())
            + (f"   not tried: {', '.join(report.left_out)}" if report.left_out else ""),
            flush=True,
        )
    print(f"smallest share {min(row['share'] for row in rows):.2f}")
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
