"""slice: the best cut of a topological order into consecutive segments."""

from __future__ import annotations

import time

import numpy as np

from mcmpart.bounds.simple import simple_bound_s
from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph.graph import Bool, Int32, Int64
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search._orders import OrderArrays, keyed_order, order_arrays
from mcmpart.search._segments import cut_points, place, slice_rows
from mcmpart.search.method import Evaluations, Setting, no_rows

USES_PER_CALL = 400_000
"""Tensor uses met between two looks at the clock: some 20 ms."""

CHUNK_S = 0.05
"""A proposal ends after this time even if no order has improved."""

BETTER = 1 - 1e-9
"""A cut must be better by more than the rounding of sums in another order."""

MEMORY_TRIES = 6
"""How often the memory limit is tightened when live tensors overflow it."""


class Slice:
    """Cuts topological orders into one segment per chip by dynamic programming.

    The first order is the graph's own, the second is depth-first, the others are
    random. Each is searched only below the best value so far (or, before there is one,
    below an escalating guess), so that few of the V^2 segments are ever costed. Under
    the triangle rule no tensor may jump over a segment that has traffic in and out.

    Notes
    -----
    The live tensors of a segment are counted along the order at hand, with tensors
    that leave it kept to its end: exact for the graph's own order but for those. Where
    the exact rule then fails, the limit is tightened by the overflow and the order is
    cut again.
    """

    name = "slice"

    def __init__(self, setting: Setting, *, max_orders: int | None = None) -> None:
        self.done = setting.problem.blocks.num_blocks == 0
        self._setting = setting
        self._problem = setting.problem
        self._rng = np.random.default_rng([setting.seed, 1])
        self._best_s = np.inf
        self.num_orders = 0
        self._max_orders = max_orders
        arrays = setting.problem.blocks.arrays
        uses = arrays.read.size + arrays.write.size + arrays.item.size
        per_block = 1 + uses / max(setting.problem.blocks.num_blocks, 1)
        self._segments_per_call = max(int(USES_PER_CALL / per_block), 1)

    def propose(self) -> Int32:
        """Return the best cut of the next order that improves, or none in 50 ms."""
        if self._problem.blocks.num_blocks == 0:
            self.done = True
            return np.zeros((1, self._problem.graph.num_ops), dtype=np.int32) - 1
        until = time.perf_counter() + CHUNK_S
        while not self.done:
            order = order_arrays(self._problem.blocks.arrays, self._next_order())
            chip_of = self.best_cut(order, self._best_s)
            if chip_of is not None:
                return self._problem.blocks.expand(chip_of[None])
            if time.perf_counter() >= until or self._setting.is_late():
                break
        return no_rows(self._problem)

    def cost_s(self, chip_of: Int32) -> float:
        """Return the bottleneck of a partition of the blocks; infinite if not valid."""
        rows = self._problem.blocks.expand(chip_of[None])
        bottleneck_s, valid = evaluate_many(self._problem, rows, workers=1)
        return float(bottleneck_s[0]) if valid[0] else np.inf

    def observe(self, evaluations: Evaluations) -> None:
        """Search only below the best valid value from here on."""
        self._best_s = min(self._best_s, float(evaluations.valid_s.min(initial=np.inf)))

    def _next_order(self) -> Int32:
        arrays = self._problem.blocks.arrays
        number = self.num_orders
        self.num_orders += 1
        if self._max_orders is not None and self.num_orders >= self._max_orders:
            self.done = True
        by_index = np.arange(arrays.first_op.size, dtype=np.float64)
        if number == 0:
            return by_index.astype(np.int32)
        if number == 1:
            return keyed_order(arrays, by_index / by_index.size, True)
        return keyed_order(arrays, self._rng.random(by_index.size), number % 2 == 1)

    def best_cut(self, order: OrderArrays, cutoff_s: float) -> Int32 | None:
        """Return the best cut below ``cutoff_s``, the chip of each block, or None.

        Without a cut-off the cost is not known: guesses are tried, each higher.
        """
        if np.isfinite(cutoff_s):
            return self._cut_below(order, cutoff_s * BETTER)
        guess = max(
            simple_bound_s(self._problem),
            largest_block_s(self._problem),
            np.finfo(np.float64).tiny,
        )
        step = 0.01
        while step < 2**12 and not self._setting.is_late():
            chip_of = self._cut_below(order, guess * (1 + step))
            if chip_of is not None:
                return chip_of
            step *= 2
        return self._cut_below(order, np.inf)

    def _cut_below(self, order: OrderArrays, cutoff_s: float) -> Int32 | None:
        """Return the best cut below ``cutoff_s`` that fits the memory, or None."""
        capacity = self._problem.package_arrays.memory_bytes.copy()
        for count_peak in (True, False):
            hit_memory = np.zeros(1, dtype=np.bool_)
            for attempt in range(MEMORY_TRIES):
                chip_of = self._dynamic_program(
                    order, cutoff_s, capacity, count_peak, hit_memory
                )
                if chip_of is None:
                    break
                overflow = memory_overflow(self._problem, chip_of)
                if not overflow.any():
                    return chip_of
                capacity -= overflow << attempt
            if not hit_memory[0]:
                return None
            capacity = self._problem.package_arrays.memory_bytes.copy()
        return None

    def _dynamic_program(
        self,
        order: OrderArrays,
        cutoff_s: float,
        capacity: Int64,
        count_peak: bool,
        hit_memory: Bool,
    ) -> Int32 | None:
        problem = self._problem
        num_blocks, num_chips = problem.blocks.num_blocks, problem.num_chips
        best = np.full((num_chips + 1, num_blocks + 1), np.inf)
        parent = np.full((num_chips + 1, num_blocks + 1), -1, dtype=np.int32)
        best[0, 0] = 0.0
        start = 0
        while start < num_blocks:
            if self._setting.is_late():
                return None
            start = slice_rows(
                start,
                self._segments_per_call,
                cutoff_s,
                count_peak,
                not (problem.package_arrays.no_skip or problem.user.all_chips),
                problem.blocks.arrays,
                problem.package_arrays,
                capacity,
                order,
                best,
                parent,
                hit_memory,
            )
        ends = best[:, num_blocks]
        used = num_chips if problem.user.all_chips else int(ends.argmin())
        if not np.isfinite(ends[used]):
            return None
        return place(cut_points(used, parent), order)


def largest_block_s(problem: Problem) -> float:
    """Return a stage time that the chip with the slowest block cannot beat."""
    arrays = problem.blocks.arrays
    fixed_bytes = arrays.host_bytes + arrays.output_bytes
    transfer_s = fixed_bytes / problem.package_arrays.io_bytes_per_s.max()
    compute_s = arrays.block_s.min(axis=0)
    if problem.package_arrays.serial_io:
        return float((compute_s + transfer_s).max(initial=0.0))
    return float(np.maximum(compute_s, transfer_s).max(initial=0.0))


def memory_overflow(problem: Problem, chip_of_block: Int32) -> Int64:
    """Return the bytes by which each chip's memory overflows, ``[C] int64``."""
    memory_bytes = problem.package_arrays.memory_bytes
    if not problem.package_arrays.memory:
        return np.zeros_like(memory_bytes)
    chip_of = problem.blocks.expand(chip_of_block)
    loads = evaluate(problem, Partition(problem.graph, chip_of)).chips
    demand = np.array([load.memory_bytes for load in loads], dtype=np.int64)
    overflow: Int64 = np.maximum(demand - memory_bytes, 0)
    return overflow
