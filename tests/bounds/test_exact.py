"""exact: the integer program of the whole problem, against every placement."""

import math

import numpy as np
import pytest

from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.synthetic import transformer
from mcmpart.problem import Problem

A_MINUTE_S = 60.0


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_every_placement(make_problem, first):
    """On small problems of all kinds the optimum is proven, or that there is none."""
    seen = set()
    for seed in range(first, first + 40):
        rng = np.random.default_rng(seed)
        problem = make_problem(rng, int(rng.integers(2, 7)), rules=True)
        best = best_of_all(problem)
        if not best.complete:
            continue
        found = exact_bound(problem, A_MINUTE_S)
        assert found.infeasible == math.isinf(best.bottleneck_s), seed
        seen.add(found.infeasible)
        if not found.infeasible:
            assert found.proven, seed
            assert found.bound_s <= best.bottleneck_s, seed
            assert found.bound_s == pytest.approx(best.bottleneck_s, rel=1e-5), seed
            cost, valid = evaluate_many(problem, found.chip_of[None])
            assert (valid[0], cost[0]) == (True, found.bottleneck_s), seed
    assert seen == {False, True}


def test_the_toy(toy, toy_optimum_s):
    """The toy's optimum by hand is the bound and the partition."""
    found = exact_bound(toy, A_MINUTE_S)
    assert found.proven
    assert found.bottleneck_s == pytest.approx(toy_optimum_s)
    assert found.bound_s == pytest.approx(toy_optimum_s, rel=1e-5)


def test_only_better_ones_are_looked_for(toy, toy_optimum_s):
    """Told of an optimal plan, it finds no other and proves that one."""
    found = exact_bound(toy, A_MINUTE_S, best_s=toy_optimum_s)
    assert found.proven
    assert found.chip_of is None
    assert toy_optimum_s * (1 - 1e-5) <= found.bound_s


def test_partitions_are_handed_over(toy, toy_optimum_s):
    """Each better partition is reported on the way, the best one last."""
    rows = []
    found = exact_bound(toy, A_MINUTE_S, on_partition=rows.append)
    cost, valid = evaluate_many(toy, np.stack(rows))
    assert valid.all()
    assert (np.diff(cost) < 0).all()
    assert np.array_equal(rows[-1], found.chip_of)


@pytest.mark.parametrize(("time_s", "late"), [(1e-3, False), (A_MINUTE_S, True)])
def test_a_bound_at_any_time(make_package, time_s, late):
    """Stopped at once, what is given is a bound and no proof."""
    problem = Problem(transformer(1), make_package(4, peak_ops_per_s=(("*", 1e12),)))
    found = exact_bound(problem, time_s, is_late=lambda: late)
    assert not found.proven
    assert not found.infeasible
    assert found.bound_s >= simple_bound_s(problem) * (1 - 1e-5)
