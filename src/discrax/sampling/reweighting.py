"""Draws at several temperatures as one sample of all of them: multiple-histogram reweighting.

With N_k draws at beta_k, draw i of energy E_i = -log_prob(x_i) comes from the mixture of all temperatures, so that at
any beta it has the weight

    w_i(beta) = exp(-beta E_i) / sum_k N_k exp(f_k - beta_k E_i),        Z(beta) = sum_i w_i(beta),

where f_k = -log Z(beta_k) are the numbers that agree with themselves (Ferrenberg and Swendsen, 1989; Shirts and
Chodera, 2008). They minimise the convex function

    F(f) = sum_i log sum_k N_k exp(f_k - beta_k E_i) - sum_k N_k f_k,

which Newton's method does in a few steps; f_0 = 0. Draws of a chain that have one energy are one entry with a count.

Errors are those of the jackknife: a chain, at all temperatures, is left out at a time. That draws of a chain depend on
each other makes the weights less than optimal and leaves them right.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

_MOST_STEPS = 100


class Entries(NamedTuple):
    """Draws of one chain and one energy each."""

    chain: Int[np.ndarray, " entries"]
    energy: Float[np.ndarray, " entries"]
    count: Float[np.ndarray, " entries"]
    means: Float[np.ndarray, "entries observables"]  # of the observables of these draws


def gather_entries(
    energy: Float[np.ndarray, "temperatures chains draws"],
    observables: Float[np.ndarray, "observables temperatures chains draws"],
) -> Entries:
    """The draws of each chain, at all temperatures, by their energies."""
    parts = []
    for chain in range(energy.shape[1]):
        values, place = np.unique(energy[:, chain].ravel(), return_inverse=True)
        count = np.bincount(place, minlength=len(values)).astype(np.float64)
        sums = [np.bincount(place, each[:, chain].ravel(), len(values)) for each in observables]
        parts.append((np.full(len(values), chain), values, count, np.stack(sums, axis=-1) / count[:, None]))
    return Entries(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Reweighting:
    """Averages at any temperature, from all draws and from those without one chain each."""

    def __init__(self, entries: Entries, betas: Float[np.ndarray, " temperatures"], num_draws: int):
        chains = int(entries.chain.max()) + 1
        self.entries, self._shift = entries, float(np.average(entries.energy, weights=entries.count))
        self._energy = entries.energy - self._shift  # else exponents overflow
        f = self._first_guess(betas)
        self._log_weights = []  # of each entry at beta = 0, but for a common factor: all, and without each chain
        for left_out in [None, *range(chains)]:
            count = np.where(entries.chain == left_out, 0.0, entries.count)
            number = num_draws * (chains - (left_out is not None))
            f = self._solve(betas, f, count, number)
            with np.errstate(divide="ignore"):
                self._log_weights.append(np.log(count) - self._mixture(betas, f, number))

    def _first_guess(self, betas: Float[np.ndarray, " temperatures"]) -> Float[np.ndarray, " temperatures"]:
        """df / dbeta = E(beta), which grows as beta falls; here that of the draws as if each were at its own."""
        order = np.argsort(-self._energy)
        share = (np.cumsum(self.entries.count[order]) - self.entries.count[order] / 2) / self.entries.count.sum()
        means = np.interp((np.arange(len(betas)) + 0.5) / len(betas), share, self._energy[order])
        return np.concatenate([[0.0], np.cumsum(np.diff(betas) * (means[1:] + means[:-1]) / 2)])

    def _mixture(self, betas: np.ndarray, f: np.ndarray, number: float) -> Float[np.ndarray, " entries"]:
        """log sum_k N_k exp(f_k - beta_k E_i)."""
        logs = f - np.multiply.outer(self._energy, betas)
        largest = logs.max(axis=1)
        return np.log(number) + largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1))

    def _solve(
        self, betas: np.ndarray, f: np.ndarray, count: Float[np.ndarray, " entries"], number: float
    ) -> Float[np.ndarray, " temperatures"]:
        """The f that agrees with itself, by Newton's method with steps halved until F falls."""
        value = np.inf
        step = np.zeros_like(f)
        for _ in range(_MOST_STEPS):
            tried = f + step
            mixture = self._mixture(betas, tried, number)
            now = float(count @ mixture - number * tried.sum())
            if now > value + 1e-9 * abs(value):
                step = step / 2
                continue
            f, value = tried, now
            p = np.exp(np.log(number) + f - np.multiply.outer(self._energy, betas) - mixture[:, None])
            weighed = count[:, None] * p
            slope = weighed.sum(axis=0) - number
            if np.abs(slope[1:]).max(initial=0) < 1e-8 * number:
                break
            bend = np.diag(weighed.sum(axis=0)) - p.T @ weighed
            step = np.zeros_like(f)
            step[1:] = -np.linalg.lstsq(bend[1:, 1:], slope[1:])[0]
            step *= min(1.0, 20 / max(1e-12, np.abs(step).max()))  # exp of more is not to be trusted
        return f

    def averages(
        self, betas: Float[np.ndarray, " betas"]
    ) -> tuple[Float[np.ndarray, "samples betas"], Float[np.ndarray, "samples betas moments"]]:
        """log Z, but for a common number, and the means of E, of its squared deviation, and of the observables.

        Of all draws first, then without each chain.
        """
        shape = (len(self._log_weights), len(betas))
        log_z, means = np.empty(shape), np.empty((*shape, 2 + self.entries.means.shape[1]))
        for i, log_weights in enumerate(self._log_weights):
            for j, beta in enumerate(betas):
                logs = log_weights - beta * self._energy
                largest = logs.max()
                weights = np.exp(logs - largest)
                total = weights.sum()
                log_z[i, j] = largest + np.log(total) - beta * self._shift
                weights = weights / total
                mean = weights @ self._energy
                means[i, j] = [
                    mean + self._shift,
                    weights @ (self._energy - mean) ** 2,
                    *(weights @ self.entries.means),
                ]
        return log_z, means


def jackknife(samples: Float[np.ndarray, "samples ..."]) -> tuple[np.ndarray, np.ndarray]:
    """The value of all chains, which is the first, and its error from those without one each."""
    without = samples[1:]
    spread = np.square(without - without.mean(axis=0)).sum(axis=0)
    return samples[0], np.sqrt((len(without) - 1) / len(without) * spread)
