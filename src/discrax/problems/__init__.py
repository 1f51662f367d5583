"""Combinatorial problems, and the graphs they are stated on."""

from discrax.problems.circuits import ApproximateCircuit
from discrax.problems.constrained import ConstrainedQUBO
from discrax.problems.custom import Custom
from discrax.problems.cut import MaxCut
from discrax.problems.facility import FacilityLocation
from discrax.problems.graph import Graph
from discrax.problems.independent_set import MIS, MaxClique
from discrax.problems.partition import Partition
from discrax.problems.polynomial import Polynomial
from discrax.problems.problem import (
    BinaryProblem,
    BinaryQuadratic,
    BoundedQuadratic,
    Labelling,
    LinearlyConstrained,
    Problem,
)
from discrax.problems.products import Products
from discrax.problems.qubo import QUBO
from discrax.problems.readers import read_graph
from discrax.problems.satisfiability import MaxSAT

__all__ = [
    "MIS", "QUBO", "ApproximateCircuit", "BinaryProblem", "BinaryQuadratic", "BoundedQuadratic", "ConstrainedQUBO",
    "Custom", "FacilityLocation", "Graph", "Labelling", "LinearlyConstrained", "MaxClique", "MaxCut", "MaxSAT",
    "Partition", "Polynomial", "Problem", "Products", "read_graph",
]  # fmt: skip
