"""load_graph: any supported model file -> Graph; the kind is told by content."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mcmpart._files import parse_json, read_bytes
from mcmpart.errors import InputError
from mcmpart.frontends.msr import import_msr, is_msr
from mcmpart.frontends.pipedream import import_pipedream, is_pipedream
from mcmpart.frontends.report import ImportReport
from mcmpart.graph import Graph, read_graph

_HEAD_BYTES = 1024
_SUPPORTED = (
    "mcmpart reads ONNX models (.onnx), its own graphs (.graph.json[.gz]), "
    "dnn-partitioning graphs (.json) and PipeDream graphs (graph.txt)"
)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a user may say about a model: sizes, costs, and whether guesses are fine."""

    dims: Mapping[str, int]
    op_costs: Mapping[str, int]
    strict: bool


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A graph, and what the importer found on the way."""

    graph: Graph
    report: ImportReport


Frontend: TypeAlias = Callable[[Path, ImportOptions], ImportResult]


def load_graph(
    path: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    op_costs: Mapping[str, int] | None = None,
    strict: bool = False,
    format: str | None = None,
) -> Graph:
    """Return the computation graph in a model file; see :func:`import_model`."""
    return import_model(
        path, dims=dims, op_costs=op_costs, strict=strict, format=format
    ).graph


def import_model(
    path: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    op_costs: Mapping[str, int] | None = None,
    strict: bool = False,
    format: str | None = None,
) -> ImportResult:
    """Return the computation graph in a model file, and the import report.

    Parameters
    ----------
    dims
        Sizes of symbolic dimensions, ``{"batch": 8}``; ``TENSOR.AXIS`` names one that
        has no symbol. A missing one becomes 1, as an assumption.
    op_costs
        FLOPs of one op, by kind: ``{"my.dom::Foo": 1000}``.
    strict
        Refuse op kinds that have no rule, instead of assuming.
    format
        A key of ``FRONTENDS``; None tells the kind by content.

    Raises
    ------
    InputError
        The file cannot be used; the message says why and what to do.
    """
    path = Path(path)
    kind = _kind_of(path) if format is None else format
    if kind not in FRONTENDS:
        raise InputError(
            f"--from {kind} is no kind of model file: choose {', '.join(FRONTENDS)}"
        )
    _check_file(path)
    return FRONTENDS[kind](path, ImportOptions(dims or {}, op_costs or {}, strict))


def _load_onnx(path: Path, options: ImportOptions) -> ImportResult:
    # onnx takes a moment to import, and graph files do without it.
    from mcmpart.frontends.onnx import import_onnx

    try:
        graph, report = import_onnx(
            path, dims=options.dims, op_costs=options.op_costs, strict=options.strict
        )
    except RecursionError as error:
        raise InputError(
            f"{path} nests too deeply: export it with fewer bodies and functions "
            "inside each other"
        ) from error
    return ImportResult(graph, report)


def _load_graph_file(path: Path, options: ImportOptions) -> ImportResult:
    _check_fixed(path, "a graph file", options)
    graph = read_graph(path)
    work = int(graph.op_flops.sum()) + int(graph.op_bytes.sum())
    report = ImportReport(
        num_nodes=graph.num_ops,
        num_ops=graph.num_ops,
        ops_of_kind=tuple(Counter(graph.op_kind).most_common()),
        ruled_ops=graph.num_ops,
        work=work,
        ruled_work=work,
        assumptions=graph.assumptions,
        notes=("costs are as the graph file gives them",),
    )
    return ImportResult(graph, report)


def _load_msr(path: Path, options: ImportOptions) -> ImportResult:
    _check_fixed(path, "a dnn-partitioning graph", options)
    return ImportResult(*import_msr(path))


def _load_pipedream(path: Path, options: ImportOptions) -> ImportResult:
    _check_fixed(path, "a PipeDream graph", options)
    return ImportResult(*import_pipedream(path))


def _check_fixed(path: Path, what: str, options: ImportOptions) -> None:
    for flag, given in (("--dim", options.dims), ("--op-cost", options.op_costs)):
        if given:
            raise InputError(
                f"{path} is {what}, whose sizes and costs are fixed: leave out "
                f"{flag}, or give the model it was made from"
            )


FRONTENDS: Mapping[str, Frontend] = {
    "onnx": _load_onnx,
    "graph": _load_graph_file,
    "dnn-partitioning": _load_msr,
    "pipedream": _load_pipedream,
}
"""Loader of each kind of model file, by the name that ``--from`` takes."""


def _check_file(path: Path) -> bytes:
    """Return the first bytes of the file, decompressed where they are gzip."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a model: name the file inside it")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                head = packed.read(_HEAD_BYTES)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the model's name") from error
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{path} is not a whole gzip file: write or copy it again"
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read {path}: {reason}; check the file") from error
    if not head:
        raise InputError(f"{path} is empty: copy or export the model again")
    if head.startswith(b"version https://git-lfs"):
        raise InputError(
            f"{path} is a Git LFS pointer, not the model itself: fetch it with "
            "'git lfs pull'"
        )
    return head


def _kind_of(path: Path) -> str:
    head = _check_file(path)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text[:1] in (b"{", b"[", b""):
        return "graph" if b'"mcmpart.graph"' in head else _json_kind(path)
    if is_pipedream(path, text):
        return "pipedream"
    other = _other_kind(head) or _packed(path)
    if other:
        raise InputError(f"{path} is {other}: {_SUPPORTED}")
    return "onnx"


def _json_kind(path: Path) -> str:
    """Return the kind that the JSON says it is, wherever its keys stand."""
    document = parse_json(read_bytes(path, "graph file"), path, "graph file")
    if isinstance(document, dict) and document.get("format") == "mcmpart.graph":
        return "graph"
    if is_msr(document):
        return "dnn-partitioning"
    raise InputError(
        f'{path} is JSON, but no mcmpart graph (it has no "format": "mcmpart.graph") '
        f'and no dnn-partitioning graph (it has no "nodes" and "edges"): {_SUPPORTED}'
    )


def _packed(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return "a gzip file, but no graph file: unpack it" if packed else ""


def _other_kind(head: bytes) -> str:
    """Return what else the bytes are, or an empty string."""
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive, as PyTorch writes (.pt2, .pt): export it to ONNX"
    if head.startswith(b"\x89HDF"):
        return "an HDF5 file, as Keras writes: export it to ONNX"
    if head[4:8] == b"TFL3":
        return "a TensorFlow Lite model: convert it to ONNX"
    # A protobuf starts with a tag below 32, which no text does.
    if head[0] >= 32 and _is_text(head):
        return "a text file, not a model"
    return ""


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end inside a character.
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode("utf-8")
    return all(c.isprintable() or c in "\t\r\n\f" for c in text)
