"""Graph to graph, and ops to units: what happens before any cost is known."""

from mcmpart.rewrite.coarsen import NO_UNIT, coarsen
from mcmpart.rewrite.fold import fold_weights
from mcmpart.rewrite.group import group_units, unit_graph
from mcmpart.rewrite.precision import set_precision
from mcmpart.rewrite.replicate import mark_replicable

__all__ = [
    "NO_UNIT",
    "coarsen",
    "fold_weights",
    "group_units",
    "mark_replicable",
    "set_precision",
    "unit_graph",
]
