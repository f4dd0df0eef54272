"""random: even draws, one seed per row, in a sequence that the clock cannot change."""

import numpy as np
import pytest

from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder, TensorSpec
from mcmpart.graph.branchy import inception
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import load_package
from mcmpart.problem import Problem, UserRules
from mcmpart.search import Setting, random
from mcmpart.search.random import Random
from mcmpart.solver import modes, sample_many


def draws(problem, count, **options):
    """Return the first rows that the method proposes."""
    method = Random(Setting(problem, **options))
    rows = np.empty((0, problem.graph.num_ops), dtype=np.int32)
    while rows.shape[0] < count:
        rows = np.concatenate([rows, method.propose()])
        assert not method.done
    return rows[:count]


@pytest.fixture(scope="module")
def branches():
    """Give branches that part and meet again, on eight chips."""
    graph = inception((1, 1, 1), channels=4, side=75)
    return Problem(graph, load_package("ring36").with_chips(8))


def test_seed_of_each_row(branches):
    """Row i is the even draw of word i of numpy's PCG64 with the seed [seed, 2]."""
    words = np.random.PCG64([7, 2]).random_raw(50)
    rows, solved = sample_many(branches, None, words, workers=1)
    assert solved.all()
    assert np.array_equal(draws(branches, 50, seed=7), rows)
    assert not np.array_equal(draws(branches, 50, seed=8), rows)


@pytest.mark.parametrize(("call_s", "workers"), [(0.0, 1), (60.0, 1), (60.0, 3)])
def test_neither_clock_nor_workers_matter(branches, monkeypatch, call_s, workers):
    """Single draws, ever larger batches and threads all give the same rows."""
    expected = draws(branches, 85)
    monkeypatch.setattr(random, "CALL_S", call_s)
    assert np.array_equal(draws(branches, 85, workers=workers), expected)


def test_batches_fill_the_call(toy, monkeypatch):
    """At 1 ms a draw, batches grow fourfold up to the 40 draws that fit a call."""
    clock = [0.0]
    sizes = []

    def slow_draws(problem, probabilities, seeds, *, workers):
        sizes.append(seeds.size)
        clock[0] += 0.001 * seeds.size
        return modes.sample_rows(problem, probabilities, seeds, workers=workers)

    monkeypatch.setattr(random, "sample_rows", slow_draws)
    monkeypatch.setattr(random.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(random, "CALL_S", 0.0401)
    method = Random(Setting(toy))
    for _ in range(5):
        assert method.propose().shape[0] == sizes[-1]
    assert sizes == [1, 4, 16, 40, 40]


def test_draws_that_fail_are_left_out(branches, monkeypatch):
    """A draw that the solver gives up makes no row, and the next one follows."""
    monkeypatch.setattr(modes, "ATTEMPTS", 1)
    words = np.random.PCG64([0, 2]).random_raw(300)
    rows, solved = sample_many(branches, None, words, workers=1)
    assert 100 < solved.sum() < 300
    found = draws(branches, 100)
    assert np.array_equal(found, rows[solved][:100])
    assert evaluate_many(branches, found)[1].all()


def test_one_chip_is_done_at_once(toy, make_package):
    """On one chip there is one partition."""
    method = Random(Setting(Problem(toy.model, make_package(1))))
    assert method.propose().tolist() == [[0] * 6]
    assert method.done


def test_no_blocks_are_done_at_once(make_package):
    """Without ops there is one partition, of no chips."""
    builder = GraphBuilder("echo")
    builder.host_tensor(TensorSpec("x", 8))
    builder.output("x")
    method = Random(Setting(Problem(builder.build(), make_package(3))))
    assert method.propose().shape == (1, 0)
    assert method.done


def test_a_contradiction_ends_it(make_package):
    """Where more chips are demanded than there are ops, no draw is worth a try."""
    problem = Problem(chain(2), make_package(3), user=UserRules(all_chips=True))
    method = Random(Setting(problem))
    assert method.propose().shape == (0, 2)
    assert method.done
