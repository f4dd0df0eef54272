"""The checks at the end of an import: what could not be found, said in one error."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.scope import Context, Unresolved
from mcmpart.frontends.report import counted, shortened


def check_resolved(context: Context) -> None:
    """Refuse a model with shapes that could not be found, naming each first op."""
    if not context.unresolved:
        return
    raise InputError(
        f"{counted(len(context.unresolved), 'shape')} could not be found: "
        f"{shortened([_sentence(u) for u in context.unresolved], 8)}; "
        f"{_remedy(context)}"
    )


def check_costs(context: Context, kinds: Collection[str], *, strict: bool) -> None:
    """Refuse costs given for kinds the model lacks and, when strict, missing rules."""
    for kind in context.op_costs:
        if kind in kinds or kind in context.costed_by_user:
            continue
        near = difflib.get_close_matches(kind, list(kinds), n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {_listed(kinds)}"
        raise InputError(f"--op-cost names {kind}, which is no op of the model: {hint}")
    if not strict or not (context.unruled or context.unshaped):
        return
    faults = [
        f"{_counted(kind, places)} has no cost rule (set --op-cost {flag(kind)}=FLOPS)"
        for kind, places in context.unruled.items()
    ]
    faults += [
        f"{_counted(kind, places)} has no shape rule (write its output shape into the "
        "model's value_info)"
        for kind, places in context.unshaped.items()
    ]
    raise InputError(
        f"--strict allows no guess: {'; '.join(faults)}; or leave out --strict"
    )


def flag(kind: str) -> str:
    """Return the kind as ``--op-cost`` takes it.

    Examples
    --------
    >>> flag("Relu"), flag("my.dom::Foo")
    ('ai.onnx::Relu', 'my.dom::Foo')
    """
    return kind if "::" in kind else f"ai.onnx::{kind}"


def kind_keys(costs: Mapping[str, int]) -> dict[str, int]:
    """Return the user's costs by kind, the default domain without its name.

    Raises
    ------
    InputError
        A cost is negative.
    """
    keys: dict[str, int] = {}
    for name, flops in costs.items():
        if flops < 0:
            raise InputError(
                f"the cost of an op is 0 or more FLOPs, and {name} is given {flops}"
            )
        domain, _, kind = name.rpartition("::")
        keys[kind if domain in ("", "ai.onnx") else name] = flops
    return keys


def _remedy(context: Context) -> str:
    unread = context.initializers.unread
    if unread:
        places = [f"{file} (weight {name})" for name, file in unread.items()]
        return (
            "external data that shapes are made of is missing or too short: put the "
            f"whole file next to the model: {shortened(places)}"
        )
    first = context.unresolved[0].output
    return (
        f"set their dimensions (--dim {first}.0=N --dim {first}.1=N and so on), or "
        "write the shapes into the model's value_info"
    )


def _sentence(unresolved: Unresolved) -> str:
    return (
        f"{unresolved.output!r} of {unresolved.node!r} ({unresolved.kind}): "
        f"{unresolved.why}"
    )


def _counted(kind: str, places: list[str]) -> str:
    return f"{kind} ({counted(len(places), 'op')}: {shortened(places, 3)})"


def _listed(kinds: Collection[str]) -> str:
    return shortened(sorted(kinds), 8) or "none"
