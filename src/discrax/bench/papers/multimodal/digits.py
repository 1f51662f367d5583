"""A restricted Boltzmann machine of handwritten digits: its classes are modes, and few samplers go from one to another.

The default size needs MNIST; the quick one takes the small digits that come with scikit-learn.
"""

from collections.abc import Iterator

from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import Size, Table, figure, suite

_MEASURES = "discrax.bench.experiments.digits"


def _table(title: str, metric: str) -> Table:
    return Table(title, "", 0, metric, metric, ("machine",), rows=("sampler",))


@suite(
    "multimodal/digits",
    "a restricted Boltzmann machine of handwritten digits (default: MNIST, 200 hidden units): chains that begin at an "
    "image each, by a sampler alone and with a ladder from the frequencies of the pixels",
    _table("Changes of class in 1,000 steps of a chain", "class_changes"),
    _table("Classes that a chain sees", "classes_seen"),
    _table("Draws of which the class can be told", "classes_told"),
    _table("Share of images whose class is told right", "accuracy_of_classes"),
    _table("log Z by the ladder", "log_Z"),
    _table("its standard error", "log_Z_error"),
    _table("log Z by annealed chains of ten times the steps", "annealed_log_Z"),
    _table("its standard error by that", "annealed_error"),
    _table("The difference in standard errors", "log_Z_score"),
    _table("Round trips of a chain", "round_trips"),
    _table("Seconds of drawing", "time_s"),
    figure(
        "Changes of class in 1,000 steps of a chain",
        "bars",
        metric="class_changes",
        panels=("machine",),
        hue=("sampler",),
    ),
    figure("Nine chains over time", "pictures", hue=("sampler",)),
)
def digits(size: Size) -> Iterator[Cell]:
    few = size is Size.QUICK
    data = "digits" if few else "mnist"
    made = {"num_hidden": 16, "num_epochs": 20} if few else {"num_hidden": 200, "num_epochs": 10}
    rungs = 8 if few else 16
    samplers = {
        "Gibbs by layers": (call("discrax.samplers:gibbs", scan="layers"), 0),
        "PAS": (call("discrax.samplers:pas"), 0),
        "DMALA": (call("discrax.samplers:dmala"), 0),
        "PAS, ladder": (call("discrax.samplers:pas"), rungs),
        "DMALA, ladder": (call("discrax.samplers:dmala"), rungs),
    }
    for name, (sampler, num_rungs) in samplers.items():
        yield Cell(
            labels=(("task", "digits"), ("machine", f"{data}, {made['num_hidden']} hidden"), ("sampler", name)),
            target=call(f"{_MEASURES}:machine", data=data, **made),
            sampler=sampler,
            budget=Budget(20, 100, 200, 2) if few else Budget(20, 1_000, 4_000, 5),
            init=call(f"{_MEASURES}:from_images", data=data),
            measure=call(
                f"{_MEASURES}:crossing", data=data, num_rungs=num_rungs, times=10 if name == "PAS, ladder" else 0
            ),
        )
