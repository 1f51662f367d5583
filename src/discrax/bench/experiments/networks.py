"""The residual networks on images that chains are run on: which data sets, and how long each network is trained."""

from discrax.bench.plan.cell import Call, call
from discrax.bench.plan.suite import Size

_UPDATES, _STEPS = {Size.DEFAULT: 5_000, Size.PAPER: 50_000}, {Size.DEFAULT: 40, Size.PAPER: 60}
_SLOW = 10_000  # updates in which the learning rate grows, as the papers have it
TRAINED = (  # what titles say
    f"quick: digits of 8 x 8 pixels; by default networks of {_UPDATES[Size.DEFAULT]:,} updates of "
    f"{_STEPS[Size.DEFAULT]} sampler steps, where the papers have {_UPDATES[Size.PAPER]:,} of {_STEPS[Size.PAPER]}"
)
TRAINED_ALL = (
    f"{TRAINED}; Caltech's begin with the papers' first weights and a learning rate that grows over {_SLOW:,} updates, "
    f"so that it ends at half, the others with He's and {_UPDATES[Size.DEFAULT] // 5:,}"
)


def data_sets(size: Size) -> tuple[str, ...]:
    """Their names; at the quick size digits of 8 x 8 pixels, which come with scikit-learn."""
    return ("digits",) if size is Size.QUICK else ("dynamic_mnist", "omniglot", "caltech")


def network(data: str, size: Size) -> Call:
    """A network trained on a data set, with as much effort as the size allows."""
    address = "discrax.bench.experiments.training:trained_resnet"
    if size is Size.QUICK:
        small = {"width": 16, "num_blocks": 4, "num_updates": 200, "num_steps": 5, "learning_rate": 1e-3}
        return call(address, data=data, **small, buffer_size=1_000)
    # On these silhouettes training diverges with He's first weights (after 547 updates), and with those of the papers'
    # code when the learning rate grows in 1,000 updates (after 861). With both as the papers have them
    # it does not with these steps.
    begins = {"variance": 1 / 3, "num_growing": _SLOW} if data == "caltech" else {}
    return call(
        address,
        data=data, width=64, num_blocks=8, num_updates=_UPDATES[size], num_steps=_STEPS[size], learning_rate=1e-4,
        buffer_size=1_000,  # of 10,000 each chain moves every 100 updates, and on MNIST training diverges
        **begins,
    )  # fmt: skip
