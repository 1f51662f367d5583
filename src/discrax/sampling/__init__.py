"""The verb `sample` and what it returns."""

from discrax.sampling.auto import auto
from discrax.sampling.result import Result
from discrax.sampling.sample import sample
from discrax.sampling.stored import load

__all__ = ["Result", "auto", "load", "sample"]
