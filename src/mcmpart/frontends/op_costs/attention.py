"""Attention over a cache or not: ONNX's Attention and onnxruntime's ops.

Every rule counts two products, scores = Q K' and context = P V, with FLOPs
2 R L (d + d_v) for R = batch x heads x queries and L keys, and a softmax on the R L
scores. The scores are not counted as bytes: fused kernels keep them on the chip
(T. Dao et al., "FlashAttention", 2022). A causal mask takes nothing off: masked scores
are computed and dropped. A local window does: it bounds L.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mcmpart.frontends.op_costs.elementwise import SOFTMAX
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_shape,
    in_size,
    int_attribute,
    ints_attribute,
    length_constant,
    out_shape,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# The softmax, the scale and the mask.
_SCORE_FLOPS = SOFTMAX + 2


@dataclass(frozen=True, slots=True)
class Heads:
    """The sizes of an attention.

    Attributes
    ----------
    rows
        batch x query heads x query positions
    keys
        key positions that each query sees
    head, value_head
        width of a query (and key), and of a value
    """

    rows: int
    keys: int
    head: int
    value_head: int

    @property
    def flops(self) -> int:
        """FLOPs of scores, softmax and context."""
        products = 2 * self.rows * self.keys * (self.head + self.value_head)
        return products + _SCORE_FLOPS * self.rows * self.keys

    @property
    def gemm(self) -> tuple[int, int, int]:
        """Both products as one: their depths add up."""
        return self.rows, self.keys, self.head + self.value_head


def attention_cost(
    op: OpView,
    heads: Heads,
    *,
    projection: tuple[int, int, int] | None = None,
    extra_flops: int = 0,
    moved: int | None = None,
) -> OpCost:
    """Return the cost of an attention, and of the projection into Q, K, V before it.

    Without ``moved`` bytes all inputs and outputs count once.

    ``gemm`` is the larger of the projection and of the attention's own products.
    """
    flops, gemm = heads.flops + extra_flops, heads.gemm
    if projection is not None:
        flops += 2 * math.prod(projection)
        gemm = max(projection, gemm, key=math.prod)
    return OpCost(flops, all_bytes(op) if moved is None else moved, gemm)


def _onnx_attention(op: OpView) -> OpCost:
    """Attend: [B, H, S, d] tensors, or [B, S, H d] with the heads as attributes."""
    query, key, value = (in_shape(op, position) for position in range(3))
    split = len(query) == 4
    heads = dim(query, 1) if split else max(int_attribute(op, "q_num_heads", 1), 1)
    kv_heads = 1 if split else max(int_attribute(op, "kv_num_heads", heads), 1)
    rows = dim(query, 0) * heads * dim(query, -2)
    keys = dim(key, -2, 0) + dim(in_shape(op, 4), -2, 0)
    head = dim(query, -1) if split else dim(query, -1) // heads
    seen = min(keys, _window(op, keys))
    return attention_cost(op, Heads(rows, seen, head, dim(value, -1) // kv_heads))


def _window(op: OpView, keys: int) -> int:
    """Return the keys one query sees at most, by left and right window sizes."""
    left = int_attribute(op, "left_window_size", -1)
    right = int_attribute(op, "right_window_size", -1)
    if int_attribute(op, "is_causal", 0):
        right = 0
    if left < 0 or right < 0:
        return keys
    return left + 1 + right


def _projected_at(weight: int, past: int, past_length: int | None = None) -> CostRule:
    """Return the rule of attention that projects its input with merged weights.

    The weights are [D, q + k + v]; ``past`` is [2, B, H, P, d], of which
    ``past_length`` (an input) is in use where the buffer is shared.
    """

    def rule(op: OpView) -> OpCost:
        data, weights = in_shape(op, 0), in_shape(op, weight)
        tokens, width = math.prod(data[:-1]), dim(weights, -1)
        sizes = ints_attribute(op, "qkv_hidden_sizes") or (width // 3,) * 3
        heads = max(int_attribute(op, "num_heads", 1), 1)
        before = dim(in_shape(op, past), 3, 0)
        if int_attribute(op, "past_present_share_buffer", 0) and past_length:
            before = length_constant(op, past_length, before)
        keys = dim(data, 1) + before
        attention = Heads(
            tokens * heads, keys, sizes[0] // heads, dim(sizes, 2) // heads
        )
        projection = (tokens, width, dim(data, -1))
        return attention_cost(op, attention, projection=projection)

    return rule


def _multi_head_at(past: int, past_length: int) -> CostRule:
    """Return the rule of attention whose Q, K, V are projected already.

    Query is [B, S, H d] or packed [B, S, H, 3, d]; key is [B, L, H d], packed
    [B, L, H, 2, d], or [B, H, L, d] of a cross attention.
    """

    def rule(op: OpView) -> OpCost:
        query, key, value = (in_shape(op, position) for position in range(3))
        heads = max(int_attribute(op, "num_heads", 1), 1)
        packed = len(query) == 5
        merged = not packed and not in_size(op, 1)
        head = dim(query, -1) if packed else dim(query, 2) // heads
        if merged:
            head //= 3
        rows = dim(query, 0) * dim(query, 1) * heads
        new = dim(query, 1)
        if key:
            new = dim(key, 2 if len(key) == 4 else 1)
        before = dim(in_shape(op, past), 2, 0)
        if in_size(op, past_length):
            before = length_constant(op, past_length, max(before - new, 0))
        value_head = dim(value, -1) // heads if len(value) == 3 else head
        return attention_cost(op, Heads(rows, new + before, head, value_head))

    return rule


def _packed(op: OpView) -> OpCost:
    """Project tokens without padding, and attend within their sequence."""
    data, weights = in_shape(op, 0), in_shape(op, 1)
    tokens, width = dim(data, 0), dim(weights, -1)
    sizes = ints_attribute(op, "qkv_hidden_sizes") or (width // 3,) * 3
    heads = max(int_attribute(op, "num_heads", 1), 1)
    keys = dim(in_shape(op, 3), 1)
    attention = Heads(tokens * heads, keys, sizes[0] // heads, dim(sizes, 2) // heads)
    return attention_cost(op, attention, projection=(tokens, width, dim(data, -1)))


def _packed_multi_head(op: OpView) -> OpCost:
    """Attend within sequences without padding, projected already."""
    query, value = in_shape(op, 0), in_shape(op, 2)
    heads = max(int_attribute(op, "num_heads", 1), 1)
    head = dim(query, -1) if len(query) == 4 else dim(query, -1) // heads
    value_head = dim(value, -1) // heads if value else head
    keys = dim(in_shape(op, 4), 1)
    return attention_cost(op, Heads(dim(query, 0) * heads, keys, head, value_head))


def _longformer(op: OpView) -> OpCost:
    """Attend to 2 W + 1 neighbours; the global tokens' projection comes on top."""
    data = in_shape(op, 0)
    tokens, width = dim(data, 0) * dim(data, 1), dim(data, -1)
    heads = max(int_attribute(op, "num_heads", 1), 1)
    keys = min(dim(data, 1), 2 * int_attribute(op, "window", 1) + 1)
    attention = Heads(tokens * heads, keys, width // heads, width // heads)
    return attention_cost(op, attention, projection=(tokens, 6 * width, width))


def _decoder(op: OpView) -> OpCost:
    """Project [S, B, D] queries and [L, B, D] keys and values, then attend."""
    query, key = in_shape(op, 0), in_shape(op, 1)
    width, batch = dim(query, -1), dim(query, 1)
    heads = max(int_attribute(op, "num_heads", 1), 1)
    tokens = dim(query, 0) * batch
    keys = dim(key, 0) + dim(in_shape(op, 6), 2, 0)
    attention = Heads(tokens * heads, keys, width // heads, width // heads)
    rows = tokens + 2 * dim(key, 0) * batch
    return attention_cost(op, attention, projection=(rows, width, width))


def _ordered(op: OpView) -> OpCost:
    """Project with three int8 weights, then attend."""
    data = in_shape(op, 0)
    tokens = math.prod(data[:-1])
    sizes = [dim(in_shape(op, position), -1) for position in (5, 6, 7)]
    heads = max(int_attribute(op, "num_heads", 1), 1)
    attention = Heads(
        tokens * heads, dim(data, 1), sizes[0] // heads, sizes[2] // heads
    )
    projection = (tokens, sum(sizes), dim(data, -1))
    return attention_cost(op, attention, projection=projection)


def _linear(op: OpView) -> OpCost:
    """Run a recurrence over [B, T, H d] tensors."""
    query, value = in_shape(op, 0), in_shape(op, 2)
    heads = max(int_attribute(op, "q_num_heads", 1), 1)
    kv_heads = max(int_attribute(op, "kv_num_heads", heads), 1)
    state = (dim(query, -1) // heads, dim(value, -1) // kv_heads)
    return _recurrence(op, dim(query, 0) * dim(query, 1), (heads, kv_heads), state)


def _gated_delta_net(op: OpView) -> OpCost:
    """Run a recurrence over [tokens, H, d] tensors with a [B, H_v, d_v, d] state."""
    shape = out_shape(op, 1) or in_shape(op, 6)
    heads = dim(shape, 1)
    tokens = dim(in_shape(op, 0), 0)
    readers = dim(out_shape(op), 1, heads)
    return _recurrence(op, tokens, (readers, heads), (dim(shape, 3), dim(shape, 2)))


def _recurrence(
    op: OpView, tokens: int, heads: tuple[int, int], state: tuple[int, int]
) -> OpCost:
    """Update each head's [d, d_v] state for each token and read it: 2 d d_v each.

    A decay scales the state (d d_v FLOPs); a delta rule reads it once more (2 d d_v).
    """
    rule = text_attribute(op, "update_rule", "gated_delta")
    each = 2 + ("gated" in rule) + 2 * ("delta" in rule)
    readers, writers = max(heads), heads[1]
    flops = tokens * math.prod(state) * (writers * each + 2 * readers)
    return OpCost(flops, all_bytes(op), (tokens * readers, state[1], state[0]))


RULES: Mapping[str, CostRule] = {
    "Attention": _onnx_attention,
    "LinearAttention": _linear,
}
"""Rules of the default domain."""

PREVIEW_RULES: Mapping[str, CostRule] = {"FlexAttention": _onnx_attention}
"""Rules of ai.onnx.preview; the importer costs the score and probability bodies."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "Attention": _projected_at(1, 4, 6),
    "DecoderAttention": _decoder,
    "DecoderMaskedMultiHeadAttention": _multi_head_at(5, 7),
    "DecoderMaskedSelfAttention": _projected_at(1, 4, 6),
    "GatedDeltaNet": _gated_delta_net,
    "LinearAttention": _linear,
    "LongformerAttention": _longformer,
    "MultiHeadAttention": _multi_head_at(6, 8),
    "PackedAttention": _packed,
    "PackedMultiHeadAttention": _packed_multi_head,
    "QAttention": _projected_at(1, 8),
    "QOrderedAttention": _ordered,
}
"""Rules of com.microsoft."""
