"""Articulation points: the ops that all data must pass through."""

from __future__ import annotations

from itertools import accumulate

from mcmpart.graph import Graph
from mcmpart.graph.graph import HOST


def articulation_points(graph: Graph) -> list[int]:
    """Return the ops that every path from a source to a sink passes, ascending.

    Sources are the ops that read a model input, sinks those that write a model output;
    where a graph has none of them, the ops without predecessors, or successors.

    Notes
    -----
    Ops stand in topological order, so a path that avoids op v steps over its position
    in one edge: v is such a point iff no edge between ops that lie on a path, nor the
    way into a source or out of a sink, steps over it. O(V + E).
    """
    sources, sinks = _ends(graph)
    before = _reached(graph, sources, forwards=True)
    after = _reached(graph, sinks, forwards=False)
    on_path = [a and b for a, b in zip(before, after, strict=True)]
    # The number of steps over each position, as differences.
    changes = [0] * (graph.num_ops + 1)
    for op in range(graph.num_ops):
        if not on_path[op]:
            continue
        if sources[op]:
            changes[0] += 1
            changes[op] -= 1
        readers = [v for v in graph.successors.row(op).tolist() if on_path[v]]
        last = graph.num_ops if sinks[op] else max(readers)
        changes[op + 1] += 1
        changes[last] -= 1
    over = list(accumulate(changes))
    return [op for op in range(graph.num_ops) if on_path[op] and over[op] == 0]


def _ends(graph: Graph) -> tuple[list[bool], list[bool]]:
    from_host = graph.tensor_producer == HOST
    sources, sinks = [], []
    for op in range(graph.num_ops):
        sources.append(bool(from_host[graph.reads.row(op)].any()))
        sinks.append(bool(graph.tensor_is_output[graph.writes.row(op)].any()))
    if not any(sources):
        sources = [not graph.predecessors.row(op).size for op in range(graph.num_ops)]
    if not any(sinks):
        sinks = [not graph.successors.row(op).size for op in range(graph.num_ops)]
    return sources, sinks


def _reached(graph: Graph, ends: list[bool], *, forwards: bool) -> list[bool]:
    """Return which ops lie on or behind ``ends``, with or against the data's way."""
    reached = list(ends)
    rows = graph.successors if forwards else graph.predecessors
    order = range(graph.num_ops)
    for op in order if forwards else reversed(order):
        if reached[op]:
            for neighbour in rows.row(op).tolist():
                reached[neighbour] = True
    return reached
