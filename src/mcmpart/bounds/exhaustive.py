"""Small problems in full: every partition that obeys the dataflow, judged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem

MAX_PARTITIONS = 200_000
"""Most partitions that are looked at: a second or two."""

BATCH = 4_096


def best_of_all(problem: Problem) -> tuple[Int32 | None, bool]:
    """Return the best valid partition of a small problem.

    Returns
    -------
    chip_of
        ``[V] int32``, or None if there is no valid one among those looked at.
    complete
        Whether all were looked at, so that None proves that there is none.
    """
    best: Int32 | None = None
    best_s = np.inf
    looked_at = 0
    batch: list[Int32] = []
    for chip_of in _monotone(problem):
        batch.append(chip_of)
        looked_at += 1
        if looked_at > MAX_PARTITIONS:
            return best, False
        if len(batch) == BATCH:
            best, best_s = _better(problem, batch, best, best_s)
            batch = []
    if batch:
        best, best_s = _better(problem, batch, best, best_s)
    return best, True


def _monotone(problem: Problem) -> Iterator[Int32]:
    """Yield the chip of each op for every assignment with f(u) <= f(v) on edges."""
    arrays = problem.ops.arrays
    num_blocks = problem.ops.num_blocks
    if num_blocks == 0:
        return
    chips = np.zeros(num_blocks, dtype=np.int32)
    n = 0
    while n >= 0:
        if n == num_blocks:
            yield problem.ops.expand(chips)
            n -= 1
            chips[n] += 1
        elif chips[n] >= problem.num_chips:
            n -= 1
            if n >= 0:
                chips[n] += 1
        else:
            n += 1
            if n < num_blocks:
                preds = arrays.pred[arrays.pred_ptr[n] : arrays.pred_ptr[n + 1]]
                chips[n] = chips[preds].max(initial=0)


def _better(
    problem: Problem, batch: list[Int32], best: Int32 | None, best_s: float
) -> tuple[Int32 | None, float]:
    bottleneck_s, valid = evaluate_many(problem, np.stack(batch))
    cost = np.where(valid, bottleneck_s, np.inf)
    row = int(cost.argmin())
    if cost[row] < best_s:
        return batch[row], float(cost[row])
    return best, best_s
