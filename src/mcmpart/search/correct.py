"""correct: fit the analytical model to the evaluator, search on it, and repeat."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from mcmpart.graph.graph import Int32
from mcmpart.partition import NO_CHIP
from mcmpart.search._factors import Factors
from mcmpart.search.greedy import Greedy
from mcmpart.search.local import Local
from mcmpart.search.method import (
    Evaluations,
    SearchMethod,
    Setting,
    no_rows,
    pipeline_evaluator,
)
from mcmpart.search.slice import Slice

ROUNDS = 25
"""Rounds that the time is shared out to."""

LONGEST_S = 2.0
"""A round ends after this time, or after as long as the last evaluation took."""

CHUNK_S = 0.04
"""A proposal ends after this time, with or without a partition."""

SLICE_SHARE = 0.3
"""Share of a round that goes into slicing orders before local moves begin."""

ORDERS = 12
"""Orders that a round slices at most."""

MOST_EMPTY = 6
"""Rounds in a row without a partition that is new, after which there is none."""

POOL = 50
"""Partitions that are kept from round to round, the best ones."""


class Correct:
    """Searches a model that is corrected by what the evaluator has reported so far.

    The first proposal is greedy's, the second the best partition of the analytical
    model. From then on each round fits factors per op kind, shape and chip to all
    stage times observed (:class:`Factors`), searches the corrected problem, and
    proposes the best partition there that was not judged before. Every other round
    searches factors drawn from all those that the observations allow, not the
    likeliest ones, so that it tells them apart. After invalid partitions, and rounds
    that found nothing new, it draws from a wider range.

    Notes
    -----
    The clock decides how far a round searches, so what it proposes depends on how fast
    the machine is.
    """

    name = "correct"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._rng = np.random.default_rng([setting.seed, 2])
        self._factors = Factors(setting.problem)
        self._greedy = Greedy(setting)
        self._judged: set[bytes] = set()
        self._invalid: set[bytes] = set()
        self._pool = no_rows(setting.problem)
        self._round: _Round | None = None
        self._num_rounds = 0
        self._num_empty = 0
        self._num_invalid = 0
        self._proposed = time.perf_counter()
        self._share_s = (setting.deadline - self._proposed) / ROUNDS
        self._took_s = 0.0

    def propose(self) -> Int32:
        """Return the best partition of the round, or none while it still searches."""
        until = time.perf_counter() + CHUNK_S
        if not self._greedy.done:
            return self._sent(self._greedy.propose())
        if self._round is None:
            self._round = self._next_round()
        while time.perf_counter() < until and not self._setting.is_late():
            if self._round.is_over():
                return self._sent(self._end_round(self._round))
            self._round.step()
        return no_rows(self._setting.problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Note what was judged, and learn from the partitions that are valid."""
        self._took_s = time.perf_counter() - self._proposed
        rows = evaluations.chip_of.copy()
        rows[:, self._setting.problem.graph.op_replicable] = NO_CHIP
        cost = evaluations.valid_s
        for row, chip_of in enumerate(rows):
            self._judged.add(chip_of.tobytes())
            if not evaluations.valid[row]:
                self._invalid.add(chip_of.tobytes())
                self._num_invalid += 1
            elif 0 < cost[row] < np.inf:
                self._num_invalid = 0
                stage_s = evaluations.stage_s
                known_s = None if stage_s is None else stage_s[row]
                self._factors.observe(chip_of, float(cost[row]), known_s)
        self._pool = np.concatenate([self._pool, rows[np.isfinite(cost)]])

    def _sent(self, rows: Int32) -> Int32:
        self._proposed = time.perf_counter()
        return rows

    def _next_round(self) -> _Round:
        began = time.perf_counter()
        problem = self._setting.problem
        exponents = self._factors.fit()
        if self._num_rounds > 0:
            num_vain = self._num_invalid + self._num_empty
            if self._num_rounds % 2 == 0 or num_vain:
                exponents = self._factors.draw(self._rng, 1 + num_vain)
            problem = problem.with_costs(self._factors.op_seconds(exponents))
        setting = dataclasses.replace(
            self._setting,
            problem=problem,
            seed=int(self._rng.integers(2**31)),
            start=None,
        )
        self._num_rounds += 1
        time_s = min(self._share_s, max(LONGEST_S, self._took_s))
        return _Round(setting, began, time_s, self._pool, self._invalid)

    def _end_round(self, ended: _Round) -> Int32:
        """Return the best partition of the round that was not judged before."""
        self._round = None
        self._pool = ended.best(POOL)
        for row, chip_of in enumerate(self._pool):
            if chip_of.tobytes() not in self._judged:
                self._num_empty = 0
                return self._pool[row : row + 1]
        self._num_empty += 1
        self.done = len(self._judged) > 0 and self._num_empty >= MOST_EMPTY
        return no_rows(self._setting.problem)


class _Round:
    """One search on one model, in steps: slices first, then local moves.

    Parameters
    ----------
    setting
        With the model's problem.
    began, time_s
        ``time.perf_counter()`` at which it began, and how long it may last.
    known
        ``[B, V] int32`` partitions to go on from.
    invalid
        The bytes of partitions that are not valid, whatever the model says.
    """

    def __init__(
        self,
        setting: Setting,
        began: float,
        time_s: float,
        known: Int32,
        invalid: set[bytes],
    ) -> None:
        self._invalid = invalid
        self._judge = pipeline_evaluator(setting.problem, 1)
        self._slice = Slice(setting, max_orders=ORDERS)
        self._local = Local(setting)
        self._rows: list[Int32] = [no_rows(setting.problem)]
        self._cost_s = [np.empty(0)]
        self._began = began
        self._time_s = time_s
        self._note(known)

    def is_over(self) -> bool:
        """Return whether its time is up, or it has nothing more to try."""
        spent_s = time.perf_counter() - self._began
        if not self._has_plan():
            return self._slice.done
        return self._local.done or spent_s >= self._time_s

    def step(self) -> None:
        """Search for some 50 ms."""
        spent_s = time.perf_counter() - self._began
        slices = not self._slice.done and spent_s < SLICE_SHARE * self._time_s
        stage: SearchMethod = self._local
        if slices or not self._has_plan():
            stage = self._slice
        self._note(stage.propose())

    def best(self, count: int) -> Int32:
        """Return up to ``count`` distinct valid partitions, the best first."""
        cost_s, rows = np.concatenate(self._cost_s), np.concatenate(self._rows)
        _, first = np.unique(rows, axis=0, return_index=True)
        first = first[np.isfinite(cost_s[first])]
        best: Int32 = rows[first[cost_s[first].argsort(kind="stable")][:count]]
        return best

    def _has_plan(self) -> bool:
        return any(np.isfinite(cost_s).any() for cost_s in self._cost_s)

    def _note(self, rows: Int32) -> None:
        if rows.shape[0]:
            found = self._judge(rows)
            found.valid[[row.tobytes() in self._invalid for row in rows]] = False
            self._slice.observe(found)
            self._local.observe(found)
            self._rows.append(rows)
            self._cost_s.append(found.valid_s)
