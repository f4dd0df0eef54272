"""Sequences and optionals: element type and length, as far as they are static."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from onnx import TensorProto

from mcmpart.frontends.onnx.scope import Context, Node
from mcmpart.frontends.onnx.values import Container, Value, read_type

_UNKNOWN_LENGTH = "the length of a sequence depends on data: taken as 1"


def sequence_outputs(context: Context, node: Node) -> tuple[Value | None, ...] | None:
    """Return the outputs of an op on sequences or optionals, None for another op."""
    rule = _RULES.get(node.kind) if not node.domain else None
    if rule is None or not node.proto.output or not node.proto.output[0]:
        return None
    value = rule(node)
    if value is None:
        return None
    if value.container == "sequence":
        if value.length < 0:
            context.assumptions.add(_UNKNOWN_LENGTH, node.name_of(0))
            value = replace(value, length=1)
        context.assumptions.add(
            "a sequence is counted as its elements side by side, each as large as "
            "the largest",
            f"{node.name_of(0)} ({value.length} x {list(value.shape or ())})",
        )
    return (value,)


def _input(node: Node, position: int) -> Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def _construct(node: Node) -> Value | None:
    return _sequence([v for v in node.inputs if v is not None], len(node.inputs))


def _sequence(elements: list[Value], length: int) -> Value | None:
    if not elements or any(v.shape is None for v in elements):
        return None
    largest = max(elements, key=lambda v: v.bytes)
    return Value(largest.elem, largest.shape, "sequence", length)


def _empty(node: Node) -> Value | None:
    return Value(node.integer("dtype", TensorProto.FLOAT), (), "sequence", 0)


def _insert(node: Node) -> Value | None:
    before, new = _input(node, 0), _input(node, 1)
    if before is None or new is None:
        return None
    elements = [replace(before, container="", length=1)] if before.length else []
    return _sequence([*elements, new], before.length + 1)


def _erase(node: Node) -> Value | None:
    before = _input(node, 0)
    if before is None or before.shape is None:
        return None
    return replace(before.opaque(), length=max(0, before.length - 1))


def _at(node: Node) -> Value | None:
    sequence = _input(node, 0)
    if sequence is None or sequence.shape is None:
        return None
    return Value(sequence.elem, sequence.shape)


def _concat(node: Node) -> Value | None:
    sequence = _input(node, 0)
    if sequence is None or sequence.shape is None or not sequence.length:
        return None
    shape = list(sequence.shape)
    if node.integer("new_axis", 0):
        axis = node.integer("axis", 0) % (len(shape) + 1)
        shape.insert(axis, sequence.length)
    else:
        axis = node.integer("axis", 0) % max(len(shape), 1)
        shape[axis] *= sequence.length
    return Value(sequence.elem, tuple(shape))


def _split(node: Node) -> Value | None:
    whole, sizes = _input(node, 0), _input(node, 1)
    if whole is None or not whole.shape:
        return None
    axis = node.integer("axis", 0) % len(whole.shape)
    total = whole.shape[axis]
    shape = list(whole.shape)
    if sizes is None:
        length = total
        shape[axis] = 1
        if not node.integer("keepdims", 1):
            del shape[axis]
    elif sizes.const is None:
        length = -1
    elif sizes.const.ndim:
        length = sizes.const.size
        shape[axis] = int(sizes.const.max(initial=0))
    else:
        each = max(1, int(sizes.const))
        length, shape[axis] = -(-total // each), min(each, total)
    return Value(whole.elem, tuple(shape), "sequence", length)


def _optional(node: Node) -> Value | None:
    inner = _input(node, 0)
    if inner is not None:
        container: Container = inner.container or "optional"
        return replace(inner.opaque(), container=container)
    attribute = node.attribute("type")
    if attribute is None:
        return None
    _, elem, shape = read_type(attribute.tp)
    sizes = tuple(size if isinstance(size, int) else 1 for size in shape or ())
    return Value(elem, sizes, "optional")


def _element(node: Node) -> Value | None:
    inner = _input(node, 0)
    if inner is None or inner.shape is None:
        return None
    return replace(
        inner.opaque(), container="sequence" if inner.container == "sequence" else ""
    )


_Rule: TypeAlias = Callable[[Node], "Value | None"]
_RULES: Mapping[str, _Rule] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SplitToSequence": _split,
}
