"""How far the ends of each edge can stand apart, from counts of ancestors."""

from __future__ import annotations

import numpy as np

from mcmpart._bits import NO_CHIPS, bit, num_chips_in
from mcmpart._jit import jit
from mcmpart.graph.graph import Int32, Int64
from mcmpart.solver._arrays import UInt64

WORD = 64


@jit
def edge_spans(
    succ_ptr: Int64, succ: Int32, bypass: bool
) -> tuple[Int64, Int64, Int64]:
    """Count what limits the distances of chips where no chip may be skipped.

    Returns
    -------
    spans
        ``[E] int64``: the largest f(v) - f(u) of each edge u -> v.
    before, after
        ``[N] int64``: ancestors and descendants of each block.

    Notes
    -----
    All chips below a used one are used. A block strictly between f(u) and f(v) is
    neither u nor an ancestor of it, neither v nor a descendant of it, and, under the
    triangle rule (``bypass``), not on a path u ~> v, where an arc f(u) -> f(v) leaves
    only the two ends. So f(v) - f(u) is at most one more than the number of the others.

    Ancestors are counted 64 blocks at a time, one bit each: O(N E / 64) time and O(N)
    memory, where the transitive closure would take N^2 bits.
    """
    num_blocks = succ_ptr.size - 1
    before = np.zeros(num_blocks, dtype=np.int64)
    after = np.zeros(num_blocks, dtype=np.int64)
    between = np.zeros(succ.size, dtype=np.int64)
    is_below = np.zeros(num_blocks, dtype=np.uint64)
    is_above = np.zeros(num_blocks, dtype=np.uint64)
    for first in range(0, num_blocks, WORD):
        past = min(first + WORD, num_blocks)
        _mark_descendants(first, past, succ_ptr, succ, is_below)
        _mark_ancestors(first, past, succ_ptr, succ, is_above)
        for n in range(first, num_blocks):
            before[n] += num_chips_in(is_below[n])
        for n in range(past):
            after[n] += num_chips_in(is_above[n])
        if bypass:
            for u in range(past):
                for i in range(succ_ptr[u], succ_ptr[u + 1]):
                    if succ[i] >= first:
                        between[i] += num_chips_in(is_above[u] & is_below[succ[i]])
    spans = np.empty(succ.size, dtype=np.int64)
    for u in range(num_blocks):
        for i in range(succ_ptr[u], succ_ptr[u + 1]):
            outside = before[u] + 1 + after[succ[i]] + 1
            spans[i] = 1 + num_blocks - outside - between[i]
    return spans, before, after


@jit
def _mark_descendants(
    first: int, past: int, succ_ptr: Int64, succ: Int32, is_below: UInt64
) -> None:
    """Set bit k of ``is_below[n]`` iff block ``first + k`` is an ancestor of n."""
    num_blocks = succ_ptr.size - 1
    for n in range(first, num_blocks):
        is_below[n] = NO_CHIPS
    for n in range(first, num_blocks):
        mask = is_below[n]
        if n < past:
            mask |= bit(n - first)
        if mask:
            for i in range(succ_ptr[n], succ_ptr[n + 1]):
                is_below[succ[i]] |= mask


@jit
def _mark_ancestors(
    first: int, past: int, succ_ptr: Int64, succ: Int32, is_above: UInt64
) -> None:
    """Set bit k of ``is_above[n]`` iff block ``first + k`` is a descendant of n."""
    for n in range(past - 1, -1, -1):
        mask = NO_CHIPS
        for i in range(succ_ptr[n], succ_ptr[n + 1]):
            v = succ[i]
            if v < past:
                mask |= is_above[v]
                if v >= first:
                    mask |= bit(v - first)
        is_above[n] = mask
