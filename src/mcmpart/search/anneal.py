"""anneal: simulated annealing over valid partitions, each move corrected by FIX."""

from __future__ import annotations

import time

import numpy as np

from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph.graph import Float64, Int32
from mcmpart.partition import Partition
from mcmpart.search.disturb import Disturber
from mcmpart.search.method import Evaluations, Setting, no_rows
from mcmpart.search.random import is_hopeless
from mcmpart.solver.modes import Order, fix_many, sample_rows

STREAM = 3
"""Keeps its random numbers apart from those of other methods with the same seed."""

NUM_DRAWS = 8
"""Draws of which the best is the start."""

HOT = 0.03
COLD = 1e-3
"""Temperatures, relative to the bottleneck at hand: at first a plan that is 3 % worse
is taken once in e times, at the end one that is 0.1 % worse. From 0.1, a transformer of
36 layers came out 5 % slower after 1,000 evaluations; other changes mattered less."""

FIRST_ROUND = 200
"""Partitions judged in the first round, so that a budget of some hundred cools."""

GROWTH = 2
"""Each round is so many times as long as the one before: whatever the budget is, half
of it goes into the longest rounds, which end in the best plans."""

FIX_ORDERS: tuple[Order, ...] = ("random", "topological")
"""FIX decides the blocks in one of these orders, by chance. In a random one a move may
take along what stands on either side of it; in the topological one it pushes on what
stands behind it."""

CALL_S = 0.04
"""A proposal ends after this time even if no move came out of FIX as something new."""

MAX_FRUITLESS = 1000
"""Moves in a row that FIX takes back: then nothing else seems to be valid."""


class Anneal:
    """Anneals from one valid partition to the next.

    A move (:class:`Disturber`) is corrected by FIX, judged, and taken if it is no
    worse, or with probability exp(-rise / temperature), where the rise is relative to
    the bottleneck at hand. The temperature falls geometrically from ``HOT`` to
    ``COLD`` over a round; the next round, twice as long, starts from the best partition
    so far. What an evaluator calls invalid counts as infinitely slow.

    The first partition is the setting's start, corrected where it is not valid, or else
    the best of ``NUM_DRAWS`` draws of SAMPLE. A proposal is one partition, so that each
    one follows from all that were judged before. The partitions depend on the seed and
    on what they cost, not on the workers and the clock.

    References
    ----------
    Xie et al., "A Transferable Approach for Partitioning Machine Learning Models on
    Multi-Chip-Modules", MLSys 2022: annealing through the constraint solver.
    Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983.
    """

    name = "anneal"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._problem = setting.problem
        self._start = setting.start
        self._rng = np.random.default_rng([setting.seed, STREAM])
        self._luck = np.random.default_rng([setting.seed, STREAM, 1]).random
        self._disturber = Disturber(setting.problem, self._rng)
        self._now: Int32 | None = None
        self._now_s = self._best_s = np.inf
        self._best: Int32 | None = None
        self._load_s: Float64 | None = None
        self._num_draws = 0
        self._moving = False
        self._num_fruitless = 0
        self._step = 0
        self._round_steps = FIRST_ROUND

    def propose(self) -> Int32:
        """Return a partition to start from, or the next move that leads to another."""
        # There is one partition then, and no move.
        self.done |= (
            self._problem.num_chips == 1 or self._problem.blocks.num_blocks == 0
        )
        if self._now is None and self._start is not None:
            start, self._start = self._start, None
            return self._fixed(self._problem.blocks.contract(start), "random")
        # Without draws, the state is the start.
        if self._now is None or 0 < self._num_draws < NUM_DRAWS:
            return self._drawn()
        self._moving = True
        until = time.perf_counter() + CALL_S
        while not self.done:
            rows = self._moved(self._now)
            if rows.shape[0]:
                return rows
            if time.perf_counter() >= until or self._setting.is_late():
                break
        return no_rows(self._problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Take each partition of whole blocks, or leave it."""
        blocks, rows = self._problem.blocks, evaluations.chip_of
        chip_of_block = blocks.contract(rows)
        usable = (blocks.expand(chip_of_block) == rows).all(axis=1)
        if not self._moving:
            # A start comes from outside, and an evaluator may have other rules.
            usable &= evaluate_many(self._problem, rows, workers=1)[1]
        cost_s = np.where(usable, evaluations.valid_s, np.inf)
        for row in range(cost_s.size):
            if self._moving:
                self._anneal(chip_of_block[row], float(cost_s[row]))
            elif cost_s[row] < self._now_s:
                self._take(chip_of_block[row], float(cost_s[row]))
        self.done |= self._best_s == 0.0

    def _drawn(self) -> Int32:
        """Return a draw, or no row where the solver gave it up."""
        self._num_draws += 1
        rows = sample_rows(self._problem, None, [self._next_seed()], workers=1)
        self.done |= is_hopeless(rows)
        return rows.chip_of[rows.solved]

    def _moved(self, now: Int32) -> Int32:
        """Return a move that is valid and leads away from ``now``, or no row."""
        moved = self._disturber.disturb(now, self._loads_of(now))
        order = FIX_ORDERS[self._rng.integers(len(FIX_ORDERS))]
        rows = no_rows(self._problem)
        if (moved != now).any():
            rows = self._fixed(moved, order)
        is_new = (rows != self._problem.blocks.expand(now)).any(axis=1)
        self._num_fruitless = 0 if is_new.any() else self._num_fruitless + 1
        self.done = self._num_fruitless == MAX_FRUITLESS
        return rows.compress(is_new, axis=0)

    def _fixed(self, chip_of_block: Int32, order: Order) -> Int32:
        """Return the placement made valid, ``[1, V] int32``, or no row."""
        candidates = self._problem.blocks.expand(chip_of_block[None])
        rows, solved = fix_many(
            self._problem, candidates, [self._next_seed()], order=order, workers=1
        )
        return rows[solved]

    def _next_seed(self) -> int:
        return int(self._rng.integers(2**63))

    def _anneal(self, chip_of_block: Int32, cost_s: float) -> None:
        """Take the partition by Metropolis' rule, and cool down a little."""
        fall = (COLD / HOT) ** (self._step / self._round_steps)
        rise = (cost_s - self._now_s) / self._now_s
        if rise <= 0 or self._luck() < np.exp(-rise / (HOT * fall)):
            self._take(chip_of_block, cost_s)
        self._step += 1
        if self._step == self._round_steps and self._best is not None:
            self._take(self._best, self._best_s)
            self._step = 0
            self._round_steps *= GROWTH

    def _take(self, chip_of_block: Int32, cost_s: float) -> None:
        self._now, self._now_s = chip_of_block, cost_s
        self._load_s = None
        if cost_s < self._best_s:
            self._best, self._best_s = chip_of_block, cost_s

    def _loads_of(self, now: Int32) -> Float64:
        """Return the stage time of each chip, or of its hop if longer, ``[C] float64``.

        By the analytical model, whoever judges: that says where to begin a move, not
        what it is worth.
        """
        if self._load_s is None:
            problem = self._problem
            found = evaluate(
                problem, Partition(problem.graph, problem.blocks.expand(now))
            )
            load_s = np.array([load.stage_s for load in found.chips])
            if problem.package_arrays.link_limit:
                hop_s = [hop.link_s for hop in found.hops]
                load_s[:-1] = np.maximum(load_s[:-1], hop_s)
            self._load_s = load_s
        return self._load_s
