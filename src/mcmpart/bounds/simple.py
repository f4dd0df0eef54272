"""simple: the largest op, and the work shared out evenly."""

from __future__ import annotations

from mcmpart.problem import Problem

ROUNDING = 1 - 1e-12
"""Keeps a bound below the optimum in spite of the rounding of float sums."""


def simple_bound_s(problem: Problem) -> float:
    """Return max(largest t(v), (sum of t) / C) in seconds, ops on their fastest chip.

    Notes
    -----
    Every chip's stage time is at least its compute time
    under all of a package's rules, so this bounds every partition. A replicable op that
    some op needs is computed at least once; one that no op needs is never computed.
    """
    fastest_s = problem.costs.op_s.min(axis=0)
    runs = ~problem.graph.op_replicable
    for op in range(problem.graph.num_ops - 1, -1, -1):
        if problem.graph.op_replicable[op]:
            runs[op] = runs[problem.graph.successors.row(op)].any()
    computed_s = fastest_s[runs]
    if computed_s.size == 0:
        return 0.0
    shared_s = float(computed_s.sum()) / problem.num_chips
    return max(float(computed_s.max()), shared_s) * ROUNDING
