"""Warm-up strategies. They tune the whole ensemble and end frozen."""

from discrax.adaptation.acceptance import AcceptanceRate, AcceptanceReport
from discrax.adaptation.jump import GammaRule, JumpProbes, JumpReport, StepSearch, knobs_of

__all__ = ["AcceptanceRate", "AcceptanceReport", "GammaRule", "JumpProbes", "JumpReport", "StepSearch", "knobs_of"]
