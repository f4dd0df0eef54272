"""The search meets all valid placements and no others; FIX mode keeps each of them."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.problem import unmerged_blocks
from mcmpart.solver._search import FIX_NEAREST, FIX_RANDOM, SAMPLE

RULES = [(), ("no_skip",), ("triangle",), ("no_skip", "triangle")]


@pytest.fixture
def check(tools, broken):
    """Give a check of one problem: what it holds is what the tests here claim."""

    def run(rng, problem):
        valid = tools.valid_placements(problem)
        order = rng.permutation(problem.blocks.num_blocks).astype(np.int32)
        for count in counts_of(problem):
            wanted = valid[tools.num_used(valid) == count] if count else valid
            for full in (False, True):
                found = tools.reached(problem, count, order, full=full)
                assert tools.keeps_rules(problem, found).all(), tools.told(problem)
                fitting = found[evaluate_many(problem, problem.blocks.expand(found))[1]]
                assert np.array_equal(fitting, wanted), tools.told(problem)
        mode = FIX_NEAREST if rng.random() < 0.5 else FIX_RANDOM
        kept, _, attempts = tools.solved_rows(problem, mode, valid, range(len(valid)))
        assert np.array_equal(kept, valid), tools.told(problem)
        assert (attempts == 1).all(), tools.told(problem)
        if len(valid) and rng.random() < 0.2:
            row = problem.blocks.expand(valid[rng.integers(len(valid))])
            assert broken(problem, row) == set()

    return run


def counts_of(problem):
    """Return the numbers of used chips that rows try, 0 for any number."""
    if problem.user.all_chips:
        return [problem.num_chips]
    if problem.package.has_rule("no_skip"):
        return range(problem.num_chips + 1)
    return [0]


def test_there_are_302_dags_of_five_ops(tools):
    """Leaving out renamed copies leaves the known numbers of DAGs (OEIS A003087)."""
    counts = [len(tools.distinct_edges(num_ops)) for num_ops in range(1, 6)]
    assert counts == [1, 2, 6, 31, 302]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_dag_of_five_ops(rules, tools, small_problem, check):
    """On three chips, whatever the package's rules, for every DAG of up to five ops."""
    rng = np.random.default_rng(0)
    for num_ops in range(1, 6):
        for edges in tools.distinct_edges(num_ops):
            problem = small_problem(
                rng, num_ops, 3, edges=edges, rules=rules, user=False
            )
            check(rng, problem)


@pytest.mark.parametrize("rules", RULES[1:], ids=str)
def test_dags_of_five_ops_on_four_chips(rules, tools, small_problem, check):
    """On four chips, for every fourth DAG, with the memory and the user's rules."""
    rng = np.random.default_rng(1)
    for edges in tools.distinct_edges(5)[::4]:
        problem = small_problem(rng, 5, 4, edges=edges, rules=(*rules, "memory"))
        check(rng, problem)


@pytest.mark.parametrize("seed", range(10))
def test_random_dags(seed, small_problem, check):
    """Random DAGs of up to nine ops, with views, replicas, memory and user rules."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        num_chips = int(rng.integers(1, 5))
        num_ops = int(rng.integers(1, (0, 10, 10, 9, 7)[num_chips]))
        check(rng, small_problem(rng, num_ops, num_chips, views=0.4, replicas=0.2))


def test_unmerged_blocks_reach_every_partition(tools, small_problem):
    """Where each view stands for itself, every valid partition of the ops is met."""
    rng = np.random.default_rng(3)
    num_merged = 0
    for _ in range(60):
        tree = [(int(rng.integers(max(v - 2, 0), v)), v) for v in range(1, 6)]
        problem = small_problem(rng, 6, 3, edges=tree, views=0.6)
        blocks = unmerged_blocks(problem)
        num_merged += blocks.num_blocks > problem.blocks.num_blocks
        valid = tools.valid_placements(problem, blocks)
        order = rng.permutation(blocks.num_blocks).astype(np.int32)
        used = problem.num_chips if problem.user.all_chips else 0
        found = tools.reached(problem, used, order, full=True, blocks=blocks)
        assert tools.keeps_rules(problem, found, blocks).all()
        fitting = found[evaluate_many(problem, blocks.expand(found))[1]]
        assert np.array_equal(fitting, valid), tools.told(problem)
    assert num_merged >= 10


def test_random_dags_meet_every_rule(tools, small_problem, broken):
    """The problems above are mostly solvable, and each rule decides in some of them."""
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(
        ("no_skip", "triangle", "memory", "pin", "apart", "all_chips"), 0
    )
    num_solvable = num_replicas = num_merged = 0
    for _ in range(250):
        problem = small_problem(rng, 6, 3, views=0.4, replicas=0.2)
        num_replicas += bool(problem.graph.op_replicable.any())
        num_merged += problem.blocks.num_blocks < problem.ops.num_blocks
        num_solvable += len(tools.valid_placements(problem)) > 0
        rows = tools.placements(problem.blocks.num_blocks, 3)
        for row in rng.choice(rows, 20):
            names = broken(problem, problem.blocks.expand(row))
            if len(names) == 1 and names != {"dataflow"}:
                counts[names.pop()] += 1
    assert min(counts.values()) >= 10, counts
    assert min(num_replicas, num_merged) >= 20
    assert num_solvable >= 100


def test_sharp_probabilities_reach_every_placement(tools, small_problem):
    """A draw that gives each block one chip ends there at once, if that is valid."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        problem = small_problem(rng, 6, 3)
        for row in tools.valid_placements(problem)[:8]:
            weights = (row[:, None] == np.arange(3)).astype(float)
            empty = np.empty((1, 0), dtype=np.int32)
            found, _, attempts = tools.solved_rows(
                problem, SAMPLE, empty, [7], weights=weights
            )
            assert found[0].tolist() == row.tolist(), tools.told(problem)
            assert attempts[0] == 1
