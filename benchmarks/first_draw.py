"""Seconds from starting Python to a printed summary: the README's example, with nothing compiled before and then again.

    python benchmarks/first_draw.py [--root CHECKOUT]

Every run is a process of its own. `--root` times another checkout beside this one, run by run in turn.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
from discrax.core.program_cache import keep_programs
keep_programs()
import jax
import discrax as dx
target = dx.targets.Ising.lattice((20, 20), coupling=0.15, field=0.1)
result = dx.sample(jax.random.key(0), target, {sampler!r}, num_chains=10, num_warmup=300, num_samples=500)
print(result.summary())
"""
WITHOUT_CACHE = PROGRAM.split("import jax", 1)[1]


def seconds(root: Path, sampler: str, cache: str) -> float:
    """Of one process; `cache` is a folder, or "off"."""
    program = PROGRAM if cache != "off" else "import jax" + WITHOUT_CACHE
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program.format(sampler=sampler)],
        env=os.environ | {"PYTHONPATH": str(root / "src"), "DISCRAX_PROGRAM_CACHE": cache},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begin


def main() -> None:
    """Prints the table of docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="another checkout, for comparison")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    print("| sampler | before | now | with kept programs |\n|---|---:|---:|---:|")
    for sampler in ("pas", "dmala", "auto"):
        before, now, again = [], [], []
        with tempfile.TemporaryDirectory() as cache:
            seconds(here, sampler, cache)
            for _ in range(options.repeats):
                if options.root is not None:
                    before.append(seconds(options.root, sampler, "off"))
                now.append(seconds(here, sampler, "off"))
                again.append(seconds(here, sampler, cache))
        cells = [f"{min(times):.1f}" if times else "" for times in (before, now, again)]
        print(f"| `{sampler}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
