"""Rule no_skip: empty chips get distinct blocks exactly if Hall's theorem says so."""

import itertools

import numpy as np
import pytest

from mcmpart.problem import Problem
from mcmpart.solver import _cover
from mcmpart.solver._trail import reset
from mcmpart.solver.setup import make_rules, room_for


@pytest.fixture(scope="module")
def cover_chips(tools):
    """Give the rule, callable from Python."""
    rule = _cover.cover_chips

    @tools.compiled
    def run(rules, domains):
        return rule(rules, domains)

    return run


@pytest.fixture
def spread(tools, make_package):
    """Give a maker of rules and domains of blocks without edges or other rules."""

    def make(chips, num_chips):
        graph = tools.edge_graph(len(chips), [])
        package = make_package(num_chips, rules=("no_skip",), long_edges="relay")
        rules = make_rules(Problem(graph, package, replica_threshold=0.0))
        domains = room_for(rules)
        reset(0, rules, domains)
        set_chips(domains, chips)
        return rules, domains

    return make


def set_chips(domains, chips):
    """Give the blocks other domains, and count anew what is kept of them."""
    domains.block["chips"] = [sum(1 << c for c in own) for own in chips]
    num_open = [sum(c in own for own in chips) for c in range(domains.chip.size - 1)]
    domains.chip["cover"] = np.diff([0, *num_open, 0])
    domains.chip["num_on"] = 0
    fixed = {min(own) for own in chips if len(own) == 1}
    domains.now["covered"] = sum(1 << c for c in fixed)
    return fixed


def can_fill(empty, chips):
    """Return whether each set of empty chips is open to as many blocks (Hall)."""
    takers = {
        c: {n for n, own in enumerate(chips) if c in own and len(own) > 1}
        for c in empty
    }
    return all(
        len(set().union(*(takers[c] for c in some))) >= count
        for count in range(1, len(empty) + 1)
        for some in itertools.combinations(empty, count)
    )


def random_chips(rng, num_blocks, num_chips):
    """Return a random domain for each block, some of a single chip."""
    density = rng.uniform(0.1, 0.6)
    picked = rng.random((num_blocks, num_chips)) < density
    picked[np.arange(num_blocks), rng.integers(num_chips, size=num_blocks)] = True
    return [set(np.flatnonzero(own).tolist()) for own in picked]


@pytest.mark.parametrize("num_chips", [3, 5, 7])
def test_the_matching_is_halls(num_chips, spread):
    """The alternating paths match all empty chips exactly if Hall's condition holds."""
    rng = np.random.default_rng(num_chips)
    outcomes = {True: 0, False: 0}
    for num_blocks in range(2, 9):
        _, domains = spread([{0, 1}] * num_blocks, num_chips)
        for _ in range(150):
            chips = random_chips(rng, num_blocks, num_chips)
            fixed = set_chips(domains, chips)
            empty = sorted(set(range(num_chips)) - fixed)
            mask = np.uint64(sum(1 << c for c in empty))
            wanted = can_fill(empty, chips)
            assert bool(_cover._can_match(mask, domains)) == wanted, chips
            outcomes[wanted] += 1
    assert min(outcomes.values()) >= 100


@pytest.mark.parametrize("num_chips", [3, 5, 7])
def test_the_rule_is_halls(num_chips, spread, cover_chips):
    """Short cuts included, the rule refuses exactly what cannot be filled.

    Of the chips in order, one that nobody can fill decides, and so does one that a
    single block can: it gets it.
    """
    rng = np.random.default_rng(10 + num_chips)
    outcomes = {True: 0, False: 0, "given": 0}
    for num_blocks in range(3, 10):
        rules, domains = spread([{0, 1}] * num_blocks, num_chips)
        for _ in range(150):
            chips = random_chips(rng, num_blocks, num_chips)
            fixed = set_chips(domains, chips)
            required = set(range(int(rng.integers(1, num_chips + 1))))
            domains.now["required"] = sum(1 << c for c in required)
            domains.now["trail_size"] = domains.now["queue_size"] = 0
            domains.block["changed"] = 0
            empty = sorted(required - fixed)
            takers = [[n for n, own in enumerate(chips) if c in own] for c in empty]
            few = next((i for i, who in enumerate(takers) if len(who) < 2), None)
            found = bool(cover_chips(rules, domains))
            after = domains.block["chips"].tolist()
            if few is not None and takers[few]:
                outcomes["given"] += 1
                assert found
                chips[takers[few][0]] = {empty[few]}
            else:
                wanted = few is None and can_fill(empty, chips)
                outcomes[wanted] += 1
                assert found == wanted, chips
            assert after == [sum(1 << c for c in own) for own in chips]
    assert min(outcomes.values()) >= 50, outcomes


def test_two_blocks_cannot_fill_three_chips(spread, cover_chips):
    """Chips 0, 1, 2 are each open to two of the blocks, yet to two in all."""
    chips = [{0, 1, 2}, {0, 1, 2}, {3}]
    rules, domains = spread(chips, 4)
    set_chips(domains, chips)
    domains.now["required"] = 0b1111
    assert not cover_chips(rules, domains)
    set_chips(domains, [*chips[:2], {2, 3}])
    assert cover_chips(rules, domains)
