"""Compiled topological orders, and what slicing along one of them needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._jit import jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64


class OrderArrays(NamedTuple):
    """A topological order of the blocks, seen from each position.

    A position of N stands for none to come, one of -1 for none before.

    Attributes
    ----------
    block
        ``[N] int32``: block at each position.
    read_ptr, read_next, read_bytes
        Csr rows, position -> cut tensors read there: position of the next reader,
        bytes.
    write_ptr, write_first, write_last, write_bytes, write_is_output
        Csr rows, position -> cut tensors written there: position of the first and of
        the last reader, bytes, whether a model output.
    item_ptr, item, item_previous, item_next
        Csr rows, position -> shared items needed there, the previous and the next user.
    read_from
        ``[N] int32``: earliest producer of the tensors read at each position.
    read_until
        ``[N] int32``: last reader of the tensors written at each position.
    furthest
        ``[N + 1] int32``: last reader of any tensor written before each position.
    cut_bytes
        ``[N + 1] int64``: bytes that cross a cut before each position.
    apart_floor
        ``[N] int32``: a segment that holds this position must start at or after it.
    next_pin
        ``[N + 1] int32``: first position from each on whose block is pinned.
    work_left_s
        ``[N + 1] float64``: seconds of all blocks from each position on, each on its
        fastest chip, without shared items.
    """

    block: Int32
    read_ptr: Int64
    read_next: Int32
    read_bytes: Int64
    write_ptr: Int64
    write_first: Int32
    write_last: Int32
    write_bytes: Int64
    write_is_output: Bool
    item_ptr: Int64
    item: Int32
    item_previous: Int32
    item_next: Int32
    read_from: Int32
    read_until: Int32
    furthest: Int32
    cut_bytes: Int64
    apart_floor: Int32
    next_pin: Int32
    work_left_s: Float64


@jit
def keyed_order(blocks: BlockArrays, keys: Float64, depth_first: bool) -> Int32:
    """Return the topological order that takes the ready block with the smallest key.

    Parameters
    ----------
    keys
        ``[N] float64``.
    depth_first
        Prefer what has become ready last; keys decide among those.
    """
    num_blocks = keys.size
    missing = np.empty(num_blocks, dtype=np.int32)
    rank = np.empty(num_blocks, dtype=np.float64)
    heap = np.empty(num_blocks, dtype=np.int32)
    size = 0
    for n in range(num_blocks):
        missing[n] = blocks.pred_ptr[n + 1] - blocks.pred_ptr[n]
        rank[n] = keys[n]
        if missing[n] == 0:
            size = push(heap, size, rank, n)
    order = np.empty(num_blocks, dtype=np.int32)
    for position in range(num_blocks):
        n = heap[0]
        size = pop(heap, size, rank)
        order[position] = n
        for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
            successor = blocks.succ[i]
            missing[successor] -= 1
            if missing[successor] == 0:
                if depth_first:
                    rank[successor] = keys[successor] - 2.0 * position - 2.0
                size = push(heap, size, rank, successor)
    return order


@jit
def push(heap: Int32, size: int, rank: Float64, n: int) -> int:
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if rank[heap[parent]] <= rank[n]:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = n
    return size + 1


@jit
def pop(heap: Int32, size: int, rank: Float64) -> int:
    size -= 1
    n = heap[size]
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and rank[heap[child + 1]] < rank[heap[child]]:
            child += 1
        if rank[n] <= rank[heap[child]]:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = n
    return size


@jit
def order_arrays(blocks: BlockArrays, order: Int32) -> OrderArrays:
    """Return ``order`` ``[N] int32`` with all that slicing along it needs."""
    at = np.empty(order.size, dtype=np.int32)
    for position in range(order.size):
        at[order[position]] = position
    read_ptr, read_next, read_bytes, read_from, first, last = _reads(blocks, order, at)
    item_ptr, item, item_previous, item_next = _items(blocks, order)
    write_ptr, write_first, write_last, write_bytes, is_output = _writes(
        blocks, order, first, last
    )
    read_until, furthest, cut_bytes = _cuts(write_ptr, write_last, write_bytes)
    return OrderArrays(
        order,
        read_ptr,
        read_next,
        read_bytes,
        write_ptr,
        write_first,
        write_last,
        write_bytes,
        is_output,
        item_ptr,
        item,
        item_previous,
        item_next,
        read_from,
        read_until,
        furthest,
        cut_bytes,
        _apart_floor(blocks, at),
        _next_pin(blocks, order),
        _work_left(blocks, order),
    )


@jit
def _reads(
    blocks: BlockArrays, order: Int32, at: Int32
) -> tuple[Int64, Int32, Int64, Int32, Int32, Int32]:
    """Return the rows of reads with the next reader of each tensor.

    Then the earliest producer read at each position, and the first and the last reader
    of each tensor.
    """
    num_blocks = order.size
    read_ptr = np.zeros(num_blocks + 1, dtype=np.int64)
    read_next = np.full(blocks.read.size, num_blocks, dtype=np.int32)
    read_bytes = np.empty(blocks.read.size, dtype=np.int64)
    read_from = np.full(num_blocks, num_blocks, dtype=np.int32)
    first = np.full(blocks.tensor_bytes.size, num_blocks, dtype=np.int32)
    last = np.full(blocks.tensor_bytes.size, -1, dtype=np.int32)
    latest_row = np.full(blocks.tensor_bytes.size, -1, dtype=np.int64)
    row = 0
    for position in range(num_blocks):
        n = order[position]
        for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
            t = blocks.read[i]
            producer = at[blocks.tensor_producer[t]]
            read_from[position] = min(read_from[position], producer)
            read_bytes[row] = blocks.tensor_bytes[t]
            if last[t] < 0:
                first[t] = position
            else:
                read_next[latest_row[t]] = position
            last[t] = position
            latest_row[t] = row
            row += 1
        read_ptr[position + 1] = row
    return read_ptr, read_next, read_bytes, read_from, first, last


@jit
def _items(blocks: BlockArrays, order: Int32) -> tuple[Int64, Int32, Int32, Int32]:
    """Return the rows of shared items with the previous and the next user of each."""
    item_ptr = np.zeros(order.size + 1, dtype=np.int64)
    item = np.empty(blocks.item.size, dtype=np.int32)
    previous = np.empty(blocks.item.size, dtype=np.int32)
    following = np.full(blocks.item.size, order.size, dtype=np.int32)
    latest = np.full(blocks.item_host_bytes.size, -1, dtype=np.int32)
    latest_row = np.empty(blocks.item_host_bytes.size, dtype=np.int64)
    row = 0
    for position in range(order.size):
        n = order[position]
        for i in range(blocks.item_ptr[n], blocks.item_ptr[n + 1]):
            j = blocks.item[i]
            item[row] = j
            previous[row] = latest[j]
            if latest[j] >= 0:
                following[latest_row[j]] = position
            latest[j] = position
            latest_row[j] = row
            row += 1
        item_ptr[position + 1] = row
    return item_ptr, item, previous, following


@jit
def _writes(
    blocks: BlockArrays, order: Int32, first: Int32, last: Int32
) -> tuple[Int64, Int32, Int32, Int64, Bool]:
    """Return the rows of writes with the first and the last reader of each tensor."""
    write_ptr = np.zeros(order.size + 1, dtype=np.int64)
    write_first = np.empty(blocks.write.size, dtype=np.int32)
    write_last = np.empty(blocks.write.size, dtype=np.int32)
    write_bytes = np.empty(blocks.write.size, dtype=np.int64)
    is_output = np.empty(blocks.write.size, dtype=np.bool_)
    row = 0
    for position in range(order.size):
        n = order[position]
        for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
            t = blocks.write[i]
            write_first[row] = first[t]
            write_last[row] = last[t]
            write_bytes[row] = blocks.tensor_bytes[t]
            is_output[row] = blocks.tensor_is_output[t]
            row += 1
        write_ptr[position + 1] = row
    return write_ptr, write_first, write_last, write_bytes, is_output


@jit
def _cuts(
    write_ptr: Int64, write_last: Int32, write_bytes: Int64
) -> tuple[Int32, Int32, Int64]:
    """Return the last readers of what is written at and before each position.

    Then the bytes that cross a cut before it.
    """
    until = np.full(write_ptr.size - 1, -1, dtype=np.int32)
    furthest = np.zeros(write_ptr.size, dtype=np.int32)
    cut_bytes = np.zeros(write_ptr.size, dtype=np.int64)
    for position in range(until.size):
        for i in range(write_ptr[position], write_ptr[position + 1]):
            until[position] = max(until[position], write_last[i])
            cut_bytes[position + 1] += write_bytes[i]
            cut_bytes[write_last[i] + 1] -= write_bytes[i]
        furthest[position + 1] = max(furthest[position], until[position])
    for position in range(until.size):
        cut_bytes[position + 1] += cut_bytes[position]
    return until, furthest, cut_bytes


@jit
def _apart_floor(blocks: BlockArrays, at: Int32) -> Int32:
    """Return where a segment with each position may start at the earliest."""
    floor = np.zeros(at.size, dtype=np.int32)
    for i in range(blocks.apart.shape[0]):
        a, b = at[blocks.apart[i, 0]], at[blocks.apart[i, 1]]
        floor[max(a, b)] = max(floor[max(a, b)], min(a, b) + 1)
    return floor


@jit
def _next_pin(blocks: BlockArrays, order: Int32) -> Int32:
    """Return the first position from each on whose block is pinned."""
    following = np.full(order.size + 1, order.size, dtype=np.int32)
    for position in range(order.size - 1, -1, -1):
        pinned = blocks.pin[order[position]] >= 0
        following[position] = position if pinned else following[position + 1]
    return following


@jit
def _work_left(blocks: BlockArrays, order: Int32) -> Float64:
    """Return the seconds of all blocks from each position on."""
    left_s = np.zeros(order.size + 1, dtype=np.float64)
    for position in range(order.size - 1, -1, -1):
        fastest_s = blocks.block_s[:, order[position]].min()
        left_s[position] = left_s[position + 1] + fastest_s
    return left_s
