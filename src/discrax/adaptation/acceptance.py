"""Adaptation to an acceptance rate: one scale, shared by all chains, tuned from their mean acceptance, then frozen.

Larger scales are accepted less, so the scale at which the acceptance rate A meets the wanted rate a* is found by
stochastic approximation. Three rules:

- `robust` (the default) moves the logarithm of the scale:
      log s <- log s + g_n (A - a*),     g_n = 1 / (a* sqrt(1 + n))
  where n counts the changes of sign of A - a* so far (Kesten, 1958). From a bad start the gain stays large and the
  scale grows or shrinks geometrically; once it has crossed the wanted rate the gain falls. g_0 is Newton's: where s
  A(s) is largest, which is what the optimal rates are, dA / d log s = -A. The frozen value is an average of the path
  that weighs its later part most (Shamir and Zhang, 2013).
- `paper` is the rule of Sun et al. (2022) for path lengths, R <- clip(R + (A - a*), 1, n), and that of Sun et al.
  (2023) for a time tau that rates act, by the expected number of moves n = tau Z: n <- max(1, tau Z + 3 (A - a*)) and
  tau = n / Z, where Z is the mean of the chains' total rates. The last value is frozen.
- `steady` is `robust` with the same small gain at every step, g = 1 / (10 a*): it never settles, which is what a target
  that keeps changing (a model in training) wants. The last value is frozen.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from discrax.core.checks import number
from discrax.core.kernel import Info, Rated, State, Tunable
from discrax.core.target import Target

RULES = ("robust", "paper", "steady")
_STEADY = 10.0
_AVERAGING = 4.0  # the weight of step t in the averages grows like t^_AVERAGING


class Memory(NamedTuple):
    steps: Float[Array, ""]
    crossings: Float[Array, ""]
    last_error: Float[Array, ""]
    log_scale: Float[Array, ""]  # unclipped averages would drift: this is the clipped, current value
    mean_log_scale: Float[Array, ""]
    mean_rate: Float[Array, ""]


class AcceptanceReport(NamedTuple):
    """What warm-up asked for, reached and chose."""

    parameter: str
    value: float
    asked_rate: float
    reached_rate: float
    num_steps: int
    rule: str

    def __str__(self) -> str:
        return (
            f"{self.parameter} = {self.value:.4g} (asked for acceptance {self.asked_rate:.3f}, "
            f"reached {self.reached_rate:.3f} in {self.num_steps} steps, {self.rule} rule)"
        )


class AcceptanceRate(eqx.Module):
    """Tunes a `Tunable` kernel to an acceptance rate; `rate=None` takes the kernel's own optimum."""

    rate: float | Float[Array, ""] | None = None
    rule: str = eqx.field(static=True, default="robust")

    def __check_init__(self):
        if self.rate is not None and not isinstance(self.rate, Tracer | jax.Array):
            number("rate", self.rate, above=0, below=1)
        if self.rule not in RULES:
            raise ValueError(f"Unknown rule {self.rule!r}; known: {', '.join(RULES)}.")

    def asked_rate(self, kernel: Tunable) -> float | Float[Array, ""]:
        return kernel.target_rate if self.rate is None else self.rate

    def check(self, kernel: Any) -> None:
        if not isinstance(kernel, Tunable):
            raise ValueError(f"{type(kernel).__name__} has no scale to tune to a rate; pass adaptation=None.")
        if self.rule == "paper" and kernel.parameter not in ("path_length", "radius") and not isinstance(kernel, Rated):
            raise ValueError(
                "The paper's rule tunes a path length, a radius or the time of rates, which "
                f"{type(kernel).__name__} has not; use rule='robust'."
            )

    def planned(self, kernel: Tunable, num_steps: int) -> "AcceptanceRate":
        # A leaf: runs to different rates share one program.
        return AcceptanceRate(jnp.asarray(self.asked_rate(kernel), jnp.float32), self.rule)

    def init(self, target: Target, kernel: Tunable) -> Memory:
        zero = jnp.zeros((), jnp.float32)
        return Memory(zero, zero, zero, kernel.log_scale(target).astype(jnp.float32), zero, zero)

    def update(
        self, target: Target, kernel: Tunable, memory: Memory, states: State, info: Info
    ) -> tuple[Tunable, Memory]:
        asked, accept_prob = self.asked_rate(kernel), jnp.mean(info.accept_prob)
        error = accept_prob - asked
        if self.rule == "paper":
            crossings, log_rate, gain = memory.crossings, jnp.zeros((), jnp.float32), 1.0
            if isinstance(kernel, Rated):
                of_chains = jax.vmap(kernel.log_rate, in_axes=(None, 0))(target, states).astype(jnp.float32)
                log_rate, gain = logsumexp(of_chains) - jnp.log(jnp.float32(of_chains.shape[0])), 3.0
            # Clamped before the logarithm: the sum can be negative.
            proposed = jnp.log(jnp.maximum(jnp.exp(memory.log_scale + log_rate) + gain * error, 1.0)) - log_rate
        else:
            crossings = memory.crossings + (error * memory.last_error < 0)
            damping = _STEADY if self.rule == "steady" else jnp.sqrt(1 + crossings)
            proposed = memory.log_scale + error / (asked * damping)
        kernel = kernel.with_log_scale(target, proposed)
        log_scale = kernel.log_scale(target).astype(jnp.float32)
        steps = memory.steps + 1
        share = (1 + _AVERAGING) / (steps + _AVERAGING)
        return kernel, Memory(
            steps,
            crossings,
            error,
            log_scale,
            memory.mean_log_scale + share * (log_scale - memory.mean_log_scale),
            memory.mean_rate + share * (accept_prob - memory.mean_rate),
        )

    def freeze(self, target: Target, kernel: Tunable, memory: Memory) -> tuple[Tunable, AcceptanceReport]:
        """The kernel to draw with, and what was done."""
        if self.rule == "robust":
            kernel = kernel.with_log_scale(target, memory.mean_log_scale)
        report = AcceptanceReport(
            kernel.parameter,
            float(getattr(kernel, kernel.parameter)),
            round(float(self.asked_rate(kernel)), 6),  # a float32 says 0.574 with noise in its ninth digit
            float(memory.mean_rate),
            int(memory.steps),
            self.rule,
        )
        return kernel, report
