"""``mcmpart partition``: the main job, from a model to a verified plan on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import (
    Progress,
    log_on_stderr,
    note,
    print_json,
    print_table,
)
from mcmpart.cli._options import (
    METHODS,
    DimOption,
    FromOption,
    JsonOption,
    ModelArgument,
    ModelOptions,
    OpCostOption,
    StrictOption,
    parse_apart,
    parse_pins,
    parse_together,
)
from mcmpart.cli.verify import checked
from mcmpart.errors import InputError, McmpartError

if TYPE_CHECKING:
    from mcmpart.frontends.load import ImportResult
    from mcmpart.graph import Graph
    from mcmpart.partition import Partition
    from mcmpart.plan import Plan
    from mcmpart.problem import Problem
    from mcmpart.solve import Result


class InterruptedSearchError(McmpartError):
    """Ctrl-C came before there was a plan (exit code 130)."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class _ProblemOptions:
    package: str
    chips: int | None
    precision: str
    pins: dict[str, int]
    together: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, str], ...]
    all_chips: bool
    start: Path | None


@dataclass(frozen=True, slots=True)
class _SearchOptions:
    method: str
    time_s: float
    evaluations: int | None
    gap: float
    seed: int
    workers: int | None


def partition_command(
    model: ModelArgument,
    *,
    package: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="A name that `package list` prints, or a package file (TOML).",
        ),
    ] = "ring36",
    chips: Annotated[
        int | None,
        typer.Option(metavar="N", help="Cut or extend the package to N chips."),
    ] = None,
    method: Annotated[
        str, typer.Option(help=f"How to search: {', '.join(METHODS)}.")
    ] = "auto",
    time: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wall time of the search.")
    ] = 10.0,
    evaluations: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after N partitions were judged."),
    ] = None,
    gap: Annotated[
        float,
        typer.Option(help="Stop at this distance from the bound; 0.01 is 1 %."),
    ] = 0.01,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Threads. Default: one per core."),
    ] = None,
    dim: DimOption = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="DTYPE",
            help="Dtype that float tensors are deployed in, such as int8 or bf16; "
            "auto keeps the model's own where the package has a peak for it.",
        ),
    ] = "auto",
    op_cost: OpCostOption = None,
    strict: StrictOption = False,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="OP=CHIP", help="Put an op on a chip. Repeat for more."),
    ] = None,
    together: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OP,OP",
            help="Put ops on one chip; a name with a comma stands in double quotes. "
            "Repeat for more.",
        ),
    ] = None,
    apart: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OP,OP", help="Put ops on different chips. Repeat for more."
        ),
    ] = None,
    all_chips: Annotated[
        bool, typer.Option("--all-chips", help="Every chip must get an op.")
    ] = False,
    start: Annotated[
        Path | None,
        typer.Option(metavar="PLAN", help="Start from this plan of the same model."),
    ] = None,
    from_format: FromOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for plan.json, graph.json.gz, package.toml and trace.jsonl. "
            "Default: the model's name with .plan, in the current folder.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Split MODEL over the chips of a package, as evenly as can be.

    Prints a table of the chips, the throughput, a proven lower bound with the gap to
    it, what limits the throughput, and what was assumed. Ctrl-C keeps the best plan.
    """
    options = ModelOptions.parse(model, dim, op_cost, strict, from_format)
    search = _SearchOptions(method, time, evaluations, gap, seed, workers)
    task = _ProblemOptions(
        package=package,
        chips=chips,
        precision=precision,
        pins=parse_pins(pin),
        together=parse_together(together),
        apart=parse_apart(apart),
        all_chips=all_chips,
        start=start,
    )
    folder = _default_folder(model) if output is None else output
    _check_folder(folder)
    with _interruptible(), log_on_stderr():
        imported = options.read()
        _show_import(imported)
        problem, first = _problem(imported.graph, task)
        result = _search(problem, first, search)
    plan = _write(result, folder, options)
    if as_json:
        print_json({**plan.model_dump(), "folder": str(folder)})
    else:
        _show(result, plan, folder)
    if result.stopped_by == "interrupt":
        raise typer.Exit(130)


def _default_folder(model: Path) -> Path:
    stem = model.name
    for suffix in (".gz", ".json", ".graph", ".onnx"):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem or 'model'}.plan")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written now, not after the search."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(
            f"cannot write the plan into {folder}: {there} is a file; choose another "
            "folder with -o"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"cannot write the plan into {folder}: {there} does not let you; choose "
            "another folder with -o"
        )


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedSearchError(
            "interrupted before a plan was found: nothing was written"
        ) from error


def _show_import(imported: ImportResult) -> None:
    # Op kinds are what `inspect` is for; the plan's assumptions end on stdout.
    short = replace(imported.report, ops_of_kind=(), assumptions=())
    for line in short.lines():
        note(line)


def _problem(
    graph: Graph, options: _ProblemOptions
) -> tuple[Problem, Partition | None]:
    from mcmpart.cli._start import partition_of
    from mcmpart.hardware import load_package
    from mcmpart.plan import read_plan
    from mcmpart.problem import Problem, UserRules

    package = load_package(options.package)
    if options.chips is not None:
        package = package.with_chips(options.chips)
    plan = None if options.start is None else read_plan(options.start)
    user = UserRules(options.pins, options.together, options.apart, options.all_chips)
    problem = Problem(
        graph,
        package,
        precision=options.precision,
        user=user,
        # The plan to start from was made with some ops replicated: with the same ones.
        replica_threshold=plan.search.settings.replica_threshold if plan else None,
    )
    return problem, partition_of(plan, problem.graph) if plan else None


def _search(
    problem: Problem, start: Partition | None, options: _SearchOptions
) -> Result:
    from mcmpart.solve import solve

    return solve(
        problem,
        method=options.method,
        time_s=options.time_s,
        evaluations=options.evaluations,
        gap=options.gap,
        seed=options.seed,
        workers=options.workers,
        start=start,
        on_improvement=Progress(),
    )


def _write(result: Result, folder: Path, options: ModelOptions) -> Plan:
    from mcmpart.plan import ImportSettings, write_result
    from mcmpart.verify import verify_plan

    write_result(result, folder, ImportSettings(options.dims, options.op_costs))
    return verify_plan(folder)


def _show(result: Result, plan: Plan, folder: Path) -> None:
    from mcmpart.summary import COLUMNS, headline, limit, table_rows

    print_table(COLUMNS, table_rows(result), "r" * len(COLUMNS))
    typer.echo(headline(result))
    typer.echo(limit(result))
    typer.echo(_stop_reason(result))
    for what, sentences in (
        ("assumptions", plan.assumptions),
        ("warnings", plan.warnings),
    ):
        if sentences:
            noun = what.removesuffix("s") if len(sentences) == 1 else what
            typer.echo(f"{len(sentences)} {noun}:")
            for sentence in sentences:
                typer.echo(f"  {sentence}")
    typer.echo(checked(plan))
    typer.echo(f"written to {folder}{os.sep}")


def _stop_reason(result: Result) -> str:
    spent = f"stopped after {result.seconds:.1f} s, {result.evaluations} evaluations"
    reasons = {
        "gap": "proven optimal"
        if result.gap == 0
        else f"within the gap of {100 * result.budget.gap:g} %",
        "time": f"the time limit of {result.budget.time_s:g} s",
        "evaluations": f"the limit of {result.budget.evaluations} evaluations",
        "done": "the method has nothing more to try",
        "interrupt": "interrupted",
    }
    return f"{spent}: {reasons[result.stopped_by]}"
