"""greedy: the compiler's heuristic; fill the chips in topological order, fairly."""

from __future__ import annotations

import numpy as np

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.search._orders import order_arrays
from mcmpart.search._segments import fill_greedily, place
from mcmpart.search.method import Evaluations, Setting, no_rows

SHARES = (1.0, 1.1, 1.25, 1.5, 2.0, 4.0, np.inf)
"""Multiples of the fair share that are tried until the chips hold all blocks."""


class Greedy:
    """Fills each chip up to its fair share of the work left.

    The share is raised when the cuts that the rules allow leave work over at the end.
    It makes one proposal.
    """

    name = "greedy"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._problem = setting.problem

    def propose(self) -> Int32:
        """Return the greedy partition, or none if no share leads to a valid one."""
        self.done = True
        blocks = self._problem.blocks
        identity = np.arange(blocks.num_blocks, dtype=np.int32)
        order = order_arrays(blocks.arrays, identity)
        for share in SHARES:
            cuts = fill_greedily(
                share, blocks.arrays, self._problem.package_arrays, order
            )
            if cuts.size == 0:
                continue
            rows = blocks.expand(place(cuts, order)[None])
            # The filling knows no demand for all chips, and its count of live tensors
            # leaves replicas out.
            if evaluate_many(self._problem, rows, workers=1)[1].all():
                return rows
        return no_rows(self._problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Ignore what it cost."""
