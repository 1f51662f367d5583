"""Searches of ours and of others behind one door: the same problem, cores and seconds, and every number checked.

    with Machine(cores=(0, 1)) as machine:
        found = machine.measure("dwave-sa", problem, seconds=10, seed=0)
        found.value, found.seconds          # None and a sentence in found.error where nothing came

A search runs in worker processes that are held to the cores. One that computes on a single thread runs once on each
core with seeds of its own, and the better result counts. The clock runs from the moment when the problem is handed
over until a state has come back: building the peer's own model counts, importing it does not (each worker first runs
a tiny problem), nor does compilation, which ours reports. States of searches that know no constraints are repaired as
ours are, within the clock, and every value is the problem's own objective of a state that the problem itself finds
feasible.
"""

from peers.machine import Found, Machine
from peers.registry import PEERS, Peer, missing, peer, versions

__all__ = ["PEERS", "Found", "Machine", "Peer", "missing", "peer", "versions"]
