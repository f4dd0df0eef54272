"""ideals: exact by hand, and never against a plan that is known."""

import numpy as np
import pytest

from mcmpart.bounds import ideals
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.bounds.ideals import proof_blocks, within_limit
from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder
from mcmpart.graph.synthetic import chain, diamond
from mcmpart.problem import Problem
from mcmpart.rules import explain

ABOVE, BELOW = 1 + 1e-9, 1 - 1e-6
"""A limit that the optimum keeps to in spite of rounding, and one that it does not."""


def try_limit(problem, limit_s, **options):
    """Return what the ideals say of one limit."""
    return within_limit(problem, proof_blocks(problem), limit_s, **options)


def cost_of(problem, chip_of):
    """Return the bottleneck of a partition, and whether it is valid.

    Where all chips are alike, a used one may stand in for an empty one before it.
    """
    if ideals._may_skip(problem) and problem.package_arrays.no_skip:
        used = chip_of >= 0
        chip_of = chip_of.copy()
        _, chip_of[used] = np.unique(chip_of[used], return_inverse=True)
    cost, valid = evaluate_many(problem, chip_of[None])
    return cost[0], bool(valid[0])


@pytest.mark.parametrize("seed", range(10))
def test_against_all_partitions(seed, make_problem):
    """The optimum is never refuted; without the memory rule all below it is.

    And what is found keeps to the limit: a valid partition costs at most that.
    """
    rng = np.random.default_rng(seed)
    num_solvable = num_refuted = num_valid = 0
    for _ in range(100):
        problem = make_problem(rng, int(rng.integers(1, 7)), rules=True)
        best_s = best_of_all(problem).bottleneck_s
        if not 0 < best_s < np.inf:
            continue
        num_solvable += 1
        for factor in (ABOVE, 1.3):
            answer = try_limit(problem, best_s * factor)
            assert not answer.refuted
            assert not answer.gave_up
            cost_s, valid = cost_of(problem, answer.chip_of)
            num_valid += valid
            assert not valid or cost_s <= best_s * factor * ABOVE
        below = try_limit(problem, best_s * BELOW)
        num_refuted += below.refuted
        assert below.refuted or problem.package_arrays.memory
        # Nothing was overlooked: what is found below the optimum breaks a rule.
        assert below.refuted or not cost_of(problem, below.chip_of)[1]
    assert num_solvable > 60
    assert num_refuted > 0.9 * num_solvable
    assert num_valid > 1.7 * num_solvable


def test_never_against_a_known_plan(make_problem, make_rows):
    """On graphs too large to look at in full, no plan's value is refuted."""
    rng = np.random.default_rng(0)
    num_told = 0
    for _ in range(20):
        problem = make_problem(rng, 20, reach=4)
        cost, valid = evaluate_many(problem, make_rows(rng, problem, 400))
        if not valid.any():
            continue
        answer = try_limit(problem, cost[valid].min() * ABOVE, max_visits=5_000)
        assert not answer.refuted
        num_told += answer.chip_of is not None
    assert num_told > 5


def test_by_hand(by_hand):
    """Below the optimum nothing is left; at the optimum the best partition is found."""
    problem, optimum_s = by_hand
    assert try_limit(problem, optimum_s * BELOW).refuted
    answer = try_limit(problem, optimum_s * ABOVE)
    assert not answer.refuted
    cost_s, valid = cost_of(problem, answer.chip_of)
    assert (cost_s, valid) == (pytest.approx(optimum_s), True)


def test_the_toy(toy, toy_optimum_s):
    """Six ops in a row: one of the three partitions with 6.2 s is found."""
    assert try_limit(toy, 6.19).refuted
    answer = try_limit(toy, toy_optimum_s * ABOVE)
    assert answer.chip_of.tolist() in (
        [0, 0, 1, 1, 1, 2],
        [0, 1, 1, 1, 2, 2],
        [0, 0, 1, 1, 2, 2],
    )
    assert try_limit(toy, 100.0).chip_of is not None


@pytest.mark.parametrize(
    ("rules", "optimum_s"),
    [
        ({"pins": {"op_0": 0, "op_1": 1, "op_2": 1, "op_4": 1}}, 8.2),
        # [4 2 1] [3 2] [4].
        ({"together": (("op_0", "op_2"),)}, 7.2),
        # [4] [2 1 3 2] [4] is 8.2, and [4 2 1] [3] [2 4] is 7.2.
        ({"apart": (("op_2", "op_3"), ("op_3", "op_4"))}, 7.2),
        # All from chip 1 on breaks no_skip.
        ({"pins": {"op_2": 0}}, 7.2),
    ],
)
def test_the_users_rules(toy, demand, rules, optimum_s):
    """Pins, together and apart count: the toy under each of them, by hand."""
    problem = demand(toy, **rules)
    assert try_limit(problem, optimum_s * BELOW).refuted
    answer = try_limit(problem, optimum_s * ABOVE)
    assert cost_of(problem, answer.chip_of) == (pytest.approx(optimum_s), True)


def test_all_chips(make_package, net, demand):
    """A costly tensor keeps two ops together, unless every chip must get one."""
    graph = net(("u", 1.0, ("x",), (90,)), ("v", 1.0, ("u.0",), (1,)))
    problem = Problem(graph, make_package(2))
    assert np.ptp(try_limit(problem, 2.2 * ABOVE).chip_of) == 0
    forced = demand(problem, all_chips=True)
    # 1 s, and 91 bytes.
    assert try_limit(forced, 10.1 * BELOW).refuted
    assert try_limit(forced, 10.1 * ABOVE).chip_of.tolist() == [0, 1]


@pytest.mark.parametrize(("memory_bytes", "fits"), [(63, False), (64, True)])
def test_memory(make_package, memory_bytes, fits):
    """Weights of 60 bytes and two buffers of 2 bytes need 64; live tensors are left."""
    package = make_package(2, memory_bytes=memory_bytes)
    problem = Problem(chain(2, weight_bytes=60, tensor_bytes=1), package)
    answer = try_limit(problem, 1e9)
    assert answer.refuted is not fits
    if fits:
        assert answer.chip_of.tolist() == [0, 1]
        assert not cost_of(problem, answer.chip_of)[1]


def test_two_words_of_blocks(make_package):
    """70 ops of 1 s on three chips: 24 s on one of them, and 0.2 s for its tensors."""
    graph = chain(70, flops=0, tensor_bytes=1, seconds=[1.0] * 70)
    problem = Problem(graph, make_package(3))
    assert try_limit(problem, 24.2 * BELOW).refuted
    answer = try_limit(problem, 24.2 * ABOVE)
    assert cost_of(problem, answer.chip_of) == (pytest.approx(24.2), True)


@pytest.mark.parametrize("name", ["stepping_stone", "filler"])
def test_views_stand_alone(make_by_hand, name):
    """Merged with a neighbour, a view would refute what the ops can reach."""
    problem, optimum_s = make_by_hand(name)
    assert problem.blocks.num_blocks < proof_blocks(problem).num_blocks
    assert within_limit(problem, problem.blocks, optimum_s * ABOVE).refuted
    assert not try_limit(problem, optimum_s * ABOVE).refuted


def test_views_are_merged_where_nothing_is_lost(make_package, net):
    """Chips that are alike, and no rule that a view alone could help with."""
    graph = net(
        ("u", 4.0, ("x",), (1,)),
        ("view", None, ("u.0",), (1,)),
        ("v", 4.0, ("view.0",), (1,)),
    )
    package = make_package(3, long_edges="direct", rules=("no_skip",))
    problem = Problem(graph, package)
    assert proof_blocks(problem).num_blocks == 2
    assert try_limit(problem, 4.2 * BELOW).refuted
    assert not try_limit(problem, 4.2 * ABOVE).refuted


def test_more_ideals_than_allowed(toy):
    """A chain of six ops has seven ideals: with six looked at it gives up."""
    assert try_limit(toy, 6.0, max_visits=7).refuted
    answer = try_limit(toy, 6.0, max_visits=6)
    assert (answer.gave_up, answer.refuted, answer.chip_of) == (True, False, None)


def test_wide_graphs_are_given_up(make_package):
    """30 parallel ops have 2^30 ideals, and giving up is told from refuting."""
    problem = Problem(diamond(30), make_package(4))
    answer = try_limit(problem, 1e-9, max_visits=10_000)
    assert (answer.gave_up, answer.refuted) == (True, False)


def test_too_much_memory(toy, monkeypatch):
    """Ideals that would not fit the memory are given up too."""
    monkeypatch.setattr(ideals, "MAX_BYTES", 100)
    assert try_limit(toy, 6.2).gave_up


def test_stopped(toy):
    """When it is late there is no answer either way."""
    answer = try_limit(toy, 6.0, is_late=lambda: True)
    assert (answer.refuted, answer.chip_of, answer.gave_up) == (False, None, False)


def test_slices_change_nothing(toy, toy_optimum_s, monkeypatch):
    """Looking at the clock after every pair leads to the same answers."""
    monkeypatch.setattr(ideals, "PAIRS_PER_CALL", 1)
    assert try_limit(toy, toy_optimum_s * BELOW).refuted
    found = try_limit(toy, toy_optimum_s * ABOVE).chip_of
    assert not explain(toy.graph, toy.package, found.tolist(), toy.user)


def test_no_ops(make_package):
    """An empty graph keeps to any limit."""
    answer = try_limit(Problem(GraphBuilder("empty").build(), make_package(2)), 1.0)
    assert (answer.refuted, answer.chip_of.size) == (False, 0)
