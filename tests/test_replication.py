"""The threshold of replication, chosen by trying."""

from dataclasses import replace
from pathlib import Path

import pytest

from mcmpart import replication
from mcmpart.frontends.load import load_graph
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import load_package
from mcmpart.problem import Problem
from mcmpart.replication import THRESHOLDS, choose_replicas
from mcmpart.search import SearchRecord
from mcmpart.search.warm import warm_up
from mcmpart.solve import solve
from mcmpart.verify import verify

MODEL = Path(__file__).parent / "data/cases/faults/mask_all_layers/model.onnx"


@pytest.fixture(scope="module")
def masked():
    """Give eight layers that all read a mask, on eight chips of a ring."""
    warm_up()
    return Problem(load_graph(MODEL), load_package("ring36").with_chips(8))


def test_the_better_threshold_is_chosen(masked):
    """The mask is too dear for the default, and chains all layers unless replicated."""
    assert not masked.graph.op_replicable.any()
    chosen = choose_replicas(masked, 2.0).problem
    assert chosen.replica_threshold in THRESHOLDS
    assert chosen.graph.op_replicable.any()
    assert chosen.package is masked.package


def test_solve_gains_by_it(masked):
    """The plan uses more chips and is faster than with the default threshold."""
    default = solve(replace(masked, replica_threshold=0.002), time_s=0.4, workers=1)
    result = solve(masked, time_s=0.4, workers=1)
    verify(result)
    assert result.partition.num_used_chips > default.partition.num_used_chips
    assert result.metrics.bottleneck_s < 0.7 * default.metrics.bottleneck_s
    assert result.problem.replica_threshold in THRESHOLDS
    assert default.problem.replica_threshold == 0.002


def answers(monkeypatch, *records):
    """Let the trials come to these records, in turn; return the budgets they get."""
    left = list(records)
    budgets = []

    def search(method, evaluator, budget, *rest, **options):
        budgets.append(budget)
        return left.pop(0)

    monkeypatch.setattr(replication, "run_search", search)
    return budgets


def found(bottleneck_s, stopped_by="time"):
    """Return the record of a trial."""
    return SearchRecord(bottleneck_s=bottleneck_s, stopped_by=stopped_by)


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_a_given_threshold_is_kept(masked, monkeypatch, threshold):
    """What the user gives is not second-guessed, and nothing is tried."""
    answers(monkeypatch)
    problem = replace(masked, replica_threshold=threshold)
    assert choose_replicas(problem, 2.0).problem is problem


def test_without_the_triangle_rule(masked, monkeypatch):
    """Where a tensor may jump over chips the default stands, and nothing is tried."""
    answers(monkeypatch)
    package = replace(masked.package, long_edges="relay", rules=("no_skip", "memory"))
    problem = replace(masked, package=package)
    assert choose_replicas(problem, 2.0).problem is problem


def test_nothing_to_replicate(make_package, monkeypatch):
    """Where all thresholds mark the same ops nothing is tried."""
    answers(monkeypatch)
    problem = Problem(chain(20), make_package(3))
    assert choose_replicas(problem, 2.0).problem is problem


def test_no_trial_finds_a_plan(masked, monkeypatch):
    """Where all trials come to nothing the default stands."""
    answers(monkeypatch, *[SearchRecord(stopped_by="time")] * 3)
    assert choose_replicas(masked, 2.0).problem is masked


def test_equal_trials(masked, monkeypatch):
    """Of trials that are equally good the one that replicates least is taken."""
    answers(monkeypatch, found(1.0), found(1.0), found(1.0))
    assert choose_replicas(masked, 2.0).problem is masked


def test_trials_share_a_fifth_of_the_time(masked, monkeypatch):
    """All trials together get a fifth of the time of the search."""
    budgets = answers(monkeypatch, found(1.0), found(1.0), found(1.0))
    choose_replicas(masked, 10.0)
    assert len(budgets) > 1
    assert sum(budget.time_s for budget in budgets) == pytest.approx(2.0)


def test_an_interrupt_before_any_plan(masked, monkeypatch):
    """Ctrl-C during the first trial, before it found a plan, is passed on."""
    answers(monkeypatch, SearchRecord(stopped_by="interrupt"))
    with pytest.raises(KeyboardInterrupt):
        choose_replicas(masked, 1.0)


def test_an_interrupt_keeps_the_best_plan(masked, monkeypatch):
    """Ctrl-C during the second trial keeps what the first has found."""
    first = found(1.0)
    answers(monkeypatch, first, SearchRecord(stopped_by="interrupt"))
    choice = choose_replicas(masked, 1.0)
    assert choice.problem is masked
    assert choice.interrupted is first
    assert choice.interrupted.stopped_by == "interrupt"


def test_a_large_problem_stays_as_it_is(masked, monkeypatch):
    """Beyond MOST_OPS no other threshold is tried."""
    monkeypatch.setattr(replication, "MOST_OPS", masked.graph.num_ops - 1)
    assert choose_replicas(masked, 0.5).problem is masked
