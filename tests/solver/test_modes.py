"""SAMPLE and FIX mode from the outside: many rows, their options and edge cases."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph.builder import GraphBuilder, TensorSpec
from mcmpart.graph.synthetic import chain, residual, transformer
from mcmpart.problem import Problem, UserRules
from mcmpart.solver import ORDERS, fix_many, fix_rows, sample_many, sample_rows


@pytest.fixture
def wide(make_package):
    """Give four residual blocks, 16 ops, on five chips."""
    return Problem(residual(4), make_package(5), replica_threshold=0.0)


@pytest.fixture
def loose(make_package):
    """Give a maker of ops in a row on chips that may be skipped."""

    def make(num_ops, num_chips=3, **user):
        package = make_package(num_chips, long_edges="relay", rules=())
        graph = chain(num_ops)
        return Problem(graph, package, user=UserRules(**user), replica_threshold=0.0)

    return make


def random_weights(problem, seed=0):
    """Return random probabilities, ``[V, C]``."""
    rng = np.random.default_rng(seed)
    return rng.random((problem.graph.num_ops, problem.num_chips)) ** 3


def random_candidates(problem, count, seed=0):
    """Return random candidates, most of them invalid."""
    rng = np.random.default_rng(seed)
    return rng.integers(problem.num_chips, size=(count, problem.graph.num_ops))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_are_valid_and_differ(order, weighted, wide):
    """In each order, by probabilities or without: all solved, valid, many different."""
    weights = random_weights(wide) if weighted else None
    rows, solved = sample_many(wide, weights, range(200), order=order)
    _, valid = evaluate_many(wide, rows)
    assert solved.all()
    assert valid.all()
    assert len(set(map(tuple, rows.tolist()))) >= 20


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("nearest", [False, True])
def test_corrections_are_valid(order, nearest, wide):
    """In each order, nearest or at random, random candidates become valid."""
    rows, solved = fix_many(
        wide, random_candidates(wide, 200), range(200), order=order, nearest=nearest
    )
    _, valid = evaluate_many(wide, rows)
    assert solved.all()
    assert valid.all()


def test_rows_do_not_depend_on_the_workers(wide):
    """One, two or three threads give the same draws and corrections."""
    weights, candidates = random_weights(wide), random_candidates(wide, 70)
    drawn = [sample_rows(wide, weights, range(70), workers=w) for w in (1, 2, 3)]
    fixed = [fix_rows(wide, candidates, range(70), workers=w) for w in (1, 2, 3)]
    for first, *others in (drawn, fixed):
        for other in others:
            assert np.array_equal(other.chip_of, first.chip_of)
            assert np.array_equal(other.solved, first.solved)
            assert np.array_equal(other.num_attempts, first.num_attempts)


def test_a_row_depends_on_its_seed_only(wide):
    """Any selection of the seeds, in any order, gives the same rows."""
    weights, candidates = random_weights(wide), random_candidates(wide, 40)
    seeds = np.arange(100, 140)
    drawn, _ = sample_many(wide, weights, seeds)
    fixed, _ = fix_many(wide, candidates, seeds, nearest=False)
    for pick in (slice(0, 7), slice(33, 40), np.random.default_rng(0).permutation(40)):
        again, _ = sample_many(wide, weights, seeds[pick])
        assert np.array_equal(again, drawn[pick])
        again, _ = fix_many(wide, candidates[pick], seeds[pick], nearest=False)
        assert np.array_equal(again, fixed[pick])
    again, _ = sample_many(wide, weights, seeds + 1)
    assert np.array_equal(again[:-1], drawn[1:])
    assert not np.array_equal(again, drawn)


def test_sample_many_gives_the_rows_of_sample_rows(wide):
    """The short form leaves the attempts out, and so does that of FIX."""
    rows = sample_rows(wide, None, range(20))
    chip_of, solved = sample_many(wide, None, range(20))
    assert np.array_equal(chip_of, rows.chip_of)
    assert np.array_equal(solved, rows.solved)
    assert (rows.num_attempts >= 1).all()
    candidates = random_candidates(wide, 20)
    rows = fix_rows(wide, candidates, range(20))
    chip_of, solved = fix_many(wide, candidates, range(20))
    assert np.array_equal(chip_of, rows.chip_of)
    assert np.array_equal(solved, rows.solved)


def test_valid_candidates_take_no_attempt(wide):
    """They come back as they are, also between others that are corrected."""
    valid, _ = sample_many(wide, None, range(40))
    candidates = random_candidates(wide, 80)
    candidates[::2] = valid
    rows = fix_rows(wide, candidates, range(80))
    assert np.array_equal(rows.chip_of[::2], valid)
    assert (rows.num_attempts[::2] == 0).all()
    assert (rows.num_attempts[1::2] >= 1).all()
    assert rows.solved.all()


@pytest.mark.parametrize(
    ("order", "wanted"), [("topological", [2, 2, 2]), ("work", [0, 0, 1])]
)
def test_orders(order, wanted, make_package):
    """Three in a row wish for chips 2, 0, 1; the most work has the last of them.

    Sources first, 2 holds and the others follow; the last first, it is 1, 0 and 0.
    """
    package = make_package(3, long_edges="relay", rules=())
    graph = chain(3, flops=[1_000, 2_000, 3_000], tensor_bytes=1)
    problem = Problem(graph, package, replica_threshold=0.0)
    rows, _ = fix_many(problem, np.array([[2, 0, 1]]), [0], order=order)
    assert rows.tolist() == [wanted]


def test_the_whole_weight_on_one_chip(loose):
    """Probabilities of 0 but for one chip each, without a share for others, decide."""
    problem = loose(4)
    weights = np.eye(3)[[0, 1, 1, 2]]
    rows, _ = sample_many(problem, weights, range(50), uniform_share=0.0)
    assert rows.tolist() == [[0, 1, 1, 2]] * 50


def test_sharp_probabilities_that_contradict(wide):
    """All weight against the dataflow: the rows are valid and solved nevertheless."""
    top = np.arange(wide.graph.num_ops)[::-1] * 5 // wide.graph.num_ops
    rows, solved = sample_many(wide, np.eye(5)[top], range(50), uniform_share=0.0)
    _, valid = evaluate_many(wide, rows)
    assert solved.all()
    assert valid.all()


@pytest.mark.parametrize(("share", "even"), [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
def test_the_uniform_share(share, even, loose):
    """One op, all weight on chip 2 of three: chips 0 and 1 get a third of the share.

    5 standard deviations of 6,000 draws are at most 0.031.
    """
    rows, _ = sample_many(
        loose(1), np.array([[0.0, 0.0, 4.0]]), range(6000), uniform_share=share
    )
    found = [(rows[:, 0] == chip).mean() for chip in range(3)]
    wanted = [even / 3, even / 3, 1 - 2 * even / 3]
    assert np.allclose(found, wanted, atol=0.031)


def test_a_few_draws_are_uniform_by_default(loose):
    """Some 2 % of them: of 6,000 with all weight on one chip, 80 go elsewhere."""
    rows, _ = sample_many(loose(1), np.array([[0.0, 0.0, 4.0]]), range(6000))
    assert 40 <= (rows[:, 0] != 2).sum() <= 120


def test_probabilities_need_not_sum_to_one(loose):
    """Weights of 1 and 3, or 1/4 and 3/4, of 3e300 and 9e300 give the same rows."""
    problem = loose(3, num_chips=2)
    weights = np.array([[1.0, 3.0]] * 3)
    rows, _ = sample_many(problem, weights, range(100))
    for scale in (0.25, 2.0**900):
        again, _ = sample_many(problem, weights * scale, range(100))
        assert np.array_equal(again, rows)
    again, _ = sample_many(problem, weights.astype(np.float32), range(100))
    assert np.array_equal(again, rows)


def test_nearest_or_any(loose):
    """A single op that wishes for a chip above all gets the last, or else any."""
    problem = loose(1)
    candidates = np.full((60, 1), 5)
    near, _ = fix_many(problem, candidates, range(60))
    far, _ = fix_many(problem, candidates, range(60), nearest=False)
    assert set(near[:, 0].tolist()) == {2}
    assert set(far[:, 0].tolist()) == {0, 1, 2}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_candidates_that_are_no_chips(dtype, loose):
    """The least and the largest number of any integer type are corrected."""
    limits = np.iinfo(dtype)
    candidates = np.array([[limits.min, limits.max, limits.max]], dtype=dtype)
    rows, solved = fix_many(loose(3), candidates, [0], order="topological")
    assert solved.all()
    assert rows.tolist() == [[0, 2, 2]]


def test_ops_of_a_block_take_the_first_ones_probabilities(make_package):
    """Of two ops that must share a chip, the weights of the second are not read.

    The third op is the second block, and takes its own.
    """
    package = make_package(3, long_edges="relay", rules=())
    user = UserRules(together=(("op_0", "op_1"),))
    problem = Problem(chain(3), package, user=user, replica_threshold=0.0)
    weights = np.eye(3)[[0, 2, 1]]
    rows, _ = sample_many(problem, weights, range(20), uniform_share=0.0)
    assert rows.tolist() == [[0, 0, 1]] * 20


def test_replicable_ops_have_no_chip(make_package):
    """They get -1 in draws and corrections, and their candidates are not read."""
    problem = Problem(transformer(2), make_package(3, memory_bytes=10**12))
    replicable = problem.graph.op_replicable
    rows, solved = sample_many(problem, None, range(20))
    fixed, kept = fix_many(problem, np.where(replicable, 99, rows), range(20))
    assert replicable.any()
    assert solved.all()
    assert kept.all()
    assert ((rows == -1) == replicable).all()
    assert np.array_equal(fixed, rows)
    broken = rows.copy()
    broken[:, ~replicable] = broken[:, ~replicable][:, ::-1]
    fixed, _ = fix_many(problem, broken, range(20))
    assert ((fixed == -1) == replicable).all()


def test_a_valid_candidate_may_split_a_block(make_package):
    """A view apart from the op before it is kept, although draws join the two."""
    graph = chain(4)
    view = np.arange(4) == 1
    graph = replace(
        graph,
        op_flops=np.where(view, 0, graph.op_flops),
        op_bytes=np.where(view, 0, graph.op_bytes),
    )
    problem = Problem(graph, make_package(2), replica_threshold=0.0)
    rows, _ = sample_many(problem, None, range(50))
    fixed, _ = fix_many(problem, np.array([[0, 1, 1, 1]]), [0])
    assert problem.blocks.num_blocks == 3
    assert (rows[:, 0] == rows[:, 1]).all()
    assert fixed.tolist() == [[0, 1, 1, 1]]


def test_an_impossible_problem(loose):
    """Pins against the dataflow: no row is solved, all are -1, and none is tried."""
    problem = loose(3, pins={"op_0": 2, "op_2": 1})
    for rows in (
        sample_rows(problem, None, range(5)),
        fix_rows(problem, random_candidates(problem, 5), range(5)),
    ):
        assert not rows.solved.any()
        assert (rows.chip_of == -1).all()
        assert (rows.num_attempts == 0).all()


def test_no_rows(wide):
    """An empty batch has a row of ops' width and nothing in it."""
    for rows in (
        sample_rows(wide, None, []),
        sample_rows(wide, random_weights(wide), np.empty(0, dtype=np.int64)),
        fix_rows(wide, np.empty((0, 16), dtype=np.int32), []),
    ):
        assert rows.chip_of.shape == (0, 16)
        assert rows.solved.shape == rows.num_attempts.shape == (0,)


@pytest.mark.parametrize("rules", [(), ("no_skip", "memory")])
def test_a_graph_without_ops(rules, make_package):
    """The empty partition is valid, and found, whatever the rules."""
    builder = GraphBuilder("empty")
    builder.host_tensor(TensorSpec("x", 1))
    builder.output("x")
    package = make_package(2, long_edges="relay", rules=rules)
    problem = Problem(builder.build(), package)
    for rows, solved in (
        sample_many(problem, None, range(3)),
        sample_many(problem, np.empty((0, 2)), range(3)),
        fix_many(problem, np.empty((3, 0), dtype=np.int64), range(3)),
    ):
        assert rows.shape == (3, 0)
        assert solved.all()


def test_no_ops_cannot_fill_all_chips(make_package):
    """Where every chip must get an op, the empty partition is not valid."""
    builder = GraphBuilder("empty")
    builder.host_tensor(TensorSpec("x", 1))
    builder.output("x")
    user = UserRules(all_chips=True)
    problem = Problem(builder.build(), make_package(2), user=user)
    assert not sample_many(problem, None, range(3))[1].any()


def test_one_chip(make_package):
    """All on the only chip, drawn or corrected."""
    problem = Problem(residual(2), make_package(1), replica_threshold=0.0)
    candidates = np.full((3, 8), 7)
    for rows, solved in (
        sample_many(problem, np.zeros((8, 1)), range(3)),
        fix_many(problem, candidates, range(3)),
    ):
        assert solved.all()
        assert (rows == 0).all()


@pytest.mark.parametrize("all_chips", [False, True])
def test_64_chips(all_chips, make_package):
    """The most there may be; 70 ops in a row fill them all if that is demanded."""
    user = UserRules(all_chips=all_chips)
    problem = Problem(chain(70), make_package(64), user=user, replica_threshold=0.0)
    rows, solved = sample_many(problem, None, range(50))
    fixed, kept = fix_many(problem, rows[:, ::-1].copy(), range(50))
    for found, done in ((rows, solved), (fixed, kept)):
        _, valid = evaluate_many(problem, found)
        assert done.all()
        assert valid.all()
    if all_chips:
        assert (rows.max(axis=1) == 63).all()


def test_all_valid_partitions_are_drawn(tools, small_problem):
    """Enough draws meet each of up to thirty valid partitions, and nothing else."""
    rng = np.random.default_rng(0)
    num_problems = 0
    for _ in range(40):
        problem = small_problem(rng, 5, 3)
        valid = problem.blocks.expand(tools.valid_placements(problem))
        if not 1 <= len(valid) <= 30:
            continue
        rows, solved = sample_many(problem, None, range(3000))
        assert solved.all()
        found = set(map(tuple, rows.tolist()))
        assert found == set(map(tuple, valid.tolist())), tools.told(problem)
        num_problems += 1
    assert num_problems >= 15


def test_seeds_of_any_whole_number_type(loose):
    """Python numbers, small types, and the largest seed of all."""
    problem = loose(4)
    plain, _ = sample_many(problem, None, [1, 2])
    for seeds in (np.array([1, 2], dtype=np.uint8), (1, 2), range(1, 3)):
        assert np.array_equal(sample_many(problem, None, seeds)[0], plain)
    assert sample_many(problem, None, [2**64 - 1])[1].all()


def test_each_option_reaches_the_kernel(wide):
    """Orders, shares and probabilities change the draws of the same seeds."""
    seeds, weights = range(20), random_weights(wide)
    draws = [
        sample_many(wide, weights, seeds, order=order, uniform_share=share)[0]
        for order in ORDERS
        for share in (0.0, 0.5)
    ]
    draws.append(sample_many(wide, None, seeds)[0])
    for a, b in itertools.combinations(draws, 2):
        assert not np.array_equal(a, b)
