"""Output types of one node: schema, shape rule, the file's own words, a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from onnx import (
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
)
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError, infer_node_outputs

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.bounds import upper_bounds
from mcmpart.frontends.onnx.scope import Context, Node, Unresolved
from mcmpart.frontends.onnx.sequences import sequence_outputs
from mcmpart.frontends.onnx.structure import kind_of
from mcmpart.frontends.onnx.values import (
    ELEM_OF_DTYPE,
    Container,
    PartialShape,
    Value,
    read_type,
    type_proto,
)
from mcmpart.frontends.op_costs import infer_outputs

_SHAPE_ELEMENTS = 1024
"""Longer constants are no shapes, axes or scales."""

# Ops with one input, whose output shape depends on its values.
_DATA_SHAPES = frozenset(
    {
        "ConstantOfShape",
        "ImageDecoder",
        "Loop",
        "Range",
        "Scan",
        "SequenceAt",
        "StringSplit",
    }
)

# Ops that keep their first input's shape and whose schemas, some versions of them,
# do not say so.
_SAME_SHAPE = frozenset(
    {
        "Binarizer",
        "Dropout",
        "Imputer",
        "MeanVarianceNormalization",
        "Normalizer",
        "Scaler",
    }
)

_Found = tuple[Container, int, PartialShape | None]


def output_values(context: Context, node: Node) -> tuple[Value | None, ...]:
    """Return the type of each output of ``node``, None where it has no name.

    An output whose shape cannot be found has ``cause`` set.

    Raises
    ------
    InputError
        The node's inputs do not fit its schema.
    """
    outputs = sequence_outputs(context, node)
    if outputs is not None:
        return outputs
    found = _by_schema(context, node)
    if found is None:
        found = _by_rule(node)
    return tuple(
        _output(context, node, i, found) if name else None
        for i, name in enumerate(node.proto.output)
    )


def _output(
    context: Context, node: Node, position: int, found: dict[int, _Found] | None
) -> Value:
    """Return one output: as found, else as the file says, else its upper bound."""
    name = str(node.proto.output[position])
    inferred = None if found is None else found.get(position)
    container, elem, shape = _annotated(node, name, inferred)
    if container == "map":
        shape = _first_shape(node)
    static = context.dims.complete(name, shape)
    if static is None and container != "sequence":
        static = upper_bounds(context, node).get(position)
    if static is None or not elem:
        has_rule = found is not None
        return _guess(context, node, position, elem, static, has_rule=has_rule)
    return Value(elem, static, container)


def check_arity(node: Node) -> None:
    """Refuse a control-flow or sequence op with too few inputs.

    Raises
    ------
    InputError
        Its schema asks for more.
    """
    schema = schema_of(node.domain, node.kind, node.opset)
    if schema is not None and len(node.inputs) < schema.min_input:
        raise InputError(
            f"node {node.scope.path + node.key!r} ({node.kind}) has "
            f"{len(node.inputs)} inputs and needs {schema.min_input}: export the "
            "model again"
        )


@cache
def schema_of(domain: str, kind: str, opset: int) -> defs.OpSchema | None:
    """Return the schema in force at ``opset``, or None for an op onnx does not know."""
    try:
        return defs.get_schema(kind, opset, domain)
    except defs.SchemaError:
        return None


def _by_schema(context: Context, node: Node) -> dict[int, _Found] | None:
    schema = schema_of(node.domain, node.kind, node.opset)
    if schema is None or schema.deprecated:
        return None
    if not schema.has_type_and_shape_inference_function:
        return None
    canonical = _canonical(node)
    types: dict[str, TypeProto] = {}
    data: dict[str, TensorProto] = {}
    for i, given in enumerate(node.inputs):
        if given is None:
            continue
        value = _as_scalar(given) if node.kind == "Range" else given
        types[f"i{i}"] = type_proto(value)
        const = value.const
        if const is not None and const.ndim < 2 and const.size <= _SHAPE_ELEMENTS:
            data[f"i{i}"] = numpy_helper.from_array(np.asarray(const), f"i{i}")
    try:
        inferred = infer_node_outputs(
            schema,
            canonical,
            types,
            data,
            opset_imports=_imports(tuple(sorted(node.scope.opsets.items()))),
        )
    except (InferenceError, ValidationError, ValueError) as error:
        # ValueError: a dtype or a text that onnx itself does not know.
        raise InputError(_misfit(context, node, str(error))) from error
    return {
        i: read_type(inferred[f"o{i}"])
        for i, name in enumerate(node.proto.output)
        if name and f"o{i}" in inferred
    }


def _as_scalar(value: Value) -> Value:
    """Return a one-element value as a scalar: models hold the limits of Range so."""
    if value.shape != (1,):
        return value
    const = None if value.const is None else value.const.reshape(())
    return replace(value, shape=(), const=const)


@cache
def _imports(opsets: tuple[tuple[str, int], ...]) -> list[OperatorSetIdProto]:
    return [helper.make_opsetid(domain, version) for domain, version in opsets]


def _canonical(node: Node) -> NodeProto:
    """Return a copy with names by position: a node may read one tensor twice."""
    proto = node.proto
    copy = NodeProto(op_type=proto.op_type, domain=node.domain)
    copy.input.extend(
        "" if value is None else f"i{i}" for i, value in enumerate(node.inputs)
    )
    copy.output.extend(name and f"o{i}" for i, name in enumerate(proto.output))
    copy.attribute.extend(proto.attribute)
    if node.kind == "STFT" and node.attribute("onesided") is None:
        # The default is 1; onnx's inference takes a missing one for 0.
        copy.attribute.append(helper.make_attribute("onesided", 1))
    return copy


def _by_rule(node: Node) -> dict[int, _Found] | None:
    types = infer_outputs(node.view((None,) * len(node.proto.output)))
    if types is None:
        return None
    return {
        i: ("", ELEM_OF_DTYPE[found.dtype], found.shape)
        for i, found in enumerate(types)
        if found is not None
    }


def _annotated(node: Node, name: str, found: _Found | None) -> _Found:
    """Return ``found`` with its gaps filled from what the file says of ``name``."""
    container, elem, shape = found or ("", 0, None)
    annotation = node.scope.annotations.get(name)
    if annotation is None or (elem and shape is not None and _static(shape)):
        return container, elem, shape
    stated = read_type(annotation)
    if shape is None or stated[2] is None or len(shape) != len(stated[2]):
        merged = stated[2] if shape is None else shape
    else:
        merged = tuple(
            mine if isinstance(mine, int) else theirs
            for mine, theirs in zip(shape, stated[2], strict=True)
        )
    return container or stated[0], elem or stated[1], merged


def _static(shape: Sequence[int | str | None]) -> bool:
    return all(isinstance(size, int) for size in shape)


def _first_shape(node: Node) -> PartialShape | None:
    """Return the shape of the first input: a map holds one value per element of it."""
    return next((v.shape for v in node.inputs if v is not None), None)


def _guess(
    context: Context,
    node: Node,
    position: int,
    elem: int,
    shape: tuple[int, ...] | None,
    *,
    has_rule: bool,
) -> Value:
    """Return an output taken like the first input, or one that is unresolved."""
    known = [v for v in node.inputs if v is not None]
    hidden = next((v for v in known if v.cause >= 0), None)
    if hidden is not None:
        return Value(elem or hidden.elem, shape, cause=hidden.cause)
    if known and node.kind in _SAME_SHAPE and node.domain in ("", "ai.onnx.ml"):
        return Value(elem or known[0].elem, known[0].shape)
    kind = kind_of(node.proto)
    if known and not (has_rule and _needs_data(node)):
        context.unshaped.setdefault(kind, []).append(node.scope.path + node.key)
        context.assumptions.add(
            f"{kind} has no shape rule: its output is taken like its first input",
            node.name_of(position),
        )
        first = known[0]
        return Value(elem or first.elem, shape or first.shape, first.container)
    context.unresolved.append(
        Unresolved(
            node=node.scope.path + node.key,
            kind=kind,
            output=str(node.proto.output[position]),
            why="its shape depends on data" if has_rule else "it has no shape rule",
        )
    )
    return Value(elem, None, cause=len(context.unresolved) - 1)


def _needs_data(node: Node) -> bool:
    """Return whether the output shape may hang on an integer known at run time only.

    Some schemas give no shape although their inputs tell it.
    """
    return (
        any(
            v is not None and v.const is None and "int" in v.dtype
            for v in node.inputs[1:]
        )
        or node.kind in _DATA_SHAPES
    )


def _misfit(context: Context, node: Node, message: str) -> str:
    shown = ", ".join(
        f"{name} {list(value.shape)}"
        for name, value in zip(node.proto.input, node.inputs, strict=True)
        if value is not None and value.shape is not None
    )
    assumed = ""
    if context.unshaped:
        kinds = ", ".join(context.unshaped)
        assumed = f"; shapes behind {kinds} are assumed: write them into value_info"
    reason = message.replace("[ShapeInferenceError]", "").replace("\n", " ").strip()
    return (
        f"node {node.scope.path + node.key!r} ({kind_of(node.proto)}) cannot take its "
        f"inputs ({shown}): {reason}; if a symbolic dimension has the wrong size, set "
        f"it with --dim NAME=N{assumed}"
    )
