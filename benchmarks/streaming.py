"""Rows that need not fit in memory: the rate of a pass over ten million of them, and what stays resident.

Writes rows and outcomes of a logistic model (840 MB) to a temporary folder and goes through them twice: the stream
alone, and SGDLD on its blocks. Before each pass the system forgets the files, so that they come from the disk.
"""

import argparse
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import discrax as dx
from discrax.core.observers import Moments
from discrax.core.stochastic import steps_per_block
from discrax.data.stream import RowStream, write_rows
from discrax.sampling.run import Run

NUM_ACTIVE = 7
MOST_BYTES = 1_500_000_000


def covariates(begin: int, end: int, num_columns: int) -> np.ndarray:
    return np.random.default_rng([0, begin]).standard_normal((end - begin, num_columns), np.float32)


def outcomes(begin: int, end: int, num_columns: int) -> np.ndarray:
    v = covariates(begin, end, num_columns)[:, :NUM_ACTIVE].sum(axis=1)
    return (np.random.default_rng([1, begin]).random(end - begin) < 1 / (1 + np.exp(-v))).astype(np.float32)


def write(folder: Path, num_rows: int, num_columns: int) -> tuple[Path, Path]:
    needed, free = 4 * num_rows * (num_columns + 1), shutil.disk_usage(folder).free
    if needed > min(MOST_BYTES, free):
        raise SystemExit(
            f"The files would take {needed / 1e6:,.0f} MB, but at most {MOST_BYTES / 1e6:,.0f} MB are written and "
            f"{free / 1e6:,.0f} MB are free in {folder}; choose fewer rows."
        )
    X, y = folder / "X.npy", folder / "y.npy"
    write_rows(X, lambda begin, end: covariates(begin, end, num_columns), num_rows)
    write_rows(y, lambda begin, end: outcomes(begin, end, num_columns), num_rows)
    return X, y


def forget(*paths: Path) -> None:
    """Has the system drop its copy of files in memory; only what has reached the disk can be dropped."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Tenths:
    """Prints a line after each tenth of a pass."""

    def __init__(self, num_blocks: int, block_rows: int):
        self.stops = {round(num_blocks * tenth / 10): 10 * tenth for tenth in range(1, 11)}
        self.block_rows, self.done, self.told = block_rows, 0, 0
        self.started = time.perf_counter()

    def add_block(self) -> None:
        self.done += 1
        if self.done in self.stops:
            rate = (self.done - self.told) * self.block_rows / (time.perf_counter() - self.started)
            print(f"{self.stops[self.done]:4d} %  {rate:12,.0f} rows a second, peak {peak_mib():5.0f} MiB", flush=True)
            self.told, self.started = self.done, time.perf_counter()


def stream_alone(stream: RowStream, num_blocks: int) -> None:
    tenths = Tenths(num_blocks, stream.block_rows)
    for _ in range(num_blocks):
        next(stream)
        tenths.add_block()


def stream_sampled(stream: RowStream, num_blocks: int, batch_size: int, num_chains: int) -> np.ndarray:
    """What `dx.sample` does, a chunk for each block, so that every chain meets every row of it once.

    Returns the inclusion probabilities that each chain found. What it takes to get there, the first block, is left out.
    """
    target = dx.targets.TallLogisticRegression(stream, batch_size=batch_size)
    steps = steps_per_block(target)
    assert steps is not None
    run = Run.prepare(jax.random.key(0), target, "sgdld", num_chains)
    (first,) = run.steps(steps, chunk=steps)
    run, tenths = first.run, Tenths(num_blocks, stream.block_rows)
    for progress in run.steps(num_blocks * steps, chunk=steps, observe=(Moments(),)):
        run = progress.run
        tenths.add_block()
    sites, _ = run.ensemble.observed[0]
    return np.asarray(sites.mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"rows": 10_000_000, "columns": 20, "block": 65_536, "batch": 1024, "chains": 4}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    num_blocks = -(-given.rows // given.block)
    with tempfile.TemporaryDirectory(prefix="discrax-streaming-") as folder:
        X, y = write(Path(folder), given.rows, given.columns)
        size = (X.stat().st_size + y.stat().st_size) / 2**20
        print(f"{given.rows:,} rows, {size:,.0f} MiB; peak before streaming {peak_mib():.0f} MiB")
        forget(X, y)
        print("the stream alone, one pass")
        with RowStream((X, y), given.block) as stream:
            stream_alone(stream, num_blocks)
        forget(X, y)
        print(f"{given.chains} chains of SGDLD with mini-batches of {given.batch} rows, one pass")
        with RowStream((X, y), given.block) as stream:
            found = stream_sampled(stream, num_blocks, given.batch, given.chains)
        print(f"inclusion probabilities by chain; the first {NUM_ACTIVE} columns have effects")
        print(np.array2string(found, precision=2, suppress_small=True, max_line_width=120))


if __name__ == "__main__":
    main()
