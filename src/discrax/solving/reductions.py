"""Exact reductions of independent sets: a smaller graph, and the way back.

For node weights w (all 1 unless told), while they apply:

    neighbourhood   w_v >= sum of w over N(v): v is in some best set (degree 0, and 1 where weights are equal)
    triangle        v has two neighbours, joined, neither heavier: v is in
    fold            v has two neighbours u and x, not joined, neither heavier, but heavier together: v, u, x become one
                    node of weight w_u + w_x - w_v; in a set it stands for u and x, out of it for v
    dominance       a neighbour u with N[u] within N[v] and w_u >= w_v: v goes
    unconfined      only for equal weights: v goes if it is in no best set or not needed (Xiao and Nagamochi, 2013).
                    S = {v}. Look at nodes u with one neighbour in S, and at N(u) outside of N[S]: if there is nothing,
                    v goes; if it is one node, that joins S; otherwise v stays.

Any independent set of the kernel lifts to one of the graph, `offset` heavier; a best one lifts to a best one.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int32, Int64, Integer, UInt8

from discrax.problems.graph import Graph
from discrax.solving.sites_kernels import compiled

_ROOM = 4  # times the edges: for rows of folded nodes; without room there are no more folds
_MOST_ROUNDS = 20
_LONGEST_CHAIN = 32  # of nodes in S
INCLUDE, FOLD = 0, 1

Rows = tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"], Int32[np.ndarray, " room"]]  # where, how long, what


@dataclass(frozen=True, eq=False)
class Kernel:
    """What reductions leave of a graph, and the way back."""

    nodes: Int64[np.ndarray, " k"]  # of the graph; folded ones have the name of their middle
    edges: Int[np.ndarray, "m 2"]  # between places in `nodes`
    weights: Float[np.ndarray, " k"]
    offset: float  # what a lifted set weighs more
    steps: Int32[np.ndarray, "steps 4"]  # what was done, and to whom
    num_nodes: int  # of the graph

    def lift(self, x: Integer[np.ndarray, "*batch k"]) -> UInt8[np.ndarray, "*batch n"]:
        """Independent sets of the graph, from such sets of the kernel."""
        x = np.asarray(x)
        lifted = np.zeros((*x.shape[:-1], self.num_nodes), np.uint8)
        lifted[..., self.nodes] = x
        lift_steps(self.steps, lifted.reshape(-1, self.num_nodes))
        return lifted

    def project(self, x: Integer[np.ndarray, "*batch n"]) -> UInt8[np.ndarray, "*batch k"]:
        """Sets of the kernel that are like sets of the graph."""
        projected = np.array(x, np.uint8)
        project_steps(self.steps, projected.reshape(-1, self.num_nodes))
        return projected[..., self.nodes]


def reduce_graph(
    num_nodes: int, edges: Int[np.ndarray, "m 2"], weights: Float[np.ndarray, " n"] | None = None
) -> Kernel:
    """The kernel of a graph, whose edges stand once each; `weights` of nodes are positive."""
    is_weighted = weights is not None and bool((weights != weights[0]).any()) if num_nodes else False
    scale = 1.0 if weights is None or not num_nodes or is_weighted else float(weights[0])
    w = np.array(weights, np.float64) if weights is not None and is_weighted else np.ones(num_nodes)
    start, others, _ = Graph(num_nodes, edges, np.ones(len(edges)), np.ones(num_nodes)).neighbours()
    length = np.diff(start).astype(np.int64)
    room = np.zeros(_ROOM * len(others) + num_nodes, np.int32)
    room[: len(others)] = others
    rows, is_alive = (start[:-1].astype(np.int64), length, room), np.ones(num_nodes, np.uint8)
    steps = np.zeros((num_nodes, 4), np.int32)
    count, offset = reduce_rows(rows, len(others), w, is_alive, steps, is_weighted)
    nodes = np.flatnonzero(is_alive)
    place = np.full(num_nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    left = place[edges_of(rows, is_alive)].reshape(-1, 2)
    return Kernel(nodes, left, scale * w[nodes], scale * offset, steps[:count].copy(), num_nodes)


@compiled
def lift_steps(steps: Int32[np.ndarray, "steps 4"], x: UInt8[np.ndarray, "batch n"]) -> None:
    """Undoes the steps, the last one first."""
    for b in range(len(x)):
        for i in range(len(steps) - 1, -1, -1):
            kind, v, u, w = steps[i]
            if kind == INCLUDE:
                x[b, v] = 1
            else:
                x[b, u] = x[b, w] = x[b, v]
                x[b, v] = 1 - x[b, v]


@compiled
def project_steps(steps: Int32[np.ndarray, "steps 4"], x: UInt8[np.ndarray, "batch n"]) -> None:
    """A folded node is in if both nodes are that it stands for."""
    for b in range(len(x)):
        for i in range(len(steps)):
            kind, v, u, w = steps[i]
            if kind == FOLD:
                x[b, v] = x[b, u] & x[b, w]


@compiled
def edges_of(rows: Rows, is_alive: UInt8[np.ndarray, " n"]) -> Int64[np.ndarray, "m 2"]:
    """The edges that are left, the smaller end first."""
    start, length, room = rows
    count = 0
    for u in range(len(start)):
        tidy(rows, is_alive, u)
        count += length[u] if is_alive[u] else 0
    edges, count = np.zeros((count // 2, 2), np.int64), 0
    for u in range(len(start)):
        if is_alive[u]:
            for e in range(start[u], start[u] + length[u]):
                if room[e] > u:
                    edges[count, 0], edges[count, 1] = u, room[e]
                    count += 1
    return edges


@compiled
def tidy(rows: Rows, is_alive: UInt8[np.ndarray, " n"], v: int) -> None:
    """Takes the nodes that are gone out of a row."""
    start, length, room = rows
    kept = 0
    for e in range(start[v], start[v] + length[v]):
        if is_alive[room[e]]:
            room[start[v] + kept] = room[e]
            kept += 1
    length[v] = kept


@compiled
def is_joined(rows: Rows, u: int, v: int) -> bool:
    """Whether v is in the row of u."""
    start, length, room = rows
    return (room[start[u] : start[u] + length[u]] == v).any()


@compiled
def reduce_rows(
    rows: Rows, end: int, w: Float[np.ndarray, " n"], is_alive: UInt8[np.ndarray, " n"],
    steps: Int32[np.ndarray, "n 4"], is_weighted: bool,
) -> tuple[int, float]:  # fmt: skip
    """Reduces rows in place until nothing applies. How many steps there were, and what they add to a set."""
    start, length, room = rows
    n, count, offset = len(start), 0, 0.0
    waiting, is_waiting, marks = np.zeros(n, np.int32), np.zeros(n, np.uint8), np.zeros((4, n), np.int64)
    for _ in range(_MOST_ROUNDS):
        size, has_changed = 0, False
        for v in range(n - 1, -1, -1):
            if is_alive[v]:
                waiting[size] = v
                size, is_waiting[v] = size + 1, 1
        while size:
            size -= 1
            v = waiting[size]
            is_waiting[v] = 0
            if not is_alive[v]:
                continue
            tidy(rows, is_alive, v)
            first, degree = start[v], length[v]
            around = 0.0
            for e in range(first, first + degree):
                around += w[room[e]]
            is_light = degree == 2 and w[v] >= max(w[room[first]], w[room[first + 1]])
            is_triangle = is_light and is_joined(rows, room[first], room[first + 1])
            changes = room[first : first + degree].copy()  # whose neighbours go, so that they are looked at again
            if w[v] >= around or is_triangle:
                offset += float(w[v])
                steps[count, 0], steps[count, 1] = INCLUDE, v
                count += 1
                is_alive[v] = 0
                is_alive[changes] = 0
            elif is_light and end + length[room[first]] + length[room[first + 1]] <= len(room):
                offset += float(w[v])
                steps[count] = np.array([FOLD, v, changes[0], changes[1]], np.int32)
                count += 1
                end = fold(rows, end, w, is_alive, v, marks[0])
                changes = np.append(changes, np.int32(v))
            elif is_needless(rows, w, is_alive, v, marks, is_weighted):
                is_alive[v] = 0
                changes[0], changes = v, changes[:1]
            else:
                continue
            has_changed = True
            size = wake(rows, is_alive, changes, waiting, is_waiting, size)
        if not has_changed:
            break
    return count, offset


@compiled
def wake(
    rows: Rows, is_alive: UInt8[np.ndarray, " n"], changes: Int32[np.ndarray, " changes"],
    waiting: Int32[np.ndarray, " n"], is_waiting: UInt8[np.ndarray, " n"], size: int,
) -> int:  # fmt: skip
    """Has what is around the changed nodes looked at again. How many nodes wait."""
    start, length, room = rows
    for u in changes:
        if is_alive[u] and not is_waiting[u]:
            waiting[size] = u
            size, is_waiting[u] = size + 1, 1
        for e in range(start[u], start[u] + length[u]):
            x = room[e]
            if is_alive[x] and not is_waiting[x]:
                waiting[size] = x
                size, is_waiting[x] = size + 1, 1
    return size


@compiled
def fold(
    rows: Rows, end: int, w: Float[np.ndarray, " n"], is_alive: UInt8[np.ndarray, " n"], v: int,
    marks: Int64[np.ndarray, " n"],
) -> int:  # fmt: skip
    """Makes one node of v and its two neighbours, with a row at the end of the room. The new end."""
    start, length, room = rows
    u, x = room[start[v]], room[start[v] + 1]
    w[v] = w[u] + w[x] - w[v]
    is_alive[u] = is_alive[x] = is_alive[v] = 0
    start[v], length[v] = end, 0
    for gone in (u, x):
        for e in range(start[gone], start[gone] + length[gone]):
            y = room[e]
            if not is_alive[y] or marks[y] == -1:
                continue
            marks[y] = -1
            room[end] = y
            end += 1
            for f in range(start[y], start[y] + length[y]):
                if room[f] == gone:
                    room[f] = v
    length[v] = end - start[v]
    for e in range(start[v], end):
        marks[room[e]] = 0
    is_alive[v] = 1
    return end


@compiled
def is_needless(
    rows: Rows, w: Float[np.ndarray, " n"], is_alive: UInt8[np.ndarray, " n"], v: int, marks: Int64[np.ndarray, "4 n"],
    is_weighted: bool,
) -> bool:  # fmt: skip
    """Whether some best set does without v: it is dominated, or unconfined. `marks` are left as zeros."""
    start, length, room = rows
    is_near, touches, border, inside = marks[0], marks[1], marks[2], marks[3]
    num_border, num_inside, node, is_found = 0, 0, v, False
    while node >= 0:
        inside[num_inside] = node
        num_inside += 1
        is_near[node] = 1
        for e in range(start[node], start[node] + length[node]):
            y = room[e]
            if is_alive[y]:
                touches[y] += 1
                if not is_near[y]:
                    is_near[y] = 1
                    border[num_border] = y
                    num_border += 1
        node = -1
        for i in range(num_border):
            u = border[i]
            if touches[u] != 1 or (is_weighted and w[u] < w[v]):
                continue
            outside, which = 0, -1
            for e in range(start[u], start[u] + length[u]):
                if is_alive[room[e]] and not is_near[room[e]]:
                    outside, which = outside + 1, room[e]
                    if outside > 1:
                        break
            if outside == 0:
                is_found = True
                break
            if outside == 1 and not is_weighted and num_inside < _LONGEST_CHAIN:
                node = which
        if is_found:
            break
    for i in range(num_border):
        is_near[border[i]] = touches[border[i]] = 0
    for i in range(num_inside):
        is_near[inside[i]] = 0
    border[:num_border] = 0
    inside[:num_inside] = 0
    return is_found
