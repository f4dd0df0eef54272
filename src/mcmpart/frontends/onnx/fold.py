"""Constant evaluation of one node: shapes, axes and what is made of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from mcmpart.frontends.onnx.initializers import SMALL_BYTES, Initializers, sparse_shape
from mcmpart.frontends.onnx.scope import Node
from mcmpart.frontends.onnx.values import Value
from mcmpart.frontends.op_costs import is_random

# Folding these would store int8 weights as fp32, four times their size.
_KEPT_KINDS = frozenset({"DequantizeLinear", "QuantizeLinear"})

_LITERALS: Mapping[int, type[np.generic]] = {
    AttributeProto.FLOAT: np.float32,
    AttributeProto.FLOATS: np.float32,
    AttributeProto.INT: np.int64,
    AttributeProto.INTS: np.int64,
}


def constant_node(initializers: Initializers, node: Node) -> Value | None:
    """Return the value of a Constant node, None for another kind."""
    if node.kind != "Constant" or node.domain:
        return None
    name = node.name_of(0)
    for attribute in node.proto.attribute:
        if attribute.type == AttributeProto.TENSOR:
            return initializers.value(attribute.t, name)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            sparse = attribute.sparse_tensor
            shape = sparse_shape(sparse, name)
            return Value(sparse.values.data_type, shape, weight=name)
        if attribute.type in (AttributeProto.STRING, AttributeProto.STRINGS):
            many = attribute.type == AttributeProto.STRINGS
            length = (len(attribute.strings),) if many else ()
            return Value(TensorProto.STRING, length, weight=name)
        dtype = _LITERALS.get(attribute.type)
        if dtype is not None:
            array = np.asarray(helper.get_attribute_value(attribute), dtype)
            elem = helper.np_dtype_to_tensor_dtype(array.dtype)
            return Value(elem, array.shape, const=array, weight=name)
    return None


def shape_node(node: Node) -> Value | None:
    """Return the value of a Shape or Size node whose input has a static shape."""
    if node.kind not in ("Shape", "Size") or node.domain:
        return None
    value = node.inputs[0] if node.inputs else None
    if value is None or value.shape is None or value.container:
        return None
    sizes = np.array(value.shape, np.int64)
    if node.kind == "Size":
        array = np.array(sizes.prod(), np.int64)
    else:
        start = node.integer("start", 0)
        end = node.integer("end", sizes.size)
        array = sizes[_clamped(start, sizes.size) : _clamped(end, sizes.size)]
    return Value(TensorProto.INT64, array.shape, const=array)


def is_foldable(node: Node) -> bool:
    """Return whether every input is a known constant and the op always does the same.

    Such a node may still be too large to evaluate: its output types tell.
    """
    return (
        bool(node.inputs)
        and not node.domain
        and node.kind not in _KEPT_KINDS
        and not is_random(node.domain, node.kind)
        and all(v is None or v.const is not None for v in node.inputs)
    )


def evaluate(
    node: Node, outputs: tuple[Value | None, ...]
) -> tuple[Value | None, ...] | None:
    """Return the outputs with their values, None where they cannot be computed.

    ``outputs`` are the types, found before: a large output is not computed.
    """
    named = [v for v in outputs if v is not None]
    if any(v.shape is None or v.bytes > SMALL_BYTES or v.container for v in named):
        return None
    arrays = _run(node)
    if arrays is None:
        return None
    values: list[Value | None] = []
    for name, value in zip(node.proto.output, outputs, strict=True):
        if value is None:
            values.append(None)
            continue
        array = arrays[name]
        if array.dtype == object:
            return None
        # The reference computes some ops in a wider type than they return.
        typed = array.astype(helper.tensor_dtype_to_np_dtype(value.elem), copy=False)
        values.append(Value(value.elem, typed.shape, const=typed))
    return tuple(values)


def smaller_than_input(node: Node) -> tuple[Value | None, ...] | None:
    """Return the outputs of a constant node whose size depends on its data.

    The ops here never return more elements than they read, so they are evaluated
    without knowing their output types; None for another op.
    """
    arrays = _run(node) if node.kind in ("Compress", "NonZero", "Unique") else None
    if arrays is None or any(a.dtype == object for a in arrays.values()):
        return None
    return tuple(
        Value(helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, const=a)
        if (a := arrays.get(name)) is not None
        else None
        for name in node.proto.output
    )


def _run(node: Node) -> dict[str, NDArray[np.generic]] | None:
    """Return the outputs by name as ONNX's reference computes them, or None."""
    proto = node.proto
    if proto.domain:
        # The default domain under its long name, which the reference does not know.
        proto = NodeProto()
        proto.CopyFrom(node.proto)
        proto.domain = ""
    names = [name for name in proto.output if name]
    feeds = {
        name: value.const
        for name, value in zip(proto.input, node.inputs, strict=True)
        if value is not None
    }
    imports = [helper.make_opsetid("", node.opset)]
    function = helper.make_function(
        "mcmpart", "fold", list(feeds), names, [proto], imports
    )
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(function).run(None, feeds, {})
    except Exception:
        # The reference lacks some ops and versions, each in its own way; a node that
        # is not evaluated simply stays an op.
        return None
    return {name: np.asarray(array) for name, array in zip(names, found, strict=True)}


def _clamped(index: int, rank: int) -> int:
    return min(max(index + rank if index < 0 else index, 0), rank)
