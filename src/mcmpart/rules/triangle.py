"""triangle: where the chip graph has an arc, it has no longer path beside it."""

from __future__ import annotations

from mcmpart.graph.graph import Graph
from mcmpart.reference import Reference
from mcmpart.rules.violation import Violation


def explain(graph: Graph, loads: Reference) -> list[Violation]:
    """Return each arc (a, b) whose longest path a ~> b has more than one arc."""
    targets: dict[int, set[int]] = {}
    for a, b in loads.arcs:
        targets.setdefault(a, set()).add(b)
    reach: dict[int, set[int]] = {}
    for a in sorted(targets, reverse=True):
        further = [reach.get(b, set()) for b in targets[a]]
        reach[a] = targets[a].union(*further)
    found = []
    for (a, b), (u, v) in sorted(loads.arcs.items()):
        over = [c for c in sorted(targets[a]) if c != b and b in reach.get(c, set())]
        if over:
            found.append(
                Violation(
                    "triangle",
                    f"{graph.op_name[u]!r} on chip {a} feeds {graph.op_name[v]!r} on "
                    f"chip {b} beside the longer path over chip {over[0]}",
                    (a, over[0], b),
                )
            )
    return found
