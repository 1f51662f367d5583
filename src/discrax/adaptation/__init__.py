"""Warm-up strategies. They tune the whole ensemble and end frozen."""

from discrax.adaptation.acceptance import AcceptanceRate, AcceptanceReport

__all__ = ["AcceptanceRate", "AcceptanceReport"]
