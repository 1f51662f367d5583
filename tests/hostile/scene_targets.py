"""What calls are made around, and spaces, targets, states and arrays."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import discrax as dx
import discrax.bench.papers.rules

from .things import get, thing

# --- what is called around the thing under attack: a target is drawn from, a sampler draws ---

TINY = {"num_chains": 2, "num_warmup": 0, "num_samples": 2, "progress": False}


@thing
def drawn():
    """Draws from a target, so that a bad one is not merely built."""

    def draw(target):
        if not isinstance(target, dx.Target) or target.space.num_sites > 100:
            return target
        return dx.sample(get("key"), target, "rwm", adaptation=None, **TINY)

    return draw


@thing
def by_batches():
    """Draws from a target that is seen through mini-batches."""
    return lambda target: dx.sample(get("key"), target, "sgdld", adaptation=None, **TINY)


@thing
def embedded():
    """A state of a space, embedded."""

    def embed(space):
        return space.embed(space.random(get("key"))) if space.num_sites < 10**6 else space

    return embed


@thing
def drawing():
    """Draws by a sampler from the target it suits."""

    def draw(kernel):
        from discrax.core.stochastic import StochasticTarget

        needs = getattr(kernel, "needs", ())
        spaces = getattr(kernel, "spaces", (dx.Space,))
        name = "batches" if StochasticTarget in needs else "spins" if issubclass(dx.Spin, spaces) else "steps_of_values"
        return dx.sample(get("key"), get(name), kernel, **TINY)

    return draw


@thing
def tuning():
    """Draws after a warm-up by an adapter."""

    def tune(adapter):
        target, sampler = get("spins"), "dmala" if isinstance(adapter, dx.AcceptanceRate) else "ab_first"
        if type(adapter).__name__ == "GammaRule":  # tunes what was estimated, not what is known
            target, sampler = get("sums"), "pavg"
        settings = {"num_chains": 2, "num_warmup": 30, "num_samples": 2, "progress": False}
        return dx.sample(get("key"), target, sampler, adaptation=adapter, **settings)

    return tune


@thing
def weighing():
    """Draws by a sampler with a weight function."""
    return lambda balancing: get("drawing")(dx.samplers.gwg(1.0, balancing))


@thing
def solving():
    """Searches a problem for a few sweeps."""

    def search(problem):
        return dx.solve(get("key"), problem, num_steps=4, progress=False)

    return search


@thing
def applied():
    """Searches a problem in this way."""
    return lambda search: dx.solve(get("key"), get("cut"), search, num_steps=4, progress=False)


@thing
def tempered():
    """Draws in this way, with few rungs."""

    def temper(ladder):
        if isinstance(ladder.num_rungs, int) and ladder.num_rungs > 100:
            return ladder
        return dx.sample(get("key"), get("spins"), "gibbs", tempering=ladder, **TINY)

    return temper


@thing
def first_two():
    """Of a set that is made as it is read."""
    return lambda graphs: list(itertools.islice(graphs, 2))


# --- keys, spaces, targets ---


@thing
def key():
    return jax.random.key(0)


@thing
def bits():
    return dx.Binary(4)


@thing
def square():
    return dx.Binary((2, 2))


@thing
def spins():
    return dx.targets.Ising.graph(np.array([[0, 1], [1, 2], [2, 3]]), 0.5, 0.2)


@thing
def sums():
    return dx.Target.from_log_prob(get("quadratic"), get("bits"))


@thing
def steps_of_values():
    return dx.targets.Quadratic(dx.Ordinal(4, [-1.0, 0.0, 1.0]), dx.targets.Lattice((4,), 0.5), 0.1)


@thing
def levels():
    return dx.targets.Potts.graph(np.array([[0, 1], [1, 2], [2, 3]]), 3, 0.5, 0.2)


@thing
def machine():
    rng = np.random.default_rng(0)
    return dx.targets.RBM(rng.normal(size=(3, 4)), np.zeros(4), np.zeros(3))


@thing
def chain():
    return dx.targets.FHMM.simulated(0, 4, 2)


@thing
def batches():
    return dx.targets.GaussianBernoulli(batch_size=1)


@thing
def latent():
    return lambda key: jax.random.normal(key, (2,))


@thing
def psi():
    return lambda x, z: jnp.exp(-((x.sum() + z.sum()) ** 2))


@thing
def log_psi():
    return lambda x, z: -((x.sum() + z.sum()) ** 2)


@thing
def log_likelihood():
    return lambda x, row: -((x.sum() - row) ** 2)


@thing
def quadratic():
    return lambda e: 0.1 * e.sum() ** 2


@thing
def parametric():
    return lambda w, e: (w * e).sum()


@thing
def keep_sum():
    return lambda x: x.sum()


@thing
def kernel():
    return dx.samplers.pas()


@thing
def matrix():
    rng = np.random.default_rng(1)
    J = rng.normal(size=(4, 4)) / 3
    return np.triu(J, 1) + np.triu(J, 1).T


@thing
def edges():
    return np.array([[0, 1], [1, 2], [2, 3]])


@thing
def four():
    return np.array([0.1, -0.2, 0.3, 0.4])


@thing
def probabilities():
    return np.array([0.2, 0.3, 0.5, 0.7])


@thing
def mask():
    return np.array([True, False, False, False])


@thing
def state():
    return np.array([0, 1, 0, 1])


@thing
def states():
    return np.array([[0, 1, 0, 1], [1, 1, 0, 0]])


@thing
def four_states():
    return np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]])


@thing
def rows():
    return np.random.default_rng(2).integers(0, 2, (12, 4))


@thing
def weights34():
    return np.random.default_rng(3).normal(size=(3, 4))


@thing
def weights342():
    return np.random.default_rng(3).normal(size=(3, 4, 3))


@thing
def logits43():
    return np.random.default_rng(4).normal(size=(4, 3))


@thing
def regressors():
    return np.random.default_rng(5).normal(size=(6, 4))


@thing
def outcomes():
    return np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])


@thing
def series():
    return np.random.default_rng(6).normal(size=5)


@thing
def draws():
    return np.random.default_rng(7).normal(size=(2, 20))


@thing
def positive_draws():
    return np.random.default_rng(7).uniform(0.5, 1, size=(2, 20))


@thing
def counts():
    return np.array([250, 250, 250, 250])


@thing
def uniform4():
    return np.full(4, 0.25)


@thing
def result():
    return dx.sample(get("key"), get("spins"), "rwm", num_chains=2, num_warmup=0, num_samples=4, progress=False)


@thing
def sample_into():
    return lambda folder: dx.sample(get("key"), get("spins"), "rwm", adaptation=None, folder=folder, **TINY)


@thing
def square_root():
    return lambda log_ratio: log_ratio / 2


# --- hostile things that need a definition ---


@thing
def unhashable():
    """A function that has no hash."""

    class Unhashable:
        __hash__ = None

        def __call__(self, *arguments):
            return jnp.asarray(arguments[0], float).sum()

    return Unhashable()
