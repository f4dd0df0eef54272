"""dataflow: no edge goes to a lower chip."""

from __future__ import annotations

from collections.abc import Sequence

from mcmpart.graph.graph import Graph
from mcmpart.hardware.package import Package
from mcmpart.rules.violation import Violation


def explain(graph: Graph, package: Package, chip_of: Sequence[int]) -> list[Violation]:
    """Return the edges (u, v) with f(u) > f(v), and the ops on no chip at all."""
    found = []
    for v in range(graph.num_ops):
        if graph.op_replicable[v]:
            continue
        if not 0 <= chip_of[v] < package.num_chips:
            found.append(
                Violation(
                    "dataflow",
                    f"op {graph.op_name[v]!r} is on chip {chip_of[v]}, and package "
                    f"{package.name!r} has chips 0 to {package.num_chips - 1}",
                )
            )
            continue
        found.extend(
            Violation(
                "dataflow",
                f"op {graph.op_name[v]!r} on chip {chip_of[v]} reads what "
                f"{graph.op_name[u]!r} makes on the later chip {chip_of[u]}",
                (int(chip_of[u]), int(chip_of[v])),
            )
            for u in graph.predecessors.row(v).tolist()
            if not graph.op_replicable[u] and chip_of[u] > chip_of[v]
        )
    return found
