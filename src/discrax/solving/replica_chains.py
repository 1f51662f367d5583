"""The chains that `drive.py` drives on an accelerator: thousands of replicas of binary models, see `replicas.py`."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from discrax.core import random
from discrax.core.devices import CHAINS, Devices
from discrax.core.memory import device_bytes, host_bytes
from discrax.core.programs import compiled
from discrax.problems.problem import BinaryQuadratic
from discrax.solving.drive import STEP_OF_LADDER
from discrax.solving.engine import Report
from discrax.solving.replica_moves import can_exchange_clusters
from discrax.solving.replica_program import MOST_ROUNDS, ReplicaState, run_rounds
from discrax.solving.replicas import Arrangement, arrange, of_sites
from discrax.solving.schedules import binary_betas
from discrax.solving.turns import tune_ladder

_SWEEPS_OF_A_ROUND = 8
_CODES = 2**22  # of all replicas, where their number is left open: enough to keep an accelerator busy
_LEAST_REPLICAS, _MOST_REPLICAS = 64, 2048
_REPLICAS_ON_A_CPU = 32
_BYTES_PER_CODE = 16  # states, best states, and fields and random words of the largest colour
_SHARE_OF_MEMORY = 0.7
_REPORTED = 64  # replicas of each model, the best
_POLISHING_SWEEPS = 16
_POINTS_OF_A_PILOT = 64
_MOST_RUNGS = 128
_WIDEST_FOR_CLUSTERS = 8  # neighbours: on denser graphs clusters are everything or nothing
_ROUNDS_BETWEEN_CLUSTERS = 8
_ROUNDS_BETWEEN_TUNINGS = 50
_MOST_PAIRS_EXACT = 50_000_000  # of an edge and a replica, whose values a report computes in double precision


class ReplicaChains:
    """Replicas of one model or of several. `kind` is "anneal", or "population" for population annealing."""

    slice_seconds: ClassVar[float] = 0.1
    sweeps_together: ClassVar[int] = _SWEEPS_OF_A_ROUND

    def __init__(
        self,
        key: PRNGKeyArray,
        models: Sequence[BinaryQuadratic],
        num_chains: int,
        *,
        kind: str = "anneal",
        clusters: bool | None = None,
        num_rungs: int | None = None,
        devices: Devices | None = None,
    ):
        self.models, self.num_chains, self._kind, self._devices = models, num_chains, kind, devices
        self._plan = arrange(models)
        self._num_rungs, self._clusters = num_rungs, clusters
        self._for_replicas, self._for_all = random.split_on_host(jax.random.key_data(key), 2)
        self._rates_of = 0

    # --- What drive.py asks for ---------------------------------------------------------------------------------------

    def compile(self) -> None:
        """Programs are compiled when they are first called: JAX tells the clock how long that takes."""

    def begin(self, init: list[Integer[np.ndarray, "chains _"]] | None, low: int, high: int) -> None:
        """Given states of each model, or uniform ones; the best so far are the local maxima above them."""
        self._state = self._start(self.num_chains)
        if init is not None:
            x = self._plan.enter([np.resize(states, (self.num_chains, states.shape[1])) for states in init])
            self._state = self._place(self._state._replace(x=jnp.asarray(x)))
        else:
            self.restart(low, high)
        self.polish(low, high)

    def restart(self, low: int, high: int) -> None:
        """Uniform states: a sweep at an infinite temperature."""
        self._rounds(self._kind, np.zeros((1, 1, 1)), 1, moves_together=0)
        if self._state.beta is not None:
            self._state = self._state._replace(beta=jnp.zeros_like(self._state.beta))

    def anneal(self, betas: Float[np.ndarray, "count *models"], low: int, high: int) -> None:
        """A sweep at each beta; for a round of them the temperature is that of its last."""
        betas = betas.reshape(len(betas), -1, 1)
        whole, rest = divmod(len(betas), _SWEEPS_OF_A_ROUND)
        size = _SWEEPS_OF_A_ROUND
        self._rounds(self._kind, betas[size - 1 : whole * size : size], size)
        if rest:
            self._rounds(self._kind, betas[-1:], rest)

    def polish(self, low: int, high: int) -> None:
        """By sweeps at a temperature at which no loss is accepted; the chains go on from where they were."""
        betas, rates = 100 * np.reshape(self.temperatures()[1], (1, -1, 1)), self._state.rates
        self._rounds(self._kind, betas, 0, moves_together=0)  # the values of where they are
        before = self._state
        self._rounds(self._kind, betas, _POLISHING_SWEEPS, moves_together=0)
        self._state = self._state._replace(x=before.x, value=before.value, rates=rates)

    def temperatures(self) -> tuple[Any, Any]:
        """The hot and the cold beta of each model."""
        if not hasattr(self, "_betas"):
            found = np.array([binary_betas(model) for model in self.models])
            self._betas = found[:, 0], found[:, 1]
        return self._betas

    def ladder(self, hot: Any, cold: Any, num_sweeps: int) -> Float[np.ndarray, "models rungs"] | None:
        """Rungs at equal steps of sqrt(dv / dbeta) dbeta, from the mean values that a quick anneal passes."""
        hot, cold = (np.broadcast_to(end, len(self.models)) for end in (hot, cold))
        points = np.linspace(hot, cold, _POINTS_OF_A_PILOT)
        before = self._state
        self.restart(0, 0)
        means = []
        for betas in points:
            self._rounds(self._kind, betas.reshape(1, -1, 1), max(1, num_sweeps // len(points)))
            means.append(np.asarray(self._state.value).mean(axis=1))
        self._state = before._replace(turn=self._state.turn)
        steps = np.diff(points, axis=0)
        slopes = np.maximum(0, np.diff(np.maximum.accumulate(means, axis=0), axis=0)) / np.maximum(steps, 1e-30)
        lengths = np.concatenate([np.zeros((1, len(self.models))), np.cumsum(np.sqrt(slopes) * steps, axis=0)])
        if not lengths[-1].any():
            return None
        wanted = 1 + int(np.ceil(lengths[-1].max() / STEP_OF_LADDER))
        rungs = self._num_rungs or int(np.clip(wanted, 2, min(_MOST_RUNGS, max(2, self.num_chains // 2))))
        at = np.linspace(0, 1, rungs)
        return np.stack(
            [
                np.interp(at * total[-1], total, betas) if total[-1] else np.geomspace(betas[0], betas[-1], rungs)
                for total, betas in zip(lengths.T, points.T, strict=True)
            ]
        )

    def steps_of_a_round(self, ladder: Float[np.ndarray, "models rungs"]) -> int:
        """Sweeps between exchanges."""
        return _SWEEPS_OF_A_ROUND

    def begin_tempering(self, ladder: Float[np.ndarray, "models rungs"]) -> None:
        """A chain is a replica at each rung; replicas beyond whole chains are left out. All begin where they are."""
        models, rungs = ladder.shape
        chains = max(1, self.num_chains // rungs)
        if self._devices is not None:
            chains = -(-chains // self._devices.mesh.size) * self._devices.mesh.size
        used = rungs * chains
        state = jax.tree.map(np.asarray, self._state)
        # A rung's replicas are side by side; where there are too few, chains share what was found.
        begun: dict[str, Any] = {name: np.resize(getattr(state, name).T, (used, len(getattr(state, name)))).T
                for name in ("x", "value", "best_x", "best_value")}  # fmt: skip
        table = np.arange(used, dtype=np.int32).reshape(1, rungs, chains)
        begun |= {"replica_at": np.tile(table, (models, 1, 1)), "rates": np.zeros((models, rungs - 1), np.float32)}
        begun |= {"turn": state.turn, "round": state.round}
        self._state = self._place(self._start(used)._replace(**begun))
        self._ladder, self._rates_of = ladder, 0
        self._kind = "clusters" if chains > 1 and self._exchanges_clusters() else "temper"

    def temper(self, ladder: Any, first: int, count: int, low: int, high: int) -> None:
        """So many rounds. Between calls the ladder moves towards equal rates of exchange."""
        self._rounds(self._kind, np.broadcast_to(self._ladder, (count, *self._ladder.shape)), _SWEEPS_OF_A_ROUND)
        self._rates_of += count
        if self._rates_of >= _ROUNDS_BETWEEN_TUNINGS:
            assert self._state.rates is not None
            rates = 2 * np.asarray(self._state.rates) / self._rates_of
            gain = 1 / np.sqrt(1 + first / _ROUNDS_BETWEEN_TUNINGS)
            self._ladder = np.stack([tune_ladder(*each, gain) for each in zip(self._ladder, rates, strict=True)])
            self._state = self._state._replace(rates=jnp.zeros_like(self._state.rates))
            self._rates_of = 0

    def report(self, num_steps: int, fraction: float, beta: Any) -> list[Report]:
        """Of each model, the replicas whose best states are the best of all."""
        state, models = self._state, len(self.models)
        count = min(_REPORTED, state.best_value.shape[1])
        top, best_x = (np.asarray(each) for each in self._call(_take_best, count=count, keeps_state=False))
        values, parts = np.asarray(state.value, np.float64), self._plan.leave(best_x)
        betas = np.broadcast_to(np.asarray(beta, np.float64).reshape(-1), models)
        reports = []
        for i, (model, states) in enumerate(zip(self.models, parts, strict=True)):
            exact = (
                model.value(states)
                if _REPORTED * len(model.edges) <= _MOST_PAIRS_EXACT
                else np.asarray(top[i], np.float64) + model.offset
            )
            reports.append(Report(num_steps, fraction, float(betas[i]), values[i] + model.offset, exact, states))
        return reports

    # --- Programs -----------------------------------------------------------------------------------------------------

    def _rounds(
        self, kind: str, betas: Float[np.ndarray, "rounds _ _"], num_sweeps: int, moves_together: int = 1
    ) -> None:
        if self._state.replica_at is None:
            rungs = 1
        else:
            rungs = self._state.replica_at.shape[1]
            moves_together *= _ROUNDS_BETWEEN_CLUSTERS
        for at in range(0, len(betas), MOST_ROUNDS):
            part = betas[at : at + MOST_ROUNDS]
            padded = np.zeros((MOST_ROUNDS, len(self.models), rungs), np.float32)
            padded[: len(part)] = part
            numbers = [jnp.asarray(each, jnp.int32) for each in (len(part), num_sweeps, moves_together)]
            self._call(run_rounds, jnp.asarray(padded), *numbers, kind=kind)

    def _exchanges_clusters(self) -> bool:
        blocks = self._plan.arrangement.blocks
        if self._clusters is False or not can_exchange_clusters(self._plan.arrangement):
            return False
        assert isinstance(blocks, tuple)
        return bool(self._clusters) or max(rows.weights.shape[1] for rows in blocks) <= _WIDEST_FOR_CLUSTERS

    def _call(self, function: Any, *more: Any, keeps_state: bool = True, **settings: Any) -> Any:
        arguments = (self._plan.arrangement, self._state, *more)
        program, _ = compiled(function, arguments, settings)
        found = jax.block_until_ready(program(arguments))
        if keeps_state:
            self._state = found
        return found

    def _start(self, count: int) -> ReplicaState:
        models, rows = len(self.models), self._plan.arrangement.num_rows
        value = np.full((models, count), -np.inf, np.float32)
        x = np.zeros((rows, count), np.int8)
        keys = np.ascontiguousarray(random.split_on_host(self._for_replicas, count).T)
        beta = np.zeros(models, np.float32) if self._kind == "population" else None
        none = np.zeros((), np.uint32)
        parts: list[Any] = [keys, self._for_all, none, none, x, value, x, value]
        return self._place(ReplicaState(*parts, beta=cast(Any, beta)))

    def _place(self, state: ReplicaState) -> ReplicaState:
        """On the devices; replicas lie along the last axis."""
        if self._devices is None:
            return jax.tree.map(jnp.asarray, state)
        mesh = self._devices.mesh
        spread = {"keys", "x", "value", "best_x", "best_value"}

        def put(name: str, leaf: Any) -> Any:
            spec = PartitionSpec(None, CHAINS) if name in spread else PartitionSpec()
            return None if leaf is None else jax.device_put(leaf, NamedSharding(mesh, spec))

        return ReplicaState(**{name: put(name, leaf) for name, leaf in state._asdict().items()})


def suitable_number(models: Sequence[BinaryQuadratic]) -> int:
    """Of replicas, where it is left open: what keeps the device busy and fits into its memory."""
    num_sites = sum(model.num_sites for model in models)
    if jax.default_backend() == "cpu":
        wanted, there = _REPLICAS_ON_A_CPU, host_bytes()
    else:
        wanted, there = int(2 ** np.round(np.log2(_CODES / num_sites))), device_bytes()
        wanted = int(np.clip(wanted, _LEAST_REPLICAS, _MOST_REPLICAS))
    left = _SHARE_OF_MEMORY * there - needed_bytes(models, 0)
    return max(1, min(wanted, int(left // (_BYTES_PER_CODE * num_sites))))


def needed_bytes(models: Sequence[BinaryQuadratic], num_chains: int) -> float:
    """About what a search by so many replicas takes where programs run."""
    num_sites = sum(model.num_sites for model in models)
    num_edges = sum(len(model.edges) for model in models)
    return 24.0 * num_edges + _BYTES_PER_CODE * num_sites * num_chains


def _take_best(arrangement: Arrangement, state: ReplicaState, *, count: int) -> tuple[Array, Array]:
    """The best values of each model, and their states."""
    top, at = jax.lax.top_k(state.best_value, count)
    places = jnp.broadcast_to(of_sites(arrangement, at), (len(state.best_x), count))
    return top, jnp.take_along_axis(state.best_x, places, axis=1)
