"""Spaces, targets, kernels, the one accept/reject and the one loop."""
