"""Tests of cutting parts out of a graph."""

from dataclasses import replace

import numpy as np

from mcmpart.graph import content_hash
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.rewrite._select import select


def test_everything_kept():
    """A selection of everything says what the graph said."""
    graph = random_dag(20, np.random.default_rng(0))
    whole = select(
        graph,
        ops=np.ones(graph.num_ops, np.bool_),
        tensors=np.ones(graph.num_tensors, np.bool_),
        weights=np.ones(graph.num_weights, np.bool_),
    )
    assert content_hash(whole) == content_hash(graph)


def test_columns_are_renumbered_together():
    """Without op 0 and its tensor, every column of the rest moves up by one."""
    graph = chain(3, flops=[1, 2, 3], weight_bytes=[4, 5, 6], seconds=[0.5, 1.5, 2.5])
    graph = replace(graph, op_replicable=np.array([False, True, False]))
    part = select(
        graph,
        ops=np.array([False, True, True]),
        tensors=np.array([True, False, True, True]),
        weights=np.array([False, True, True]),
    )
    assert part.op_name == ("op_1", "op_2")
    assert part.op_flops.tolist() == [2, 3]
    assert part.op_seconds.tolist() == [1.5, 2.5]
    assert part.op_replicable.tolist() == [True, False]
    assert part.tensor_name == ("x", "op_1:0", "op_2:0")
    assert part.tensor_producer.tolist() == [-1, 0, 1]
    assert part.tensor_is_output.tolist() == [False, False, True]
    assert (part.use_tensor.tolist(), part.use_op.tolist()) == ([1], [1])
    assert part.weight_bytes.tolist() == [5, 6]
    assert part.weights_of.row(1).tolist() == [1]
    assert part.successors.row(0).tolist() == [1]
