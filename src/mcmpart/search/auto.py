"""auto: greedy, then slices, then local moves and annealing, in the time given."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from mcmpart.graph.graph import Int32
from mcmpart.search.anneal import Anneal
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

MOST_BLOCKS = 2_000
"""In larger graphs FIX takes too long for many moves."""


class Auto:
    """Composes the methods: a start at once, better cuts, then placements beyond cuts.

    Local moves begin when slicing has had its share of the time. Under the triangle
    rule few of them are valid, and annealing, whose moves the solver corrects, shares
    the time with them. All stages feed one incumbent. ``name`` is that of the stage
    that proposed last, for the trace.
    """

    def __init__(self, setting: Setting) -> None:
        self.name = "auto"
        self.done = False
        self._setting = setting
        self._began = time.perf_counter()
        self._stages: list[SearchMethod] = [Greedy(setting), Slice(setting)]
        self._best: Int32 | None = None
        self._best_s = np.inf
        self._last: _InTurn | None = None

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
        if self._last is None:
            self._last = _InTurn(dataclasses.replace(self._setting, start=self._best))
        rows = self._last.propose()
        self.name, self.done = self._last.name, self._last.done
        return rows

    def observe(self, evaluations: Evaluations) -> None:
        """Hand what was found to every stage that is still to come."""
        if evaluations.chip_of.shape[0] == 0:
            return
        cost = evaluations.valid_s
        row = int(cost.argmin())
        is_better = bool(cost[row] < self._best_s)
        if is_better:
            self._best_s = float(cost[row])
            self._best = evaluations.chip_of[row]
        for stage in self._stages:
            stage.observe(evaluations)
        if self._last is not None:
            self._last.observe(evaluations, is_better)

    def _is_over(self, stage: SearchMethod) -> bool:
        if stage.done:
            return True
        if not isinstance(stage, Slice) or self._best is None:
            return False
        spent_s = time.perf_counter() - self._began
        time_s = min(self._setting.deadline - self._began, LONGEST_S)
        return stage.num_orders >= FIRST_ORDERS and spent_s > SLICE_SHARE * time_s


class _InTurn:
    """Local moves, and annealing where it has something to add, in equal time."""

    def __init__(self, setting: Setting) -> None:
        problem = setting.problem
        self._methods: list[SearchMethod] = [Local(setting)]
        is_small = problem.blocks.num_blocks <= MOST_BLOCKS
        if problem.package_arrays.triangle and is_small:
            self._methods.append(Anneal(setting))
        self._spent_s = [0.0] * len(self._methods)
        self._turn = 0

    @property
    def name(self) -> str:
        """That of the method that proposed last."""
        return self._methods[self._turn].name

    @property
    def done(self) -> bool:
        """Whether no method has anything more to propose."""
        return all(method.done for method in self._methods)

    def propose(self) -> Int32:
        """Return the proposal of the method that has had the least time."""
        open_ = [i for i, method in enumerate(self._methods) if not method.done]
        self._turn = min(open_, key=lambda i: self._spent_s[i])
        began = time.perf_counter()
        rows = self._methods[self._turn].propose()
        self._spent_s[self._turn] += time.perf_counter() - began
        return rows

    def observe(self, evaluations: Evaluations, is_better: bool) -> None:
        """Let the proposer take note, and the other one of what is the best so far."""
        for i, method in enumerate(self._methods):
            if i == self._turn or is_better:
                method.observe(evaluations)
