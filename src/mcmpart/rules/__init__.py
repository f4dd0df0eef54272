"""The static rules, one file each; ``explain`` says how a partition breaks them."""

from collections.abc import Sequence

from mcmpart.graph.graph import Graph
from mcmpart.hardware.package import Package
from mcmpart.problem import UserRules
from mcmpart.reference import recompute
from mcmpart.rules import dataflow, memory, no_skip, triangle, user
from mcmpart.rules.violation import Violation

__all__ = ["Violation", "explain"]


def explain(
    graph: Graph, package: Package, chip_of: Sequence[int], rules: UserRules
) -> list[Violation]:
    """Return every way in which the partition breaks a rule; empty if it is valid.

    A break of ``dataflow`` is reported alone: without it the rest is not defined.
    """
    found = dataflow.explain(graph, package, chip_of)
    if found:
        return found
    loads = recompute(graph, package, chip_of)
    if package.has_rule("no_skip"):
        found += no_skip.explain(loads)
    if package.has_rule("triangle"):
        found += triangle.explain(graph, loads)
    if package.has_rule("memory"):
        found += memory.explain(package, loads)
    return found + user.explain(graph, chip_of, rules, loads)
