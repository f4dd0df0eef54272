"""``mcmpart import``: a model file in, a graph file and a report out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import print_json, show
from mcmpart.cli._options import (
    DimOption,
    FromOption,
    JsonOption,
    ModelArgument,
    ModelOptions,
    OpCostOption,
    StrictOption,
)
from mcmpart.errors import InputError

if TYPE_CHECKING:
    from mcmpart.frontends.report import ImportReport

ENDINGS = (".graph.json", ".graph.json.gz")


def import_command(
    model: ModelArgument,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=f"The graph file to write, NAME{' or NAME'.join(ENDINGS)}.",
        ),
    ],
    dim: DimOption = None,
    op_cost: OpCostOption = None,
    strict: StrictOption = False,
    from_format: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the computation graph of MODEL, and print what was found on the way."""
    if not output.name.endswith(ENDINGS):
        raise InputError(
            f"-o {output} is no name of a graph file: let it end in "
            f"{' or '.join(ENDINGS)}"
        )
    options = ModelOptions.parse(model, dim, op_cost, strict, from_format)
    from mcmpart.graph.file import content_hash, write_graph

    imported = options.read()
    write_graph(imported.graph, output)
    if as_json:
        graph = {"name": imported.graph.name, "sha256": content_hash(imported.graph)}
        report = _record(imported.report)
        print_json({"file": str(output), "graph": graph, "report": report})
    else:
        for line in imported.report.lines():
            show(line)
        show(f"written to {output}")


def _record(report: ImportReport) -> dict[str, object]:
    return {
        **asdict(report),
        "ops_of_kind": dict(report.ops_of_kind),
        "dims": dict(report.dims),
        "ops_covered": report.ops_covered,
        "work_covered": report.work_covered,
    }
