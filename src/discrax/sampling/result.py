"""What a run returns."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from discrax.adaptation import AcceptanceReport
from discrax.core.checks import describe, real_array
from discrax.core.kernel import Caution, Kernel, State, sites_per_step
from discrax.core.observers import STATS
from discrax.core.statistics import RunningMoments
from discrax.core.target import Target
from discrax.diagnostics import SiteDiagnostics, Summary, diagnose
from discrax.diagnostics.sites import diagnose_sites, pandas, site_names
from discrax.diagnostics.weighted import are_equal, effective_weights, equal_draws, shares
from discrax.sampling.auto_report import AutoReport
from discrax.sampling.folder import load_fields
from discrax.sampling.left_out import title_of
from discrax.sampling.stored import read_fields, write_fields
from discrax.sampling.stored_array import draw_blocks, tree_of_groups
from discrax.sampling.tempering_report import TemperingReport, report_tempering


@dataclass(frozen=True, repr=False)
class Result:
    """Draws and what is known about them.

    `draws` has shape (chain, draw, *sites) and holds codes; `kept` holds the user's statistic instead where one was
    asked for, or the values of a mixed target besides, and `moments` running moments where only those were. `stats`
    maps the names of `Info`, "lp" and "weight" to (chain, draw) arrays. "weight" is the time that a draw counts for: 1,
    except for samplers that simulate a process in time (`sgdld`); where it is no float, it is in units of a chain's
    largest, and "log_weight" has it. `mean`, `summary` and `to_arviz` honour it.

    Of a tempered run, `stats` also has "round_trips" and "log_ratio", (chain, draw, rung): V = d log p_b / db at the
    state of each rung.

    A run with a folder has its draws and statistics there: `result.draws[:, -100:]` and `result.stats["lp"][0]` read
    what they ask for, `numpy.asarray(...)` reads all, and `summary`, `mean` and `distance` read block by block.
    """

    target: Target
    kernel: Kernel  # as it drew: tuned and frozen
    draws: Any  # an array, or None; a `StoredArray` where the run has a folder
    kept: Any
    moments: RunningMoments | None  # per chain, of the embedding
    stats: dict[str, Any]  # arrays, or stored ones
    mean_stats: dict[str, np.ndarray]  # per chain
    warmup_stats: dict[str, Any]
    warmup_draws: Any
    reports: tuple[Any, ...]  # what each part of warm-up tried and chose
    seconds: float  # of drawing; warm-up and compilation apart
    warmup_seconds: float
    compile_seconds: float
    is_complete: bool  # False if the run was interrupted
    thinning: int
    num_draws: int  # per chain
    states: State = field(repr=False)  # the last states of all chains: pass `init=result.states.x` to go on

    @property
    def report(self) -> Any:
        """Of the last tuning in warm-up, or None."""
        return self.reports[-1] if self.reports and not isinstance(self.reports[-1], str) else None

    @cached_property
    def tempering(self) -> TemperingReport | None:
        """Of a tempered run: exchange rates, the barrier, round trips and log Z; else None."""
        return report_tempering(self.kernel, self.stats, self.reports)

    @property
    def num_chains(self) -> int:
        """Chains side by side."""
        return self.states.x.shape[0]

    @cached_property
    def distance(self) -> np.ndarray | None:
        """(chain, draw): the papers' scalar, the L1 distance of the codes to one fixed random reference state."""
        if self.draws is None:
            return None
        space = self.target.space
        reference = np.random.default_rng(0).integers(0, space.num_levels, space.shape).astype(space.dtype)
        sites = tuple(range(2, self.draws.ndim))
        out = np.empty(self.draws.shape[:2], np.float64)
        for place, draws in draw_blocks(self.draws):
            out[:, place] = np.abs(draws.astype(np.int32) - reference).sum(axis=sites)
        return out

    @property
    def has_equal_weights(self) -> bool:
        """Whether every draw counts the same."""
        if not self.stats:
            return True
        return are_equal(np.array([(block.min(), block.max()) for _, block in draw_blocks(self.stats["weight"])]))

    def mean(self, function: Callable[[np.ndarray], Any] | None = None) -> np.ndarray:
        """The mean, honouring weights, of the embedding or of a function of (chain, draw, *sites) codes.

        Each chain is averaged with its own weights, and then the chains are. A function keeps the axes of chains and
        draws: `result.mean(lambda x: x.sum(axis=-1) > 3)` is the probability of more than three ones.
        """
        if function is None and self.moments is not None:
            return np.asarray(self.moments.mean, np.float64).mean(axis=0)
        if self.draws is None or not self.num_draws:
            raise ValueError("A mean over draws needs draws, but this run kept none; use keep='draws'.")
        if function is not None and not callable(function):
            raise TypeError(f"function must be a function of the codes, but got {describe(function)}.")
        weights, total = shares(np.asarray(self.stats["weight"])), np.zeros(())
        for place, x in draw_blocks(self.draws):
            values = jax.vmap(jax.vmap(self.target.space.embed))(x) if function is None else function(x)
            values = real_array("What the function returns", values)
            if values.shape[:2] != x.shape[:2]:
                raise ValueError(
                    f"The function must keep the axes (chain, draw) = {x.shape[:2]} of the codes, but its values have "
                    f"shape {values.shape}."
                )
            total = total + np.einsum("cd,cd...->...", weights[:, place], values)
        return np.asarray(total / len(weights))

    def __repr__(self) -> str:
        """A few lines: what it is, and where to look."""
        kept = self.draws if self.draws is not None else self.kept if self.kept is not None else self.moments
        shapes = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(kept)]
        what = "draws" if self.draws is not None else "kept" if self.kept is not None else "moments"
        acceptance = f"{self.mean_stats['accept_prob'].mean():.3f}" if self.mean_stats else "-"
        lines = [
            f"Result of {title_of(self.kernel)} on {title_of(self.target)}",
            f"  {self.num_chains:,} chains x {self.num_draws:,} draws{'' if self.is_complete else ' (interrupted)'}",
            f"  .{what}: {', '.join(shapes[:4])}{', ...' if len(shapes) > 4 else ''}",
            f"  .stats: {', '.join(self.stats) or 'none'}",
            f"  acceptance {acceptance}, {self.seconds:.2f} s (+ {self.warmup_seconds:.2f} warm-up, "
            f"{self.compile_seconds:.2f} compiling)",
            "  .summary() judges it, .mean() averages, .to_arviz() exports, .save(path) keeps it",
        ]
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Writes all of it as NetCDF, which `discrax.load` reads and ArviZ and xarray open.

        Targets and kernels of this library are kept; of a target that holds a function of yours, or is of a class of
        yours, only the space and the name are, and a note in the file says so.
        """
        return write_fields({each.name: getattr(self, each.name) for each in fields(self)}, path)

    def sites(self) -> SiteDiagnostics:
        """The probability of each level of each site, with its error, and the ESS and R-hat of each site."""
        if self.draws is None or not self.num_draws:
            raise ValueError("Marginals of sites need draws, but this run kept none; use keep='draws'.")
        weights = None if self.has_equal_weights else np.asarray(self.stats["weight"])
        return diagnose_sites(np.asarray(self.draws), self.target.space.num_levels, weights, self.target.site_names)

    def to_dataframe(self) -> Any:
        """A pandas table with a line for each draw: chain, draw, the code of each site, and the statistics."""
        if self.draws is None:
            raise ValueError("A table of draws needs draws, but this run kept none; use keep='draws'.")
        codes = np.asarray(self.draws).reshape(self.num_chains * self.num_draws, -1)
        names = self.target.site_names or site_names(self.target.space.shape)
        table = pandas().DataFrame(codes, columns=list(names))
        chain, draw = np.divmod(np.arange(len(codes)), max(1, self.num_draws))
        stats = {name: np.asarray(values).ravel() for name, values in self.stats.items() if values.ndim == 2}
        return table.assign(chain=chain, draw=draw, **stats).set_index(["chain", "draw"])

    def summary(self, *, sites: bool = False) -> Summary:
        """Diagnostics of the draws, to print; with `sites` also those of the sites that are known least."""
        stats = self.mean_stats or {name: np.zeros(self.num_chains) for name in STATS}  # no draws: interrupted
        scalars = []
        if self.stats and self.num_draws:
            weights = None if self.has_equal_weights else np.asarray(self.stats["weight"])
            scalars.append(diagnose("lp", np.asarray(self.stats["lp"]), weights))
            if self.distance is not None:
                scalars.append(diagnose("distance", self.distance, weights))
        title = f"{title_of(self.kernel)} on {title_of(self.target)}"
        invalid = stats["is_invalid"].sum() * self.num_draws * self.thinning
        if self.warmup_stats:
            invalid += np.asarray(self.warmup_stats["is_invalid"]).sum()
        notes = []
        if not self.is_complete:
            notes.append(f"The run was interrupted after {self.num_draws} draws; what was drawn is here.")
        notes += [line for report in self.reports if isinstance(report, AutoReport) and (line := report.warning())]
        notes += [str(report) for report in self.reports if isinstance(report, Caution)]
        if self.tempering is not None and self.tempering.warning is not None:
            notes.append(self.tempering.warning)
        report = self.report
        missed = isinstance(report, AcceptanceReport) and abs(report.reached_rate - report.asked_rate) > 0.1
        if missed and self.num_draws:
            notes.append(
                f"Warm-up asked for acceptance {report.asked_rate:.3f} but ended at {report.reached_rate:.3f}."
            )
        if not self.kernel.is_exact:
            notes.append(f"{title_of(self.kernel)} makes no accept/reject step: its law is near the target's only.")
        return Summary(
            title=title,
            num_chains=self.num_chains,
            num_draws=self.num_draws,
            acceptance=float(stats["accept_prob"].mean()),
            jump=float(stats["jump"].mean()),
            evaluations=float(stats["evals"].sum() * self.num_draws),
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            scalars=tuple(scalars),
            adaptation="; ".join(map(str, self.reports)) or None,
            invalid=int(np.rint(invalid)),
            stuck_chains=tuple(int(chain) for chain in np.flatnonzero(stats["jump"] == 0)) if self.num_draws else (),
            never_moved=self._never_moved(),
            sites_per_step=self._sites_per_step(),
            thinning=self.thinning,
            effective_weights=(
                None
                if self.has_equal_weights
                else float(np.median(effective_weights(np.asarray(self.stats["weight"]))))
            ),
            notes=tuple(notes),
            sites=self.sites() if sites else None,
        )

    def _sites_per_step(self) -> tuple[float, int] | None:
        free = int(self.target.space.num_free)
        changed = sites_per_step(self.kernel, self.target.space)
        return None if changed >= free else (changed, free)

    def _never_moved(self) -> int:
        frozen = self.target.space.frozen
        if self.draws is not None and self.num_draws:
            ends = [(draws.min(axis=(0, 1)), draws.max(axis=(0, 1))) for _, draws in draw_blocks(self.draws)]
            lowest, highest = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
            still = (lowest == highest) & (self.num_chains * self.num_draws > 1)
        elif self.moments is not None and self.num_draws > 1:
            mean = np.asarray(self.moments.mean)
            spread = np.asarray(self.moments.scaled_squares).max(axis=0) + np.ptp(mean, axis=0)
            still = spread.reshape(*self.target.space.shape, -1).max(axis=-1) == 0
        else:
            return 0
        return int((still if frozen is None else still & ~np.asarray(frozen.mask)).sum())

    def _equally_weighted(self, values: Any) -> Any:
        if self.has_equal_weights:
            return values
        rows, draws = np.arange(self.num_chains)[:, None], equal_draws(np.asarray(self.stats["weight"]))
        return jax.tree.map(lambda leaf: leaf[rows, draws], values)

    def to_arviz(self):
        """An ArviZ DataTree: posterior, sample_stats, and warm-up in groups of its own.

        ArviZ knows no weights: where they differ, each draw is repeated in proportion to its weight. Draws and
        statistics of a run with a folder are read when they are used, unless weights differ.
        """

        groups: dict[str, Any] = {"sample_stats": self._equally_weighted(self.stats)}
        if self.draws is not None:
            values = self.kept if isinstance(self.kept, dict) else {}  # of a mixed target
            groups["posterior"] = self._equally_weighted({"x": self.draws} | values)
        elif self.kept is not None:
            parts = jax.tree.leaves(self.kept)
            names = ["statistic"] if len(parts) == 1 else [f"statistic_{i}" for i in range(len(parts))]
            named = self.kept if isinstance(self.kept, dict) else dict(zip(names, parts, strict=True))
            groups["posterior"] = self._equally_weighted(named)
        if self.warmup_stats:
            groups["warmup_sample_stats"] = self.warmup_stats
        if self.warmup_draws is not None:
            groups["warmup_posterior"] = {"x": self.warmup_draws}
        if not self.stats:
            raise ValueError(
                "A run that kept running moments only has no draws to export; use keep='draws' or a statistic."
            )
        attributes: dict[str, Any] = {
            "inference_library": "discrax",
            "sampler": title_of(self.kernel),
            "is_complete": int(self.is_complete),
            "sampling_time": self.seconds,
        }
        if isinstance(self.kernel, Kernel) and isinstance(self.target, Target):
            attributes |= {name: float(knob.value) for name, knob in self.kernel.knobs(self.target).items()}
        names = self.target.site_names if isinstance(self.target, Target) else None
        tree = tree_of_groups(groups, {} if names is None else {"x": names})
        tree.attrs.update(attributes)
        return tree


def load(path: str | Path) -> Result:
    """The result that `Result.save` wrote, or a run with a folder, as far as it is: it may still be going on.

    What could not be stored is named in its place.
    """
    return Result(**(load_fields(path) if Path(path).expanduser().is_dir() else read_fields(path)))
