"""slice: the best cut of a topological order into consecutive segments."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mcmpart.bounds.simple import simple_bound_s
from mcmpart.evaluate import evaluate
from mcmpart.graph.graph import Bool, Int32, Int64
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search._growth import begin, new_ends, new_growth
from mcmpart.search._orders import OrderArrays, keyed_order, order_arrays
from mcmpart.search._segments import (
    cut_points,
    narrow_starts,
    new_program,
    place,
    plan_ahead,
    slice_rows,
)
from mcmpart.search.method import Evaluations, Setting, no_rows

SEGMENTS_PER_CALL = 5_000_000
"""Segments costed between two looks at the clock: some 20 ms."""

CHUNK_S = 0.05
"""A proposal ends after this time even if no order has improved."""

BETTER = 1 - 1e-9
"""A cut must be better by more than the rounding of sums in another order."""

COARSE_STARTS = 2_000
"""Where there are more positions, the first cut is searched among so many starts."""

MEMORY_TRIES = 6
"""How often the memory limit is tightened when live tensors overflow it."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A cut of an order into segments.

    Attributes
    ----------
    chip_of_block
        ``[N] int32``.
    bottleneck_s
        What it costs by the dynamic program's own sums.
    """

    chip_of_block: Int32
    bottleneck_s: float


class Cutter:
    """Finds the best cut of a topological order of the blocks, one segment per chip.

    Only cuts below a cut-off are searched, so that few of the N^2 segments are ever
    costed. Under the triangle rule no tensor may jump over a segment that has traffic
    in and out. Its methods may run on several threads at once.

    Notes
    -----
    The live tensors of a segment are counted along the order at hand, with tensors
    that leave it kept to its end: exact for the graph's own order but for those. Where
    the exact rule then fails, the limit is tightened by the overflow and the order is
    cut again.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._problem = setting.problem
        self._least_s: float | None = None

    def first(self, order: Int32) -> Cut | None:
        """Return a good cut of the order ``[N] int32``, below a guess that rises.

        The best one, unless the order is long: then segments may start at positions
        where little is cut only, and :meth:`below` may find a better one.
        """
        arrays = order_arrays(self._problem.blocks.arrays, order)
        if order.size > COARSE_STARTS:
            is_start = narrow_starts(arrays.cut_bytes, COARSE_STARTS)
            cut = self._cut_rising(arrays, is_start)
            if cut is not None:
                return cut
        return self._cut_rising(arrays, np.ones(order.size, dtype=np.bool_))

    def _cut_rising(self, order: OrderArrays, is_start: Bool) -> Cut | None:
        if self._least_s is None:
            self._least_s = max(
                simple_bound_s(self._problem),
                largest_block_s(self._problem),
                np.finfo(np.float64).tiny,
            )
        step = 0.01
        while step < 2**12 and not self._setting.is_late():
            cut = self._cut_below(order, self._least_s * (1 + step), is_start)
            if cut is not None:
                return cut
            step *= 2
        return self._cut_below(order, np.inf, is_start)

    def below(self, order: Int32, cutoff_s: float) -> Cut | None:
        """Return the best cut of the order ``[N] int32`` below ``cutoff_s``, or None.

        That there is none is also the answer after the deadline.
        """
        arrays = order_arrays(self._problem.blocks.arrays, order)
        is_start = np.ones(order.size, dtype=np.bool_)
        return self._cut_below(arrays, cutoff_s, is_start)

    def _cut_below(
        self, order: OrderArrays, cutoff_s: float, is_start: Bool
    ) -> Cut | None:
        """Return the best cut below ``cutoff_s`` that fits the memory, or None."""
        capacity = self._problem.package_arrays.memory_bytes.copy()
        for count_peak in (True, False):
            hit_memory = np.zeros(1, dtype=np.bool_)
            for attempt in range(MEMORY_TRIES):
                cut = self._dynamic_program(
                    order, cutoff_s, is_start, capacity, count_peak, hit_memory
                )
                if cut is None:
                    break
                overflow = memory_overflow(self._problem, cut.chip_of_block)
                if not overflow.any():
                    return cut
                capacity -= overflow << attempt
            if not hit_memory[0]:
                return None
            capacity = self._problem.package_arrays.memory_bytes.copy()
        return None

    def _dynamic_program(
        self,
        order: OrderArrays,
        cutoff_s: float,
        is_start: Bool,
        capacity: Int64,
        count_peak: bool,
        hit_memory: Bool,
    ) -> Cut | None:
        problem = self._problem
        blocks, package = problem.blocks.arrays, problem.package_arrays
        num_classes, num_blocks = blocks.block_s.shape
        growth = new_growth(num_classes, num_blocks)
        ends = new_ends(num_classes, num_blocks)
        program = new_program(problem.num_chips, num_blocks, cutoff_s)
        plan_ahead(cutoff_s, blocks, package, capacity, order, program, hit_memory)
        begin(blocks, order, growth)
        start = 0
        while start < num_blocks:
            if self._setting.is_late():
                return None
            start = slice_rows(
                start,
                SEGMENTS_PER_CALL,
                cutoff_s,
                count_peak,
                not (package.no_skip or problem.user.all_chips),
                blocks,
                package,
                capacity,
                order,
                growth,
                ends,
                program,
                is_start,
                hit_memory,
            )
        cost_s = program.best[:, num_blocks]
        used = problem.num_chips if problem.user.all_chips else int(cost_s.argmin())
        if not cost_s[used] < cutoff_s:
            return None
        chip_of_block = place(cut_points(used, program.parent), order)
        return Cut(chip_of_block, float(cost_s[used]))


class Slice:
    """Cuts topological orders into one segment per chip by dynamic programming.

    The first order is the graph's own, the second is depth-first, the others are
    random. Each is searched only below the best value so far or, before there is one,
    below a guess that rises. A long order is cut again if that was for the first plan.
    """

    name = "slice"

    def __init__(self, setting: Setting, *, max_orders: int | None = None) -> None:
        self.done = setting.problem.blocks.num_blocks == 0
        self._setting = setting
        self._problem = setting.problem
        self._cutter = Cutter(setting)
        self._rng = np.random.default_rng([setting.seed, 1])
        self._best_s = np.inf
        self._again: Int32 | None = None
        self.num_orders = 0
        self._max_orders = max_orders

    def propose(self) -> Int32:
        """Return the best cut of the next order that improves, or none in 50 ms."""
        if self._problem.blocks.num_blocks == 0:
            self.done = True
            return np.zeros((1, self._problem.graph.num_ops), dtype=np.int32) - 1
        until = time.perf_counter() + CHUNK_S
        while not self.done:
            cut = self._cut_next()
            if cut is not None:
                return self._problem.blocks.expand(cut.chip_of_block[None])
            if time.perf_counter() >= until or self._setting.is_late():
                break
        return no_rows(self._problem)

    def observe(self, evaluations: Evaluations) -> None:
        """Search only below the best valid value from here on."""
        self._best_s = min(self._best_s, float(evaluations.valid_s.min(initial=np.inf)))

    def _cut_next(self) -> Cut | None:
        order, self._again = self._again, None
        if order is None:
            order = self._next_order()
        if np.isfinite(self._best_s):
            return self._cutter.below(order, self._best_s * BETTER)
        cut = self._cutter.first(order)
        if cut is not None and order.size > COARSE_STARTS:
            self._again = order
        return cut

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
