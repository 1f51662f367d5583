"""Ground states of +-J spin glasses: `discrax.solve` and its searches beside annealers in the same seconds.

    python benchmarks/search_spin_glass.py --seconds 30 --out glass.jsonl
    python benchmarks/search_spin_glass.py --out glass.jsonl --page docs/results/search-spin-glass.md

Energies are -sum of J s s' over the bonds, J = +-1 with equal chances. A state breaks a bond where J s s' = -1;
around each plaquette of a square lattice an odd number of bonds is broken if the product of its J is -1, else an even
number. The ground state of a lattice with free boundaries therefore breaks a smallest set of bonds whose ends, in the
dual lattice, are the frustrated plaquettes (the outside may take any number): a minimum-weight perfect matching,
which PyMatching finds exactly. On a torus the smallest such set may not belong to any state, since loops around the
torus count as well; taken here are couplings for which it does, so that these optima are exact too. Every reference
is the energy of a state that was built.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from discrax.problems import QUBO
from search_table import Instance, Script, main

SIDE_2D, SIDE_3D, NUM_INSTANCES = 64, 10, 10
MOST_SEEDS = 400  # of couplings that are tried on the torus

TEXT = """
Couplings +1 and -1 with equal chances. `2D free` and `2D periodic`: square lattices of 64 x 64 spins whose ground
states are known from a minimum-weight perfect matching of the frustrated plaquettes (PyMatching); on the torus,
couplings were taken for which the matching is a state. `3D periodic`: cubic lattices of 10 x 10 x 10 spins, where the
reference is the best energy that any search found here.
"""


def lattice(shape: tuple[int, ...], is_periodic: bool) -> np.ndarray:
    """Bonds (m, 2) of a lattice, along each axis in turn."""
    nodes, bonds = np.arange(np.prod(shape)).reshape(shape), []
    for axis in range(len(shape)):
        ends = np.stack([nodes, np.roll(nodes, -1, axis)], axis=-1)
        bonds.append((ends if is_periodic else np.delete(ends, -1, axis)).reshape(-1, 2))
    return np.concatenate(bonds)


def couplings(bonds: np.ndarray, seed: list[int]) -> np.ndarray:
    """+1 and -1 with equal chances."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], len(bonds))


def glass(bonds: np.ndarray, J: np.ndarray) -> QUBO:
    """The energy, to be minimised over spins."""
    return QUBO(np.zeros(bonds.max() + 1), bonds, -J, vartype="SPIN")


def plaquettes(side: int, is_periodic: bool) -> np.ndarray:
    """The two plaquettes beside each bond of a square lattice, in the order of `lattice`; -1 is the outside."""
    size = side if is_periodic else side - 1
    number = np.full((side + 1, side + 1), -1)
    number[:size, :size] = np.arange(size * size).reshape(size, size)
    if is_periodic:
        number[-1, :-1], number[:-1, -1] = number[0, :-1], number[:-1, 0]
    beside = []
    for axis in (0, 1):  # the bond of (r, c) along an axis has the plaquettes (r, c) and the one before it on the other
        after = number[:side, :side]
        before = np.roll(number[:-1, :-1], 1, 1 - axis) if is_periodic else np.roll(number, 1, 1 - axis)[:side, :side]
        both = np.stack([before, after], axis=-1)
        beside.append((both if is_periodic else np.delete(both, -1, axis)).reshape(-1, 2))
    return np.concatenate(beside)


def ground_state(side: int, is_periodic: bool, J: np.ndarray) -> np.ndarray | None:
    """Codes 0 and 1 of a ground state of a square lattice; None where the smallest set of bonds belongs to no state."""
    import pymatching

    bonds, beside = lattice((side, side), is_periodic), plaquettes(side, is_periodic)
    matching = pymatching.Matching()
    odd = np.zeros(beside.max() + 1, np.uint8)
    for bond, (first, second) in enumerate(beside.tolist()):
        inside = [place for place in (first, second) if place >= 0]
        for place in inside:
            odd[place] ^= J[bond] < 0
        add = matching.add_edge if len(inside) == 2 else matching.add_boundary_edge
        add(*inside, weight=1.0, fault_ids={bond}, merge_strategy="smallest-weight")
    broken = np.asarray(matching.decode(odd), bool)
    broken = np.concatenate([broken, np.zeros(len(bonds) - len(broken), bool)])
    return state_of(bonds, np.where(broken, -J, J))


def state_of(bonds: np.ndarray, products: np.ndarray) -> np.ndarray | None:
    """A state with these products s s' along the bonds, if there is one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    n = int(bonds.max()) + 1
    graph = coo_array((np.ones(len(bonds)), bonds.T), shape=(n, n)).tocsr()
    order, parent = breadth_first_order(graph, 0, directed=False)
    product = {(int(i), int(j)): p for (i, j), p in zip(bonds, products, strict=True)}
    spins = np.ones(n)
    for node in order[1:].tolist():
        before = int(parent[node])
        spins[node] = spins[before] * product.get((before, node), product.get((node, before), 0))
    is_state = (spins[bonds[:, 0]] * spins[bonds[:, 1]] == products).all()
    return (spins > 0).astype(np.int8) if is_state else None


def instances(arguments: argparse.Namespace) -> Iterator[Instance]:
    """Ten of each family."""
    has_matching = missing_matching() is None
    for family, is_periodic in (("2D free", False), ("2D periodic", True)):
        bonds = lattice((SIDE_2D, SIDE_2D), is_periodic)
        made = 0
        for seed in range(MOST_SEEDS):
            J = couplings(bonds, [2, int(is_periodic), seed])
            state = ground_state(SIDE_2D, is_periodic, J) if has_matching else None
            if has_matching and state is None:
                continue
            best = float(glass(bonds, J).objective(state)) if state is not None else None
            yield Instance(f"{family} {seed}", family, lambda b=bonds, J=J: glass(b, J), best, "optimum")
            made += 1
            if made == NUM_INSTANCES:
                break
    bonds = lattice((SIDE_3D,) * 3, True)
    for seed in range(NUM_INSTANCES):
        yield Instance(f"3D periodic {seed}", "3D periodic", lambda s=seed: glass(bonds, couplings(bonds, [3, 1, s])))


def missing_matching() -> str | None:
    """A sentence where PyMatching is not there."""
    try:
        import pymatching  # noqa: F401
    except ImportError:
        print("There is no pymatching here: 2D lattices are compared with the best that is found.")
        return "pymatching"
    return None


SCRIPT = Script(
    name="spin-glass",
    title="Ground states of spin glasses",
    text=TEXT,
    instances=instances,
    tiny=lambda: glass(lattice((6, 6), True), couplings(lattice((6, 6), True), [0])),
    searches=("discrax", "dwave-sa", "dwave-tabu", "openjij-sa", "openjij-sqa"),
    seconds=30.0,
    tells_time=True,
)

if __name__ == "__main__":
    main(SCRIPT, __doc__)
