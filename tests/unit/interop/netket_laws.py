"""`InformedRule`: NetKet's sampler with it follows |psi|^2, and needs the correction that it returns."""

import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import discrax as dx

nk = pytest.importorskip("netket")

from discrax.interop.netket import InformedRule  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*requested dtype"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


class Uncorrected(InformedRule):
    """A twin with one flaw: the proposal is taken for a symmetric one."""

    def transition(self, *arguments):
        return super().transition(*arguments)[0], None


def p_value(hilbert, rule, power=2, param_dtype=float):
    """Of where exact draws of |psi|^power of a random machine are after some steps, against that law by enumeration.

    Every state can be proposed from every other, so a law that steps keep is the one that chains reach.
    """
    machine = nk.models.RBM(alpha=1, param_dtype=param_dtype, kernel_init=jax.nn.initializers.normal(0.4))
    states = np.asarray(hilbert.all_states())
    parameters = machine.init(jax.random.key(0), states)
    weights = np.exp(power * np.asarray(machine.apply(parameters, states).real, np.float64))
    law = weights / weights.sum()
    sampler = nk.sampler.MetropolisSampler(hilbert, rule, n_chains=20_000, sweep_size=5, machine_pow=power)
    state = sampler.reset(machine, parameters, sampler.init_state(machine, parameters, seed=1))
    first = states[np.random.default_rng(1).choice(len(states), p=law, size=sampler.n_chains)]
    known = power * machine.apply(parameters, first).real  # which the sampler keeps beside its states
    state = state.replace(σ=jax.numpy.asarray(first, state.σ.dtype), log_prob=known.astype(state.log_prob.dtype))
    drawn, _ = sampler.sample(machine, parameters, state=state, chain_length=1)
    counts = np.bincount(np.asarray(hilbert.states_to_numbers(np.asarray(drawn)[:, 0])), minlength=len(states))
    return dx.exact.chi_square(counts, law)


@pytest.fixture(autouse=True)
def as_netket_writes():
    """NetKet's own code promotes ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


SPINS, QUBITS = nk.hilbert.Spin(0.5, 9), nk.hilbert.Qubit(7)


def test_the_proof_holds_for_netkets_own_rule():
    assert p_value(SPINS, nk.sampler.rules.LocalRule()) > 1e-3


def test_follows_the_law_of_a_random_ansatz_of_9_spins():
    assert p_value(SPINS, InformedRule(step_size=0.8)) > 1e-3


def test_without_the_correction_the_law_is_another():
    assert p_value(SPINS, Uncorrected(step_size=0.8)) < 1e-9


@pytest.mark.parametrize(("hilbert", "power", "kind"), [(SPINS, 1, complex), (QUBITS, 2, float)])
def test_complex_machines_and_other_powers(hilbert, power, kind):
    assert p_value(hilbert, InformedRule(step_size=0.5), power, kind) > 1e-3


@pytest.mark.parametrize(
    ("hilbert", "sentence"),
    [
        (nk.hilbert.Fock(n_max=3, N=4), "flips spins 1/2 and qubits, but the Hilbert space is Fock"),
        (nk.hilbert.Spin(1, 4), "flips spins 1/2 and qubits, but the Hilbert space is Spin"),
        (nk.hilbert.Spin(0.5, 4, total_sz=0), "one by one, which breaks the constraint of Spin"),
    ],
)
def test_other_spaces_are_refused_with_a_sentence(hilbert, sentence):
    with pytest.raises(ValueError, match=sentence):
        InformedRule().transition(SimpleNamespace(hilbert=hilbert), None, None, None, jax.random.key(0), None)


def test_a_step_size_is_positive():
    with pytest.raises(ValueError, match="step_size"):
        InformedRule(step_size=0)


def test_without_netket_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "netket.sampler.rules", None)
    monkeypatch.delitem(sys.modules, "discrax.interop.netket")
    with pytest.raises(ImportError, match=r'netket, which is missing: pip install "discrax\[netket\]"'):
        __import__("discrax.interop.netket")
