"""local: annealing from a valid start, never worse than it, in whole blocks."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, inception_like
from mcmpart.problem import Problem
from mcmpart.search import Setting, local, pipeline_evaluator
from mcmpart.search.local import Local


def run(problem, proposals, **options):
    """Return the method after some proposals, and all rows and costs in order."""
    method = Local(Setting(problem, **options))
    judge = pipeline_evaluator(problem, 1)
    rows, costs = [], []
    for _ in range(proposals):
        proposed = method.propose()
        if proposed.shape[0]:
            found = judge(proposed)
            method.observe(found)
            rows += proposed.tolist()
            costs += np.where(found.valid, found.bottleneck_s, np.inf).tolist()
        if method.done:
            break
    return method, rows, costs


@pytest.mark.parametrize("workers", [1, 2])
def test_it_gets_better_from_its_start(workers, make_problem, make_rows):
    """The first proposal is the start; every other is valid, and some are better."""
    rng = np.random.default_rng(2)
    num_better = 0
    for _ in range(6):
        problem = make_problem(rng, 40, num_chips=4, long_edges="direct")
        rows = make_rows(rng, problem, 60)
        rows = problem.blocks.expand(problem.blocks.contract(rows))
        cost, valid = evaluate_many(problem, rows, workers=1)
        if not valid.any():
            continue
        start = rows[valid.argmax()]
        _, found, costs = run(problem, 6, start=start, workers=workers)
        assert found[0] == start.tolist()
        assert costs[0] == cost[valid.argmax()]
        assert np.isfinite(costs).all()
        assert len(costs) == 1 + 5 * workers
        num_better += min(costs) < costs[0] * 0.99
    assert num_better >= 2


def test_without_a_start_slice_gives_one(toy, toy_optimum_s):
    """The first proposal is the best cut of the graph's own order."""
    _, rows, costs = run(toy, 1)
    assert len(rows) == 1
    assert costs[0] == pytest.approx(toy_optimum_s, rel=1e-12)


def view_problem(package, *, late):
    """Return a view that block-wise belongs to its producer, or to its reader.

    ``late``: the view v reads an input and waits for r; else it follows its producer p.
    """
    builder = GraphBuilder("views")
    builder.host_tensor(TensorSpec("x", 8))
    if late:
        ops = (("v", ("x",), 0), ("p", ("x",), 10), ("r", ("v.t", "p.t"), 10))
    else:
        ops = (("p", ("x",), 10), ("v", ("p.t",), 0), ("r", ("v.t",), 10))
    for name, reads, flops in ops:
        writes = (TensorSpec(f"{name}.t", 8),)
        builder.op(OpSpec(name, "Op", flops=flops, reads=reads, writes=writes))
    builder.output("r.t")
    return Problem(builder.build(), package)


@pytest.mark.parametrize(
    ("late", "start", "whole"),
    [
        # v stands on chip 1, its block {p, v} where p is.
        (False, [0, 1, 1], [0, 0, 1]),
        # v stands on chip 0, its block {v, r} where r is: on chip 0 the edge from p
        # on chip 1 would be turned around.
        (True, [0, 1, 1], [1, 1, 1]),
    ],
)
def test_a_start_that_splits_blocks(make_package, late, start, whole):
    """A view apart from its block follows the op that costs most."""
    problem = view_problem(make_package(2, rules=("triangle",)), late=late)
    assert problem.blocks.num_blocks == 2
    method, rows, costs = run(problem, 1, start=np.array(start, dtype=np.int32))
    assert rows == [whole]
    assert np.isfinite(costs).all()
    assert method.propose().shape[1] == 3


def test_a_start_that_is_invalid(toy, toy_optimum_s):
    """An invalid start is judged once; then slice gives another."""
    start = np.array([0, 0, 2, 2, 2, 2], dtype=np.int32)
    _, _, costs = run(toy, 2, start=start)
    assert costs[0] == np.inf
    assert costs[1] == pytest.approx(toy_optimum_s, rel=1e-12)


def test_one_chip_is_done_at_once(toy, make_package):
    """On one chip there is nothing to move."""
    problem = Problem(toy.model, make_package(1))
    method, rows, _ = run(problem, 5)
    assert method.done
    assert rows == [[0] * 6]


def test_nothing_to_gain_at_zero(make_package):
    """A partition that costs nothing cannot be made better."""
    free = Problem(chain(3, flops=0, tensor_bytes=0), make_package(2))
    method, _, costs = run(free, 5)
    assert method.done
    assert costs == [0.0]


def test_no_plan_no_local(make_package, toy):
    """Where slice finds no start, there is nothing to propose but to go on slicing."""
    problem = Problem(toy.model, make_package(2, memory_bytes=1))
    method, rows, _ = run(problem, 5)
    assert not method.done
    assert rows == []


def test_islands_side_by_side(islands):
    """It finds what no cut of the op order gives: an island on each chip."""
    assert islands.graph.op_name[:2] == ("0.0", "1.0")
    _, rows, costs = run(islands, 10, start=np.zeros(6, dtype=np.int32))
    assert min(costs) == 3.0
    assert rows[int(np.argmin(costs))] in ([0, 1] * 3, [1, 0] * 3)


@pytest.fixture
def branches(make_package):
    """Give the arms of an inception network on three chips."""
    return Problem(inception_like(2), make_package(3, long_edges="direct"))


def test_new_runs_begin_elsewhere(branches):
    """The first run begins at the best partition, the others at valid cuts."""
    method, rows, _ = run(branches, 1)
    runs = [method._next_run(np.array(rows[0], np.int32)) for _ in range(6)]
    assert runs[0]._start.tolist() == rows[0]
    assert all(run._start is None for run in runs[1:])
    cuts = np.stack([run._cut() for run in runs[1:]])
    assert len(np.unique(cuts, axis=0)) > 2
    assert evaluate_many(branches, cuts)[1].all()


def test_a_tournament(branches, monkeypatch):
    """Runs end, the better ones are promoted, and after some newcomers it is anew."""
    monkeypatch.setattr(local, "ENTRANTS", 4)
    method, _, _ = run(branches, 1)
    started, halvings = [], set()
    next_run = method._next_run

    def noting(best):
        begun = next_run(best)
        started.append((begun.rung, begun._num_calls))
        halvings.add(id(method._halving))
        return begun

    monkeypatch.setattr(method, "_next_run", noting)
    judge = pipeline_evaluator(branches, 1)
    for _ in range(60):
        found = judge(method.propose())
        assert found.valid.all()
        method.observe(found)
    assert {rung for rung, _ in started} >= {0, 1, 2}
    assert all(calls == 1 << rung for rung, calls in started)
    assert len(halvings) > 1


def test_the_same_again(branches):
    """Seed and number of proposals decide all."""
    first, again, other = (run(branches, 12, seed=seed)[1] for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_of_long_orders_no_cuts(branches, monkeypatch):
    """Where there are many blocks, every run begins at the best partition."""
    monkeypatch.setattr(local, "COARSE_STARTS", 3)
    method, rows, _ = run(branches, 1)
    runs = [method._next_run(np.array(rows[0], np.int32)) for _ in range(3)]
    assert [run._start.tolist() for run in runs] == [rows[0]] * 3


def test_without_a_cut_a_run_begins_at_the_best(branches, monkeypatch):
    """An order that has no cut is no reason to stop."""
    method, rows, _ = run(branches, 1)
    monkeypatch.setattr(method._cutter, "first", lambda order: None)
    best = np.array(rows[0], np.int32)
    runs = [method._next_run(best) for _ in range(2)]
    assert runs[1]._cut().tolist() == rows[0]
