"""Small ONNX models for the tests, built from nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import (
    FunctionProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from mcmpart.frontends import ImportResult, import_model

Shape = Sequence[int | str | None]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(
    name: str, shape: Shape | None, elem: int = TensorProto.FLOAT
) -> ValueInfoProto:
    """Return a typed name; shape None leaves the shape out."""
    return helper.make_tensor_value_info(name, elem, shape)


def weight(name: str, array: np.ndarray | float | Sequence[int]) -> TensorProto:
    """Return an initializer."""
    return numpy_helper.from_array(np.asarray(array), name)


def save(
    folder: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    *,
    weights: Sequence[TensorProto] = (),
    opset: int | None = 17,
    ir: int = 8,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[FunctionProto] = (),
    stated: Sequence[ValueInfoProto] = (),
) -> Path:
    """Write a model and return its path."""
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_value_info(name, TypeProto()) for name in outputs],
        weights,
        value_info=stated,
    )
    imports = {} if opset is None else {"": opset}
    imports.update(domains or {})
    model = helper.make_model(
        graph,
        ir_version=ir,
        opset_imports=[helper.make_opsetid(d, v) for d, v in imports.items()],
        functions=functions,
    )
    if opset is None and not domains:
        del model.opset_import[:]
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def read(path: Path, **dims: int) -> ImportResult:
    """Import a model with the sizes of its dimensions."""
    return import_model(path, dims=dims)


def edges(result: ImportResult) -> set[tuple[str, str]]:
    """Return the data edges as pairs of op names."""
    graph = result.graph
    return {
        (graph.op_name[u], graph.op_name[v])
        for u in range(graph.num_ops)
        for v in graph.successors.row(u)
    }


def tensor(result: ImportResult, name: str) -> tuple[tuple[int, ...] | None, int]:
    """Return shape and bytes of a tensor."""
    t = result.graph.tensor_name.index(name)
    return result.graph.tensor_shape[t], int(result.graph.tensor_bytes[t])


def weights_of(result: ImportResult, op: str) -> dict[str, int]:
    """Return name and bytes of the weights that an op reads."""
    graph = result.graph
    row = graph.weights_of.row(graph.op_name.index(op))
    return {graph.weight_name[w]: int(graph.weight_bytes[w]) for w in row}


def flops(result: ImportResult, op: str) -> int:
    """Return the FLOPs of an op."""
    return int(result.graph.op_flops[result.graph.op_name.index(op)])


def host(result: ImportResult) -> list[str]:
    """Return the names of the tensors that come from the host."""
    graph = result.graph
    return [
        name
        for name, producer in zip(graph.tensor_name, graph.tensor_producer, strict=True)
        if producer < 0
    ]


def said(sentences: Sequence[str], *words: str) -> bool:
    """Return whether one sentence holds all the words."""
    return any(all(word in sentence for word in words) for sentence in sentences)
