"""The values that a model starts from: its weights and its inputs."""

from __future__ import annotations

from onnx import ValueInfoProto

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.model import OnnxModel
from mcmpart.frontends.onnx.scope import Context, Scope
from mcmpart.frontends.onnx.values import DTYPE_OF_ELEM, Value, read_type, stated_types


def main_scope(model: OnnxModel, context: Context) -> Scope:
    """Return the scope of the main graph before its first node.

    Raises
    ------
    InputError
        A name is given twice, or an input has no type or no shape.
    """
    graph = model.proto.graph
    values: dict[str, Value] = {}
    for name, value in context.initializers.values(graph):
        if name in values:
            raise InputError(f"the initializer {name!r} is given twice: keep one")
        values[name] = value
    for declared in graph.input:
        name = declared.name
        if name not in values:
            values[name] = _host_value(declared, context)
        elif values[name].tensor:
            raise InputError(f"the input {name!r} is listed twice: keep one")
        elif model.proto.ir_version >= 4:
            # Before IR 4 every initializer had to be listed as an input too.
            context.assumptions.add(
                "an input with a default value is taken as a weight", name
            )
    return Scope(
        values=values,
        opsets=model.opsets,
        annotations=stated_types((*graph.value_info, *graph.output)),
    )


def _host_value(declared: ValueInfoProto, context: Context) -> Value:
    container, elem, shape = read_type(declared.type)
    if elem not in DTYPE_OF_ELEM:
        raise InputError(
            f"the input {declared.name!r} has element type {elem}, which is none that "
            "mcmpart knows: export the model again"
        )
    if container in ("sequence", "map"):
        context.assumptions.add(
            f"an input that is a {container} is counted as one element", declared.name
        )
        shape = () if shape is None else shape
    static = context.dims.input_shape(declared.name, shape)
    return Value(elem, static, container, tensor=declared.name)
