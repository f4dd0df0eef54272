"""Control flow: If, Loop, Scan and SequenceMap, each one op with the work of its body.

A rule reads the bodies with :class:`ReadBody` and answers with an :class:`Outcome`:
output types, work, and what the bodies read from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from onnx import TensorProto

from mcmpart.frontends.onnx.scope import Context, Node
from mcmpart.frontends.onnx.values import Value
from mcmpart.frontends.onnx.work import Work, larger

_ENDLESS = 2**31 - 1
"""Exporters write a while loop as a Loop with a limit of at least this."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a node amounts to.

    Attributes
    ----------
    outputs
        One entry per output position, None where it has no name.
    captured
        Values of the main graph and weights that bodies read.
    is_constant
        The outputs are constants: the node is no op.
    """

    outputs: tuple[Value | None, ...]
    work: Work = field(default_factory=Work)
    captured: tuple[Value, ...] = ()
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read: its outputs, its work, what it reads from outside."""

    outputs: tuple[Value, ...]
    work: Work
    captured: tuple[Value, ...]


class ReadBody(Protocol):
    """Reads the body that a node holds as the attribute ``name``."""

    def __call__(self, node: Node, name: str, inputs: Sequence[Value | None]) -> Body:
        """Return the body, read with ``inputs`` as its formal inputs."""
        ...


ControlRule: TypeAlias = Callable[[Context, Node, ReadBody], Outcome]


def control_rule(node: Node) -> ControlRule | None:
    """Return the rule of a control-flow op, None for another op."""
    if node.domain:
        return None
    if node.kind == "Scan" and node.opset < 9:
        # Scan-8 has a batch axis of its own; its schema knows the output types.
        return None
    return _RULES.get(node.kind)


def _if(context: Context, node: Node, read: ReadBody) -> Outcome:
    condition = node.inputs[0]
    if condition is not None and condition.const is not None:
        taken = bool(condition.const.reshape(-1)[0])
        context.notes.add(
            "the condition of an If is constant, so only the branch it takes counts",
            node.scope.path + node.key,
        )
        body = read(node, "then_branch" if taken else "else_branch", ())
        return _taken(body)
    yes, no = read(node, "then_branch", ()), read(node, "else_branch", ())
    outputs = []
    for a, b in zip(yes.outputs, no.outputs, strict=False):
        if (a.elem, a.shape) != (b.elem, b.shape) and a.cause < 0 and b.cause < 0:
            context.assumptions.add(
                "the branches of an If return different shapes: the larger is taken",
                node.scope.path + node.key,
            )
        chosen = a if a.cause >= 0 or (b.cause < 0 and a.bytes >= b.bytes) else b
        outputs.append(chosen)
    return Outcome(
        _outside(outputs), larger(yes.work, no.work), (*yes.captured, *no.captured)
    )


def _taken(body: Body) -> Outcome:
    """Return the outcome of the one branch that runs."""
    if body.outputs and all(v.const is not None for v in body.outputs):
        return Outcome(tuple(v.anonymous() for v in body.outputs), is_constant=True)
    return Outcome(_outside(body.outputs), body.work, body.captured)


def _loop(context: Context, node: Node, read: ReadBody) -> Outcome:
    carried = node.inputs[2:]
    condition = Value(TensorProto.BOOL, ())
    inputs = [Value(TensorProto.INT64, ()), condition]
    body = read(node, "body", [*inputs, *(v and v.opaque() for v in carried)])
    trips = _trips(context, node, body.outputs[0], condition)
    states = list(body.outputs[1 : 1 + len(carried)])
    for before, after in zip(carried, states, strict=False):
        if before is not None and before.shape != after.shape and after.cause < 0:
            context.assumptions.add(
                "a Loop carries a tensor that changes its shape: taken as after one "
                "trip",
                node.scope.path + node.key,
            )
    scanned = [_stacked(v, trips, 0) for v in body.outputs[1 + len(carried) :]]
    return Outcome(_outside([*states, *scanned]), body.work.times(trips), body.captured)


def _trips(context: Context, node: Node, after: Value, before: Value) -> int:
    """Return the trip count of a Loop, or what is assumed of it."""
    limit = node.inputs[0] if node.inputs else None
    start = node.inputs[1] if len(node.inputs) > 1 else None
    where = repr(node.scope.path + node.key)
    if limit is None or limit.const is None or limit.const.reshape(-1)[0] >= _ENDLESS:
        context.assumptions.add(f"trip count of Loop {where} unknown: taken as 1")
        return 1
    trips = max(0, int(limit.const.reshape(-1)[0]))
    runs_on = after is before or (after.const is not None and bool(after.const.all()))
    starts = start is None or (start.const is not None and bool(start.const.all()))
    if not (runs_on and starts):
        context.assumptions.add(
            f"Loop {where} may end early: taken as its limit of {trips} trips"
        )
    return trips


def _scan(context: Context, node: Node, read: ReadBody) -> Outcome:
    num_scanned = node.integer("num_scan_inputs", 1)
    num_states = len(node.inputs) - num_scanned
    axes = node.integers("scan_input_axes") or (0,) * num_scanned
    inputs: list[Value | None] = [v and v.opaque() for v in node.inputs[:num_states]]
    trips = -1
    for value, axis in zip(node.inputs[num_states:], axes, strict=False):
        if value is None or not value.shape:
            inputs.append(value and value.opaque())
            continue
        trips = value.shape[axis]
        kept = list(value.shape)
        del kept[axis]
        inputs.append(replace(value.opaque(), shape=tuple(kept)))
    if trips < 0:
        trips = 1
        context.assumptions.add(
            f"trip count of Scan {node.scope.path + node.key!r} unknown: taken as 1"
        )
    body = read(node, "body", inputs)
    num_stacked = len(body.outputs) - num_states
    out_axes = node.integers("scan_output_axes") or (0,) * num_stacked
    stacked = [
        _stacked(value, trips, axis)
        for value, axis in zip(body.outputs[num_states:], out_axes, strict=False)
    ]
    return Outcome(
        _outside([*body.outputs[:num_states], *stacked]),
        body.work.times(trips),
        body.captured,
    )


def _sequence_map(context: Context, node: Node, read: ReadBody) -> Outcome:
    del context
    first = node.inputs[0]
    trips = first.length if first is not None else 0
    elements = [v and replace(v.opaque(), container="", length=1) for v in node.inputs]
    body = read(node, "body", elements)
    outputs = [replace(v, container="sequence", length=trips) for v in body.outputs]
    return Outcome(_outside(outputs), body.work.times(trips), body.captured)


def _stacked(value: Value, trips: int, axis: int) -> Value:
    if value.shape is None:
        return value
    shape = list(value.shape)
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, trips)
    return Value(value.elem, tuple(shape))


def _outside(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(value.opaque() for value in values)


_RULES: Mapping[str, ControlRule] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
