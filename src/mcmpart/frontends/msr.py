"""dnn-partitioning graphs: the JSON of Microsoft Research's device placement.

The format is that of J. Tarnawski et al., "Efficient Algorithms for Device Placement of
DNN Graph Operators", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mcmpart._files import parse_json, read_bytes, validation_sentence
from mcmpart.errors import InputError
from mcmpart.frontends.profile import MeasuredOp, build_profile, profile_report
from mcmpart.frontends.report import ImportReport, counted, shortened
from mcmpart.graph import Graph
from mcmpart.graph.builder import MAX_SECONDS, MAX_TOTAL, unique_names

BYTES_PER_MS = 12.5e6
"""Bytes that an edge cost of 1 ms stands for: those of the package ``mtpp``, 12.5 GB/s
(A. Archer et al., "Practical Performance Guarantees for Pipelined DNN Inference",
ICML 2024)."""

_WHAT = "dnn-partitioning graph"
_KIND = "Op"
_UNITS = {"fpgaLatency": ", in ms", "cost": ", in ms", "size": ", in bytes"}


def _flag(value: object) -> object:
    # The files write truth values as 0 and 1, too.
    return bool(value) if type(value) is int and value in (0, 1) else value


_Flag = Annotated[bool, BeforeValidator(_flag)]
_Milliseconds = Annotated[float, Field(ge=0, le=MAX_SECONDS * 1e3)]
_Bytes = Annotated[float, Field(ge=0, le=MAX_TOTAL)]


class _Part(BaseModel):
    # Files carry keys for other programs and for people; the report names them.
    model_config = ConfigDict(extra="allow", strict=True)


class _Node(_Part):
    id: int
    name: str | None = None
    supportedOnFpga: _Flag = True  # noqa: N815 (the name in the file)
    fpgaLatency: _Milliseconds  # noqa: N815
    isBackwardNode: _Flag = False  # noqa: N815
    colorClass: int | None = None  # noqa: N815
    size: _Bytes = 0.0


class _Edge(_Part):
    sourceId: int  # noqa: N815
    destId: int  # noqa: N815
    cost: _Milliseconds


class _Document(_Part):
    nodes: Annotated[list[_Node], Field(min_length=1)]
    edges: list[_Edge]


def import_msr(path: Path) -> tuple[Graph, ImportReport]:
    """Return the graph in a dnn-partitioning file, and the report.

    Raises
    ------
    InputError
        The file is not whole, a value is missing or out of range, an id is unknown or
        given twice, edges of one source differ in cost, nodes belong to a backward
        pass or to a CPU, or the graph has faults; the message names the place.
    """
    document = _read(path)
    _check_nodes(path, document.nodes)
    edges = _edges(path, document.edges, _positions(path, document.nodes))
    cost_of = _costs(path, document.edges)
    names = unique_names(
        [node.name or f"node{node.id}" for node in document.nodes],
        [_KIND] * len(document.nodes),
    )
    ops = [
        MeasuredOp(
            name,
            _KIND,
            seconds=node.fpgaLatency / 1e3,
            output_bytes=round(cost_of.get(node.id, 0.0) * BYTES_PER_MS),
            weight_bytes=round(node.size),
        )
        for name, node in zip(names, document.nodes, strict=True)
    ]
    groups = _groups(document.nodes)
    graph = build_profile(
        path,
        "dnn-partitioning",
        ops,
        edges,
        together=groups,
        assumptions=_assumptions(groups),
    )
    return graph, profile_report(graph, _notes(document))


def is_msr(document: object) -> bool:
    """Whether a JSON value has the shape of a dnn-partitioning graph."""
    return isinstance(document, dict) and {"nodes", "edges"} <= document.keys()


def _read(path: Path) -> _Document:
    document = parse_json(read_bytes(path, _WHAT), path, _WHAT)
    if not is_msr(document):
        raise InputError(f'{path} is no {_WHAT}: it has no "nodes" and "edges"')
    try:
        return _Document.model_validate(document)
    except ValidationError as error:
        unit = _UNITS.get(str(error.errors()[0]["loc"][-1]), "")
        raise InputError(validation_sentence(error, path, _WHAT) + unit) from error


def _check_nodes(path: Path, nodes: Sequence[_Node]) -> None:
    """Refuse nodes of a backward pass, and nodes that only a CPU runs."""
    backward = [node for node in nodes if node.isBackwardNode]
    if backward:
        raise InputError(
            f"{path} is a training graph, {counted(len(backward), 'node')} of its "
            f"{len(nodes)} with isBackwardNode (the first has the id "
            f"{backward[0].id}), and mcmpart splits inference: give the inference graph"
        )
    for i, node in enumerate(nodes):
        if not node.supportedOnFpga:
            raise InputError(
                f"{path}: nodes.{i}, with the id {node.id}, has no supportedOnFpga, "
                "and mcmpart places every op on a chip: leave the node out, or give "
                "the time it takes on a chip"
            )


def _positions(path: Path, nodes: Sequence[_Node]) -> dict[int, int]:
    """Return id -> position of each node."""
    position_of: dict[int, int] = {}
    for i, node in enumerate(nodes):
        if node.id in position_of:
            raise InputError(
                f"{path}: nodes.{position_of[node.id]} and nodes.{i} both have the id "
                f"{node.id}: give each node an id of its own"
            )
        position_of[node.id] = i
    return position_of


def _edges(
    path: Path, edges: Sequence[_Edge], position_of: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return the edges as pairs of positions."""
    for i, edge in enumerate(edges):
        for key, node in (("sourceId", edge.sourceId), ("destId", edge.destId)):
            if node not in position_of:
                raise InputError(
                    f"{path}: edges.{i} has the {key} {node}, which is the id of no "
                    "node: add the node or leave the edge out"
                )
    return [(position_of[edge.sourceId], position_of[edge.destId]) for edge in edges]


def _costs(path: Path, edges: Sequence[_Edge]) -> dict[int, float]:
    """Return source id -> cost in ms of its edges, which must be one and the same."""
    cost_of: dict[int, float] = {}
    for i, edge in enumerate(edges):
        first = cost_of.setdefault(edge.sourceId, edge.cost)
        if first != edge.cost:
            raise InputError(
                f"{path}: edges.{i} has the cost {edge.cost:g}, and an earlier edge of "
                f"sourceId {edge.sourceId} has {first:g}: give all edges of a source "
                "one cost, that of its output"
            )
    return cost_of


def _groups(nodes: Sequence[_Node]) -> list[list[int]]:
    """Return the positions of each colour class of two nodes or more."""
    members: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        if node.colorClass is not None:
            members.setdefault(node.colorClass, []).append(i)
    return [group for group in members.values() if len(group) > 1]


def _assumptions(groups: Sequence[Sequence[int]]) -> Iterator[str]:
    yield "op times are the fpgaLatency of the dnn-partitioning graph, in ms"
    yield (
        "an edge cost of x ms is a tensor of x * 12.5e6 bytes, rounded, one a source: "
        "it takes x ms at the 12.5 GB/s of package mtpp"
    )
    yield "the size of a node, all memory it needs, is the bytes of its weights"
    if groups:
        classes = "colour class" if len(groups) == 1 else "colour classes"
        yield f"the ops of one colorClass share a chip: {len(groups)} {classes}"


def _notes(document: _Document) -> list[str]:
    """Return a note of the keys that say nothing about the graph, or nothing."""
    parts: list[tuple[str, Sequence[_Part]]] = [
        ("", [document]),
        ("of nodes ", document.nodes),
        ("of edges ", document.edges),
    ]
    unused = []
    for whose, models in parts:
        keys = dict.fromkeys(key for model in models for key in model.model_extra or {})
        if keys:
            unused.append(whose + shortened(list(keys)))
    return [f"keys that are not used: {'; '.join(unused)}"] if unused else []
