"""`discrax stochastic law | regression | facilities | circuit`: the applications of mini-batch sampling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def law(
    step: float = 0.1, cache: bool = True, batch: int = 1, chains: int = 200, draws: int = 6000, seed: int = 0
) -> None:
    """Samples the Gaussian-Bernoulli model, whose law is known, and prints the distance to it.

    Args:
        step: h, the probability of leaving a state in a step.
        cache: Average mini-batches while a chain stays; try --no-cache.
        batch: Latent draws per mini-batch.
        chains: How many.
        draws: Per chain.
        seed: Of the random numbers.
    """
    import numpy as np

    from discrax.core.seeds import key_of
    from discrax.samplers import sgdld
    from discrax.sampling import sample
    from discrax.targets import GaussianBernoulli

    target = GaussianBernoulli(batch_size=batch)
    result = sample(
        key_of(seed), target, sgdld(step, cache=cache), num_chains=chains, num_warmup=200, num_samples=draws
    )
    if not result.num_draws:
        raise KeyboardInterrupt
    assert result.draws is not None
    weights = np.asarray(result.stats["weight"]).reshape(-1)
    found = np.bincount(target.space.index(result.draws).reshape(-1), weights, len(target.probabilities))
    found = found / found.sum()
    rows = [
        ("".join(map(str, state)), f"{exact:.4f}", f"{share:.4f}")
        for state, exact, share in zip(target.space.enumerate(), target.probabilities, found, strict=True)
    ]
    _print_table(("state", "exact", "found"), rows)
    distance = 0.5 * np.abs(found - target.probabilities).sum()
    seen = f"{chains * result.num_draws:,} mini-batches of {batch}"
    print(f"total variation {distance:.4f} in {result.seconds:.1f} s, {seen}{_interrupted(result)}")


def regression(
    data: Path | None = None,
    outcomes: Path | None = None,
    rows: int | None = None,
    batch: int = 625,
    step: float = 0.1,
    control: bool = True,
    inclusion: float | None = None,
    chains: int = 20,
    draws: int = 5000,
    seed: int = 0,
) -> None:
    """Which coefficients of a logistic regression are on (1) or off (0), from mini-batches of its rows.

    Args:
        data: A .npy file of covariates, one row an observation; it may be larger than memory. Without it data are
            simulated: 9 columns, each twice, of which the first three are on.
        outcomes: A .npy file of outcomes, 0 or 1.
        rows: Of simulated data; 100,000 if nothing is said.
        batch: Rows per mini-batch.
        step: h, the probability of leaving a state in a step.
        control: Control variates around the mode: a pass over all rows, and then far less noise.
        inclusion: The prior probability of each coefficient to be on, for given data; 0.5 if nothing is said.
        chains: How many.
        draws: Per chain.
        seed: Of the random numbers.
    """
    import numpy as np

    from discrax.core.seeds import checked_seed, key_of
    from discrax.data import RowStream
    from discrax.samplers import sgdld
    from discrax.sampling import sample
    from discrax.targets import TallLogisticRegression

    if (data is None) != (outcomes is None):
        have, lack = ("data", "outcomes") if outcomes is None else ("outcomes", "data")
        raise ValueError(f"--{have} was given without --{lack}: a regression needs both.")
    if data is None and inclusion is not None:
        raise ValueError("--inclusion belongs to --data: simulated data have a prior of their own.")
    if data is not None and rows is not None:
        raise ValueError("--rows are those of simulated data, but there is --data.")
    checked_seed(seed)
    stream = None
    try:
        if data is None:
            target = TallLogisticRegression.simulated(seed, 100_000 if rows is None else rows, batch_size=batch)
        else:
            stream = RowStream((data, outcomes), block_rows=max(65_536, batch))
            target = TallLogisticRegression(
                stream, batch_size=batch, inclusion_prob=0.5 if inclusion is None else inclusion
            )
        if control:
            target = target.with_control(target.mode())
        result = sample(
            key_of(seed), target, sgdld(step, weigh="stays"), num_chains=chains, num_warmup=500,
            num_samples=draws,
        )  # fmt: skip
    finally:
        if stream is not None:
            stream.close()
    if not result.num_draws:
        raise KeyboardInterrupt
    means = result.mean()
    _print_table(("column", "probability of being on"), [(str(j), f"{mean:.3f}") for j, mean in enumerate(means)])
    print(result.summary())
    looked_at = chains * (500 + result.num_draws) * batch
    times = looked_at / target.rows.num_rows
    print(f"{looked_at:,} rows were looked at, {times:,.1f} times the data set{_interrupted(result)}")
    if not np.isfinite(means).all():
        raise ValueError("Some probabilities are not numbers; is there a NaN in the data?")


def facilities(
    facilities: int = 15,
    customers: int = 30,
    steps: int = 10_000,
    chains: int = 100,
    hot: float = 200.0,
    scenarios: int = 8,
    seconds: float = 15.0,
    seed: int = 0,
) -> None:
    """Facilities to open and customers to serve before demands are known: SGDLD, local search, and HiGHS.

    Args:
        facilities: How many sites there are.
        customers: How many there are.
        steps: Of the samplers.
        chains: How many; the best of their last states is kept.
        hot: The temperature at the start; it falls by 0.999 a step.
        scenarios: Whose mean HiGHS minimises.
        seconds: For HiGHS.
        seed: Of the instance and of the random numbers.
    """
    from discrax.core.checks import number, whole
    from discrax.core.interrupts import Interrupts
    from discrax.core.seeds import key_of
    from discrax.problems.facility import FacilityLocation
    from discrax.samplers import local_search, sgdld
    from discrax.samplers.schedules import Geometric, Power
    from discrax.solving.stochastic import StochasticSolution, minimise_expected, sample_average

    key = key_of(seed)
    number("seconds", seconds, above=0)
    whole("scenarios", scenarios, least=1)
    target = FacilityLocation.simulated(seed, facilities, customers)
    annealed: dict[str, Any] = {"step_size": Power(1000, 100, 0.3), "temperature": Geometric(hot, 0.999)}
    searches = {
        "SGDLD": sgdld(**annealed),
        "SGDLD without cache": sgdld(**annealed, cache=False),
        "local search": local_search(),
    }
    found: dict[str, StochasticSolution] = {}
    is_complete, too_late = True, None
    with Interrupts() as interrupts:  # what was found before a signal is printed
        for name, kernel in searches.items():
            found[name] = minimise_expected(key, target, kernel, num_chains=chains, num_steps=steps)
            is_complete = found[name].is_complete and not interrupts.requested
            if not is_complete:
                break
        if is_complete:
            try:
                found[f"HiGHS, {scenarios} scenarios"] = sample_average(target, scenarios, seconds, seed)
            except TimeoutError as error:
                too_late = str(error)
            except KeyboardInterrupt:
                is_complete = False
    rows = [
        (name, f"{each.cost:,.0f} +- {each.standard_error:,.0f}", str(int((each.x[:facilities] == 1).sum())),
         f"{each.seconds:.1f}")
        for name, each in found.items()
    ]  # fmt: skip
    _print_table(("method", "expected cost", "open", "seconds"), rows)
    if too_late is not None:
        print(too_late)
    if not is_complete:
        print("Interrupted: the last line is of a search that did not end, and what is missing was not begun.")


def circuit(units: int = 3, steps: int = 200, batch: int = 16, seed: int = 0) -> None:
    """Where imprecise units do the least harm in a circuit of 15 nodes that add or multiply.

    Args:
        units: How many are imprecise.
        steps: Of the sampler.
        batch: Draws of inputs and errors per mini-batch.
        seed: Of the circuit and of the random numbers.
    """
    from discrax.core.seeds import key_of
    from discrax.problems.circuits import ApproximateCircuit
    from discrax.samplers import sgdld
    from discrax.samplers.schedules import Geometric, Power
    from discrax.solving.stochastic import minimise_expected

    key = key_of(seed)
    target = ApproximateCircuit.simulated(seed, units, batch_size=batch)
    kernel = sgdld(Power(3, 10, 0.1), temperature=Geometric(5, 0.96))
    found = minimise_expected(key, target, kernel, num_chains=1, num_steps=steps)
    rows = [("SGDLD", " ".join(map(str, sorted(found.x.tolist()))), f"{found.cost:.2f} +- {found.standard_error:.2f}")]
    if found.is_complete:
        best, error = target.optimum()
        rows.append(("best of all", " ".join(map(str, sorted(best.tolist()))), f"{error:.2f}"))
    _print_table(("method", "nodes", "relative error in percent"), rows)
    if not found.is_complete:
        print("Interrupted.")


def _interrupted(result: Any) -> str:
    return "" if result.is_complete else "; interrupted"


def _print_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
