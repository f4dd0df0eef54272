"""Ops that read only weights become weights, as a compiler does before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mcmpart.graph import Graph
from mcmpart.graph.graph import Bool
from mcmpart.rewrite._kinds import LAYOUT_KINDS, is_random, kind_of
from mcmpart.rewrite._select import select


def fold_weights(graph: Graph) -> Graph:
    """Return ``graph`` without the ops that read weights (at least one) and no tensors.

    What such an op writes becomes a new weight of its readers, which may fold in turn.
    Two kinds of op leave the readers the weights they read themselves, so that nothing
    is stored twice or too large: a DequantizeLinear of any domain (the chip keeps the
    int8 bytes), and an op whose one read output has the bytes of its one input (a
    tied embedding through Transpose; the shapes and axes that a Reshape and its like
    read as well do not count). An op stays where it writes a model output, is random,
    or has a measured time, be it 0: what was measured is run. Weights that nobody uses
    vanish.
    """
    folding = _Folding(graph)
    folding.run()
    count = int(np.count_nonzero(folding.folded))
    if count:
        ops = "op that reads" if count == 1 else "ops that read"
        was = "was folded into a weight" if count == 1 else "were folded into weights"
        graph = _with_new_weights(graph, folding)
        graph = replace(
            graph,
            assumptions=(*graph.assumptions, f"{count} {ops} only weights {was}"),
        )
    tensors = np.ones(graph.num_tensors, dtype=np.bool_)
    tensors[list(folding.weights_in)] = False
    ops_left = ~folding.folded
    used = np.zeros(graph.num_weights, dtype=np.bool_)
    used[graph.weight_use_weight[ops_left[graph.weight_use_op]]] = True
    if ops_left.all() and used.all():
        return graph
    return select(graph, ops=ops_left, tensors=tensors, weights=used)


@dataclass(slots=True)
class _Folding:
    """Which ops fold, and which weights each of their tensors stands for.

    A tensor that becomes a weight of its own has the id ``num_weights + position`` in
    ``new_weights``.
    """

    graph: Graph
    folded: Bool = field(init=False)
    weights_in: dict[int, tuple[int, ...]] = field(default_factory=dict)
    new_weights: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folded = np.zeros(self.graph.num_ops, dtype=np.bool_)

    def run(self) -> None:
        graph = self.graph
        unfolded_reads = np.diff(graph.reads.indptr).tolist()
        ready = [op for op, count in enumerate(unfolded_reads) if count == 0]
        for op in ready:
            if not self._folds(op):
                continue
            self.folded[op] = True
            stored = self._alias(op)
            for tensor in graph.writes.row(op).tolist():
                self.weights_in[tensor] = (
                    self._new_weight(tensor) if stored is None else stored
                )
                for reader in graph.consumers.row(tensor).tolist():
                    unfolded_reads[reader] -= 1
                    if unfolded_reads[reader] == 0:
                        ready.append(reader)

    def _folds(self, op: int) -> bool:
        graph = self.graph
        reads_weight = graph.weights_of.row(op).size or graph.reads.row(op).size
        return bool(
            reads_weight
            and not graph.tensor_is_output[graph.writes.row(op)].any()
            and not is_random(graph.op_kind[op])
            and np.isnan(graph.op_seconds[op])
        )

    def _alias(self, op: int) -> tuple[int, ...] | None:
        """Return the weights that stand for what ``op`` writes; None for a new one."""
        graph = self.graph
        values: list[tuple[int, tuple[int, ...]]] = [
            (int(graph.weight_bytes[w]), (w,))
            for w in graph.weights_of.row(op).tolist()
        ]
        values += [
            (int(graph.tensor_bytes[t]), self.weights_in[t])
            for t in graph.reads.row(op).tolist()
        ]
        kind = kind_of(graph.op_kind[op])
        if kind == "DequantizeLinear":
            return tuple(dict.fromkeys(w for _, weights in values for w in weights))
        read = [t for t in graph.writes.row(op) if graph.consumers.row(t).size]
        if len(read) != 1:
            return None
        needed = graph.tensor_bytes[read[0]]
        same = [weights for size, weights in values if size == needed]
        alone = len(values) == 1 or kind in LAYOUT_KINDS
        return same[0] if alone and len(same) == 1 else None

    def _new_weight(self, tensor: int) -> tuple[int, ...]:
        self.new_weights.append(tensor)
        return (self.graph.num_weights + len(self.new_weights) - 1,)


def _with_new_weights(graph: Graph, folding: _Folding) -> Graph:
    """Return ``graph`` with the folded tensors as weights, which their readers use."""
    new = folding.new_weights
    pairs = dict.fromkeys(
        (weight, op)
        for tensor, weights in folding.weights_in.items()
        for op in graph.consumers.row(tensor).tolist()
        for weight in weights
    )
    known = set(
        zip(graph.weight_use_weight.tolist(), graph.weight_use_op.tolist(), strict=True)
    )
    added = np.array([p for p in pairs if p not in known], np.int32).reshape(-1, 2)
    return replace(
        graph,
        weight_name=(*graph.weight_name, *_picked(graph.tensor_name, new)),
        weight_dtype=(*graph.weight_dtype, *_picked(graph.tensor_dtype, new)),
        weight_bytes=np.concatenate([graph.weight_bytes, graph.tensor_bytes[new]]),
        weight_use_weight=np.concatenate([graph.weight_use_weight, added[:, 0]]),
        weight_use_op=np.concatenate([graph.weight_use_op, added[:, 1]]),
    )


def _picked(names: Sequence[str], indices: list[int]) -> list[str]:
    return [names[i] for i in indices]
