"""Upper bounds of shapes that depend on data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from mcmpart.frontends.onnx.scope import Context, Node
from mcmpart.frontends.onnx.values import Value

Shapes: TypeAlias = dict[int, tuple[int, ...]]


def upper_bounds(context: Context, node: Node) -> Shapes:
    """Return the largest shape each output can have, by position, where one is known.

    Every bound becomes an assumption that names the tensor and the shape taken.
    """
    rule = _RULES.get(node.kind) if not node.domain else None
    if rule is None or any(v is not None and v.shape is None for v in node.inputs):
        return {}
    shapes = {
        i: shape
        for i, shape in rule(node).items()
        if i < len(node.proto.output) and node.proto.output[i]
    }
    for i, shape in shapes.items():
        context.assumptions.add(
            f"the size of a {node.kind} output depends on data: taken as the most its "
            "inputs allow",
            f"{node.name_of(i)} {list(shape)}",
        )
    return shapes


def _shape(node: Node, position: int) -> tuple[int, ...]:
    value = node.inputs[position] if position < len(node.inputs) else None
    return value.shape or () if value is not None else ()


def _axis(node: Node, name: str, rank: int) -> int | None:
    attribute = node.attribute(name)
    return None if attribute is None else int(attribute.i) % max(rank, 1)


def _nonzero(node: Node) -> Shapes:
    shape = _shape(node, 0)
    return {0: (max(len(shape), 1), math.prod(shape))}


def _unique(node: Node) -> Shapes:
    shape = _shape(node, 0)
    axis = _axis(node, "axis", len(shape))
    length = math.prod(shape) if axis is None else shape[axis]
    first = (length,) if axis is None else shape
    return {0: first, 1: (length,), 2: (length,), 3: (length,)}


def _compress(node: Node) -> Shapes:
    shape, condition = _shape(node, 0), _shape(node, 1)
    axis = _axis(node, "axis", len(shape))
    if axis is None:
        return {0: (min(math.prod(shape), *condition),)}
    kept = min(shape[axis], *condition)
    return {0: (*shape[:axis], kept, *shape[axis + 1 :])}


def _top_k(node: Node) -> Shapes:
    return dict.fromkeys((0, 1), _shape(node, 0))


def _slice(node: Node) -> Shapes:
    return {0: _shape(node, 0)}


def _suppression(node: Node) -> Shapes:
    batches, boxes = _shape(node, 0)[:2]
    classes = _shape(node, 1)[1]
    limit: Value | None = node.inputs[2] if len(node.inputs) > 2 else None
    kept = boxes
    if limit is not None and limit.const is not None:
        kept = min(boxes, max(0, int(limit.const.reshape(-1)[0])))
    return {0: (batches * classes * kept, 3)}


_RULES: Mapping[str, Callable[[Node], Shapes]] = {
    "Compress": _compress,
    "NonMaxSuppression": _suppression,
    "NonZero": _nonzero,
    "Slice": _slice,
    "TopK": _top_k,
    "Unique": _unique,
}
