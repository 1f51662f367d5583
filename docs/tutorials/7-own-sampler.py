# %% [markdown]
# # Is my sampler right, and is it any good?
#
# You have an idea for a sampler. Ideas are easily wrong in ways that no picture shows: the chain moves, the numbers
# look sensible, and the law that it samples is not yours. **How do we find out, and then, how does it compare with
# others?**
#
# Our idea: propose to flip a site, and prefer the sites whose flip would make the state likelier.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import discrax as dx
from discrax.extend import decide, effective_ratios, evaluate, random, scalar_info, select, temper

# %% [markdown]
# ## A first version
#
# A kernel is two functions of one chain: `init`, and `step`. `evaluate` gives the log-probability of a state and, for
# each site, how much a flip would change it. We draw a site with probability proportional to the square root of that
# ratio, and accept as in the textbook: with probability $\min(1, \pi(y) / \pi(x))$.


# %%
class FirstTry(dx.Kernel):
    spaces = (dx.Binary, dx.Spin)
    uses_gradient = True
    sites_changed = 1

    def init(self, target, x):
        found = evaluate(target, x)
        return dx.State(x, found.log_prob, found.ratios)

    def log_weights(self, target, state):  # of the sites, to be chosen
        return effective_ratios(target, state.x, state.cache) / 2

    def log_ratio(self, target, state, there, site):
        return temper(target, there.log_prob - state.log_prob)

    def step(self, key, target, state):
        for_site, for_decision = random.split(key, 2)
        site = jax.random.categorical(for_site, self.log_weights(target, state))
        x = state.x.reshape(-1)
        there = self.init(target, x.at[site].set(1 - x[site]).reshape(state.x.shape))
        decision = decide(for_decision, self.log_ratio(target, state, there, site))
        jump = decision.is_accepted.astype(jnp.float32)
        info = scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
        return select(decision.is_accepted, there, state), info


# %% [markdown]
# It runs, and by itself nothing about it looks odd. Here is how often each spin of a small lattice is up, with the
# exact answer beside it, which one seldom has:

# %%
small = dx.targets.Ising.lattice((2, 3), coupling=0.4, field=0.3)
law = dx.exact.law(small)  # the probability of each of the 64 states


def state_shares(kernel, num_samples=4000):
    settings = {"num_chains": 8, "num_warmup": 200, "num_samples": num_samples, "progress": False}
    draws = dx.sample(jax.random.key(0), small, kernel, **settings).draws
    numbers = draws.reshape(-1, 6) @ 2 ** np.arange(6)[::-1]
    return np.bincount(numbers, minlength=64) / len(numbers)


first = state_shares(FirstTry())
up = (np.arange(64)[:, None] >> np.arange(6)[::-1]) & 1
print("sampled:", (first @ up).round(2))
print("exact:  ", (law @ up).round(2))

# %% [markdown]
# ## The proof that it is wrong
#
# `check_kernel` starts many chains with exact draws of the law, makes steps, and asks whether they still follow it.

# %%
verdict = dx.exact.check_kernel(FirstTry(), small, num_chains=20_000)
print(verdict)
assert not verdict

# %% [markdown]
# What went wrong? We choose a site with probability $q(x \to y)$, and the way back has another, $q(y \to x)$. The
# rule for that is Hastings': accept with probability
#
# $$\min\left(1, \frac{\pi(y)\, q(y \to x)}{\pi(x)\, q(x \to y)}\right).$$


# %%
class Informed(FirstTry):
    def log_ratio(self, target, state, there, site):
        forth = jax.nn.log_softmax(self.log_weights(target, state))[site]
        back = jax.nn.log_softmax(self.log_weights(target, there))[site]
        return super().log_ratio(target, state, there, site) + back - forth


line = dx.targets.Bernoulli(np.array([0.2, 0.6, 0.7]))
for target in (small, line):  # every shape that it will meet
    verdict = dx.exact.check_kernel(Informed(), target, num_chains=20_000)
    print(verdict)
    assert verdict

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True)
for axis, shares, title in zip(
    axes, (first, state_shares(Informed())), ("first try", "with Hastings' rule"), strict=True
):
    axis.plot([1e-4, 1], [1e-4, 1], color="gray", linewidth=1)
    axis.loglog(law, np.maximum(shares, 1e-4), "o", markersize=4)
    distance = dx.exact.total_variation(shares, law)
    axis.set(title=f"{title}: total variation {distance:.3f}", xlabel="exact probability of a state")
axes[0].set_ylabel("share of draws")
figure.tight_layout()
plt.show()

# %% [markdown]
# On the left likely states come too often, and unlikely ones too seldom; on the right the points lie on the line.
#
# ## Beside the others
#
# Right is not yet good. We put it on a lattice of 400 spins beside two that come with the library, with the same
# chains and steps, and count effective draws: of the log-probability, for each thousand steps.

# %%
board = dx.targets.Ising.lattice((20, 20), coupling=0.2, field=0.1)
rivals = {"Informed": Informed(), "gibbs": "gibbs", "pas": "pas"}
worth = {}
for name, kernel in rivals.items():
    run = dx.sample(jax.random.key(1), board, kernel, num_chains=8, num_warmup=500, num_samples=2000, progress=False)
    effective = dx.diagnostics.diagnose("lp", run.stats["lp"]).ess
    worth[name] = 1000 * effective / (8 * 2000)
    print(f"{name:9} {worth[name]:6.1f} effective draws in 1,000 steps, jumps of {run.stats['jump'].mean():.2f} sites")

# %%
figure, axis = plt.subplots(figsize=(6, 2.8))
order = sorted(worth, key=worth.get)
axis.barh(order, [worth[name] for name in order], color=["C3" if name == "Informed" else "lightgray" for name in order])
axis.set(xlabel="effective draws in 1,000 steps")
figure.tight_layout()
plt.show()
assert worth["Informed"] < worth["pas"] / 3

# %% [markdown]
# Choosing the site by its gain is worth a little more than choosing it blindly and redrawing it (`gibbs`). Both are far
# behind `pas`, which flips a whole path of sites chosen as we do: one site a step is the limit of our idea.
#
# ## What to try next
#
# - In a paper's benchmark: keep the kernel in a file and run `discrax bench run discs/ising --quick --sampler
#   my_file.py:Informed --only pas,dmala`. It is put to the proof first.
# - Another weight: divide by 1 or 3 instead of 2 in `log_weights`, and look at acceptance and jump.
# - Count seconds instead of steps: `run.seconds`.
# - Several flips a step, with a number that warm-up tunes: a `Knob`, as [development](../development.md) shows.
