"""Chains that warm-up has left behind are brought along by shorter steps.

All chains share one scale. It is tuned by those that have arrived where the law is, which is soon most of them; a chain
that is still far off refuses steps of that scale, most of them or for ever. So where a chain has accepted less than a
fifth of what all did in the later half of warm-up, all get, before the first draw, steps of

    s / 2^8, s / 2^7, ..., s / 2        (50 of each; s is the scale to draw with)

A step of any scale keeps the law, so these are more of warm-up. Where more than a twentieth of the chains
had stayed behind the scale was tuned to those too, and is tuned again. A run without such chains has none of this.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from discrax.adaptation.acceptance import scale_of, with_scale
from discrax.core.driver import Adapter
from discrax.core.interrupts import Interrupts
from discrax.core.kernel import Kernel, rated_knob
from discrax.core.target import Target
from discrax.sampling.run import Progress, Run

_HALVINGS = range(8, 0, -1)
_STEPS = 50  # of each scale
_FEWEST = 50  # steps of warm-up by which chains are judged
_REFUSING = 0.2  # a chain that accepts less than this part of what all do
_MANY = 0.05  # of the chains


def is_left_behind(accept_probs: Float[np.ndarray, "chains steps"]) -> Bool[np.ndarray, " chains"]:
    """Which chains refuse much more than the others in the later half of warm-up."""
    late = np.asarray(accept_probs)[:, accept_probs.shape[1] // 2 :]
    if late.shape[1] < _FEWEST:
        return np.zeros(len(late), bool)
    rates = late.mean(axis=1)
    return rates < _REFUSING * rates.mean()


def bring_along(
    run: Run,
    accept_probs: Sequence[Float[np.ndarray, "chains steps"]],
    adapters: Sequence[Adapter],
    interrupts: Interrupts,
) -> Run:
    """The frozen run with no chain left behind, as far as shorter steps can do it.

    `accept_probs`: those of warm-up, run by run, whose scales `adapters` have tuned. A signal ends it half done: what
    comes back is then not to be drawn from.
    """
    counts = [
        int(is_left_behind(probs).sum()) if rated_knob(kernel, target) else 0
        for kernel, target, probs in zip(run.kernels, run.targets, accept_probs, strict=True)
    ]
    if not any(counts):
        return run
    run = run.stop_tuning()  # which a program that tunes and draws might do yet
    kernels = run.kernels
    before = list(zip(run.split(run.ensemble._replace(observed=())), run.reports, strict=True))
    for halvings in _HALVINGS:
        parts = zip(kernels, run.targets, counts, strict=True)
        run = run.with_kernels([_shorter(kernel, of, halvings) if count else kernel for kernel, of, count in parts])
        run = _walk(run.steps(_STEPS, resize=False), run, interrupts)
    said = [_said(count) if count else None for count in counts]
    run = run.with_kernels(kernels).with_reports(said)
    num_chains, num_tuning = np.shape(accept_probs[0])
    if max(counts) > _MANY * num_chains:
        run = run.begin_tuning(adapters, num_tuning)
        run = _walk(run.steps(num_tuning), run, interrupts).freeze()
    else:  # the last report is that of the tuning
        run = replace(run, reports=tuple((*told[:-2], told[-1], told[-2]) for told in run.reports))
    after = zip(run.split(run.ensemble), run.reports, strict=True)
    chosen = [new if count else old for new, old, count in zip(after, before, counts, strict=True)]
    return replace(run.with_ensembles([each for each, _ in chosen]), reports=tuple(told for _, told in chosen))


def _walk(chunks: Iterator[Progress], run: Run, interrupts: Interrupts) -> Run:
    """The run after the last of its chunks, or after that in which a signal came."""
    while not interrupts.requested and (chunk := next(chunks, None)) is not None:
        run = chunk.run
    return run


def _said(count: int) -> str:
    chains = "1 chain" if count == 1 else f"{count} chains"
    return f"{chains} left behind in warm-up, brought along by {_STEPS * len(_HALVINGS)} shorter steps"


def _shorter(kernel: Kernel, target: Target, halvings: int) -> Kernel:
    return with_scale(target, kernel, scale_of(target, kernel)[1] - halvings * math.log(2))[0]
