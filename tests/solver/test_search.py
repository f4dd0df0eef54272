"""How a chip is chosen, and how the search counts, stops and goes on."""

import itertools

import numpy as np
import pytest

from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules
from mcmpart.solver import _search
from mcmpart.solver._search import (
    FIX_NEAREST,
    FIX_RANDOM,
    IMPOSSIBLE,
    OUT_OF_BUDGET,
    SAMPLE,
    SOLVED,
    Wish,
    search,
)
from mcmpart.solver._trail import reset
from mcmpart.solver.setup import make_rules, room_for

NO_WEIGHTS = np.empty((0, 0))
NO_CANDIDATE = np.empty(0, dtype=np.int32)

LIMITS = {2: 18.4, 3: 21.1, 4: 23.5, 63: 121.0}
"""Chi-square of so many degrees of freedom that one draw in 10,000 exceeds."""


@pytest.fixture(scope="module")
def choose(tools):
    """Give choose_chip for block 0, many draws at once: ``[count] int``."""
    choose_chip = _search.choose_chip

    @tools.compiled
    def draw(chips, wish, state, drawn):
        for i in range(drawn.size):
            drawn[i] = choose_chip(0, chips, wish, state)

    def run(chips, wish, count=1, seed=0):
        drawn = np.empty(count, dtype=np.int64)
        mask = np.uint64(sum(1 << c for c in chips))
        draw(mask, wish, np.array([seed], dtype=np.uint64), drawn)
        return drawn

    return run


def chi_square(drawn, shares):
    """Return the chi-square of draws against the shares of the chips drawn."""
    assert set(drawn.tolist()) <= set(shares)
    expected = np.array(list(shares.values())) * drawn.size
    counts = np.array([(drawn == chip).sum() for chip in shares])
    return ((counts - expected) ** 2 / expected).sum()


def weighted(weights, uniform_share):
    """Return the wish for one block with these weights."""
    return Wish(SAMPLE, np.array([weights]), uniform_share, NO_CANDIDATE)


def test_the_nearest_chip(choose):
    """For every set of six chips and every number, in or out of range; low on a tie."""
    for mask in range(1, 64):
        chips = [c for c in range(6) if mask >> c & 1]
        for wanted in range(-2, 9):
            candidate = np.array([wanted], dtype=np.int32)
            wish = Wish(FIX_NEAREST, NO_WEIGHTS, 0.0, candidate)
            nearest = min(chips, key=lambda c, wanted=wanted: (abs(c - wanted), c))
            assert choose(chips, wish)[0] == nearest


@pytest.mark.parametrize("wanted", [-1, 0, 31, 32, 63, 64, 1000])
def test_the_nearest_of_64_chips(wanted, choose):
    """At both ends of the mask, and for numbers far outside."""
    wish = Wish(FIX_NEAREST, NO_WEIGHTS, 0.0, np.array([wanted], dtype=np.int32))
    for chips in ([0], [63], [0, 63], [0, 1, 30, 33, 62, 63]):
        assert choose(chips, wish)[0] == min(chips, key=lambda c: (abs(c - wanted), c))


@pytest.mark.parametrize("mode", [SAMPLE, FIX_RANDOM])
def test_draws_are_even_without_weights(mode, choose):
    """Each chip of the mask, of four or of all 64, is as likely as the others."""
    wish = Wish(mode, NO_WEIGHTS, 0.0, np.array([5], dtype=np.int32))
    for chips in ([1, 3, 4, 6], range(64)):
        shares = {c: 1 / len(chips) for c in chips}
        drawn = choose(chips, wish, 20_000)
        assert chi_square(drawn, shares) < LIMITS[len(chips) - 1]


def test_draws_follow_the_weights(choose):
    """Of the possible chips each has its share of their weights; chip 0 has none."""
    wish = weighted([9.0, 1.0, 5.0, 3.0, 0.0, 4.0], 0.0)
    drawn = choose([1, 3, 4, 5], wish, 20_000)
    assert chi_square(drawn, {1: 1 / 8, 3: 3 / 8, 5: 4 / 8}) < LIMITS[2]


def test_a_share_of_the_draws_is_even(choose):
    """With a uniform share of 0.4, a chip of weight 0 still gets 0.1 of the draws."""
    wish = weighted([0.0, 1.0, 2.0, 3.0], 0.4)
    drawn = choose(range(4), wish, 20_000)
    assert chi_square(drawn, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}) < LIMITS[3]


def test_draws_are_even_where_all_weights_are_zero(choose):
    """The weight of a chip that is not possible does not count."""
    drawn = choose([0, 2, 3], weighted([0.0, 7.0, 0.0, 0.0], 0.0), 20_000)
    assert chi_square(drawn, {0: 1 / 3, 2: 1 / 3, 3: 1 / 3}) < LIMITS[2]


def test_the_only_weight_is_always_drawn(choose):
    """A chip that holds all the weight, be it the smallest number, is the draw."""
    for weight in (5e-324, 1.0, 1e300):
        drawn = choose([0, 1, 2], weighted([0.0, weight, 0.0], 0.0), 100)
        assert set(drawn.tolist()) == {1}


@pytest.fixture
def two_in_a_row(make_package):
    """Give rules and domains of two ops in a row on two chips, and their search.

    Three placements are valid, met in the order 00, 01, 11 if the lower chip comes
    first; then two contradictions lie behind.
    """
    package = make_package(2, rules=(), long_edges="relay")
    rules = make_rules(Problem(chain(2), package, replica_threshold=0.0))
    domains = room_for(rules)
    reset(0, rules, domains)
    order = np.arange(2, dtype=np.int32)
    wish = weighted([1.0, 1e-300], 0.0)
    weights = np.repeat(wish.weights, 2, axis=0)

    def run(max_conflicts, resume):
        found = search(
            rules,
            domains,
            order,
            wish._replace(weights=weights),
            max_conflicts,
            True,
            resume,
            np.zeros(1, dtype=np.uint64),
        )
        return found, domains.block["chips"].tolist()

    return run


def test_each_solution_is_met_once(two_in_a_row):
    """A solution taken for a contradiction counts as one; at last nothing is left."""
    assert two_in_a_row(9, False) == ((SOLVED, 0), [1, 1])
    assert two_in_a_row(9, True) == ((SOLVED, 1), [1, 2])
    assert two_in_a_row(9, True) == ((SOLVED, 1), [2, 2])
    assert two_in_a_row(9, True)[0] == (IMPOSSIBLE, 1)


def test_the_search_gives_up_after_more_contradictions(two_in_a_row):
    """One contradiction is too many where none may be met."""
    assert two_in_a_row(0, False)[0] == (SOLVED, 0)
    assert two_in_a_row(0, True)[0] == (OUT_OF_BUDGET, 1)


@pytest.mark.parametrize(
    ("most", "wanted"), [(9, (IMPOSSIBLE, 3)), (1, (OUT_OF_BUDGET, 2))]
)
def test_what_counts_as_a_contradiction(most, wanted, tools, make_package):
    """Of four ops apart from each other on three chips, one for each chip of the first.

    With it on a chip, one of two chips for the second contradicts; taking that back
    leaves it the other, and that this contradicts, too, counts.
    """
    graph = tools.edge_graph(4, [])
    pairs = tuple(itertools.combinations(graph.op_name, 2))
    problem = Problem(
        graph,
        make_package(3, long_edges="relay", rules=()),
        user=UserRules(apart=pairs),
        replica_threshold=0.0,
    )
    rules = make_rules(problem)
    domains = room_for(rules)
    reset(0, rules, domains)
    order, state = np.arange(4, dtype=np.int32), np.zeros(1, dtype=np.uint64)
    evenly = Wish(SAMPLE, NO_WEIGHTS, 0.0, NO_CANDIDATE)
    found = search(rules, domains, order, evenly, most, True, False, state)
    assert found == wanted


@pytest.mark.parametrize(
    ("order", "wanted"), [([0, 1, 2], [2, 2, 2]), ([2, 1, 0], [0, 0, 1])]
)
def test_the_first_in_order_keep_their_chips(order, wanted, tools, make_package):
    """Three in a row wish for chips 2, 0, 1: whoever comes first gets its wish.

    From the front: 2 holds, and the others follow to 2. From the back: 1, then 0, and
    for the first op only 0 is left.
    """
    package = make_package(3, rules=(), long_edges="relay")
    problem = Problem(chain(3), package, replica_threshold=0.0)
    candidates = np.array([[2, 0, 1]], dtype=np.int32)
    found, _, _ = tools.solved_rows(problem, FIX_NEAREST, candidates, [0], order=order)
    assert found.tolist() == [wanted]


def test_every_chip_is_kept_before_any_is_given(tools, make_package):
    """Two ops without edges wish for no chip and for 1; no_skip sends the first to 0.

    In either order: what cannot be kept waits until the others have their wish.
    """
    package = make_package(2, rules=("no_skip",), long_edges="relay")
    graph = tools.edge_graph(2, [])
    problem = Problem(graph, package, replica_threshold=0.0)
    candidates = np.array([[7, 1]], dtype=np.int32)
    for order in ([0, 1], [1, 0]):
        for mode in (FIX_NEAREST, FIX_RANDOM):
            found, _, _ = tools.solved_rows(problem, mode, candidates, [0], order=order)
            assert found.tolist() == [[0, 1]]
