"""LBP as the printed tables of independent bits have it: the way back is scored in the order of the way there."""

from typing import ClassVar

from discrax.samplers.locally_balanced import PAS


class ForwardOrder(PAS):
    """PAS whose reverse path meets the sites in the order of the path, not in the opposite one.

    Any fixed order leaves the target as it is. In this one the variance of log A on independent bits grows like
    R^3 / 3, reversed like R^3 / 4, so paths are shorter at the same acceptance rate.
    """

    reverses: ClassVar[bool] = False
