"""exact as a method: what it proposes, what it proves, and how its thread ends."""

import threading
import time

import numpy as np
import pytest

from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.graph.synthetic import random_dag
from mcmpart.problem import Problem
from mcmpart.search import Budget, Setting, exact, pipeline_evaluator, run_search
from mcmpart.search.exact import Exact


def threads():
    """Return the live threads of the method."""
    return [thread for thread in threading.enumerate() if thread.name == "exact"]


def search(problem, time_s=30.0):
    """Run the method to its end; return it and the record."""
    started = time.perf_counter()
    method = Exact(Setting(problem, deadline=started + time_s))
    judge = pipeline_evaluator(problem, 1)
    record = run_search(method, judge, Budget(time_s=time_s), 0.0, started=started)
    return method, record


@pytest.fixture
def hard(make_package):
    """Give a problem that takes the program far longer than any test."""
    graph = random_dag(60, np.random.default_rng(0), 0.2)
    return Problem(graph, make_package(6, long_edges="relay", op_overhead_s=1e-6))


def started_on(problem):
    """Return a method whose thread has begun."""
    method = Exact(Setting(problem))
    judge = pipeline_evaluator(problem, 1)
    while not threads():
        rows = method.propose()
        if rows.shape[0]:
            method.observe(judge(rows))
    return method


def test_it_finds_what_slices_do_not(islands):
    """Two islands: 3 s, which no cut of the op order gives, with a proof."""
    method, record = search(islands)
    assert record.stopped_by == "done"
    assert record.bottleneck_s == 3.0
    assert method.bound.seconds == pytest.approx(3.0, rel=4e-6)
    assert method.bound.seconds <= 3.0


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum(seed, make_problem):
    """It ends with the optimum and its proof, or with none where none exists."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        problem = make_problem(rng, 6, num_chips=3, rules=True)
        best = best_of_all(problem)
        method, record = search(problem)
        assert record.stopped_by == "done"
        assert (record.best is None) == (best.chip_of is None)
        assert record.bottleneck_s == pytest.approx(best.bottleneck_s, rel=2e-6)
        assert method.bound.seconds <= best.bottleneck_s
        assert not threads()


def test_the_program_alone(islands, monkeypatch):
    """Partitions that the program meets are proposed, also without a slicing."""
    monkeypatch.setattr(exact, "ORDERS", 1)
    _, record = search(islands)
    assert record.bottleneck_s == 3.0
    assert len(record.trace) >= 2


def test_it_ends_in_time(hard):
    """At the end of the time no thread is left, and the bound holds."""
    method, record = search(hard, time_s=0.5)
    assert record.stopped_by == "time"
    assert not threads()
    assert 0 < method.bound.seconds <= record.bottleneck_s


def test_a_dropped_method_ends(hard):
    """A search that ends for another reason leaves no thread behind."""
    method = started_on(hard)
    assert threads()
    del method
    assert not threads()


def test_errors_come_up(toy, monkeypatch):
    """What goes wrong in the thread is raised where partitions are asked for."""

    def fail(*args, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(exact, "exact_bound", fail)
    with pytest.raises(RuntimeError, match="broken"):
        search(toy)
