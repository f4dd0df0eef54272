"""Output types of onnxruntime's own ops, which have no ONNX schema."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs import attention_shapes, product_shapes, window_shapes
from mcmpart.frontends.op_costs.matmul import broadcast
from mcmpart.frontends.op_costs.product_shapes import DTYPE_OF_CODE
from mcmpart.frontends.op_costs.reading import (
    dim,
    in_shape,
    input_of,
    int_attribute,
    int_constants,
    ints_attribute,
)
from mcmpart.frontends.op_costs.types import OpView, ShapeRule, TensorType, Types


def _like(*positions: int) -> ShapeRule:
    """Return the rule of outputs that have the types of these inputs, in order."""

    def rule(op: OpView) -> Types | None:
        types = [input_of(op, position) for position in positions]
        return None if types[0] is None else types

    return rule


def _broadcast(*positions: int, dtype: str | None = None) -> ShapeRule:
    """Return the rule of inputs that broadcast; the first gives the dtype.

    The dtype may be named instead.
    """

    def rule(op: OpView) -> Types | None:
        first = input_of(op, positions[0])
        if first is None:
            return None
        shape = first.shape
        for position in positions[1:]:
            shape = broadcast(shape, in_shape(op, position))
        return (TensorType(dtype or first.dtype, shape),)

    return rule


def _where(op: OpView) -> Types | None:
    """Return the broadcast of condition, X and Y with X's dtype."""
    chosen = input_of(op, 1)
    shapes = _broadcast(0, 1, 4)(op)
    if chosen is None or shapes is None or shapes[0] is None:
        return None
    return (TensorType(chosen.dtype, shapes[0].shape),)


def _typed(dtype: str) -> ShapeRule:
    """Return the rule of an output with the input's shape and this dtype."""

    def rule(op: OpView) -> Types | None:
        data = input_of(op, 0)
        return None if data is None else (TensorType(dtype, data.shape),)

    return rule


def _quantize(op: OpView) -> Types | None:
    """Return the zero point's dtype, uint8 without one."""
    zero = input_of(op, 2)
    return _typed(zero.dtype if zero else "uint8")(op)


def _dequantize(op: OpView) -> Types | None:
    """Return the scale's dtype."""
    scale = input_of(op, 1)
    return None if scale is None else _typed(scale.dtype)(op)


def _dequantize_ordered(op: OpView) -> Types | None:
    """Return the dtype of the attribute ``to``."""
    dtype = DTYPE_OF_CODE.get(int_attribute(op, "to", 0))
    return None if dtype is None else _typed(dtype)(op)


def _hash(op: OpView) -> Types | None:
    """Return one 32-bit hash for each element."""
    return _typed("uint32" if int_attribute(op, "positive", 1) else "int32")(op)


def _normalized(op: OpView) -> Types | None:
    """Return the output, and mean and inverse deviation in float32."""
    data = input_of(op, 0)
    if data is None or not data.shape:
        return None
    axis = int_attribute(op, "axis", -1) % len(data.shape)
    ones = (1,) * (len(data.shape) - axis)
    statistic = TensorType("fp32", (*data.shape[:axis], *ones))
    return (data, statistic, statistic)


def _skip_normalized(op: OpView) -> Types | None:
    """Return the output, two statistics and the sum that was normalised."""
    outputs = _normalized(op)
    return None if outputs is None else (*outputs, input_of(op, 0))


def _dropout(op: OpView) -> Types | None:
    """Return the output and a mask: one bool, or one bit, for each element."""
    data = input_of(op, 0)
    if data is None:
        return None
    if op.kind == "BiasDropout":
        return (data, TensorType("bool", data.shape))
    return (data, TensorType("uint32", (math.ceil(data.size / 32),)))


def _split_gelu(op: OpView) -> Types | None:
    """Return half of the last axis."""
    data = input_of(op, 0)
    if data is None or not data.shape:
        return None
    return (TensorType(data.dtype, (*data.shape[:-1], data.shape[-1] // 2)),)


def _concat(op: OpView) -> Types | None:
    """Return the inputs 2, 5, 8, ... joined: each is followed by scale and zero."""
    parts = [tensor for tensor in op.inputs[2::3] if tensor is not None]
    if not parts or len(parts) != len(op.inputs[2::3]) or not parts[0].shape:
        return None
    first = parts[0]
    axis = int_attribute(op, "axis", 1)
    if not -len(first.shape) <= axis < len(first.shape):
        return None
    shape = list(first.shape)
    shape[axis] = sum(dim(part.shape, axis) for part in parts)
    return (TensorType(first.dtype, tuple(shape)),)


def _reduce(dtype: str | None = None) -> ShapeRule:
    """Return the rule of a reduction by the attributes axes and keepdims."""

    def rule(op: OpView) -> Types | None:
        data = input_of(op, 0)
        if data is None:
            return None
        rank = len(data.shape)
        axes = ints_attribute(op, "axes") or tuple(range(rank))
        reduced = {axis % rank for axis in axes} if rank else set()
        keeps = int_attribute(op, "keepdims", 1)
        shape = tuple(
            1 if axis in reduced else size
            for axis, size in enumerate(data.shape)
            if keeps or axis not in reduced
        )
        return (TensorType(dtype or data.dtype, shape),)

    return rule


def _lstm(op: OpView) -> Types | None:
    """Return [T, D, B, H] and the last hidden and cell states [D, B, H]."""
    data, recurrent = input_of(op, 0), input_of(op, 2)
    if data is None or recurrent is None or len(data.shape) != 3:
        return None
    steps, batch, _ = data.shape
    hidden = int_attribute(op, "hidden_size", 0) or dim(recurrent.shape, 1)
    directions = dim(recurrent.shape, 0)
    state = TensorType(data.dtype, (directions, batch, hidden))
    return (TensorType(data.dtype, (steps, *state.shape)), state, state)


def _crop_and_resize(op: OpView) -> Types | None:
    """Return [regions, C, height, width], of which the sizes are an input."""
    data, regions, size = input_of(op, 0), input_of(op, 1), int_constants(op, 3)
    if data is None or regions is None or size is None or len(size) != 2:
        return None
    shape = (dim(regions.shape, 0), dim(data.shape, 1), *size)
    return (TensorType(data.dtype, shape),)


def _grid_sample(op: OpView) -> Types | None:
    """Return [N, C] of the image and the positions of the grid."""
    data, grid = input_of(op, 0), input_of(op, 1)
    if data is None or grid is None:
        return None
    return (TensorType(data.dtype, (*data.shape[:2], *grid.shape[1:-1])),)


def _expand_dims(op: OpView) -> Types | None:
    """Return the shape with a 1 at the axis."""
    data, axes = input_of(op, 0), int_constants(op, 1)
    if data is None or not axes:
        return None
    rank = len(data.shape) + 1
    if not -rank <= axes[0] < rank:
        return None
    axis = axes[0] % rank
    return (TensorType(data.dtype, (*data.shape[:axis], 1, *data.shape[axis:])),)


def _range(op: OpView) -> Types | None:
    """Return the count from start to limit by delta, where all are known."""
    first = input_of(op, 0)
    values = [v for v in op.constants[:3] if v is not None and v.size == 1]
    if first is None or len(values) != len(op.inputs):
        return None
    start, limit, *rest = (float(v.reshape(-1)[0]) for v in values)
    delta = rest[0] if rest else 1.0
    if not delta:
        return None
    count = max(math.ceil((limit - start) / delta), 0)
    return (TensorType(first.dtype, (count,)),)


def _pad(op: OpView) -> Types | None:
    """Return the shape with the pads' begins and ends added."""
    data, pads = input_of(op, 0), int_constants(op, 1)
    if data is None or pads is None or len(pads) != 2 * len(data.shape):
        return None
    rank = len(data.shape)
    shape = (n + pads[axis] + pads[axis + rank] for axis, n in enumerate(data.shape))
    return (TensorType(data.dtype, tuple(max(n, 0) for n in shape)),)


def _gather_nd(op: OpView) -> Types | None:
    """Return one slice for each index tuple."""
    data, indices = input_of(op, 0), input_of(op, 1)
    if data is None or indices is None or not indices.shape:
        return None
    shape = (*indices.shape[:-1], *data.shape[indices.shape[-1] :])
    return (TensorType(data.dtype, shape),)


def _embedding(op: OpView) -> Types | None:
    """Return one row of the table for each index."""
    table, indices = input_of(op, 0), input_of(op, 1)
    if table is None or indices is None:
        return None
    return (TensorType(table.dtype, (*indices.shape, *table.shape[1:])),)


def _gather_quantized(op: OpView) -> Types | None:
    """Return the gathered rows in the scales' dtype; uint8 packs 8 / bits each."""
    data, indices, scales = (input_of(op, position) for position in range(3))
    if data is None or indices is None or scales is None or not data.shape:
        return None
    axis = int_attribute(op, "gather_axis", 0) % len(data.shape)
    packed = 8 // max(int_attribute(op, "bits", 4), 1) if data.dtype == "uint8" else 1
    table = (*data.shape[:-1], data.shape[-1] * max(packed, 1))
    shape = (*table[:axis], *indices.shape, *table[axis + 1 :])
    return (TensorType(scales.dtype, shape),)


def _is_finite(op: OpView) -> Types | None:
    """Return one bool."""
    del op
    return (TensorType("bool", ()),)


_SAME_AS_FIRST = (
    "BiasAdd",
    "BiasGelu",
    "BiasSoftmax",
    "BranchwiseRMSNorm",
    "FastGelu",
    "GatedAdd",
    "GatedRMSNorm",
    "Gelu",
    "GroupNorm",
    "Inverse",
    "MRotaryEmbedding",
    "MoE",
    "MoEPacked",
    "QLinearLeakyRelu",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QMoE",
    "QOrderedGelu",
    "QOrderedLayerNormalization",
    "QuickGelu",
    "RotaryEmbedding",
    "SampleOp",
    "ScaledSiLU",
    "SwiGLU",
    "Trilu",
)

_RULES: Mapping[str, ShapeRule] = {
    **attention_shapes.RULES,
    **product_shapes.RULES,
    **window_shapes.RULES,
    **dict.fromkeys(_SAME_AS_FIRST, _like(0)),
    "BiasDropout": _dropout,
    "BiasSplitGelu": _split_gelu,
    "BitmaskBiasDropout": _dropout,
    "BitmaskDropout": _dropout,
    "ComplexMul": _broadcast(0, 1),
    "ComplexMulConj": _broadcast(0, 1),
    "CropAndResize": _crop_and_resize,
    "DequantizeLinear": _dequantize,
    "DequantizeWithOrder": _dequantize_ordered,
    "DynamicQuantizeLSTM": _lstm,
    "ExpandDims": _expand_dims,
    "GatherBlockQuantized": _gather_quantized,
    "GatherND": _gather_nd,
    "GemmaRotaryEmbedding": _like(1, 3),
    "GridSample": _grid_sample,
    "IsAllFinite": _is_finite,
    "MulInteger": _broadcast(0, 2, dtype="int32"),
    "MurmurHash3": _hash,
    "NGramRepeatBlock": _like(1),
    "Pad": _pad,
    "QLinearAdd": _broadcast(0, 3),
    "QLinearConcat": _concat,
    "QLinearMul": _broadcast(0, 3),
    "QLinearReduceMean": _reduce(),
    "QLinearWhere": _where,
    "QuantizeLinear": _quantize,
    "QuantizeWithOrder": _typed("int8"),
    "Range": _range,
    "ReduceSumInteger": _reduce("int32"),
    "SkipGroupNorm": _like(0, 0),
    "SkipLayerNormalization": _skip_normalized,
    "SkipSimplifiedLayerNormalization": _skip_normalized,
    "TorchEmbedding": _embedding,
}

# onnxruntime writes these into the default domain, before or beside ONNX's own.
_DEFAULT_RULES: Mapping[str, ShapeRule] = {
    "LayerNormalization": _normalized,
    "SimplifiedLayerNormalization": _normalized,
}


def infer_outputs(op: OpView) -> tuple[TensorType | None, ...] | None:
    """Return the type of each output, or None without a shape rule for the op.

    None also where an input that decides is unknown. The answer has one entry for each
    entry of ``op.outputs``; None for an output whose type stays unknown.
    """
    rules = {"com.microsoft": _RULES, "": _DEFAULT_RULES, "ai.onnx": _DEFAULT_RULES}
    rule = rules.get(op.domain, {}).get(op.kind)
    types = None if rule is None else rule(op)
    if types is None:
        return None
    count = len(op.outputs)
    return (*types[:count], *(None,) * (count - len(types)))
