"""Run twice by `test_devices.py`: python in_two_processes.py PORT NUMBER FILE. Number 2 is one process by itself."""

import sys

import jax
import numpy as np
import pytest

port, number, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if number < 2:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=number)

import discrax as dx  # noqa: E402

target = dx.targets.Ising.lattice((8, 4), 0.4)
settings = {"num_chains": 4, "num_warmup": 60, "num_samples": 60, "progress": False}  # one program
if number < 2:
    with pytest.raises(ValueError, match="must choose the same sampler"):
        dx.sample(jax.random.key(1), target, devices=2, **settings)
result = dx.sample(jax.random.key(1), target, "dmala", devices=2 if number < 2 else None, **settings)
fixed = settings | {"num_warmup": 0, "adaptation": None, "keep": "moments"}
moments = dx.sample(jax.random.key(1), target, "dmala", devices=2 if number < 2 else None, **fixed).moments
more = {"devices": 2 if number < 2 else None, "progress": False}
annealed = dx.learn.ais(jax.random.key(2), target, num_chains=4, num_temperatures=20, sampler="dmala", **more)
rows = np.random.default_rng(0).integers(0, 2, (16, 8, 4)).astype(np.int8)
counts = {"num_updates": 10, "batch_size": 4, "buffer_size": 8, "every": 5, "num_steps": 3}
trained = dx.learn.pcd(jax.random.key(3), target, rows, sampler="dmala", out=f"{path}.run", **counts, **more)
if number < 2:
    with pytest.raises(ValueError, match="must have one writer, but 2 processes"):
        dx.sample(jax.random.key(1), target, "dmala", devices=2, folder=path, **settings)
    with pytest.raises(ValueError, match="each of 2 processes has its own"):
        dx.solve(jax.random.key(1), dx.problems.MaxCut(np.array([(0, 1), (1, 2)])), devices=2)
np.savez(
    path,
    log_weights=annealed.log_weights,
    buffer=trained.buffer,
    linear=np.asarray(trained.ema.linear),
    draws=result.draws,
    last=np.asarray(result.states.x),
    step_size=float(result.kernel.step_size),
    mean=moments.mean,
    **{f"warmup_{name}": values for name, values in result.warmup_stats.items()},
)
