"""Ops that copy, gather, scatter, cast or create elements: their cost is bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_bytes,
    in_shape,
    in_size,
    int_attribute,
    log2_ceil,
    out_bytes,
    out_shape,
    out_size,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView


def _copy(op: OpView) -> OpCost:
    """Read every input and write every output once."""
    return OpCost(0, all_bytes(op))


def _cut(op: OpView) -> OpCost:
    """Read only what is written: a slice of a large tensor costs its own size."""
    return OpCost(0, 2 * out_bytes(op))


def _create(op: OpView) -> OpCost:
    """Write the outputs; the inputs give a shape or a few scalars."""
    return OpCost(0, out_bytes(op))


def _cast(op: OpView) -> OpCost:
    """Convert each element once; CastLike reads its second input's type only."""
    return OpCost(out_size(op), in_bytes(op, 0) + out_bytes(op))


def _gather(op: OpView) -> OpCost:
    """Read the indices and the gathered elements, never the whole table."""
    return OpCost(0, in_bytes(op, 1) + 2 * out_bytes(op))


def _compress(op: OpView) -> OpCost:
    """Read the condition and the kept elements."""
    return OpCost(in_size(op, 1), in_bytes(op, 1) + 2 * out_bytes(op))


def _scatter(op: OpView) -> OpCost:
    """Copy the data and write the updates over it; a reduction adds one FLOP each."""
    reduces = text_attribute(op, "reduction", "none") != "none"
    return OpCost(in_size(op, 2) if reduces else 0, all_bytes(op))


def _resize(op: OpView) -> OpCost:
    """Weigh the taps of each output element: 1, 2 or 4 along each axis resized."""
    taps = {"nearest": 0, "linear": 2, "cubic": 4}.get(
        text_attribute(op, "mode", "nearest"), 2
    )
    pairs = zip(in_shape(op, 0), out_shape(op), strict=False)
    axes = sum(before != after for before, after in pairs)
    flops = 2 * taps**axes if taps and axes else 1
    return OpCost(flops * out_size(op), in_bytes(op, 0) + out_bytes(op))


def _affine_grid(op: OpView) -> OpCost:
    """Multiply each grid point by a [d, d + 1] matrix."""
    axes = dim(out_shape(op), -1)
    return OpCost(2 * (axes + 1) * out_size(op), all_bytes(op))


def _col2im(op: OpView) -> OpCost:
    """Add each input element into the image."""
    return OpCost(in_size(op, 0), all_bytes(op))


def _one_hot(op: OpView) -> OpCost:
    """Fill the output with one value and set one element for each index."""
    return OpCost(in_size(op, 0), all_bytes(op))


def _compare_with_log(op: OpView) -> OpCost:
    """Sort: log2(n) comparisons for each element."""
    size = in_size(op, 0)
    return OpCost(size * log2_ceil(size), all_bytes(op))


def _top_k(op: OpView) -> OpCost:
    """Keep a heap of the k best of each line: log2(k) comparisons for each element."""
    kept = dim(out_shape(op), int_attribute(op, "axis", -1))
    return OpCost(in_size(op, 0) * log2_ceil(kept), all_bytes(op))


def _split_to_sequence(op: OpView) -> OpCost:
    """Copy the input into a list, whose type has no size of its own."""
    return OpCost(0, 2 * in_bytes(op, 0))


def _search(op: OpView) -> OpCost:
    """Compare each input element once."""
    return OpCost(in_size(op, 0), all_bytes(op))


def _gather_quantized(op: OpView) -> OpCost:
    """Read the indices and the packed rows asked for, and scale them (2 FLOPs)."""
    rows = out_size(op) * int_attribute(op, "bits", 4)
    return OpCost(
        2 * out_size(op), in_bytes(op, 1) + math.ceil(rows / 8) + out_bytes(op)
    )


RULES: Mapping[str, CostRule] = {
    "AffineGrid": _affine_grid,
    "Cast": _cast,
    "CastLike": _cast,
    "CenterCropPad": _cut,
    "Col2Im": _col2im,
    "Compress": _compress,
    "Concat": _copy,
    "ConcatFromSequence": _cut,
    "ConstantOfShape": _create,
    "DepthToSpace": _copy,
    "EyeLike": _create,
    "Gather": _gather,
    "GatherElements": _gather,
    "GatherND": _gather,
    "MaxUnpool": _copy,
    "NonZero": _search,
    "OneHot": _one_hot,
    "Pad": _copy,
    "Range": _create,
    "Resize": _resize,
    "ReverseSequence": _copy,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Slice": _cut,
    "SpaceToDepth": _copy,
    "Split": _copy,
    "SplitToSequence": _split_to_sequence,
    "TensorScatter": _copy,
    "Tile": _copy,
    "TopK": _top_k,
    "Transpose": _copy,
    "Trilu": _copy,
    "Unique": _compare_with_log,
    "Upsample": _resize,
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "DequantizeWithOrder": _cast,
    "GatherBlockQuantized": _gather_quantized,
    "GatherND": _gather,
    "Pad": _copy,
    "QuantizeWithOrder": _cast,
    "Range": _create,
    "RemovePadding": _cut,
    "RestorePadding": _cut,
    "TorchEmbedding": _gather,
    "Trilu": _copy,
    "UnfoldTensor": _copy,
    "Unique": _compare_with_log,
}
"""Rules of com.microsoft."""

NCHWC_RULES: Mapping[str, CostRule] = {
    "ReorderInput": _copy,
    "ReorderOutput": _copy,
    "Upsample": _resize,
}
"""Rules of com.microsoft.nchwc, the layout onnxruntime writes for CPUs."""
