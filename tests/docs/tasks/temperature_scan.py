"""A temperature scan: the mean energy of a small magnet from hot to cold, beside the exact one."""

import jax
import numpy as np

import discrax as dx

magnet = dx.targets.Ising.lattice((3, 4), coupling=1.0, field=0.1)
scan = {}
for beta in (0.1, 0.2, 0.4, 0.6):
    target = dx.Tempered(magnet, beta=beta)
    run = dx.sample(
        jax.random.key(0), target, dx.samplers.gibbs("chromatic"), num_chains=16, num_warmup=300, num_samples=1000
    )
    scan[beta] = -run.stats["lp"].mean() / beta  # lp is of the law that is sampled, beta and all

spins = 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1).reshape(-1, 3, 4) - 1
energy = -(spins[:, 1:] * spins[:, :-1]).sum((1, 2)) - (spins[:, :, 1:] * spins[:, :, :-1]).sum((1, 2))
energy = energy - 0.1 * spins.sum((1, 2))
for beta, sampled in scan.items():
    weights = np.exp(-beta * energy)
    exact = weights @ energy / weights.sum()
    print(f"beta {beta}: sampled {sampled:.3f}, exact {exact:.3f}")
    assert abs(sampled - exact) < 0.25
