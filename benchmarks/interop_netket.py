"""The transverse-field Ising model on 6x6 spins in NetKet: `InformedRule` beside NetKet's own `LocalRule`.

    python benchmarks/interop_netket.py --iterations 100

A translation-invariant RBM is trained with either rule to the ground state at h = 3, J = -1, periodic, with the same
number of proposals. Then, with the parameters that LocalRule found, long chains with each rule give the autocorrelation
times of the log-probability and of the squared magnetisation, in sweeps of 36 proposals, and the seconds of the
processor for each.
"""

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import netket as nk
import numpy as np

import discrax as dx
from discrax.interop.netket import InformedRule

SIDE, CHAINS = 6, 32
GRAPH = nk.graph.Square(SIDE, pbc=True)
HILBERT = nk.hilbert.Spin(0.5, GRAPH.n_nodes)
HAMILTONIAN = nk.operator.Ising(HILBERT, GRAPH, h=3.0, J=-1.0)
MACHINE: Any = nk.models.RBMSymm(symmetries=GRAPH.translation_group(), alpha=2)


def trained(rule: nk.sampler.rules.MetropolisRule, iterations: int) -> tuple[nk.vqs.MCState, nk.stats.Stats]:
    """The state after training, and its energy from many samples."""
    sampler = nk.sampler.MetropolisSampler(HILBERT, rule, n_chains=CHAINS)
    state = nk.vqs.MCState(sampler, MACHINE, n_samples=512, seed=1, sampler_seed=2)
    driver = nk.driver.VMC_SR(HAMILTONIAN, nk.optimizer.Sgd(0.02), variational_state=state, diag_shift=0.01)
    driver.run(iterations, show_progress=False, out=None)
    state.n_samples = 4096
    state.sample()
    return state, state.expect(HAMILTONIAN)


def chains(rule: nk.sampler.rules.MetropolisRule, parameters, num_steps: int) -> dict[str, float]:
    """Autocorrelation times in sweeps of as many proposals as there are sites, acceptance, and seconds a sweep."""
    sampler = nk.sampler.MetropolisSampler(HILBERT, rule, n_chains=CHAINS, sweep_size=1)
    state = sampler.init_state(MACHINE, parameters, seed=3)
    for _ in range(2):  # the first time is compiled, and forgets where chains began
        state = sampler.reset(MACHINE, parameters, state)
        begin = time.process_time()
        drawn, state = sampler.sample(MACHINE, parameters, state=state, chain_length=num_steps)
        drawn = np.asarray(drawn)  # (chains, steps, sites)
        seconds = (time.process_time() - begin) * GRAPH.n_nodes / num_steps
    value = jax.jit(lambda σ: jnp.real(MACHINE.apply(parameters, σ)))
    watched = {
        "log-probability": np.stack([np.asarray(value(jnp.asarray(chain))) for chain in drawn]),
        "squared magnetisation": np.square(drawn.astype(float).mean(-1)),
    }
    times = {
        name: values.size / dx.diagnostics.ess(values, mean=float(values.mean())).sum() / GRAPH.n_nodes
        for name, values in watched.items()
    }
    return times | {"acceptance": float(getattr(state, "acceptance", np.nan)), "seconds": seconds}


def main() -> None:
    """Trains, watches and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--steps", type=int, default=5000)
    settings = parser.parse_args()
    local, energy = trained(nk.sampler.rules.LocalRule(), settings.iterations)
    print(f"LocalRule: energy {energy}", flush=True)
    print(f"InformedRule: energy {trained(InformedRule(2.0), settings.iterations)[1]}", flush=True)
    print("| rule | acceptance | sweeps, log-probability | sweeps, squared magnetisation | ms a sweep |")
    print("|---|---|---|---|---|")
    rules = {"`LocalRule()`": nk.sampler.rules.LocalRule()}
    rules |= {f"`InformedRule({size})`": InformedRule(size) for size in (0.5, 1.0, 2.0, 4.0)}
    for name, rule in rules.items():
        found = chains(rule, local.variables, settings.steps)
        times = [f"{found[each]:.2f}" for each in ("log-probability", "squared magnetisation")]
        print(
            f"| {name} | {found['acceptance']:.2f} | {' | '.join(times)} | {1e3 * found['seconds']:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
