"""local: annealing by moves of closures between neighbouring chips."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mcmpart._rng import new_state
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.search._halving import Candidate, Halving
from mcmpart.search._moves import anneal_moves
from mcmpart.search._orders import keyed_order
from mcmpart.search._placement import new_placement
from mcmpart.search.method import Evaluations, SearchMethod, Setting
from mcmpart.search.slice import COARSE_STARTS, Cutter, Slice

TARGET = 0.95
"""Target of the energy, as a share of the best value when a run begins."""

HOTTEST = (1e-3, 1e-2, 3e-3)
COLD = 1e-5
"""A run cools from one of HOTTEST, in turn, to COLD."""

USES_PER_CALL = 300_000
"""Tensor uses a run meets between two looks at the clock: some 40 ms."""

LOOKS_PER_BLOCK = 100
MOST_CALLS = 8
"""How often a run on rung 0 looks at each block, and its most calls."""

ENTRANTS = 64
"""Runs on rung 0 after which a tournament begins anew."""


class Local:
    """Improves valid partitions by annealing, in a tournament of runs.

    The first partition is the one given, if it is valid with each block on one chip,
    else the one that ``slice`` finds along the first orders. A first run begins there,
    the others at cuts of random orders; the better half of them goes on
    (:class:`~mcmpart.search._halving.Halving`). So the region of the start does not
    decide, and placements are found that no cut of an order gives, since branches may
    stand side by side on chips.
    """

    name = "local"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._problem = setting.problem
        self._start = setting.start
        self._seeder: SearchMethod = Slice(setting)
        self._best_s = np.inf
        self._best: Int32 | None = None
        self._cutter = Cutter(setting)
        self._halving = Halving()
        self._num_runs = 0
        num_slots = min(setting.workers, os.cpu_count() or 1)
        self._slots: list[_Run | None] = [None] * num_slots

    def propose(self) -> Int32:
        """Return the start, and afterwards the best of each run's last moves."""
        if self._best is None:
            return self._propose_start()
        slots = range(min(len(self._slots), self._setting.threads()))
        runs = [self._slots[i] or self._next_run(self._best) for i in slots]
        with ThreadPoolExecutor(len(runs)) as pool:
            rows = list(pool.map(_Run.advance, runs))
        for i, run in enumerate(runs):
            if run.done:
                self._halving.add(run.rung, run.best)
            self._slots[i] = None if run.done else run
        return np.stack(rows)

    def observe(self, evaluations: Evaluations) -> None:
        """Take the best valid partition of whole blocks for new runs and targets."""
        blocks = self._problem.blocks
        rows = evaluations.chip_of
        if rows.shape[0] == 0:
            return
        whole = (blocks.expand(blocks.contract(rows)) == rows).all(axis=1)
        cost = np.where(whole, evaluations.valid_s, np.inf)
        row = int(cost.argmin())
        if cost[row] < self._best_s:
            self._best_s = float(cost[row])
            self._best = rows[row]
        self.done = self._best_s == 0.0 or self._problem.num_chips == 1

    def _propose_start(self) -> Int32:
        start, self._start = self._start, None
        if start is not None:
            return _with_whole_blocks(self._problem, start)[None]
        rows = self._seeder.propose()
        self.done = rows.shape[0] == 0 and self._seeder.done
        return rows

    def _next_run(self, best: Int32) -> _Run:
        """Return a longer run for who deserves it, or a new one."""
        number = self._num_runs
        self._num_runs += 1
        rung, start = 0, None
        promoted = self._halving.promote()
        if promoted is not None:
            rung, start = promoted[0], promoted[1].chip_of
        elif number == 0 or self._halving.num_entrants >= ENTRANTS:
            self._halving, start = Halving(), best
        elif self._problem.blocks.num_blocks > COARSE_STARTS:
            # To cut an order takes too long here.
            start = best
        target_s = TARGET * self._best_s
        return _Run(self._setting, self._cutter, number, rung, start, best, target_s)


def _with_whole_blocks(problem: Problem, chip_of: Int32) -> Int32:
    """Return the partition with each block where its costliest op stands."""
    blocks = problem.blocks
    seconds = problem.costs.op_s.min(axis=0)
    by_cost = np.lexsort((-np.arange(seconds.size), seconds))
    by_cost = by_cost[blocks.block_of[by_cost] >= 0]
    chip_of_block = np.zeros(blocks.num_blocks, dtype=np.int32)
    chip_of_block[blocks.block_of[by_cost]] = chip_of[by_cost]
    return blocks.expand(chip_of_block)


class _Run:
    """One run of annealing: its placement, random state and place in the schedule.

    Attributes
    ----------
    rung
        It is 2^rung times as long as a run on rung 0.
    best
        The best placement met.
    done
        Whether it has cooled down.
    """

    def __init__(
        self,
        setting: Setting,
        cutter: Cutter,
        number: int,
        rung: int,
        start: Int32 | None,
        best: Int32,
        target_s: float,
    ) -> None:
        self.rung = rung
        self.best = Candidate(np.inf, best)
        self.done = False
        self._problem = setting.problem
        self._seed = (setting.seed, number)
        self._cutter = cutter
        self._start = start
        self._target_s = target_s
        self._hottest = HOTTEST[number % len(HOTTEST)]
        self._state = new_state(setting.seed, number)
        num_blocks = self._problem.blocks.num_blocks
        arrays = self._problem.blocks.arrays
        uses = arrays.read.size + arrays.write.size
        per_block = 1 + uses / max(num_blocks, 1)
        self._blocks_per_call = max(int(USES_PER_CALL / per_block), 1_000)
        calls = LOOKS_PER_BLOCK * num_blocks / self._blocks_per_call
        self._num_calls = min(max(round(calls), 1), MOST_CALLS) << rung
        self._call = 0

    def advance(self) -> Int32:
        """Try the next moves and return the best partition met in them."""
        problem = self._problem
        blocks, package = problem.blocks.arrays, problem.package_arrays
        if self._call == 0:
            start = self._start if self._start is not None else self._cut()
            self._placement = new_placement(start, blocks, package)
        fall = (COLD / self._hottest) ** (1 / self._num_calls)
        hot = self._hottest * fall**self._call
        found = np.empty_like(self.best.chip_of)
        bottleneck_s, _ = anneal_moves(
            self._placement,
            self._blocks_per_call,
            self._target_s,
            hot,
            hot * fall,
            problem.user.all_chips,
            self._state,
            blocks,
            problem.live,
            package,
            found,
        )
        if bottleneck_s < self.best.cost_s:
            self.best = Candidate(bottleneck_s, found)
        self._call += 1
        self.done = self._call == self._num_calls
        return found

    def _cut(self) -> Int32:
        """Return the best cut of a random order, or the best partition if it has none.

        Every second order is depth-first.
        """
        problem = self._problem
        keys = np.random.default_rng(self._seed).random(problem.blocks.num_blocks)
        order = keyed_order(problem.blocks.arrays, keys, self._seed[1] % 2 == 1)
        cut = self._cutter.first(order)
        if cut is not None:
            chip_of: Int32 = problem.blocks.expand(cut.chip_of_block)
            if evaluate_many(problem, chip_of[None])[1][0]:
                return chip_of
        return self.best.chip_of
