"""Chooses how expensive a replicable op may be, by trying."""

from __future__ import annotations

import dataclasses

import numpy as np

from mcmpart.problem import Problem
from mcmpart.search import Setting, pipeline_evaluator
from mcmpart.search.slice import Slice

THRESHOLDS = (0.02, 0.1)
"""Shares of the graph's cost that are tried beside the default one."""

TRIAL_ORDERS = 2
"""Topological orders that each trial is sliced along."""


def choose_replicas(problem: Problem, deadline: float) -> Problem:
    """Return the problem with the replica threshold that gives the best first plan.

    Under the triangle rule one cheap op that all layers read chains them to two chips
    unless it is replicated. In a small graph a single launch overhead may be more than
    the default threshold, so larger ones are tried along the first orders. A problem
    whose threshold was given, or without the triangle rule, is returned as it is.
    """
    if problem.replica_threshold is not None or not problem.package_arrays.triangle:
        return problem
    best, best_s = problem, _first_plan_s(problem, deadline)
    seen = {problem.graph.op_replicable.tobytes()}
    for threshold in THRESHOLDS:
        trial = dataclasses.replace(problem, replica_threshold=threshold)
        marks = trial.graph.op_replicable.tobytes()
        if marks in seen:
            continue
        seen.add(marks)
        trial_s = _first_plan_s(trial, deadline)
        if trial_s < best_s:
            best, best_s = trial, trial_s
    return best


def _first_plan_s(problem: Problem, deadline: float) -> float:
    method = Slice(Setting(problem, deadline=deadline), max_orders=TRIAL_ORDERS)
    judge = pipeline_evaluator(problem, 1)
    best_s = np.inf
    while not method.done:
        rows = method.propose()
        if rows.shape[0] == 0:
            continue
        found = judge(rows)
        method.observe(found)
        best_s = min(best_s, np.where(found.valid, found.bottleneck_s, np.inf).min())
    return float(best_s)
