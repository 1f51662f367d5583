"""Suites in this process with several threads, without the command line's extras.

    python benchmarks/gpu_tables.py OUT SIZE WORKERS SUITE [SUITE ...]
"""

import sys
import time
from pathlib import Path

import jax

from discrax.bench.run import run_suites
from discrax.bench.suite import Size


def main() -> None:
    out, size, workers, *names = sys.argv[1:]
    print(jax.devices())
    begin = time.perf_counter()
    report = run_suites(names, Size(size), out=Path(out), workers=int(workers), progress=False)
    print(report, f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
