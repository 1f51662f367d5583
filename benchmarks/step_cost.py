"""What a step of every sampler costs and is worth: `python benchmarks/step_cost.py [--chains 100] [--only PART ...]`.

Each kernel is tuned first (300 steps, from a path of one site). Then it is timed: compiled, warm, blocked, the best of
several chunks, for some two seconds. Of the same draws the effective sample size is computed: of the papers' scalar,
the L1 distance to a fixed random state, summed over the chains. "<" stands before an ESS per second whose chains had
fewer than ten effective draws each: the run was too short for them, and the number is too large. The acceptance is that
of the last 50 steps of warm-up. Absolute times compare only within one machine. At the end a table for
docs/performance.md.
"""

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

import discrax as dx
from discrax.core import random
from discrax.core.driver import drive, start
from discrax.core.kernel import sites_per_step
from discrax.core.observers import Draws
from discrax.diagnostics.ess import ess
from discrax.samplers import REGISTRY

WARMUP = 300
EVERY = ("Ising 50x50", "Potts 30x30x4", "FHMM 200x10")  # the tasks on which all samplers are timed
USUAL = ("rwm", "gwg", "pas", "dmala")  # elsewhere


def disc_field(side: int, rng: np.random.Generator) -> np.ndarray:
    """+0.5 in a centred disc of half the area, -0.5 outside, plus U(-1.5, 1.5)."""
    rows, columns = np.indices((side, side)) - (side - 1) / 2
    inside = rows**2 + columns**2 <= side**2 / (2 * np.pi)
    return np.where(inside, 0.5, -0.5) + rng.uniform(-1.5, 1.5, (side, side))


def tasks() -> dict[str, dx.Target]:
    rng = np.random.default_rng(0)
    return {
        "Bernoulli 800": dx.targets.Bernoulli(rng.uniform(0.15, 0.85, 800)),
        "Ising 50x50": dx.targets.Ising.lattice((50, 50), 0.5, disc_field(50, rng)),
        "Ising 100x100": dx.targets.Ising.lattice((100, 100), 0.5, disc_field(100, rng)),
        "Potts 30x30x4": dx.targets.Potts.lattice(
            (30, 30), 4, 1.0, disc_field(30, rng)[..., None] + rng.uniform(-1.5, 1.5, (30, 30, 4))
        ),
        "FHMM 200x10": dx.targets.FHMM.simulated(0, 200, 10),
        "Ising 50x50, coupling 0.15": dx.targets.Ising.lattice((50, 50), 0.15),
    }


def samplers(task: str, target: dx.Target) -> dict[str, tuple[dx.Kernel, bool]]:
    """Every registered kernel that takes the target, and whether to tune it."""
    found = {name: (row.build(), name != "gibbs") for name, row in REGISTRY.items() if row.fits(target)}
    found |= {"gibbs chromatic": (dx.samplers.gibbs("chromatic"), False), "gwg, 1 site": (dx.samplers.gwg(), False)}
    return found if task in EVERY else {name: found[name] for name in USUAL}


def time_kernel(
    target: dx.Target, kernel: dx.Kernel, x: jax.Array, budget: float = 1.0, num_steps: int | None = None
) -> tuple[float, float]:
    """Seconds per step of all chains, and seconds of compilation."""
    keys = random.split(jax.random.key(1), len(x))
    num_steps = num_steps or (50 if jax.default_backend() == "cpu" else 1000)  # in one program
    ensemble, _ = start(target, kernel, x)
    (chunk,) = drive(keys, target, ensemble, 1, chunk=1, thinning=num_steps)
    repeats = int(np.clip(budget / chunk.seconds, 3, 20))
    times = drive(keys, target, ensemble, repeats, chunk=1, thinning=num_steps)
    return min(again.seconds for again in times) / num_steps, chunk.compile_seconds


def measure(target: dx.Target, kernel: dx.Kernel, x: jax.Array, budget: float = 2.0) -> dict:
    """Microseconds per step of all chains, and ESS a second, from chunks of draws that go on for the budget."""
    space = target.space
    reference = np.random.default_rng(0).integers(0, space.num_levels, space.shape)
    thinning = 10 if sites_per_step(kernel, space) <= space.num_sites / 250 else 1
    thinning *= 1 if jax.default_backend() == "cpu" else 10
    keys, (ensemble, _) = random.split(jax.random.key(1), len(x)), start(target, kernel, x)
    times, distances, compile_seconds = [], [], 0.0
    for chunk in drive(keys, target, ensemble, 1000, chunk=25, thinning=thinning, observers=(Draws(),)):
        times.append(chunk.seconds)
        codes = np.asarray(chunk.handed[0])
        distances.append(np.abs(codes - reference).sum(axis=tuple(range(2, codes.ndim))).T)
        compile_seconds += chunk.compile_seconds
        if len(times) >= 4 and sum(times) > budget:
            break
    effective = ess(np.concatenate(distances, axis=1).astype(float))
    seconds = min(times) / (25 * thinning)
    return {
        "microseconds": 1e6 * seconds,
        "ess_per_second": float(effective.sum()) / (len(times) * 25 * thinning * seconds),
        "ess_per_chain": float(effective.mean()),
        "compile_seconds": compile_seconds,
    }


def rows(num_chains: int, only: list[str] | None) -> Iterator[dict]:
    """One a task and sampler, as they are measured."""
    for task, target in tasks().items():
        for name, (kernel, is_tuned) in samplers(task, target).items():
            if only and not any(part in f"{task} {name}" for part in only):
                continue
            row = {"task": task, "sampler": name, "chains": num_chains}
            try:
                result = dx.sample(
                    jax.random.key(0), target, kernel, num_chains=num_chains, num_warmup=WARMUP, num_samples=1,
                    adaptation="auto" if is_tuned else None, keep="moments", progress=False,
                )  # fmt: skip
            except ValueError as error:  # what a sampler says it cannot do, such as the inverse of a huge matrix
                yield row | {"why_not": str(error)}
                continue
            scale = {
                f: float(getattr(result.kernel, f)) for f in ("path_length", "step_size") if hasattr(result.kernel, f)
            }
            acceptance = float(result.warmup_stats["accept_prob"][:, -50:].mean())
            yield row | measure(target, result.kernel, result.states.x) | {"acceptance": acceptance} | scale


def worth(row: dict) -> str:
    """ESS per second, and whether the run was too short for it."""
    return f"{'<' if row['ess_per_chain'] < 10 else ''}{row['ess_per_second']:.3g}"


def table(measured: list[dict]) -> str:
    """Markdown: a sampler a row, a task a column, milliseconds a step and ESS a second in each."""
    lines = []
    for num_chains in dict.fromkeys(row["chains"] for row in measured):
        here = [row for row in measured if row["chains"] == num_chains]
        of_task = dict.fromkeys(row["task"] for row in here)
        lines += [f"| {num_chains} chains | {' | '.join(of_task)} |", f"|---|{'---:|' * len(of_task)}"]
        for name in dict.fromkeys(row["sampler"] for row in here):
            cells = {
                row["task"]: f"{row['microseconds'] / 1000:.3g}, {worth(row)}"
                for row in here
                if row["sampler"] == name and "microseconds" in row
            }
            lines.append(f"| {name} | {' | '.join(cells.get(task, '-') for task in of_task)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, nargs="+", default=[100])
    parser.add_argument("--only", nargs="*", help="parts of 'task sampler' to run")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    arguments = parser.parse_args()
    device = jax.devices()[0]
    print(f"jax {jax.__version__}, {device.device_kind} ({platform.processor() or platform.machine()})")
    titles = f"{'chains':>6} {'us/step':>10} {'ESS/s':>9} {'compile s':>9} {'acceptance':>10}  scale"
    print(f"{'task':27} {'sampler':16} {titles}")
    done, begin = [], time.perf_counter()
    for num_chains in arguments.chains:
        for row in rows(num_chains, arguments.only):
            done.append(row)
            start_of_line = f"{row['task']:27} {row['sampler']:16} {row['chains']:6d} "
            if "why_not" in row:
                print(start_of_line + row["why_not"], flush=True)
            else:
                scale = row.get("path_length", row.get("step_size", float("nan")))
                print(
                    start_of_line + f"{row['microseconds']:10.1f} {worth(row):>9} {row['compile_seconds']:9.2f} "
                    f"{row['acceptance']:10.3f}  {scale:.4g}",
                    flush=True,
                )
            if arguments.out:
                arguments.out.write_text(json.dumps({"device": device.device_kind, "rows": done}, indent=1))
    print(f"{time.perf_counter() - begin:.0f} seconds\n\nMilliseconds a step, ESS a second:\n\n{table(done)}")


if __name__ == "__main__":
    main()
