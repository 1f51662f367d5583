"""Training of energy models on data."""

from discrax.learn.rbm import train_rbm

__all__ = ["train_rbm"]
