"""Tests of groups and units."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mcmpart.graph import HOST, GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.order import kahn_order
from mcmpart.graph.synthetic import chain, diamond, random_dag, transformer
from mcmpart.rewrite import coarsen, group_units, unit_graph

NUM_CHIPS = 3


def toy(*ops, hosts=(("x", 8),), outputs=()):
    """Return a graph of (name, reads, bytes written, is it a view) tuples."""
    builder = GraphBuilder("toy")
    for name, size in hosts:
        builder.host_tensor(TensorSpec(name, size))
    for name, reads, size, view in ops:
        cost = 0 if view else 100
        writes = (TensorSpec(f"{name}.t", size),)
        spec = OpSpec(name, "Op", flops=cost, bytes=cost, reads=reads, writes=writes)
        builder.op(spec)
    for name in outputs:
        builder.output(name)
    return builder.build()


def test_no_groups_no_views():
    """Without groups and views every op is its own unit, in order."""
    assert coarsen(chain(4), ()).tolist() == [0, 1, 2, 3]


def test_groups_that_share_an_op_join():
    """Groups {0, 1} and {1, 2} are one unit."""
    graph = chain(4)
    assert group_units(graph, [[0, 1], [2, 1]]).tolist() == [0, 0, 0, 3]


def test_group_swallows_what_lies_between():
    """A group {a, c} of a chain a, b, c, d swallows b, since dataflow forces it."""
    assert coarsen(chain(4), [[0, 2]]).tolist() == [0, 0, 0, 1]


def test_group_leaves_what_does_not_lie_between():
    """Two arms of a diamond may share a unit while the third stays apart."""
    assert coarsen(diamond(3), [[1, 3]]).tolist() == [0, 1, 2, 1, 3]


def test_interleaved_groups_contract():
    """Groups {0, 2} and {1, 3} of a chain force each other into one unit."""
    assert coarsen(chain(5), [[0, 2], [1, 3]]).tolist() == [0, 0, 0, 0, 1]


def test_units_take_a_topological_order():
    """A unit that waits for a later op is numbered after that op's unit."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("b", ("x",), 8, False),
        ("c", ("b.t",), 8, False),
    )
    assert coarsen(graph, [[0, 2]]).tolist() == [1, 0, 1]


def test_replicable_op_has_no_unit():
    """A replicable op gets -1 and the others are numbered without it."""
    graph = chain(3)
    graph = replace(graph, op_replicable=np.array([True, False, False]))
    assert coarsen(graph, [[0, 2]]).tolist() == [-1, 0, 1]


def test_view_joins_its_producer():
    """Rule A: a view that alone reads a tensor and does not grow it joins its op."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 8, True),
        ("w", ("v.t",), 4, True),
        ("b", ("w.t",), 8, False),
        ("c", ("w.t",), 8, False),
    )
    assert coarsen(graph, ()).tolist() == [0, 0, 0, 1, 2]
    assert coarsen(graph, (), merge_views=False).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("reads", "size", "c_reads", "outputs"),
    [
        (("a.t",), 8, ("v.t", "a.t"), ()),
        (("a.t",), 9, ("v.t",), ()),
        (("a.t",), 8, ("v.t",), ("a.t",)),
        (("x",), 8, ("v.t",), ()),
        (("a.t", "x"), 8, ("v.t",), ()),
    ],
    ids=["shared", "grows", "output", "host", "reads two"],
)
def test_view_does_not_join_its_producer(reads, size, c_reads, outputs):
    """Rule A needs each of its conditions."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", reads, size, True),
        ("b", ("v.t",), 4, False),
        ("c", c_reads, 4, False),
        outputs=outputs,
    )
    assert coarsen(graph, ()).tolist() == [0, 1, 2, 3]


def test_view_does_not_join_a_replica():
    """A view of a replicable op has nothing to join: it is a unit of its own."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 8, True),
        ("b", ("v.t",), 4, False),
    )
    graph = replace(graph, op_replicable=np.array([True, False, False]))
    assert coarsen(graph, ()).tolist() == [-1, 0, 1]


def test_view_joins_its_reader():
    """Rule B: views that grow a shared tensor for one reader join that reader."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 8, True),
        ("w", ("v.t",), 16, True),
        ("b", ("w.t", "a.t"), 8, False),
    )
    assert coarsen(graph, ()).tolist() == [0, 1, 1, 1]


def test_joined_views_join_their_reader():
    """Rule B takes a unit of several views, as before the matmul of attention."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 8, True),
        ("w", ("v.t",), 8, True),
        ("b", ("w.t", "a.t"), 8, False),
    )
    assert coarsen(graph, ()).tolist() == [0, 1, 1, 1]


def test_view_of_host_joins_its_reader():
    """Rule B also takes a view of a HOST tensor."""
    graph = toy(("v", ("x",), 8, True), ("b", ("v.t",), 8, False))
    assert coarsen(graph, ()).tolist() == [0, 0]


@pytest.mark.parametrize("case", ["two readers", "shrinks", "output", "keep", "dead"])
def test_view_does_not_join_its_reader(case):
    """Rule B needs each of its conditions."""
    reads = ("v.t", "a.t") if case == "two readers" else ("a.t",)
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 7 if case == "shrinks" else 8, True),
        ("b", ("a.t",) if case == "dead" else ("v.t",), 8, False),
        ("c", reads, 8, False),
        outputs=("v.t",) if case == "output" else (),
    )
    keep = frozenset({1} if case == "keep" else ())
    assert coarsen(graph, (), keep=keep).tolist() == [0, 1, 2, 3]


def test_view_with_replicable_input_stays():
    """A view that reads a replica would bring it to another chip, so it stays."""
    graph = toy(
        ("r", ("x",), 1, False),
        ("a", ("x",), 8, False),
        ("v", ("a.t", "r.t"), 16, True),
        ("b", ("v.t", "a.t"), 8, False),
    )
    graph = replace(graph, op_replicable=np.array([True, False, False, False]))
    assert coarsen(graph, ()).tolist() == [-1, 0, 1, 2]


def test_measured_op_is_no_view():
    """An op with a measured time is no view; one measured at 0 s is."""
    graph = toy(("a", ("x",), 8, False), ("v", ("a.t",), 8, True))
    for seconds, units in ((1e-6, [0, 1]), (0.0, [0, 0])):
        timed = replace(graph, op_seconds=np.array([np.nan, seconds]))
        assert coarsen(timed, ()).tolist() == units


def test_grouped_and_swallowed_views_stay_in_their_group():
    """A view inside a group is not joined to anything else."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("b", ("a.t",), 8, False),
        ("v", ("b.t",), 8, True),
        ("c", ("v.t",), 8, False),
    )
    assert coarsen(graph, [[1, 3]]).tolist() == [0, 1, 1, 1]
    assert coarsen(graph, [[0, 2]]).tolist() == [0, 0, 0, 1]


def test_view_does_not_drag_its_group_along():
    """A view that shares a unit with another op does not join its producer."""
    graph = toy(
        ("a", ("x",), 8, False),
        ("v", ("a.t",), 8, True),
        ("b", ("x",), 8, False),
    )
    assert coarsen(graph, [[1, 2]]).tolist() == [0, 1, 1]


def test_transformer_reshapes_vanish():
    """Of a layer's 4 reshapes none stays a unit, and so do the 2 of the mask."""
    graph = transformer(2)
    assert coarsen(graph, ()).max() + 1 == graph.num_ops - 2 * 4 - 2


@pytest.mark.parametrize("seed", range(40))
def test_units_are_numbered_along_every_edge(seed):
    """On random DAGs with random groups no edge leads to a smaller unit."""
    rng = np.random.default_rng(seed)
    graph = random_dag(30, rng, 0.2, view_probability=0.5)
    groups = [rng.integers(0, 30, size=2).tolist() for _ in range(int(rng.integers(3)))]
    unit_of = coarsen(graph, groups)
    assert sorted(set(unit_of.tolist())) == list(range(unit_of.max() + 1))
    for u in range(graph.num_ops):
        assert (unit_of[graph.successors.row(u)] >= unit_of[u]).all()
    for group in groups:
        assert len(set(unit_of[group])) == 1
    successors = unit_graph(graph, unit_of)
    edges = [(u, v) for u in range(unit_of.max() + 1) for v in successors.row(u)]
    assert len(kahn_order(unit_of.max() + 1, edges)) == unit_of.max() + 1


def bottleneck(graph, chip_of, *, relay):
    """Return the slowest stage or hop: 1 s per 1e6 FLOPs, 1 s per 1e4 bytes."""
    seconds = np.zeros(NUM_CHIPS)
    np.add.at(seconds, chip_of, graph.op_flops / 1e6)
    used = set(chip_of)
    hops = np.zeros(NUM_CHIPS - 1)
    for t in range(graph.num_tensors):
        size = graph.tensor_bytes[t] / 1e4
        readers = {chip_of[op] for op in graph.consumers.row(t)}
        producer = graph.tensor_producer[t]
        if producer == HOST:
            for chip in readers:
                seconds[chip] += size
            continue
        home = chip_of[producer]
        readers.discard(home)
        seconds[home] += size * bool(readers or graph.tensor_is_output[t])
        last = max(readers, default=home)
        between = {c for c in used if home < c < last} if relay else set()
        for chip in range(NUM_CHIPS):
            seconds[chip] += size * ((chip in readers | between) + (chip in between))
        hops[home:last] += size
    return max(seconds.max(), hops.max())


def least_bottleneck(graph, unit_of, *, relay):
    """Return the least bottleneck over all partitions of the units."""
    edges = [(u, v) for u in range(graph.num_ops) for v in graph.successors.row(u)]
    best = np.inf
    for chip_of_unit in product(range(NUM_CHIPS), repeat=int(unit_of.max()) + 1):
        chip_of = [chip_of_unit[unit] for unit in unit_of]
        if all(chip_of[u] <= chip_of[v] for u, v in edges):
            best = min(best, bottleneck(graph, chip_of, relay=relay))
    return best


@pytest.mark.parametrize("relay", [False, True])
def test_joining_views_keeps_the_optimum(relay):
    """On 30 random DAGs of 6 ops the least bottleneck is that without joining."""
    joined = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = random_dag(6, rng, 0.3, view_probability=0.6, output_probability=0)
        units = coarsen(graph, ())
        apart = coarsen(graph, (), merge_views=False)
        joined += apart.max() - units.max()
        assert least_bottleneck(graph, units, relay=relay) == pytest.approx(
            least_bottleneck(graph, apart, relay=relay), rel=1e-12
        )
    assert joined >= 15
