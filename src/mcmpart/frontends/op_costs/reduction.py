"""Reductions, pooling, normalisation, softmax and losses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.elementwise import SOFTMAX, TRANSCENDENTAL
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    ints_attribute,
    out_bytes,
    out_size,
    output_of,
    per_input,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

_REDUCE_FLOPS: Mapping[str, tuple[int, int]] = {
    "ArgMax": (1, 0),
    "ArgMin": (1, 0),
    "GlobalAveragePool": (1, 1),
    "GlobalLpPool": (2 * TRANSCENDENTAL + 1, 2 * TRANSCENDENTAL),  # powers and a root
    "GlobalMaxPool": (1, 0),
    "ReduceL1": (2, 0),
    "ReduceL2": (2, 1),
    "ReduceLogSum": (1, TRANSCENDENTAL),
    "ReduceLogSumExp": (TRANSCENDENTAL + 3, TRANSCENDENTAL + 1),  # shifted by the max
    "ReduceMax": (1, 0),
    "ReduceMean": (1, 1),
    "ReduceMin": (1, 0),
    "ReduceProd": (1, 0),
    "ReduceSum": (1, 0),
    "ReduceSumSquare": (2, 0),
}
"""FLOPs of each input element and of each output element."""

_NORMALIZE_FLOPS: Mapping[str, int] = {
    "GroupNormalization": 8,  # as LayerNormalization
    "Hardmax": 2,  # maximum, comparison
    "InstanceNormalization": 8,
    # mean 1, subtract 1, square and add 2, scale 1, weight and bias 2, root 1
    "LayerNormalization": 8,
    "LogSoftmax": SOFTMAX,
    "LpNormalization": 3,  # square and add, divide
    "MeanVarianceNormalization": 6,
    # log-softmax is the input here: one gather, weight and add
    "NegativeLogLikelihoodLoss": 2,
    "RMSNormalization": 5,  # square and add 2, root and scale 2, weight 1
    "SimplifiedLayerNormalization": 5,  # RMSNormalization's older name
    "Softmax": SOFTMAX,
    "SoftmaxCrossEntropyLoss": SOFTMAX + 2,
}
"""FLOPs of each input element."""

_MICROSOFT_NORMALIZE_FLOPS: Mapping[str, int] = {
    "BiasSoftmax": SOFTMAX + 1,
    "BranchwiseRMSNorm": 5,
    "GatedRMSNorm": 5 + TRANSCENDENTAL + 4,
    "GroupNorm": 8 + TRANSCENDENTAL + 3,  # with its swish
    "IsAllFinite": 1,
    "QLinearGlobalAveragePool": 3,
    "QLinearReduceMean": 3,
    "QLinearSoftmax": SOFTMAX + 6,
    "QOrderedLayerNormalization": 14,
    "ReduceSumInteger": 1,
    "RMSNormRotary": 5 + 3,
    "SkipGroupNorm": 8 + TRANSCENDENTAL + 5,
    "SkipLayerNormalization": 8 + 2,  # the skip and the bias
    "SkipSimplifiedLayerNormalization": 5 + 2,
}


def _reduce(per_element: int, per_result: int) -> CostRule:
    """Return the rule of a reduction."""

    def rule(op: OpView) -> OpCost:
        flops = per_element * in_size(op, 0) + per_result * out_size(op)
        return OpCost(flops, all_bytes(op))

    return rule


def _pool(flops_per_tap: int, flops_per_output: int = 0) -> CostRule:
    """Return the rule of a window of kernel_shape around each output element."""

    def rule(op: OpView) -> OpCost:
        taps = math.prod(ints_attribute(op, "kernel_shape") or (1,))
        each = flops_per_tap * taps + flops_per_output
        return OpCost(each * out_size(op), all_bytes(op))

    return rule


def _batch_normalization(op: OpView) -> OpCost:
    """Scale and shift; in training the statistics cost 4 FLOPs more."""
    each = 6 if int_attribute(op, "training_mode", 0) else 2
    return OpCost(each * in_size(op, 0), all_bytes(op))


def _lrn(op: OpView) -> OpCost:
    """Square, add up a window of channels, and divide by a power."""
    each = 2 * int_attribute(op, "size", 1) + 2 * TRANSCENDENTAL + 3
    return OpCost(each * in_size(op, 0), all_bytes(op))


def _embed_layer_normalization(op: OpView) -> OpCost:
    """Add a row of each embedding table and normalise; the tables are read by rows."""
    rows = sum(1 for position in (2, 3, 4) if in_size(op, position))
    output = output_of(op, 0)
    read = in_bytes(op, 0, 1, 5, 6, 7, 8) + rows * (output.bytes if output else 0)
    return OpCost((8 + 2) * out_size(op), read + out_bytes(op))


def _determinant(op: OpView) -> OpCost:
    """Factorise each n x n matrix: 2/3 n^3 FLOPs (LU without pivot search)."""
    side = in_shape(op, 0)[-1] if in_shape(op, 0) else 1
    return OpCost(max(2 * in_size(op, 0) * side // 3, 1), all_bytes(op))


def _inverse(op: OpView) -> OpCost:
    """Invert each n x n matrix: 2 n^3 FLOPs (LU and two triangular solves)."""
    side = in_shape(op, 0)[-1] if in_shape(op, 0) else 1
    return OpCost(2 * in_size(op, 0) * side, all_bytes(op))


_POOLS: Mapping[str, CostRule] = {
    "AveragePool": _pool(1, 1),
    "LpPool": _pool(2 * TRANSCENDENTAL + 1, 2 * TRANSCENDENTAL),
    "MaxPool": _pool(1),
}

RULES: Mapping[str, CostRule] = {
    **{kind: _reduce(*flops) for kind, flops in _REDUCE_FLOPS.items()},
    **{kind: per_input(flops) for kind, flops in _NORMALIZE_FLOPS.items()},
    **_POOLS,
    "BatchNormalization": _batch_normalization,
    "Det": _determinant,
    "LRN": _lrn,
}
"""Rules of the default domain, and SimplifiedLayerNormalization, which onnxruntime
writes into it."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    **{kind: per_input(flops) for kind, flops in _MICROSOFT_NORMALIZE_FLOPS.items()},
    "EmbedLayerNormalization": _embed_layer_normalization,
    "Inverse": _inverse,
    "MaxpoolWithMask": _pool(1),
    "NhwcMaxPool": _pool(1),
    "QEmbedLayerNormalization": _embed_layer_normalization,
    # Dequantise each tap; divide and quantise each output.
    "QLinearAveragePool": _pool(3, 5),
}
"""Rules of com.microsoft."""

NCHWC_RULES: Mapping[str, CostRule] = {
    "AveragePool": _pool(1, 1),
    "GlobalAveragePool": _reduce(1, 1),
    "GlobalMaxPool": _reduce(1, 0),
    "MaxPool": _pool(1),
}
"""Rules of com.microsoft.nchwc, the layout onnxruntime writes for CPUs."""
