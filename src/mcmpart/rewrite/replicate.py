"""Cheap ops that feed far-apart readers are computed wherever they are needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mcmpart.errors import GraphError
from mcmpart.graph import Graph
from mcmpart.graph.graph import Bool, Float64
from mcmpart.rewrite._kinds import is_random

ROUNDING = 1e-12
"""Relative slack of a share, so that summing in another order decides nothing."""


def mark_replicable(
    graph: Graph,
    work_s: Float64,
    *,
    threshold: float = 0.002,
    spread: float = 0.02,
    keep: frozenset[int] = frozenset(),
) -> Graph:
    """Return ``graph`` with ``op_replicable`` set; flags that are set stay set.

    An op is replicable when it writes no model output, reads only HOST tensors, weights
    and replicable ops, its ancestor cone is cheap, and its readers lie far apart. Ops
    that are random, in a ``together`` group or in ``keep`` are not.

    Parameters
    ----------
    graph
        Weight-only ops already folded.
    work_s
        ``[V] float64``: what each op costs, in seconds.
    threshold
        Largest share, in [0, 1], of all work and of all weight bytes that the cone (the
        op and the replicable ops it depends on, each once, each weight once) may cost;
        at 0 no op is marked, not even a view, which costs nothing.
    spread
        Share, in [0, 1], of all work that must be exceeded between the first and the
        last op with a chip that reads it, directly or through replicable ops, both left
        out, in topological order.
    keep
        Ops that must have a chip of their own: pinned ones, for example.

    Raises
    ------
    GraphError
        A flag set in ``graph`` stands on an op that cannot be replicated.
    """
    bound = _bound_ops(graph, keep)
    faults = _flag_faults(graph, bound)
    if faults:
        raise GraphError(graph.name, faults)
    candidates = _Cones(graph, work_s, threshold).candidates(bound)
    replicable = _far_read(graph, work_s, candidates, spread)
    faults = _order_faults(graph, replicable)
    if faults:
        raise GraphError(graph.name, faults)
    return replace(graph, op_replicable=replicable)


def _bound_ops(graph: Graph, keep: frozenset[int]) -> dict[int, str]:
    """Return the ops that need a chip of their own, each with the reason."""
    bound = {
        op: f"is random ({kind}), so that each copy would differ"
        for op, kind in enumerate(graph.op_kind)
        if is_random(kind)
    }
    produced = graph.tensor_producer[graph.tensor_is_output]
    bound.update((op, "writes a model output") for op in produced.tolist() if op >= 0)
    bound.update((op, "is bound by a rule of the user") for op in sorted(keep))
    grouped = {op for group in graph.together for op in group}
    bound.update((op, "is in a together group") for op in sorted(grouped))
    return bound


def _flag_faults(graph: Graph, bound: dict[int, str]) -> list[str]:
    return [
        f"op {graph.op_name[op]!r} is marked replicable and {reason}: clear the mark"
        for op, reason in sorted(bound.items())
        if graph.op_replicable[op]
    ]


def _order_faults(graph: Graph, replicable: Bool) -> list[str]:
    """Return a sentence per replicable op that reads an op with a chip."""
    return [
        f"op {graph.op_name[op]!r} is marked replicable and reads op "
        f"{graph.op_name[source]!r}, which has a chip of its own: clear the mark"
        for op in np.flatnonzero(replicable).tolist()
        for source in graph.predecessors.row(op).tolist()
        if not replicable[source]
    ]


@dataclass(slots=True)
class _Cones:
    """Work and weight bytes of ancestor cones, with what they may be at most.

    Attributes
    ----------
    work_s, weight_bytes
        Per candidate, no less than its cone's: the sum over what it reads, which counts
        shared ancestors more than once, or the exact value where that sum was too much.
    """

    graph: Graph
    op_work_s: Float64
    threshold: float
    work_s: dict[int, float] = field(default_factory=dict)
    weight_bytes: dict[int, int] = field(default_factory=dict)
    max_work_s: float = field(init=False)
    max_weight_bytes: float = field(init=False)

    def __post_init__(self) -> None:
        share = self.threshold * (1 + ROUNDING)
        self.max_work_s = share * float(self.op_work_s.sum())
        self.max_weight_bytes = share * int(self.graph.weight_bytes.sum())

    def candidates(self, bound: dict[int, str]) -> Bool:
        """Return which ops are cheap and read nothing of a chip, ``[V] bool``."""
        graph = self.graph
        candidate = graph.op_replicable.copy()
        for op in range(graph.num_ops):
            sources = graph.predecessors.row(op)
            free = self.threshold > 0 and op not in bound and candidate[sources].all()
            if free or graph.op_replicable[op]:
                # A flag that stands on a reader of an op with a chip is a fault, which
                # is reported when all marks are known.
                known = sources[candidate[sources]].tolist()
                candidate[op] |= self._is_cheap(op, known)
        return candidate

    def _is_cheap(self, op: int, sources: list[int]) -> bool:
        weights = self.graph.weights_of.row(op)
        work_s = float(self.op_work_s[op]) + sum(self.work_s[u] for u in sources)
        weight_bytes = int(self.graph.weight_bytes[weights].sum())
        weight_bytes += sum(self.weight_bytes[u] for u in sources)
        if not self._allows(work_s, weight_bytes):
            work_s, weight_bytes = self._exact(op)
        self.work_s[op], self.weight_bytes[op] = work_s, weight_bytes
        return self._allows(work_s, weight_bytes)

    def _allows(self, work_s: float, weight_bytes: int) -> bool:
        return work_s <= self.max_work_s and weight_bytes <= self.max_weight_bytes

    def _exact(self, op: int) -> tuple[float, int]:
        """Return the cone's work and weight bytes, or the first that are too much."""
        graph = self.graph
        work_s, weight_bytes = 0.0, 0
        seen, weights, stack = {op}, set[int](), [op]
        while stack and self._allows(work_s, weight_bytes):
            node = stack.pop()
            work_s += float(self.op_work_s[node])
            for weight in graph.weights_of.row(node).tolist():
                if weight not in weights:
                    weights.add(weight)
                    weight_bytes += int(graph.weight_bytes[weight])
            new = [u for u in graph.predecessors.row(node).tolist() if u not in seen]
            seen.update(new)
            stack.extend(new)
        return work_s, weight_bytes


def _far_read(graph: Graph, work_s: Float64, candidates: Bool, spread: float) -> Bool:
    """Return the candidates whose readers lie far apart, and all flagged ones.

    In reverse order, so that the readers behind a replicable reader are known. What a
    far-read candidate depends on is read at least as far apart, so it is far-read too.
    """
    before = np.concatenate([[0.0], np.cumsum(work_s)])
    least_s = spread * (1 + ROUNDING) * before[-1]
    replicable = graph.op_replicable.copy()
    first_reader: dict[int, int] = {}
    last_reader: dict[int, int] = {}
    for op in np.flatnonzero(candidates)[::-1].tolist():
        readers = graph.successors.row(op).tolist()
        firsts = [first_reader[v] if replicable[v] else v for v in readers]
        lasts = [last_reader[v] if replicable[v] else v for v in readers]
        first = min(firsts, default=graph.num_ops)
        last = max(lasts, default=-1)
        first_reader[op], last_reader[op] = first, last
        if first < last and before[last] - before[first + 1] > least_s:
            replicable[op] = True
    return replicable
