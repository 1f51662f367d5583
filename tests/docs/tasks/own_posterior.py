"""A posterior of one's own: which of eight switches are on, given noisy measurements of sums of them."""

import jax
import jax.numpy as jnp
import numpy as np

import discrax as dx

rng = np.random.default_rng(0)
A = rng.normal(size=(12, 8))
measured = A @ np.array([1, 0, 1, 1, 0, 0, 1, 0]) + 2.0 * rng.normal(size=12)


def log_posterior(e):
    return -0.5 * jnp.sum((jnp.asarray(measured) - jnp.asarray(A) @ e) ** 2) / 4.0 - 0.5 * e.sum()


target = dx.Target.from_log_prob(log_posterior, dx.Binary(8))
result = dx.sample(jax.random.key(0), target, "gibbs", num_chains=8, num_warmup=400, num_samples=1000, thinning=8)
print(result.summary())

states = (np.arange(256)[:, None] >> np.arange(8)) & 1
weights = np.exp([-0.125 * np.sum((measured - A @ x) ** 2) - 0.5 * x.sum() for x in states])
exact = weights @ states / weights.sum()
print(result.mean().round(2), exact.round(2), sep="\n")
assert np.abs(result.mean() - exact).max() < 0.05
assert ((exact > 0.1) & (exact < 0.9)).any()  # the answer is not trivial
