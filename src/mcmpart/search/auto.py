"""auto: greedy, then slices, then local moves, in the time given."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from mcmpart.graph.graph import Int32
from mcmpart.search.greedy import Greedy
from mcmpart.search.local import Local
from mcmpart.search.method import Evaluations, SearchMethod, Setting, no_rows
from mcmpart.search.slice import Slice

SLICE_SHARE = 0.1
"""Share of the time that goes into slicing orders before local moves begin."""

LONGEST_S = 100.0
"""Slicing has its share of this at most, also where there is no deadline."""

FIRST_ORDERS = 8
"""Orders that are sliced however little time there is."""


class Auto:
    """Composes the methods: a start at once, better cuts, then placements beyond cuts.

    Local moves begin when slicing has had its share of the time; all stages feed one
    incumbent. ``name`` is that of the stage that proposed last, for the trace.
    """

    def __init__(self, setting: Setting) -> None:
        self.name = "auto"
        self.done = False
        self._setting = setting
        self._began = time.perf_counter()
        self._stages: list[SearchMethod] = [Greedy(setting), Slice(setting)]
        self._best: Int32 | None = None
        self._best_s = np.inf
        self._local: Local | None = None

    def propose(self) -> Int32:
        """Return the next stage's proposal."""
        while self._stages and self._is_over(self._stages[0]):
            self._stages.pop(0)
        if self._stages:
            self.name = self._stages[0].name
            return self._stages[0].propose()
        if self._best is None:
            self.done = True
            return no_rows(self._setting.problem)
        if self._local is None:
            start = dataclasses.replace(self._setting, start=self._best)
            self._local = Local(start)
        rows = self._local.propose()
        self.name = self._local.name
        self.done = self._local.done
        return rows

    def observe(self, evaluations: Evaluations) -> None:
        """Hand what was found to every stage that is still to come."""
        if evaluations.chip_of.shape[0] == 0:
            return
        cost = evaluations.valid_s
        row = int(cost.argmin())
        if cost[row] < self._best_s:
            self._best_s = float(cost[row])
            self._best = evaluations.chip_of[row]
        for stage in self._stages:
            stage.observe(evaluations)
        if self._local is not None:
            self._local.observe(evaluations)

    def _is_over(self, stage: SearchMethod) -> bool:
        if stage.done:
            return True
        if not isinstance(stage, Slice) or self._best is None:
            return False
        spent_s = time.perf_counter() - self._began
        time_s = min(self._setting.deadline - self._began, LONGEST_S)
        return stage.num_orders >= FIRST_ORDERS and spent_s > SLICE_SHARE * time_s
