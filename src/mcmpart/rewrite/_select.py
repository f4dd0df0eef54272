"""A graph without some of its ops, tensors and weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress

import numpy as np

from mcmpart.graph import HOST, Graph
from mcmpart.graph.graph import Bool, Int32


def select(graph: Graph, *, ops: Bool, tensors: Bool, weights: Bool) -> Graph:
    """Return the part of ``graph`` that the masks keep, renumbered in the same order.

    Uses of dropped parts vanish, groups lose dropped ops, and a group of one op is
    none.

    Parameters
    ----------
    graph
        The whole graph.
    ops, tensors, weights
        ``[V]``, ``[T]`` and ``[W] bool``: what stays. A tensor that stays must keep
        its producer.
    """
    new_op, new_tensor = _renumber(ops), _renumber(tensors)
    new_weight = _renumber(weights)
    producer = graph.tensor_producer[tensors]
    use = ops[graph.use_op] & tensors[graph.use_tensor]
    weight_use = ops[graph.weight_use_op] & weights[graph.weight_use_weight]
    together = (
        tuple(int(new_op[op]) for op in group if ops[op]) for group in graph.together
    )
    return replace(
        graph,
        op_name=_kept(graph.op_name, ops),
        op_kind=_kept(graph.op_kind, ops),
        op_dtype=_kept(graph.op_dtype, ops),
        op_flops=graph.op_flops[ops],
        op_bytes=graph.op_bytes[ops],
        op_gemm=graph.op_gemm[ops],
        op_seconds=graph.op_seconds[ops],
        op_replicable=graph.op_replicable[ops],
        tensor_name=_kept(graph.tensor_name, tensors),
        tensor_dtype=_kept(graph.tensor_dtype, tensors),
        tensor_shape=tuple(compress(graph.tensor_shape, tensors)),
        tensor_producer=_producers(producer, new_op),
        tensor_bytes=graph.tensor_bytes[tensors],
        tensor_is_output=graph.tensor_is_output[tensors],
        use_tensor=new_tensor[graph.use_tensor[use]],
        use_op=new_op[graph.use_op[use]],
        weight_name=_kept(graph.weight_name, weights),
        weight_dtype=_kept(graph.weight_dtype, weights),
        weight_bytes=graph.weight_bytes[weights],
        weight_use_weight=new_weight[graph.weight_use_weight[weight_use]],
        weight_use_op=new_op[graph.weight_use_op[weight_use]],
        together=tuple(group for group in together if len(group) > 1),
    )


def _renumber(kept: Bool) -> Int32:
    return (np.cumsum(kept) - 1).astype(np.int32)


def _producers(producer: Int32, new_op: Int32) -> Int32:
    inner = producer != HOST
    renumbered = producer.copy()
    renumbered[inner] = new_op[producer[inner]]
    return renumbered


def _kept(names: Iterable[str], mask: Bool) -> tuple[str, ...]:
    return tuple(compress(names, mask))
