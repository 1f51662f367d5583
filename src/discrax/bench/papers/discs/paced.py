"""DMALA at the pace of its rates, as DISCS anneals with it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from discrax.core.kernel import State
from discrax.core.target import Target
from discrax.samplers.balancing import Balancing, get_balancing
from discrax.samplers.factorised import Factorised, Logits
from discrax.samplers.langevin import langevin_logits, positive, total_log_rate


class PacedDMALA(Factorised):
    """DMALA with the logits log g_ic + log tau(x), tau(x) = `moves` / Z(x), Z(x) = sum_ic g_ic.

    In DMALA's own terms log tau = -d / (2 eps), d the squared length of a move: the step size is another at every
    state, so that about `moves` sites move, however cold it is. Nothing is tuned.
    """

    moves: Float[Array, ""]
    balancing: Balancing

    def __init__(self, moves: float = 3.0, balancing: str | Balancing = "sqrt"):
        self.moves, self.balancing = positive("moves", moves), get_balancing(balancing)

    def logits(self, target: Target, state: State) -> Logits:
        log_tau = jnp.log(self.moves) - total_log_rate(target, state, self.balancing)
        stiffness = -2 * log_tau / target.space.smallest_squared_move
        return langevin_logits(target, state, self.balancing, stiffness)
