"""Goshvadi et al. (2023), "DISCS", appendix A.1: weight functions of the informed samplers, models of figures 7-11.

The paper's text names the study and the four functions; its figures show it model by model, and so do these suites,
apart from the others so that those stay readable. Gibbs sampling by colours, which has no weight function, stands
beside each sampler: the cells are those of the figures.
"""

from collections.abc import Iterator

from discrax.bench.papers.discs import sampling as discs
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.rows import Derive, Row, only, relabel
from discrax.bench.plan.suite import Size, Suite, suite

WEIGHTS = {"sqrt(t)": "sqrt", "t/(t+1)": "ratio", "min(1,t)": "min", "max(1,t)": "max"}


_GIBBS = "Gibbs (chromatic)"


def _beside_gibbs(task: str) -> Derive:
    """The rows of the weight functions, and those of Gibbs sampling once for each sampler, in place of a weight."""

    def derive(rows: list[Row]) -> list[Row]:
        found = only(task=f"{task}-weights")(rows)
        for row in only(task=task, sampler=_GIBBS)(rows):
            found += [relabel(row, sampler=name, weight_fn=_GIBBS) for name in discs.INFORMED]
        return found

    return derive


def _weights(task: str, title: str) -> Suite:
    label, its = discs.MODELS[task]

    def cells(effort: Size) -> Iterator[Cell]:
        for each in its:
            for name in discs.INFORMED:
                for shown, weight in WEIGHTS.items():
                    labels = {"task": f"{task}-weights", label: each.label, "sampler": name, "weight_fn": shown}
                    yield Cell(
                        labels=tuple(labels.items()),
                        target=each.target,
                        sampler=discs.weighted(name, weight),
                        budget=discs.budget(effort, each.sites, discs.SHORT),
                        is_timed=True,
                    )
        yield from (cell for cell in discs.models(task, effort) if cell.label("sampler") == _GIBBS)

    shown = {"hue": "weight_fn", "derive": _beside_gibbs(task)}
    exhibits = discs.comparison(title, f"{task}-weights", label, "sampler", **shown)
    return suite(f"discs/weights-{task}", f"four weight functions, {title} ({discs.AS_LONG})", *exhibits)(cells)


bernoulli = _weights("bernoulli", "independent bits")
categorical = _weights("categorical", "2,000 independent categories")
ising = _weights("ising", "Ising 50 x 50")
potts = _weights("potts", "Potts 30 x 30")
fhmm = _weights("fhmm", "FHMM")

ALIASES = {"discs/weights": tuple(f"discs/weights-{task}" for task in discs.MODELS)}
