# %% [markdown]
# # Which covariates matter?
#
# Ten things were measured of 442 people with diabetes, and how far the disease had come a year later. **Which of the
# ten tell us something, and how sure may we be?** A regression that picks one best model answers the first half. We
# want both: the probability, given the data, that each covariate is in.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import discrax as dx

jax.config.update("jax_enable_x64", True)
data = load_diabetes()
names = [*data.feature_names[:4], "chol", "ldl", "hdl", "ratio", "trigl", "sugar"]
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
y = (data.target - data.target.mean()) / data.target.std()
print(X.shape, names)

# %% [markdown]
# ## The model
#
# A state is ten bits: $s_j = 1$ if covariate $j$ is in. Given $s$, the outcome is linear in those that are in, with
# unknown coefficients and noise; both are integrated out, which leaves a law over the $2^{10}$ models alone
# (`dx.targets.SparseLinearRegression`). Two priors are ours to choose:
#
# - `g`: how large the coefficients may be. The number of rows is a common choice: a prior worth one row.
# - `prior=(a, b)`: how many covariates are in. The share that is in is Beta(a, b); (1, 1) makes all sizes equally
#   likely.
#
# The blood values nearly depend on each other. In single precision the library refuses such a matrix, so the first
# cell has switched JAX to double.


# %%
def posterior_of(X=X, g=442.0, prior=(1.0, 1.0)):
    return dx.targets.SparseLinearRegression(X, y, g=g, prior=prior)


posterior = posterior_of()
run = dx.sample(jax.random.key(0), posterior, "gibbs", num_chains=4, num_warmup=500, num_samples=1000, thinning=10)
print(run.summary())
inclusion = run.mean()

# %% [markdown]
# `gibbs` redraws one covariate a step, so `thinning=10` makes a draw one round over all. With ten bits the answer can
# also be counted through, so we need not take the sampler's word.

# %%
exact, pairs = posterior.exact_marginals()
figure, axis = plt.subplots(figsize=(7, 3.4))
place = np.arange(10)
axis.bar(place - 0.2, inclusion, 0.4, label="sampled")
axis.bar(place + 0.2, exact, 0.4, label="exact", color="lightgray", edgecolor="black")
axis.set(xticks=place, ylabel="probability of being in", ylim=(0, 1.25))
axis.set_xticklabels(names)
axis.legend(ncols=2)
figure.tight_layout()
plt.show()
print(f"The largest difference is {np.abs(inclusion - exact).max():.3f}.")
assert np.abs(inclusion - exact).max() < 0.05

# %% [markdown]
# Body mass index, blood pressure, sex and one of the blood values (`trigl`) are in, with hardly a doubt; age and
# sugar most likely tell nothing more. The interesting ones are in between.
#
# ## One or the other
#
# The values of cholesterol are computed from each other, nearly. So the data cannot say *which* of them matters, only
# that some do. Inclusion probabilities do not show that; the joint law of two of them does.

# %%
draws = run.draws.reshape(-1, 10)
correlation = np.corrcoef(draws[:, 4:8].T)
figure, axis = plt.subplots(figsize=(4.2, 3.6))
image = axis.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
axis.set(xticks=range(4), yticks=range(4), title="correlation of being in")
axis.set_xticklabels(names[4:8])
axis.set_yticklabels(names[4:8])
for i in range(4):
    for j in range(4):
        axis.text(j, i, f"{correlation[i, j]:.2f}", ha="center", va="center", color="white" if i == j else "black")
figure.colorbar(image)
figure.tight_layout()
plt.show()
models, counts = np.unique(draws, axis=0, return_counts=True)
for k in np.argsort(-counts)[:5]:
    print(f"{counts[k] / len(draws):.2f}", " ".join(names[j] for j in np.flatnonzero(models[k])))

# %% [markdown]
# Blue pairs stand in for each other: where one is in, the other tends to be out. Even the most probable single model
# has only a modest share of the probability, so reporting it alone would hide most of what we know.
#
# ## What if the prior were another?
#
# Honest answers come with what they depend on, so we turn both knobs, one after the other, and count through again.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True)
widths = [10.0, 50.0, 442.0, 5000.0]
sizes = [(1.0, 9.0), (1.0, 1.0), (9.0, 1.0)]
by_width = [posterior_of(g=g).exact_marginals()[0] for g in widths]
by_size = [posterior_of(prior=prior).exact_marginals()[0] for prior in sizes]
for j, name in enumerate(names):
    left.plot(widths, [row[j] for row in by_width], "o-", label=name, color=f"C{j}")
    right.plot(range(3), [row[j] for row in by_size], "o-", color=f"C{j}")
left.set(xscale="log", xlabel="g, the width of the prior of coefficients", ylabel="probability of being in")
right.set(xticks=range(3), xlabel="prior (a, b) of the share that is in")
right.set_xticklabels([f"({a:g}, {b:g})" for a, b in sizes])
figure.legend(loc="center right", fontsize=8)
figure.tight_layout(rect=(0, 0, 0.89, 1))
plt.show()

# %% [markdown]
# The four that were in stay in, whatever the prior. Age and sugar pass one half only under the narrowest prior of
# all, which takes in nearly anything. The blood values in between move by a lot: the data alone do not decide about
# them, and we should say so.
#
# ## From ten covariates to sixty-four
#
# Squares and products may matter too: 45 products and 9 squares (sex has two values, so its square says nothing).
# There are $2^{64}$ models now, too many to count. The sampler needs no more than the value of the law, one bit at a
# time.

# %%
sex = names.index("sex")
products = [(i, j) for i in range(10) for j in range(i, 10) if not i == j == sex]
wide = np.column_stack([X, *(X[:, i] * X[:, j] for i, j in products)])
wide = (wide - wide.mean(axis=0)) / wide.std(axis=0)
all_names = names + [f"{names[i]} x {names[j]}" for i, j in products]
large = posterior_of(wide, prior=(1.0, 9.0))
long = dx.sample(jax.random.key(1), large, "gibbs", num_chains=4, num_warmup=2000, num_samples=250, thinning=64)
print(long.summary())
order = np.argsort(-long.mean())[:14]
figure, axis = plt.subplots(figsize=(7, 3.8))
by_chain = long.draws.mean(axis=1)
axis.barh(range(14), long.mean()[order], color="lightgray", edgecolor="black")
for chain in by_chain:
    axis.plot(chain[order], range(14), ".", color="C3")
axis.set(yticks=range(14), xlabel="probability of being in (points: each chain)", xlim=(0, 1.02))
axis.set_yticklabels([all_names[j] for j in order])
axis.invert_yaxis()
figure.tight_layout()
plt.show()
assert {all_names[j] for j in order[:3]} == {"bmi", "trigl", "bp"}

# %% [markdown]
# The points of the four chains lie together, so this is not one chain's opinion. Body mass index, `trigl` and blood
# pressure remain. Sex shares its part with the product of age and sex: the disease seems to go with age differently
# in women and men, which no list of ten main effects could show.
#
# The summary may warn of an R-hat a little above 1.01: 250 draws a chain are few, and more would be better.
#
# ## What to try next
#
# - Data of your own: `SparseLinearRegression(X, y)` takes any matrix; centre and scale its columns first.
# - A model that is not linear: `dx.Target.from_log_prob(function, dx.Binary(10))` takes any log-posterior of the
#   bits, as long as JAX can trace it.
# - At most five covariates: `dx.Binary(10, at_most=5)` is a space of its own, which `"swap"` samples.
# - A million rows instead of 442: [tutorial 6](6-million-rows.py).
