# %% [markdown]
# # Two gaps that must agree
#
# "The ___ ___ the cat." A dog *chases*, dogs *chase*. Whoever fills the first gap has decided half of the second. A
# masked language model says which word may stand in one gap given all others. **Can we fill two gaps at once, so that
# they agree with each other?**
#
# Filled one by one, each without looking at the other, they often will not. Sampled together, they should.

# %%
import itertools

import jax
import matplotlib.pyplot as plt
import numpy as np

from discrax.text import Infilling, infill, train_masked_model

# %% [markdown]
# ## A language of our own
#
# A real model (BERT, or one of proteins) is a folder that `read_checkpoint` reads. So that this page needs nothing
# but itself, we make up a language, small enough to know all of its rules, and learn a small model of it.

# %%
one = ["cat", "dog", "bird", "child", "wolf"]
many = ["cats", "dogs", "birds", "children", "wolves"]
verbs_of_one, verbs_of_many = ["chases", "sees", "likes", "hears"], ["chase", "see", "like", "hear"]
rng = np.random.default_rng(0)


def sentence():
    nouns, verbs = (one, verbs_of_one) if rng.random() < 0.5 else (many, verbs_of_many)
    return f"the {rng.choice(nouns)} {rng.choice(verbs)} the {rng.choice(one + many)} ."


lines = [sentence() for _ in range(4000)]
print(*lines[:3], sep="\n")

# %% [markdown]
# The model learns to guess words that are hidden from it. Its loss falls from that of a blind guess to what the
# language leaves open.

# %%
pretrained = train_masked_model(
    jax.random.key(0),
    lines[:3800],
    lines[3800:],
    vocabulary_size=120,
    hidden_size=32,
    num_layers=2,
    num_updates=500,
    batch_size=64,
    learning_rate=5e-3,
    every=100,
    lengths=(8,),
)
model = pretrained.model
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(pretrained.updates, pretrained.losses, "o-")
axis.set(xlabel="updates", ylabel="loss, nats a hidden word", ylim=(0, None))
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Filling the gaps
#
# `Infilling` is the law of the words in the gaps: the sum, over gaps, of the log-probability of its word given the
# rest. Its `draw` fills every gap by itself, with all gaps hidden. `infill` begins with such states, makes steps of a
# sampler, which is tuned on the way, and returns the best of the chains' last states; we ask for all of them.

# %%
gaps = "the [MASK] [MASK] the cat ."
target = Infilling(model, gaps)
alone = np.asarray(target.draw(jax.random.key(1), 200))
found = infill(jax.random.key(2), model, gaps, sampler="pas", num_chains=100, num_steps=50, top=100, progress=False)
together = found.states
print(*list(dict.fromkeys(found.sentences))[:5], sep="\n")


# %%
def words(state):
    return tuple(model.tokenizer.vocabulary[token] for token in np.asarray(target.words)[np.asarray(state, int)])


right = set(itertools.product(one, verbs_of_one)) | set(itertools.product(many, verbs_of_many))


def share_right(states):
    return np.mean([words(state) in right for state in states])


print(f"in agreement: {share_right(alone):.2f} filled one by one, {share_right(together):.2f} sampled together")
assert share_right(alone) < 0.8 < 0.9 < share_right(together)

# %% [markdown]
# That is the answer. A picture of which noun goes with which verb shows how it comes about:

# %%
nouns, verbs = one + many, verbs_of_one + verbs_of_many
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
for axis, states, title in zip(axes, (alone, together), ("one by one", "together"), strict=True):
    table = np.zeros((len(nouns), len(verbs)))
    for noun, verb in map(words, states):
        if noun in nouns and verb in verbs:
            table[nouns.index(noun), verbs.index(verb)] += 1 / len(states)
    axis.imshow(table, cmap="Blues", vmin=0, vmax=0.06)
    axis.set(title=f"filled {title}: {share_right(states):.0%} agree", xticks=range(8), yticks=range(10))
    axis.set_xticklabels(verbs, rotation=60)
    axis.set_yticklabels(nouns)
figure.tight_layout()
plt.show()

# %% [markdown]
# Filled one by one, nouns and verbs of all four blocks meet. Together, the two blocks that agree are left, and within
# them there are many different pairs: the sampler has not settled for one good sentence.

# %% [markdown]
# ## What to try next
#
# - What is filled in is a target like any other: `dx.sample(key, Infilling(model, gaps), "dmala", ...)`.
# - Longer gaps, or two that are far apart: write sentences with `and`, and let verbs agree across it.
# - A checkpoint of your own: `model = dx.text.read_checkpoint(FOLDER)`, or from the shell `discrax infill
#   --checkpoint FOLDER "the [MASK] sat on the [MASK] ."`.
# - Amino acids instead of words: where all entries of a vocabulary are letters, sequences need no spaces; [text and
#   sequences](../text.md).
# - Another sampler, `sampler="dmala"` or `"dlmc"`, which changes all gaps at once.
