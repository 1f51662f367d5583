"""Machines trained on handwritten digits, whose classes are modes.

crossing    how often a chain goes from one class to another, how many classes it sees, pictures of its draws; with a
            ladder also log Z of the machine, beside annealed chains of several times the cost

The class of a picture is told by least squares on its pixels and the machine's hidden units, whose share of right
answers on images that it was not fitted to stands beside the numbers. A draw of which two classes are about as likely
counts as of the last one that was told.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from discrax.bench.experiments.models import rbm_from_cache
from discrax.bench.experiments.multimodal import draw, timing_of, trips_of
from discrax.bench.experiments.training import pixels
from discrax.bench.plan.cell import Cell
from discrax.bench.plan.measure import Measured, Number, experiment, target_of
from discrax.core.target import Target
from discrax.data.folder import data_arrays
from discrax.learn.ais import ais
from discrax.learn.frequencies import frequencies, smoothed
from discrax.learn.rbm import train_rbm
from discrax.sampling import Ladder
from discrax.sampling.path import law_of_sites
from discrax.targets import RBM

_CLASSES = 10
_FITTED = 20_000  # images by which classes are told
_MARGIN = 0.2  # by which the score of a class must lead
_SNAPSHOTS, _SHOWN = 12, 9
_ANNEALED = 1_000  # chains


class Digits(NamedTuple):
    """Black and white images as rows, and what they show."""

    rows: Integer[np.ndarray, "rows pixels"]
    classes: Int[np.ndarray, " rows"]
    side: int


@lru_cache(maxsize=2)
def digits(data: str) -> Digits:
    """Of MNIST ("mnist"), or the small ones that come with scikit-learn ("digits"); in random order."""
    rng = np.random.default_rng(0)
    if data == "digits":
        from sklearn.datasets import load_digits

        pixels_, classes = load_digits(return_X_y=True)
        rows, side = pixels_ >= 8, 8
    else:
        arrays = data_arrays(f"{data}/{data}.npz")
        classes, side = arrays["train_y"], 28
        rows = rng.random((len(classes), side * side)) < arrays["train_x"].reshape(-1, side * side) / 255
    order = rng.permutation(len(rows))
    return Digits(rows[order].astype(np.int8), classes[order].astype(np.int64), side)


def machine(data: str, num_hidden: int, num_epochs: int, num_gibbs: int = 10, seed: int = 0) -> Target:
    """Trained by persistent chains on all digits; kept for the next time."""

    def train() -> RBM:
        settings: dict[str, Any] = {"num_gibbs": num_gibbs, "num_epochs": num_epochs, "persistent": True}
        return train_rbm(jax.random.key(seed), digits(data).rows, num_hidden, **settings, progress=False)

    return rbm_from_cache(f"digits-{data}-{num_hidden}-{num_epochs}-{num_gibbs}-{seed}", train)


def from_images(target: Target, seed: int, num_chains: int, data: str) -> Array:
    """Chain i begins at an image of the class i mod 10."""
    rows, classes, _ = digits(data)
    firsts = [np.flatnonzero(classes == i % _CLASSES)[i // _CLASSES] for i in range(num_chains)]
    return jax.numpy.asarray(rows[firsts], target.space.dtype)


class Teller(NamedTuple):
    """Tells the class of a picture."""

    weights: Float[np.ndarray, "features classes"]
    accuracy: float

    def __call__(self, features: Float[np.ndarray, "rows features"]) -> Int[np.ndarray, " rows"]:
        """The class of each; -1 where two are about as likely."""
        scores = features @ self.weights
        best = np.sort(scores, axis=1)
        return np.where(best[:, -1] - best[:, -2] > _MARGIN, scores.argmax(axis=1), -1)


def features_of(model: RBM, rows: Integer[np.ndarray, "rows pixels"]) -> Float[np.ndarray, "rows features"]:
    """Pixels, P(hidden unit is on), and 1."""
    x = np.asarray(rows, np.float32)
    logits = x @ np.asarray(model.weights, np.float32).T + np.asarray(model.hidden_bias, np.float32)
    return np.concatenate([x, 1 / (1 + np.exp(-logits)), np.ones((len(x), 1), np.float32)], axis=1)


def fit_teller(model: RBM, known: Digits) -> Teller:
    """By ridge regression on the first images; its accuracy is of the next."""
    count = min(_FITTED, len(known.rows) * 4 // 5)
    features = features_of(model, known.rows[: count + count // 4])
    there, rest = features[:count], features[count:]
    wanted = np.eye(_CLASSES, dtype=np.float32)[known.classes[:count]]
    ridge = 1e-3 * count * np.eye(there.shape[1], dtype=np.float32)
    weights = np.linalg.solve(there.T @ there + ridge, there.T @ wanted)
    right = (rest @ weights).argmax(axis=1) == known.classes[count : count + len(rest)]
    return Teller(weights, float(right.mean()))


def follow(told: Int[np.ndarray, "chains draws"]) -> tuple[np.ndarray, np.ndarray]:
    """Of every chain: how often its class changes, and how many classes it has."""
    changes, seen = [], []
    for chain in told:
        chain = chain[chain >= 0]
        changes.append(int((np.diff(chain) != 0).sum()))
        seen.append(len(np.unique(chain)))
    return np.array(changes, float), np.array(seen, float)


@experiment
def crossing(cell: Cell, data: str, num_rungs: int = 0, times: int = 0) -> Measured:
    """With `num_rungs` a ladder from the pixels' frequencies; with `times` log Z by annealed chains of so much cost."""
    target, known, ladder = target_of(cell.target), digits(data), None
    assert isinstance(target, RBM)
    base = smoothed(frequencies(known.rows))
    if num_rungs:
        ladder = Ladder(num_rungs=num_rungs, reference=law_of_sites(target.space, base))
    result = draw(cell, jax.random.key(cell.seed), ladder=ladder)
    draws, teller = np.asarray(result.draws), fit_teller(target, known)
    told = teller(features_of(target, draws.reshape(-1, draws.shape[-1]))).reshape(draws.shape[:2])
    changes, seen = follow(told)
    thousands = draws.shape[1] * cell.budget.thinning / 1_000
    numbers = [
        Number("class_changes", float(changes.mean() / thousands), float(changes.std() / thousands)),
        Number("classes_seen", float(seen.mean()), float(seen.std())),
        Number("classes_told", float((told >= 0).mean())),
        Number("accuracy_of_classes", teller.accuracy),
        Number("time_s", result.seconds),
    ]
    every = max(1, draws.shape[1] // _SNAPSHOTS)
    shots = draws[:_SHOWN, every - 1 :: every][:, :_SNAPSHOTS].swapaxes(0, 1)
    numbers += pixels(shots.reshape(*shots.shape[:2], known.side, known.side), every * cell.budget.thinning)
    if ladder is not None and times:
        numbers += _log_normaliser(cell, target, base, result, num_rungs, times)
    return [*numbers, *trips_of(result)], timing_of(result)


def _log_normaliser(cell: Cell, target: RBM, base: Any, result: Any, num_rungs: int, times: int) -> list[Number]:
    found, budget = result.tempering.log_normaliser, cell.budget
    steps = num_rungs * budget.num_steps
    annealed = ais(
        jax.random.key(cell.seed + 1),
        target,
        reference=base,
        num_chains=_ANNEALED,
        num_temperatures=max(10, times * steps // _ANNEALED),
        sampler=cell.sampler(),
        progress=False,
    )
    half = (annealed.interval[1] - annealed.interval[0]) / (2 * 1.96)
    return [
        Number("log_Z", found.log_Z),
        Number("log_Z_error", found.error),
        Number("annealed_log_Z", annealed.log_Z),
        Number("annealed_error", half),
        Number("log_Z_score", (found.log_Z - annealed.log_Z) / math.hypot(found.error, half)),
    ]
