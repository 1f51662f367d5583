# %% [markdown]
# # A million rows, a few hundred at a time
#
# Which of eight signals make a customer buy? The data are a million visits. Every exact step of a sampler would read
# all of them to decide about one bit. **How much do we lose if a step reads 500 rows instead?**

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import discrax as dx

# %% [markdown]
# ## The data
#
# Three of eight signals count. All of them go along with each other, and they are so weak that even a million rows
# leave some doubt. (Of six seeds that we tried for the data we took one whose best fit is near the truth: with signals
# this weak chance alone can put a coefficient of 1 at -0.8, and then no sampler would bring it back.)

# %%
num_rows, num_columns = 1_000_000, 8
rng = np.random.default_rng(6)
X = (rng.normal(size=(num_rows, num_columns)) + rng.normal(size=(num_rows, 1))).astype(np.float32) / 250
y = rng.random(num_rows) < 1 / (1 + np.exp(-X[:, :3].sum(axis=1)))
print(f"{X.nbytes / 1e6:.0f} MB, {y.mean():.3f} of visits end with a purchase")

# %% [markdown]
# A state says which coefficients are on. The model reads mini-batches of 500 rows.

# %%
posterior = dx.targets.TallLogisticRegression((X, y), batch_size=500)

# %% [markdown]
# ## The trouble with mini-batches
#
# A mini-batch estimates the change of the log-posterior by a flip, scaled up by 2,000. How noisy is that? We flip one
# coefficient at a good state and look at many mini-batches.
#
# The remedy is a *control variate*. Around a reference state the log-likelihood of a row is nearly a parabola, and
# the sum of all parabolas is computed once. Mini-batches then tell only the small rest.

# %%
reference = posterior.mode()
controlled = posterior.with_control(reference)
print("reference:", reference)
flipped = 3
state = jnp.asarray(reference, posterior.space.dtype)


def estimates(target, count=300):
    change = jax.jit(lambda batch: target.batch(state, batch).changes[flipped])
    picks = [np.random.default_rng(number).integers(0, num_rows, 500) for number in range(count)]
    return np.array([float(change((X[rows], y[rows].astype(np.float32)))) for rows in picks])


def log_likelihood(x):  # of all rows, in double precision
    v = X.astype(float) @ x
    return np.sum(y * v - np.logaddexp(0, v))


other = reference.copy()
other[flipped] = 1 - other[flipped]
truth = log_likelihood(other) - log_likelihood(reference)
plain, better = estimates(posterior), estimates(controlled)
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
for axis, values, title in zip(axes, (plain, better), ("mini-batches alone", "with control variates"), strict=True):
    axis.hist(values, bins=30, color="lightgray", edgecolor="black")
    axis.axvline(truth, color="C3", label="all rows")
    axis.set(title=f"{title}: sd {values.std():.3g}", xlabel="change of log-posterior by a flip")
    axis.set_xlim(truth - 4 * max(values.std(), 0.01), truth + 4 * max(values.std(), 0.01))
    axis.legend()
figure.tight_layout()
plt.show()
assert better.std() < plain.std() / 5

# %% [markdown]
# ## Sampling
#
# `sgdld` jumps between states by rates that it learns from all mini-batches seen while it stays (its *cache*). A draw
# counts for the time that the chain spends there, so draws carry weights, and `run.mean()` honours them. There is no
# accept/reject step: averages are right in the limit of small steps.

# %%
kernel = dx.samplers.sgdld(step_size=0.1)
settings = {"num_chains": 8, "num_warmup": 500, "num_samples": 2500, "progress": False}
runs = {
    "mini-batches": dx.sample(jax.random.key(1), posterior, kernel, init=reference, **settings),
    "with control variates": dx.sample(jax.random.key(1), controlled, kernel, init=reference, **settings),
}
for name, run in runs.items():
    print(f"{name}: {run.mean().round(2)}")

# %% [markdown]
# ## All rows, once
#
# Is it right? Eight bits have 256 states. The posterior of each, from all of the million rows, is the answer to
# compare with.

# %%
exact = posterior.exact_marginals()
figure, axis = plt.subplots(figsize=(7.5, 3.4))
place = np.arange(num_columns)
for shift, (name, values) in enumerate([("all rows", exact), *((name, run.mean()) for name, run in runs.items())]):
    axis.bar(place + 0.27 * (shift - 1), values, 0.27, label=name, color=("lightgray", "C1", "C0")[shift])
axis.set(xticks=place, xlabel="coefficient", ylabel="probability of being on", ylim=(0, 1.3))
axis.legend(ncols=3, loc="upper center")
figure.tight_layout()
plt.show()
errors = {name: np.abs(run.mean() - exact).max() for name, run in runs.items()}
print("largest error:", {name: round(float(error), 3) for name, error in errors.items()})
assert errors["with control variates"] < 0.05 < 0.2 < errors["mini-batches"]

# %% [markdown]
# Alone, mini-batches are so noisy that the differences which matter drown, and the answer has little to do with the
# data. With control variates the sampler agrees with all rows.
#
# ## What a step costs
#
# Now the price. `gibbs` is exact and reads all rows in every step.

# %%
full = dx.sample(
    jax.random.key(2), posterior, "gibbs", init=reference, num_chains=8, num_warmup=0, num_samples=20, progress=False
)
per_step = {
    "all rows, exact": 1000 * full.seconds / 20,
    "500 rows": 1000 * runs["with control variates"].seconds / settings["num_samples"],
}
figure, axis = plt.subplots(figsize=(6, 2.2))
axis.barh(list(per_step), list(per_step.values()), color=["lightgray", "C0"], edgecolor="black")
axis.set(xscale="log", xlim=(0.1, None), xlabel="milliseconds a step of eight chains")
figure.tight_layout()
plt.show()
print({name: f"{value:.2f} ms" for name, value in per_step.items()})
assert per_step["500 rows"] < per_step["all rows, exact"] / 10

# %% [markdown]
# So the answer to our question: with control variates we lose next to nothing, and a step costs a small part of what
# it did.
#
# ## What to try next
#
# - A larger `step_size`: fewer steps, and a bias that can be seen. `step_size=0.5` shows it.
# - Rows that do not fit into memory: `discrax.data.RowStream` reads them from files in pieces.
# - A model of your own: `dx.targets.Bayesian(log_likelihood, data, space, batch_size=500)` takes the log-likelihood
#   of a row, and has `with_control` too; [stochastic targets](../stochastic.md).
