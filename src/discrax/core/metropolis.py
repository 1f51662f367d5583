"""The only accept/reject in the house."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from discrax.core import random

Tree = TypeVar("Tree")


class Decision(NamedTuple):
    """Whether a proposal is accepted."""

    accept_prob: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    is_invalid: Bool[Array, ""]


def decide(
    key: PRNGKeyArray, log_prob_change: Float[Array, ""], log_proposal_ratio: float | Float[Array, ""] = 0.0
) -> Decision:
    """Metropolis-Hastings: accept with probability min(1, exp(log_prob_change + log_proposal_ratio)).

    `log_prob_change` is log pi(y) - log pi(x), `log_proposal_ratio` is log q(back) - log q(forth). A change that is
    NaN or +inf comes from a log-probability that is not a number there: it is rejected and counted. An undefined
    proposal ratio (a reverse move whose probability underflows on both sides) is rejected.
    """
    is_invalid = jnp.isnan(log_prob_change) | jnp.isposinf(log_prob_change)
    log_accept = log_prob_change + log_proposal_ratio
    log_accept = jnp.where(jnp.isnan(log_accept) | is_invalid, -jnp.inf, jnp.minimum(log_accept, 0.0))
    is_accepted = jnp.log(random.uniform_scalar(key)) < log_accept
    return Decision(jnp.exp(log_accept), is_accepted, is_invalid)


def select(is_accepted: Bool[Array, ""], there: Tree, here: Tree) -> Tree:
    """`there` if accepted, else `here`: the state, its value and its cache move together."""
    return jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), there, here)
