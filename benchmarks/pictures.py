"""The pictures of the site that explain: what families do on a lattice, where efficiency peaks, how cost grows.

python benchmarks/pictures.py [--only NAME ...]     # writes docs/pictures/NAME.png
"""

import argparse
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import discrax as dx

DOCS = Path(__file__).parents[1] / "docs"
GREY, RED = "#d9d9e3", "#c0392b"
FAMILIES: dict[str, dict[str, Any]] = {
    "families": {
        "rwm": "rwm",
        "gibbs": "gibbs",
        "gwg, 1 site": dx.samplers.gwg(path_length=1.0),
        "pas": "pas",
        "dmala": "dmala",
        "dlmc": "dlmc",
        "ab_trace": "ab_trace",
        "gibbs, chromatic": dx.samplers.gibbs("chromatic"),
    },
    "informed": {"rwm": "rwm", "gwg, 1 site": dx.samplers.gwg(path_length=1.0), "gwg": "gwg", "pas": "pas"},
    "langevin": {"dmala": "dmala", "dula, eps 0.5": dx.samplers.dula(step_size=0.5)},
    "continuous-time": {"dlmc": "dlmc", "dlmcf": "dlmcf"},
    "any-scale": {"ab_first": "ab_first", "ab_shift": "ab_shift", "ab_trace": "ab_trace"},
    "gibbs": {
        "gibbs": "gibbs",
        "block_gibbs, 8 sites": dx.samplers.block_gibbs(8),
        "hamming_ball, 8 sites": dx.samplers.hamming_ball(8, 2),
        "gibbs, chromatic": dx.samplers.gibbs("chromatic"),
    },
}


def lattice(side: int) -> dx.Target:
    return dx.targets.Ising.lattice((side, side), coupling=0.3, field=0.05)


def tuned(target: dx.Target, sampler: Any) -> dx.Result:
    """200 draws of 8 chains after 300 steps of warm-up; of a single-site sampler a kernel that was given stays."""
    fixed = not isinstance(sampler, str)
    warmup: dict[str, Any] = {"adaptation": None} if fixed else {}
    return dx.sample(jax.random.key(1), target, sampler, num_chains=8, num_warmup=300, num_samples=200, **warmup)


def family(name: str) -> None:
    """For each sampler, which sites differ from the start after 1, 10 and 100 steps of its tuned kernel."""
    target, after = lattice(32), (1, 10, 100)
    long = dx.sample(
        jax.random.key(0), target, dx.samplers.gibbs("chromatic"), num_chains=1, num_warmup=0, num_samples=300
    )
    start = np.asarray(long.draws[:, -1])
    rows = FAMILIES[name]
    figure, axes = plt.subplots(len(rows), 4, figsize=(6.4, 1.72 * len(rows) + 0.3), squeeze=False)
    for line, (title, sampler) in zip(axes, rows.items(), strict=True):
        kernel = tuned(target, sampler).kernel
        settings: dict[str, Any] = {"num_chains": 1, "num_warmup": 0, "adaptation": None, "init": start}
        run = dx.sample(jax.random.key(2), target, kernel, num_samples=max(after), **settings)
        line[0].imshow(start[0], cmap=ListedColormap(["#2c3e70", "#f4d58d"]))
        line[0].set_ylabel(title, fontsize=9)
        for axis, steps in zip(line[1:], after, strict=True):
            changed = np.asarray(run.draws[0, steps - 1]) != start[0]
            axis.imshow(changed, cmap=ListedColormap([GREY, RED]), vmin=0, vmax=1)
            axis.set_title(f"{steps} step{'s' * (steps > 1)}: {changed.sum()} of {changed.size}", fontsize=8)
    axes[0, 0].set_title("start", fontsize=8)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    save(figure, name)


def acceptance() -> None:
    """Jump distance a step, as a share of the best, against the acceptance rate, over a grid of scales."""
    coins = dx.targets.Bernoulli(np.random.default_rng(0).uniform(0.15, 0.85, 800))
    spins = dx.targets.Ising.lattice((30, 30), coupling=0.15, field=0.1)
    grids: dict[str, tuple[dx.Target, Any, np.ndarray]] = {
        "pas, 800 bits": (coins, dx.samplers.pas, np.geomspace(25, 600, 12).round()),
        "dmala, 30x30 spins": (spins, dx.samplers.dmala, np.geomspace(0.4, 4, 12)),
        "rwm, 800 bits": (coins, dx.samplers.rwm, np.arange(1.0, 36.0, 3.0)),
    }
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    for (title, (target, build, scales)), style in zip(grids.items(), ("o-", "s-", "^-"), strict=True):
        runs = [one_scale(target, build(scale)) for scale in scales]
        rates, jumps = np.array(runs).T
        axis.plot(rates, jumps / jumps.max(), style, markersize=4, label=title)
    for rate in (0.234, 0.574):
        axis.axvline(rate, color="grey", linestyle=":")
        axis.text(rate + 0.008, 0.3, str(rate), fontsize=9, color="grey")
    axis.set(xlabel="acceptance rate", ylabel="jump distance a step, share of the best", xlim=(0, 1), ylim=(0, 1.05))
    axis.legend(fontsize=8, loc="lower center")
    save(figure, "acceptance")


def one_scale(target: dx.Target, kernel: Any) -> tuple[float, float]:
    """Acceptance and jump distance of a kernel as it is: 20 chains, 100 steps to arrive and 200 to look."""
    run = dx.sample(jax.random.key(0), target, kernel, adaptation=None, num_chains=20, num_warmup=100, num_samples=200)
    return float(run.stats["accept_prob"].mean()), float(run.stats["jump"].mean())


def cost() -> None:
    """Sites that a tuned step moves, measured here; microseconds a step, from the table of docs/performance.md."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
    sides = np.array([8, 16, 32, 64])
    for sampler, style in (("rwm", "^-"), ("gibbs", "v-"), ("pas", "o-"), ("dmala", "s-")):
        jumps = [float(tuned(lattice(int(side)), sampler).stats["jump"].mean()) for side in sides]
        left.loglog(sides**2, jumps, style, label=sampler)
    left.loglog(sides**2, 0.4 * sides ** (4 / 3), "--", color="grey", label="slope 2/3")
    left.set(xlabel="sites", ylabel="sites moved by a tuned step")
    names = ("rwm", "gibbs", "gibbs chromatic", "gwg, 1 site", "gwg", "pas", "dmala")
    table = (DOCS / "performance.md").read_text().split("## One H200")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
    for name in ("gibbs", "gibbs chromatic", "pas", "dmala"):
        points = []
        for row in rows:
            if found := re.match(r"Ising (\d+)x(\d+)", row[0]):
                codes = int(found[1]) * int(found[2]) * int(row[1].replace(",", ""))
                points.append((codes, float(row[2 + names.index(name)])))
        right.loglog(*np.array(sorted(points)).T, "o-", label=name)
    right.set(xlabel="chains x sites, Ising lattices", ylabel="microseconds a step of all chains, H200")
    for axis in (left, right):
        axis.legend(fontsize=8)
    save(figure, "cost")


def stochastic() -> None:
    """The probability that all four spins of a known law are on, as SGDLD finds it with and without its cache."""
    model, sizes = dx.targets.GaussianBernoulli(batch_size=1), np.array([0.05, 0.1, 0.2, 0.4, 0.8])
    figure, axis = plt.subplots(figsize=(6.4, 3.2))
    for cache, style in ((True, "o-"), (False, "s-")):
        found = []
        for size in sizes:
            kernel = dx.samplers.sgdld(step_size=float(size), cache=cache)
            run = dx.sample(jax.random.key(0), model, kernel, num_chains=100, num_warmup=200, num_samples=4000)
            found.append(float(run.mean(lambda x: jnp.sum(x, axis=-1) == 4)))
        axis.plot(sizes, found, style, label="with the cache" if cache else "without")
    axis.axhline(0.125, color="grey", linestyle=":", label="exact: 0.125")
    axis.set(xlabel="step size h, expected jumps a step", ylabel="P(all four on)", xscale="log", ylim=(0, 0.14))
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()
    axis.legend(fontsize=8)
    save(figure, "stochastic")


QUESTIONS = {
    "Must totals hold (k of n on)?": "swap",
    "Is log π known by mini-batches only?": "sgdld",
    "Has log π no gradient?": "gibbs, block_gibbs, rwm",
    "Has it a graph with few colours\n(lattices, sparse Ising, Potts)?": 'gibbs("chromatic")',
    "Is it quadratic, or nearly,\nwith strong couplings?": "ab_trace",
    "Otherwise": 'dmala, dlmc, pas: let "auto" try',
}


def choose() -> None:
    """The questions of the page on choosing, one below the other."""
    figure, axis = plt.subplots(figsize=(6.4, 5.2))
    axis.set(xlim=(0, 10), ylim=(-len(QUESTIONS) + 0.4, 0.6))
    axis.axis("off")
    for row, (question, answer) in enumerate(QUESTIONS.items()):
        for place, text, colour in ((2.6, question, "#eef0fb"), (7.9, answer, "#fdebd0")):
            axis.text(
                place, -row, text, ha="center", va="center", fontsize=9.5, bbox={"boxstyle": "round", "fc": colour}
            )
        axis.annotate("", (6.0, -row), (5.1, -row), arrowprops={"arrowstyle": "->"})
        if row < len(QUESTIONS) - 1:
            axis.text(5.5, -row + 0.06, "yes", ha="center", va="bottom", fontsize=9)
            axis.text(2.75, -row - 0.5, "no", va="center", fontsize=9)
            axis.annotate("", (2.6, -row - 0.7), (2.6, -row - 0.3), arrowprops={"arrowstyle": "->"})
    save(figure, "choose")


def save(figure: Any, name: str) -> None:
    (DOCS / "pictures").mkdir(exist_ok=True)
    path = DOCS / "pictures" / f"{name}.png"
    figure.tight_layout()
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(path.name, path.stat().st_size, flush=True)


def main() -> None:
    every = {"choose": choose, "acceptance": acceptance, "cost": cost, "stochastic": stochastic}
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", choices=[*FAMILIES, *every], default=[*FAMILIES, *every])
    for name in parser.parse_args().only:
        every[name]() if name in every else family(name)


if __name__ == "__main__":
    main()
