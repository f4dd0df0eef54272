"""The user's rules: pin, together, apart, and a demand for all chips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcmpart.graph.graph import Graph
from mcmpart.problem import UserRules
from mcmpart.reference import Reference
from mcmpart.rules.violation import Violation


def explain(
    graph: Graph, chip_of: Sequence[int], rules: UserRules, loads: Reference
) -> list[Violation]:
    """Return every user rule, and every group of the graph, that does not hold."""
    index = {name: i for i, name in enumerate(graph.op_name)}
    found = [
        Violation("pin", f"op {op!r} is on chip {chip_of[index[op]]}, not on {chip}")
        for op, chip in rules.pins.items()
        if chip_of[index[op]] != chip
    ]
    named = [[index[op] for op in group] for group in rules.together]
    for group in (*graph.together, *named):
        chips = _chips(group, graph, chip_of)
        if len(chips) > 1:
            names = ", ".join(repr(graph.op_name[op]) for op in list(group)[:4])
            found.append(
                Violation("together", f"{names} must share a chip", tuple(chips))
            )
    found.extend(
        Violation("apart", f"ops {a!r} and {b!r} share chip {chip_of[index[a]]}")
        for a, b in rules.apart
        if chip_of[index[a]] == chip_of[index[b]]
    )
    if rules.all_chips:
        found.extend(
            Violation("all_chips", f"chip {load.chip} is empty", (load.chip,))
            for load in loads.chips
            if load.ops == 0
        )
    return found


def _chips(group: Iterable[int], graph: Graph, chip_of: Sequence[int]) -> list[int]:
    ordinary = [op for op in group if not graph.op_replicable[op]]
    return sorted({int(chip_of[op]) for op in ordinary})
