"""greedy: the compiler's heuristic; fill the chips in topological order, fairly."""

from __future__ import annotations

import numpy as np

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.search._orders import order_arrays
from mcmpart.search._segments import fill_greedily, place
from mcmpart.search.method import Evaluations, Setting, no_rows
from mcmpart.solver.modes import fix_many

SHARES = (1.0, 1.1, 1.25, 1.5, 2.0, 4.0, np.inf)
"""Multiples of the fair share that are tried until the chips hold all blocks."""


class Greedy:
    """Fills each chip up to its fair share of the work left.

    The share is raised when the cuts that the rules allow leave work over at the end.
    If no share leads to a valid partition, cuts that ignore the rules are corrected by
    FIX. It makes one proposal.
    """

    name = "greedy"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._problem = setting.problem

    def propose(self) -> Int32:
        """Return the greedy partition, or none if it could not be corrected."""
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
        return self._corrected()

    def _corrected(self) -> Int32:
        """Return cuts at equal shares of the work, made valid."""
        problem, blocks = self._problem, self._problem.blocks
        if blocks.num_blocks == 0:
            return no_rows(problem)
        work_s = np.cumsum(blocks.arrays.block_s.min(axis=0))
        share = work_s / max(work_s[-1], np.finfo(np.float64).tiny)
        chips = np.minimum(share * problem.num_chips, problem.num_chips - 1)
        rows = blocks.expand(chips.astype(np.int32)[None])
        fixed, solved = fix_many(problem, rows, [0], workers=1)
        return fixed[solved]

    def observe(self, evaluations: Evaluations) -> None:
        """Ignore what it cost."""
