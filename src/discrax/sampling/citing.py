"""What to cite for a result."""

from importlib import import_module
from typing import Any

import numpy as np

from discrax.adaptation import AcceptanceReport
from discrax.core.checks import describe
from discrax.core.kernel import Kernel
from discrax.core.target import Target, Tempered
from discrax.samplers.papers import PAPERS, papers_of
from discrax.samplers.registry import get_sampler
from discrax.sampling.left_out import title_of
from discrax.sampling.result import Result
from discrax.targets import (
    RBM,
    CategoricalRBM,
    CubicIsing,
    GaussianBernoulli,
    LogisticRegression,
    PolynomialMixture,
    QuarticMixture,
    TallLogisticRegression,
)

_OF_TUNING = "sun2022scaling"
_OF_TARGETS: dict[type[Target], str] = {  # those that were made up for a paper
    CubicIsing: "rhodes2022",
    PolynomialMixture: "rhodes2022",
    LogisticRegression: "sun2023any",
    QuarticMixture: "sun2023any",
    GaussianBernoulli: "sgdld2023",
    TallLogisticRegression: "sgdld2023",
}
_OF_DATA: dict[type[Target], str] = {RBM: "lecun1998", CategoricalRBM: "xiao2017"}  # of the shipped machines


def citation(result: Result | Kernel | str) -> str:
    """BibTeX of what a result rests on: discrax, the papers of its sampler, of its tuning, and of its target.

    A kernel or the name of a sampler has the papers of that sampler. What no paper is known of is named in a comment:

        print(discrax.citation(result))
    """
    if isinstance(result, Result):
        kernel, more = result.kernel, _papers_of_run(result)
    elif isinstance(result, Kernel | str):
        kernel, more = get_sampler(result).build() if isinstance(result, str) else result, []
    else:
        raise TypeError(f"A citation is of a result, a kernel or the name of a sampler, but got {describe(result)}.")
    papers = papers_of(kernel)
    parts = [_software(), *(PAPERS[key].bibtex(key) for key in dict.fromkeys([*papers, *more]))]
    if not papers:
        parts.append(f"% No paper is known here of the sampler {title_of(kernel)}: cite its own.")
    return "\n\n".join(parts) + "\n"


def _papers_of_run(result: Result) -> list[str]:
    """Those of the tuning and of the target."""
    papers = []
    # Reports of a result that was loaded are texts.
    if any(isinstance(each, AcceptanceReport) or "asked for acceptance" in str(each) for each in result.reports):
        papers.append(_OF_TUNING)
    target: Any = result.target.target if isinstance(result.target, Tempered) else result.target
    if type(target) in _OF_TARGETS:
        papers.append(_OF_TARGETS[type(target)])
    if type(target) in _OF_DATA and _is_shipped(target):
        papers.append(_OF_DATA[type(target)])
    return papers


def _is_shipped(machine: Any) -> bool:
    return np.array_equal(np.asarray(machine.weights), np.asarray(type(machine).pretrained().weights))


def _software() -> str:
    version = import_module("discrax").__version__
    return (
        f"@software{{discrax,\n  author = {{{{The discrax authors}}}},\n"
        "  title = {{discrax: sampling in discrete spaces, in JAX}},\n"
        f"  version = {{{version}}},\n}}"
    )
