"""Warm-up strategies. They tune the whole ensemble and end frozen."""

from discrax.adaptation.acceptance import AcceptanceRate, AcceptanceReport
from discrax.adaptation.jump import JumpProbes
from discrax.adaptation.parts import OneByOne, PartsReport
from discrax.adaptation.windows import JumpReport

__all__ = ["AcceptanceRate", "AcceptanceReport", "JumpProbes", "JumpReport", "OneByOne", "PartsReport"]
