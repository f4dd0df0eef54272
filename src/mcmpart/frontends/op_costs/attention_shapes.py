"""Output types of onnxruntime's attention and embedding ops."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.cached_attention import grouped_head
from mcmpart.frontends.op_costs.reading import (
    dim,
    in_shape,
    in_size,
    input_of,
    int_attribute,
    int_constant,
    ints_attribute,
)
from mcmpart.frontends.op_costs.types import OpView, ShapeRule, TensorType, Types


def _projected_at(weight: int, past: int, dtype_from: int = 0) -> ShapeRule:
    """Return the rule of an attention with merged weights [D, q + k + v]."""

    def rule(op: OpView) -> Types | None:
        data, weights = input_of(op, 0), input_of(op, weight)
        typed = input_of(op, dtype_from)
        if data is None or weights is None or typed is None or len(data.shape) != 3:
            return None
        width = dim(weights.shape, -1)
        sizes = ints_attribute(op, "qkv_hidden_sizes") or (width // 3,) * 3
        batch, tokens, _ = data.shape
        output = TensorType(typed.dtype, (batch, tokens, dim(sizes, 2)))
        heads = max(int_attribute(op, "num_heads", 1), 1)
        before = input_of(op, past)
        length = tokens + (dim(before.shape, 3, 0) if before else 0)
        shape = (2, batch, heads, length, dim(sizes, 1) // heads)
        present = TensorType(typed.dtype, shape)
        if before is not None and int_attribute(op, "past_present_share_buffer", 0):
            present = before
        return (output, present)

    return rule


def _multi_head_at(past: int, past_length: int) -> ShapeRule:
    """Return the rule of an attention whose Q, K, V are projected already."""

    def rule(op: OpView) -> Types | None:
        query = input_of(op, 0)
        if query is None or len(query.shape) not in (3, 5):
            return None
        batch, tokens = query.shape[:2]
        heads = max(int_attribute(op, "num_heads", 1), 1)
        head, width = _head_and_width(op, query.shape, heads)
        before = input_of(op, past)
        total = _new_keys(op, tokens) + (dim(before.shape, 2, 0) if before else 0)
        if before is not None and in_size(op, past_length):
            total = dim(before.shape, 2)
        key = TensorType(query.dtype, (batch, heads, total, head))
        value = TensorType(query.dtype, (batch, heads, total, width // heads))
        scores = TensorType(query.dtype, (batch, heads, tokens, total))
        output = TensorType(query.dtype, (batch, tokens, width))
        return (output, key, value, scores)

    return rule


def _head_and_width(op: OpView, query: tuple[int, ...], heads: int) -> tuple[int, int]:
    """Return the width of a query's head and of the whole output.

    The output is as wide as the values: [B, L, width] or [B, H, L, d_v]; a packed
    query or key has values as wide as itself.
    """
    value = in_shape(op, 2)
    if len(query) == 5:
        return query[-1], query[-1] * heads
    merged = not in_size(op, 1)
    head = query[-1] // heads // (3 if merged else 1)
    if len(value) == 3:
        return head, value[-1]
    if len(value) == 4:
        return head, value[1] * value[3]
    return head, head * heads


def _new_keys(op: OpView, tokens: int) -> int:
    """Return the key positions of this step."""
    key = in_shape(op, 1)
    if not key:
        return tokens
    return dim(key, 2 if len(key) == 4 else 1)


def _grouped_at(total: int) -> ShapeRule:
    """Return the rule of a grouped-query attention with a cache.

    The present cache is as long as the past one or the total length, whichever is
    more; where the total is unknown, the new tokens are taken to be appended.
    """

    def rule(op: OpView) -> Types | None:
        query = input_of(op, 0)
        if query is None or len(query.shape) != 3:
            return None
        batch, tokens, _ = query.shape
        heads, kv_heads, head = grouped_head(op)
        output = TensorType(query.dtype, (batch, tokens, heads * head))
        past = input_of(op, 3)
        before = dim(past.shape, 2, 0) if past else 0
        known = int_constant(op, total, 0)
        length = max(before, known) if known else before + tokens
        dtype, width = (past.dtype, dim(past.shape, 3)) if past else (query.dtype, head)
        cache = TensorType(dtype, (batch, kv_heads, length, width))
        scores = TensorType(query.dtype, (batch, heads, tokens, length))
        return (output, cache, cache, scores)

    return rule


def _cache_kept(op: OpView) -> Types | None:
    """Return [..., H d] and the two caches, which keep their types."""
    query = input_of(op, 0)
    if query is None:
        return None
    heads, _, head = grouped_head(op)
    width = int_attribute(op, "v_head_size", 0) or head
    output = TensorType(query.dtype, (*query.shape[:-1], heads * width))
    return (output, input_of(op, 3), input_of(op, 4))


def _packed(op: OpView) -> Types | None:
    """Return one row for each token."""
    data, weights = input_of(op, 0), input_of(op, 1)
    if data is None or weights is None or not data.shape:
        return None
    width = dim(weights.shape, -1)
    sizes = ints_attribute(op, "qkv_hidden_sizes") or (width // 3,) * 3
    return (TensorType(data.dtype, (data.shape[0], dim(sizes, 2))),)


def _packed_multi_head(op: OpView) -> Types | None:
    """Return one row for each token, as wide as the values."""
    query, value = input_of(op, 0), input_of(op, 2)
    if query is None or not query.shape:
        return None
    width = dim(query.shape, 1)
    if len(query.shape) == 4:
        width *= query.shape[3]
    if value is not None:
        width = dim(value.shape, -1)
    return (TensorType(query.dtype, (query.shape[0], width)),)


def _ordered(op: OpView) -> Types | None:
    """Return [B, S, v]."""
    data = input_of(op, 0)
    if data is None or not data.shape:
        return None
    return (TensorType(data.dtype, (*data.shape[:-1], dim(in_shape(op, 7), -1))),)


def _first_as_query(op: OpView) -> Types | None:
    """Return the query's type; the caches' lengths depend on data."""
    query = input_of(op, 0)
    return None if query is None else (query, None, None)


def _linear(op: OpView) -> Types | None:
    """Return [B, T, max(H_q, H_kv) d_v] and the state [B, H_kv, d, d_v]."""
    query, value, past = (input_of(op, position) for position in (0, 2, 3))
    if query is None or value is None or len(query.shape) != 3:
        return None
    heads = max(int_attribute(op, "q_num_heads", 1), 1)
    kv_heads = max(int_attribute(op, "kv_num_heads", heads), 1)
    width = dim(value.shape, -1) // kv_heads
    batch, tokens, columns = query.shape
    output = TensorType(query.dtype, (batch, tokens, max(heads, kv_heads) * width))
    state = past or TensorType(query.dtype, (batch, kv_heads, columns // heads, width))
    return (output, state)


def _relative_position_bias(op: OpView) -> Types | None:
    """Return [1, H, queries, keys] where both lengths are known."""
    table = input_of(op, 0)
    queries, keys = int_constant(op, 1, -1), int_constant(op, 2, -1)
    if table is None or queries < 0 or keys < 0:
        return None
    return (TensorType(table.dtype, (1, dim(table.shape, 1), queries, keys)),)


def _gated_relative_position_bias(op: OpView) -> Types | None:
    """Return the bias for each sample: [B, H, S, S]."""
    query, bias = input_of(op, 0), input_of(op, 2)
    if query is None or bias is None or len(bias.shape) != 4:
        return None
    # Packed tokens [tokens, H d] keep the batch in token_offset only.
    rows = query.shape if len(query.shape) == 3 else in_shape(op, 6)
    return (TensorType(query.dtype, (dim(rows, 0), *bias.shape[1:])),)


def _embedding(dtype_from: int) -> ShapeRule:
    """Return the rule of a normalised sum of embeddings [B, S, hidden]."""

    def rule(op: OpView) -> Types | None:
        ids, words, typed = (input_of(op, p) for p in (0, 2, dtype_from))
        if ids is None or words is None or typed is None:
            return None
        shape = (*ids.shape, math.prod(words.shape[-1:]))
        output = TensorType(typed.dtype, shape)
        return (output, TensorType("int32", (dim(ids.shape, 0),)), output)

    return rule


def _word_conv(op: OpView) -> Types | None:
    """Return one vector for each word [..., characters], as wide as the filters."""
    words, weight = input_of(op, 0), input_of(op, 1)
    if words is None or weight is None:
        return None
    return (TensorType(weight.dtype, (*words.shape[:-1], dim(weight.shape, 0))),)


RULES: Mapping[str, ShapeRule] = {
    "Attention": _projected_at(1, 4),
    "DecoderAttention": _first_as_query,
    "DecoderMaskedMultiHeadAttention": _multi_head_at(5, 7),
    "DecoderMaskedSelfAttention": _projected_at(1, 4),
    "EmbedLayerNormalization": _embedding(5),
    "GatedRelativePositionBias": _gated_relative_position_bias,
    "GroupQueryAttention": _grouped_at(6),
    "LinearAttention": _linear,
    "LongformerAttention": _first_as_query,
    "MultiHeadAttention": _multi_head_at(6, 8),
    "PackedAttention": _packed,
    "PackedMultiHeadAttention": _packed_multi_head,
    "PagedAttention": _cache_kept,
    "QAttention": _projected_at(1, 8, 3),
    "QEmbedLayerNormalization": _embedding(8),
    "QOrderedAttention": _ordered,
    "RelativePositionBias": _relative_position_bias,
    "SparseAttention": _cache_kept,
    "WordConvEmbedding": _word_conv,
}
"""Shape rules of com.microsoft."""
