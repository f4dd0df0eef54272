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

SLICE_SHARE = 0.3
"""Share of the time that goes into slicing orders before local moves begin."""

FIRST_ORDERS = 8
"""Orders that are sliced however little time there is."""


class Auto:
    """Composes the methods: a start at once, better cuts, then placements beyond cuts.

    Local moves begin when slicing has had its share of the time, or has not improved
    over as many orders as it took before; both feed one incumbent.
    """

    name = "auto"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._began = time.perf_counter()
        self._stages: list[SearchMethod] = [Greedy(setting), Slice(setting)]
        if setting.start is not None:
            self._stages.insert(0, _Given(setting.start))
        self._best: Int32 | None = None
        self._best_s = np.inf
        self._local: Local | None = None

    @property
    def stage(self) -> str:
        """Name of the method that proposed last."""
        return self._stages[0].name if self._stages else "local"

    def propose(self) -> Int32:
        """Return the next stage's proposal."""
        while self._stages and self._is_over(self._stages[0]):
            self._stages.pop(0)
        if self._stages:
            return self._stages[0].propose()
        if self._best is None:
            self.done = True
            return no_rows(self._setting.problem)
        if self._local is None:
            start = dataclasses.replace(self._setting, start=self._best)
            self._local = Local(start)
        rows = self._local.propose()
        self.done = self._local.done
        return rows

    def observe(self, evaluations: Evaluations) -> None:
        """Hand what was found to every stage that is still to come."""
        cost = np.where(evaluations.valid, evaluations.bottleneck_s, np.inf)
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
        left_s = self._setting.deadline - self._began
        return stage.num_orders >= FIRST_ORDERS and spent_s > SLICE_SHARE * left_s


class _Given:
    """Proposes the partition that the user started from."""

    name = "start"

    def __init__(self, start: Int32) -> None:
        self.done = False
        self._start = start

    def propose(self) -> Int32:
        """Return the given partition."""
        self.done = True
        return self._start[None]

    def observe(self, evaluations: Evaluations) -> None:
        """Ignore what it cost."""
