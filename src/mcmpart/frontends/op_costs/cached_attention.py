"""onnxruntime's attention over a long cache, of which only a part is in use.

A cache written in place is read up to the keys in use and written at the new tokens;
one that is copied to a longer output is read and written whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.attention import Heads, attention_cost
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    length_constant,
    out_shape,
    output_of,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# x cos + rotated(x) sin.
ROTARY_FLOPS = 3


def grouped_head(op: OpView) -> tuple[int, int, int]:
    """Return query heads, key heads and head width of a grouped-query attention."""
    heads = max(int_attribute(op, "num_heads", 1), 1)
    kv_heads = max(int_attribute(op, "kv_num_heads", heads), 1)
    packed = not in_size(op, 1)
    shares = heads + 2 * kv_heads if packed else heads
    return heads, kv_heads, dim(in_shape(op, 0), -1) // shares


def _total_length(op: OpView, total: int) -> int:
    """Return the keys of a cached attention after this step.

    The total length where its input is known; else the present cache's length; else
    the past's and the new tokens'.
    """
    known = length_constant(op, total, 0)
    present = dim(out_shape(op, 1), 2, 0)
    return known or present or dim(in_shape(op, 3), 2, 0) + dim(in_shape(op, 0), 1)


def _moved(op: OpView, used: int, new: int, rotary: tuple[int, int]) -> int:
    """Return the bytes of a step whose caches are inputs 3, 4 and outputs 1, 2.

    ``used`` and ``new`` count positions of [B, H, L, d] caches. Of the rotary caches
    no more is read than the query is long.
    """
    moved = all_bytes(op) - _unread_rotary(op, rotary)
    length = dim(in_shape(op, 3), 2, 0)
    if not length or in_shape(op, 3) != out_shape(op, 1):
        return moved
    caches = in_bytes(op, 3, 4)
    written = _cache_output_bytes(op)
    touched = caches * (min(used, length) + min(new, length)) // length
    return moved - caches - written + touched


def _cache_output_bytes(op: OpView) -> int:
    """Return the bytes of the cache outputs 1 and 2."""
    caches = (output_of(op, position) for position in (1, 2))
    return sum(cache.bytes for cache in caches if cache is not None)


def _unread_rotary(op: OpView, positions: tuple[int, int]) -> int:
    """Return the bytes of the cosines and sines that this step does not need."""
    query = in_bytes(op, 0)
    return sum(max(in_bytes(op, p) - query // 2, 0) for p in positions)


def _rotary(op: OpView, elements: int) -> int:
    """Return the FLOPs of rotating queries and keys where do_rotary is set."""
    return ROTARY_FLOPS * elements if int_attribute(op, "do_rotary", 0) else 0


def _grouped(op: OpView, keys: int, seen: int, rotary: tuple[int, int]) -> OpCost:
    """Return the cost where each query sees some of the keys."""
    heads, kv_heads, head = grouped_head(op)
    batch, new = dim(in_shape(op, 0), 0), dim(in_shape(op, 0), 1)
    return attention_cost(
        op,
        Heads(batch * new * heads, seen, head, head),
        extra_flops=_rotary(op, batch * new * (heads + kv_heads) * head),
        moved=_moved(op, min(keys, seen + new), new, rotary),
    )


def _grouped_query(op: OpView) -> OpCost:
    """Attend over the cache; the query heads share the fewer key heads."""
    keys = _total_length(op, 6)
    window = int_attribute(op, "local_window_size", -1)
    return _grouped(op, keys, min(keys, window) if window > 0 else keys, (7, 8))


def _sparse(op: OpView) -> OpCost:
    """Attend within the blocks of the mask: its non-zero blocks bound the scores."""
    keys = _total_length(op, 7)
    block = int_attribute(op, "sparse_block_size", 1)
    scores = dim(in_shape(op, 6), -1) * block * block
    seen = math.ceil(scores / max(dim(in_shape(op, 0), 1), 1))
    return _grouped(op, keys, min(keys, seen), (9, 10))


def _paged(op: OpView) -> OpCost:
    """Attend over pages [blocks, block size, ...]: at most all of the block table.

    Of the pool only the pages of the table are read, and the new tokens written.
    """
    heads, kv_heads, head = grouped_head(op)
    tokens = dim(in_shape(op, 0), 0)
    table, pool = in_shape(op, 7), in_shape(op, 3)
    keys = dim(table, 1) * dim(pool, 1)
    positions = dim(pool, 0, 0) * dim(pool, 1)
    pages = in_bytes(op, 3, 4)
    used = min(dim(table, 0) * keys, positions) + min(tokens, positions)
    touched = pages * used // positions if positions else 0
    moved = all_bytes(op) - pages - _cache_output_bytes(op) + touched
    return attention_cost(
        op,
        Heads(tokens * heads, keys, head, head),
        extra_flops=_rotary(op, tokens * (heads + kv_heads) * head),
        moved=moved - _unread_rotary(op, (8, 9)),
    )


RULES: Mapping[str, CostRule] = {}
"""The default domain's Attention is in attention.py."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "GroupQueryAttention": _grouped_query,
    "PagedAttention": _paged,
    "SparseAttention": _sparse,
}
"""Rules of com.microsoft."""
