"""anneal: its starts, Metropolis' rule, the cooling, and what decides its moves."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph.branchy import inception
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import load_package
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search import Evaluations, Setting, anneal, pipeline_evaluator
from mcmpart.search.anneal import Anneal
from mcmpart.solver import sample_many


def run(problem, count, *, judge=None, **options):
    """Return the method after ``count`` partitions, and all rows and costs in order."""
    method = Anneal(Setting(problem, **options))
    judge = judge or pipeline_evaluator(problem, 1)
    rows, costs = [], []
    while len(rows) < count and not method.done:
        proposed = method.propose()
        if proposed.shape[0]:
            found = judge(proposed)
            method.observe(found)
            rows += proposed.tolist()
            costs += found.valid_s.tolist()
    return method, rows, costs


def found(rows, *costs, valid=True):
    """Return evaluations of some rows."""
    rows = np.array(rows, dtype=np.int32)
    return Evaluations(rows, np.array(costs), np.full(rows.shape[0], valid))


def by_hand(toy, monkeypatch, *luck, start=(0, 0, 0, 1, 1, 2)):
    """Return the method at 1.0 s, and the partitions that its moves begin at.

    It cools from 0.1 to 0.001; ``luck`` are the random numbers that decide on rises.
    """
    monkeypatch.setattr(anneal, "HOT", 0.1)
    monkeypatch.setattr(anneal, "COLD", 0.001)
    method = Anneal(Setting(toy, start=np.array(start)))
    seen = []
    method.observe(found([start], 1.0))
    disturb = method._disturber.disturb

    def watched(chip_of, load_s):
        seen.append(chip_of.tolist())
        return disturb(chip_of, load_s)

    monkeypatch.setattr(method._disturber, "disturb", watched)
    numbers = iter(luck)
    monkeypatch.setattr(method, "_luck", lambda: next(numbers))
    return method, seen


@pytest.fixture(scope="module")
def branches():
    """Give branches that part and meet again, on eight chips."""
    graph = inception((1, 1, 1), channels=4, side=75)
    return Problem(graph, load_package("ring36").with_chips(8))


def test_it_starts_from_the_best_of_eight_draws(branches, monkeypatch):
    """The first eight proposals are draws, and moves begin at the best of them."""
    method, rows, costs = run(branches, 8)
    assert evaluate_many(branches, np.array(rows))[1].all()
    assert len({tuple(row) for row in rows}) == 8
    best = rows[int(np.argmin(costs))]
    seen = []
    monkeypatch.setattr(
        method._disturber, "disturb", lambda now, _: seen.append(now.tolist()) or now
    )
    monkeypatch.setattr(anneal, "CALL_S", 0.0)
    assert method.propose().shape[0] == 0
    assert branches.blocks.expand(np.array(seen[0])).tolist() == best


def test_a_start_that_nobody_judged(toy):
    """A valid start is the first proposal, unchanged; a move follows."""
    start = np.array([0, 0, 0, 1, 1, 2], dtype=np.int32)
    _, rows, _ = run(toy, 2, start=start)
    assert rows[0] == start.tolist()
    assert rows[1] != start.tolist()


def test_a_start_that_was_judged(toy, monkeypatch):
    """After the start was judged, moves begin at it."""
    method, seen = by_hand(toy, monkeypatch)
    row = method.propose()[0].tolist()
    assert seen[0] == [0, 0, 0, 1, 1, 2]
    assert row != seen[0]


def test_a_start_that_is_invalid(toy):
    """A start that skips a chip is corrected: most ops stay where they are."""
    start = np.array([0, 0, 0, 2, 2, 2], dtype=np.int32)
    _, rows, costs = run(toy, 1, start=start)
    assert np.isfinite(costs).all()
    assert (np.array(rows[0]) == start).sum() >= 3


def test_a_start_beyond_all_rules(toy, monkeypatch):
    """An evaluator may call anything valid; what breaks our rules is no start."""
    method, seen = by_hand(toy, monkeypatch, start=(2, 1, 0, 0, 0, 0))
    assert method.propose().shape == (1, 6)
    assert seen == []


@pytest.mark.parametrize(("luck", "taken"), [(0.36, True), (0.37, False)])
def test_metropolis(toy, monkeypatch, luck, taken):
    """At temperature 0.1 a rise of a tenth is taken with chance 1/e = 0.368."""
    method, seen = by_hand(toy, monkeypatch, luck)
    worse = method.propose()[0].tolist()
    method.observe(found([worse], 1.1))
    method.propose()
    assert seen[-1] == (worse if taken else seen[0])


def test_no_worse_is_always_taken(toy, monkeypatch):
    """An equal cost is taken without asking for luck."""
    method, seen = by_hand(toy, monkeypatch)
    equal = method.propose()[0].tolist()
    method.observe(found([equal], 1.0))
    method.propose()
    assert seen[-1] == equal


def test_invalid_is_never_taken(toy, monkeypatch):
    """What the evaluator calls invalid is not taken, however cheap it looks."""
    method, seen = by_hand(toy, monkeypatch, 0.0)
    row = method.propose()[0].tolist()
    method.observe(found([row], 0.5, valid=False))
    method.propose()
    assert seen[-1] == seen[0]


def test_cooling_and_restarts(toy, monkeypatch):
    """Rounds of 2 and then 4 partitions each begin at the best one, at 1.0 s.

    A rise of 0.01 has the chance exp(-0.1) = 0.905 at their begin, and 1/e = 0.368
    halfway, where the temperature is 0.01.
    """
    monkeypatch.setattr(anneal, "FIRST_ROUND", 2)
    luck = (0.9, 0.36, 0.9, 0.99, 0.37, 0.99)
    method, seen = by_hand(toy, monkeypatch, *luck)
    rows, states = [], []
    for cost in (1.01, 1.01**2, 1.01, 1.01**2, 1.01**2, 1.01**2):
        rows.append(method.propose()[0].tolist())
        states.append(seen[-1])
        method.observe(found(rows[-1:], cost))
    method.propose()
    assert states == [seen[0], rows[0], seen[0], rows[2], rows[2], rows[2]]
    assert seen[-1] == seen[0]


@pytest.mark.parametrize(("call_s", "workers"), [(0.0, 1), (60.0, 4)])
def test_neither_clock_nor_workers_matter(branches, monkeypatch, call_s, workers):
    """The same seed proposes the same rows, however long a proposal may take."""
    _, expected, _ = run(branches, 60, seed=3)
    monkeypatch.setattr(anneal, "CALL_S", call_s)
    _, rows, _ = run(branches, 60, seed=3, workers=workers)
    assert rows == expected
    _, other, _ = run(branches, 60, seed=4)
    assert other != expected


def test_whole_blocks(branches):
    """Every proposal is valid, moves whole blocks, and is not the one before it."""
    _, rows, costs = run(branches, 120)
    chip_of = np.array(rows)
    whole = branches.blocks.expand(branches.blocks.contract(chip_of))
    assert np.array_equal(whole, chip_of)
    assert np.isfinite(costs).all()


def test_it_beats_draws(branches):
    """With equal budgets it comes well below the best of even draws."""
    rows, _ = sample_many(branches, None, np.arange(200))
    drawn_s = evaluate_many(branches, rows)[0].min()
    assert min(run(branches, 200)[2]) < 0.9 * drawn_s


def test_islands_side_by_side(islands):
    """It finds what no cut of the op order gives: an island on each chip."""
    _, _, costs = run(islands, 100, start=np.zeros(6, dtype=np.int32))
    assert min(costs) == 3.0


def test_loads_are_those_of_chips_and_hops(make_package):
    """Moves look at the stage of a chip, or at the hop behind it where that is longer.

    Two ops of 1 s and a tensor of 30 bytes: 1 + 3 s on each chip, 15 s on the link.
    """
    graph = chain(2, flops=0, tensor_bytes=30, seconds=[1, 1])
    problem = Problem(graph, make_package(3, bandwidth_bytes_per_s=2.0))
    now = np.array([0, 1], dtype=np.int32)
    chips = evaluate(problem, Partition(problem.graph, now)).chips
    load_s = Anneal(Setting(problem))._loads_of(now)
    assert load_s.tolist() == [15.0, chips[1].stage_s, 0.0]


def test_one_chip_is_done_at_once(toy, make_package):
    """On one chip there is one partition, and no move."""
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


def test_no_other_partition(toy, monkeypatch):
    """Where FIX takes every move back, it ends."""
    monkeypatch.setattr(anneal, "MAX_FRUITLESS", 50)
    pins = {f"op_{v}": v // 2 for v in range(6)}
    problem = Problem(toy.model, toy.package, user=UserRules(pins=pins))
    method, rows, _ = run(problem, 100)
    assert method.done
    assert rows == [[0, 0, 1, 1, 2, 2]] * 8


def test_a_contradiction_ends_it(make_package):
    """Where more chips are demanded than there are ops, no draw is worth a try."""
    problem = Problem(chain(2), make_package(3), user=UserRules(all_chips=True))
    method = Anneal(Setting(problem))
    assert method.propose().shape == (0, 2)
    assert method.done
