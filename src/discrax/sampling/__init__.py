"""Runs of chains: the verb `sample`, the pilot of `auto`, runs that share a program, and what they return."""

from discrax.sampling.auto import auto
from discrax.sampling.citing import citation
from discrax.sampling.ladder import Ladder
from discrax.sampling.result import Result, load
from discrax.sampling.sample import sample
from discrax.sampling.tempering_report import TemperingReport

__all__ = ["Ladder", "Result", "TemperingReport", "auto", "citation", "load", "sample"]
