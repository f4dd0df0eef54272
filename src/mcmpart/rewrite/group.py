"""Groups of ops that share a chip, and what dataflow adds to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcmpart.graph import Csr, Graph
from mcmpart.graph.graph import Int32
from mcmpart.rewrite._components import DisjointSets, strong_components


def group_units(graph: Graph, together: Sequence[Sequence[int]]) -> Int32:
    """Return for each op the smallest op of its unit, ``[V] int32``.

    Groups that share an op become one unit. A unit {a, b} with a path a -> x -> b
    swallows x, since dataflow demands f(a) <= f(x) <= f(b): the strong components of
    the unit graph are contracted, after which it is acyclic. Replicable ops have no
    chip, so they stay alone, also where a group names them.

    Parameters
    ----------
    graph
        The graph; its own ``together`` counts only where the caller passes it.
    together
        Groups of op indices.
    """
    sets = DisjointSets(graph.num_ops)
    grouped = False
    for group in together:
        members = [op for op in group if not graph.op_replicable[op]]
        for op in members[1:]:
            sets.union(members[0], op)
            grouped = True
    unit_of = sets.roots()
    if not grouped:
        return unit_of
    return strong_components(unit_graph(graph, unit_of))[unit_of]


def unit_graph(graph: Graph, unit_of: Int32) -> Csr:
    """Return the successors of each unit (itself left out), rows by unit label.

    Parameters
    ----------
    graph
        The graph whose data edges are projected.
    unit_of
        ``[V] int32``: unit label of each op, -1 for an op without one.
    """
    tail = unit_of[
        np.repeat(np.arange(graph.num_ops), np.diff(graph.successors.indptr))
    ]
    head = unit_of[graph.successors.indices]
    between = (tail != head) & (tail >= 0) & (head >= 0)
    num_units = int(unit_of.max()) + 1 if unit_of.size else 0
    return Csr.from_pairs(tail[between], head[between], num_units)
