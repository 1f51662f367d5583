"""The registry: every sampler by name, with what it is and which spaces it takes."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from numpy.typing import ArrayLike

from discrax.core.checks import describe
from discrax.core.kernel import Kernel, check_fits
from discrax.core.space import Binary, Categorical, Ordinal, Space, Spin
from discrax.core.target import Target
from discrax.samplers.balancing import unknown_name
from discrax.samplers.block_gibbs import BlockGibbs, HammingBall
from discrax.samplers.clusters import SwendsenWang, Wolff
from discrax.samplers.composed import Composed, Cycle, Mixture, OnSites, check_parts, checked_weights
from discrax.samplers.continuous_time import DLMC, DLMCf
from discrax.samplers.exact_path import LB, ExactPAS
from discrax.samplers.gaussian_auxiliary import ab_diagonal, ab_first, ab_max, ab_shift, ab_trace, avg, pavg
from discrax.samplers.gibbs import gibbs
from discrax.samplers.global_flip import GlobalFlip
from discrax.samplers.langevin import DMALA, DULA, DLPTrace
from discrax.samplers.locally_balanced import GWG, PAS
from discrax.samplers.ordinal import MHUniform, OrdinalGWG
from discrax.samplers.pseudo_marginal import PseudoMarginal
from discrax.samplers.random_walk import RandomWalk
from discrax.samplers.stochastic import SGDLD, LocalSearch, MinibatchGibbs
from discrax.samplers.swap import Swap, UniformSwap

ALL_SPACES = (Binary, Spin, Ordinal, Categorical)


def spaces_of(kernel: Kernel) -> tuple[type[Space], ...]:
    """The spaces that a kernel and all that it is made of take."""
    common = set(ALL_SPACES).intersection(*map(spaces_of, kernel.parts))
    return tuple(space for space in ALL_SPACES if space in common and issubclass(space, kernel.spaces))


class Sampler(NamedTuple):
    """A row of the registry."""

    name: str
    build: Callable[..., Kernel]
    about: str
    takes_balancing: bool = False

    @property
    def spaces(self) -> tuple[type[Space], ...]:
        """The spaces it takes."""
        return spaces_of(self.build())

    def fits(self, target: Target) -> bool:
        """Whether it takes the target's space and keeps its totals, and the target offers what it cannot do without."""
        try:
            check_fits(self.build(), target)
        except ValueError:
            return False
        return True


REGISTRY = {
    row.name: row
    for row in (
        Sampler("rwm", RandomWalk, "random walk Metropolis on R uniformly chosen sites"),
        Sampler("mh_uniform", MHUniform, "random walk Metropolis on a box around all sites"),
        Sampler("gibbs", gibbs, "Gibbs: random, systematic or chromatic scan"),
        Sampler("block_gibbs", BlockGibbs, "Gibbs on blocks of sites"),
        Sampler("hamming_ball", HammingBall, "Hamming ball sampler on blocks of sites"),
        Sampler("lb", LB, "locally balanced: one site, exact ratios", takes_balancing=True),
        Sampler("pas_exact", ExactPAS, "a path of R sites, exact ratios after each", takes_balancing=True),
        Sampler("gwg", GWG, "Gibbs with gradients: R sites drawn with replacement", takes_balancing=True),
        Sampler("gwg_ordinal", OrdinalGWG, "Gibbs with gradients: one site, up to r grid steps", takes_balancing=True),
        Sampler("pas", PAS, "path auxiliary sampler: R sites drawn without replacement", takes_balancing=True),
        Sampler("dmala", DMALA, "discrete Langevin: all sites at once", takes_balancing=True),
        Sampler("dula", DULA, "discrete Langevin, unadjusted: not exact", takes_balancing=True),
        Sampler("dlp_trace", DLPTrace, "discrete Langevin, a step size per site from curvature", takes_balancing=True),
        Sampler("dlmc", DLMC, "all sites for a time, by interpolation", takes_balancing=True),
        Sampler("dlmcf", DLMCf, "all sites for a time, by an Euler step", takes_balancing=True),
        Sampler("avg", avg, "Gaussian auxiliary variable"),
        Sampler("pavg", pavg, "Gaussian auxiliary variable, preconditioned"),
        Sampler("ab_first", ab_first, "any-scale balanced, first order"),
        Sampler("ab_diagonal", ab_diagonal, "any-scale balanced, a diagonal W: no auxiliary variable"),
        Sampler("ab_shift", ab_shift, "any-scale balanced, second order, D = lambda I"),
        Sampler("ab_max", ab_max, "any-scale balanced, second order, smallest largest eigenvalue"),
        Sampler("ab_trace", ab_trace, "any-scale balanced, second order, smallest trace"),
        Sampler("swap", Swap, "R swaps within groups, which keep their totals", takes_balancing=True),
        Sampler("swap_uniform", UniformSwap, "R uniformly chosen swaps, which keep totals"),
        Sampler("swendsen_wang", SwendsenWang, "clusters of equal sites: a new label for each of them"),
        Sampler("wolff", Wolff, "clusters of equal sites: another label for one of them"),
        Sampler("global_flip", GlobalFlip, "all sites flipped, or all labels shifted: to take turns with others"),
        Sampler("sgdld", SGDLD, "mini-batches: discrete Langevin dynamics, weighted draws", takes_balancing=True),
        Sampler("minibatch_gibbs", MinibatchGibbs, "mini-batches: Gibbs by each of them: not exact"),
        Sampler("pseudo_marginal", PseudoMarginal, "mini-batches: random walk Metropolis with estimates of pi"),
        Sampler("local_search", LocalSearch, "mini-batches: always to the best neighbour; a search, not a sampler"),
    )
}


def get_sampler(name: str) -> Sampler:
    """The row of a name; an error names the nearest ones. "cycle(a,b)" and "mixture(a,b)" are names, too."""
    if not isinstance(name, str):
        raise TypeError(f"A sampler must be a name, but got {describe(name)}.")
    composed = re.fullmatch(r"\s*(cycle|mixture)\s*\((.*)\)\s*", name)
    if composed is not None:
        compose, parts = {"cycle": cycle, "mixture": mixture}[composed[1]], _split(composed[2])
        kernel = compose(*parts)  # what is wrong with it is said here
        return Sampler(name_of(kernel), lambda: compose(*parts), f"made of {', '.join(parts)}")
    if name not in REGISTRY:
        raise unknown_name("sampler", name, {*REGISTRY, "auto"})
    return REGISTRY[name]


def _split(text: str) -> list[str]:
    """The names between commas, but for commas in brackets."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def cycle(*samplers: str | Kernel) -> Cycle:
    """A kernel whose step is one step of each of these, in turn: names of the registry, or kernels."""
    kernels = _kernels(samplers)
    check_parts(kernels)
    return Cycle(kernels)


def mixture(*samplers: str | Kernel, weights: ArrayLike | None = None) -> Mixture:
    """A kernel whose step is one step of one of these, drawn with the weights: equal ones by default.

    Chains run side by side, so that all of them are computed; a `cycle` uses what it computes.
    """
    kernels = _kernels(samplers)
    check_parts(kernels)
    return Mixture(kernels, checked_weights(weights, len(kernels)))


def on_sites(sampler: str | Kernel, sites: ArrayLike) -> OnSites:
    """A kernel that moves the sites of a mask only, given all others: blocks of sites can so have samplers each."""
    return OnSites(_kernels([sampler])[0], sites)


def _kernels(samplers: Sequence[str | Kernel]) -> tuple[Kernel, ...]:
    for each in samplers:
        if not isinstance(each, str | Kernel):
            raise TypeError(f"A sampler must be a name or a kernel, but got {describe(each)}.")
    return tuple(get_sampler(each).build() if isinstance(each, str) else each for each in samplers)


@lru_cache(maxsize=1)
def _names() -> dict[type[Kernel], list[str]]:
    names: dict[type[Kernel], list[str]] = {}
    for row in REGISTRY.values():
        names.setdefault(type(row.build()), []).append(row.name)
    return names


def name_of(kernel: Kernel) -> str:
    """The name of a kernel in the registry, or that of its class where it has none, or several (`AnyScale`, `PAVG`)."""
    if isinstance(kernel, Composed):
        return f"{kernel.title}({','.join(map(name_of, kernel.parts))})"
    names = _names().get(type(kernel), [])
    return names[0] if len(names) == 1 else type(kernel).__name__


def build_kernel(sampler: "str | Kernel", target: Target) -> Kernel:
    """A kernel by name or as it is, checked against the target."""
    if isinstance(sampler, str):
        kernel = get_sampler(sampler).build()
    elif isinstance(sampler, Kernel):
        kernel = sampler
    else:
        raise TypeError(
            f"A sampler is a name ({', '.join(REGISTRY)}, auto) or a kernel such as discrax.samplers.pas(), "
            f"but got {f'the class {sampler.__name__}' if isinstance(sampler, type) else type(sampler).__name__}."
        )
    check_fits(kernel, target)
    return kernel
