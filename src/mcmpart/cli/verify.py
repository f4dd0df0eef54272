"""``mcmpart verify``: a plan, recomputed by code that no search uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcmpart.cli._console import print_json, show
from mcmpart.cli._options import JsonOption
from mcmpart.errors import InputError, NoPlanFoundError, VerificationError

if TYPE_CHECKING:
    from mcmpart.bounds.certificate import Certificate
    from mcmpart.plan import Plan


def verify_command(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="plan.json or certificate.json, or the folder one stands in.",
        ),
    ],
    *,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Check too that PLAN is for this model."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the rules and figures of a plan, or confirm a certificate.

    By code that no search uses, from the graph and the package in the plan's folder.
    """
    if _is_certificate(plan):
        if model is not None:
            raise InputError(
                f"--model is for plans, and {plan} is a certificate: leave it out"
            )
        _verify_certificate(plan, as_json)
        return
    from mcmpart.verify import find_differences

    document, found = find_differences(plan, model)
    bound_line = ""
    if not found:
        bound_line, found = _confirm_bound(document, plan)
    if as_json:
        print_json({"ok": not found, "differences": found, "bound": bound_line})
    elif found:
        from mcmpart.frontends.report import counted

        show(f"the plan does not hold: {counted(len(found), 'difference')}")
        for difference in found:
            show(f"  {difference}")
    else:
        show(checked(document))
        show(bound_line)
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


def _is_certificate(path: Path) -> bool:
    """Return whether it is a certificate, or the folder that ``bound`` wrote.

    The trace is a plan's: where it stands and plan.json does not, the plan is missing.
    """
    from mcmpart.bounds.certificate import CERTIFICATE_FILE
    from mcmpart.plan import PLAN_FILE, TRACE_FILE

    if path.is_dir():
        of_plan = [(path / name).exists() for name in (PLAN_FILE, TRACE_FILE)]
        return not any(of_plan) and (path / CERTIFICATE_FILE).exists()
    return path.name == CERTIFICATE_FILE


def _verify_certificate(path: Path, as_json: bool) -> None:
    from mcmpart.bounds.certificate import read_certificate

    certificate = read_certificate(path)
    exit_code, how = _how_confirmed(certificate, path)
    if as_json:
        stated = {"method": certificate.method, "bound_s": certificate.bound_s}
        print_json({"ok": exit_code == 0, "how": how, **stated})
    else:
        show(_line(certificate, how))
    if exit_code:
        raise typer.Exit(exit_code)


def _confirm_bound(plan: Plan, path: Path) -> tuple[str, list[str]]:
    """Return how far the plan's bound is confirmed, as a line, and why it is wrong.

    A bound that stays open is no fault of a plan, whose rules and figures hold.
    """
    from mcmpart.verify import certificate_of

    certificate = certificate_of(plan)
    exit_code, how = _how_confirmed(certificate, path)
    line = _line(certificate, how)
    return line, [line] if exit_code == 1 else []


def _line(certificate: Certificate, how: str) -> str:
    from mcmpart.units import format_seconds

    bound = f"{format_seconds(certificate.bound_s)} ({certificate.method})"
    return f"lower bound {bound}: {how}"


def _how_confirmed(certificate: Certificate, path: Path) -> tuple[int, str]:
    """Return the exit code for a bound, and what speaks for it or against it."""
    from mcmpart.verify import Confirmed, confirm_certificate

    folder = path if path.is_dir() else path.parent
    try:
        confirmed = confirm_certificate(certificate, folder)
    except VerificationError as error:
        return VerificationError.exit_code, str(error)
    if confirmed is Confirmed.OPEN:
        return NoPlanFoundError.exit_code, confirmed.value
    return VerificationError.exit_code * (confirmed is Confirmed.NO), confirmed.value
