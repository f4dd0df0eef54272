"""Compiled slicing: the cost of a segment that grows, and the best cut into segments.

A segment is a run of consecutive positions of one topological order; segment k of a
cut is what chip k runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._jit import jit, leaf
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64
from mcmpart.problem import PackageArrays
from mcmpart.search._orders import OrderArrays

HOST_IN, WEIGHTS, OWN_OUT, EDGE_IN, EDGE_OUT, OUTPUT_CROSSING = range(6)
LIVE, PEAK, PIN, NUM_IN, NUM_OUT = range(6, 11)
NUM_TOTALS = 11
NO_PIN = -1
PIN_CLASH = -2
EMPTY = -2
"""Parent mark of a chip that is left empty."""


class Segment(NamedTuple):
    """Running totals of one segment; kernels fill it in.

    Attributes
    ----------
    compute_s
        ``[K] float64``: seconds on each class of chip.
    total
        ``[11] int64``: bytes from the host, weights, model outputs written, tensors
        received, tensors sent that are no outputs, outputs that also cross, live
        bytes, their peak, the pinned chip (``NO_PIN``, ``PIN_CLASH``), and how many
        tensors come from before the segment and go beyond it.
    """

    compute_s: Float64
    total: Int64


@leaf
def clear(segment: Segment) -> None:
    """Empty ``segment``."""
    segment.compute_s[:] = 0.0
    segment.total[:] = 0
    segment.total[PIN] = NO_PIN


@leaf
def grow(
    segment: Segment, start: int, at: int, blocks: BlockArrays, order: OrderArrays
) -> None:
    """Add position ``at`` to the segment that began at ``start``; O(degree)."""
    n = order.block[at]
    total = segment.total
    for k in range(segment.compute_s.size):
        segment.compute_s[k] += blocks.block_s[k, n]
    total[HOST_IN] += blocks.host_bytes[n]
    total[WEIGHTS] += blocks.weight_bytes[n]
    total[OWN_OUT] += blocks.output_bytes[n]
    for i in range(order.item_ptr[at], order.item_ptr[at + 1]):
        if order.item_previous[i] < start:
            j = order.item[i]
            for k in range(segment.compute_s.size):
                segment.compute_s[k] += blocks.item_s[k, j]
            total[HOST_IN] += blocks.item_host_bytes[j]
            total[WEIGHTS] += blocks.item_weight_bytes[j]
    for i in range(order.read_ptr[at], order.read_ptr[at + 1]):
        if order.read_producer[i] < start and order.read_previous[i] < start:
            total[EDGE_IN] += order.read_bytes[i]
            total[NUM_IN] += 1
    total[PEAK] = max(total[PEAK], total[LIVE] + blocks.inner_peak_bytes[n])
    for i in range(order.write_ptr[at], order.write_ptr[at + 1]):
        total[LIVE] += order.write_bytes[i]
        total[NUM_OUT] += 1
        if order.write_is_output[i]:
            total[OUTPUT_CROSSING] += order.write_bytes[i]
        else:
            total[EDGE_OUT] += order.write_bytes[i]
    for i in range(order.end_ptr[at], order.end_ptr[at + 1]):
        if order.end_producer[i] >= start:
            total[LIVE] -= order.end_bytes[i]
            total[NUM_OUT] -= 1
            if order.end_is_output[i]:
                total[OUTPUT_CROSSING] -= order.end_bytes[i]
            else:
                total[EDGE_OUT] -= order.end_bytes[i]
    if blocks.pin[n] >= 0:
        if total[PIN] == NO_PIN:
            total[PIN] = blocks.pin[n]
        elif total[PIN] != blocks.pin[n]:
            total[PIN] = PIN_CLASH


@leaf
def traffic_bytes(
    segment: Segment, start: int, end: int, relay: bool, order: OrderArrays
) -> int:
    """Return bytes in and out of the segment ``[start, end)``.

    Under ``relay`` every tensor that crosses the start is received, and every one that
    crosses the end is sent, once each.
    """
    total = segment.total
    received = total[HOST_IN] + total[EDGE_IN]
    sent = total[OWN_OUT] + total[EDGE_OUT]
    if relay:
        received = total[HOST_IN] + order.cut_bytes[start]
        sent = total[OWN_OUT] + order.cut_bytes[end] - total[OUTPUT_CROSSING]
    return received + sent


@leaf
def stage_seconds(
    segment: Segment, traffic: int, package: PackageArrays, stage_s: Float64
) -> None:
    """Write the stage time of the segment on each class of chip, ``[K] float64``."""
    for k in range(stage_s.size):
        transfer_s = traffic / package.class_io_bytes_per_s[k]
        if package.serial_io:
            stage_s[k] = segment.compute_s[k] + transfer_s
        else:
            stage_s[k] = max(segment.compute_s[k], transfer_s)


@leaf
def floor_seconds(
    segment: Segment, package: PackageArrays, io_bytes_per_s: float
) -> float:
    """Return a stage time that no chip can beat and that only rises as it grows."""
    fixed = segment.total[HOST_IN] + segment.total[OWN_OUT]
    compute_s = segment.compute_s.min()
    transfer_s = fixed / io_bytes_per_s
    if package.serial_io:
        return compute_s + transfer_s
    return max(compute_s, transfer_s)


@leaf
def cut_is_allowed(
    segment: Segment, start: int, end: int, triangle: bool, order: OrderArrays
) -> bool:
    """Return whether the segment ``[start, end)`` keeps the triangle rule, if it is on.

    A longer path beside an arc a -> b goes over a chip between that has arcs in and
    out. So a tensor may jump over a segment that nothing enters or nothing leaves.
    """
    return (
        not triangle
        or order.furthest[start] < end
        or segment.total[NUM_IN] == 0
        or segment.total[NUM_OUT] == 0
    )


@jit
def slice_rows(
    begin: int,
    budget: int,
    cutoff_s: float,
    count_peak: bool,
    may_be_empty: bool,
    blocks: BlockArrays,
    package: PackageArrays,
    capacity: Int64,
    order: OrderArrays,
    best: Float64,
    parent: Int32,
    hit_memory: Bool,
) -> int:
    """Extend the dynamic program over segment starts from ``begin``.

    ``best[k, i]`` is the smallest bottleneck of a cut of positions [0, i) into k
    segments on chips 0..k-1, among cuts below ``cutoff_s``; starts are final when they
    are reached, since every segment moves forward.

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
    best, parent
        ``[C + 1, N + 1]`` float64 and int32, written.
    hit_memory
        ``[1] bool``, set where a segment did not fit.

    Returns
    -------
    int
        The next start; N when done.
    """
    num_blocks = order.block.size
    segment = Segment(
        np.zeros(blocks.block_s.shape[0], dtype=np.float64),
        np.zeros(NUM_TOTALS, dtype=np.int64),
    )
    stage_s = np.empty(blocks.block_s.shape[0], dtype=np.float64)
    io_bytes_per_s = package.io_bytes_per_s.max()
    roomiest = capacity.max()
    start = begin
    while start < num_blocks and budget > 0:
        low, high = _open_chips(
            start, cutoff_s, may_be_empty, package, order, best, parent
        )
        if low < high:
            clear(segment)
            for at in range(start, num_blocks):
                if order.apart_floor[at] > start:
                    break
                grow(segment, start, at, blocks, order)
                budget -= 1
                if (
                    floor_seconds(segment, package, io_bytes_per_s) >= cutoff_s
                    or segment.total[PIN] == PIN_CLASH
                ):
                    break
                if package.memory and segment.total[WEIGHTS] > roomiest:
                    hit_memory[0] = True
                    break
                end = at + 1
                if not cut_is_allowed(segment, start, end, package.triangle, order):
                    continue
                traffic = traffic_bytes(segment, start, end, package.relay, order)
                stage_seconds(segment, traffic, package, stage_s)
                demand = segment.total[WEIGHTS] + 2 * traffic
                if count_peak:
                    demand += segment.total[PEAK]
                pin = segment.total[PIN]
                if pin != NO_PIN:
                    low, high = max(low, pin), min(high, pin + 1)
                for chip in range(low, high):
                    value = max(best[chip, start], stage_s[package.chip_class[chip]])
                    if value >= cutoff_s or value >= best[chip + 1, end]:
                        continue
                    if package.memory and demand > capacity[chip]:
                        hit_memory[0] = True
                        continue
                    best[chip + 1, end] = value
                    parent[chip + 1, end] = start
        start += 1
    return start


@leaf
def _open_chips(
    start: int,
    cutoff_s: float,
    may_be_empty: bool,
    package: PackageArrays,
    order: OrderArrays,
    best: Float64,
    parent: Int32,
) -> tuple[int, int]:
    """Charge the hop into each chip at ``start`` and return the chips worth trying.

    A chip is worth trying while the work that is left can still be shared out below
    the cut-off among it and the chips behind it.
    """
    num_chips = package.chip_class.size
    low = num_chips
    high = 0
    for chip in range(num_chips + 1):
        if best[chip, start] >= cutoff_s:
            continue
        if package.link_limit and 0 < chip < num_chips:
            hop_s = order.cut_bytes[start] / package.hop_bytes_per_s[chip - 1]
            best[chip, start] = max(best[chip, start], hop_s)
        if best[chip, start] >= cutoff_s or chip == num_chips:
            continue
        if may_be_empty and best[chip, start] < best[chip + 1, start]:
            best[chip + 1, start] = best[chip, start]
            parent[chip + 1, start] = EMPTY
        if order.work_left_s[start] < (num_chips - chip) * cutoff_s:
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
    segment = Segment(
        np.zeros(blocks.block_s.shape[0], dtype=np.float64),
        np.zeros(NUM_TOTALS, dtype=np.int64),
    )
    start = np.int64(0)
    used = 0
    for chip in range(num_chips):
        if start == num_blocks:
            break
        target = share * order.work_left_s[start] / (num_chips - chip)
        chosen = -1
        clear(segment)
        for at in range(start, num_blocks):
            if order.apart_floor[at] > start:
                break
            grow(segment, start, at, blocks, order)
            over = segment.compute_s[package.chip_class[chip]] > target * (1 + 1e-9)
            if over and chosen >= 0 and chip + 1 < num_chips:
                break
            pin = segment.total[PIN]
            if pin != NO_PIN and pin != chip:
                break
            end = at + 1
            if not cut_is_allowed(segment, start, end, package.triangle, order):
                continue
            traffic = traffic_bytes(segment, start, end, package.relay, order)
            demand = segment.total[WEIGHTS] + segment.total[PEAK] + 2 * traffic
            if not package.memory or demand <= package.memory_bytes[chip]:
                chosen = end
        if chosen < 0:
            return cuts[:0]
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
