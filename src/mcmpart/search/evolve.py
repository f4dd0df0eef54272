"""evolve: a genetic algorithm over topological orders, each cut by slicing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mcmpart.graph.graph import Float64, Int32
from mcmpart.problem import Problem
from mcmpart.search._orders import keyed_order, order_arrays
from mcmpart.search.method import Evaluations, Setting, no_rows
from mcmpart.search.slice import Slice

POPULATION = 60
ELITE = 12
MUTANTS = 12
"""Sizes: all, those that live on, and those that are new at random."""

BATCH = 4
"""Orders that are cut with one cut-off, whatever the number of threads."""

LOOSE = 1.5
"""While there are few individuals, one may cost so much more than the best."""

BIAS = 0.7
"""Chance that a child has its elite parent's key."""


@dataclass(slots=True)
class _Individual:
    """Keys ``[N] float64`` of Kahn's heap, its kind, and what its best cut costs."""

    keys: Float64
    depth_first: bool
    cost_s: float = np.inf


class Evolve:
    """Breeds orders: a child has the keys of an elite parent or of another one.

    The first orders are the graph's own, depth-first, breadth-first, the one that keeps
    the least memory live, the one that takes the longest remaining path first, and that
    of the partition to start from; the others are random. Every order is cut by dynamic
    programming, only below the cost of the worst elite: what is cut off there would not
    live on anyway.

    Notes
    -----
    A biased random-key genetic algorithm (Gonçalves and Resende, Journal of Heuristics
    17, 2011). All choices come from the seed, whatever the number of threads.
    """

    name = "evolve"

    def __init__(self, setting: Setting) -> None:
        problem = setting.problem
        self.done = False
        self._setting = setting
        self._rng = np.random.default_rng([setting.seed, 4])
        self._slice = Slice(setting)
        self._best_s = np.inf
        self._waiting = (
            [] if problem.blocks.num_blocks == 0 else self._first_generation()
        )
        self._decoded: list[_Individual] = []

    def propose(self) -> Int32:
        """Return the cuts of the next orders, one batch of threads at a time."""
        problem = self._setting.problem
        if problem.blocks.num_blocks == 0:
            self.done = True
            return np.full((1, problem.graph.num_ops), -1, dtype=np.int32)
        if not self._waiting:
            bred = self._next_generation if self._decoded else self._first_generation
            self._waiting = bred()
        batch = self._waiting[:BATCH]
        del self._waiting[:BATCH]
        cutoff_s = self._cutoff_s()
        with ThreadPoolExecutor(self._setting.workers) as pool:
            rows = list(pool.map(lambda one: self._decode(one, cutoff_s), batch))
        self._decoded += batch
        found = [row for row in rows if row is not None]
        return problem.blocks.expand(np.stack(found)) if found else no_rows(problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Take note of the best valid cost, from whatever method."""
        self._best_s = min(self._best_s, float(evaluations.valid_s.min(initial=np.inf)))
        self._slice.observe(evaluations)

    def _decode(self, one: _Individual, cutoff_s: float) -> Int32 | None:
        """Return the best cut of the individual's order; None if it is cut off."""
        arrays = self._setting.problem.blocks.arrays
        order = order_arrays(arrays, keyed_order(arrays, one.keys, one.depth_first))
        chip_of = self._slice.best_cut(order, cutoff_s)
        if chip_of is not None:
            one.cost_s = self._slice.cost_s(chip_of)
        return chip_of

    def _cutoff_s(self) -> float:
        """Return the cost of the worst elite: a worse individual would not live on."""
        costs = sorted(one.cost_s for one in self._decoded)
        if len(costs) < ELITE or not np.isfinite(costs[ELITE - 1]):
            return LOOSE * min(costs, default=np.inf)
        return costs[ELITE - 1]

    def _first_generation(self) -> list[_Individual]:
        problem = self._setting.problem
        seeds = [
            _Individual(keys, depth_first)
            for keys, depth_first in seed_keys(problem, self._setting.start)
        ]
        return seeds + self._random(POPULATION - len(seeds))

    def _next_generation(self) -> list[_Individual]:
        """Return the children and mutants; the elites stay, decoded."""
        ranked = sorted(self._decoded, key=lambda one: one.cost_s)
        elite, others = ranked[:ELITE], ranked[ELITE:]
        self._decoded = elite
        children = []
        for _ in range(POPULATION - ELITE - MUTANTS):
            first = elite[int(self._rng.integers(len(elite)))]
            second = others[int(self._rng.integers(len(others)))]
            from_first = self._rng.random(first.keys.size) < BIAS
            keys = np.where(from_first, first.keys, second.keys)
            children.append(_Individual(keys, first.depth_first))
        return children + self._random(MUTANTS)

    def _random(self, count: int) -> list[_Individual]:
        size = self._setting.problem.blocks.num_blocks
        return [_Individual(self._rng.random(size), bool(i % 2)) for i in range(count)]


def seed_keys(problem: Problem, start: Int32 | None) -> list[tuple[Float64, bool]]:
    """Return the keys of good first orders, ``[N] float64``, and whether depth-first.

    Parameters
    ----------
    start
        ``[V] int32``: a partition whose slices an order should give again, or None.
    """
    arrays = problem.blocks.arrays
    size = problem.blocks.num_blocks
    own = np.arange(size) / size
    level, path_s = np.zeros(size), np.zeros(size)
    seconds = arrays.block_s.min(axis=0)
    for n in range(size):
        before = arrays.pred[arrays.pred_ptr[n] : arrays.pred_ptr[n + 1]]
        level[n] = level[before].max(initial=-1.0) + 1
    for n in range(size - 1, -1, -1):
        after = arrays.succ[arrays.succ_ptr[n] : arrays.succ_ptr[n + 1]]
        path_s[n] = path_s[after].max(initial=0.0) + seconds[n]
    keys = [
        (own, False),
        (own, True),
        (level + own, False),
        (memory_keys(problem), False),
        (-path_s, False),
    ]
    if start is not None:
        keys.append((problem.blocks.contract(start) + own, False))
    return keys


def memory_keys(problem: Problem) -> Float64:
    """Return keys that take the ready block that leaves the fewest bytes live.

    ``[N] float64``: the position of each block in that order. The bytes of a cut tensor
    are freed by its last reader.
    """
    arrays = problem.blocks.arrays
    size = problem.blocks.num_blocks
    missing = np.diff(arrays.pred_ptr)
    left = np.diff(arrays.consumer_ptr)
    written = np.zeros(size)
    np.add.at(written, arrays.tensor_producer, arrays.tensor_bytes)
    ready = np.flatnonzero(missing == 0).tolist()
    keys = np.zeros(size)
    for position in range(size):
        growth = []
        for n in ready:
            reads = arrays.read[arrays.read_ptr[n] : arrays.read_ptr[n + 1]]
            freed = arrays.tensor_bytes[reads[left[reads] == 1]].sum()
            growth.append(written[n] - freed)
        n = ready.pop(int(np.argmin(growth)))
        keys[n] = position
        left[arrays.read[arrays.read_ptr[n] : arrays.read_ptr[n + 1]]] -= 1
        for m in arrays.succ[arrays.succ_ptr[n] : arrays.succ_ptr[n + 1]].tolist():
            missing[m] -= 1
            if missing[m] == 0:
                ready.append(m)
    return keys / size
