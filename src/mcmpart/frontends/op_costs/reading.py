"""Safe reads of an op: an absent tensor, axis or attribute gives a neutral value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView, TensorType


def input_of(op: OpView, position: int) -> TensorType | None:
    """Return the input at a position, None where it is absent or unknown."""
    return op.inputs[position] if position < len(op.inputs) else None


def output_of(op: OpView, position: int) -> TensorType | None:
    """Return the output at a position, None where it is absent or unknown."""
    return op.outputs[position] if position < len(op.outputs) else None


def in_shape(op: OpView, position: int) -> tuple[int, ...]:
    """Return an input's shape; () where it is absent."""
    tensor = input_of(op, position)
    return () if tensor is None else tensor.shape


def out_shape(op: OpView, position: int = 0) -> tuple[int, ...]:
    """Return an output's shape; () where it is unknown."""
    tensor = output_of(op, position)
    return () if tensor is None else tensor.shape


def in_size(op: OpView, position: int) -> int:
    """Return an input's number of elements; 0 where it is absent."""
    tensor = input_of(op, position)
    return 0 if tensor is None else tensor.size


def out_size(op: OpView) -> int:
    """Return the first output's elements; the largest input's where it is unknown."""
    tensor = output_of(op, 0)
    if tensor is not None:
        return tensor.size
    return max((t.size for t in op.inputs if t is not None), default=0)


def in_bytes(op: OpView, *positions: int) -> int:
    """Return the bytes of the inputs at these positions, of all where none is given."""
    chosen = positions or range(len(op.inputs))
    tensors = (input_of(op, position) for position in chosen)
    return sum(t.bytes for t in tensors if t is not None)


def out_bytes(op: OpView) -> int:
    """Return the bytes of all outputs."""
    return sum(t.bytes for t in op.outputs if t is not None)


def all_bytes(op: OpView) -> int:
    """Return the bytes of all inputs read once and all outputs written once."""
    return in_bytes(op) + out_bytes(op)


def dim(shape: Sequence[int], axis: int, default: int = 1) -> int:
    """Return a dimension; the default where the shape has no such axis."""
    return shape[axis] if -len(shape) <= axis < len(shape) else default


def int_attribute(op: OpView, name: str, default: int) -> int:
    """Return an integer attribute, or the default."""
    value = op.attributes.get(name)
    return value if isinstance(value, int) else default


def text_attribute(op: OpView, name: str, default: str) -> str:
    """Return a string attribute, or the default."""
    value = op.attributes.get(name)
    return value if isinstance(value, str) else default


def ints_attribute(op: OpView, name: str) -> tuple[int, ...] | None:
    """Return an attribute that lists integers, or None."""
    value = op.attributes.get(name)
    if not isinstance(value, tuple):
        return None
    return tuple(v for v in value if isinstance(v, int))


def length_of_attribute(op: OpView, *names: str) -> int:
    """Return the length of the first of these list attributes that is there."""
    for name in names:
        value = op.attributes.get(name)
        if isinstance(value, tuple):
            return len(value)
    return 0


def int_constants(op: OpView, position: int) -> tuple[int, ...] | None:
    """Return an input's known integer values, flattened, or None."""
    value = op.constants[position] if position < len(op.constants) else None
    if value is None or value.dtype.kind not in "iub":
        return None
    return tuple(int(v) for v in value.reshape(-1))


def int_constant(op: OpView, position: int, default: int) -> int:
    """Return an input's known single integer value, or the default."""
    values = int_constants(op, position)
    return values[0] if values else default


def length_constant(op: OpView, position: int, default: int) -> int:
    """Return an input's known length, at least 0, or the default."""
    return max(int_constant(op, position, default), 0)


def log2_ceil(count: int) -> int:
    """Return the smallest p with 2 ** p >= count; 1 for a count of 0 or 1."""
    return max(1, math.ceil(math.log2(max(count, 1))))


def per_output(flops: int) -> CostRule:
    """Return the rule of an op that spends these FLOPs on each output element."""

    def rule(op: OpView) -> OpCost:
        return OpCost(flops * out_size(op), all_bytes(op))

    return rule


def per_input(flops: int) -> CostRule:
    """Return the rule of an op that spends these FLOPs on each input element."""

    def rule(op: OpView) -> OpCost:
        return OpCost(flops * in_size(op, 0), all_bytes(op))

    return rule
