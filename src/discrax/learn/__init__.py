"""Training of energy models on data, and what they are worth."""

from discrax.learn.ais import ais
from discrax.learn.frequencies import frequencies
from discrax.learn.mixing import mixing_curves, snapshots
from discrax.learn.models import NetworkModel, PairwisePotts, convnet, from_function, random_couplings, resnet
from discrax.learn.quality import covariance_error, marginal_error, mmd
from discrax.learn.rbm import train_rbm
from discrax.learn.rbm_normaliser import rbm_log_Z
from discrax.learn.training import Trained, pcd

__all__ = [
    "NetworkModel", "PairwisePotts", "Trained", "ais", "convnet", "covariance_error", "frequencies",
    "from_function", "marginal_error", "mixing_curves", "mmd", "pcd", "random_couplings", "rbm_log_Z", "resnet",
    "snapshots", "train_rbm",
]  # fmt: skip
