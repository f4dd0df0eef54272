"""random: valid partitions by even draws, the baseline that learns nothing."""

from __future__ import annotations

import time

import numpy as np

from mcmpart.graph.graph import Int32
from mcmpart.search.method import Evaluations, Setting
from mcmpart.solver.modes import Rows, sample_rows

STREAM = 2
"""Keeps its random numbers apart from those of other methods with the same seed."""

CALL_S = 0.04
"""Time that one proposal aims at; draws that take longer than usual fit below 50 ms."""

GROWTH = 4
"""Most by which one proposal is larger than the one before."""

MAX_ROWS = 4096
"""Most draws in one proposal, so that the memory for them stays small."""


class Random:
    """Draws partitions by SAMPLE, every possible chip equally likely.

    Draw i has the i-th 64-bit word of numpy's PCG64, seeded with ``[seed, 2]``, as its
    seed, and depends on nothing else: how many draws one proposal holds is up to the
    clock and the workers, which draws follow each other is not. Draws that the solver
    gives up are left out.

    It is done only where nothing remains to be found: after the only partition of one
    chip or of no blocks, and where the rules contradict each other.

    References
    ----------
    Xie et al., "A Transferable Approach for Partitioning Machine Learning Models on
    Multi-Chip-Modules", MLSys 2022: random search, through the constraint solver.
    """

    name = "random"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._problem = setting.problem
        self._workers = setting.workers
        self._words = np.random.PCG64([setting.seed, STREAM])
        self._num_draws = 1

    def propose(self) -> Int32:
        """Return the next draws, as many as fit into a call."""
        num_draws = self._num_draws
        began = time.perf_counter()
        rows = sample_rows(
            self._problem,
            None,
            self._words.random_raw(num_draws),
            workers=self._workers,
        )
        took_s = time.perf_counter() - began
        fitting = int(num_draws * CALL_S / max(took_s, 1e-9))
        self._num_draws = min(max(fitting, 1), GROWTH * num_draws, MAX_ROWS)
        single = self._problem.num_chips == 1 or self._problem.blocks.num_blocks == 0
        self.done = single or is_hopeless(rows)
        return rows.chip_of[rows.solved]

    def observe(self, evaluations: Evaluations) -> None:
        """Ignore what they cost."""


def is_hopeless(rows: Rows) -> bool:
    """Return whether the rules contradict each other: draws end without a search."""
    return bool((~rows.solved & (rows.num_attempts == 0)).any())
