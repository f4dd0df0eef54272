"""``mcmpart bound``: what no partition can beat, with a certificate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import log_on_stderr, print_json, show
from mcmpart.cli._folder import check_folder, output_folder
from mcmpart.cli._job import (
    InterruptedSearchError,
    TaskOptions,
    interruptible,
    problem_of,
)
from mcmpart.cli._options import (
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

if TYPE_CHECKING:
    from mcmpart.certify import Proven


def bound_command(
    model: ModelArgument,
    *,
    package: PackageOption = "ring36",
    chips: ChipsOption = None,
    method: Annotated[
        str,
        typer.Option(help="How to prove: chain (ideals first), ideals, exact, simple."),
    ] = "chain",
    time: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wall time of the proof.")
    ] = 60.0,
    dim: DimOption = None,
    precision: PrecisionOption = "auto",
    op_cost: OpCostOption = None,
    strict: StrictOption = False,
    replica_threshold: ReplicaOption = None,
    pin: PinOption = None,
    together: TogetherOption = None,
    apart: ApartOption = None,
    all_chips: AllChipsOption = False,
    from_format: FromOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for certificate.json, graph.json.gz and package.toml. "
            "Default: the model's name with .bound, in the current folder.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove how good at most any partition of MODEL can be.

    Writes a certificate that `mcmpart verify` checks. A proof that runs out of time
    gives a weaker bound, which holds too.
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
        start=None,
    )
    folder = output_folder(model, output, ".bound")
    from mcmpart.certify import check_options, proven
    from mcmpart.plan import PROOF_FILES, folder_lock, write_proof

    check_options(method, time)
    check_folder(folder, PROOF_FILES)

    with interruptible("a bound was proven"), log_on_stderr():
        found = proven(problem_of(options, task), method, time)
    certificate = found.certificate
    with folder_lock(folder):
        write_proof(certificate, found.problem, folder)
    if as_json:
        about = {
            "best_s": found.best_s if math.isfinite(found.best_s) else None,
            "stopped_by": found.stopped_by,
            "folder": str(folder),
        }
        print_json({**certificate.model_dump(), **about})
    else:
        _show_bound(found, method)
        show(f"written to {folder}/")
    if found.stopped_by == "interrupt":
        raise typer.Exit(InterruptedSearchError.exit_code)


def _show_bound(found: Proven, method: str) -> None:
    from mcmpart.bounds.prove import OPTIMAL
    from mcmpart.search import relative_gap
    from mcmpart.units import format_gap, format_rate, format_seconds

    certificate, bound_s = found.certificate, found.certificate.bound_s
    show(f"proven lower bound {format_seconds(bound_s)} ({certificate.method}):")
    show(f"  {certificate.proof}")
    if bound_s > 0:
        show(f"no partition has a throughput above {format_rate(1 / bound_s)}")
    gap = relative_gap(found.best_s, bound_s)
    if math.isfinite(found.best_s):
        how_far = "optimal" if gap <= OPTIMAL else f"gap {format_gap(gap)}"
        show(f"best plan met on the way: {format_seconds(found.best_s)}, {how_far}")
    if gap > OPTIMAL and certificate.method == "simple" != method:
        show(
            f"{method} proved no more than simple: try another --method or more --time"
        )
    elif found.stopped_by != "done":
        reason = {"time": "the time limit", "interrupt": "Ctrl-C"}[found.stopped_by]
        show(f"stopped by {reason}: a longer proof may find a higher bound")
