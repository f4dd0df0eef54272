"""Blocks: what a group of ops costs, worked by hand, and the way back to the ops."""

import numpy as np
import pytest

from mcmpart.blocks import make_blocks, make_live_arrays, replica_readers
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import random_dag


def rows(indptr, indices):
    """Return compressed rows as lists."""
    cuts = zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    return [indices[a:b].tolist() for a, b in cuts]


def blocks_of(graph, block_of, op_s=None, *, pins=None, together=(), apart=()):
    """Return the blocks of ``graph``; ops take 1 s unless given."""
    return make_blocks(
        graph,
        np.ones((1, graph.num_ops)) if op_s is None else np.array(op_s, dtype=float),
        np.array(block_of, dtype=np.int32),
        pin_of_op=pins or {},
        together=together,
        apart=apart,
    )


@pytest.fixture
def graph():
    """Give a(x, ids) -> b -> c, a -> d, with a shared replica cone and two weights.

    mask reads ids; bias reads mask; both are replicable. a and c read bias.t, d reads
    mask.t. a, b share the weight ``own``; a and d share ``tied``.
    """
    builder = GraphBuilder("graph")
    for name, size in (("x", 30), ("ids", 8)):
        builder.host_tensor(TensorSpec(name, size))
    for name, size in (("own", 100), ("tied", 1000), ("k", 6)):
        builder.weight(TensorSpec(name, size))
    for name, reads, weights, writes in (
        ("mask", ("ids",), ("k",), {"mask.t": 16}),
        ("bias", ("mask.t",), (), {"bias.t": 12}),
        ("a", ("x", "bias.t"), ("own", "tied"), {"a.t": 40, "a.u": 7}),
        ("b", ("a.t", "x"), ("own",), {"b.t": 20}),
        ("c", ("b.t", "bias.t"), (), {"c.t": 50}),
        ("d", ("a.t", "mask.t", "x"), ("tied",), {"d.t": 60}),
    ):
        tensors = tuple(TensorSpec(t, size) for t, size in writes.items())
        builder.op(
            OpSpec(
                name,
                "Op",
                replicable=name in ("mask", "bias"),
                reads=reads,
                weights=weights,
                writes=tensors,
            )
        )
    for name in ("a.t", "c.t", "d.t"):
        builder.output(name)
    return builder.build()


OP_S = [[1, 2, 10, 20, 30, 40], [2, 4, 20, 40, 60, 80]]
# a and b are block 0, c is block 1, d is block 2.
BLOCK_OF = [-1, -1, 0, 0, 1, 2]


def test_own_costs(graph):
    """A block has its ops' seconds and outputs, and what only it reads."""
    arrays = blocks_of(graph, BLOCK_OF, OP_S).arrays
    assert arrays.block_s.tolist() == [[30, 30, 40], [60, 60, 80]]
    assert arrays.output_bytes.tolist() == [40, 50, 60]
    # Block 0: a.t 40, a.u 7, b.t 20.
    assert arrays.written_bytes.tolist() == [67, 50, 60]
    # own is read in block 0 only; x, tied and the replicas by several blocks.
    assert arrays.weight_bytes.tolist() == [100, 0, 0]
    assert arrays.host_bytes.tolist() == [0, 0, 0]
    assert rows(arrays.member_ptr, arrays.member) == [[2, 3], [4], [5]]
    assert arrays.first_op.tolist() == [2, 4, 5]


def test_shared_items(graph):
    """What several blocks pay once on a chip is kept under the set of its users."""
    arrays = blocks_of(graph, BLOCK_OF, OP_S).arrays
    items = {
        tuple(users): (seconds, host, weight)
        for users, seconds, host, weight in zip(
            rows(arrays.user_ptr, arrays.user),
            arrays.item_s.T.tolist(),
            arrays.item_host_bytes.tolist(),
            arrays.item_weight_bytes.tolist(),
            strict=True,
        )
    }
    assert items == {
        # bias is needed by a and c.
        (0, 1): ([2, 4], 0, 0),
        # mask with its ids and its weight k: by a and c over bias, and by d.
        (0, 1, 2): ([1, 2], 8, 6),
        # x and tied: by a (and b) and d.
        (0, 2): ([0, 0], 30, 1000),
    }
    for n, row in enumerate(rows(arrays.item_ptr, arrays.item)):
        assert row == [
            j
            for j, users in enumerate(rows(arrays.user_ptr, arrays.user))
            if n in users
        ]


def test_cut_tensors(graph):
    """Tensors between blocks: who writes and reads them, each reader once."""
    arrays = blocks_of(graph, BLOCK_OF, OP_S).arrays
    # a.t (from block 0, read by b inside and by d), b.t (from block 0 to c).
    assert arrays.tensor_producer.tolist() == [0, 0]
    assert arrays.tensor_bytes.tolist() == [40, 20]
    assert arrays.tensor_is_output.tolist() == [True, False]
    assert rows(arrays.consumer_ptr, arrays.consumer) == [[2], [1]]
    assert rows(arrays.read_ptr, arrays.read) == [[], [1], [0]]
    assert rows(arrays.write_ptr, arrays.write) == [[0, 1], [], []]
    assert rows(arrays.succ_ptr, arrays.succ) == [[1, 2], [], []]
    assert rows(arrays.pred_ptr, arrays.pred) == [[], [0], [0]]


def test_one_reader_of_all(graph):
    """With all ops in one block nothing is cut and nothing is shared."""
    arrays = blocks_of(graph, [-1, -1, 0, 0, 0, 0], OP_S).arrays
    assert arrays.block_s.tolist() == [[103], [206]]
    assert arrays.host_bytes.tolist() == [38]
    assert arrays.weight_bytes.tolist() == [1106]
    assert arrays.tensor_bytes.size == arrays.user.size == 0
    assert arrays.item_s.shape == (2, 0)


def test_inner_peak(graph):
    """The peak of a block run alone; what another block reads stays to its end."""
    # Block a, b: a.t 40 + a.u 7 (nobody reads it: freed after a), then a.t, kept for d,
    # with b.t 20: 60.
    arrays = blocks_of(graph, BLOCK_OF, OP_S).arrays
    assert arrays.inner_peak_bytes.tolist() == [60, 50, 60]
    # One block: 47; 60; a.t, b.t + c.t 50 = 110; a.t + d.t 60 = 100.
    arrays = blocks_of(graph, [-1, -1, 0, 0, 0, 0], OP_S).arrays
    assert arrays.inner_peak_bytes.tolist() == [110]


def test_pins_and_pairs(graph):
    """Pins stand on blocks; groups and pairs are pairs of distinct blocks, sorted."""
    arrays = blocks_of(
        graph,
        BLOCK_OF,
        pins={3: 5, 5: 0},
        together=[(2, 3), (2, 4, 5), (2, 5)],
        apart=[(5, 4), (4, 2)],
    ).arrays
    assert arrays.pin.tolist() == [5, -1, 0]
    assert arrays.same.tolist() == [[0, 1], [0, 2]]
    assert arrays.apart.tolist() == [[1, 0], [2, 1]]


def test_no_pairs(graph):
    """Without groups and pairs the arrays keep their two columns."""
    arrays = blocks_of(graph, BLOCK_OF).arrays
    assert arrays.same.shape == arrays.apart.shape == (0, 2)
    assert arrays.pin.tolist() == [-1, -1, -1]


def test_expand_and_contract(graph):
    """Chips of blocks become chips of ops and back, for one row or many."""
    blocks = blocks_of(graph, BLOCK_OF)
    chip_of_block = np.array([[0, 1, 2], [3, 4, 5]], dtype=np.int32)
    chip_of = blocks.expand(chip_of_block)
    assert chip_of.tolist() == [[-1, -1, 0, 0, 1, 2], [-1, -1, 3, 3, 4, 5]]
    assert chip_of.dtype == np.int32
    assert blocks.contract(chip_of).tolist() == chip_of_block.tolist()
    assert blocks.expand(chip_of_block[1]).tolist() == chip_of[1].tolist()
    assert blocks.contract(chip_of[0]).tolist() == [0, 1, 2]
    assert blocks.num_blocks == 3


def test_no_blocks():
    """A graph without ops has no blocks, and arrays of the right types."""
    blocks = blocks_of(GraphBuilder("empty").build(), [])
    assert blocks.num_blocks == 0
    assert blocks.expand(np.zeros((4, 0), dtype=np.int32)).shape == (4, 0)
    assert blocks.arrays.block_s.shape == (1, 0)
    assert blocks.arrays.member_ptr.tolist() == [0]


def test_readers_of_replicas(graph):
    """A replica's readers are the blocks that need it, also over other replicas."""
    found = replica_readers(graph, np.array(BLOCK_OF, dtype=np.int32))
    assert found == {0: {0, 1, 2}, 1: {0, 1}}


def test_live_arrays(graph):
    """The liveness arrays know the replicas and their tensors."""
    live = make_live_arrays(graph)
    names = [graph.tensor_name[t] for t in np.flatnonzero(live.replica_tensor >= 0)]
    assert names == ["mask.t", "bias.t"]
    assert live.replica.tolist() == [0, 1]
    assert live.num_replica_tensors == 2
    assert live.replica_bytes == 28
    assert rows(live.write_ptr, live.write) == rows(
        graph.writes.indptr, graph.writes.indices
    )


def test_unneeded_replica():
    """A replica that nobody reads is charged to no block."""
    builder = GraphBuilder("unneeded")
    builder.host_tensor(TensorSpec("x", 8))
    builder.op(OpSpec("dead", "Op", replicable=True, reads=("x",)))
    builder.op(OpSpec("a", "Op", writes=(TensorSpec("a.t", 8),)))
    arrays = blocks_of(builder.build(), [-1, 0]).arrays
    assert arrays.block_s.tolist() == [[1.0]]
    assert arrays.host_bytes.tolist() == [0]
    assert arrays.user.size == 0


def test_sums_do_not_depend_on_the_blocks():
    """However ops are grouped, seconds, weights and outputs add up to the same."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        graph = random_dag(12, rng)
        op_s = rng.random((2, 12))
        cuts = np.sort(rng.integers(0, 12, 4))
        block_of = np.unique(np.searchsorted(cuts, np.arange(12)), return_inverse=True)
        arrays = blocks_of(graph, block_of[1], op_s).arrays
        seconds = arrays.block_s.sum(axis=1) + arrays.item_s.sum(axis=1)
        assert seconds == pytest.approx(op_s.sum(axis=1), rel=1e-12)
        weights = arrays.weight_bytes.sum() + arrays.item_weight_bytes.sum()
        assert weights == graph.weight_bytes.sum()
        outputs = graph.tensor_bytes[
            graph.tensor_is_output & (graph.tensor_producer >= 0)
        ]
        assert arrays.output_bytes.sum() == outputs.sum()
