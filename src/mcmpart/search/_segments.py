"""Compiled slicing: the best cut of a topological order, and a greedy one.

Segment k of a cut (:mod:`mcmpart.search._growth`) is what chip k runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._jit import inner, jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64
from mcmpart.problem import PackageArrays
from mcmpart.search._growth import Ends, Growth, begin, measure, move_on
from mcmpart.search._orders import OrderArrays

EMPTY = -2
"""Parent mark of a chip that is left empty."""


class Program(NamedTuple):
    """The dynamic program over segment starts, below a cut-off.

    Attributes
    ----------
    reach
        ``[N] int32``: largest end of a segment from each start that may cost less than
        the cut-off; the start itself if there is none.
    need
        ``[N + 1] int32``: number of chips that the positions from each on take at
        least, C + 1 if more than there are.
    first_end
        ``[C] int32``: smallest end of each chip's segment that the chips behind it can
        still follow.
    best
        ``[C + 1, N + 1] float64``: entry [k, i] is the smallest bottleneck of a cut of
        positions [0, i) into k segments on chips 0..k-1, the cut-off if none is below.
    parent
        ``[C + 1, N + 1] int32``: where the last of those segments starts.
    """

    reach: Int32
    need: Int32
    first_end: Int32
    best: Float64
    parent: Int32


def new_program(num_chips: int, num_blocks: int, cutoff_s: float) -> Program:
    """Return a program that knows the empty cut only; :func:`plan_ahead` comes next."""
    best = np.full((num_chips + 1, num_blocks + 1), cutoff_s)
    best[0, 0] = min(0.0, cutoff_s)
    return Program(
        np.empty(num_blocks, dtype=np.int32),
        np.empty(num_blocks + 1, dtype=np.int32),
        np.empty(num_chips, dtype=np.int32),
        best,
        np.empty((num_chips + 1, num_blocks + 1), dtype=np.int32),
    )


@jit
def plan_ahead(
    cutoff_s: float,
    blocks: BlockArrays,
    package: PackageArrays,
    capacity: Int64,
    order: OrderArrays,
    program: Program,
    hit_memory: Bool,
) -> None:
    """Write how far each segment may reach, and what that leaves to the other chips.

    A window moves over the order: its seconds on the fastest class, with the bytes that
    no cut saves, only rise as it grows. A chip that goes as far as it may leaves the
    fewest behind.

    Parameters
    ----------
    capacity
        ``[C] int64``: memory of each chip.
    hit_memory
        ``[1] bool``, set where weights cut a segment short.
    """
    num_blocks, num_chips = order.block.size, capacity.size
    compute_s = np.zeros(blocks.block_s.shape[0])
    total = np.zeros(2, dtype=np.int64)
    s_per_byte = 1.0 / package.io_bytes_per_s.max()
    roomiest = capacity.max()
    end = 0
    is_over = False
    for start in range(num_blocks):
        while True:
            floor_s = compute_s.min()
            if package.serial_io:
                floor_s += total[0] * s_per_byte
            else:
                floor_s = max(floor_s, total[0] * s_per_byte)
            is_over = floor_s >= cutoff_s
            if not is_over and package.memory and total[1] > roomiest:
                is_over = hit_memory[0] = True
            if is_over or end == num_blocks or order.apart_floor[end] > start:
                break
            pinned, pin = order.next_pin[start], blocks.pin[order.block[end]]
            if pinned < end and pin >= 0 and pin != blocks.pin[order.block[pinned]]:
                break
            end += 1
            _slide(1, end - 1, start, end, blocks, order, compute_s, total)
        program.reach[start] = end - 1 if is_over else end
        _slide(-1, start, start, end, blocks, order, compute_s, total)
        if end == start + 1:
            # Nothing is left, and no rounding of what was.
            compute_s[:] = 0.0
    _count_back(num_blocks, num_chips, program)


@inner
def _slide(
    sign: int,
    at: int,
    start: int,
    end: int,
    blocks: BlockArrays,
    order: OrderArrays,
    compute_s: Float64,
    total: Int64,
) -> None:
    """Add position ``at`` to the window, or take it out, with the items it alone needs.

    The window is ``[start, end)`` with it.
    """
    n = order.block[at]
    for k in range(compute_s.size):
        compute_s[k] += sign * blocks.block_s[k, n]
    total[0] += sign * (blocks.host_bytes[n] + blocks.output_bytes[n])
    total[1] += sign * blocks.weight_bytes[n]
    for i in range(order.item_ptr[at], order.item_ptr[at + 1]):
        if order.item_previous[i] < start and order.item_next[i] >= end:
            j = order.item[i]
            for k in range(compute_s.size):
                compute_s[k] += sign * blocks.item_s[k, j]
            total[0] += sign * blocks.item_host_bytes[j]
            total[1] += sign * blocks.item_weight_bytes[j]


@inner
def _count_back(num_blocks: int, num_chips: int, program: Program) -> None:
    """Write the chips that each start needs, and the ends they leave to a chip."""
    program.need[num_blocks] = 0
    for start in range(num_blocks - 1, -1, -1):
        program.need[start] = num_chips + 1
        if program.reach[start] > start:
            needed = 1 + program.need[program.reach[start]]
            program.need[start] = min(num_chips + 1, needed)
    end = 0
    for chip in range(num_chips):
        while program.need[end] > num_chips - chip - 1:
            end += 1
        program.first_end[chip] = end


@jit
def slice_rows(
    start: int,
    budget: int,
    cutoff_s: float,
    count_peak: bool,
    may_be_empty: bool,
    blocks: BlockArrays,
    package: PackageArrays,
    capacity: Int64,
    order: OrderArrays,
    growth: Growth,
    ends: Ends,
    program: Program,
    is_start: Bool,
    hit_memory: Bool,
) -> int:
    """Extend the dynamic program over segment starts from ``start``.

    Starts are final when they are reached, since every segment moves forward.

    Parameters
    ----------
    budget
        Stop after about this many segments have been costed.
    count_peak
        Charge the live tensors of this order to the memory rule.
    may_be_empty
        A chip may be left empty between used ones.
    capacity
        ``[C] int64``: memory of each chip.
    is_start
        ``[N] bool``: positions where a segment may start.
    hit_memory
        ``[1] bool``, set where a segment did not fit.

    Returns
    -------
    int
        The next start; N when done.
    """
    num_blocks, num_chips = order.block.size, capacity.size
    if program.need[0] > num_chips:
        return num_blocks
    while start < num_blocks and budget > 0:
        low, high = _open_chips(start, cutoff_s, may_be_empty, package, order, program)
        stop = program.reach[start]
        if is_start[start] and low < high and program.first_end[low] <= stop:
            measure(start, stop, count_peak, blocks, package, order, growth, ends)
            budget -= stop - start
            pinned = order.next_pin[start]
            for chip in range(low, high):
                first = max(start + 1, program.first_end[chip])
                last = stop
                if pinned < stop and blocks.pin[order.block[pinned]] != chip:
                    last = pinned
                room = capacity[chip] if package.memory else np.int64(-1)
                _extend(
                    chip,
                    start,
                    first,
                    last,
                    package.chip_class[chip],
                    room,
                    ends,
                    program,
                    hit_memory,
                )
        move_on(start, package.relay, blocks, order, growth)
        start += 1
        budget -= 1
    return start


@inner
def _extend(
    chip: int,
    start: int,
    first: int,
    last: int,
    chip_class: int,
    room: int,
    ends: Ends,
    program: Program,
    hit_memory: Bool,
) -> None:
    """Let ``chip`` run the segments from ``start`` to ``first`` and up to ``last``.

    ``room`` is the chip's memory, negative for no limit.
    """
    before_s = program.best[chip, start]
    for end in range(first, last + 1):
        value = max(before_s, ends.stage_s[chip_class, end])
        if value < program.best[chip + 1, end]:
            if 0 <= room < ends.memory_bytes[end]:
                hit_memory[0] = True
            else:
                program.best[chip + 1, end] = value
                program.parent[chip + 1, end] = start


@inner
def _open_chips(
    start: int,
    cutoff_s: float,
    may_be_empty: bool,
    package: PackageArrays,
    order: OrderArrays,
    program: Program,
) -> tuple[int, int]:
    """Charge the hop into each chip at ``start`` and return the chips worth trying.

    A chip is worth trying while the positions left may fit on it and those behind it.
    """
    num_chips = package.chip_class.size
    best = program.best
    low = num_chips
    high = 0
    for chip in range(num_chips):
        if best[chip, start] >= cutoff_s:
            continue
        if package.link_limit and chip > 0:
            hop_s = order.cut_bytes[start] / package.hop_bytes_per_s[chip - 1]
            best[chip, start] = max(best[chip, start], hop_s)
            if hop_s >= cutoff_s:
                continue
        if may_be_empty and best[chip, start] < best[chip + 1, start]:
            best[chip + 1, start] = best[chip, start]
            program.parent[chip + 1, start] = EMPTY
        if program.need[start] <= num_chips - chip:
            low = min(low, chip)
            high = chip + 1
    return low, high


@jit
def cut_points(num_chips_used: int, parent: Int32) -> Int32:
    """Return the segment starts of the best cut, ``[num_chips_used + 1] int32``.

    Entry k is the first position of chip k; the last entry is N.
    """
    cuts = np.empty(num_chips_used + 1, dtype=np.int32)
    end = parent.shape[1] - 1
    for chip in range(num_chips_used, 0, -1):
        cuts[chip] = end
        if parent[chip, end] != EMPTY:
            end = parent[chip, end]
    cuts[0] = end
    return cuts


@jit
def narrow_starts(cut_bytes: Int64, num_starts: int) -> Bool:
    """Return about ``num_starts`` positions where little is cut, ``[N] bool``.

    Position 0, and in each run of equal length the first that the fewest bytes cross.
    """
    num_blocks = cut_bytes.size - 1
    is_start = np.zeros(num_blocks, dtype=np.bool_)
    length = max(-(-num_blocks // num_starts), 1)
    for begin_at in range(0, num_blocks, length):
        run = cut_bytes[begin_at : min(begin_at + length, num_blocks)]
        is_start[begin_at + run.argmin()] = True
    is_start[0] = True
    return is_start


@jit
def fill_greedily(
    share: float,
    blocks: BlockArrays,
    package: PackageArrays,
    order: OrderArrays,
) -> Int32:
    """Return the cut that fills each chip up to its fair share of the work left.

    Each chip takes blocks up to ``share`` x (work left) / (chips left), and goes on
    to the next cut that is allowed and fits if it stands at none then.

    Returns
    -------
    Int32
        Segment starts as in :func:`cut_points`; empty if it got stuck.
    """
    num_blocks = order.block.size
    num_chips = package.chip_class.size
    cuts = np.zeros(num_chips + 1, dtype=np.int32)
    num_classes = blocks.block_s.shape[0]
    growth = Growth(
        np.zeros((num_classes, num_blocks + 1)),
        np.zeros(num_blocks + 1, dtype=np.int64),
        np.zeros(num_blocks + 1, dtype=np.int64),
        np.zeros(num_blocks + 1, dtype=np.int64),
    )
    ends = Ends(
        np.empty((num_classes, num_blocks + 1)),
        np.empty(num_blocks + 1, dtype=np.int64),
        np.empty(num_blocks + 1, dtype=np.int64),
    )
    begin(blocks, order, growth)
    start = 0
    used = 0
    for chip in range(num_chips):
        if start == num_blocks:
            break
        k = package.chip_class[chip]
        target = share * order.work_left_s[start] / (num_chips - chip)
        measure(start, num_blocks, True, blocks, package, order, growth, ends)
        chosen = -1
        compute_s = 0.0
        for at in range(start, num_blocks):
            compute_s += growth.compute_s[k, at]
            over = compute_s > target * (1 + 1e-9)
            pin = blocks.pin[order.block[at]]
            if (
                order.apart_floor[at] > start
                or (over and chosen >= 0 and chip + 1 < num_chips)
                or (pin >= 0 and pin != chip)
            ):
                break
            end = at + 1
            fits = not package.memory or (
                ends.memory_bytes[end] <= package.memory_bytes[chip]
            )
            if fits and ends.stage_s[k, end] < np.inf:
                chosen = end
        if chosen < 0:
            return cuts[:0]
        for at in range(start, chosen):
            move_on(at, package.relay, blocks, order, growth)
        start = chosen
        used = chip + 1
        cuts[used] = start
    if start < num_blocks:
        return cuts[:0]
    return cuts[: used + 1]


@jit
def place(cuts: Int32, order: OrderArrays) -> Int32:
    """Return the chip of each block, ``[N] int32``, for the segment starts ``cuts``."""
    chip_of = np.empty(order.block.size, dtype=np.int32)
    for chip in range(cuts.size - 1):
        for at in range(cuts[chip], cuts[chip + 1]):
            chip_of[order.block[at]] = chip
    return chip_of
