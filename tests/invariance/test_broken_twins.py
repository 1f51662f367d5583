"""The check can fail: a kernel with one deliberate flaw does not pass, and the same kernel without it does."""

from functools import cache

import numpy as np
import pytest

import discrax as dx
from invariance.exactness import THRESHOLD, assert_exact, check, invariance_p_value
from invariance.small_targets import QUADRATIC, SPACES, cubic
from invariance.twins import Langevin, LengthOfState, Path, StaleCache, Walk, WrongTemperature

pytestmark = pytest.mark.runs_long


@cache
def target_on(space: str) -> dx.Target:
    return cubic(SPACES[space])


SOUND = [
    ("ordinal", Walk()),
    ("spin", Path(3)),
    ("spin", Langevin()),
]


@pytest.mark.parametrize(("space", "twin"), SOUND, ids=["walk", "path", "langevin"])
def test_a_twin_without_a_flaw_passes(space, twin, key):
    assert_exact(twin, target_on(space), key, num_sweeps=30)


FLAWED = {
    "asymmetric-walk": ("ordinal", lambda: Walk(flaw="asymmetric")),
    "mixed-chains": ("ordinal", lambda: Walk(flaw="mixed chains")),
    "path-weights-of-the-wrong-state": ("spin", lambda: Path(3, flaw="weights of the wrong state")),
    "path-without-its-reverse": ("spin", lambda: Path(3, flaw="no reverse path")),
    "langevin-without-proposal-ratio": ("spin", lambda: Langevin(flaw="no proposal ratio")),
    "gwg-stale-cache": ("spin", lambda: StaleCache(dx.samplers.gwg(1.0))),
    "dmala-stale-cache": ("spin", lambda: StaleCache(dx.samplers.dmala(3.0))),
    "pas-length-of-state": ("spin", lambda: LengthOfState(dx.samplers.pas(2.5))),
}


SLOW = ("dmala-stale-cache",)  # the same flaw in another kernel of ours


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in FLAWED])
def test_a_flawed_twin_is_not_invariant(name, key):
    space, build = FLAWED[name]
    assert invariance_p_value(build(), target_on(space), key) < THRESHOLD


def test_a_path_of_even_length_is_invariant_but_does_not_converge(key):
    """It keeps the parity of the state; the library's paths make a detour now and then."""
    verdict = check(Path(2), target_on("spin"), key)
    assert not verdict
    assert verdict.convergence_p_value < THRESHOLD <= verdict.invariance_p_value


def test_gibbs_at_the_wrong_temperature_is_not_invariant(key):
    target = dx.Tempered(QUADRATIC["ising-lattice"](), 0.5)
    assert invariance_p_value(WrongTemperature(dx.samplers.gibbs()), target, key) < THRESHOLD


class OneColour(dx.targets.Quadratic):
    """Says of coupled sites that they share a colour."""

    def colours(self):
        return np.zeros(self.space.shape, np.int32)


def test_chromatic_gibbs_with_one_colour_for_all_is_not_invariant(key):
    right = QUADRATIC["ising-lattice"]()
    wrong = OneColour(right.space, right.coupling, right.linear)
    assert invariance_p_value(dx.samplers.gibbs("chromatic"), wrong, key) < THRESHOLD
