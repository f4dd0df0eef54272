"""evolve: a genetic algorithm over topological orders, each cut into segments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mcmpart.graph.graph import Float64, Int32
from mcmpart.search._orders import keyed_order
from mcmpart.search._seeds import frugal_order, levels, tails_s
from mcmpart.search.method import Evaluations, Setting, no_rows
from mcmpart.search.slice import BETTER, CHUNK_S, Cut, Cutter

POPULATION = 100
ELITE = 20
"""Orders that go into the next generation as they are."""

MUTANTS = 15
"""Random orders in each generation."""

ELITE_BIAS = 0.8
"""Probability that a key comes from the elite parent."""

PATIENCE = 15
"""Generations without a better order after which all orders are drawn anew."""

FIRST_SLACK = 1.25
"""In the first generation an order is cut below this multiple of the best."""

BLOCKS_PER_TASK = 16_384
"""Blocks of the orders that a thread cuts between two looks at the clock."""

STREAM = 3
"""Sets the random numbers apart from those of other methods of one seed."""


class Evolve:
    """Breeds topological orders by random keys, and cuts each as ``slice`` does.

    An individual has a key for each block and one more. Its order takes the ready
    block with the smallest key; depth first if the last key is below a half. Its cost
    is the bottleneck of the order's best cut. Elites survive; the others make way for
    mutants, and for children of an elite and another parent, that take each key from
    the elite parent with probability ``ELITE_BIAS``.

    An order is cut below the cost of the worst elite only, which is quick: what
    has no cut there cannot become an elite, so its cost does not matter.

    The first generation has the graph's own order, the depth-first one, that by
    levels, the one that adds the fewest live bytes at each step, the one that takes
    the block with the longest way to the end first, the start sorted by chip, and
    random ones.

    References
    ----------
    Gonçalves, Resende, "Biased random-key genetic algorithms for combinatorial
    optimization", Journal of Heuristics 17, 2011.
    Archer et al., "Practical Performance Guarantees for Pipelined DNN Inference", ICML
    2024: such an algorithm over topological orders that a dynamic program cuts.
    """

    name = "evolve"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._problem = setting.problem
        self._cutter = Cutter(setting)
        self._rng = np.random.default_rng([setting.seed, STREAM])
        self._best_s = np.inf
        self._cutoff_s = np.inf
        self._keys = np.empty((0, 0))
        self._cost_s = np.empty(0)
        self._next = 0
        self._least_s = np.inf
        self._num_fruitless = 0

    def propose(self) -> Int32:
        """Return the cuts that beat all before them, or none in 50 ms."""
        problem = self._problem
        if problem.blocks.num_blocks == 0:
            self.done = True
            return np.full((1, problem.graph.num_ops), -1, dtype=np.int32)
        until = time.perf_counter() + CHUNK_S
        while not self.done:
            better = self._advance()
            self.done = self._best_s == 0.0 or problem.num_chips == 1
            if better:
                return problem.blocks.expand(np.stack(better))
            if time.perf_counter() >= until or self._setting.is_late():
                break
        return no_rows(problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Ignore what it cost: the fitness of an order is that of its own cut."""

    def _advance(self) -> list[Int32]:
        """Cut the next orders; return the cuts that beat all before them."""
        if self._next == self._cost_s.size:
            self._breed()
        return list(self._improvements(self._cut_some()))

    def _cut_some(self) -> list[Cut | None]:
        """Cut the next orders on all threads, in the order of the population."""
        workers = self._setting.workers
        # Without a cut-off the first one is needed alone.
        per_task = max(BLOCKS_PER_TASK // self._problem.blocks.num_blocks, 1)
        count = per_task * workers if self._best_s < np.inf else 1
        rows = range(self._next, min(self._next + count, self._cost_s.size))
        if workers == 1 or len(rows) == 1:
            return [self._cut(row) for row in rows]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(self._cut, rows))

    def _cut(self, row: int) -> Cut | None:
        keys = self._keys[row]
        arrays = self._problem.blocks.arrays
        order = keyed_order(arrays, keys[:-1], bool(keys[-1] < 0.5))
        if self._cutoff_s == np.inf:
            return self._cutter.first(order)
        return self._cutter.below(order, self._cutoff_s)

    def _improvements(self, cuts: list[Cut | None]) -> Iterator[Int32]:
        """Note the costs of the next orders, and give the cuts that beat all before."""
        for cut in cuts:
            if cut is not None:
                self._cost_s[self._next] = cut.bottleneck_s
                if cut.bottleneck_s < self._best_s * BETTER:
                    self._best_s = cut.bottleneck_s
                    yield cut.chip_of_block
            self._next += 1
        if self._cutoff_s == np.inf:
            self._cutoff_s = self._best_s * FIRST_SLACK

    def _breed(self) -> None:
        """Make the next generation; its elites have their costs already."""
        if self._cost_s.size == 0:
            self._start_with(self._first_keys())
            return
        ranking = np.argsort(self._cost_s, kind="stable")
        least_s = self._cost_s[ranking[0]]
        self._num_fruitless += 1
        if least_s < self._least_s * BETTER:
            self._least_s, self._num_fruitless = least_s, 0
        if self._num_fruitless == PATIENCE:
            self._start_with(self._rng.random(self._keys.shape))
            return
        keys = self._rng.random(self._keys.shape)
        keys[:ELITE] = self._keys[ranking[:ELITE]]
        num_children = POPULATION - ELITE - MUTANTS
        elite = ranking[self._rng.integers(ELITE, size=num_children)]
        other = ranking[self._rng.integers(ELITE, POPULATION, size=num_children)]
        keys[-num_children:] = np.where(
            self._rng.random((num_children, keys.shape[1])) < ELITE_BIAS,
            self._keys[elite],
            self._keys[other],
        )
        self._keys = keys
        self._cost_s = np.where(
            np.arange(POPULATION) < ELITE, self._cost_s[ranking], np.inf
        )
        self._next = ELITE
        self._cutoff_s = min(self._cost_s[ELITE - 1], self._best_s * FIRST_SLACK)

    def _start_with(self, keys: Float64) -> None:
        self._keys = keys
        self._cost_s = np.full(POPULATION, np.inf)
        self._next = 0
        self._cutoff_s = self._best_s * FIRST_SLACK
        self._least_s, self._num_fruitless = np.inf, 0

    def _first_keys(self) -> Float64:
        """Return the orders that are good for a reason, then random ones."""
        problem = self._problem
        arrays, num_blocks = problem.blocks.arrays, problem.blocks.num_blocks
        own = np.arange(num_blocks, dtype=np.int32)
        orders: list[Int32] = [
            own,
            keyed_order(arrays, own / num_blocks, True),
            keyed_order(arrays, levels(arrays) + own / num_blocks, False),
            frugal_order(arrays),
            keyed_order(arrays, -tails_s(arrays), False),
        ]
        if self._setting.start is not None:
            chip_of_block = problem.blocks.contract(self._setting.start)
            keys = chip_of_block + own / num_blocks
            orders.insert(0, keyed_order(arrays, keys, False))
        keys = self._rng.random((POPULATION, num_blocks + 1))
        for row, order in enumerate(orders):
            keys[row, order] = own / num_blocks
            keys[row, -1] = 1.0
        return keys
