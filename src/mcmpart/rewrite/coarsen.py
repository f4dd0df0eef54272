"""Ops to units: groups that share a chip, then views that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcmpart.graph import HOST, Graph
from mcmpart.graph.graph import Bool, Int32
from mcmpart.graph.order import kahn_order
from mcmpart.rewrite._components import DisjointSets
from mcmpart.rewrite.group import group_units, unit_graph

NO_UNIT = -1
"""Unit of a replicable op: it has no chip of its own."""


def coarsen(
    graph: Graph,
    together: Sequence[Sequence[int]],
    *,
    keep: frozenset[int] = frozenset(),
    merge_views: bool = True,
) -> Int32:
    """Return the unit of each op, ``[V] int32``; ops of one unit share a chip.

    Units are numbered in a topological order of the unit graph, which is acyclic; among
    the units that are ready, the one with the smallest op comes first. Replicable ops
    get ``NO_UNIT``.

    Parameters
    ----------
    graph
        The graph, replicable ops marked.
    together
        Groups of op indices that share a chip (:func:`group_units`).
    keep
        Ops that are no view even if they cost nothing: pinned ones, for example.
    merge_views
        Join each view to a neighbour where that loses nothing.

    Notes
    -----
    A view is an op with no FLOPs, no bytes and no measured time, alone in its unit. Let
    v be one, x what it reads and y what it writes, b() bytes in all.

    (A) v reads one tensor x only, of an op p that has a chip, nobody else reads x, x is
    no model output and b(y) <= b(x): v joins p. From any partition, move v to p's chip:
    where x went, now at most y goes, and v costs no time.

    (B) v (or several views that A joined) reads nothing of a replicable op, one unit r
    only reads y, y is no model output and b(x) <= b(y): v joins r. From any partition,
    move v to r's chip: where y went, now at most x goes.

    So no stage and no hop takes longer, and the least bottleneck stays. The limits: a
    view alone on a chip can be what fills it under ``no_skip``, or the stepping stone
    that makes an arc legal under ``triangle``, and the live tensors of a chip may grow
    by b(x) or b(y) under ``memory``.

    Each join contracts an edge (p, v) where p is v's only predecessor, or (v, r) where
    r is v's only successor. A new cycle would need a second path p ~> v or v ~> r; its
    last or first edge would be that same edge, and the rest of it a cycle that was
    there before. So the unit graph stays acyclic.
    """
    unit_of = group_units(graph, together)
    if merge_views:
        unit_of = _join_views(graph, unit_of, keep)
    return _numbered(graph, unit_of)


def _numbered(graph: Graph, unit_of: Int32) -> Int32:
    """Return the units numbered in topological order, the smallest op first."""
    placed = ~graph.op_replicable
    dense = np.full(graph.num_ops, NO_UNIT, dtype=np.int32)
    # A label is the smallest op of its unit, so this numbers by smallest op.
    labels, dense[placed] = np.unique(unit_of[placed], return_inverse=True)
    successors = unit_graph(graph, dense)
    tails = np.repeat(np.arange(successors.indptr.size - 1), np.diff(successors.indptr))
    edges = zip(tails.tolist(), successors.indices.tolist(), strict=True)
    order = kahn_order(labels.size, edges)
    assert len(order) == labels.size, "the unit graph has a cycle"
    rank = np.empty(labels.size, dtype=np.int32)
    rank[order] = np.arange(labels.size, dtype=np.int32)
    dense[placed] = rank[dense[placed]]
    return dense


def _join_views(graph: Graph, unit_of: Int32, keep: frozenset[int]) -> Int32:
    free = _views(graph, unit_of, keep)
    sets = DisjointSets(graph.num_ops)
    for op, label in enumerate(unit_of.tolist()):
        sets.union(op, label)
    _join_producers(graph, free, sets)
    _join_readers(graph, free, sets)
    return sets.roots()


def _views(graph: Graph, unit_of: Int32, keep: frozenset[int]) -> Bool:
    """Return which ops are views alone in their unit, ``[V] bool``."""
    alone = np.bincount(unit_of, minlength=graph.num_ops)[unit_of] == 1
    measured = np.nan_to_num(graph.op_seconds) > 0
    nothing = (graph.op_flops == 0) & (graph.op_bytes == 0) & ~measured
    free: Bool = alone & nothing & ~graph.op_replicable
    free[list(keep)] = False
    return free


def _join_producers(graph: Graph, free: Bool, sets: DisjointSets) -> None:
    """Rule A, in topological order, so that a chain of views follows its head."""
    num_readers = np.diff(graph.consumers.indptr)
    for op in np.flatnonzero(free).tolist():
        reads = graph.reads.row(op)
        if reads.size != 1:
            continue
        tensor = int(reads[0])
        producer = int(graph.tensor_producer[tensor])
        if (
            producer != HOST
            and not graph.op_replicable[producer]
            and num_readers[tensor] == 1
            and not graph.tensor_is_output[tensor]
            and graph.tensor_bytes[graph.writes.row(op)].sum()
            <= graph.tensor_bytes[tensor]
        ):
            sets.union(producer, op)


def _join_readers(graph: Graph, free: Bool, sets: DisjointSets) -> None:
    """Rule B, last unit first, so that a chain of units follows its end."""
    labels = sets.roots()
    members: dict[int, list[int]] = {}
    all_views = np.ones(graph.num_ops, dtype=np.bool_)
    np.logical_and.at(all_views, labels, free)
    for op in np.flatnonzero(all_views[labels]).tolist():
        members.setdefault(int(labels[op]), []).append(op)
    for ops in sorted(members.values(), reverse=True):
        reader = _only_reader(graph, ops, sets)
        if reader is not None and _gains_by_waiting(graph, ops):
            sets.union(ops[0], reader)


def _only_reader(graph: Graph, ops: list[int], sets: DisjointSets) -> int | None:
    """Return an op of the only unit that reads from ``ops``; None if there is none."""
    readers: set[int] = set()
    for op in ops:
        for tensor in graph.writes.row(op):
            if graph.tensor_is_output[tensor]:
                return None
            readers.update(sets.find(v) for v in graph.consumers.row(tensor).tolist())
    readers.discard(sets.find(ops[0]))
    return readers.pop() if len(readers) == 1 else None


def _gains_by_waiting(graph: Graph, ops: list[int]) -> bool:
    """Whether what ``ops`` read from outside is no larger than what leaves them."""
    read = np.unique(np.concatenate([graph.reads.row(op) for op in ops]))
    written = np.concatenate([graph.writes.row(op) for op in ops])
    outside = np.setdiff1d(read, written)
    producers = graph.tensor_producer[outside]
    if graph.op_replicable[producers[producers != HOST]].any():
        return False
    inner = set(ops)
    leaving = [t for t in written if not inner.issuperset(graph.consumers.row(t))]
    return bool(graph.tensor_bytes[outside].sum() <= graph.tensor_bytes[leaving].sum())
