"""Attempts, restarts and numbers of used chips."""

import itertools

import numpy as np
import pytest

from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem
from mcmpart.solver._rows import Limits, _narrow, _next_count, _shuffle, luby
from mcmpart.solver._search import (
    FIX_NEAREST,
    IMPOSSIBLE,
    OUT_OF_BUDGET,
    SAMPLE,
    SOLVED,
    Wish,
)
from mcmpart.solver.setup import make_rules

NO_WEIGHTS = np.empty((0, 0))
NO_CANDIDATE = np.empty(0, dtype=np.int32)
EVENLY = Wish(SAMPLE, NO_WEIGHTS, 0.0, NO_CANDIDATE)
NO_CANDIDATES = np.empty((1, 0), dtype=np.int32)


def test_lubys_sequence():
    """As in the paper: the sequence so far twice, then the next power of two."""
    wanted = [1]
    while len(wanted) < 1000:
        wanted += [*wanted, 2 * wanted[-1]]
    assert [luby(i + 1) for i in range(1000)] == wanted[:1000]
    assert wanted[:15] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def test_every_order_is_as_likely():
    """Of 12,000 shuffles of three, each of the six orders comes some 2,000 times.

    20.5 is the chi-square of five degrees of freedom that one in 1,000 exceeds.
    """
    state = np.zeros(1, dtype=np.uint64)
    order = np.arange(3, dtype=np.int32)
    counts = dict.fromkeys(itertools.permutations(range(3)), 0)
    for _ in range(12_000):
        _shuffle(order, state)
        counts[tuple(order.tolist())] += 1
    assert sum((count - 2000) ** 2 / 2000 for count in counts.values()) < 20.5


def narrowed(count, fewest, most, untried, *, memory=False):
    """Return what may be left to try after ``count`` has failed, over many seeds."""
    untried = np.array([True, *untried])
    return {
        _narrow(count, fewest, most, untried, memory, np.array([seed], dtype=np.uint64))
        for seed in range(20)
    }


def test_no_more_chips_are_tried_than_failed():
    """Down to the fewest, and then any number again."""
    assert narrowed(4, 1, 5, [True] * 5) == {(1, 4)}
    assert narrowed(3, 1, 4, [True, False, False, True, True]) == {(1, 3)}
    assert narrowed(2, 1, 4, [False, True, True, True, True]) == {(1, 5)}
    assert narrowed(2, 1, 4, [False, False, True, True, True]) == {(1, 5)}


def test_memory_may_need_more_chips():
    """With memory either side of the number that failed is tried."""
    every = [True] * 5
    assert narrowed(3, 1, 5, every, memory=True) == {(1, 3), (3, 5)}
    assert narrowed(5, 1, 5, every, memory=True) == {(1, 5)}
    assert narrowed(0, 1, 5, every, memory=True) == {(1, 5)}


@pytest.fixture
def four_chips(make_package):
    """Give the rules of four ops in a row on four chips, none to be skipped."""
    package = make_package(4, long_edges="relay", rules=("no_skip",))
    return make_rules(Problem(chain(4), package, replica_threshold=0.0))


@pytest.fixture
def count_next(four_chips):
    """Give the choice of a number of chips on them."""

    def run(tried=0, wish=EVENLY, *, fewest=1, most=4, failed=(), seed=0):
        untried = np.ones(5, dtype=np.bool_)
        untried[list(failed)] = False
        state = np.array([seed], dtype=np.uint64)
        return _next_count(tried, fewest, most, untried, four_chips, wish, state)

    return run


def test_a_draw_takes_any_number_evenly(count_next):
    """Without weights 1, 2 and 4 come as often, once 3 has failed.

    13.8 is the chi-square of two degrees of freedom that one in 1,000 exceeds.
    """
    counts = dict.fromkeys([1, 2, 4], 0)
    for seed in range(3000):
        counts[count_next(failed=[3], seed=seed)] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 13.8


def test_a_draw_stays_within_its_range(count_next):
    """From the fewest to the most; none left is -1."""
    seeds = range(50)
    assert {count_next(most=2, seed=seed) for seed in seeds} == {1, 2}
    assert {count_next(fewest=2, most=3, seed=seed) for seed in seeds} == {2, 3}
    assert count_next(fewest=2, most=3, failed=[2, 3]) == -1


def test_a_draw_follows_the_weights_of_the_sink(count_next):
    """The last op has all its weight on chip 2: three chips, the next fewer, or any."""
    weights = np.ones((4, 4))
    weights[3] = [0, 0, 1, 0]
    wish = Wish(SAMPLE, weights, 0.0, NO_CANDIDATE)
    assert count_next(wish=wish) == 3
    assert count_next(wish=wish, failed=[3]) == 2
    assert count_next(wish=wish, failed=[1, 2, 3]) == 4


def test_a_correction_leaves_the_number_open_twice(count_next):
    """Then it takes that of the candidate's last sink, and then any."""
    candidate = np.array([3, 3, 3, 1], dtype=np.int32)
    wish = Wish(FIX_NEAREST, NO_WEIGHTS, 0.0, candidate)
    assert [count_next(tried, wish) for tried in range(3)] == [0, 0, 2]
    assert count_next(0, wish, failed=[0]) == 2
    assert {count_next(3, wish, seed=seed) for seed in range(50)} == {1, 2, 3, 4}


def test_any_number_where_chips_may_be_skipped(make_package):
    """Row 0 is all there is, until it has failed."""
    package = make_package(4, long_edges="relay", rules=())
    rules = make_rules(Problem(chain(4), package, replica_threshold=0.0))
    state = np.zeros(1, dtype=np.uint64)
    untried = rules.possible.copy()
    assert untried.tolist() == [True, False, False, False, False]
    assert _next_count(0, 1, 4, untried, rules, EVENLY, state) == 0
    untried[0] = False
    assert _next_count(1, 1, 4, untried, rules, EVENLY, state) == -1


@pytest.fixture
def too_live(make_package):
    """Give a maker of two ops in a row whose live tensors no chip holds together.

    Alone they take 2 * 10 + 10 and 2 * 10 + 10 bytes, together 2 * (10 + 10) + 20, and
    that shows only once both are placed; on two chips each of them moves 20 bytes and
    takes 50.
    """

    def make(num_chips, memory_bytes=49):
        graph = chain(2, tensor_bytes=10)
        package = make_package(
            num_chips,
            long_edges="relay",
            rules=("no_skip", "memory"),
            memory_bytes=memory_bytes,
        )
        return Problem(graph, package, replica_threshold=0.0)

    return make


@pytest.mark.parametrize(("num_chips", "tried"), [(1, 1), (2, 5)])
def test_impossible_once_every_number_is_refuted(num_chips, tried, tools, too_live):
    """Two numbers of chips: the second is refuted when nothing is kept free again."""
    found, outcome, attempts = tools.solved_rows(
        too_live(num_chips), SAMPLE, NO_CANDIDATES, [0]
    )
    assert outcome.tolist() == [IMPOSSIBLE]
    assert attempts.tolist() == [tried]
    assert found.tolist() == [[-1, -1]]


def test_one_more_byte_solves_it(tools, too_live):
    """With 50 bytes two chips do, whichever number of chips is tried first."""
    found, outcome, _ = tools.solved_rows(
        too_live(2, 50), SAMPLE, NO_CANDIDATES, range(8)
    )
    assert outcome.tolist() == [SOLVED] * 8
    assert found.tolist() == [[0, 1]] * 8


@pytest.mark.parametrize(
    ("limits", "tried"),
    [(Limits(0, 10**9), 0), (Limits(1, 10**9), 1), (Limits(9, 0), 1)],
)
def test_limits_end_a_row(limits, tried, tools, too_live):
    """So many attempts, or looks at blocks, leave the row unsolved."""
    found, outcome, attempts = tools.solved_rows(
        too_live(2), SAMPLE, NO_CANDIDATES, [0], limits=limits
    )
    assert outcome.tolist() == [OUT_OF_BUDGET]
    assert attempts.tolist() == [tried]
    assert found.tolist() == [[-1, -1]]
