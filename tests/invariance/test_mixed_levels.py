"""Sites with 2, 3 and 4 levels in one space: every sampler that takes categorical sites is exact on it."""

from functools import cache

import numpy as np
import pytest

import discrax as dx
from invariance.exactness import THRESHOLD
from invariance.kernels import INFORMED, UNINFORMED, kernel
from invariance.small_targets import cubic, symmetric
from repeats import repeats

LEVELS = np.array([2, 4, 3])
KERNELS = (
    {name: (lambda n, name=name: kernel(name)) for name in (*UNINFORMED, *INFORMED)}
    | {  # for n sites
        "block_gibbs": lambda n: dx.samplers.block_gibbs(2),
        "hamming_ball": lambda n: dx.samplers.hamming_ball(3, 2),
        "lb": lambda n: dx.samplers.lb(),
        "pas_exact": lambda n: dx.samplers.pas_exact(2.0),
        "dlp_trace": lambda n: dx.samplers.dlp_trace(3.0, diagonal=[0.5, 1.0, 2.0, 0.7][:n]),
        "dlmc": lambda n: dx.samplers.dlmc(),
        "dlmcf": lambda n: dx.samplers.dlmcf(),
        "avg": lambda n: dx.samplers.avg(),
        "pavg": lambda n: dx.samplers.pavg(M=np.eye(4 * n)),
    }
)
QUICK = ("gibbs-random", "gibbs-chromatic", "hamming_ball", "rwm-2.5", "lb", "pas-2.5", "dmala", "dlmc", "avg")


@cache
def target_of(name: str, space_type: type[dx.Space] = dx.Categorical) -> dx.Target:
    if name == "frozen":
        mask = np.array([False, True, False, False])
        return cubic(space_type(4, np.append(LEVELS, 3), frozen=mask, frozen_codes=np.array([0, 3, 0, 0])))
    space = space_type(3, LEVELS)
    if name == "function":
        return cubic(space)
    return dx.targets.Quadratic(space, symmetric(3, 1.2), np.sin(np.arange(12.0)).reshape(3, 4))


def check(name: str, target: dx.Target, key) -> dx.exact.Verdict:
    """24 states, none of them rare: a fifth of the usual chains tell them apart."""
    return dx.exact.check_kernel(
        KERNELS[name](target.space.num_sites),
        target,
        key=key,
        num_chains=20_000,
        num_convergence_steps=60,
        threshold=THRESHOLD,
    )


# A path of another length is another number in the same program.
ONCE = [name for name in KERNELS if name not in repeats(("rwm-1", "gwg-1", "pas-1", "pas-2", "pas-3.5"), ())]
CASES = [
    pytest.param(target, name, marks=() if is_quick else pytest.mark.slow)
    for target in ("function", "quadratic", "frozen")
    for number, name in enumerate(ONCE)
    if target == "quadratic" or (name != "gibbs-chromatic" and number % repeats(6, 1) == 0)
    for is_quick in [name in QUICK and target == "quadratic"]
]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_sites_of_different_levels(target, name, key):
    verdict = check(name, target_of(target), key)
    assert verdict, str(verdict)


class Forgetful(dx.Categorical):
    """Does not bar the levels that a site does not have."""

    def levels_at(self, sites=slice(None)):
        return self.num_levels


@pytest.mark.parametrize("name", ["gibbs-random", "dmala"])
def test_a_space_that_forgets_which_levels_its_sites_have_fails(name, key):
    with pytest.raises(ValueError, match="at a site with that many levels, but the state holds"):
        check(name, target_of("quadratic", Forgetful), key)
