"""Energy models as cells: models that are trained, and models that are sampled from after they were trained.

A cell that trains counts in its budget the batch (num_chains), the updates (num_samples) and the sampler's steps per
update (thinning). Its measures are

    estimation   couplings J* are known, data are samples of their model, and J is learnt from them:
                 J_estimation_error = ||J - J*||_F / sqrt(d), and how far the chains are from the samples
    likelihood   a residual network is trained on images: the log-likelihood of test images by annealed importance
                 sampling, and whether training diverged

and those of a cell whose target is a trained network

    snapshots          pictures of the chains every so many steps, and their mean log-probability
    mixing_from_noise  mean log-probability against steps, from chains that begin as noise

A row of pixels is stored as one number, whose bits they are (`pixels`; `plots.pictures` reads it).

What takes long to train is kept in the cache folder for the next time.
"""

import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax import samplers, targets
from discrax.bench.cell import Call, Cell
from discrax.bench.data import cache_folder
from discrax.bench.measure import Experiment, check_complete, target_of
from discrax.bench.store import Number, Timing
from discrax.core.files import write_whole
from discrax.core.kernel import Kernel, replaced
from discrax.core.space import Spin
from discrax.core.target import Target
from discrax.curvature.metric import Metric
from discrax.data import Images, load_images
from discrax.learn import models, quality
from discrax.learn.ais import ais, log_probs_of
from discrax.learn.frequencies import smoothed
from discrax.learn.mixing import mixing_curves
from discrax.learn.mixing import snapshots as snapshots_of
from discrax.learn.runs import adam_with_warmup
from discrax.learn.training import Trained, pcd
from discrax.sampling import sample

Kept = TypeVar("Kept")
_COMPARED = 5000  # states of the chains and samples that are compared


# --- Couplings that are learnt again ---------------------------------------------------------------------------------


class Known(NamedTuple):
    """A model whose couplings are known, and samples of it, from which they are to be learnt."""

    couplings: Float[np.ndarray, "d d"]  # J*
    rows: Integer[np.ndarray, "rows *shape"]
    untrained: Callable[[int], Target]  # of a seed
    part: Callable[[Any], Array]  # of a model: what is trained
    factor: float  # part(model) = factor * J


class Following(NamedTuple):
    """A sampler that is made from the data, and may follow the model after each update."""

    kernel: Callable[[Known], Kernel]
    refresh: Callable[[Any, Any], Any] | None = None


def estimation(learning_rate: float, l1: float = 0.0, buffer_size: int = 5000) -> Experiment:
    """J learnt by persistent contrastive divergence with the cell's sampler; `l1` weighs the sum of all |J_ij|."""

    def run(cell: Cell) -> tuple[list[Number], Timing]:
        import scipy.linalg  # noqa: F401  # loads the library whose threads are limited
        from threadpoolctl import threadpool_limits  # comes with scikit-learn

        known, sampler, refresh = _known(cell.target), cell.sampler(), None
        if isinstance(sampler, Following):
            sampler, refresh = sampler.kernel(known), sampler.refresh
        # With several threads OpenBLAS takes 80 times as long for the eigenvectors of a small matrix as with one.
        with threadpool_limits(1, user_api="blas"):
            trained = _trained(
                cell,
                known.untrained(cell.seed),
                known.rows,
                sampler=sampler,
                refresh=refresh,
                buffer_size=buffer_size,
                learning_rate=learning_rate * known.factor,
                l1=l1 / known.factor,
                trains=known.part,
                largest_gap=math.inf,  # samplers that fail are part of the comparison
            )
        J = np.asarray(known.part(trained.model), np.float64) / known.factor
        error = float(np.linalg.norm(J - known.couplings) / math.sqrt(len(J)))
        chains, rows = trained.buffer[:_COMPARED], known.rows[:_COMPARED]
        numbers = [
            Number("J_estimation_error", error),
            Number("mmd", quality.mmd(chains, rows)),
            Number("marginal_error", quality.marginal_error(chains, rows)),
            Number("covariance_error", quality.covariance_error(chains, rows)),
        ]
        return numbers + _of_training(trained), _timing(trained)

    return Experiment(run)


@lru_cache(maxsize=4)
def _known(call: Call) -> Known:
    return call()


def ising_lattice(side: int = 10, strength: float = 0.2, num_rows: int = 10_000) -> Known:
    """log pi(s) = s'J s on a periodic square lattice, all J_ij of neighbours equal."""
    J = lattice_couplings(side, strength)
    true, num_chains = targets.Ising.dense(2 * J), -(-num_rows // 10)

    def samples() -> Integer[np.ndarray, "rows d"]:
        # Every step is a block Gibbs update of all spins.
        kernel = samplers.pavg(eps=1000.0, M=2 * J)
        result = sample(
            jax.random.key(0), true, kernel,
            num_chains=num_chains, num_warmup=500, num_samples=10, thinning=50, adaptation=None, progress=False,
        )  # fmt: skip
        check_complete(result)
        assert result.draws is not None
        return result.draws.reshape(-1, side**2)[:num_rows].astype(np.int8)

    rows = _kept(f"ising-rows-{side}-{strength:g}-{num_rows}", np.zeros((num_rows, side**2), np.int8), samples)

    def untrained(seed: int) -> Target:
        return targets.Ising.dense(2 * np.asarray(models.random_couplings(jax.random.key(seed), side**2)))

    return Known(J, rows, untrained, _ising_matrix, factor=2.0)


def lattice_couplings(side: int, strength: float) -> Float[np.ndarray, "d d"]:
    J, sites = np.zeros((side**2, side**2)), np.arange(side**2).reshape(side, side)
    for axis in (0, 1):
        neighbours = np.roll(sites, -1, axis)
        J[sites, neighbours] = J[neighbours, sites] = strength
    return J


def _ising_matrix(model: targets.Ising) -> Array:
    return model.coupling.matrix  # pyright: ignore[reportAttributeAccessIssue]


def convolutional(
    num_updates: int, num_steps: int, learning_rate: float, num_reference: int, num_rows: int = 5000, seed: int = 0
) -> Known:
    """A convolutional network with couplings of all pairs of pixels, trained on USPS with GWG.

    The samples are the chains of that training after `num_reference` more steps of the path auxiliary sampler.
    """
    images = image_set("usps")
    untrained_truth: Any = models.convnet(jax.random.key(seed), images.shape, quadratic=True)

    def make() -> tuple[Any, Integer[np.ndarray, "rows *shape"]]:
        trained = pcd(
            jax.random.key(seed),
            untrained_truth,
            images,
            sampler="gwg",
            num_steps=num_steps,
            num_updates=num_updates,
            batch_size=50,
            buffer_size=num_rows,
            learning_rate=learning_rate,
            adaptation=None,
            penalty=_network_decay,
            every=max(1, num_updates // 20),
            progress=False,
        )
        _check_complete(trained)
        (rows,) = snapshots_of(
            jax.random.key(seed + 1),
            trained.model,
            "pas",
            num_chains=num_rows,
            num_steps=num_reference,
            every=num_reference,
            num_warmup=min(200, num_reference),
            starts=trained.buffer[:num_rows],
            progress=False,
        )
        return trained.model, rows.astype(np.int8)

    name = f"convnet-usps-{num_updates}-{num_steps}-{learning_rate:g}-{num_reference}-{num_rows}-{seed}"
    truth, rows = _kept(name, (untrained_truth, np.zeros((num_rows, *images.shape), np.int8)), make)

    def untrained(seed: int) -> Target:
        couplings = models.random_couplings(jax.random.key(seed), truth.space.num_sites)
        return replaced(truth, couplings=couplings)

    J = np.asarray(truth.couplings, np.float64)
    return Known((J + J.T) / 2, rows, untrained, _network_couplings, factor=1.0)


def _network_decay(model: models.NetworkModel) -> Float[Array, ""]:
    leaves = jax.tree.leaves(eqx.filter(model.network, eqx.is_inexact_array))
    return 1e-4 / 2 * jnp.sum(jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in leaves]))


def _network_couplings(model: models.NetworkModel) -> Array:
    assert model.couplings is not None
    return model.couplings


# An eps for codes 0 and 1 is eps * h^2 for an embedding whose levels are h apart, and a Hessian is W / h^2.


def pavg_of_model(eps: float = 1000.0) -> Following:
    """PAVG with the Hessian of an Ising model, anew after each update: every step is accepted."""
    return Following(lambda known: samplers.pavg(eps=eps, M=np.eye(len(known.couplings))), _follow_ising)


def _follow_ising(kernel: Any, model: targets.Ising) -> Any:
    matrix = _ising_matrix(model)
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    return replaced(kernel, metric=replaced(kernel.metric, values=values, vectors=vectors))


def pavg_of_data(eps: float) -> Following:
    """PAVG with gamma times the covariance of the data, eps and gamma for codes 0 and 1; gamma begins at 1."""

    def kernel(known: Known) -> Kernel:
        squared = 4 if isinstance(known.untrained(0).space, Spin) else 1
        covariance = np.cov(known.rows.reshape(len(known.rows), -1), rowvar=False)
        return samplers.pavg(eps=eps * squared, M=covariance / squared)

    return Following(kernel)


# --- Networks on images ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def image_set(name: str) -> Images:
    return load_images(name)


def likelihood(
    width: int, num_blocks: int, learning_rate: float, buffer_size: int, num_temperatures: int
) -> Experiment:
    """A residual network trained with the cell's sampler, and the log-likelihood of test images."""

    def run(cell: Cell) -> tuple[list[Number], Timing]:
        images = cell.target()
        trained = _trained(
            cell,
            _network(images, width, num_blocks, cell.seed),
            images,
            sampler=cell.sampler(),
            buffer_size=buffer_size,
            optimiser=adam_with_warmup(learning_rate, max(1, cell.budget.num_samples // 5)),
        )
        numbers = [Number("diverged", float(trained.stopped is not None)), *_of_training(trained)]
        if trained.stopped is None:
            numbers += _log_likelihood(cell, trained.ema, images, num_temperatures)
        return numbers, _timing(trained)

    return Experiment(run)


def _log_likelihood(cell: Cell, model: Target, images: Images, num_temperatures: int) -> list[Number]:
    found = ais(
        jax.random.key(cell.seed),
        model,
        base=smoothed(images.mean, images.num_levels),
        num_temperatures=num_temperatures,
        progress=False,
    )
    value, error = found.log_likelihood(model, images.binarise(0).test)
    return [
        Number("log_likelihood", value),
        Number("log_likelihood_error", error),
        Number("log_Z", found.log_Z),
        Number("effective_weights", found.num_effective),
    ]


def trained_resnet(
    data: str,
    width: int,
    num_blocks: int,
    num_updates: int,
    num_steps: int,
    learning_rate: float,
    buffer_size: int,
    seed: int = 0,
) -> Target:
    """A residual network trained on images with the path auxiliary sampler, its parameters averaged."""
    images = image_set(data)
    untrained = _network(images, width, num_blocks, seed)

    def make() -> Target:
        trained = pcd(
            jax.random.key(seed),
            untrained,
            images,
            num_steps=num_steps,
            num_updates=num_updates,
            buffer_size=buffer_size,
            optimiser=adam_with_warmup(learning_rate, max(1, num_updates // 5)),
            every=max(1, num_updates // 20),
            progress=False,
        )
        _check_complete(trained)
        return trained.ema

    settings = (data, width, num_blocks, num_updates, num_steps, f"{learning_rate:g}", buffer_size, seed)
    return _kept(f"resnet-{'-'.join(map(str, settings))}", untrained, make)


def _network(images: Images, width: int, num_blocks: int, seed: int) -> models.NetworkModel:
    key = jax.random.key(seed + 1)
    return models.resnet(key, images.shape, width=width, num_blocks=num_blocks, frequencies=images.mean)


def snapshots(num_shown: int = 16) -> Experiment:
    """The chains after every `thinning` steps; the first `num_shown` of them as pictures."""

    def run(cell: Cell) -> tuple[list[Number], Timing]:
        target, budget = target_of(cell.target), cell.budget
        begin = time.perf_counter()
        shots = snapshots_of(
            jax.random.key(cell.seed),
            target,
            cell.sampler(),
            num_chains=budget.num_chains,
            num_steps=budget.num_samples * budget.thinning,
            every=budget.thinning,
            num_warmup=budget.num_warmup,
            progress=False,
        )
        seconds = time.perf_counter() - begin
        values = log_probs_of(target, shots.reshape(-1, *target.space.shape)).reshape(shots.shape[:2])
        numbers = [Number("time_s", seconds)]
        numbers += [
            Number("log_prob", float(at.mean()), float(at.std()), x=float(budget.thinning * (place + 1)))
            for place, at in enumerate(values)
        ]
        return numbers + pixels(shots[:, :num_shown], budget.thinning), Timing(seconds=seconds)

    return Experiment(run)


def pixels(shots: Integer[np.ndarray, "snapshots shown height width"], every: int) -> list[Number]:
    """Black and white pictures as numbers: one a row of pixels, whose bits they are; first all rows of one picture."""
    num_snapshots, num_shown, height, width = shots.shape
    if width > 52:
        raise ValueError(
            f"A row of pixels fits into a number where there are at most 52, but pictures are {width} wide."
        )
    rows = shots.reshape(-1, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))
    shape = {"snapshots": num_snapshots, "shown": num_shown, "height": height, "width": width, "every": every}
    return [Number(f"pixels_{name}", float(value)) for name, value in shape.items()] + [
        Number("pixels", float(row), x=float(place)) for place, row in enumerate(rows)
    ]


def mixing_from_noise() -> Experiment:
    """log pi of chains that begin as uniform noise, the same for all samplers, every `thinning` steps."""

    def run(cell: Cell) -> tuple[list[Number], Timing]:
        target, budget = target_of(cell.target), cell.budget
        rng = np.random.default_rng(cell.seed)
        starts = rng.integers(0, target.space.num_levels, (budget.num_chains, *target.space.shape)).astype(np.int8)
        begin = time.perf_counter()
        curve = mixing_curves(
            jax.random.key(cell.seed),
            target,
            {"sampler": cell.sampler()},
            starts=starts,
            num_steps=budget.num_samples * budget.thinning,
            num_chains=budget.num_chains,
            num_warmup=budget.num_warmup,
            every=budget.thinning,
            progress=False,
        )["sampler"]
        seconds = time.perf_counter() - begin
        spread = curve.error * math.sqrt(budget.num_chains)
        numbers = [
            Number("log_prob", float(mean), float(std), x=float(step))
            for step, mean, std in zip(curve.steps, curve.mean, spread, strict=True)
        ]
        numbers += [Number("acceptance", curve.acceptance), Number("time_s", seconds)]
        return numbers, Timing(seconds=seconds)

    return Experiment(run)


class NoNoise(Metric):
    """W + D = 0, where W is diagonal and D = -W: there is nothing to decouple, and no auxiliary variable."""

    diagonal_values: Float[Array, " n"]

    @property
    def diagonal(self) -> Float[Array, "*n"]:
        return self.diagonal_values

    def product(self, z: Float[Array, "n *levels"]) -> Float[Array, "n *levels"]:
        return jnp.zeros_like(z)

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "n *levels"]:
        return jnp.zeros(shape, self.diagonal_values.dtype)


def ab_diagonal(data: str, sigma: float, alpha: float) -> Kernel:
    """The any-scale balanced sampler with W_ii = -1 / (1 + variance of pixel i in the data)."""
    p = np.asarray(image_set(data).mean).reshape(-1)
    stiffness = jnp.asarray(1 / (1 + p * (1 - p)), jnp.result_type(float))
    return replaced(samplers.ab_first(sigma, alpha), metric=NoNoise(stiffness))


# --- What they share -------------------------------------------------------------------------------------------------


def _trained(cell: Cell, model: Target, data: Any, **settings: Any) -> Trained:
    trained = pcd(
        jax.random.key(cell.seed),
        model,
        data,
        num_steps=cell.budget.thinning,
        num_updates=cell.budget.num_samples,
        batch_size=cell.budget.num_chains,
        adaptation=cell.adaptation() if isinstance(cell.adaptation, Call) else cell.adaptation,
        every=max(1, cell.budget.num_samples // 20),
        progress=False,
        **settings,
    )
    if trained.is_interrupted:
        raise KeyboardInterrupt
    return trained


def _check_complete(trained: Trained) -> None:
    """A model that others are measured on is trained to the end, or not there."""
    if trained.is_interrupted:
        raise KeyboardInterrupt
    if trained.stopped is not None:
        raise RuntimeError(trained.stopped)


def _of_training(trained: Trained) -> list[Number]:
    curves = trained.curves
    numbers = [Number("num_updates", trained.num_updates)]
    if not len(curves["update"]):
        return numbers
    numbers += [Number(name, float(curves[name][-1])) for name in ("gap", "acceptance", "jump", "gradient_norm")]
    numbers.append(Number("time_s", float(curves["seconds"][-1])))
    return numbers + [
        Number("gap_at_update", float(gap), x=float(update))
        for update, gap in zip(curves["update"], curves["gap"], strict=True)
    ]


def _timing(trained: Trained) -> Timing:
    seconds = trained.curves["seconds"]
    return Timing(seconds=float(seconds[-1]) if len(seconds) else 0.0)


def _kept(name: str, like: Kept, make: Callable[[], Kept]) -> Kept:
    """What was kept in the cache folder under this name; else it is made and kept. `like` has its structure."""
    path = cache_folder() / f"{name}.eqx"
    if not path.exists():
        made = make()
        write_whole(path, lambda file: eqx.tree_serialise_leaves(file, made))
    return eqx.tree_deserialise_leaves(path, like)
