"""Effective sample size, R-hat, jump distance, weighted draws, and the summary of a run."""

from discrax.diagnostics.ess import autocorrelation, ess, is_constant
from discrax.diagnostics.sites import SiteDiagnostics
from discrax.diagnostics.summary import ScalarDiagnostics, Summary, diagnose
from discrax.diagnostics.weighted import effective_weights, weighted_ess, weighted_mean, weighted_rhat

__all__ = [
    "ScalarDiagnostics", "SiteDiagnostics", "Summary", "autocorrelation", "diagnose",
    "effective_weights", "ess", "is_constant", "weighted_ess", "weighted_mean", "weighted_rhat",
]  # fmt: skip
