"""Sun et al. (2022), "Optimal scaling for locally balanced proposals": tables 3 and 4.

How many sites N does a target of equal bits need for paths to have an acceptance rate of 0.574? A path changes from 1
to N sites, and the more it changes the less it is accepted (appendix B.2), so the rate is out of reach

    p = 1/2 - eps    where all N sites at once are accepted more often: N grows like eps^-2      (table 3)
    p = eps          where a single site is accepted less often:        N grows like eps^-1      (table 4)

and N is where that path is accepted at 0.574. The paper says no more of how its numbers were found.

Paths are measured at N = eps^-2 / 10 or eps^-1 / 2, which are the numbers in print, and at this times powers of the
root of two; N is interpolated in log N between the two on either side of 0.574. Chains begin with exact draws, so that
every step of theirs counts; one of all N sites goes to and fro between two states, so that there are many chains. (One
step in ten of `PAS` is a site longer or shorter, of all N sites shorter, lest chains go to and fro for ever. At the few
sites of eps = 0.1 this adds 0.010 to 0.014 to the rate.)
"""

import math
from collections.abc import Iterator
from itertools import pairwise

from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.rows import Row, group_by, without
from discrax.bench.plan.suite import Size, Suite, Table, figure, note, suite
from discrax.samplers.locally_balanced import PAS

_TARGETS = "discrax.bench.papers.optimal_scaling.targets"
_NEEDED = "N_needed_for_0.574"
_BUDGETS = {
    Size.QUICK: Budget(1_000, 0, 2),
    Size.DEFAULT: Budget(20_000, 0, 2),
    Size.PAPER: Budget(200_000, 0, 2),
}
_NOTES = {  # the rates at these N are in the figures
    3: note(
        "How print judged is not said. Its numbers are what N doubled until 0.574 is in reach would give.",
        "of 5, 10, 20, ... the first where all sites at once are accepted at less than 0.6 are 10, 40, 160 and 640, as "
        "in print: there at 0.515, 0.502, 0.499 and 0.496, at half of these N at 0.648, 0.642, 0.634 and 0.632",
    ),
    4: note(
        "How print judged is not said. Its numbers are what N doubled until 0.574 is all but in reach would give.",
        "of 25, 50, 100, ... the first where one site is accepted at more than 0.54 are 50, 100, 200 and 400, as in "
        "print: there at 0.555, 0.553, 0.550 and 0.551, at half of these N at 0.364, 0.362, 0.361 and 0.360",
    ),
}


def sites_needed(rows: list[Row]) -> list[Row]:
    """For each sampler and eps the N at which 0.574 of the steps are accepted, out of its rows at several N.

    With the rates a and a' of two neighbours N < N' on either side of it

        log N* = log N + (0.574 - a) / (a' - a) log (N' / N),     std N* = N* std a / |slope of a in log N|
    """
    measured = [row for row in rows if row["metric"] == "acceptance" and row["value"] is not None]
    found = [without(row, "N") for row in rows if row["status"] == "failed"]
    for group in group_by(measured, lambda row: (row["seed"], *sorted(without(row, "N")["labels"].items()))).values():
        for low, high in pairwise(sorted(group, key=_sites)):
            if min(low["value"], high["value"]) <= PAS.target_rate < max(low["value"], high["value"]):
                slope = (high["value"] - low["value"]) / math.log(_sites(high) / _sites(low))
                needed = _sites(low) * math.exp((PAS.target_rate - low["value"]) / slope)
                std = needed * max(low["std"], high["std"]) / abs(slope)
                found.append(without(low, "N") | {"metric": _NEEDED, "value": needed, "std": std})
                break
    return found


def _sites(row: Row) -> int:
    return int(row["labels"]["N"])


def _suite(number: int, regime: str, path: str, eps: tuple[float, ...]) -> Suite:
    @suite(
        f"optimal-scaling/table{number:02}",
        f"sites that a target of equal bits, {regime}, needs for an acceptance rate of 0.574 to be within reach: where "
        f"a path of {path} is accepted at that rate (the paper does not say how it judged)",
        Table(
            f"Sites with which a path of {path} is accepted at 0.574", "optimal-scaling", number, _NEEDED, _NEEDED,
            ("eps",), notes=(_NOTES[number],), derive=sites_needed,
        ),
        figure(f"Acceptance of a path of {path}", "curve", x="N", y="acceptance", panels=("eps",), logx=True),
    )  # fmt: skip
    def cells(effort: Size) -> Iterator[Cell]:
        for each in eps:
            prob, in_print = (0.5 - each, 0.1 / each**2) if number == 3 else (each, 0.5 / each)
            for num_sites in (round(in_print * 2 ** (half / 2)) for half in range(-2, 2)):
                yield Cell(
                    labels=(
                        ("task", "bernoulli-iid"), ("regime", regime), ("eps", f"{each:g}"), ("N", str(num_sites)),
                        ("sampler", "LBP"), ("weight_fn", "sqrt(t)"),
                    ),
                    target=call(f"{_TARGETS}:equal_bits", num_sites=num_sites, prob=prob),
                    sampler=call(
                        "discrax.samplers:pas", path_length=float(num_sites if number == 3 else 1), balancing="sqrt"
                    ),
                    budget=_BUDGETS[effort],
                    adaptation=None,
                    measure=call("discrax.bench.papers.optimal_scaling.measures:acceptance"),
                    init=call(f"{_TARGETS}:from_equal_bits", prob=prob),
                )  # fmt: skip

    return cells


table03 = _suite(3, "p=0.5-eps", "all sites", (0.1, 0.05, 0.025, 0.0125))
table04 = _suite(4, "p=eps", "one site", (0.01, 0.005, 0.0025, 0.00125))
