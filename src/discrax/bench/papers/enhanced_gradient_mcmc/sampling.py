"""Rhodes and Gutmann (2022), "Enhanced gradient-based MCMC in discrete spaces": errors against a law that is known.

Step sizes are those of the paper's table 4, found by its search; PAVG, whose M is estimated in warm-up, is tuned here.
"""

from collections.abc import Iterator

from discrax.bench.plan.cell import Budget, Call, Cell, call
from discrax.bench.plan.rows import only
from discrax.bench.plan.suite import Figure, Size, figure, suite

NCG, AVG = "discrax.samplers:dmala", "discrax.samplers:avg"
ORDINAL = {
    "poly2": {"NCG": 0.05, "AVG": 0.02, "Ordinal-GWG": 16, "MH-uniform": 2},
    "poly4": {"NCG": 0.05, "AVG": 0.02, "Ordinal-GWG": 8, "MH-uniform": 1},
}


def _ordinal_samplers(task: str) -> dict[str, tuple[Call, str | None]]:
    found = ORDINAL[task]
    return {
        "NCG": (call(NCG, step_size=found["NCG"]), None),
        "AVG": (call(AVG, step_size=found["AVG"]), None),
        "PAVG": (call("discrax.samplers:pavg", step_size=0.02), "auto"),
        "GWG": (call("discrax.samplers:gwg"), None),
        "Ordinal-GWG": (call("discrax.samplers:gwg_ordinal", radius=found["Ordinal-GWG"]), None),
        "MH-uniform": (call("discrax.samplers:mh_uniform", radius=found["MH-uniform"]), None),
        "Gibbs": (call("discrax.samplers:gibbs"), None),
    }


_ORDINAL_BUDGETS = {
    Size.QUICK: Budget(16, 1_500, 1_000, 4),
    Size.DEFAULT: Budget(100, 10_000, 4_000, 10),
    Size.PAPER: Budget(100, 50_000, 10_000, 60),
}


def _panel(task: str, title: str) -> tuple[Figure, Figure]:
    return (
        figure(f"Error of marginals and covariance, {title}", "errors", only(task=task),
               metrics=("marginal_KL", "covariance_error")),
        figure(f"ESS per second of the chains, {title}", "boxes", only(task=task), metric="ESS_chain_t"),
    )  # fmt: skip


@suite(
    "enhanced-gradient-mcmc/figure02",
    "20-dimensional mixtures of polynomials: marginal divergence, covariance error, ESS per second",
    *_panel("poly2", "second order"),
    *_panel("poly4", "fourth order"),
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
                measure=call("discrax.bench.papers.enhanced_gradient_mcmc.errors:mixture_errors"),
                init=call("discrax.bench.papers.enhanced_gradient_mcmc.kernels:near_level_eleven"),
                is_timed=True,
            )


_REGRESSION = {
    "NCG": (call(NCG, step_size=0.3), None),
    "AVG": (call(AVG, step_size=1000.0), None),
    "PAVG": (call("discrax.samplers:pavg", step_size=1000.0), "auto"),
    "GWG": (call("discrax.samplers:gwg"), None),
    "Gibbs": (call("discrax.samplers:gibbs"), None),
}


@suite(
    "enhanced-gradient-mcmc/figure04",
    "100-dimensional sparse Bayesian regression: errors of marginals and pairs, ESS per second",
    figure("Error of marginals and of pairs", "errors", metrics=("marginal_error", "pairwise_error")),
    figure("ESS per second of the chains", "boxes", metric="ESS_chain_t"),
)
def figure04(effort: Size) -> Iterator[Cell]:
    budgets = {
        Size.QUICK: Budget(16, 600, 600, 5),
        Size.DEFAULT: Budget(100, 5_000, 4_000, 10),
        Size.PAPER: Budget(100, 20_000, 10_000, 20),
    }
    for name, (built, adaptation) in _REGRESSION.items():
        yield Cell(
            labels=(("task", "sparse-regression"), ("sampler", name)),
            target=call("discrax.targets:SparseLinearRegression.simulated", seed=0),
            sampler=built,
            adaptation=adaptation,
            budget=budgets[effort],
            measure=call("discrax.bench.papers.enhanced_gradient_mcmc.errors:regression_errors"),
            init=call("discrax.bench.papers.enhanced_gradient_mcmc.kernels:only_second"),
            is_timed=True,
        )


STRENGTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def _cubic(effort: Size, strengths: tuple[float, ...]) -> Iterator[Cell]:
    budgets = {
        Size.QUICK: Budget(16, 300, 2_000, 2),
        Size.DEFAULT: Budget(100, 5_000, 6_000, 10),
        Size.PAPER: Budget(100, 5_000, 6_000, 10),
    }
    made = {
        "PAVG": call("discrax.bench.papers.enhanced_gradient_mcmc.kernels:pavg_of_pairs"),
        "AVG": call(AVG),
        "NCG": call(NCG),
        "Gibbs": call("discrax.samplers:gibbs"),
    }
    for strength in strengths:
        for name, built in made.items():
            yield Cell(
                labels=(("task", "cubic-ising"), ("strength", str(strength)), ("sampler", name)),
                target=call("discrax.targets:CubicIsing.lattice", side=4, strength=strength),
                sampler=built,
                budget=budgets[effort],
                measure=call("discrax.bench.papers.enhanced_gradient_mcmc.errors:enumerated_errors"),
                is_timed=True,
            )


@suite(
    "enhanced-gradient-mcmc/figure11",
    "Ising with third-order terms: error of pairs against their strength",
    figure("Error of pairs against the strength of triples", "curve", x="strength", y="pairwise_error_end", logy=True),
)
def figure11(effort: Size) -> Iterator[Cell]:
    yield from _cubic(effort, STRENGTHS)


@suite(
    "enhanced-gradient-mcmc/figure12",
    "Ising with third-order terms: distance moved",
    figure("Mean distance moved a step", "bars", metric="EJD", panels=("strength",)),
)
def figure12(effort: Size) -> Iterator[Cell]:
    yield from _cubic(effort, (0.0, 0.3, 0.5))
