"""One table of what a run achieved and whether it can be trusted."""

from dataclasses import dataclass, field

import numpy as np

from discrax.core.checks import real_array
from discrax.diagnostics.ess import ess, is_constant
from discrax.diagnostics.rank import bulk_ess, rank_rhat, tail_ess
from discrax.diagnostics.sites import SiteDiagnostics
from discrax.diagnostics.weighted import are_equal, weighted_ess, weighted_mean, weighted_rhat, weighted_variance


@dataclass(frozen=True)
class ScalarDiagnostics:
    """Convergence of one scalar statistic; None where it cannot be had."""

    name: str
    mean: float
    sd: float
    ess: float | None  # sum over chains of the per-chain ESS, first-negative rule
    ess_bulk: float | None
    ess_tail: float | None
    rhat: float | None


def diagnose(name: str, values: np.ndarray, weights: np.ndarray | None = None) -> ScalarDiagnostics:
    """Diagnostics of (chain, draw) values. A constant chain has ESS 0, and then there is no R-hat to trust.

    Of draws with different weights R-hat is Gelman and Rubin's, and there is no bulk or tail ESS.
    """
    values = real_array("values", values)
    if values.ndim != 2:
        raise ValueError(f"values must have axes (chain, draw), but got shape {values.shape}.")
    weights = None if weights is None else real_array("weights", weights)
    if weights is not None and weights.shape != values.shape:
        raise ValueError(f"weights must have the shape of the values, {values.shape}, but got {weights.shape}.")
    if weights is not None and not are_equal(weights):
        return _diagnose_weighted(name, values, weights)
    per_chain = ess(values)
    bulk = tail = rhat = None
    if is_constant(values).any():
        bulk = tail = 0.0
    elif values.shape[1] >= 4:
        bulk, tail = bulk_ess(values), tail_ess(values)
        rhat = rank_rhat(values) if values.shape[0] > 1 else None
    return ScalarDiagnostics(name, float(values.mean()), float(values.std()), float(per_chain.sum()), bulk, tail, rhat)


def _diagnose_weighted(name: str, values: np.ndarray, weights: np.ndarray) -> ScalarDiagnostics:
    mean, within = weighted_mean(values, weights), weighted_variance(values, weights)
    rhat = weighted_rhat(values, weights) if values.shape[0] > 1 and not is_constant(values).any() else np.nan
    sd, total = float(np.sqrt(within.mean() + mean.var())), float(weighted_ess(values, weights).sum())
    return ScalarDiagnostics(name, float(mean.mean()), sd, total, None, None, rhat if np.isfinite(rhat) else None)


@dataclass(frozen=True)
class Summary:
    """What `print(result.summary())` shows; every number is a field."""

    title: str
    num_chains: int
    num_draws: int
    acceptance: float
    jump: float  # expected jump distance per step
    evaluations: float  # of the target, over all chains and draws
    seconds: float
    compile_seconds: float
    scalars: tuple[ScalarDiagnostics, ...]
    adaptation: str | None = None
    invalid: int = 0  # proposals with a NaN or +inf log-probability
    stuck_chains: tuple[int, ...] = ()
    never_moved: int = 0  # free sites that have the same code in every draw of every chain
    sites_per_step: tuple[float, int] | None = None  # that a step may change, and the free sites; None where it is all
    thinning: int = 1
    effective_weights: float | None = None  # the draws of a chain that count, where they have different weights
    notes: tuple[str, ...] = field(default=())
    sites: SiteDiagnostics | None = None  # where they were asked for

    @property
    def ess(self) -> float | None:
        """The smallest of all: over chains, bulk and tail, of every scalar."""
        values = [value for scalar in self.scalars for value in (scalar.ess, scalar.ess_bulk, scalar.ess_tail)]
        return min((value for value in values if value is not None), default=None)

    @property
    def rhat(self) -> float | None:
        """The largest of all scalars."""
        return max((scalar.rhat for scalar in self.scalars if scalar.rhat is not None), default=None)

    @property
    def sweeps(self) -> float | None:
        """How often every site of a chain could change while drawing, where a step changes only some of them."""
        if self.sites_per_step is None:
            return None
        changed, sites = self.sites_per_step
        return self.num_draws * self.thinning * changed / sites

    def warnings(self) -> list[str]:
        """What a user should know before trusting the draws, a sentence each."""
        lines = list(self.notes)
        if self.stuck_chains:
            chains = ", ".join(map(str, self.stuck_chains[:8])) + (", ..." if len(self.stuck_chains) > 8 else "")
            lines.append(f"{len(self.stuck_chains)} of {self.num_chains} chains never moved (ESS 0): {chains}.")
        if self.never_moved:
            lines.append(f"{self.never_moved} free sites have the same code in every draw.")
        if self.invalid:
            lines.append(f"{self.invalid} proposals had a NaN or +inf log-probability and were rejected.")
        if self.sites_per_step is not None and self.sweeps is not None and 0 < self.sweeps < _FEWEST_SWEEPS:
            changed, sites = self.sites_per_step
            lines.append(
                f"{self.num_draws:,} draws of a chain are {self.sweeps:.3g} sweeps, too few to judge by; thinning="
                f"{max(2, round(sites / changed))} makes a draw a sweep."
            )
        if self.effective_weights is not None and self.effective_weights < min(10, self.num_draws / 2):
            lines.append(
                f"Few draws carry all the weight ({self.effective_weights:.1f} of {self.num_draws:,} in a chain): run "
                "longer, or with larger mini-batches or control variates."
            )
        lines += [
            f"R-hat of {scalar.name} is {scalar.rhat:.3f}: the chains do not agree yet; run longer."
            for scalar in self.scalars
            if scalar.rhat is not None and scalar.rhat > _HIGH_RHAT
        ]
        return lines

    def facts(self) -> list[tuple[str, str]]:
        """Names and values of the table."""
        rows = [
            ("chains x draws", f"{self.num_chains} x {self.num_draws}"),
            ("acceptance", f"{self.acceptance:.3f}"),
            ("jump distance", f"{self.jump:.4g} a step"),
            ("evaluations", f"{self.evaluations:,.0f}"),
            ("seconds", f"{self.seconds:.2f} (+ {self.compile_seconds:.2f} compiling)"),
        ]
        if self.sites_per_step is not None:
            changed, sites = self.sites_per_step
            rows.append(("sweeps", f"{self.sweeps:,.3g} (a step changes {changed:.3g} of {sites:,} sites)"))
        if self.ess is not None and self.evaluations and self.seconds:
            if self.rhat is not None and self.rhat > _FORBIDDING_RHAT:
                said = f"not to be relied on, since R-hat is {self.rhat:.2f}; the smallest is {self.ess:,.0f}"
            else:
                said = (
                    f"{self.ess:,.0f}, the smallest; {self.ess / self.seconds:,.0f} a second, "
                    f"{self.ess / self.evaluations:.2g} an evaluation"
                )
            rows.insert(0, ("ESS", said))
        if self.effective_weights is not None:
            rows.append(("draws that count", f"{self.effective_weights:,.1f} of {self.num_draws:,} a chain, by weight"))
        if self.adaptation:
            rows.append(("warm-up", self.adaptation))
        return rows

    @staticmethod
    def _title_of_sites(sites: SiteDiagnostics) -> str:
        shown, count = len(sites.lines()), sites.ess.size
        return "sites" if shown == count else f"the {shown} of {count:,} sites that are known least"

    def __rich__(self):
        from rich.console import Group
        from rich.table import Table

        facts = Table(title=self.title, show_header=False, title_justify="left")
        facts.add_column(style="bold")
        facts.add_column()
        for name, value in self.facts():
            facts.add_row(name, value)
        scalars = Table()
        for heading in _HEADINGS:
            scalars.add_column(heading, justify="left" if heading == "statistic" else "right")
        for scalar in self.scalars:
            scalars.add_row(*_cells(scalar))
        shown = [facts, scalars] if self.scalars else [facts]
        if self.sites is not None:
            sites = Table(title=self._title_of_sites(self.sites), title_justify="left")
            for heading in _SITE_HEADINGS:
                sites.add_column(heading, justify="right" if heading in ("ESS", "R-hat") else "left")
            for line in self.sites.lines():
                sites.add_row(*line)
            shown.append(sites)
        return Group(*shown, *(f"[yellow]![/] {line}" for line in self.warnings()))

    def __str__(self) -> str:
        try:
            from rich.console import Console
        except ImportError:
            lines = [self.title, *(f"  {name}: {value}" for name, value in self.facts())]
            lines += ["  " + "  ".join(cells) for cells in (_HEADINGS, *map(_cells, self.scalars))]
            if self.sites is not None:
                lines.append(self._title_of_sites(self.sites))
                lines += ["  " + "  ".join(cells) for cells in (_SITE_HEADINGS, *self.sites.lines())]
            return "\n".join(lines + [f"! {line}" for line in self.warnings()])
        console = Console(width=110, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip()


_HIGH_RHAT = 1.01  # worth a word
_FORBIDDING_RHAT = 1.05  # an effective sample size means nothing where chains disagree like this
_FEWEST_SWEEPS = 50
_SITE_HEADINGS = ("site", "probability of a level", "ESS", "R-hat")
_HEADINGS = ("statistic", "mean", "sd", "ESS (chains)", "ESS bulk", "ESS tail", "R-hat")


def _cells(scalar: ScalarDiagnostics) -> list[str]:
    def show(value, form):
        return "-" if value is None else format(value, form)

    return [
        scalar.name,
        format(scalar.mean, ".5g"),
        format(scalar.sd, ".4g"),
        *(show(value, ",.0f") for value in (scalar.ess, scalar.ess_bulk, scalar.ess_tail)),
        show(scalar.rhat, ".3f"),
    ]
