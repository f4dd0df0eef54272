"""Names in a model must be text: protobuf hands out bytes where they are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.structure import bodies_of


def check_names(proto: ModelProto, path: Path) -> None:
    """Refuse a model with a name that is no UTF-8.

    Raises
    ------
    InputError
        With the first such name.
    """
    names: list[Iterable[object]] = [
        (entry.domain for entry in proto.opset_import),
        _of_graph(proto.graph),
    ]
    names += [_of_function(function) for function in proto.functions]
    for part in names:
        for name in part:
            if not isinstance(name, str):
                raise InputError(
                    f"{path} holds the name {name!r}, which is no UTF-8 text: the file "
                    "is damaged; copy or export it again"
                )


def _of_graph(graph: GraphProto) -> Iterator[object]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        for dim in value.type.tensor_type.shape.dim:
            yield dim.dim_param
    for tensor in graph.initializer:
        yield from _of_tensor(tensor)
    for sparse in graph.sparse_initializer:
        yield sparse.values.name
    yield from _of_nodes(graph.node)


def _of_tensor(tensor: TensorProto) -> Iterator[object]:
    yield tensor.name
    for entry in tensor.external_data:
        yield entry.key
        yield entry.value


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload)
        yield from node.input
        yield from node.output
        for attribute in node.attribute:
            yield attribute.name
            yield attribute.ref_attr_name
        for body in bodies_of(node):
            yield from _of_graph(body)


def _of_function(function: FunctionProto) -> Iterator[object]:
    yield from (function.name, function.domain, function.overload)
    yield from function.input
    yield from function.output
    yield from function.attribute
    yield from (value.name for value in function.value_info)
    yield from (value.name for value in function.attribute_proto)
    yield from (entry.domain for entry in function.opset_import)
    yield from _of_nodes(function.node)
