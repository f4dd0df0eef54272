"""Graphs of measured ops: what the formats of published profiles have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcmpart._files import sha256_of
from mcmpart._version import __version__
from mcmpart.errors import GraphError
from mcmpart.frontends.report import ImportReport, counted
from mcmpart.graph import Graph, GraphBuilder, OpSpec, Source, TensorSpec

_SUFFIXES = (".gz", ".json", ".txt", ".graph")


@dataclass(frozen=True, slots=True)
class MeasuredOp:
    """An op of a profile: its unique name, kind, time, and bytes written and stored."""

    name: str
    kind: str
    seconds: float
    output_bytes: int
    weight_bytes: int


def build_profile(
    path: Path,
    form: str,
    ops: Sequence[MeasuredOp],
    edges: Iterable[tuple[int, int]],
    *,
    together: Iterable[Sequence[int]] = (),
    assumptions: Iterable[str] = (),
) -> Graph:
    """Return the graph of measured ops, each with one output tensor and one weight.

    An op that nothing reads writes no tensor, an op of 0 weight bytes has no weight,
    and nothing comes from HOST. Dtypes are unknown, so that no precision changes sizes
    that were measured.

    Parameters
    ----------
    form
        Name of the format, for ``Graph.source``.
    edges
        Pairs of indices into ``ops``: the second reads what the first writes.
    together
        Groups of indices into ``ops`` that must share a chip.

    Raises
    ------
    GraphError
        The ops form a cycle, or a number is out of range.
    """
    source = Source(
        form, path.name, sha256_of(path.read_bytes()), f"mcmpart {__version__}"
    )
    builder = GraphBuilder(_stem(path), source)
    sources: list[list[int]] = [[] for _ in ops]
    is_read = [False] * len(ops)
    for producer, reader in edges:
        sources[reader].append(producer)
        is_read[producer] = True
    for op, read, producers in zip(ops, is_read, sources, strict=True):
        reads = tuple(f"{ops[producer].name}:0" for producer in producers)
        _add(builder, op, reads, is_read=read)
    for group in together:
        builder.together(ops[i].name for i in group)
    sinks = is_read.count(False)
    for sentence in (*assumptions, _ends_sentence(sinks)):
        builder.assume(sentence)
    try:
        return builder.build()
    except GraphError as error:
        raise GraphError(str(path), error.faults) from error


def profile_report(graph: Graph, notes: Iterable[str] = ()) -> ImportReport:
    """Return the report of a profile, where every op has its measured time."""
    return ImportReport(
        num_nodes=graph.num_ops,
        num_ops=graph.num_ops,
        ops_of_kind=tuple(Counter(graph.op_kind).most_common()),
        ruled_ops=graph.num_ops,
        assumptions=graph.assumptions,
        notes=("op times are as the file gives them: no cost rule is needed", *notes),
    )


def _add(
    builder: GraphBuilder, op: MeasuredOp, reads: tuple[str, ...], *, is_read: bool
) -> None:
    weight = TensorSpec(f"{op.name}:w", op.weight_bytes)
    if weight.bytes:
        builder.weight(weight)
    builder.op(
        OpSpec(
            op.name,
            op.kind,
            dtype="",
            seconds=op.seconds,
            reads=reads,
            weights=(weight.name,) if weight.bytes else (),
            writes=(TensorSpec(f"{op.name}:0", op.output_bytes),) if is_read else (),
        )
    )


def _ends_sentence(sinks: int) -> str:
    write = "writes" if sinks == 1 else "write"
    return (
        f"{counted(sinks, 'op')} that no op reads {write} no tensor, and nothing is "
        "read from the host: traffic is that between ops"
    )


def _stem(path: Path) -> str:
    stem = path.name
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return stem or path.name
