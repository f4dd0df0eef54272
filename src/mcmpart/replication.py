"""Chooses how expensive a replicable op may be, by trying."""

from __future__ import annotations

import dataclasses
import time
from typing import NamedTuple

import numpy as np

from mcmpart.bounds.exhaustive import (
    TINY_OPS,
    TINY_PARTITIONS,
    best_of_all,
)
from mcmpart.problem import Problem
from mcmpart.search import (
    Auto,
    Budget,
    SearchRecord,
    Setting,
    pipeline_evaluator,
    run_search,
)

THRESHOLDS = (0.02, 0.1)
"""Shares of the graph's cost that are tried beside the default one."""

MOST_OPS = 1_000
"""In a larger graph one launch overhead is below the default threshold anyway."""

TRIAL_SHARE = 0.2
"""Share of the search's time that goes into the trials, all together."""


class Choice(NamedTuple):
    """The problem to go on with; if an interrupt ended its trial, the trial's score."""

    problem: Problem
    interrupted: SearchRecord | None = None


def choose_replicas(problem: Problem, time_s: float) -> Choice:
    """Return the problem with the replica threshold that gives the best plan so far.

    Under the triangle rule one cheap op that all layers read chains them to two chips
    unless it is replicated. In a small graph a single launch overhead may be more than
    the default threshold, so larger ones are tried by short searches. A large problem,
    one whose threshold was given and one without the triangle rule stay as they are.
    """
    if (
        problem.replica_threshold is not None
        or not problem.package_arrays.triangle
        or problem.graph.num_ops > MOST_OPS
    ):
        return Choice(problem)
    variants = {problem.graph.op_replicable.tobytes(): problem}
    for threshold in THRESHOLDS:
        trial = dataclasses.replace(problem, replica_threshold=threshold)
        variants.setdefault(trial.graph.op_replicable.tobytes(), trial)
    if len(variants) == 1:
        return Choice(problem)
    trial_s = time_s * TRIAL_SHARE / len(variants)
    best, best_s = problem, np.inf
    for variant in variants.values():
        record = _short_search(variant, trial_s)
        if record.bottleneck_s < best_s:
            best, best_s, best_record = variant, record.bottleneck_s, record
        if record.stopped_by == "interrupt":
            if not np.isfinite(best_s):
                raise KeyboardInterrupt
            best_record.stopped_by = "interrupt"
            return Choice(best, best_record)
    return Choice(best)


def _short_search(problem: Problem, time_s: float) -> SearchRecord:
    """Return the score of a short search; a tiny problem is judged in full."""
    if problem.graph.num_ops <= TINY_OPS:
        found = best_of_all(problem, TINY_PARTITIONS)
        if found.complete:
            return SearchRecord(found.chip_of, found.bottleneck_s)
    started = time.perf_counter()
    setting = Setting(problem, deadline=started + time_s)
    evaluator = pipeline_evaluator(problem, 1)
    return run_search(Auto(setting), evaluator, Budget(time_s), 0.0, started=started)
