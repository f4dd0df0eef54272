"""What the solver reads of a problem, and what follows before any decision."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules, unmerged_blocks
from mcmpart.solver.setup import make_rules


def chips_in(mask):
    """Return the chips of a mask."""
    return [c for c in range(64) if int(mask) >> c & 1]


def test_the_root_of_a_row_of_ops(make_package):
    """Three ops in a row that use exactly 3, 2 or 1 of four chips, or any number."""
    package = make_package(4, long_edges="relay", rules=("no_skip",))
    rules = make_rules(Problem(chain(3), package, replica_threshold=0.0))
    domains = [[chips_in(mask) for mask in row] for row in rules.root]
    assert rules.possible.tolist() == [True, True, True, True, False]
    assert domains[0] == [[0], [0, 1], [0, 1, 2]]
    assert domains[1] == [[0], [0], [0]]
    assert domains[2] == [[0], [0, 1], [1]]
    assert domains[3] == [[0], [1], [2]]


def test_the_root_counts_its_open_chips(small_problem):
    """``root_cover`` holds, as differences, how many blocks each chip is open to."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        rules = make_rules(small_problem(rng, 7, 4))
        for row in np.flatnonzero(rules.possible):
            chips = [chips_in(mask) for mask in rules.root[row]]
            num_open = [sum(c in own for own in chips) for c in range(4)]
            assert np.cumsum(rules.root_cover[row]).tolist() == [*num_open, 0]


def test_the_root_keeps_every_valid_placement(tools, small_problem):
    """Before any decision no chip is lost that a valid placement uses."""
    rng = np.random.default_rng(1)
    for _ in range(150):
        problem = small_problem(rng, 6, 3, views=0.3, replicas=0.2)
        rules, valid = make_rules(problem), tools.valid_placements(problem)
        used = tools.num_used(valid)
        masks = np.uint64(1) << valid.astype(np.uint64)
        assert rules.possible[3 if problem.user.all_chips else 0] or not len(valid)
        for row in range(4) if rules.possible[0] and rules.cover else ():
            mine = masks[used == row] if row else masks
            assert rules.possible[row] or not len(mine), tools.told(problem)
            assert (mine & rules.root[row] != 0).all(), tools.told(problem)


def test_lists_hold_the_neighbours(small_problem):
    """Successors, predecessors, pairs apart and items, block by block."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        problem = small_problem(rng, 8, 3)
        rules, blocks = make_rules(problem), problem.blocks.arrays
        apart = {(a, b) for a, b in blocks.apart.tolist()}
        apart |= {(b, a) for a, b in apart}
        for n in range(problem.blocks.num_blocks):
            for name, pointer, indices in (
                ("succ", blocks.succ_ptr, blocks.succ),
                ("pred", blocks.pred_ptr, blocks.pred),
                ("item", blocks.item_ptr, blocks.item),
            ):
                table = rules.extra if name == "item" else rules.rows
                found = rules.near[table[name][n] : table[name][n + 1]]
                wanted = indices[pointer[n] : pointer[n + 1]]
                assert found.tolist() == wanted.tolist()
            first, past = rules.extra["apart"][n : n + 2]
            others = {(n, b) for b in rules.near[first:past].tolist()}
            assert others == {pair for pair in apart if pair[0] == n}


def test_spans_stand_at_both_ends(small_problem):
    """An edge has the same span in the list of its source and in that of its target."""
    rng = np.random.default_rng(3)
    num_spans = 0
    for _ in range(50):
        rules = make_rules(small_problem(rng, 8, 4, rules=("no_skip", "triangle")))
        ends = {}
        for name in ("ahead", "behind"):
            starts = rules.rows[name].tolist()
            ends[name] = {
                ((n, int(rules.near[i])), int(rules.span[i]))
                for n in range(len(starts) - 1)
                for i in range(starts[n], starts[n + 1])
            }
        flipped = {((u, v), span) for (v, u), span in ends["behind"]}
        assert ends["ahead"] == flipped
        assert all(span < 3 for _, span in flipped)
        num_spans += len(flipped)
    assert num_spans >= 50


def test_the_needy_come_first(small_problem):
    """``by_need`` names every block once, by falling bytes."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        rules = make_rules(small_problem(rng, 8, 3))
        needs = rules.extra["need_bytes"][rules.by_need]
        assert sorted(rules.by_need.tolist()) == list(range(rules.by_need.size))
        assert (np.diff(needs) <= 0).all()


def test_rules_are_made_once(small_problem):
    """The same problem gives the same arrays."""
    problem = small_problem(np.random.default_rng(5), 4, 2)
    assert make_rules(problem) is make_rules(problem)
    # Also where the blocks are spelled out.
    assert make_rules(problem, problem.blocks) is make_rules(problem)


def test_fewer_chips_than_the_weights_need(make_package):
    """Four weights of 10 bytes and buffers of 4 do not fit one or two chips of 20."""
    graph = chain(4, tensor_bytes=1, weight_bytes=10)
    package = make_package(
        4, long_edges="relay", rules=("no_skip", "memory"), memory_bytes=20
    )
    rules = make_rules(Problem(graph, package, replica_threshold=0.0))
    assert rules.possible.tolist() == [True, False, False, True, True]


def test_an_output_that_leaves_a_group_is_counted_once(make_package):
    """A group whose model output is also read elsewhere fits its 35 bytes.

    a, b and c share a chip and z has another. The group reads x (2 * 1), sends t and w
    (2 * (10 + 1)), and holds at most y and w (10 + 1) at once: t, read by nobody here,
    is gone when b runs.
    """
    builder = GraphBuilder("group")
    builder.host_tensor(TensorSpec("x", 1))
    for name, read, written, size in (
        ("a", "x", "t", 10),
        ("b", "x", "y", 10),
        ("c", "y", "w", 1),
        ("z", "t", "o", 1),
    ):
        tensor = TensorSpec(written, size)
        builder.op(OpSpec(name, "Op", flops=9, reads=(read,), writes=(tensor,)))
    for name in ("t", "w", "o"):
        builder.output(name)
    package = make_package(2, memory_bytes=35)
    user = UserRules(together=(("a", "b", "c"),))
    problem = Problem(builder.build(), package, user=user, replica_threshold=0.0)
    _, valid = evaluate_many(problem, np.array([[0, 0, 0, 1]]))
    rules = make_rules(problem)
    assert valid.all()
    assert rules.possible[2]
    assert rules.root[2].tolist() == [1, 2]


@pytest.mark.parametrize("pins", [{"op_0": 1, "op_1": 0}, {"op_0": 2}])
def test_a_contradiction_leaves_no_row(pins, make_package):
    """Pins against the dataflow, or past chips that nobody can fill."""
    package = make_package(3, long_edges="relay", rules=("no_skip",))
    user = UserRules(pins=pins)
    problem = Problem(chain(2), package, user=user, replica_threshold=0.0)
    assert not make_rules(problem).possible.any()


def test_unmerged_blocks_keep_groups_only(tools, small_problem):
    """Each op is a block of its own, but for those that must share a chip."""
    rng = np.random.default_rng(6)
    num_merged = 0
    for _ in range(60):
        tree = [(int(rng.integers(max(v - 2, 0), v)), v) for v in range(1, 7)]
        problem = small_problem(rng, 7, 3, edges=tree, views=0.6)
        blocks = unmerged_blocks(problem)
        num_merged += blocks is not problem.blocks
        rows = tools.placements(blocks.num_blocks, 3)
        ops = tools.placements(problem.ops.num_blocks, 3)
        _, valid = evaluate_many(problem, problem.ops.expand(ops))
        _, kept = evaluate_many(problem, blocks.expand(rows))
        assert valid.sum() == kept.sum()
    assert num_merged >= 10
