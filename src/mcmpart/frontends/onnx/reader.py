"""One forward pass over the nodes of a model, its bodies and its functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from onnx import AttributeProto, FunctionProto

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.bodies import Body, Outcome, control_rule
from mcmpart.frontends.onnx.domains import opset_versions
from mcmpart.frontends.onnx.fold import (
    constant_node,
    evaluate,
    is_foldable,
    shape_node,
    smaller_than_input,
)
from mcmpart.frontends.onnx.infer import check_arity, output_values
from mcmpart.frontends.onnx.scope import Context, Node, Scope, bound
from mcmpart.frontends.onnx.structure import Block, block_of
from mcmpart.frontends.onnx.values import Value, stated_types
from mcmpart.frontends.onnx.work import Work, work_of
from mcmpart.frontends.op_costs import is_random

_MOST_CALLS = 64
"""Functions nested deeper than this are refused; no exporter nests so deep."""

_FunctionKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """One node that was read: its index in the block, and what it amounts to."""

    index: int
    node: Node
    outcome: Outcome


@dataclass(slots=True)
class Reader:
    """Reads blocks of nodes, each in the scope of its values."""

    context: Context
    _blocks: dict[_FunctionKey, Block] = field(default_factory=dict)
    _calls: dict[tuple[object, ...], Outcome] = field(default_factory=dict)

    def steps(self, block: Block, scope: Scope) -> Iterator[Step]:
        """Read the live nodes in order; their outputs become values of ``scope``."""
        for index in block.order:
            proto = bound(block.nodes[index], scope.attributes)
            key = block.keys[index]
            reader = f"node {scope.path + key!r}"
            inputs = tuple(scope.find(name, reader) for name in proto.input)
            node = Node(proto, key, inputs, scope)
            outcome = self.read(node)
            self._bind(node, outcome)
            yield Step(index, node, outcome)

    def read(self, node: Node) -> Outcome:
        """Return what one node amounts to."""
        function = self.context.functions.get(_function_key(node))
        if function is not None:
            return self._call(node, function)
        rule = control_rule(node)
        if rule is not None:
            check_arity(node)
            outcome = rule(self.context, node, self._body)
            return replace(outcome, outputs=_named(node, outcome.outputs))
        known = constant_node(self.context.initializers, node) or shape_node(node)
        if known is not None:
            return Outcome((known,), is_constant=True)
        foldable = is_foldable(node) and not _is_training(node)
        constants = smaller_than_input(node) if foldable else None
        if constants is not None:
            return Outcome(constants, is_constant=True)
        outputs = output_values(self.context, node)
        constants = evaluate(node, outputs) if foldable else None
        if constants is not None:
            return Outcome(constants, is_constant=True)
        if node.kind == "Identity" and node.scope.path and not node.domain:
            # Inside a body the name changes, not the value: a Loop that passes its
            # condition on is seen to run on.
            outputs = node.inputs[:1]
        _note_randomness(self.context, node)
        return Outcome(outputs, work_of(self.context, node, outputs))

    def _bind(self, node: Node, outcome: Outcome) -> None:
        """Name the outputs: tensors of the main graph, or weights when constant."""
        scope = node.scope
        for name, value in zip(node.proto.output, outcome.outputs, strict=False):
            if not name or value is None:
                continue
            if outcome.is_constant:
                bound_value = replace(value, weight=scope.path + name)
            elif scope.path:
                bound_value = value
            else:
                bound_value = replace(value, tensor=name)
            scope.values[name] = bound_value

    def _body(self, node: Node, name: str, inputs: Sequence[Value | None]) -> Body:
        attribute = node.attribute(name)
        if attribute is None:
            raise InputError(
                f"node {node.scope.path + node.key!r} ({node.kind}) has no {name}: "
                "export the model again"
            )
        graph = attribute.g
        path = f"{node.scope.path}{node.key}/{name}/"
        values = dict(self.context.initializers.values(graph, path))
        formal = [v.name for v in graph.input if v.name not in values]
        if len(inputs) != len(formal):
            raise InputError(
                f"the {name} of node {node.scope.path + node.key!r} ({node.kind}) "
                f"takes {len(formal)} inputs and is given {len(inputs)}: export the "
                "model again"
            )
        names = [*values, *formal]
        values |= {n: v for n, v in zip(formal, inputs, strict=True) if v is not None}
        scope = Scope(
            values=values,
            opsets=node.scope.opsets,
            annotations=stated_types((*graph.value_info, *graph.output)),
            attributes=node.scope.attributes,
            parent=node.scope,
            path=path,
            calls=node.scope.calls,
        )
        block = block_of(graph, names, [v.name for v in graph.output])
        return self._read_block(block, scope)

    def _read_block(self, block: Block, scope: Scope) -> Body:
        work = Work()
        used: dict[tuple[str, str], Value] = {}

        def use(values: Sequence[Value | None]) -> None:
            for value in values:
                if value is not None and (value.tensor or value.weight):
                    used[value.tensor, value.weight] = value

        for step in self.steps(block, scope):
            if not step.outcome.is_constant:
                work += step.outcome.work
                use(step.node.inputs)
                use(step.outcome.captured)
        outputs = tuple(
            scope.get(name, f"the end of {scope.path!r}") for name in block.outputs
        )
        use(outputs)
        return Body(outputs, work, tuple(used.values()))

    def _call(self, node: Node, function: FunctionProto) -> Outcome:
        key = _function_key(node)
        if key in node.scope.calls or len(node.scope.calls) >= _MOST_CALLS:
            chain = [
                f"{domain}::{name}" for domain, name, _ in (*node.scope.calls, key)
            ]
            raise InputError(
                f"the functions {' -> '.join(chain[-4:])} call each other without end "
                f"or deeper than {_MOST_CALLS}: inline them"
            )
        attributes = {a.name: a for a in function.attribute_proto}
        attributes |= {a.name: a for a in node.proto.attribute}
        memo = (key, _fingerprint(node.inputs), _serialised(attributes))
        if memo not in self._calls:
            self._calls[memo] = self._read_call(node, function, attributes)
        outcome = self._calls[memo]
        return replace(outcome, outputs=_named(node, outcome.outputs))

    def _read_call(
        self,
        node: Node,
        function: FunctionProto,
        attributes: dict[str, AttributeProto],
    ) -> Outcome:
        key = _function_key(node)
        values = {
            name: value.anonymous()
            for name, value in zip(function.input, node.inputs, strict=False)
            if value is not None
        }
        block = self._blocks.get(key)
        if block is None:
            block = block_of(function, function.input, function.output)
            self._blocks[key] = block
        imports = {i.domain: i.version for i in function.opset_import}
        scope = Scope(
            values=values,
            opsets={**node.scope.opsets, **opset_versions(imports)},
            annotations=stated_types(function.value_info),
            attributes=attributes,
            path="::".join(part for part in key if part) + "/",
            calls=(*node.scope.calls, key),
            absent=frozenset(name for name in function.input if name not in values),
        )
        body = self._read_block(block, scope)
        constants = [v for v in body.outputs if v.const is not None]
        return Outcome(
            outputs=tuple(v.anonymous() for v in body.outputs),
            work=body.work,
            captured=body.captured,
            is_constant=bool(body.outputs) and len(constants) == len(body.outputs),
        )


def _function_key(node: Node) -> _FunctionKey:
    return node.domain, node.kind, str(node.proto.overload)


def _named(node: Node, values: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """Return the values of the outputs that have a name."""
    names = node.proto.output
    if len(values) < len(names):
        raise InputError(
            f"node {node.scope.path + node.key!r} ({node.kind}) has {len(names)} "
            f"outputs and its body gives {len(values)}: export the model again"
        )
    return tuple(
        value if name else None for name, value in zip(names, values, strict=False)
    )


def _fingerprint(values: Sequence[Value | None]) -> tuple[object, ...]:
    return tuple(
        v
        and (
            v.elem,
            v.shape,
            v.container,
            v.length,
            v.cause,
            None if v.const is None else v.const.tobytes(),
        )
        for v in values
    )


def _serialised(attributes: dict[str, AttributeProto]) -> tuple[bytes, ...]:
    return tuple(
        attributes[name].SerializeToString(deterministic=True)
        for name in sorted(attributes)
    )


def _is_training(node: Node) -> bool:
    """Return whether the node is a Dropout that drops: ONNX Dropout, training_mode."""
    if node.kind != "Dropout" or node.domain:
        return False
    if node.opset < 7:
        return not node.integer("is_test", 0)
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    return mode is not None and (mode.const is None or bool(mode.const.all()))


def _note_randomness(context: Context, node: Node) -> None:
    where = node.scope.path + node.key
    if _is_training(node):
        context.notes.add(
            "Dropout in training mode is random: two runs of the model differ", where
        )
    elif is_random(node.domain, node.kind):
        context.notes.add("random op: two runs of the model differ", where)
