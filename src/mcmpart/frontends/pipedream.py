"""PipeDream profiles: ``graph.txt``, one line per op and one per edge.

The format is that of D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism
for DNN Training", SOSP 2019.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mcmpart._files import read_bytes
from mcmpart.errors import InputError
from mcmpart.frontends.profile import MeasuredOp, build_profile, profile_report
from mcmpart.frontends.report import ImportReport, counted, shortened
from mcmpart.graph import Graph
from mcmpart.graph.builder import MAX_SECONDS, unique_names

_WHAT = "PipeDream graph"
_NODE_FORM = (
    "ID -- OP -- forward_compute_time=MS, backward_compute_time=MS, "
    "activation_size=BYTES, parameter_size=BYTES"
)
_NODE = re.compile(
    r"(?P<id>\S+) -- (?P<what>.*) -- "
    r"forward_compute_time=(?P<forward_compute_time>[^,\s]*), "
    r"backward_compute_time=[^,\s]*, "
    r"activation_size=(?P<activation_size>\[.*\]|[^,\s]*), "
    r"parameter_size=(?P<parameter_size>[^,\s]*)"
    r"(?P<stage> -- stage_id=\S+)?"
)
_EDGE = re.compile(r"(\S+) -- (\S+)")
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_INPUT = re.compile(r"Input\d*")


@dataclass(frozen=True, slots=True)
class _Node:
    """A node line: its number, and what it says."""

    line: int
    id: str
    what: str
    forward_ms: float
    activation_bytes: tuple[int, ...]
    parameter_bytes: int
    has_stage: bool

    @property
    def is_input(self) -> bool:
        return _INPUT.fullmatch(self.what) is not None

    @property
    def kind(self) -> str:
        """The first word: ``Conv2d(3, 64)`` is a Conv2d, ``Input0`` an Input."""
        return "Input" if self.is_input else re.split(r"[\s(]", self.what)[0] or "Op"


@dataclass(slots=True)
class _Profile:
    """The lines of a file: its nodes in order, and its edges as pairs of positions."""

    nodes: list[_Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)


def import_pipedream(path: Path) -> tuple[Graph, ImportReport]:
    """Return the graph of the forward pass in a PipeDream profile, and the report.

    Raises
    ------
    InputError
        A line is no node and no edge, a number is none, an edge names no node, or the
        graph has faults; the message names the line.
    """
    profile = _parse(path, _text(path))
    nodes = profile.nodes
    kinds = [node.kind for node in nodes]
    names = unique_names(
        [f"{node.id}.{kind}" for node, kind in zip(nodes, kinds, strict=True)], kinds
    )
    ops = [
        MeasuredOp(
            name,
            node.kind,
            seconds=0.0 if node.is_input else node.forward_ms / 1e3,
            output_bytes=sum(node.activation_bytes),
            weight_bytes=node.parameter_bytes,
        )
        for name, node in zip(names, nodes, strict=True)
    ]
    graph = build_profile(
        path, "pipedream", ops, profile.edges, assumptions=_assumptions(nodes)
    )
    staged = any(node.has_stage for node in nodes)
    return graph, profile_report(graph, ["stage_id is not used"] if staged else [])


def is_pipedream(path: Path, head: bytes) -> bool:
    """Whether the file, whose text begins with ``head``, has lines of such a profile.

    An op may be described in more words than the head holds.
    """
    return bool(
        re.match(rb"\S+ -- ", head)
        and b" -- forward_compute_time=" in read_bytes(path, _WHAT)
    )


def _text(path: Path) -> str:
    data = read_bytes(path, _WHAT)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path} is no {_WHAT}: line {line} is not UTF-8 text; copy the file again "
            "or convert it"
        ) from error


def _parse(path: Path, text: str) -> _Profile:
    profile = _Profile()
    edge_lines = []
    position_of: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if line[0].isspace():
            edge_lines.append((number, line.strip()))
            continue
        node = _node(path, number, line.rstrip())
        if node.id in position_of:
            first = profile.nodes[position_of[node.id]].line
            raise InputError(
                f"{path}: lines {first} and {number} are both node {node.id!r:.60}: "
                "give each node a name of its own"
            )
        position_of[node.id] = len(profile.nodes)
        profile.nodes.append(node)
    if not profile.nodes:
        raise InputError(f"{path} holds no node: a line of one is {_NODE_FORM}")
    profile.edges = [
        _edge(path, number, line, position_of) for number, line in edge_lines
    ]
    return profile


def _node(path: Path, number: int, line: str) -> _Node:
    found = _NODE.fullmatch(line)
    if not found:
        raise InputError(
            f"{path}: line {number} is no node, {line!r:.60}: write it as {_NODE_FORM} "
            "(and begin the line of an edge with a tab)"
        )
    sizes = found["activation_size"]
    items = sizes[1:-1].split(";") if sizes.startswith("[") else [sizes]
    place = f"{path}: line {number}"
    return _Node(
        number,
        found["id"],
        found["what"].strip(),
        _milliseconds(found["forward_compute_time"], place, "forward_compute_time"),
        tuple(_bytes(item.strip(), place, "activation_size") for item in items),
        _bytes(found["parameter_size"], place, "parameter_size"),
        found["stage"] is not None,
    )


def _edge(
    path: Path, number: int, line: str, position_of: dict[str, int]
) -> tuple[int, int]:
    found = _EDGE.fullmatch(line)
    if not found:
        raise InputError(
            f"{path}: line {number} is no edge, {line!r:.60}: write it as a tab and "
            "ID -- ID"
        )
    unknown = [node for node in found.groups() if node not in position_of]
    if unknown:
        raise InputError(
            f"{path}: line {number} is an edge of {unknown[0]!r:.60}, which is no node "
            "of the file: add its line or leave the edge out"
        )
    return position_of[found[1]], position_of[found[2]]


def _milliseconds(text: str, place: str, what: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not value <= MAX_SECONDS * 1e3:
        raise InputError(
            f"{place}: {what} is {text!r:.60}: give a time in ms without its unit, 0 "
            f"to {MAX_SECONDS * 1e3:g}"
        )
    return value


def _bytes(text: str, place: str, what: str) -> int:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not value < 2**63 or value != int(value):
        raise InputError(
            f"{place}: {what} is {text!r:.60}: give a whole number of bytes without a "
            "unit, 0 to 2^63 - 1"
        )
    return int(value)


def _assumptions(nodes: list[_Node]) -> Iterator[str]:
    yield (
        "op times are the forward times of the PipeDream profile, in ms: this is the "
        "graph of inference"
    )
    timed = [node.id for node in nodes if node.is_input and node.forward_ms]
    if timed:
        yield (
            f"{counted(len(timed), 'input node')} ({shortened(timed)}) set to 0 s: the "
            "time in the profile is that of loading data"
        )
    yield "activation_size is the bytes of the one tensor that an op writes"
    several = [node.id for node in nodes if len(node.activation_bytes) > 1]
    if several:
        yield (
            f"several activation sizes of one node are added up: {shortened(several)}"
        )
    yield "parameter_size is the bytes of the weights of an op"
