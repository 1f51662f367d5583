"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces": errors against a law that is known.

Step sizes are those of the paper's table 4, found by its search. The M of PAVG is estimated in the first third of
warm-up, and the rest of it tunes gamma by the paper's rule; "PAVG (ours)" tunes its step size, by our rule.

The paper gives every sampler 10 minutes. Here every sampler makes the same steps; what each has after equal seconds is
read off the same chains, up to the time that the fastest took, and stands beside what each has after equal steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from discrax.bench.papers.enhanced_gradient_mcmc.errors import equal_seconds, equal_steps
from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import only
from discrax.bench.plan.suite import Figure, Size, Table, figure, suite

_ERRORS = "discrax.bench.papers.enhanced_gradient_mcmc.errors"
_KERNELS = "discrax.bench.papers.enhanced_gradient_mcmc.kernels"
NCG, AVG = "discrax.samplers:dmala", "discrax.samplers:avg"
ORDINAL = {
    "poly2": {"NCG": 0.05, "AVG": 0.02, "PAVG": 1000.0, "Ordinal-GWG": 16, "MH-uniform": 2},
    "poly4": {"NCG": 0.05, "AVG": 0.02, "PAVG": 0.06, "Ordinal-GWG": 8, "MH-uniform": 1},
}
_GAMMA = call("discrax.bench.papers.rules:GammaRule", window=100)
_FIRST_STEP = 0.02  # of PAVG on mixtures until M is estimated, in the released code


def _both_pavg(first_step: float, step_size: float) -> dict[str, tuple[Call, Any]]:
    return {
        "PAVG": (call(f"{_KERNELS}:PrintedPAVG", first_step=first_step, step_size=step_size), _GAMMA),
        "PAVG (ours)": (call("discrax.samplers:pavg", step_size=first_step), "auto"),
    }


def _ordinal_samplers(task: str) -> dict[str, tuple[Call, Any]]:
    found = ORDINAL[task]
    return {
        "NCG": (call(NCG, step_size=found["NCG"]), None),
        "AVG": (call(AVG, step_size=found["AVG"]), None),
        **_both_pavg(_FIRST_STEP, found["PAVG"]),
        "GWG": (call("discrax.samplers:gwg"), None),
        "Ordinal-GWG": (call("discrax.samplers:gwg_ordinal", radius=found["Ordinal-GWG"]), None),
        "MH-uniform": (call("discrax.samplers:mh_uniform", radius=found["MH-uniform"]), None),
        "Gibbs": (call("discrax.samplers:gibbs"), None),
    }


_ORDINAL_BUDGETS = {
    Size.QUICK: Budget(16, 1_500, 1_000, 4),
    Size.DEFAULT: Budget(100, 10_000, 4_000, 25),
    Size.PAPER: Budget(100, 50_000, 10_000, 60),
}
_SECONDS, _STEPS = "equal seconds", "equal steps"
_OF_MIXTURE, _OF_REGRESSION = ("marginal_KL", "covariance_error"), ("marginal_error", "pairwise_error")


def _panel(how: str, metrics: tuple[str, ...], title: str, **labels: str) -> tuple[Figure, ...]:
    """Errors after equal seconds or steps, and the ESS per second or step of the chains."""
    chosen = equal_seconds if how == _SECONDS else equal_steps
    return (
        figure(f"Errors after {how}{title}", "errors", chosen(*metrics, **labels), metrics=metrics, logx=True,
               xlabel="seconds" if how == _SECONDS else "steps"),
        figure(f"ESS per {how[6:-1]} of the chains{title}", "boxes", only(**labels),
               metric="ESS_chain_t" if how == _SECONDS else "ESS_chain"),
    )  # fmt: skip


def _ordinal_panels(*ways: str) -> tuple[Figure, ...]:
    titles = {"poly2": ", second order", "poly4": ", fourth order"}
    return tuple(
        each for task, title in titles.items() for how in ways for each in _panel(how, _OF_MIXTURE, title, task=task)
    )


@suite(
    "enhanced-gradient-mcmc/figure02",
    "20-dimensional mixtures of polynomials: marginal divergence, covariance error and ESS, after equal seconds as in "
    "the paper (the time of the fastest sampler's steps; 10 minutes there) and after equal steps",
    *_ordinal_panels(_SECONDS, _STEPS),
)
def figure02(effort: Size) -> Iterator[Cell]:
    for task in ORDINAL:
        for name, (built, adaptation) in _ordinal_samplers(task).items():
            yield Cell(
                labels=(("task", task), ("sampler", name)),
                target=call(f"discrax.targets:PolynomialMixture.{task}"),
                sampler=built,
                adaptation=adaptation,
                budget=_ORDINAL_BUDGETS[effort],
                measure=call(f"{_ERRORS}:mixture_errors"),
                init=call(f"{_KERNELS}:near_level_eleven"),
                is_timed=True,
            )


@suite(
    "enhanced-gradient-mcmc/figure08",
    "20-dimensional mixtures of polynomials: marginal divergence, covariance error and ESS, after equal steps",
    *_ordinal_panels(_STEPS),
)
def figure08(effort: Size) -> Iterator[Cell]:
    yield from figure02.cells(effort)


_REGRESSION = {
    "NCG, 0.03": (call(NCG, step_size=0.03), None),
    "NCG, 0.3": (call(NCG, step_size=0.3), None),
    "AVG": (call(AVG, step_size=1000.0), None),
    **_both_pavg(1000.0, 1000.0),
    "GWG": (call("discrax.samplers:gwg"), None),
    "Gibbs": (call("discrax.samplers:gibbs"), None),
}


@suite(
    "enhanced-gradient-mcmc/figure04",
    "100-dimensional sparse Bayesian regression: errors of marginals and pairs, and ESS, after equal seconds as in the "
    "paper (the time of the fastest sampler's steps; 10 minutes there) and after equal steps; NCG has the step size of "
    "table 4, 0.03, with which a site is proposed about once in e^(1 / 0.06) = 2e7 steps, and that of the released "
    "code, 0.3",
    *_panel(_SECONDS, _OF_REGRESSION, ""),
    *_panel(_STEPS, _OF_REGRESSION, ""),
)
def figure04(effort: Size) -> Iterator[Cell]:
    budgets = {
        Size.QUICK: Budget(16, 600, 600, 5),
        Size.DEFAULT: Budget(100, 5_000, 4_000, 10),
        Size.PAPER: Budget(100, 20_000, 10_000, 20),
    }
    for name, (built, adaptation) in _REGRESSION.items():
        if name == "NCG, 0.03" and effort is Size.QUICK:
            continue  # nothing would move
        yield Cell(
            labels=(("task", "sparse-regression"), ("sampler", name)),
            target=call("discrax.targets:SparseLinearRegression.simulated", seed=0),
            sampler=built,
            adaptation=adaptation,
            budget=budgets[effort],
            measure=call(f"{_ERRORS}:regression_errors"),
            init=call(f"{_KERNELS}:only_second"),
            is_timed=True,
        )


@suite(
    "enhanced-gradient-mcmc/figure09",
    "100-dimensional sparse Bayesian regression: errors of marginals and pairs, and ESS, after equal steps",
    *_panel(_STEPS, _OF_REGRESSION, ""),
)
def figure09(effort: Size) -> Iterator[Cell]:
    yield from figure04.cells(effort)


_STRENGTHS = tuple(tenths / 10 for tenths in range(-5, 6))
_EPS = 1000.0  # of both samplers, in the released code
_CUBIC = {
    "PAVG": call(f"{_KERNELS}:pavg_of_pairs", step_size=_EPS),
    "AVG": call(AVG, step_size=_EPS),
}


def _cubic(name: str, strength: float, task: str, budget: Budget, measure: str) -> Cell:
    return Cell(
        labels=(("task", task), ("strength", f"{strength:g}"), ("sampler", name)),
        target=call("discrax.targets:CubicIsing.lattice", side=4, strength=strength),
        sampler=_CUBIC[name],
        adaptation=None,
        budget=budget,
        measure=call(f"{_ERRORS}:{measure}"),
    )


@suite(
    "enhanced-gradient-mcmc/figure11",
    "Ising with third-order terms of strength -0.5 to 0.5, step size 1000: error of pairs after 60,000 steps (a tenth "
    "of them burn-in, every 54th of the others kept), and of AVG after twice as many",
    figure("Error of pairs against the strength of triples", "curve", x="strength", y="pairwise_error_end", logy=True,
           hue=("sampler", "task")),
)  # fmt: skip
def figure11(effort: Size) -> Iterator[Cell]:
    once = Budget(16, 300, 500, 4) if effort is Size.QUICK else Budget(100, 6_000, 1_000, 54)
    twice = replace(once, num_warmup=2 * once.num_warmup, num_samples=2 * once.num_samples)
    for strength in _STRENGTHS:
        for name in _CUBIC:
            yield _cubic(name, strength, "cubic-ising", once, "enumerated_errors")
        yield _cubic("AVG", strength, "twice the steps", twice, "enumerated_errors")


@suite(
    "enhanced-gradient-mcmc/figure12",
    "Ising with third-order terms, step size 1000: the distance moved a step from the first one on, without burn-in",
    figure("Mean distance moved a step", "errors", metrics=("jump",), panels=("strength",), logx=True, logy=True,
           xlabel="steps", ylabel="mean L1 distance of a step"),
)  # fmt: skip
def figure12(effort: Size) -> Iterator[Cell]:
    budget = Budget(16, 0, 2_000) if effort is Size.QUICK else Budget(100, 0, 60_000)
    for strength in (0.3, 0.5):
        for name in _CUBIC:
            yield _cubic(name, strength, "burn-in", budget, "jump_trace")


_SIZES, _BALL = {"d": (50, 100, 200), "radius": range(1, 7)}, (("task", "hamming-ball-size"),)


@suite(
    "enhanced-gradient-mcmc/table03",
    "states within a Hamming ball, counted: what GWG with a larger ball would have to weigh at every step",
    Table(
        "States in the ball", "enhanced-gradient-mcmc", 3, "num_points", "num_points", ("radius",), rows=("sampler",)
    ),
)
def table03(effort: Size) -> Iterator[Cell]:
    for d in _SIZES["d"]:
        for radius in _SIZES["radius"]:
            yield Cell(
                labels=(*_BALL, ("d", str(d)), ("radius", str(radius)), ("sampler", f"d = {d}")),
                target=call("discrax:Binary", shape=d),
                sampler=call("discrax.samplers:gwg"),
                budget=Budget(1, 0, 0),
                measure=call(f"{_ERRORS}:ball_size", radius=radius),
            )
