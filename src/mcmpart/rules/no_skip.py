"""no_skip: the used chips are 0, 1, ..., m - 1."""

from __future__ import annotations

from mcmpart.reference import Reference
from mcmpart.rules.violation import Violation


def explain(loads: Reference) -> list[Violation]:
    """Return the empty chips below the highest used one."""
    top = max(loads.used, default=-1)
    return [
        Violation(
            "no_skip",
            f"chip {load.chip} is empty, but chip {top} is used",
            (load.chip,),
        )
        for load in loads.chips[: max(top, 0)]
        if load.ops == 0
    ]
