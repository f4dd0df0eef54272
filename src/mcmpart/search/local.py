"""local: annealing by moves of closures between neighbouring chips."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mcmpart._rng import new_state
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.search._moves import anneal_moves
from mcmpart.search._placement import new_placement
from mcmpart.search.method import Evaluations, SearchMethod, Setting
from mcmpart.search.slice import Slice

TARGETS = (0.95, 0.9, 0.98, 0.85)
"""Targets of the energy, as shares of the best value: each chain takes the next."""

HOT = 3e-2
COLD = 1e-5
USES_PER_CALL = 300_000
"""Tensor uses a chain meets between two looks at the clock: some 40 ms."""

CALLS_PER_ROUND = 8
"""Calls over which a chain cools from HOT to COLD before it starts again."""


class Local:
    """Improves a valid partition by annealing, one chain per worker and core.

    The first partition is the one given, if it is valid with each block on one chip,
    else the one that ``slice`` finds along the first orders. A chain cools over a
    round, then starts again from the best partition so far with the next target. It
    finds placements that no cut of an order gives, since branches may stand side by
    side on chips.
    """

    name = "local"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._problem = setting.problem
        self._start = setting.start
        self._seeder: SearchMethod = Slice(setting, max_orders=2)
        self._best_s = np.inf
        self._best: Int32 | None = None
        self._chains: list[_Chain] = []

    def propose(self) -> Int32:
        """Return the start, and afterwards each chain's best of the last moves."""
        if self._best is None:
            return self._propose_start()
        if not self._chains:
            num_chains = min(self._setting.workers, os.cpu_count() or 1)
            self._chains = [_Chain(self._setting, i) for i in range(num_chains)]
        best, best_s = self._best, self._best_s
        chains = self._chains[: self._setting.threads()]
        with ThreadPoolExecutor(len(chains)) as pool:
            rows = list(pool.map(lambda chain: chain.run(best, best_s), chains))
        return np.stack(rows)

    def observe(self, evaluations: Evaluations) -> None:
        """Take the best valid partition of whole blocks as the start from here on."""
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


def _with_whole_blocks(problem: Problem, chip_of: Int32) -> Int32:
    """Return the partition with each block where its costliest op stands."""
    blocks = problem.blocks
    seconds = problem.costs.op_s.min(axis=0)
    by_cost = np.lexsort((-np.arange(seconds.size), seconds))
    by_cost = by_cost[blocks.block_of[by_cost] >= 0]
    chip_of_block = np.zeros(blocks.num_blocks, dtype=np.int32)
    chip_of_block[blocks.block_of[by_cost]] = chip_of[by_cost]
    return blocks.expand(chip_of_block)


class _Chain:
    """One annealing chain: its placement, random state and place in the schedule."""

    def __init__(self, setting: Setting, stream: int) -> None:
        self._problem = setting.problem
        self._state = new_state(setting.seed, stream)
        self._round = stream
        blocks = setting.problem.blocks
        uses = blocks.arrays.read.size + blocks.arrays.write.size
        per_block = 1 + uses / max(blocks.num_blocks, 1)
        self._blocks_per_call = max(int(USES_PER_CALL / per_block), 1_000)
        self._call = 0

    def run(self, best: Int32, best_s: float) -> Int32:
        """Try the next moves and return the best partition met."""
        problem = self._problem
        blocks, package = problem.blocks.arrays, problem.package_arrays
        if self._call == 0:
            self._placement = new_placement(best, blocks, package)
            self._target_s = best_s * TARGETS[self._round % len(TARGETS)]
        fall = (COLD / HOT) ** (1 / CALLS_PER_ROUND)
        hot = HOT * fall**self._call
        found = np.empty_like(best)
        anneal_moves(
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
        self._call = (self._call + 1) % CALLS_PER_ROUND
        self._round += self._call == 0
        return found
