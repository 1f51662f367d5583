"""What the searches of others ask of a problem."""

from discrax.problems import MIS, BinaryQuadratic, MaxClique, MaxCut, Problem

MOST_DENSE = 12_000  # nodes; searches that make an n x n matrix of a problem are left out beyond it
MOST_LINEAR = 300_000  # edges; of a linear programme


def model_of(problem: Problem) -> BinaryQuadratic:
    model = problem.model
    if not isinstance(model, BinaryQuadratic):
        raise ValueError(f"{problem} has no quadratic form.")
    return model


def is_set(problem: Problem) -> bool:
    """Whether it is a set of nodes without conflicts; then the pairs of its model are the conflicts."""
    return isinstance(problem, MIS | MaxClique)


def num_sites(problem: Problem) -> int:
    return model_of(problem).num_sites


def takes_qqa(problem: Problem) -> bool:
    is_plain_cut = isinstance(problem, MaxCut) and (problem.graph.weights == 1).all()
    return (is_set(problem) or is_plain_cut) and num_sites(problem) <= MOST_DENSE


def is_small(problem: Problem) -> bool:
    return num_sites(problem) <= MOST_DENSE


def is_linear(problem: Problem) -> bool:
    return len(model_of(problem).edges) <= MOST_LINEAR
