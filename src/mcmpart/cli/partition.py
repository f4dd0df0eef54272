"""``mcmpart partition``: the main job, from a model to a verified plan on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import log_on_stderr, print_json, print_table, show
from mcmpart.cli._folder import check_folder, output_folder
from mcmpart.cli._job import SearchOptions, TaskOptions, interruptible, run
from mcmpart.cli._options import (
    METHODS,
    AllChipsOption,
    ApartOption,
    ChipsOption,
    DimOption,
    FromOption,
    JsonOption,
    ModelArgument,
    ModelOptions,
    OpCostOption,
    PackageOption,
    PinOption,
    PrecisionOption,
    ReplicaOption,
    StrictOption,
    TogetherOption,
    parse_apart,
    parse_pins,
    parse_together,
)
from mcmpart.cli.verify import checked

if TYPE_CHECKING:
    from mcmpart.plan import Plan
    from mcmpart.solve import Result


def partition_command(
    model: ModelArgument,
    *,
    package: PackageOption = "ring36",
    chips: ChipsOption = None,
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
    precision: PrecisionOption = "auto",
    op_cost: OpCostOption = None,
    strict: StrictOption = False,
    replica_threshold: ReplicaOption = None,
    pin: PinOption = None,
    together: TogetherOption = None,
    apart: ApartOption = None,
    all_chips: AllChipsOption = False,
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
            help="Folder for plan.json, graph.json.gz, package.toml, certificate.json "
            "and trace.jsonl. Default: the model's name with .plan, in the current "
            "folder.",
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
    folder = output_folder(model, output, ".plan")
    from mcmpart.plan import FILES

    check_folder(folder, FILES)
    with interruptible(), log_on_stderr():
        result = run(options, task, search)
    plan = _write(result, folder, options)
    if as_json:
        print_json({**plan.model_dump(), "folder": str(folder)})
    else:
        _show(result, plan, folder)
    if result.stopped_by == "interrupt":
        raise typer.Exit(130)


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
    from mcmpart.bounds.prove import OPTIMAL
    from mcmpart.frontends.report import counted

    judged = counted(result.evaluations, "partition")
    spent = f"stopped after {result.seconds:.1f} s, {judged} judged"
    reasons = {
        "gap": "proven optimal"
        if result.gap <= OPTIMAL
        else f"within the gap of {100 * result.budget.gap:g} %",
        "time": f"the time limit of {result.budget.time_s:g} s",
        "evaluations": "the limit of "
        + counted(result.budget.evaluations or 0, "partition"),
        "done": "the method has nothing more to try",
        "interrupt": "interrupted",
    }
    return f"{spent}: {reasons[result.stopped_by]}"
