"""Compiled topological orders, and what slicing along one of them needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._jit import jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64


class OrderArrays(NamedTuple):
    """A topological order of the blocks, seen from each position.

    Attributes
    ----------
    block
        ``[N] int32``: block at each position.
    read_ptr, read_producer, read_previous, read_bytes
        Csr rows, position -> cut tensors read there: position of the producer, of the
        previous reader (-1 if none), bytes.
    write_ptr, write_last, write_bytes, write_is_output
        Csr rows, position -> cut tensors written there: position of the last reader,
        bytes, whether a model output.
    end_ptr, end_producer, end_bytes, end_is_output
        Csr rows, position -> cut tensors whose last reader stands there.
    item_ptr, item, item_previous
        Csr rows, position -> shared items needed there, and the previous user.
    cut_bytes
        ``[N + 1] int64``: bytes that cross a cut before each position.
    furthest
        ``[N + 1] int32``: last reader of any tensor written before each position.
    apart_floor
        ``[N] int32``: a segment that holds this position must start at or after it.
    work_left_s
        ``[N + 1] float64``: seconds of all blocks from each position on, each on its
        fastest chip, without shared items.
    """

    block: Int32
    read_ptr: Int64
    read_producer: Int32
    read_previous: Int32
    read_bytes: Int64
    write_ptr: Int64
    write_last: Int32
    write_bytes: Int64
    write_is_output: Bool
    end_ptr: Int64
    end_producer: Int32
    end_bytes: Int64
    end_is_output: Bool
    item_ptr: Int64
    item: Int32
    item_previous: Int32
    cut_bytes: Int64
    furthest: Int32
    apart_floor: Int32
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
            size = _push(heap, size, rank, n)
    order = np.empty(num_blocks, dtype=np.int32)
    for position in range(num_blocks):
        n = heap[0]
        size = _pop(heap, size, rank)
        order[position] = n
        for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
            successor = blocks.succ[i]
            missing[successor] -= 1
            if missing[successor] == 0:
                if depth_first:
                    rank[successor] = keys[successor] - 2.0 * position - 2.0
                size = _push(heap, size, rank, successor)
    return order


@jit
def _push(heap: Int32, size: int, rank: Float64, n: int) -> int:
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
def _pop(heap: Int32, size: int, rank: Float64) -> int:
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
    num_blocks = order.size
    num_tensors = blocks.tensor_bytes.size
    at = np.empty(num_blocks, dtype=np.int32)
    for position in range(num_blocks):
        at[order[position]] = position
    num_reads = blocks.read.size
    num_writes = blocks.write.size
    num_items = blocks.item.size
    read_ptr = np.zeros(num_blocks + 1, dtype=np.int64)
    read_producer = np.empty(num_reads, dtype=np.int32)
    read_previous = np.empty(num_reads, dtype=np.int32)
    read_bytes = np.empty(num_reads, dtype=np.int64)
    item_ptr = np.zeros(num_blocks + 1, dtype=np.int64)
    item = np.empty(num_items, dtype=np.int32)
    item_previous = np.empty(num_items, dtype=np.int32)
    latest = np.full(num_tensors, -1, dtype=np.int32)
    latest_user = np.full(blocks.item_host_bytes.size, -1, dtype=np.int32)
    row = 0
    item_row = 0
    for position in range(num_blocks):
        n = order[position]
        for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
            t = blocks.read[i]
            read_producer[row] = at[blocks.tensor_producer[t]]
            read_previous[row] = latest[t]
            read_bytes[row] = blocks.tensor_bytes[t]
            latest[t] = position
            row += 1
        read_ptr[position + 1] = row
        for i in range(blocks.item_ptr[n], blocks.item_ptr[n + 1]):
            item[item_row] = blocks.item[i]
            item_previous[item_row] = latest_user[blocks.item[i]]
            latest_user[blocks.item[i]] = position
            item_row += 1
        item_ptr[position + 1] = item_row
    write_ptr = np.zeros(num_blocks + 1, dtype=np.int64)
    write_last = np.empty(num_writes, dtype=np.int32)
    write_bytes = np.empty(num_writes, dtype=np.int64)
    write_is_output = np.empty(num_writes, dtype=np.bool_)
    cut_bytes = np.zeros(num_blocks + 1, dtype=np.int64)
    furthest = np.zeros(num_blocks + 1, dtype=np.int32)
    end_ptr = np.zeros(num_blocks + 1, dtype=np.int64)
    row = 0
    for position in range(num_blocks):
        n = order[position]
        furthest[position + 1] = furthest[position]
        for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
            t = blocks.write[i]
            write_last[row] = latest[t]
            write_bytes[row] = blocks.tensor_bytes[t]
            write_is_output[row] = blocks.tensor_is_output[t]
            furthest[position + 1] = max(furthest[position + 1], latest[t])
            cut_bytes[position + 1] += blocks.tensor_bytes[t]
            cut_bytes[latest[t] + 1] -= blocks.tensor_bytes[t]
            end_ptr[latest[t] + 1] += 1
            row += 1
        write_ptr[position + 1] = row
    for position in range(num_blocks):
        cut_bytes[position + 1] += cut_bytes[position]
        end_ptr[position + 1] += end_ptr[position]
    end_producer = np.empty(num_writes, dtype=np.int32)
    end_bytes = np.empty(num_writes, dtype=np.int64)
    end_is_output = np.empty(num_writes, dtype=np.bool_)
    free = end_ptr.copy()
    for t in range(num_tensors):
        i = free[latest[t]]
        free[latest[t]] += 1
        end_producer[i] = at[blocks.tensor_producer[t]]
        end_bytes[i] = blocks.tensor_bytes[t]
        end_is_output[i] = blocks.tensor_is_output[t]
    apart_floor = np.zeros(num_blocks, dtype=np.int32)
    for i in range(blocks.apart.shape[0]):
        low = min(at[blocks.apart[i, 0]], at[blocks.apart[i, 1]])
        high = max(at[blocks.apart[i, 0]], at[blocks.apart[i, 1]])
        apart_floor[high] = max(apart_floor[high], low + 1)
    work_left_s = np.zeros(num_blocks + 1, dtype=np.float64)
    for position in range(num_blocks - 1, -1, -1):
        fastest = blocks.block_s[:, order[position]].min()
        work_left_s[position] = work_left_s[position + 1] + fastest
    return OrderArrays(
        order,
        read_ptr,
        read_producer,
        read_previous,
        read_bytes,
        write_ptr,
        write_last,
        write_bytes,
        write_is_output,
        end_ptr,
        end_producer,
        end_bytes,
        end_is_output,
        item_ptr,
        item,
        item_previous,
        cut_bytes,
        furthest,
        apart_floor,
        work_left_s,
    )
