"""A placement that has moved a lot equals one made afresh, and its best is valid."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart._rng import new_state
from mcmpart.evaluate import evaluate_many
from mcmpart.problem import Problem, UserRules
from mcmpart.search._moves import anneal_moves, new_placement

EXACT = (
    *("in_bytes", "out_bytes", "weight_bytes", "written_bytes", "num_blocks"),
    *("hop_bytes", "arcs"),
)


def starts(rng, make_problem, make_rows, count, **options):
    """Yield random problems with a valid partition of the blocks, ``[V] int32``."""
    while count:
        problem = make_problem(rng, int(rng.integers(2, 30)), **options)
        rows = make_rows(rng, problem, 30)
        rows = problem.blocks.expand(problem.blocks.contract(rows))
        cost, valid = evaluate_many(problem, rows, workers=1)
        if valid.any() and cost[valid.argmax()] > 0:
            count -= 1
            yield problem, rows[valid.argmax()].copy(), float(cost[valid.argmax()])


def anneal(problem, start, cost, *, num_moves=2_000, hot=1.0, seed=0):
    """Return the placement after the moves, the best partition, its cost, moves taken.

    As hot as this, the walk takes most moves and undoes the others.
    """
    arrays, package = problem.blocks.arrays, problem.package_arrays
    placement = new_placement(start, arrays, package)
    best = np.empty_like(start)
    state = new_state(seed)
    best_s, taken = anneal_moves(
        placement,
        num_moves,
        cost * 0.9,
        hot,
        hot * 0.5,
        problem.user.all_chips,
        state,
        arrays,
        problem.live,
        package,
        best,
    )
    return placement, best, best_s, taken


def check_placement(placement, problem):
    """Compare every field with a placement made afresh from ``op_chip``."""
    blocks = problem.blocks
    fresh = new_placement(placement.op_chip, blocks.arrays, problem.package_arrays)
    for name in ("chip_of", "readers", "reader_chips", "users", "arc_tensors"):
        assert getattr(placement, name).tolist() == getattr(fresh, name).tolist(), name
    for name in EXACT:
        found, wanted = getattr(placement.loads, name), getattr(fresh.loads, name)
        assert found.tolist() == wanted.tolist(), name
    assert placement.loads.compute_s == pytest.approx(
        fresh.loads.compute_s, rel=1e-9, abs=1e-18
    )
    for n, chip in enumerate(placement.chip_of):
        assert placement.slot[n] < placement.loads.num_blocks[chip]
        assert placement.members[chip, placement.slot[n]] == n
    assert blocks.expand(placement.chip_of).tolist() == placement.op_chip.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_moves_keep_the_placement(seed, make_problem, make_rows):
    """After thousands of moves, taken and undone, every count and load is right."""
    rng = np.random.default_rng(seed)
    total = 0
    for problem, start, cost in starts(rng, make_problem, make_rows, 40, rules=True):
        placement, _, _, taken = anneal(problem, start, cost, seed=seed)
        check_placement(placement, problem)
        total += taken
    assert total > 5_000
