"""A suite of a few small cells; one of them fails. Tests run it in this process, in others, and kill it."""

from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import Size, Table, figure, suite


@suite(
    "tiny/bits",
    "a sampler, fixed and tuned, on a few bits",
    Table("Jump distance", paper="optimal-scaling", number=5, metric="EJD", ours="EJD", columns=("N", "config")),
    figure("Jump distance", "bars", metric="EJD"),
)
def bits(effort: Size):
    budget = Budget(4, 50 if effort is Size.QUICK else 100, 60)
    for config, low in (("C1", 0.25), ("C2", 0.15)):
        for name, adaptation in (("RWM-1", None), ("ARWM", "auto")):
            yield Cell(
                labels=(("task", "bernoulli"), ("N", "100"), ("config", config), ("sampler", name)),
                target=call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=low),
                sampler=call("discrax.samplers:rwm"),
                adaptation=adaptation,
                budget=budget,
                is_timed=True,
            )
    yield Cell(
        labels=(("task", "bernoulli"), ("N", "100"), ("config", "C1"), ("sampler", "lost")),
        target=call("discrax.bench.experiments.models:bernoulli", num_sites=100, low=2.0),
        sampler=call("discrax.samplers:rwm"),
        budget=budget,
    )
