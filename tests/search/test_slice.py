"""slice against brute force over all cuts of the graph's own order."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.partition import Partition
from mcmpart.search import Setting
from mcmpart.search.slice import Slice

CASES_PER_SEED = 40


def cuts(problem):
    """Return every cut of the blocks' order into C segments, ``[B, V] int32``."""
    num_blocks, num_chips = problem.blocks.num_blocks, problem.num_chips
    ends = itertools.combinations_with_replacement(range(num_blocks + 1), num_chips - 1)
    positions = np.arange(num_blocks)
    chip_of = [
        np.searchsorted(np.array(end), positions, side="right") for end in ends
    ]
    return problem.blocks.expand(np.array(chip_of, dtype=np.int32))


def no_tensor_jumps(problem, row):
    """Whether no tensor passes over a used chip, which is what slice demands."""
    graph = problem.graph
    used = set(row[row >= 0].tolist())
    for u in np.flatnonzero(~graph.op_replicable):
        for v in graph.successors.row(u):
            if used.intersection(range(row[u] + 1, row[v])):
                return False
    return True


def best_cut_s(problem):
    """Return the smallest bottleneck of a cut that slice may take; inf if none."""
    rows = cuts(problem)
    cost, valid = evaluate_many(problem, rows, workers=1)
    if problem.package.has_rule("triangle"):
        valid = valid & [no_tensor_jumps(problem, row) for row in rows]
    return cost[valid].min(initial=np.inf)


def without_memory(problem):
    """Return the problem with its memory rule off."""
    rules = tuple(rule for rule in problem.package.rules if rule != "memory")
    return replace(problem, package=replace(problem.package, rules=rules))


def first_cut(problem):
    """Return what slice finds along the graph's own order."""
    return Slice(Setting(problem), max_orders=1).propose()


@pytest.mark.parametrize("seed", range(6))
def test_first_cut_is_the_best(seed, make_problem):
    """Without memory limits the dynamic program finds the best cut, or none."""
    rng = np.random.default_rng(seed)
    num_found = 0
    for _ in range(CASES_PER_SEED):
        problem = without_memory(make_problem(rng, rng.integers(1, 9), rules=True))
        wanted = best_cut_s(problem)
        rows = first_cut(problem)
        if rows.shape[0] == 0:
            assert wanted == np.inf
            continue
        num_found += 1
        cost, valid = evaluate_many(problem, rows, workers=1)
        assert valid.all()
        assert cost[0] == pytest.approx(wanted, rel=1e-12)
    assert num_found > CASES_PER_SEED / 2
