"""plan.json: what a user keeps of a result, and the files beside it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcmpart._files import dump_json, read_document, write_atomic
from mcmpart._version import __version__
from mcmpart.bounds.certificate import (
    CERTIFICATE_FILE,
    Certificate,
    make_certificate,
    write_certificate,
)
from mcmpart.errors import InputError
from mcmpart.graph.file import content_hash, write_graph
from mcmpart.hardware import package as hardware
from mcmpart.hardware.writer import to_toml
from mcmpart.problem import Problem
from mcmpart.solve import Result
from mcmpart.summary import warnings_of

FORMAT: Final = "mcmpart.plan"
VERSION: Final = 1
PLAN_FILE = "plan.json"
GRAPH_FILE = "graph.json.gz"
PACKAGE_FILE = "package.toml"
TRACE_FILE = "trace.jsonl"
PROOF_FILES = (CERTIFICATE_FILE, GRAPH_FILE, PACKAGE_FILE)
"""A bound and what it is for."""

FILES = (PLAN_FILE, *PROOF_FILES, TRACE_FILE)

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """How the model file was read; ``verify --model`` reads it the same way."""

    dims: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    op_costs: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GraphRef(_Strict):
    """The graph a plan is for, by content."""

    name: str
    sha256: str


class PackageRef(_Strict):
    """The package a plan is for, by content."""

    name: str
    sha256: str
    chips: Count


class Metrics(_Strict):
    """The figures of the whole; throughput is None for a graph that costs nothing."""

    bottleneck_s: Seconds
    throughput_per_s: Seconds | None
    latency_s: Seconds
    energy_j: Seconds
    lower_bound_s: Seconds
    lower_bound_method: str
    gap: Seconds


class ChipRow(_Strict):
    """The figures of one chip."""

    chip: Count
    ops: Count
    compute_s: Seconds
    in_bytes: Count
    out_bytes: Count
    transfer_s: Seconds
    stage_s: Seconds
    weight_bytes: Count
    buffer_bytes: Count
    peak_live_bytes: Count
    memory_bytes: Count


class LinkRow(_Strict):
    """The figures of one hop."""

    hop: Count
    bytes: Count
    link_s: Seconds


class Settings(_Strict):
    """All options that shaped the plan."""

    time_s: Seconds
    evaluations: Count | None
    gap: Seconds
    workers: Count
    precision: str
    replica_threshold: Seconds | None
    pins: dict[str, Count]
    together: list[list[str]]
    apart: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    all_chips: bool
    dims: dict[str, int]
    op_costs: dict[str, int]


class SearchInfo(_Strict):
    """How the plan was found."""

    method: str
    seed: int
    evaluations: Count
    seconds: Seconds
    stopped_by: str = Field(pattern="^(gap|time|evaluations|done|interrupt)$")
    version: str
    settings: Settings


class Plan(_Strict):
    """The content of plan.json; docs/formats.md explains each key."""

    format: Literal["mcmpart.plan"]
    version: Literal[1]
    graph: GraphRef
    package: PackageRef
    rules: list[str]
    long_edges: str
    io: str
    chip_of: dict[str, Count]
    replicas: dict[str, list[str]]
    metrics: Metrics
    chips: list[ChipRow]
    links: list[LinkRow]
    search: SearchInfo
    assumptions: list[str]
    warnings: list[str]


def make_plan(result: Result, imported: ImportSettings | None = None) -> Plan:
    """Return what plan.json says of ``result``."""
    problem, metrics = result.problem, result.metrics
    throughput = metrics.throughput_per_s
    replicas = result.partition.replicas()
    return Plan(
        format=FORMAT,
        version=VERSION,
        graph=GraphRef(name=problem.graph.name, sha256=content_hash(problem.graph)),
        package=PackageRef(
            name=problem.package.name,
            sha256=hardware.content_hash(problem.package),
            chips=problem.num_chips,
        ),
        rules=list(problem.package.rules),
        long_edges=problem.package.long_edges,
        io=problem.package.io,
        chip_of=result.partition.by_name(),
        replicas={str(chip): names for chip, names in replicas.items()},
        metrics=Metrics(
            bottleneck_s=metrics.bottleneck_s,
            throughput_per_s=throughput if math.isfinite(throughput) else None,
            latency_s=metrics.latency_s,
            energy_j=metrics.energy_j,
            lower_bound_s=result.lower_bound_s,
            lower_bound_method=result.lower_bound_method,
            gap=result.gap,
        ),
        chips=[ChipRow(**asdict(load)) for load in metrics.chips],
        links=[LinkRow(**asdict(load)) for load in metrics.hops],
        search=_search_info(result, imported or ImportSettings()),
        assumptions=list(problem.assumptions),
        warnings=warnings_of(result),
    )


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder, made if need be, so that no other run writes into it.

    Where the system has no such locks (Windows), nothing is held.

    Raises
    ------
    InputError
        The folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        import fcntl
    except ImportError:
        yield
        return
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}; choose another one"
        ) from error
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_result(
    result: Result, folder: Path, imported: ImportSettings | None = None
) -> Path:
    """Write plan.json, the graph, the package and the trace; return plan.json's path.

    Runs that write into one folder wait for each other.
    """
    with folder_lock(folder):
        return write_files(result, folder, imported)


def write_files(
    result: Result, folder: Path, imported: ImportSettings | None = None
) -> Path:
    """Write the files of ``result`` as :func:`write_result` does, without its lock.

    Each file is written atomically. An older plan.json is removed first and the new one
    written last: where it stands, the files beside it are its own.

    Raises
    ------
    InputError
        The folder cannot be made or written.
    """
    plan = make_plan(result, imported)
    try:
        (folder / PLAN_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot replace {folder / PLAN_FILE}: {error.strerror}; choose a folder "
            "you may write to"
        ) from error
    write_proof(make_certificate(result.problem, *result.bound), result.problem, folder)
    points = [dump_json(asdict(point)) for point in result.trace]
    write_atomic(folder / TRACE_FILE, b"".join(points))
    write_atomic(folder / PLAN_FILE, dump_json(plan.model_dump(), indent=1))
    return folder / PLAN_FILE


def write_proof(certificate: Certificate, problem: Problem, folder: Path) -> None:
    """Write a certificate with the graph and the package that it is for."""
    write_graph(problem.graph, folder / GRAPH_FILE)
    write_atomic(folder / PACKAGE_FILE, to_toml(problem.package).encode())
    write_certificate(certificate, folder / CERTIFICATE_FILE)


def read_plan(path: Path) -> Plan:
    """Return the plan in ``path``, or in the folder ``path``.

    Raises
    ------
    InputError
        It cannot be read, is no plan, is of another version, or holds an unknown key
        or a number that is not finite.
    """
    if path.is_dir():
        path = path / PLAN_FILE
    return read_document(path, "plan", FORMAT, VERSION, Plan)


def _search_info(result: Result, imported: ImportSettings) -> SearchInfo:
    problem, user = result.problem, result.problem.user
    return SearchInfo(
        method=result.method,
        seed=result.seed,
        evaluations=result.evaluations,
        seconds=result.seconds,
        stopped_by=result.stopped_by,
        version=__version__,
        settings=Settings(
            time_s=float(result.budget.time_s),
            evaluations=result.budget.evaluations,
            gap=float(result.budget.gap),
            workers=result.workers,
            precision=problem.precision,
            replica_threshold=problem.replica_threshold,
            pins=dict(user.pins),
            together=[list(group) for group in user.together],
            apart=[list(pair) for pair in user.apart],
            all_chips=user.all_chips,
            dims=dict(imported.dims),
            op_costs=dict(imported.op_costs),
        ),
    )
