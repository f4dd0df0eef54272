"""A placement that has moved a lot equals one made afresh, and its best is valid."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart._rng import new_state
from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph.synthetic import diamond
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.search._moves import (
    MAX_CLOSURE,
    _chips_allow,
    anneal_moves,
    closure_of,
    slowest,
)
from mcmpart.search._placement import new_placement

COUNTS = (
    *("chip_of", "readers", "reader_chips", "users", "arc_tensors", "num_members"),
)
LOADS = (
    *("in_bytes", "out_bytes", "weight_bytes", "written_bytes", "num_blocks"),
    *("hop_bytes", "arcs"),
)


def placement_of(problem, chip_of):
    """Return a placement made afresh."""
    return new_placement(chip_of, problem.blocks.arrays, problem.package_arrays)


def starts(rng, make_problem, make_rows, count, *, max_ops=30, **options):
    """Yield random problems, each with a valid partition of its blocks and its cost."""
    while count:
        problem = make_problem(rng, int(rng.integers(2, max_ops)), **options)
        rows = make_rows(rng, problem, 30)
        rows = problem.blocks.expand(problem.blocks.contract(rows))
        cost, valid = evaluate_many(problem, rows, workers=1)
        usable = np.flatnonzero(valid & (cost > 0))
        if usable.size:
            count -= 1
            row = rng.choice(usable)
            yield problem, rows[row].copy(), float(cost[row])


def anneal(problem, start, cost, *, budget=4_000, hot=1.0, seed=0):
    """Return the placement after the moves, the best partition and its cost.

    Hot as this, the walk takes most moves, and undoes the others.
    """
    placement = placement_of(problem, start)
    best = np.empty_like(start)
    best_s, _ = anneal_moves(
        placement,
        budget,
        cost * 0.9,
        hot,
        hot * 0.5,
        problem.user.all_chips,
        new_state(seed),
        problem.blocks.arrays,
        problem.live,
        problem.package_arrays,
        best,
    )
    return placement, best, best_s


def check_placement(placement, problem):
    """Compare every field with a placement made afresh from ``op_chip``."""
    fresh = placement_of(problem, placement.op_chip)
    for name in COUNTS:
        found, wanted = getattr(placement, name), getattr(fresh, name)
        assert found.tolist() == wanted.tolist(), name
    for name in LOADS:
        found, wanted = getattr(placement.loads, name), getattr(fresh.loads, name)
        assert found.tolist() == wanted.tolist(), name
    assert placement.loads.compute_s == pytest.approx(
        fresh.loads.compute_s, rel=1e-9, abs=1e-18
    )
    for n, chip in enumerate(placement.chip_of):
        assert placement.slot[n] < placement.num_members[chip]
        assert placement.members[chip, placement.slot[n]] == n
    whole = problem.blocks.expand(placement.chip_of)
    assert whole.tolist() == placement.op_chip.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_fresh_placement(seed, make_problem, make_rows):
    """The loads of the blocks are those of a full evaluation by op."""
    rng = np.random.default_rng(seed)
    for problem, start, cost in starts(rng, make_problem, make_rows, 10):
        placement = placement_of(problem, start)
        loads = placement.loads
        found = evaluate(problem, Partition(problem.graph, start))
        for name in ("in_bytes", "out_bytes", "weight_bytes"):
            wanted = [getattr(chip, name) for chip in found.chips]
            assert getattr(loads, name).tolist() == wanted
        seconds = [chip.compute_s for chip in found.chips]
        assert loads.compute_s == pytest.approx(seconds, rel=1e-12)
        hops = [hop.bytes for hop in found.hops]
        assert loads.hop_bytes[: len(hops)].tolist() == hops
        assert slowest(loads, problem.package_arrays)[0] == pytest.approx(
            cost, rel=1e-12
        )


@pytest.mark.parametrize("long_edges", ["forbid", "relay", "direct"])
@pytest.mark.parametrize("seed", range(3))
def test_moves_keep_the_placement(seed, long_edges, make_problem, make_rows):
    """After thousands of moves, taken and undone, every count and load is right."""
    rng = np.random.default_rng(seed)
    num_moved = 0
    cases = starts(rng, make_problem, make_rows, 25, long_edges=long_edges, rules=True)
    for problem, start, cost in cases:
        placement, *_ = anneal(problem, start, cost, seed=seed)
        check_placement(placement, problem)
        num_moved += placement.op_chip.tolist() != start.tolist()
    assert num_moved >= 5


def test_relay_over_chips_left_empty(make_problem, make_rows):
    """Few ops on many chips with gaps: what is relayed is right as chips close."""
    rng = np.random.default_rng(98)
    num_gaps = 0
    cases = starts(
        rng, make_problem, make_rows, 150, max_ops=8, long_edges="relay", num_chips=6
    )
    for problem, start, cost in cases:
        if np.unique(start[start >= 0]).size <= start.max():
            num_gaps += 1
            placement, *_ = anneal(problem, start, cost)
            check_placement(placement, problem)
    assert num_gaps >= 20


@pytest.mark.parametrize("seed", range(4))
def test_the_best_is_valid(seed, make_problem, make_rows, broken):
    """The best partition met breaks no rule, costs what is said, and is no worse."""
    rng = np.random.default_rng(40 + seed)
    num_better = 0
    for problem, start, cost in starts(rng, make_problem, make_rows, 40, rules=True):
        placement, best, best_s = anneal(problem, start, cost, hot=0.03, seed=seed)
        assert broken(problem, best) == set()
        assert broken(problem, placement.op_chip) == set()
        found = evaluate(problem, Partition(problem.graph, best))
        assert found.bottleneck_s == pytest.approx(best_s, rel=1e-9)
        assert best_s <= cost * (1 + 1e-12)
        num_better += best_s < cost * 0.999
    assert num_better >= 5


def test_moves_keep_the_users_rules(toy, make_package):
    """A pin stays, a pair stays apart, and every chip keeps an op."""
    start = np.array([0, 1, 1, 1, 2, 2], dtype=np.int32)
    for user, holds in (
        (UserRules(pins={"op_1": 1}), lambda row: row[1] == 1),
        (UserRules(apart=(("op_0", "op_1"),)), lambda row: row[0] != row[1]),
        (UserRules(all_chips=True), lambda row: len(set(row)) == 3),
    ):
        for tie, package in (
            (True, toy.package),
            (False, replace(toy.package, rules=("triangle",))),
        ):
            problem = replace(toy, user=user, package=package)
            met = set()
            for seed in range(30):
                placement, *_ = anneal(
                    problem, start, 6.2, budget=200, hot=50.0, seed=seed
                )
                row = placement.op_chip.tolist()
                assert holds(row), (user, tie, row)
                met.add(tuple(row))
            assert len(met) > 3


def test_same_state_same_walk(make_problem, make_rows):
    """The random state decides the walk, and nothing else does."""
    rng = np.random.default_rng(0)
    cases = starts(rng, make_problem, make_rows, 9, num_chips=4, long_edges="direct")
    problem, start, cost = max(cases, key=lambda case: case[0].blocks.num_blocks)
    walks = [
        anneal(problem, start, cost, seed=seed)[0].op_chip.tolist()
        for seed in (5, 5, 6)
    ]
    assert walks[0] == walks[1]
    assert walks[0] != walks[2]


@pytest.mark.parametrize(
    ("source", "to", "size", "num_blocks", "allowed"),
    [
        # Nothing opens or closes.
        (1, 2, 1, [2, 2, 2, 0], True),
        (1, 0, 1, [2, 2, 2, 0], True),
        # The next chip opens only behind all others.
        (2, 3, 1, [2, 2, 2, 0], True),
        (1, 2, 1, [2, 2, 0, 2], False),
        (2, 1, 1, [2, 0, 2, 0], False),
        # A chip closes only at the end, into a chip in use.
        (2, 1, 2, [2, 2, 2, 0], True),
        (1, 0, 2, [2, 2, 2, 0], False),
        (0, 1, 2, [2, 2, 2, 0], False),
        (3, 2, 1, [2, 2, 0, 1], False),
        (2, 3, 2, [2, 2, 2, 0], False),
    ],
)
def test_chips_open_and_close_at_the_end(
    make_package, source, to, size, num_blocks, allowed
):
    """Under no_skip and relay; elsewhere any chip may, unless all are demanded."""
    bound, free = (
        Problem(diamond(2), package).package_arrays
        for package in (
            make_package(4, long_edges="relay", rules=()),
            make_package(4, long_edges="direct", rules=()),
        )
    )
    counts = np.array(num_blocks, dtype=np.int64)
    assert _chips_allow(source, to, size, counts, bound, False) == allowed
    assert _chips_allow(source, to, size, counts, free, False)
    closes = num_blocks[source] == size
    assert _chips_allow(source, to, size, counts, free, True) == (not closes)


def closure(problem, chip_of, n, *, up, limit=MAX_CLOSURE):
    """Return the closure of block ``n`` as a list."""
    placement = placement_of(problem, np.array(chip_of, dtype=np.int32))
    group = np.empty(MAX_CLOSURE, dtype=np.int32)
    size = closure_of(n, up, limit, placement, problem.blocks.arrays, group)
    return group[:size].tolist()


def test_closures(make_package):
    """What moves along: descendants going up, ancestors going down, on one chip."""
    # source 0 -> arms 1, 2, 3 -> sink 4; arm 3 and the sink stand on chip 1.
    problem = Problem(diamond(3), make_package(2))
    chip_of = [0, 0, 0, 1, 1]
    assert closure(problem, chip_of, 0, up=True) == [2, 1, 0]
    assert closure(problem, chip_of, 1, up=True) == [1]
    assert closure(problem, chip_of, 4, up=False) == [3, 4]
    assert closure(problem, chip_of, 3, up=False) == [3]
    assert closure(problem, [0] * 5, 4, up=False) == [0, 1, 2, 3, 4]
    assert closure(problem, [0] * 5, 4, up=False, limit=4) == []
