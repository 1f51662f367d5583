"""Runs of chains: the verb `sample`, the pilot of `auto`, runs that share a program, and what they return."""

from discrax.sampling.auto import auto
from discrax.sampling.citing import citation
from discrax.sampling.ladder import Ladder
from discrax.sampling.log_normaliser import log_normaliser
from discrax.sampling.normaliser import Normaliser
from discrax.sampling.population import PopulationReport, anneal_population
from discrax.sampling.result import Result, load
from discrax.sampling.sample import sample
from discrax.sampling.temperatures import TemperatureScan, scan_temperatures
from discrax.sampling.tempering_report import TemperingReport

__all__ = [
    "Ladder", "Normaliser", "PopulationReport", "Result", "TemperatureScan", "TemperingReport", "anneal_population",
    "auto", "citation", "load", "log_normaliser", "sample", "scan_temperatures",
]  # fmt: skip
