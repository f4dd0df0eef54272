"""Graph files: ``NAME.graph.json[.gz]`` in and out, and the content hash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mcmpart._files import dump_json, read_document, sha256_of, write_atomic
from mcmpart.errors import GraphError, InputError
from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.graph import HOST, Graph, Source

FORMAT = "mcmpart.graph"
VERSION = 1

Size = Annotated[int, Field(ge=0, lt=2**63)]
Index = Annotated[int, Field(ge=0, lt=2**31)]
Seconds = Annotated[float, Field(ge=0)]
Gemm = Annotated[list[Size], Field(min_length=3, max_length=3)]


class _Columns(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def _lengths(self) -> dict[str, int]:
        columns = {key: getattr(self, key) for key in type(self).model_fields}
        return {
            key: len(column) for key, column in columns.items() if column is not None
        }


class _SourceModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: str
    file: str = ""
    sha256: str = ""
    tool: str = ""


class _Ops(_Columns):
    name: list[str]
    kind: list[str]
    dtype: list[str]
    flops: list[Size]
    bytes: list[Size]
    gemm: list[Gemm | None] | None = None
    seconds: list[Seconds | None] | None = None
    replicable: list[bool] | None = None


class _Tensors(_Columns):
    name: list[str]
    producer: list[Annotated[int, Field(ge=HOST, lt=2**31)]]
    bytes: list[Size]
    shape: list[list[Size] | None] | None = None
    dtype: list[str] | None = None
    is_output: list[bool] | None = None


class _Uses(_Columns):
    tensor: list[Index]
    op: list[Index]


class _Weights(_Columns):
    name: list[str]
    bytes: list[Size]
    dtype: list[str] | None = None


class _WeightUses(_Columns):
    weight: list[Index]
    op: list[Index]


class _GraphModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    format: Literal["mcmpart.graph"]
    version: Literal[1]
    name: str
    source: _SourceModel
    ops: _Ops
    tensors: _Tensors
    uses: _Uses
    weights: _Weights
    weight_uses: _WeightUses
    together: list[list[Index]] = []
    assumptions: list[str] = []


def write_graph(graph: Graph, path: Path) -> None:
    """Write ``graph`` to ``path`` atomically; ``.gz`` compresses."""
    write_atomic(path, dump_json(_document(graph)))


def read_graph(path: Path) -> Graph:
    """Return the graph in the file ``path``.

    Raises
    ------
    InputError
        The file cannot be read, is no graph file, is of another version, or holds an
        unknown key, a non-finite number or an index out of range.
    GraphError
        The graph itself has faults.
    """
    model = read_document(path, "graph file", FORMAT, VERSION, _GraphModel)
    _check_lengths(model, path)
    try:
        return _build(model)
    except GraphError as error:
        raise GraphError(str(path), error.faults) from error


def content_hash(graph: Graph) -> str:
    """Return the SHA-256 of what the graph says, in hexadecimal.

    Name, source and assumptions do not count: the same model imported from another
    folder has the same hash.
    """
    document = _document(graph)
    for key in ("name", "source", "assumptions"):
        del document[key]
    return sha256_of(dump_json(document))


def _document(graph: Graph) -> dict[str, Any]:
    has_gemm = np.asarray(graph.op_gemm.any(axis=1))
    has_seconds = ~np.isnan(graph.op_seconds)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "source": {
            "kind": graph.source.kind,
            "file": graph.source.file,
            "sha256": graph.source.sha256,
            "tool": graph.source.tool,
        },
        "ops": {
            "name": list(graph.op_name),
            "kind": list(graph.op_kind),
            "dtype": list(graph.op_dtype),
            "flops": graph.op_flops.tolist(),
            "bytes": graph.op_bytes.tolist(),
            "gemm": [
                row if given else None
                for row, given in zip(graph.op_gemm.tolist(), has_gemm, strict=True)
            ],
            "seconds": [
                value if given else None
                for value, given in zip(
                    graph.op_seconds.tolist(), has_seconds, strict=True
                )
            ]
            if has_seconds.any()
            else None,
            "replicable": graph.op_replicable.tolist(),
        },
        "tensors": {
            "name": list(graph.tensor_name),
            "producer": graph.tensor_producer.tolist(),
            "bytes": graph.tensor_bytes.tolist(),
            "shape": [
                None if shape is None else list(shape) for shape in graph.tensor_shape
            ],
            "dtype": list(graph.tensor_dtype),
            "is_output": graph.tensor_is_output.tolist(),
        },
        "uses": {"tensor": graph.use_tensor.tolist(), "op": graph.use_op.tolist()},
        "weights": {
            "name": list(graph.weight_name),
            "bytes": graph.weight_bytes.tolist(),
            "dtype": list(graph.weight_dtype),
        },
        "weight_uses": {
            "weight": graph.weight_use_weight.tolist(),
            "op": graph.weight_use_op.tolist(),
        },
        "together": [list(group) for group in graph.together],
        "assumptions": list(graph.assumptions),
    }


def _check_lengths(model: _GraphModel, path: Path) -> None:
    for part in ("ops", "tensors", "uses", "weights", "weight_uses"):
        lengths = getattr(model, part)._lengths()
        if len(set(lengths.values())) > 1:
            raise InputError(
                f"{path}: the columns of {part!r} differ in length ({lengths}): "
                "give one entry per row in each"
            )
    num_ops, num_tensors = len(model.ops.name), len(model.tensors.name)
    for what, column, limit in (
        ("tensors.producer", model.tensors.producer, num_ops),
        ("uses.tensor", model.uses.tensor, num_tensors),
        ("uses.op", model.uses.op, num_ops),
        ("weight_uses.weight", model.weight_uses.weight, len(model.weights.name)),
        ("weight_uses.op", model.weight_uses.op, num_ops),
        ("together", [op for group in model.together for op in group], num_ops),
    ):
        if column and max(column) >= limit:
            raise InputError(
                f"{path}: {what} names {max(column)}, and there are only {limit}: "
                "indices count from 0"
            )


def _build(model: _GraphModel) -> Graph:
    ops, tensors, weights = model.ops, model.tensors, model.weights
    reads: list[list[str]] = [[] for _ in ops.name]
    weight_reads: list[list[str]] = [[] for _ in ops.name]
    writes: list[list[TensorSpec]] = [[] for _ in ops.name]
    builder = GraphBuilder(model.name, Source(**model.source.model_dump()))
    for t, producer in enumerate(tensors.producer):
        shape = tensors.shape[t] if tensors.shape else None
        spec = TensorSpec(
            name=tensors.name[t],
            bytes=tensors.bytes[t],
            dtype=tensors.dtype[t] if tensors.dtype else "",
            shape=None if shape is None else tuple(shape),
        )
        if producer == HOST:
            builder.host_tensor(spec)
        else:
            writes[producer].append(spec)
        if tensors.is_output and tensors.is_output[t]:
            builder.output(spec.name)
    for t, op in zip(model.uses.tensor, model.uses.op, strict=True):
        reads[op].append(tensors.name[t])
    for w, op in zip(model.weight_uses.weight, model.weight_uses.op, strict=True):
        weight_reads[op].append(weights.name[w])
    for w, name in enumerate(weights.name):
        dtype = weights.dtype[w] if weights.dtype else ""
        builder.weight(TensorSpec(name, weights.bytes[w], dtype))
    for i, name in enumerate(ops.name):
        builder.op(
            OpSpec(
                name=name,
                kind=ops.kind[i],
                dtype=ops.dtype[i],
                flops=ops.flops[i],
                bytes=ops.bytes[i],
                gemm=_gemm(ops.gemm[i] if ops.gemm else None),
                seconds=ops.seconds[i] if ops.seconds else None,
                replicable=bool(ops.replicable and ops.replicable[i]),
                reads=tuple(reads[i]),
                weights=tuple(weight_reads[i]),
                writes=tuple(writes[i]),
            )
        )
    faults = [
        f"together group {group} names one op twice"
        for group in model.together
        if len(set(group)) < len(group)
    ]
    if faults:
        raise GraphError(model.name, faults)
    for group in model.together:
        builder.together(ops.name[op] for op in group)
    for sentence in model.assumptions:
        builder.assume(sentence)
    return builder.build()


def _gemm(sizes: list[int] | None) -> tuple[int, int, int] | None:
    return None if sizes is None else (sizes[0], sizes[1], sizes[2])
