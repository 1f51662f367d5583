# %% [markdown]
# # Which stations may broadcast at once?
#
# There are 150 radio stations in a county. Two that are near each other disturb each other if both are on. **How many
# can broadcast at the same time, and how do we know that it could not be one more?**
#
# A set of nodes no two of which are joined is an *independent set*; we are after the largest. The problem comes in a
# file, and we want an answer that somebody else can check.

# %%
from pathlib import Path
from tempfile import mkdtemp

import jax
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import discrax as dx

folder = Path(mkdtemp())

# %% [markdown]
# ## A file
#
# GraphML has a line for each node and each edge. Plain edge lists, Gset and DIMACS files and METIS are read too; but
# beware of an edge list here, for it does not know of a station that disturbs nobody.

# %%
places = np.random.default_rng(0).random((150, 2))
names = [f"K{number:03}" for number in range(150)]
positions = dict(zip(names, places, strict=True))
county = nx.Graph()
county.add_nodes_from(names)
for i in range(150):
    county.add_edges_from((names[i], names[j]) for j in range(i) if np.linalg.norm(places[i] - places[j]) < 0.12)
nx.write_graphml(county, folder / "stations.graphml")
print(county, "in", (folder / "stations.graphml").name)

# %% [markdown]
# ## An answer
#
# A problem is made of the file, and `dx.solve` has two seconds. (The first call of all takes longer: the search is
# compiled once and kept.)

# %%
problem = dx.problems.MIS(folder / "stations.graphml")
solution = dx.solve(jax.random.key(0), problem, seconds=2)
print(f"{solution.objective:.0f} stations, {solution.num_steps} steps, allowed: {solution.is_feasible}")

# %%
chosen = set(problem.describe(solution.state)["nodes"])
figure, axis = plt.subplots(figsize=(5.2, 5))
nx.draw_networkx_edges(county, positions, edge_color="lightgray", ax=axis)
colours = ["C3" if node in chosen else "white" for node in county]
nx.draw_networkx_nodes(county, positions, node_color=colours, edgecolors="black", node_size=45, ax=axis)
axis.set_title(f"{len(chosen)} of {len(county)} stations on")
axis.set_axis_off()
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Is it allowed?
#
# One line checks that, by the graph itself.

# %%
assert chosen <= set(county)
assert not any(i in chosen and j in chosen for i, j in county.edges)
print("No two of them disturb each other.")

# %% [markdown]
# ## Could it be one more?
#
# There are two ways to a proof.
#
# *A bound.* Cover the nodes by groups in which all disturb each other. Of each group at most one is on, so there are
# at most as many as there are groups. Where a solution meets its bound, nothing can be better.
#
# *Reductions.* A station with one neighbour may as well be on: whatever its neighbour would bring, it brings too.
# Such steps make the problem smaller without losing the best answer. Often nothing is left, and then the answer is
# proved.

# %%
print(f"The bound by groups: {solution.bound:.0f}. Found: {solution.objective:.0f}.")
print(f"Proved to be optimal: {solution.is_proved_optimal}.")

# %% [markdown]
# Here the bound leaves room, and the reductions close it. Should we believe it? Integer programming, a different
# method by different people, comes to the same number: maximise the number that are on, with at most one of each
# edge.


# %%
def by_integer_programming(graph):
    at_most_one = np.abs(nx.incidence_matrix(graph)).T  # a row for each edge, 1 at its two ends
    found = milp(
        -np.ones(len(graph)), integrality=1, bounds=Bounds(0, 1), constraints=LinearConstraint(at_most_one, ub=1)
    )
    return round(-found.fun)


print(f"Integer programming: {by_integer_programming(county)}.")
assert solution.is_proved_optimal
assert solution.objective == by_integer_programming(county)

# %% [markdown]
# ## Where the proof ends
#
# The county was kind: its edges are local. In a graph whose edges go anywhere, nothing reduces, and the groups are
# small.

# %%
densities = [2, 3, 4, 6, 8, 12]
found = []
for degree in densities:
    graph = nx.gnp_random_graph(300, degree / 299, seed=degree)
    found.append(dx.solve(jax.random.key(1), dx.problems.MIS(graph), num_steps=2000))
for degree, each in zip(densities, found, strict=True):
    print(
        f"mean degree {degree:2}: found {each.objective:.0f}, bound {each.bound:.0f}, proved {each.is_proved_optimal}"
    )

# %%
figure, axis = plt.subplots(figsize=(6, 3.6))
axis.plot(densities, [each.bound for each in found], "v--", color="gray", label="bound by groups")
axis.plot(densities, [each.objective for each in found], color="C0", label="found")
for degree, each in zip(densities, found, strict=True):
    axis.plot(degree, each.objective, "o", color="C2" if each.is_proved_optimal else "C0", markersize=8)
axis.plot([], [], "o", color="C2", label="proved")
axis.set(xlabel="mean number of neighbours, 300 nodes", ylabel="size of the independent set")
axis.legend()
figure.tight_layout()
plt.show()
assert found[0].is_proved_optimal
assert not found[-1].is_proved_optimal

# %% [markdown]
# Where points are green we know. Elsewhere we know a set that can be checked, and a number that no set can pass; what
# is between them is open. A search that stopped improving long ago is a good sign, and no more than that:

# %%
history = found[-1].history
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(history.num_steps, history.best, "o-")
axis.set(xlabel="steps", ylabel="best set so far", title="300 nodes, 12 neighbours each")
axis.yaxis.get_major_locator().set_params(integer=True)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## What to try next
#
# - From the shell: `discrax solve mis stations.graphml --seconds 10 --out solution.json --plot history.png`.
# - Stations that have different numbers of listeners: give the nodes weights, and `dx.problems.MIS(graph,
#   weighted=True)`.
# - How to share the stations between two networks: `dx.problems.MaxCut(graph)`. The same three lines solve cliques,
#   partitions, QUBOs and formulas: [solving](../solve.md).
# - A problem with its own rules: `dx.problems.Custom(function, space)`.
