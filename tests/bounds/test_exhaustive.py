"""All partitions of small problems: how many there are, and the best of them."""

import itertools

import numpy as np
import pytest

from mcmpart.bounds import exhaustive
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, diamond
from mcmpart.problem import Problem
from mcmpart.reference import recompute
from mcmpart.rules import explain


def best_by_hand(problem):
    """Return the least bottleneck of all valid placements, in plain Python."""
    graph, package = problem.graph, problem.package
    free = [op for op in range(graph.num_ops) if not graph.op_replicable[op]]
    least_s = np.inf
    for chips in itertools.product(range(package.num_chips), repeat=len(free)):
        row = [-1] * graph.num_ops
        for op, chip in zip(free, chips, strict=True):
            row[op] = chip
        if not explain(graph, package, row, problem.user):
            least_s = min(least_s, recompute(graph, package, row).bottleneck_s)
    return least_s


def masked():
    """Return two ops that read a replicable one."""
    net = GraphBuilder("masked")
    net.host_tensor(TensorSpec("x", 1))
    for name, reads in (("mask", ("x",)), ("a", ("mask.t",)), ("b", ("a.t", "mask.t"))):
        net.op(
            OpSpec(
                name,
                "Op",
                seconds=1.0,
                replicable=name == "mask",
                reads=reads,
                writes=(TensorSpec(f"{name}.t", 1),),
            )
        )
    net.output("b.t")
    return net.build()


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_brute_force(seed, make_problem):
    """The best, and whether there is one, as plain Python finds it."""
    rng = np.random.default_rng(seed)
    num_solvable = num_infeasible = 0
    for _ in range(25):
        num_chips = int(rng.integers(1, 4))
        num_ops = int(rng.integers(1, 6 if num_chips < 3 else 5))
        problem = make_problem(rng, num_ops, num_chips=num_chips, rules=True)
        found = best_of_all(problem)
        least_s = best_by_hand(problem)
        assert found.complete
        assert (found.chip_of is None) == np.isinf(least_s)
        assert found.bottleneck_s == pytest.approx(least_s, rel=1e-12)
        if found.chip_of is None:
            num_infeasible += 1
            continue
        num_solvable += 1
        row = found.chip_of.tolist()
        assert not explain(problem.graph, problem.package, row, problem.user)
    assert num_solvable > 10
    assert num_infeasible < num_solvable


def test_the_toy(toy, toy_optimum_s):
    """Six ops in a row on three chips have C(8, 2) = 28 partitions; 6.2 s is best."""
    found = best_of_all(toy)
    assert (found.num_judged, found.complete) == (28, True)
    assert found.bottleneck_s == pytest.approx(toy_optimum_s, rel=1e-12)


@pytest.mark.parametrize(
    ("limit", "judged", "complete"),
    [(1, 1, False), (27, 27, False), (28, 28, True), (29, 28, True)],
)
def test_limit(toy, limit, judged, complete):
    """It is complete only where the limit left none out."""
    found = best_of_all(toy, limit)
    assert (found.num_judged, found.complete) == (judged, complete)


def test_batches(toy, monkeypatch):
    """Batches that end in the middle change nothing."""
    whole = best_of_all(toy)
    monkeypatch.setattr(exhaustive, "BATCH", 5)
    parts = best_of_all(toy)
    assert (parts.num_judged, parts.complete) == (28, True)
    assert parts.bottleneck_s == whole.bottleneck_s


def test_branches(make_package):
    """A diamond on two chips: 1 with all on chip 1, 1 on chip 0, 4 in between."""
    assert best_of_all(Problem(diamond(2), make_package(2))).num_judged == 6


@pytest.mark.parametrize(
    ("rules", "judged"),
    # Two ops cannot use more than two chips without a gap: 00, 01, 11. Else 5 * 6 / 2.
    [(("no_skip", "triangle"), 3), (("triangle",), 15)],
)
def test_more_chips_than_ops(make_package, rules, judged):
    """Chips that no_skip keeps empty are not tried."""
    problem = Problem(chain(2), make_package(5, rules=rules))
    assert best_of_all(problem).num_judged == judged


def test_replicas_have_no_chip(make_package):
    """A replicable op stands on none: two ops in a row on two chips, 3 ways."""
    found = best_of_all(Problem(masked(), make_package(2)))
    assert found.num_judged == 3
    assert found.chip_of[0] == -1


def test_no_ops(make_package):
    """An empty graph has one partition, which costs nothing."""
    problem = Problem(GraphBuilder("empty").build(), make_package(2))
    found = best_of_all(problem)
    assert (found.num_judged, found.complete, found.bottleneck_s) == (1, True, 0.0)
    assert found.chip_of.shape == (0,)


def test_no_valid_partition(make_package):
    """With nothing valid there is no best, and complete makes that a proof."""
    problem = Problem(chain(2), make_package(1, memory_bytes=1))
    found = best_of_all(problem)
    assert found.chip_of is None
    assert (found.bottleneck_s, found.complete) == (np.inf, True)
