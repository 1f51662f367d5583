# %% [markdown]
# # When does a magnet become a magnet?
#
# A magnet is a lattice of spins, each up or down, and each likes to agree with its four neighbours. Heat shakes them.
# When it is hot the spins point anywhere; when it is cold nearly all of them agree. **Is the way from one to the
# other gradual, or is there a temperature at which it happens?** Onsager answered this in 1944, on paper. We ask a
# sampler.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import discrax as dx

# %% [markdown]
# ## The model
#
# With spins $s_i = \pm 1$ on a lattice that is closed to a torus, the law at the inverse temperature $\beta = 1 / T$
# is
#
# $$\log \pi(s) = \beta \sum_{i \sim j} s_i s_j + \text{const}.$$
#
# `Ising.lattice` is that sum, and `dx.Tempered` multiplies it by $\beta$. Changing $\beta$ compiles nothing again.

# %%
side = 32
model = dx.targets.Ising.lattice((side, side), coupling=1.0, periodic=True)


def at(temperature):
    return dx.Tempered(model, beta=1 / temperature)


# %% [markdown]
# ## Three temperatures
#
# The sampler redraws all black squares of the board given the white ones, then the other way round: Gibbs sampling by
# colours. Of each chain we look at the last state.

# %%
sampler = dx.samplers.gibbs("chromatic")
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4))
for axis, temperature in zip(axes, (4.0, 2.3, 1.8), strict=True):
    run = dx.sample(jax.random.key(1), at(temperature), sampler, num_chains=4, num_warmup=2000, num_samples=1)
    axis.imshow(run.draws[0, -1], cmap="gray", vmin=0, vmax=1)
    axis.set(title=f"T = {temperature}", xticks=[], yticks=[])
figure.tight_layout()
plt.show()

# %% [markdown]
# Left: salt and pepper. Right: one phase, with a few spins that heat has turned. In the middle there are patches of
# every size. That is where something happens.
#
# ## A scan of temperatures
#
# How much the spins agree is the *magnetisation* $m$, their mean. We need no states, only $|m|$, so that is all we
# keep: `keep` takes any function of a state's codes, here 0 for down and 1 for up. Every run starts where the one
# before it, a little hotter, ended.


# %%
def magnetisation(codes):
    return jnp.mean(2.0 * codes - 1.0)


temperatures = np.linspace(3.5, 1.5, 17)
mean, spread, states = [], [], None
for number, temperature in enumerate(temperatures):
    run = dx.sample(
        jax.random.key(number),
        at(temperature),
        sampler,
        num_chains=8,
        num_warmup=500,
        num_samples=1000,
        thinning=2,
        init=states,
        keep=magnetisation,
    )
    states = run.states.x
    size = np.abs(run.kept)
    mean.append(size.mean())
    spread.append(side**2 * size.var() / temperature)

# %% [markdown]
# Onsager's temperature is $T_c = 2 / \log(1 + \sqrt 2) = 2.269$, and below it an infinite lattice has $|m| = (1 -
# \sinh(2 / T)^{-4})^{1/8}$.

# %%
critical = 2 / np.log(1 + np.sqrt(2))
line = np.linspace(1.5, 3.5, 400)
onsager = np.where(line < critical, np.clip(1 - np.sinh(2 / line) ** -4, 0, None) ** 0.125, 0)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot(line, onsager, color="black", label="Onsager, infinite lattice")
left.plot(temperatures, mean, "o", label=f"sampled, {side} x {side}")
left.set(xlabel="temperature", ylabel="mean of |m|")
left.legend()
right.plot(temperatures, spread, "o-")
right.axvline(critical, color="black", linestyle=":", label="Onsager's temperature")
right.set(xlabel="temperature", ylabel="susceptibility, N var |m| / T")
right.legend()
figure.tight_layout()
plt.show()

peak = temperatures[np.argmax(spread)]
coldest = abs(mean[-1] - onsager[0])
print(f"The susceptibility peaks at T = {peak:.3f}; Onsager's temperature is {critical:.3f}.")
print(f"At T = 1.5 our |m| differs from Onsager's by {coldest:.4f}.")
assert abs(peak - critical) < 0.2
assert coldest < 0.005

# %% [markdown]
# There is a temperature at which it happens. Our lattice is finite, so the corner is rounded, and the peak lies a
# little above $T_c$; larger lattices move it closer.
#
# ## Can we trust the cold end?
#
# At low temperature "all up" and "all down" are equally likely, but the way from one to the other leads over states
# that are hardly ever visited. A chain that starts in one stays in it. R-hat compares chains with each other: near 1
# they tell the same story, far from it they do not.

# %%
cold = dx.sample(
    jax.random.key(3), at(2.0), sampler, num_chains=8, num_warmup=500, num_samples=1000, keep=magnetisation
)
warm = dx.sample(
    jax.random.key(3), at(3.0), sampler, num_chains=8, num_warmup=500, num_samples=1000, keep=magnetisation
)
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
for axis, run, title in zip(
    axes, (warm, cold), ("T = 3: chains mix", "T = 2: chains stay where they began"), strict=True
):
    axis.plot(run.kept.T, linewidth=0.7)
    axis.set(title=title, xlabel="draw", ylim=(-1.05, 1.05))
axes[0].set_ylabel("magnetisation")
figure.tight_layout()
plt.show()
signs = np.sign(cold.kept.mean(axis=1))
print(f"At T = 2, {(signs > 0).sum()} chains are up and {(signs < 0).sum()} down.")
rhat = {name: dx.diagnostics.diagnose("m", run.kept).rhat for name, run in (("T = 3", warm), ("T = 2", cold))}
rhat["T = 2, of |m|"] = dx.diagnostics.diagnose("|m|", np.abs(cold.kept)).rhat
print("R-hat of m:", {name: round(value, 3) for name, value in rhat.items()})
assert rhat["T = 3"] < 1.05 < 1.5 < rhat["T = 2"]

# %% [markdown]
# We kept $|m|$ above, which is the same on both sides, so the curve is right all the same. A question about $m$
# itself would need chains that cross.
#
# ## Is the sampler exact at all?
#
# On a small board every state can be counted through.

# %%
small = dx.Tempered(dx.targets.Ising.lattice((3, 4), coupling=1.0, periodic=True), beta=1 / 2.3)
verdict = dx.exact.check_kernel(sampler, small, num_chains=20_000)
print(verdict)
assert verdict

# %% [markdown]
# ## What to try next
#
# - `side = 64`: the peak grows and moves towards $T_c$.
# - A magnet in a field: `field=0.05` in `Ising.lattice` makes one side likelier, and the two phases unequal.
# - Three colours instead of two: `dx.targets.Potts.lattice((32, 32), num_levels=3, coupling=1.0)`.
# - Another sampler by name, `"pas"` or `"dmala"`, and `run.summary()` to see what each draw was worth.
# - [Tutorial 7](7-own-sampler.py): a sampler of your own, and the same proof that it is exact.
