"""What a segment of an order costs, against a full evaluation of the same cut."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import residual
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search._orders import keyed_order, order_arrays
from mcmpart.search._segments import (
    EDGE_IN,
    NUM_TOTALS,
    PEAK,
    PIN,
    PIN_CLASH,
    WEIGHTS,
    Segment,
    clear,
    cut_is_allowed,
    cut_points,
    grow,
    place,
    stage_seconds,
    traffic_bytes,
)


def segments(problem, order):
    """Yield start, end and the totals of every segment of the order."""
    arrays = problem.blocks.arrays
    num_classes = arrays.block_s.shape[0]
    for start in range(order.block.size):
        segment = Segment(
            np.full(num_classes, 7.0), np.full(NUM_TOTALS, 7, dtype=np.int64)
        )
        clear(segment)
        for at in range(start, order.block.size):
            grow(segment, start, at, arrays, order)
            yield start, at + 1, segment


@pytest.mark.parametrize("seed", range(8))
def test_segments_cost_what_evaluation_says(seed, make_problem):
    """Every segment, with all before it on one chip and all behind on another."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 14, num_chips=3)
    package = problem.package_arrays
    arrays, num_blocks = problem.blocks.arrays, problem.blocks.num_blocks
    keys = rng.random(num_blocks)
    order = order_arrays(arrays, keyed_order(arrays, keys, seed % 2 == 1))
    stage_s = np.empty(arrays.block_s.shape[0])
    received = 0
    for start, end, segment in segments(problem, order):
        cuts = np.array([0, start, end, num_blocks], dtype=np.int32)
        chip_of = problem.blocks.expand(place(cuts, order))
        wanted = evaluate(problem, Partition(problem.graph, chip_of)).chips[1]
        traffic = traffic_bytes(segment, start, end, package.relay, order)
        stage_seconds(segment, traffic, package, stage_s)
        found_s = stage_s[package.chip_class[1]]
        assert traffic == wanted.in_bytes + wanted.out_bytes
        assert found_s == pytest.approx(wanted.stage_s, rel=1e-12)
        assert segment.total[WEIGHTS] == wanted.weight_bytes
        received += segment.total[EDGE_IN]
    assert received > 0


@pytest.mark.parametrize("seed", range(4))
def test_live_tensors_are_counted_on_the_safe_side(seed, make_problem):
    """Along the graph's own order, no less than the exact peak, and often just that.

    With one op a block and no replicas; what leaves the segment stays to its end.
    """
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 14, num_chips=3, view_probability=0.0)
    while problem.blocks.num_blocks < 14:
        problem = make_problem(rng, 14, num_chips=3, view_probability=0.0)
    order = order_arrays(problem.blocks.arrays, np.arange(14, dtype=np.int32))
    num_exact = 0
    for start, end, segment in segments(problem, order):
        cuts = np.array([0, start, end, 14], dtype=np.int32)
        chip_of = problem.blocks.expand(place(cuts, order))
        chip = evaluate(problem, Partition(problem.graph, chip_of)).chips[1]
        assert segment.total[PEAK] >= chip.peak_live_bytes
        num_exact += segment.total[PEAK] == chip.peak_live_bytes
    assert num_exact >= 14


def test_pins_of_a_segment(toy):
    """A segment has the pin of its blocks, and a clash where they differ."""
    pins = UserRules(pins={"op_1": 0, "op_2": 0, "op_4": 2})
    problem = replace(toy, user=pins)
    order = order_arrays(problem.blocks.arrays, np.arange(6, dtype=np.int32))
    found = {(s, e): int(g.total[PIN]) for s, e, g in segments(problem, order)}
    assert found[0, 1] == -1
    assert found[0, 2] == found[1, 3] == found[1, 4] == 0
    assert found[3, 5] == found[4, 6] == 2
    assert found[2, 5] == found[0, 6] == PIN_CLASH


def test_cuts_that_a_tensor_jumps_over(make_package):
    """Under the triangle rule no tensor may pass over a segment."""
    # x -> op_0 -> op_1 -> add(x) -> op_0 -> op_1 -> add(first add).
    problem = Problem(residual(2, ops_per_block=2), make_package(3))
    order = order_arrays(problem.blocks.arrays, np.arange(6, dtype=np.int32))
    allowed = {
        (start, end): (
            cut_is_allowed(segment, start, end, True, order),
            cut_is_allowed(segment, start, end, False, order),
        )
        for start, end, segment in segments(problem, order)
    }
    # The first add's tensor jumps over [3, 5), which it enters and which is left.
    assert allowed[3, 5] == (False, True)
    assert allowed[3, 6] == (True, True)
    # Nothing jumps over the first segment.
    assert allowed[0, 3] == (True, True)


def test_a_tensor_may_jump_over_a_dead_end(make_package):
    """Over a segment that nothing enters, or nothing leaves, a tensor may jump."""
    # Both readers of the source are outputs; "dead" stands between.
    builder = GraphBuilder("dead_end")
    builder.host_tensor(TensorSpec("x", 8))
    for name, read in (("source", "x"), ("dead", "source.t"), ("last", "source.t")):
        writes = (TensorSpec(f"{name}.t", 8),)
        builder.op(OpSpec(name, "Op", flops=8, reads=(read,), writes=writes))
        builder.output(f"{name}.t")
    problem = Problem(builder.build(), make_package(3))
    order = order_arrays(problem.blocks.arrays, np.arange(3, dtype=np.int32))
    for start, end, segment in segments(problem, order):
        assert cut_is_allowed(segment, start, end, True, order)


def test_places_and_cut_points(toy):
    """Segment starts and the parents of a dynamic program give the chips."""
    order = order_arrays(toy.blocks.arrays, np.arange(6, dtype=np.int32))
    cuts = np.array([0, 2, 2, 6], dtype=np.int32)
    assert place(cuts, order).tolist() == [0, 0, 2, 2, 2, 2]
    parent = np.full((4, 7), -1, dtype=np.int32)
    # Chip 2 ends at 6 and began at 4; chip 1 is empty (-2); chip 0 began at 0.
    parent[3, 6], parent[2, 4], parent[1, 4] = 4, -2, 0
    assert cut_points(3, parent).tolist() == [0, 4, 4, 6]
