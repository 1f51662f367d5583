"""CP-SAT and HiGHS: exact solvers that are stopped by the clock."""

import time

import numpy as np

from discrax.problems import BinaryQuadratic, Problem
from peers.forms import is_set, model_of


def _cliques(form: BinaryQuadratic) -> list[list[int]]:
    """Cliques that cover all edges, greedily: a row a clique says more than a row an edge."""
    adjacent = [0] * form.num_sites  # bit j of number i: whether i and j are joined
    for i, j in form.edges.tolist():
        adjacent[i] |= 1 << j
        adjacent[j] |= 1 << i
    left, cliques = adjacent.copy(), []
    for i, j in form.edges.tolist():
        if not left[i] >> j & 1:
            continue
        clique, common = [i, j], adjacent[i] & adjacent[j]
        while common:
            useful = common & left[i] or common
            node = (useful & -useful).bit_length() - 1
            clique.append(node)
            common &= adjacent[node]
        inside = sum(1 << node for node in clique)
        for node in clique:
            left[node] &= ~inside
        cliques.append(clique)
    return cliques


def cpsat(problem: Problem, seconds: float, num_threads: int, seed: int, **parameters: bool | int):
    """OR-tools CP-SAT: at most one of each clique of conflicts, or products of a quadratic form as variables.

    `parameters` are its own; the bound in the notes is one that it proved.
    """
    from ortools.sat.python import cp_model

    begin = time.perf_counter()
    form = model_of(problem)
    model = cp_model.CpModel()
    x = [model.new_bool_var("") for _ in range(form.num_sites)]
    variables, coefficients = list(x), form.linear.tolist()
    for clique in _cliques(form) if is_set(problem) else ():
        model.add_at_most_one(x[node] for node in clique)
    pairs = () if is_set(problem) else zip(form.edges.tolist(), form.weights.tolist(), strict=True)
    for (i, j), w in pairs:
        y = model.new_bool_var("")  # x_i x_j
        if w > 0:
            model.add_implication(y, x[i])
            model.add_implication(y, x[j])
        else:
            model.add_bool_or(y, ~x[i], ~x[j])
        variables.append(y)
        coefficients.append(w)
    if all(each == round(each) for each in coefficients):
        coefficients = [round(each) for each in coefficients]
    model.maximize(cp_model.LinearExpr.weighted_sum(variables, coefficients))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.1, seconds - (time.perf_counter() - begin))
    solver.parameters.num_workers = num_threads
    solver.parameters.random_seed = seed
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    status = solver.solve(model)
    notes = {"how": solver.status_name(status), "bound": solver.best_objective_bound + form.offset}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, notes
    return np.array([solver.boolean_value(each) for each in x], np.int8), notes


def highs(problem: Problem, seconds: float, num_threads: int, seed: int):
    """HiGHS, mixed integer: a row for each clique of conflicts, or products of a quadratic form linearised.

    For y = x_i x_j it takes y <= x_i, y <= x_j where y gains, and y >= x_i + x_j - 1 where it costs.
    """
    import highspy

    begin = time.perf_counter()
    form, infinity = model_of(problem), highspy.kHighsInf
    n, m = form.num_sites, len(form.edges)
    i, j = form.edges.T
    cost, num_columns = form.linear, n
    if is_set(problem):
        cliques = _cliques(form)
        columns = np.concatenate(cliques) if cliques else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum(list(map(len, cliques)))])[:-1]
        values, upper = np.ones(len(columns)), np.ones(len(cliques))
    else:
        cost, num_columns = np.concatenate([form.linear, form.weights]), n + m
        up, down, y = form.weights > 0, form.weights <= 0, n + np.arange(m)
        gains = np.concatenate([np.stack([y[up], i[up]], 1), np.stack([y[up], j[up]], 1)])
        costs = np.stack([i[down], j[down], y[down]], axis=1)
        columns = np.concatenate([gains.ravel(), costs.ravel()])
        values = np.concatenate([np.tile([1.0, -1.0], len(gains)), np.tile([1.0, 1.0, -1.0], len(costs))])
        starts = np.concatenate([2 * np.arange(len(gains)), 2 * len(gains) + 3 * np.arange(len(costs))])
        upper = np.concatenate([np.zeros(len(gains)), np.ones(len(costs))])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = num_columns, len(upper)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(num_columns), np.ones(num_columns)
    lp.row_lower_, lp.row_upper_ = np.full(len(upper), -infinity), upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.append(starts, len(columns)).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.astype(np.int32), values
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n + [highspy.HighsVarType.kContinuous] * (num_columns - n)
    lp.sense_ = highspy.ObjSense.kMaximize
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", num_threads), ("random_seed", seed)):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.setOptionValue("time_limit", max(0.1, seconds - (time.perf_counter() - begin)))
    solver.run()
    notes = {"how": solver.modelStatusToString(solver.getModelStatus())}
    solution = solver.getSolution()
    if not solution.value_valid:
        return None, notes
    return (np.asarray(solution.col_value[:n]) > 0.5).astype(np.int8), notes
