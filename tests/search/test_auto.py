"""auto: greedy, then slices, then local moves, over one incumbent."""

import time

import numpy as np
import pytest

from mcmpart.graph.synthetic import chain, inception_like
from mcmpart.hardware import load_package
from mcmpart.problem import Problem
from mcmpart.search import Budget, Setting, auto, pipeline_evaluator, run_search
from mcmpart.search.auto import Auto


@pytest.fixture
def branches():
    """Give parallel branches, where placements beat every cut of an order."""
    return Problem(inception_like(2), load_package("ring36").with_chips(8))


def run(problem, time_s, **options):
    """Run auto; return the record and the stages that proposed, in order."""
    started = time.perf_counter()
    setting = Setting(problem, deadline=started + time_s, **options)
    method = Auto(setting)
    judge = pipeline_evaluator(problem, 1)
    stages = []

    def noting(rows):
        stages.append(method.name)
        return judge(rows)

    budget = Budget(time_s=time_s)
    record = run_search(
        method, noting, budget, 0.0, started=started, start=setting.start
    )
    return record, list(dict.fromkeys(stages))


def test_stages_follow_each_other(branches):
    """Greedy proposes first, then slice, then local moves and annealing in turn."""
    assert branches.package.has_rule("triangle")
    record, stages = run(branches, 0.6)
    assert stages == ["greedy", "slice", "local", "anneal"]
    costs = [point.bottleneck_s for point in record.trace]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) >= 2


def test_a_start_comes_first(branches):
    """The user's start is judged before anything else."""
    start = np.zeros(branches.graph.num_ops, dtype=np.int32)
    record, stages = run(branches, 0.3, start=start)
    assert record.trace[0].method == "start"
    assert stages[:2] == ["auto", "greedy"]
    assert record.bottleneck_s < record.trace[0].bottleneck_s


def test_without_any_plan_it_ends(make_package):
    """Where slicing finds nothing in time there is nothing to improve."""
    problem = Problem(chain(4, weight_bytes=4096), make_package(2, memory_bytes=4096))
    record, stages = run(problem, 0.2)
    assert record.best is None
    assert stages == []


def test_no_annealing_where_moves_are_valid(make_package):
    """Without the triangle rule local moves have the time to themselves."""
    problem = Problem(inception_like(2), make_package(3, long_edges="direct"))
    _, stages = run(problem, 0.5)
    assert stages == ["greedy", "slice", "local"]


def test_no_annealing_of_large_graphs(branches, monkeypatch):
    """Nor where the solver would take too long."""
    monkeypatch.setattr(auto, "MOST_BLOCKS", 10)
    _, stages = run(branches, 0.5)
    assert stages == ["greedy", "slice", "local"]
