"""Small problems in full: every partition that obeys the dataflow, judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem

MAX_PARTITIONS = 100_000
"""Most partitions that are looked at: a second or two."""

TINY_OPS = 16
TINY_PARTITIONS = 5_000
"""Problems up to these sizes are solved by judging everything: some 0.1 s, and as
quickly verified in plain Python."""

BATCH = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class Exhausted:
    """What looking at the partitions one after the other came to.

    Attributes
    ----------
    chip_of
        ``[V] int32``, the best valid partition, or None if there was none.
    bottleneck_s
        Its cost, infinite if there was none.
    num_judged
        How many were looked at.
    complete
        Whether those were all, so that the best is the optimum and None a proof that
        there is none.
    """

    chip_of: Int32 | None
    bottleneck_s: float
    num_judged: int
    complete: bool


def best_of_all(problem: Problem, limit: int = MAX_PARTITIONS) -> Exhausted:
    """Judge every partition that obeys the dataflow, ``limit`` at most."""
    best: Int32 | None = None
    best_s = np.inf
    num_judged = 0
    partitions = _monotone(problem)
    while batch := list(islice(partitions, min(BATCH, limit - num_judged))):
        bottleneck_s, valid = evaluate_many(problem, np.stack(batch))
        cost = np.where(valid, bottleneck_s, np.inf)
        row = int(cost.argmin())
        if cost[row] < best_s:
            best, best_s = batch[row], float(cost[row])
        num_judged += len(batch)
    complete = num_judged < limit or next(partitions, None) is None
    return Exhausted(best, best_s, num_judged, complete)


def _monotone(problem: Problem) -> Iterator[Int32]:
    """Yield the chip of each op for every assignment with f(u) <= f(v) on edges."""
    arrays = problem.ops.arrays
    num_blocks = problem.ops.num_blocks
    num_chips = problem.num_chips
    if problem.package_arrays.no_skip:
        # The used chips are a prefix, and each holds at least one block.
        num_chips = min(num_chips, num_blocks)
    chips = np.zeros(num_blocks, dtype=np.int32)
    if num_blocks == 0:
        yield problem.ops.expand(chips)
        return
    n = 0
    while n >= 0:
        if n == num_blocks:
            yield problem.ops.expand(chips)
            n -= 1
            chips[n] += 1
        elif chips[n] >= num_chips:
            n -= 1
            if n >= 0:
                chips[n] += 1
        else:
            n += 1
            if n < num_blocks:
                preds = arrays.pred[arrays.pred_ptr[n] : arrays.pred_ptr[n + 1]]
                chips[n] = chips[preds].max(initial=0)
