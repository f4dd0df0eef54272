"""Tests of the synthetic graphs."""

import numpy as np
import pytest

from mcmpart.graph import HOST, content_hash
from mcmpart.graph.synthetic import (
    chain,
    diamond,
    inception_like,
    random_dag,
    residual,
    transformer,
    unet_like,
)


def edges(graph):
    """Return the data edges as a set of pairs."""
    return {(u, int(v)) for u in range(graph.num_ops) for v in graph.successors.row(u)}


def test_chain_sizes():
    """A chain has the sizes it was given, op by op."""
    graph = chain(3, flops=[5, 6, 7], tensor_bytes=[10, 20, 30], weight_bytes=[0, 4, 0])
    assert edges(graph) == {(0, 1), (1, 2)}
    assert graph.op_flops.tolist() == [5, 6, 7]
    assert graph.tensor_name == ("x", "op_0:0", "op_1:0", "op_2:0")
    assert graph.tensor_bytes.tolist() == [10, 10, 20, 30]
    assert graph.tensor_is_output.tolist() == [False, False, False, True]
    assert (graph.weight_bytes.tolist(), graph.weight_use_op.tolist()) == ([4], [1])
    # Reads, writes and weights: 10 + 10, 10 + 20 + 4, 20 + 30.
    assert graph.op_bytes.tolist() == [20, 34, 50]
    assert np.isnan(graph.op_seconds).all()


def test_chain_measured():
    """Measured seconds of a chain reach the ops."""
    assert chain(2, seconds=[0.5, 0.25]).op_seconds.tolist() == [0.5, 0.25]


def test_diamond_edges():
    """The source of a diamond writes one tensor, which every arm reads."""
    graph = diamond(3)
    assert edges(graph) == {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)}
    assert graph.consumers.row(1).tolist() == [1, 2, 3]


def test_residual_edges():
    """A residual block adds its input to its body."""
    graph = residual(2, ops_per_block=2)
    assert edges(graph) == {(0, 1), (1, 2), (2, 3), (2, 5), (3, 4), (4, 5)}
    assert graph.predecessors.row(2).tolist() == [1]
    assert [graph.tensor_name[t] for t in graph.reads.row(2)] == ["x", "b0.op_1:0"]


def test_inception_width():
    """The first op of every branch reads the block's input, and a Concat joins them."""
    graph = inception_like(1, branches=4, channels=8, side=2)
    # Branches of 1, 2, 3 and pool + 4 convolutions, and the Concat.
    assert graph.num_ops == 1 + 2 + 3 + 5 + 1
    assert graph.consumers.row(0).size == 4
    assert graph.predecessors.row(graph.num_ops - 1).size == 4
    # A 1 x 1 convolution from 8 to 2 channels on 2 x 2 points.
    assert graph.op_flops[graph.op_name.index("b0.0.conv_0")] == 2 * 8 * 2 * 4


def test_unet_skip():
    """The first level's skip jumps over everything deeper."""
    graph = unet_like(2, channels=2, side=8)
    skip = graph.op_name.index("down_0.relu_1")
    reader = graph.op_name.index("up_0.concat")
    assert reader in graph.successors.row(skip)
    assert reader - skip > graph.num_ops // 2
    # Two 2-channel maps joined: 4 channels of 8 x 8.
    assert graph.tensor_shape[graph.writes.row(reader)[0]] == (4, 8, 8)


def test_unet_convolutions():
    """Every convolution of a U-Net has windows of 3 x 3 and keeps the side."""
    graph = unet_like(1, channels=2, side=4)
    convs = [op for op, kind in enumerate(graph.op_kind) if kind == "Conv"]
    assert [graph.tensor_shape[graph.writes.row(op)[0]] for op in convs] == [
        *[(2, 4, 4)] * 2,
        (4, 2, 2),
        *[(2, 4, 4)] * 3,
    ]
    # Channels in x channels out x 9; the resize back brings 4 channels, a concat too.
    weights = [graph.weight_bytes[graph.weights_of.row(op)].tolist() for op in convs]
    assert weights == [[2 * 2 * 9]] * 2 + [[2 * 4 * 9]] + [[4 * 2 * 9]] * 2 + [[36]]


def test_transformer_size():
    """36 layers of 58 ops are the benchmark graph of 2,105 ops and 279 MB of int8."""
    assert transformer().num_ops == 36 * 58 + 17
    graph = transformer(tied_head=True)
    assert graph.num_ops == 36 * 58 + 18
    embedding = 768 * (30_522 + 128) + 2 * 768
    layer = 12 * 768**2 + (4 + 4 + 1) * 768 + 4 * 768
    assert graph.weight_bytes.sum() == embedding + 36 * layer
    matmul = 2 * 128 * (12 * 768**2 + 2 * 128 * 768)
    is_matmul = np.array([kind == "MatMul" for kind in graph.op_kind])
    head = 2 * 128 * 768 * 30_522
    assert graph.op_flops[is_matmul].sum() == 36 * matmul + head


def test_transformer_mask_and_tie():
    """Every layer reads the one mask, and the head shares the embedding table."""
    graph = transformer(3, tied_head=True)
    mask = graph.tensor_name.index("mask.mul_7:0")
    assert graph.consumers.row(mask).size == 3
    table = graph.weight_name.index("embedding")
    users = [graph.op_name[op] for op in graph.users_of.row(table)]
    assert users == ["words", "head"]
    gather = graph.op_name.index("words")
    # Ids, the rows taken and the rows written; not the table.
    assert graph.op_bytes[gather] == 128 + 2 * 128 * 768


def test_transformer_views():
    """Reshapes cost nothing and transposes move bytes."""
    graph = transformer(1)
    for kind, free in (("Reshape", True), ("Transpose", False)):
        ops = [op for op, k in enumerate(graph.op_kind) if k == kind]
        assert len(ops) == 4
        assert (graph.op_bytes[ops] == 0).all() == free
        assert (graph.op_flops[ops] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_random_dag_seeded(seed):
    """The same seed gives the same graph, another seed another one."""
    graphs = [random_dag(20, np.random.default_rng(s)) for s in (seed, seed, seed + 1)]
    hashes = [content_hash(graph) for graph in graphs]
    assert hashes[0] == hashes[1] != hashes[2]


def test_random_dag_variety():
    """A random DAG has every feature that the tests of other modules rely on."""
    graph = random_dag(200, np.random.default_rng(0))
    host = np.flatnonzero(graph.tensor_producer == HOST)
    assert host.size == 2
    assert np.diff(graph.consumers.indptr).max() > 2
    assert np.diff(graph.users_of.indptr).max() > 1
    assert np.diff(graph.writes.indptr).max() == 2
    unread = np.diff(graph.consumers.indptr) == 0
    assert graph.tensor_is_output[unread & (graph.tensor_producer != HOST)].all()
    assert graph.tensor_is_output[~unread].any()
    views = (graph.op_flops == 0) & (graph.op_bytes == 0)
    assert 5 < views.sum() < 40


def test_random_dag_reach():
    """No edge of a random DAG is longer than its reach."""
    graph = random_dag(50, np.random.default_rng(1), 0.9, reach=3)
    assert max(v - u for u, v in edges(graph)) <= 3
