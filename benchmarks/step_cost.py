"""Microseconds per step of every sampler: `python benchmarks/step_cost.py [--chains 1 100 1000] [--out FILE]`.

Each kernel is tuned first (300 steps, from a path of one site), then timed: compiled, warm, blocked, best of several.
The acceptance that warm-up reached in its last 50 steps is printed beside it. Absolute times compare only within one
machine.
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

WARMUP = 300


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
    }


def samplers() -> dict[str, tuple[dx.Kernel, bool]]:
    """Kernel, and whether to tune it."""
    return {
        "rwm": (dx.samplers.rwm(), True),
        "gibbs": (dx.samplers.gibbs(), False),
        "gibbs chromatic": (dx.samplers.gibbs("chromatic"), False),
        "gwg, 1 site": (dx.samplers.gwg(), False),
        "gwg": (dx.samplers.gwg(), True),
        "pas": (dx.samplers.pas(), True),
        "dmala": (dx.samplers.dmala(), True),
    }


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


def rows(num_chains: int, only: list[str] | None) -> Iterator[dict]:
    for task, target in tasks().items():
        for name, (kernel, is_tuned) in samplers().items():
            if only and not any(part in f"{task} {name}" for part in only):
                continue
            result = dx.sample(
                jax.random.key(0), target, kernel, num_chains=num_chains, num_warmup=WARMUP, num_samples=1,
                adaptation="auto" if is_tuned else None, keep="moments", progress=False,
            )  # fmt: skip
            seconds, compile_seconds = time_kernel(target, result.kernel, result.states.x)
            scale = {
                f: float(getattr(result.kernel, f)) for f in ("path_length", "step_size") if hasattr(result.kernel, f)
            }
            yield {
                "task": task,
                "sampler": name,
                "chains": num_chains,
                "microseconds": 1e6 * seconds,
                "compile_seconds": compile_seconds,
                "acceptance": float(result.warmup_stats["accept_prob"][:, -50:].mean()),
                **scale,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--only", nargs="*", help="parts of 'task sampler' to run")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    arguments = parser.parse_args()
    device = jax.devices()[0]
    print(f"jax {jax.__version__}, {device.device_kind} ({platform.processor() or platform.machine()})")
    print(f"{'task':15} {'sampler':16} {'chains':>6} {'us/step':>10} {'compile s':>9} {'acceptance':>10}  scale")
    done, begin = [], time.perf_counter()
    for num_chains in arguments.chains:
        for row in rows(num_chains, arguments.only):
            done.append(row)
            scale = row.get("path_length", row.get("step_size", float("nan")))
            print(
                f"{row['task']:15} {row['sampler']:16} {row['chains']:6d} {row['microseconds']:10.1f} "
                f"{row['compile_seconds']:9.2f} {row['acceptance']:10.3f}  {scale:.4g}",
                flush=True,
            )
            if arguments.out:
                arguments.out.write_text(json.dumps({"device": device.device_kind, "rows": done}, indent=1))
    print(f"{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
