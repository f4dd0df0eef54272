"""``mcmpart verify``: a plan, recomputed by code that no search uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import print_json, show
from mcmpart.cli._options import JsonOption

if TYPE_CHECKING:
    from mcmpart.plan import Plan


def verify_command(
    plan: Annotated[
        Path,
        typer.Argument(metavar="PLAN", help="plan.json, or the folder it stands in."),
    ],
    *,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Check too that PLAN is for this model."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the rules and figures of a plan.

    By code that no search uses, from the graph and the package in the plan's folder.
    """
    from mcmpart.verify import find_differences

    document, found = find_differences(plan, model)
    if as_json:
        print_json({"ok": not found, "differences": found})
    elif found:
        from mcmpart.frontends.report import counted

        show(f"the plan does not hold: {counted(len(found), 'difference')}")
        for difference in found:
            show(f"  {difference}")
    else:
        show(checked(document))
        if model is not None:
            show(f"{model} is the model that the plan was made for")
    if found:
        raise typer.Exit(1)


def checked(plan: Plan) -> str:
    """Return how much of ``plan`` a verification recomputes, as one line."""
    from mcmpart.frontends.report import counted
    from mcmpart.plan import ChipRow, LinkRow

    # Bottleneck, throughput, latency, energy, bound and gap.
    figures = 6
    figures += len(plan.chips) * (len(ChipRow.model_fields) - 1)
    figures += len(plan.links) * (len(LinkRow.model_fields) - 1)
    settings = plan.search.settings
    demands = len(settings.pins) + len(settings.together) + len(settings.apart)
    # Dataflow is a rule of every package.
    rules = 1 + len(plan.rules) + demands + settings.all_chips
    return f"verified: {counted(rules, 'rule')} and {figures} figures recomputed"
