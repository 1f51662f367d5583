"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces": table 4, the tuned step sizes.

The search is that of `searches`, of 1,000 steps a value as in the paper. It does not say on what model the step sizes
for learning were searched; it is done here on the models whose couplings are to be learnt, from random states: the
Ising lattice, and the convolutional network, which is trained first. Step sizes of print are for codes 0 and 1; on
spins they are 4 times as large.
"""

from collections.abc import Iterator
from typing import Any

from discrax.bench.papers.enhanced_gradient_mcmc.energy_models import TRUTH
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.suite import Size, Table, figure, note, suite

_PAPER = "discrax.bench.papers.enhanced_gradient_mcmc"
_DECADES, _RADII = (0.05, 0.5, 5.0, 50.0, 500.0), (1.0, 5.0, 10.0, 15.0, 20.0)
_GAMMA = call("discrax.bench.papers.rules:GammaRule", window=100)
_SPINS = 4.0
_BUDGETS = {Size.QUICK: Budget(8, 0, 100), Size.DEFAULT: Budget(100, 0, 1_000), Size.PAPER: Budget(100, 0, 1_000)}
_GAMMA_NOISE = (
    "A thousand steps do not settle gamma, so that neighbouring step sizes have other gammas and jumps, which the "
    "error of the choice does not count."
)
_FIRST_SEARCH = (
    "Print's value is that of the first search, of five values; the second, of nine around it, finds longer jumps here."
)
_NOTES = (
    note(
        _FIRST_SEARCH,
        "The first search alone ends at print's value: the mean jump is 3.01 at 0.05 and 0 at the four others; with "
        "the second it is 3.09 at 0.06 and at 0.07.",
        experiment="ordinal-poly2", sampler="NCG",
    ),
    note(
        _FIRST_SEARCH,
        "The first search alone ends at print's value: the mean jump is 1.97 at 0.05 and 0 at the four others.",
        experiment="ordinal-poly4", sampler="NCG",
    ),
    note(
        _FIRST_SEARCH,
        "The first search alone ends at print's value: the mean jump is 0.01 at 0.05, 2.14 at 0.5 and at most 0.75 at "
        "the three others.",
        experiment="ising-lattice", sampler="NCG",
    ),
    note(
        "The released code has 0.3, and with 0.03 hardly anything is proposed.",
        "the mean jump is 0.0003 at 0.05, 1.01 at 0.3 and 1.06 at 0.4",
        experiment="bayesian-regression", sampler="NCG",
    ),
    note(
        "The paper's second search begins at the best radius of the first, 15; ours goes below it too.",
        "the mean jump is 0.712 at 14, 0.705 at 15 and 0.672 at 16, so that from 15 on 15 is the best",
        experiment="ordinal-poly2", sampler="Ordinal-GWG",
    ),
    note(
        "Large step sizes are all alike, so that chance chooses among them, and the error of the choice is that of one "
        "search's chains.",
        "The mean jump is 4.64 to 4.65 at each of 10, 20, ... 90 and at 500, +- 0.009.",
        sampler="PAVG", experiment="ordinal-poly2",
    ),
    note(
        _GAMMA_NOISE,
        "After 10,000, with 100 chains (benchmarks/step_searches.py), the mean jump is 1.31 at 0.5 and 2.11 at 5, and "
        "from 200 on 2.28 to 2.32 +- 0.02 (2.32 at 200, 2.30 at 1000), but 1.97 at 400, which is gamma's.",
        sampler="PAVG", experiment="bayesian-regression",
    ),
    note(
        _GAMMA_NOISE,
        "After 10,000 (benchmarks/step_searches.py) the mean jump is 1.85 at 0.04, 1.86 at 0.05, 1.78 at 0.06, 1.81 at "
        "0.07, 1.87 at 0.08 and 1.86 at 0.09, each +- 0.01: what is left of the differences is gamma's.",
        sampler="PAVG", experiment="ordinal-poly4",
    ),
    note(_GAMMA_NOISE, sampler="PAVG"),
    note("On what model the step sizes for learning were searched is not said.", experiment="ising-lattice"),
    note("On what model the step sizes for learning were searched is not said.", experiment="conv-ebm"),
)  # fmt: skip


def _experiments(size: Size) -> dict[str, tuple[Call, Call | None, dict[str, Call], float]]:
    """Target, first states, samplers, and the unit of step sizes."""

    def samplers(pavg: Call) -> dict[str, Call]:
        return {"NCG": call("discrax.samplers:dmala"), "AVG": call("discrax.samplers:avg"), "PAVG": pavg}

    radii = {"Ordinal-GWG": call("discrax.samplers:gwg_ordinal"), "MH-Uniform": call("discrax.samplers:mh_uniform")}
    found: dict[str, Any] = {}
    for task in ("poly2", "poly4"):
        mixture, around = call(f"discrax.targets:PolynomialMixture.{task}"), call(f"{_PAPER}.kernels:near_level_eleven")
        # M is estimated at 0.02, as in the authors' code.
        found[f"ordinal-{task}"] = mixture, around, samplers(call("discrax.samplers:pavg", step_size=0.02)) | radii, 1.0
    regression = call("discrax.targets:SparseLinearRegression.simulated", seed=0)
    pavg = call("discrax.samplers:pavg", step_size=1000.0)
    found["bayesian-regression"] = regression, call(f"{_PAPER}.kernels:only_second"), samplers(pavg), 1.0
    pavg = call(f"{_PAPER}.searches:pavg_of_lattice", step_size=1.0)
    found["ising-lattice"] = call(f"{_PAPER}.searches:true_lattice"), None, samplers(pavg), _SPINS
    network, pavg = call(f"{_PAPER}.convolutional:network", **TRUTH[size]), f"{_PAPER}.searches:pavg_of_network"
    found["conv-ebm"] = network, None, samplers(call(pavg, step_size=0.1, **TRUTH[size])), 1.0
    return found


@suite(
    "enhanced-gradient-mcmc/table04",
    "step sizes and radii with the longest jumps of 5 and then 9 values, each with 1,000 steps of about 100 chains "
    "from the same first states",
    *(
        Table(
            f"{words} with the longest jumps", "enhanced-gradient-mcmc", 4, metric, metric, ("experiment",),
            rows=("sampler",), notes=_NOTES,
        )
        for metric, words in (("epsilon", "Step size"), ("radius", "Radius"))
    ),
    figure("Mean jump against step size or radius", "errors", metrics=("jump",), panels=("experiment",), logx=True,
           logy=True, xlabel="step size or radius", ylabel="mean jump"),
)  # fmt: skip
def table04(effort: Size) -> Iterator[Cell]:
    for experiment, (target, init, samplers, unit) in _experiments(effort).items():
        for name, sampler in samplers.items():
            is_radius = name in ("Ordinal-GWG", "MH-Uniform")
            how: dict[str, Any] = {"knob": "step_size", "values": _DECADES, "metric": "epsilon", "unit": unit}
            yield Cell(
                labels=(("task", "tuned-step-sizes"), ("experiment", experiment), ("sampler", name)),
                target=target,
                sampler=sampler,
                adaptation=_GAMMA if name == "PAVG" else None,
                budget=_BUDGETS[effort],
                measure=call(
                    f"{_PAPER}.searches:longest_jumps",
                    **(how | {"knob": "radius", "values": _RADII, "metric": "radius"} if is_radius else how),
                ),
                init=init,
            )
