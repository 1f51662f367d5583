"""Whether networks of table 2 of "Optimal scaling" train with 10,000 chains in place of the suite's 1,000.

    python benchmarks/training_chains.py [--seed 1]     (some minutes on an H200, and MNIST in the folder DISCRAX_DATA)

The released code's default is 1,000, scripts of the same authors for an earlier paper have 10,000. A line for each cell
and each of the two: how many updates were made, why training ended, and the gap between data and chains, in nats, every
100 updates. No gap is too large here: training ends when a number is none.
"""

import argparse

import jax

from discrax.bench.execute.request import make_request
from discrax.bench.experiments.training import _network
from discrax.bench.plan.suite import Size
from discrax.learn.inputs import adam
from discrax.learn.training import pcd

CELLS = (("LBP_2-1", 20), ("LBP_2-1", 40), ("ALBP_1", 20), ("ALBP_2", 5), ("ALBP_2", 10))


def main() -> None:
    """Trains a residual network on dynamic MNIST for every cell and both numbers of chains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    for sampler, K in CELLS:
        only = [sampler, f"K={K}", "dataset=dynamic-mnist"]
        (cell,) = make_request(["optimal-scaling/table02"], Size.DEFAULT, only=only, seeds=1).cells()
        images, its = cell.target(), dict(cell.measure.arguments)
        for buffer_size in (its["buffer_size"], 10_000):
            trained = pcd(
                jax.random.key(seed), _network(images, its["width"], its["num_blocks"], seed, its["variance"]), images,
                sampler=cell.sampler(), num_steps=K, num_updates=cell.budget.num_samples, batch_size=100,
                buffer_size=buffer_size, every=50, adaptation=cell.make_adapter(), largest_gap=1e30, progress=False,
                optimiser=adam(its["learning_rate"], its["num_growing"]),
            )  # fmt: skip
            gaps = " ".join(f"{gap:.1f}" for gap in trained.curves["gap"][1::2])
            ended = trained.stopped or "to the end"
            print(f"{sampler} K={K}, {buffer_size} chains: {trained.num_updates} updates, {ended}: {gaps}", flush=True)


if __name__ == "__main__":
    main()
