"""The residual networks on images that chains are run on: which data sets, and how long each network is trained."""

from discrax.bench.plan.cell import Call, call
from discrax.bench.plan.suite import Size


def data_sets(size: Size) -> tuple[str, ...]:
    """Their names; at the quick size digits of 8 x 8 pixels, which come with scikit-learn."""
    return ("digits",) if size is Size.QUICK else ("dynamic_mnist", "omniglot", "caltech")


def network(data: str, size: Size) -> Call:
    """A network trained on a data set, with as much effort as the size allows."""
    address = "discrax.bench.experiments.training:trained_resnet"
    if size is Size.QUICK:
        small = {"width": 16, "num_blocks": 4, "num_updates": 200, "num_steps": 5, "learning_rate": 1e-3}
        return call(address, data=data, **small, buffer_size=1_000)
    updates, steps = (50_000, 60) if size is Size.PAPER else (5_000, 40)
    # On these silhouettes training diverges with He's first weights (after 547 updates), and with those of the papers'
    # code when the learning rate grows in 1,000 updates (after 861). Not with both as the papers have them.
    begins = {"variance": 1 / 3, "num_growing": 10_000} if data == "caltech" else {}
    return call(
        address,
        data=data, width=64, num_blocks=8, num_updates=updates, num_steps=steps, learning_rate=1e-4,
        buffer_size=1_000,  # of 10,000 each chain moves every 100 updates, and on MNIST training diverges
        **begins,
    )  # fmt: skip
