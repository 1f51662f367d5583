# %% [markdown]
# # Can a model that has seen digits fill in half of one?
#
# Somebody tore a page in two. Of every handwritten digit on it we have the upper half. **What was below?** There may
# be more than one answer: the top of a 3 may be that of a 9. So we do not want the one best guess, but draws of what
# might have been there.
#
# We learn a law over whole images from data, hold the pixels that we know, and sample the others.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import discrax as dx
from discrax.data import load_images
from discrax.learn.rbm import untrained

images = load_images("digits")  # 8 x 8, black and white; comes with scikit-learn
rows = images.train.reshape(-1, 64).astype(np.int8)
others = images.test.reshape(-1, 64).astype(np.int8)  # never shown to the model
print(rows.shape, others.shape)


def show(axis, pixels, title=""):
    axis.imshow(np.asarray(pixels).reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=9)


# %% [markdown]
# ## Learning
#
# A restricted Boltzmann machine gives an image the log-probability $b'v + \sum_k \mathrm{softplus}(c_k + W_k v)$, up
# to a constant: each hidden unit $k$ is a pattern that it likes. `pcd` keeps chains that sample the model while it is
# learnt, and moves the parameters until chains and data cannot be told apart.

# %%
trained = dx.learn.pcd(
    jax.random.key(1),
    untrained(jax.random.key(0), rows, num_hidden=64, num_levels=2),
    rows,
    sampler=dx.samplers.gibbs("layers"),
    num_steps=5,
    num_updates=4000,
    batch_size=50,
    buffer_size=200,
    learning_rate=5e-3,
    every=400,
)
model = trained.ema
print("stopped early:", trained.stopped)

# %%
figure, axes = plt.subplots(2, 10, figsize=(9, 2.3))
for column in range(10):
    show(axes[0, column], rows[column])
    show(axes[1, column], trained.buffer[column])
axes[0, 0].set_ylabel("data")
axes[1, 0].set_ylabel("chains")
figure.tight_layout()
plt.show()

# %% [markdown]
# The chains, below, have made up digits of their own. How good a model is in numbers is its likelihood of images that
# it has not seen. That needs a normalising constant, which annealed importance sampling estimates.

# %%
estimate = dx.learn.ais(
    jax.random.key(3), model, reference=dx.learn.frequencies(rows), num_chains=50, num_temperatures=300
)
of_model, error = estimate.log_likelihood(model, others)
share = np.clip(rows.mean(axis=0), 1e-3, 1 - 1e-3)
of_pixels = (others * np.log(share) + (1 - others) * np.log(1 - share)).sum(axis=1).mean()
print(f"log-likelihood of an unseen image: {of_model:.1f} +- {error:.1f} nats; of independent pixels {of_pixels:.1f}")
assert of_model > of_pixels + 5

# %% [markdown]
# ## Filling in
#
# Now the torn page. Of any target `condition_on` makes the law of the other sites where some are known: those are
# *frozen*, and no sampler ever moves them. Nothing has to be learnt again.

# %%
known = np.arange(64) < 32  # the upper half
page = dx.Target.from_log_prob(model.log_prob, dx.Binary(64))


def torn(image):
    return page.condition_on(known, image)


def fill_in(seed, image):
    key = jax.random.key(seed)
    return dx.sample(
        key, torn(image), "dmala", num_chains=16, num_warmup=500, num_samples=100, thinning=5, progress=False
    )


runs = [fill_in(number, others[number]) for number in range(6)]

# %%
figure, axes = plt.subplots(len(runs), 9, figsize=(8, 5.8))
for line, run in enumerate(runs):
    truth = others[line]
    assert (run.draws[..., known] == truth[known]).all()
    show(axes[line, 0], truth, "truth" if line == 0 else "")
    show(axes[line, 1], np.where(known, truth, 0.35), "given" if line == 0 else "")
    for chain in range(6):
        show(axes[line, 2 + chain], run.draws[chain, -1], "draws" if line == chain == 0 else "")
    show(axes[line, 8], run.mean(), "mean" if line == 0 else "")
figure.tight_layout()
plt.show()

# %% [markdown]
# Draws of one line differ where the upper half leaves the answer open, and their mean is grey there. The upper half
# is the same in all of them, pixel for pixel.
#
# ## Is that better than a guess?
#
# For thirty torn images we call a pixel black where more than half of the draws are, and count how many we got right.
# The rival does not look at the upper half: it calls a pixel black where most of the data are.

# %%
by_model, by_frequency = [], []
for number in range(30):
    truth = others[number, 32:]
    by_model.append(np.mean((fill_in(100 + number, others[number]).mean()[32:] > 0.5) == truth))
    by_frequency.append(np.mean((share[32:] > 0.5) == truth))
figure, axis = plt.subplots(figsize=(5, 3.4))
axis.boxplot([by_frequency, by_model], tick_labels=["most of the data", "given the upper half"])
axis.set_ylabel("share of right pixels")
figure.tight_layout()
plt.show()
print(f"right pixels: {np.mean(by_model):.3f} given the upper half, {np.mean(by_frequency):.3f} without")
assert np.mean(by_model) > np.mean(by_frequency) + 0.03

# %% [markdown]
# ## What to try next
#
# - Another tear: `known` is any mask. Try every second pixel, or the right half.
# - A network instead of a machine: `dx.learn.resnet(key, (8, 8))` is trained by the same `pcd`, with `sampler="pas"`.
# - From the shell: `discrax train --data digits --model rbm --out run`, then `discrax sample --model run`.
# - Larger images from a folder of yours: `load_images("mnist", folder=...)`; [energy models](../energy-models.md).
