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
settings = {"num_chains": 4, "num_warmup": 60, "num_samples": 40, "progress": False}
if number < 2:
    with pytest.raises(ValueError, match="must choose the same sampler"):
        dx.sample(jax.random.key(1), target, devices=2, **settings)
result = dx.sample(jax.random.key(1), target, "dmala", devices=2 if number < 2 else None, **settings)
moments = dx.sample(
    jax.random.key(1), target, "dmala", devices=2 if number < 2 else None, keep="moments", **settings
).moments
np.savez(
    path,
    draws=result.draws,
    last=np.asarray(result.states.x),
    step_size=float(result.kernel.step_size),
    mean=moments.mean,
    **{f"warmup_{name}": values for name, values in result.warmup_stats.items()},
)
