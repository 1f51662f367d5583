"""Whether cells of table 2 of "Optimal scaling" train when the learning rate grows as slowly as in the paper.

    python benchmarks/training_warmup.py            (some minutes on an H200, and MNIST in the folder DISCRAX_DATA)

The suite makes 1,000 updates, and its learning rate grows for the first 200 of them; the paper's grows for 10,000 of
50,000. A line for each cell and each of the two: how many updates were made, why training ended, and the gap between
data and chains, in nats, every 100 updates.
"""

import jax

from discrax.bench.execute.request import make_request
from discrax.bench.experiments.training import _network
from discrax.bench.plan.suite import Size
from discrax.learn.inputs import adam
from discrax.learn.training import pcd

CELLS = (("ALBP_1", 20), ("LBP_1-1", 80), ("LBP_2-1", 40), ("ALBP_2", 10))


def main() -> None:
    """Trains a residual network on dynamic MNIST for every cell and both warm-ups."""
    for sampler, K in CELLS:
        only = [sampler, f"K={K}", "dataset=dynamic-mnist"]
        (cell,) = make_request(["optimal-scaling/table02"], Size.DEFAULT, only=only, seeds=1).cells()
        images = cell.target()
        for num_warmup in (200, 10_000):
            trained = pcd(
                jax.random.key(0), _network(images, 64, 8, 0), images, sampler=cell.sampler(), num_steps=K,
                num_updates=cell.budget.num_samples, batch_size=100, buffer_size=1_000, every=50,
                adaptation=cell.make_adapter(), optimiser=adam(1e-4, num_warmup), progress=False,
            )  # fmt: skip
            gaps = " ".join(f"{gap:.1f}" for gap in trained.curves["gap"][1::2])
            ended = trained.stopped or "to the end"
            print(f"{sampler} K={K} warm-up {num_warmup}: {trained.num_updates} updates, {ended}: {gaps}", flush=True)


if __name__ == "__main__":
    main()
