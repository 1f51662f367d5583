"""A trained model: a Boltzmann machine of digits, its likelihood of images that it has not seen, and digits from it."""

import jax
import numpy as np

import discrax as dx
from discrax.data import load_images
from discrax.learn import pcd
from discrax.learn.rbm import untrained

images = load_images("digits")
rows, unseen = (part.reshape(-1, 64).astype(np.int8) for part in (images.train, images.test))
trained = pcd(
    jax.random.key(1),
    untrained(jax.random.key(0), rows, num_hidden=16, num_levels=2),
    rows,
    sampler=dx.samplers.gibbs("layers"),
    num_steps=5,
    num_updates=1000,
    batch_size=50,
    buffer_size=100,
    learning_rate=1e-2,
    every=500,
)
assert trained.stopped is None
model = trained.ema
log_probs = jax.vmap(model.log_prob)(unseen.astype(np.float32)) - dx.learn.rbm_log_Z(model)
share = np.clip(rows.mean(axis=0), 0.001, 0.999)
independent = (unseen * np.log(share) + (1 - unseen) * np.log(1 - share)).sum(axis=1)
print(f"{log_probs.mean():.1f} nats, independent pixels {independent.mean():.1f}")
assert log_probs.mean() > independent.mean() + 2

drawn = dx.sample(jax.random.key(2), model, dx.samplers.gibbs("layers"), num_chains=20, num_warmup=200, num_samples=100)
distance = np.abs(drawn.mean() - rows.mean(axis=0)).mean()
print(f"mean difference of pixels from the data: {distance:.3f}")
assert distance < 0.08
