"""A full chromatic Gibbs sweep of 100 chains of a 50 x 50 Ising model, ours and THRML's, in one run on one machine."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

import discrax as dx
from discrax.core import random
from discrax.core.driver import drive, start

SIDE, CHAINS, SWEEPS, ROUNDS = 50, 100, 100, 7


def field() -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.3, 0.6, (SIDE, SIDE))


def ours():
    target = dx.targets.Ising.lattice((SIDE, SIDE), coupling=0.15, field=field())
    keys = random.split(jax.random.key(0), CHAINS)
    x = jax.vmap(target.space.random)(keys)
    ensemble, _ = start(target, dx.samplers.gibbs("chromatic"), x)

    def sweep() -> float:
        (chunk,) = drive(keys, target, ensemble, 1, chunk=1, thinning=SWEEPS)
        return float(2 * chunk.ensemble.states.x.mean() - 1)

    return sweep


def theirs():
    nodes = [[SpinNode() for _ in range(SIDE)] for _ in range(SIDE)]
    edges = [(nodes[i][j], nodes[i + 1][j]) for i in range(SIDE - 1) for j in range(SIDE)]
    edges += [(nodes[i][j], nodes[i][j + 1]) for i in range(SIDE) for j in range(SIDE - 1)]
    flat = [node for row in nodes for node in row]
    weights = jnp.full(len(edges), 0.15)
    model = IsingEBM(flat, edges, jnp.asarray(field().reshape(-1), jnp.float32), weights, jnp.array(1.0))
    colours = [Block([nodes[i][j] for i in range(SIDE) for j in range(SIDE) if (i + j) % 2 == c]) for c in (0, 1)]
    program = IsingSamplingProgram(model, colours, clamped_blocks=[])
    schedule = SamplingSchedule(n_warmup=SWEEPS - 1, n_samples=1, steps_per_sample=1)
    keys = jax.random.split(jax.random.key(0), CHAINS)
    initial = hinton_init(jax.random.key(1), model, colours, (CHAINS,))

    @jax.jit
    def run(keys, initial):
        return jax.vmap(lambda k, s: sample_states(k, program, schedule, s, [], [Block(flat)]))(keys, initial)

    def sweep() -> float:
        (state,) = jax.block_until_ready(run(keys, initial))
        return float(2 * state.astype(jnp.float32).mean() - 1)

    return sweep


def main() -> None:
    sweeps = {"discrax": ours(), "thrml": theirs()}
    means = {name: sweep() for name, sweep in sweeps.items()}
    best = dict.fromkeys(sweeps, float("inf"))
    for _ in range(ROUNDS):
        for name, sweep in sweeps.items():
            begin = time.perf_counter()
            sweep()
            best[name] = min(best[name], (time.perf_counter() - begin) / SWEEPS)
    for name, seconds in best.items():
        print(f"{name:8} {1e3 * seconds:6.2f} ms a sweep of {CHAINS} chains (mean spin {means[name]:+.3f})")
    print(f"discrax is {best['thrml'] / best['discrax']:.1f} times faster")


if __name__ == "__main__":
    main()
