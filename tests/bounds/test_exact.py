"""The exact program: bound and partition against brute force, under every rule."""

import numpy as np
import pytest

from mcmpart.bounds import _exact_memory, exact, simple_bound_s
from mcmpart.bounds._exact_program import exact_program
from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.problem import Problem, UserRules

TIME_S = 60.0
"""Limit that no small problem comes near."""


def three(make_package, num_chips=2, **changes):
    """Return three ops in a row of 1, 2 and 3 s, with tensors of 10 bytes."""
    graph = chain(3, flops=0, tensor_bytes=10, seconds=[1, 2, 3])
    return Problem(graph, make_package(num_chips, **changes))


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_brute_force(seed, make_problem):
    """Bound and partition are the optimum, and infeasibility is proven exactly."""
    rng = np.random.default_rng(seed)
    num_infeasible = 0
    for _ in range(60):
        num_chips, num_ops = int(rng.integers(1, 5)), int(rng.integers(1, 8))
        problem = make_problem(rng, num_ops, num_chips=num_chips, rules=True)
        best, found = best_of_all(problem), exact_bound(problem, TIME_S)
        assert found.infeasible == (best.chip_of is None)
        num_infeasible += found.infeasible
        if found.infeasible:
            assert found.chip_of is None
            continue
        assert found.proven
        assert found.bound_s <= best.bottleneck_s
        assert found.bound_s == pytest.approx(best.bottleneck_s, rel=4e-6)
        cost_s, valid = evaluate_many(problem, found.chip_of[None])
        assert valid[0]
        assert found.bottleneck_s == cost_s[0]
        assert cost_s[0] == pytest.approx(best.bottleneck_s, rel=1e-6)
    assert 0 < num_infeasible < 40


@pytest.mark.parametrize("seed", [458, 489, 1391, 2031, 2893, 3654, 4114])
def test_what_presolve_got_wrong(seed, make_problem):
    """HiGHS 1.12 to 1.15, with presolve, calls worse partitions of these optimal."""
    rng = np.random.default_rng(seed)
    num_chips, num_ops = int(rng.integers(1, 5)), int(rng.integers(1, 8))
    problem = make_problem(rng, num_ops, num_chips=num_chips, rules=True)
    best, found = best_of_all(problem), exact_bound(problem, TIME_S)
    assert found.bound_s <= best.bottleneck_s
    assert found.bottleneck_s == pytest.approx(best.bottleneck_s, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "optimum_s"),
    # A tensor takes 1 s in or out: [1 2] [3] is 1 + 3 + 1 on both chips, all on one
    # chip 1 + 6 + 1. Overlap hides the transfer. Hops of 2 bytes/s take 5 s, and of
    # 1 byte/s 10 s, so that one chip is best.
    [
        ({}, 5.0),
        ({"io": "overlap"}, 3.0),
        ({"io": "overlap", "bandwidth_bytes_per_s": 2.0}, 5.0),
        ({"bandwidth_bytes_per_s": 1.0}, 8.0),
        ({"bandwidth_bytes_per_s": 1.0, "link_limit": False}, 5.0),
        ({"num_chips": 1}, 8.0),
    ],
)
def test_by_hand(make_package, changes, optimum_s):
    """Three ops in a row, worked by hand."""
    found = exact_bound(three(make_package, **changes), TIME_S)
    assert found.proven
    assert found.bottleneck_s == pytest.approx(optimum_s, rel=1e-12)
    assert found.bound_s == pytest.approx(optimum_s, rel=4e-6)


def test_without_time(make_package):
    """With no time at all, and when it is late, the simple bound is left."""
    problem = three(make_package)
    late = exact_bound(problem, TIME_S, is_late=lambda: True)
    for found in (late, exact_bound(problem, 0.0)):
        assert found.bound_s == simple_bound_s(problem)
        assert found.chip_of is None
        assert not found.proven
        assert not found.infeasible


def test_time_limit(make_package):
    """A program cut short gives a bound below what it and others found."""
    graph = random_dag(40, np.random.default_rng(0), 0.2)
    problem = Problem(graph, make_package(6, long_edges="relay", op_overhead_s=1e-6))
    num_asked = 0

    def is_late():
        nonlocal num_asked
        num_asked += 1
        return num_asked > 20

    found = exact_bound(problem, TIME_S, is_late=is_late)
    assert not found.proven
    assert simple_bound_s(problem) <= found.bound_s <= found.bottleneck_s


@pytest.mark.parametrize(("known", "finds"), [(1.0, False), (1.1, True)])
def test_a_known_partition(toy, toy_optimum_s, known, finds):
    """One that is best is proven so and no other is given; a worse one is beaten."""
    found = exact_bound(toy, TIME_S, best_s=known * toy_optimum_s)
    assert found.proven
    assert found.bound_s == pytest.approx(toy_optimum_s, rel=4e-6)
    assert found.bound_s <= toy_optimum_s
    assert (found.chip_of is not None) == finds


def test_partitions_are_told(toy):
    """Each is better than the one before, and the last one is the result."""
    told = []
    found = exact_bound(toy, TIME_S, on_partition=told.append)
    cost_s, valid = evaluate_many(toy, np.stack(told))
    assert valid.all()
    assert (np.diff(cost_s) < 0).all()
    assert (told[-1] == found.chip_of).all()


def test_memory_by_no_goods(make_problem, monkeypatch):
    """Without rows for live tensors the optimum is the same: what breaks is barred."""
    monkeypatch.setattr(_exact_memory, "MOST_TERMS", 0)
    barred = []
    forbid = exact.ExactProgram.forbid
    monkeypatch.setattr(
        exact.ExactProgram,
        "forbid",
        lambda program, row: (barred.append(row), forbid(program, row)),
    )
    rng = np.random.default_rng(3)
    for _ in range(60):
        problem = make_problem(rng, 5, num_chips=2, rules=True)
        best, found = best_of_all(problem), exact_bound(problem, TIME_S)
        assert found.infeasible == (best.chip_of is None)
        assert found.bound_s <= best.bottleneck_s
        assert found.bottleneck_s == pytest.approx(best.bottleneck_s, rel=1e-6)
    assert barred


def test_a_large_graph_is_left_alone(toy, monkeypatch):
    """Beyond the size limit only the simple bound is given."""
    monkeypatch.setattr(exact, "MOST_TERMS", 10)
    found = exact_bound(toy, TIME_S)
    assert (found.bound_s, found.proven) == (simple_bound_s(toy), False)


def test_no_ops(make_package):
    """An empty graph costs nothing, and cannot fill chips."""
    graph = GraphBuilder("empty").build()
    found = exact_bound(Problem(graph, make_package(2)), TIME_S)
    assert (found.bound_s, found.bottleneck_s, found.proven) == (0.0, 0.0, True)
    demand = UserRules(all_chips=True)
    assert exact_bound(Problem(graph, make_package(2), user=demand), 9.0).infeasible


def test_columns_read_back(make_package):
    """A prefix column is 1 where the chip is below; chip_of counts them."""
    found = exact_program(three(make_package, num_chips=3))
    values = np.zeros(found.program.num_columns)
    values[found.prefix[:, -1]] = 1.0
    values[found.prefix[0, 1:]] = 1.0
    values[found.prefix[1, 2]] = 1.0
    assert found.chip_of(values).tolist() == [0, 1, 2]
    terms = [found.on_chip(1, c) for c in range(3)]
    assert [sum(a * values[i] for i, a in term) for term in terms] == [0, 1, 0]
