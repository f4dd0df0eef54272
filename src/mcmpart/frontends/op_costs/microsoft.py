"""onnxruntime's fused ops that fit no other family: rotary, experts, biases."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.cached_attention import ROTARY_FLOPS
from mcmpart.frontends.op_costs.elementwise import SIGMOID, SOFTMAX, TRANSCENDENTAL
from mcmpart.frontends.op_costs.matmul import matmul_gemm, product_cost
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    out_bytes,
    out_size,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView


def _rotary_at(*caches: int) -> CostRule:
    """Return the rule of a rotation; of each cache at most the rows used are read."""

    def rule(op: OpView) -> OpCost:
        data = in_bytes(op, 0)
        read = sum(min(in_bytes(op, cache), data // 2) for cache in caches)
        others = in_bytes(op) - in_bytes(op, 0, *caches)
        moved = data + read + others + out_bytes(op)
        return OpCost(ROTARY_FLOPS * in_size(op, 0), moved)

    return rule


def _experts(weights: Mapping[int, str], others: tuple[int, ...]) -> CostRule:
    """Return the rule of a mixture of experts.

    Each token runs through k experts. ``weights`` maps a weight's position to "in"
    ([E, N, hidden], maybe packed) or "out" ([E, hidden, inter]); ``others`` are the
    positions of their scales and biases. Of the E experts at most tokens x k are read.
    """

    def rule(op: OpView) -> OpCost:
        data, experts = in_shape(op, 0), dim(in_shape(op, 1), -1)
        tokens, hidden = math.prod(data[:-1]), dim(data, -1)
        rows = tokens * max(int_attribute(op, "k", 1), 1)
        columns = _expert_columns(op, weights)
        flops = (SOFTMAX + 1) * in_size(op, 1) + (SIGMOID + 2) * rows * columns
        stored = in_bytes(op, *weights, *others)
        read = stored * min(rows, experts) // experts if experts else 0
        moved = all_bytes(op) - stored + read
        gemm = (rows, columns, hidden)
        return OpCost(2 * math.prod(gemm) + flops, moved, gemm)

    return rule


def _expert_columns(op: OpView, weights: Mapping[int, str]) -> int:
    """Return the sum of the inner sizes of an expert's products.

    Every product has the hidden size on one side. The one that leads back has the
    intermediate size: its packed weight does not show it, so it is that of the first
    weight, halved where that one holds gate and value (swiglu_fusion).
    """
    first = dim(in_shape(op, min(weights)), 1)
    fused = int_attribute(op, "swiglu_fusion", 0) > 0
    inner = first // 2 if fused else first
    return sum(
        inner if way == "out" else dim(in_shape(op, position), 1)
        for position, way in weights.items()
        if in_size(op, position)
    )


def _fused_projections(op: OpView) -> OpCost:
    """Normalise once and multiply by two (gate, up) or three (Q, K, V) weights."""
    data = in_shape(op, 0)
    rows, depth = math.prod(data[:-1]), int_attribute(op, "K", dim(data, -1))
    if op.kind == "MatMulNBitsQkv":
        columns = int_attribute(op, "Nq", 0) + 2 * int_attribute(op, "Nkv", 0)
    else:
        columns = 2 * int_attribute(op, "N", 0)
    flops = 7 * in_size(op, 0) + (SIGMOID + 2) * out_size(op) + 2 * columns * depth
    return product_cost(op, (rows, columns, depth), extra_flops=flops)


def _router_gate_up(op: OpView) -> OpCost:
    """Multiply by router, gate and up weights at once, and activate the gate."""
    gemm = matmul_gemm(in_shape(op, 0), in_shape(op, 1))
    return product_cost(op, gemm, extra_flops=(SIGMOID + 2) * out_size(op))


def _relative_position_bias(op: OpView) -> OpCost:
    """Find each distance's bucket (a logarithm) and copy its bias."""
    return OpCost((TRANSCENDENTAL + 2) * out_size(op), all_bytes(op))


def _gated_relative_position_bias(op: OpView) -> OpCost:
    """Multiply each head's query by a [d, D] weight, and gate the bias with it."""
    query, weight = in_shape(op, 0), in_shape(op, 3)
    depth, columns = dim(weight, 0), dim(weight, 1)
    rows = math.prod(query) // depth if depth else 0
    flops = rows * columns * (SIGMOID + 2) + out_size(op)
    return product_cost(op, (rows, columns, depth), extra_flops=flops)


def _distances(op: OpView) -> OpCost:
    """Return |a - b| of each pair, from the product A B' and the squared norms."""
    a, b = in_shape(op, 0), in_shape(op, 1)
    gemm = (dim(a, 0), dim(b, 0), dim(a, -1))
    flops = 2 * (in_size(op, 0) + in_size(op, 1)) + 4 * out_size(op)
    return product_cost(op, gemm, extra_flops=flops)


RULES: Mapping[str, CostRule] = {"RotaryEmbedding": _rotary_at(1, 2)}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "CDist": _distances,
    "GatedRelativePositionBias": _gated_relative_position_bias,
    "GemmaRotaryEmbedding": _rotary_at(),
    "MatMulNBitsMlp": _fused_projections,
    "MatMulNBitsQkv": _fused_projections,
    "MoE": _experts({2: "in", 4: "out", 6: "in"}, (3, 5, 7)),
    "MoEPacked": _experts({2: "in", 3: "in", 4: "out"}, ()),
    "MRotaryEmbedding": _rotary_at(2, 3),
    "QMoE": _experts({2: "in", 5: "out", 8: "in"}, (3, 4, 6, 7, 9, 10, 11, 12, 13)),
    "RelativePositionBias": _relative_position_bias,
    "RotaryEmbedding": _rotary_at(2, 3),
    "RouterGateUpProj": _router_gate_up,
}
"""Rules of com.microsoft."""
