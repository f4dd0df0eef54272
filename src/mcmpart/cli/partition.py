"""``mcmpart partition``: the main job, from a model to a verified plan on disk."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import log_on_stderr, print_json, print_table, show
from mcmpart.cli._job import SearchOptions, TaskOptions, run
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
    from mcmpart.plan import Plan
    from mcmpart.solve import Result


class InterruptedSearchError(McmpartError):
    """Ctrl-C came before there was a plan (exit code 130)."""

    exit_code = 130


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
        typer.Option(
            metavar="SHARE",
            help="Stop at this distance from the bound; 0.01 is 1 %.",
        ),
    ] = 0.01,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Decides every random choice.")
    ] = 0,
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
    replica_threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Replicate cheap ops whose ancestors cost at most this share of the "
            "model; 0 replicates none. Default: chosen by trying.",
        ),
    ] = None,
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
        str | None,
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

    Prints a table of the chips (ops 2+1: two and one replica), the throughput, a proven
    lower bound with the gap to it, latency and energy, what limits the throughput, and
    what was assumed. Ctrl-C keeps the best plan.
    """
    options = ModelOptions.parse(model, dim, op_cost, strict, from_format)
    task = TaskOptions(
        package=package,
        chips=chips,
        precision=precision,
        replica_threshold=replica_threshold,
        pins=parse_pins(pin),
        together=parse_together(together),
        apart=parse_apart(apart),
        all_chips=all_chips,
        start=start,
    )
    search = SearchOptions(method, time, evaluations, gap, seed, workers)
    folder = _default_folder(model) if output is None else _typed_folder(output)
    _check_folder(folder)
    with _interruptible(), log_on_stderr():
        result = run(options, task, search)
    plan = _write(result, folder, options)
    if as_json:
        print_json({**plan.model_dump(), "folder": str(folder)})
    else:
        _show(result, plan, folder)
    if result.stopped_by == "interrupt":
        raise typer.Exit(130)


def _default_folder(model: Path) -> Path:
    stem = model.name
    for suffix in (".gz", ".json", ".txt", ".graph", ".onnx"):
        stem = stem.removesuffix(suffix)
    return Path(f"{stem or 'model'}.plan")


def _typed_folder(text: str) -> Path:
    # As a path, an empty text would be the current folder.
    if not text:
        raise InputError("-o is empty: name the folder for the plan, or leave it out")
    return Path(text)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written now, not after the search."""
    from mcmpart.plan import GRAPH_FILE, PACKAGE_FILE, PLAN_FILE, TRACE_FILE

    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(
            f"cannot write the plan into {folder}: {there} is a file; choose another "
            "folder with -o"
        )
    for name in (PLAN_FILE, GRAPH_FILE, PACKAGE_FILE, TRACE_FILE):
        if (folder / name).is_dir():
            raise InputError(
                f"cannot write the plan into {folder}: {folder / name} is a folder; "
                "remove it or choose another folder with -o"
            )
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise InputError(
            f"cannot write the plan into {folder}: {error.strerror}; choose another "
            "folder with -o"
        ) from error


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedSearchError(
            "interrupted before a plan was found: nothing was written"
        ) from error


def _write(result: Result, folder: Path, options: ModelOptions) -> Plan:
    from mcmpart.plan import ImportSettings, folder_lock, write_files
    from mcmpart.verify import verify_plan

    settings = ImportSettings(options.dims, options.op_costs)
    # Another run into this folder waits, so what is verified is what was written.
    with _undisturbed(), folder_lock(folder):
        write_files(result, folder, settings)
        return verify_plan(folder)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C: a second one must not lose the plan that the first one kept."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _show(result: Result, plan: Plan, folder: Path) -> None:
    from mcmpart.frontends.report import counted
    from mcmpart.summary import COLUMNS, summary_lines, table_rows

    print_table(COLUMNS, table_rows(result), "r" * len(COLUMNS))
    for line in (*summary_lines(result), _stop_reason(result)):
        show(line)
    for noun, sentences in (
        ("assumption", plan.assumptions),
        ("warning", plan.warnings),
    ):
        if sentences:
            show(f"{counted(len(sentences), noun)}:")
            for sentence in sentences:
                show(f"  {sentence}")
    show(checked(plan))
    show(f"written to {folder}{os.sep}")


def _stop_reason(result: Result) -> str:
    from mcmpart.frontends.report import counted

    judged = counted(result.evaluations, "partition")
    spent = f"stopped after {result.seconds:.1f} s, {judged} judged"
    reasons = {
        "gap": "proven optimal"
        if result.gap == 0
        else f"within the gap of {100 * result.budget.gap:g} %",
        "time": f"the time limit of {result.budget.time_s:g} s",
        "evaluations": "the limit of "
        + counted(result.budget.evaluations or 0, "partition"),
        "done": "the method has nothing more to try",
        "interrupt": "interrupted",
    }
    return f"{spent}: {reasons[result.stopped_by]}"
