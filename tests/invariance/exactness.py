"""What "exact" means in this folder, and how often a test would fail without a fault.

`dx.exact.check_kernel` starts `NUM_CHAINS` from exact draws of the target and makes two steps (invariance), then starts
a tenth of them from one state and makes many (convergence); both times a chi-square test compares where they end with
the target. Chains are independent, so the test is honest.

False alarms: a check fails where its p-value, corrected for the two questions, is below `THRESHOLD` = 1e-6. The folder
holds fewer than 400 checks, so with fresh seeds one run in 2500 would fail without a fault. Seeds follow from the names
of the tests, and none was chosen by its outcome.

`make test` and `make test-slow` run a selection in which every sampler, every space and every weight function of a test
occurs, and with DISCRAX_TESTS_REPEATS=full all of their product.
"""

from collections.abc import Callable, Iterable

import pytest
from jaxtyping import Array, Key

import discrax as dx
from repeats import cover, repeats

THRESHOLD = 1e-6
NUM_CHAINS = repeats(20_000, 100_000)


def selected(cases: Iterable[tuple], is_quick: Callable[..., bool]) -> list:
    """As many of the cases as have each of their values, those that are not quick marked as slow."""
    cases = list(cases)
    kept = cover(cases, times=1, first=[case for case in cases if is_quick(*case)])
    return [case if is_quick(*case) else pytest.param(*case, marks=pytest.mark.slow) for case in kept]


def check(
    kernel: dx.Kernel, target: dx.Target, key: Key[Array, ""], num_sweeps: int = 12, num_chains: int = NUM_CHAINS
) -> dx.exact.Verdict:
    """Convergence may take as many steps as a sampler of one site a step needs for `num_sweeps` sweeps."""
    num_steps = num_sweeps * int(target.space.num_free)
    return dx.exact.check_kernel(
        kernel, target, key=key, num_chains=num_chains, num_convergence_steps=num_steps, threshold=THRESHOLD
    )


def assert_exact(
    kernel: dx.Kernel, target: dx.Target, key: Key[Array, ""], num_sweeps: int = 12, num_chains: int = NUM_CHAINS
) -> None:
    verdict = check(kernel, target, key, num_sweeps, num_chains)
    assert verdict, str(verdict)


def invariance_p_value(kernel: dx.Kernel, target: dx.Target, key: Key[Array, ""]) -> float:
    """The answer to the first question alone, where the second would take too long or has no meaning."""
    verdict = dx.exact.check_kernel(kernel, target, key=key, num_chains=NUM_CHAINS, num_convergence_steps=1)
    return verdict.invariance_p_value
