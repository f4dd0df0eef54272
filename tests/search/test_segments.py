"""What a segment of an order costs, against a full evaluation of the same cut."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart._jit import jit
from mcmpart.evaluate import evaluate
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, residual
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search._growth import begin, measure, move_on, new_ends, new_growth
from mcmpart.search._orders import keyed_order, order_arrays
from mcmpart.search._segments import (
    cut_points,
    narrow_starts,
    new_program,
    place,
    plan_ahead,
)


@jit
def measured(start, stop, count_peak, blocks, package, order, growth, ends):
    """Measure from Python: the kernel itself is copied into its callers."""
    measure(start, stop, count_peak, blocks, package, order, growth, ends)


@jit
def moved_on(start, relay, blocks, order, growth):
    """Move on from Python."""
    move_on(start, relay, blocks, order, growth)


def segments(problem, order, count_peak=False):
    """Yield each start, end and the costs of all segments from that start."""
    arrays, package = problem.blocks.arrays, problem.package_arrays
    num_classes, num_blocks = arrays.block_s.shape
    growth = new_growth(num_classes, num_blocks)
    ends = new_ends(num_classes, num_blocks)
    begin(arrays, order, growth)
    for start in range(num_blocks):
        measured(start, num_blocks, count_peak, arrays, package, order, growth, ends)
        for end in range(start + 1, num_blocks + 1):
            yield start, end, ends
        moved_on(start, package.relay, arrays, order, growth)


def with_rules(problem, *rules):
    """Return the problem with just these rules.

    Long edges that are forbidden by the triangle rule become direct without it.
    """
    package = problem.package
    direct = package.long_edges == "forbid" and "triangle" not in rules
    long_edges = "direct" if direct else package.long_edges
    return replace(
        problem, package=replace(package, rules=rules, long_edges=long_edges)
    )


@pytest.mark.parametrize("seed", range(8))
def test_segments_cost_what_evaluation_says(seed, make_problem):
    """Every segment, with all before it on one chip and all behind on another."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 14, num_chips=3)
    problem = with_rules(problem, "memory")
    package = problem.package_arrays
    arrays, num_blocks = problem.blocks.arrays, problem.blocks.num_blocks
    keys = rng.random(num_blocks)
    order = order_arrays(arrays, keyed_order(arrays, keys, seed % 2 == 1))
    weights = 0
    for start, end, ends in segments(problem, order):
        cuts = np.array([0, start, end, num_blocks], dtype=np.int32)
        chip_of = problem.blocks.expand(place(cuts, order))
        wanted = evaluate(problem, Partition(problem.graph, chip_of)).chips[1]
        traffic = wanted.in_bytes + wanted.out_bytes
        found_s = ends.stage_s[package.chip_class[1], end]
        assert ends.traffic_bytes[end] == traffic
        assert found_s == pytest.approx(wanted.stage_s, rel=1e-12)
        assert ends.memory_bytes[end] == wanted.weight_bytes + 2 * traffic
        weights += wanted.weight_bytes
    assert weights > 0


@pytest.mark.parametrize("seed", range(4))
def test_live_tensors_are_counted_on_the_safe_side(seed, make_problem):
    """Along the graph's own order, no less than the exact peak, and often just that.

    With one op a block and no replicas; what leaves the segment stays to its end.
    """
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, 14, num_chips=3, view_probability=0.0)
    while problem.blocks.num_blocks < 14:
        problem = make_problem(rng, 14, num_chips=3, view_probability=0.0)
    problem = with_rules(problem, "memory")
    order = order_arrays(problem.blocks.arrays, np.arange(14, dtype=np.int32))
    num_exact = 0
    for start, end, ends in segments(problem, order, count_peak=True):
        cuts = np.array([0, start, end, 14], dtype=np.int32)
        chip_of = problem.blocks.expand(place(cuts, order))
        chip = evaluate(problem, Partition(problem.graph, chip_of)).chips[1]
        peak = ends.memory_bytes[end] - chip.weight_bytes - chip.buffer_bytes
        assert peak >= chip.peak_live_bytes
        num_exact += peak == chip.peak_live_bytes
    assert num_exact >= 14


def reached(problem, cutoff_s, capacity=None):
    """Return the program of the graph's own order, and whether memory was short."""
    arrays, num_blocks = problem.blocks.arrays, problem.blocks.num_blocks
    order = order_arrays(arrays, np.arange(num_blocks, dtype=np.int32))
    program = new_program(problem.num_chips, num_blocks, cutoff_s)
    hit_memory = np.zeros(1, dtype=np.bool_)
    if capacity is None:
        capacity = problem.package_arrays.memory_bytes
    plan_ahead(
        cutoff_s, arrays, problem.package_arrays, capacity, order, program, hit_memory
    )
    return program, bool(hit_memory[0])


def test_pins_end_a_segment(toy):
    """A segment ends before a block that is pinned to another chip than one of its."""
    pins = UserRules(pins={"op_1": 0, "op_2": 0, "op_4": 2})
    program, _ = reached(replace(toy, user=pins), np.inf)
    assert program.reach.tolist() == [4, 4, 4, 6, 6, 6]


def test_pairs_apart_end_a_segment(toy):
    """A segment ends before the second block of a pair whose first it holds."""
    program, _ = reached(
        replace(toy, user=UserRules(apart=(("op_1", "op_3"),))), np.inf
    )
    assert program.reach.tolist() == [3, 3, 6, 6, 6, 6]


def test_how_far_segments_reach(make_package):
    """The cut-off ends a segment, and says what is left to the chips behind."""
    # 2 3 1 4 s; in and out nothing. Below 5.5 s: [2 3], [3 1], [1 4], [4].
    graph = chain(4, flops=0, tensor_bytes=0, seconds=[2, 3, 1, 4])
    problem = Problem(graph, make_package(3))
    program, _ = reached(problem, 5.5)
    assert program.reach.tolist() == [2, 3, 4, 4]
    assert program.need.tolist() == [2, 2, 1, 1, 0]
    # Chip 0 must leave what two chips hold, chip 1 what one holds.
    assert program.first_end.tolist() == [0, 2, 4]
    # No chip runs the last op below 4 s: more chips than there are would be needed.
    assert reached(problem, 4.0)[0].need.tolist() == [4, 4, 4, 4, 0]


def test_weights_end_a_segment(make_package):
    """Weights beyond the roomiest chip end a segment, and that is noted."""
    problem = Problem(chain(3, weight_bytes=100), make_package(2))
    short = np.array([100, 250], dtype=np.int64)
    program, hit_memory = reached(problem, np.inf, short)
    assert program.reach.tolist() == [2, 3, 3]
    assert hit_memory
    assert not reached(problem, np.inf)[1]


@pytest.mark.parametrize("seed", range(6))
def test_no_segment_below_the_cut_off_is_passed_over(seed, make_problem):
    """A segment that goes beyond the reach costs the cut-off or more on any chip."""
    rng = np.random.default_rng(seed)
    problem = with_rules(make_problem(rng, 14, num_chips=3))
    arrays = problem.blocks.arrays
    num_blocks = problem.blocks.num_blocks
    order = order_arrays(arrays, np.arange(num_blocks, dtype=np.int32))
    costs = {
        (s, e): ends.stage_s[:, e].min() for s, e, ends in segments(problem, order)
    }
    for cutoff_s in np.quantile(list(costs.values()), [0.1, 0.5, 0.9]):
        reach = reached(problem, cutoff_s)[0].reach
        assert all(costs[s, e] >= cutoff_s for s, e in costs if e > reach[s])
        assert any(e <= reach[s] for s, e in costs)


def allowed(problem):
    """Return which segments of the graph's own order the triangle rule allows."""
    num_blocks = problem.blocks.num_blocks
    order = order_arrays(problem.blocks.arrays, np.arange(num_blocks, dtype=np.int32))
    return {
        (s, e): bool(np.isfinite(ends.stage_s[0, e]))
        for s, e, ends in segments(problem, order)
    }


def test_cuts_that_a_tensor_jumps_over(make_package):
    """Under the triangle rule no tensor may pass over a segment."""
    # x -> op_0 -> op_1 -> add(x) -> op_0 -> op_1 -> add(first add).
    problem = Problem(residual(2, ops_per_block=2), make_package(3))
    ruled = allowed(with_rules(problem, "triangle"))
    # The first add's tensor jumps over [3, 5), which it enters and which is left.
    assert not ruled[3, 5]
    assert ruled[3, 6]
    # Nothing jumps over the first segment.
    assert ruled[0, 3]
    assert allowed(with_rules(problem))[3, 5]


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
    assert all(allowed(problem).values())


def test_narrow_starts():
    """Of each run of positions, the first one that the fewest bytes cross may start."""
    # Five positions in runs of two: 0 always, 2 of (9, 5), 4 alone.
    cut_bytes = np.array([0, 7, 5, 9, 6, 0], dtype=np.int64)
    assert narrow_starts(cut_bytes, 3).tolist() == [True, False, True, False, True]
    assert narrow_starts(cut_bytes, 2).tolist() == [True, False, False, False, True]
    assert narrow_starts(cut_bytes, 5).all()


def test_places_and_cut_points(toy):
    """Segment starts and the parents of a dynamic program give the chips."""
    order = order_arrays(toy.blocks.arrays, np.arange(6, dtype=np.int32))
    cuts = np.array([0, 2, 2, 6], dtype=np.int32)
    assert place(cuts, order).tolist() == [0, 0, 2, 2, 2, 2]
    parent = np.full((4, 7), -1, dtype=np.int32)
    # Chip 2 ends at 6 and began at 4; chip 1 is empty (-2); chip 0 began at 0.
    parent[3, 6], parent[2, 4], parent[1, 4] = 4, -2, 0
    assert cut_points(3, parent).tolist() == [0, 4, 4, 6]
