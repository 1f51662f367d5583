"""Effective sample size, R-hat, jump distance, and the summary of a run."""

from discrax.diagnostics.ess import autocorrelation, ess, is_constant
from discrax.diagnostics.summary import ScalarDiagnostics, Summary, diagnose

__all__ = ["ScalarDiagnostics", "Summary", "autocorrelation", "diagnose", "ess", "is_constant"]
