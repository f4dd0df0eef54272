"""Compiled topological orders that are good for a reason, to seed a search with."""

from __future__ import annotations

import numpy as np

from mcmpart._jit import jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64
from mcmpart.search._orders import pop, push


@jit
def levels(blocks: BlockArrays) -> Float64:
    """Return how many edges the longest path to each block has, ``[N] float64``.

    Blocks stand in a topological order.
    """
    level = np.zeros(blocks.first_op.size, dtype=np.float64)
    for n in range(level.size):
        for i in range(blocks.pred_ptr[n], blocks.pred_ptr[n + 1]):
            level[n] = max(level[n], level[blocks.pred[i]] + 1.0)
    return level


@jit
def tails_s(blocks: BlockArrays) -> Float64:
    """Return the seconds of the longest path from each block on, ``[N] float64``.

    Each block, that one among them, on its fastest chip.
    """
    tail_s = np.zeros(blocks.first_op.size, dtype=np.float64)
    for n in range(tail_s.size - 1, -1, -1):
        for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
            tail_s[n] = max(tail_s[n], tail_s[blocks.succ[i]])
        tail_s[n] += blocks.block_s[:, n].min()
    return tail_s


@jit
def frugal_order(blocks: BlockArrays) -> Int32:
    """Return the order that takes the ready block that adds the fewest live bytes.

    A block adds the cut tensors that it writes, and frees those that it is the last to
    read. When a tensor has one reader left, that one is entered again with what it
    would now add; the entry it had before is passed over.
    """
    num_blocks, num_tensors = blocks.first_op.size, blocks.tensor_bytes.size
    missing = blocks.pred_ptr[1:] - blocks.pred_ptr[:-1]
    readers_left = blocks.consumer_ptr[1:] - blocks.consumer_ptr[:-1]
    is_taken = np.zeros(num_blocks, dtype=np.bool_)
    entry = np.empty(num_blocks + num_tensors, dtype=np.int32)
    added = np.empty(num_blocks + num_tensors, dtype=np.float64)
    heap = np.empty(num_blocks + num_tensors, dtype=np.int32)
    num_entries = 0
    size = 0
    for n in range(num_blocks):
        if missing[n] == 0:
            entry[num_entries] = n
            added[num_entries] = _added_bytes(n, readers_left, blocks)
            size = push(heap, size, added, num_entries)
            num_entries += 1
    order = np.empty(num_blocks, dtype=np.int32)
    position = 0
    while position < num_blocks:
        n = entry[heap[0]]
        size = pop(heap, size, added)
        if is_taken[n]:
            continue
        is_taken[n] = True
        order[position] = n
        position += 1
        # First what is freed sooner now, then what is ready now: that counts it.
        for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
            t = blocks.read[i]
            readers_left[t] -= 1
            if readers_left[t] == 1:
                reader = _reader_left(t, is_taken, blocks)
                if missing[reader] == 0:
                    entry[num_entries] = reader
                    added[num_entries] = _added_bytes(reader, readers_left, blocks)
                    size = push(heap, size, added, num_entries)
                    num_entries += 1
        for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
            successor = blocks.succ[i]
            missing[successor] -= 1
            if missing[successor] == 0:
                entry[num_entries] = successor
                added[num_entries] = _added_bytes(successor, readers_left, blocks)
                size = push(heap, size, added, num_entries)
                num_entries += 1
    return order


@jit
def _added_bytes(n: int, readers_left: Int64, blocks: BlockArrays) -> float:
    added = 0
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        added += blocks.tensor_bytes[blocks.write[i]]
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        if readers_left[blocks.read[i]] == 1:
            added -= blocks.tensor_bytes[blocks.read[i]]
    return float(added)


@jit
def _reader_left(tensor: int, is_taken: Bool, blocks: BlockArrays) -> int:
    """Return the one reader of the tensor that is not taken yet."""
    for i in range(blocks.consumer_ptr[tensor], blocks.consumer_ptr[tensor + 1]):
        if not is_taken[blocks.consumer[i]]:
            return blocks.consumer[i]
    return -1
