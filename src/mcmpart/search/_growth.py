"""Compiled costs of the segments of a topological order, from one start to every end.

A segment is a run of consecutive positions. What a position adds to it depends on where
it starts, but changes only where a neighbour or another user of it is left behind: so
it is kept in an array that moves along with the start, and the costs from one start to
all ends are running sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._jit import inner, jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Float64, Int64
from mcmpart.problem import PackageArrays
from mcmpart.search._orders import OrderArrays


class Growth(NamedTuple):
    """What each position adds to a segment that begins at the current start.

    Entry N is a sink for what lies behind the last position.

    Attributes
    ----------
    compute_s
        ``[K, N + 1] float64``: seconds on each class of chip.
    traffic_bytes
        ``[N + 1] int64``: bytes in and out of the chip.
    weight_bytes
        ``[N + 1] int64``.
    live_bytes
        ``[N + 1] int64``: cut tensors written there, less those of the segment that are
        read there last.
    """

    compute_s: Float64
    traffic_bytes: Int64
    weight_bytes: Int64
    live_bytes: Int64


class Ends(NamedTuple):
    """What the segments from one start cost, by their end (exclusive).

    Attributes
    ----------
    stage_s
        ``[K, N + 1] float64``: stage time on each class of chip; infinite where the
        triangle rule forbids the segment.
    traffic_bytes
        ``[N + 1] int64``.
    memory_bytes
        ``[N + 1] int64``: weights, double buffers and live tensors; written under the
        memory rule only.
    """

    stage_s: Float64
    traffic_bytes: Int64
    memory_bytes: Int64


def new_growth(num_classes: int, num_blocks: int) -> Growth:
    """Return an empty record for :func:`begin`."""
    return Growth(
        np.zeros((num_classes, num_blocks + 1)),
        np.zeros(num_blocks + 1, dtype=np.int64),
        np.zeros(num_blocks + 1, dtype=np.int64),
        np.zeros(num_blocks + 1, dtype=np.int64),
    )


def new_ends(num_classes: int, num_blocks: int) -> Ends:
    """Return an empty record for :func:`measure`."""
    return Ends(
        np.empty((num_classes, num_blocks + 1)),
        np.empty(num_blocks + 1, dtype=np.int64),
        np.empty(num_blocks + 1, dtype=np.int64),
    )


@jit
def begin(blocks: BlockArrays, order: OrderArrays, growth: Growth) -> None:
    """Set ``growth``, all zeros, to a segment that begins at position 0."""
    for at in range(order.block.size):
        n = order.block[at]
        growth.compute_s[:, at] += blocks.block_s[:, n]
        growth.traffic_bytes[at] += blocks.host_bytes[n] + blocks.output_bytes[n]
        growth.weight_bytes[at] += blocks.weight_bytes[n]
        for i in range(order.write_ptr[at], order.write_ptr[at + 1]):
            size, last = order.write_bytes[i], order.write_last[i]
            growth.live_bytes[at] += size
            growth.live_bytes[last] -= size
            if not order.write_is_output[i]:
                growth.traffic_bytes[at] += size
                growth.traffic_bytes[last] -= size
        for i in range(order.item_ptr[at], order.item_ptr[at + 1]):
            if order.item_previous[i] < 0:
                _add_item(at, order.item[i], blocks, growth)


@inner
def _add_item(at: int, item: int, blocks: BlockArrays, growth: Growth) -> None:
    for k in range(growth.compute_s.shape[0]):
        growth.compute_s[k, at] += blocks.item_s[k, item]
    growth.traffic_bytes[at] += blocks.item_host_bytes[item]
    growth.weight_bytes[at] += blocks.item_weight_bytes[item]


@inner
def move_on(
    start: int, relay: bool, blocks: BlockArrays, order: OrderArrays, growth: Growth
) -> None:
    """Turn ``growth`` for segments from ``start`` into that from ``start + 1``.

    What ``start`` wrote comes from outside now: it is received at its first reader and
    no longer freed or kept from being sent by its last. What ``start`` read or needed
    is received or needed at the next reader or user. Under ``relay`` every tensor that
    crosses the start is received whoever reads it (:func:`measure`), and outputs that
    cross the end are not sent twice.
    """
    for i in range(order.write_ptr[start], order.write_ptr[start + 1]):
        size, last = order.write_bytes[i], order.write_last[i]
        growth.live_bytes[last] += size
        if relay:
            if order.write_is_output[i]:
                growth.traffic_bytes[last] -= size
        else:
            growth.traffic_bytes[order.write_first[i]] += size
            if not order.write_is_output[i]:
                growth.traffic_bytes[last] += size
    if not relay:
        for i in range(order.read_ptr[start], order.read_ptr[start + 1]):
            growth.traffic_bytes[order.read_next[i]] += order.read_bytes[i]
    for i in range(order.item_ptr[start], order.item_ptr[start + 1]):
        _add_item(order.item_next[i], order.item[i], blocks, growth)


@inner
def measure(
    start: int,
    stop: int,
    count_peak: bool,
    blocks: BlockArrays,
    package: PackageArrays,
    order: OrderArrays,
    growth: Growth,
    ends: Ends,
) -> None:
    """Write the costs of the segments from ``start`` to each end up to ``stop``.

    Parameters
    ----------
    count_peak
        Count the live tensors of this order to the memory.
    """
    # Under relay all that crosses the start is received, and sent on but for its end.
    traffic = 2 * order.cut_bytes[start] if package.relay else np.int64(0)
    for end in range(start + 1, stop + 1):
        traffic += growth.traffic_bytes[end - 1]
        ends.traffic_bytes[end] = traffic
    for k in range(ends.stage_s.shape[0]):
        s_per_byte = 1.0 / package.class_io_bytes_per_s[k]
        compute_s = 0.0
        for end in range(start + 1, stop + 1):
            compute_s += growth.compute_s[k, end - 1]
            transfer_s = ends.traffic_bytes[end] * s_per_byte
            if package.serial_io:
                ends.stage_s[k, end] = compute_s + transfer_s
            else:
                ends.stage_s[k, end] = max(compute_s, transfer_s)
    if package.triangle:
        _forbid_jumps(start, stop, order, ends)
    if package.memory:
        weights = live = peak = np.int64(0)
        for end in range(start + 1, stop + 1):
            at = end - 1
            weights += growth.weight_bytes[at]
            if count_peak:
                peak = max(peak, live + blocks.inner_peak_bytes[order.block[at]])
                live += growth.live_bytes[at]
            ends.memory_bytes[end] = weights + 2 * ends.traffic_bytes[end] + peak


@inner
def _forbid_jumps(start: int, stop: int, order: OrderArrays, ends: Ends) -> None:
    """Forbid the segments that break the triangle rule.

    A longer path beside an arc a -> b goes over a chip between that has arcs in and
    out. So a tensor may jump over a segment that nothing enters or nothing leaves.
    """
    entered = False
    until = -1
    for end in range(start + 1, min(stop, order.furthest[start]) + 1):
        entered |= order.read_from[end - 1] < start
        until = max(until, order.read_until[end - 1])
        if entered and until >= end:
            for k in range(ends.stage_s.shape[0]):
                ends.stage_s[k, end] = np.inf
