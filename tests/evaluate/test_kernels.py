"""The compiled evaluation agrees with its plain twin, reference.py, on random cases."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.reference import recompute

SEEDS = range(8)
CASES_PER_SEED = 40


def cases(seed, make_problem, make_rows, *, rules=True, rows=6):
    """Yield random problems, each with random partitions that obey dataflow."""
    rng = np.random.default_rng(seed)
    for _ in range(CASES_PER_SEED):
        problem = make_problem(rng, int(rng.integers(1, 25)), rules=rules)
        yield rng, problem, make_rows(rng, problem, rows)


def differences(found, wanted):
    """Return the fields in which two records of the same class differ.

    Integers must be equal, floats to a relative 1e-12.
    """
    differing = []
    for field in fields(wanted):
        a, b = getattr(found, field.name), getattr(wanted, field.name)
        same = math.isclose(a, b, rel_tol=1e-12) if isinstance(b, float) else a == b
        if not same:
            differing.append((field.name, a, b))
    return differing


@pytest.mark.parametrize("seed", SEEDS)
def test_every_figure_agrees(seed, make_problem, make_rows):
    """Each load of each chip and hop, bottleneck, latency and energy agree."""
    for _, problem, rows in cases(seed, make_problem, make_rows):
        row = rows[seed % len(rows)]
        found = evaluate(problem, Partition(problem.graph, row))
        wanted = recompute(problem.graph, problem.package, row.tolist())
        assert len(found.chips) == len(wanted.chips)
        assert len(found.hops) == len(wanted.hops)
        for a, b in zip(
            (*found.chips, *found.hops), (*wanted.chips, *wanted.hops), strict=True
        ):
            assert differences(a, b) == []
        for name in ("bottleneck_s", "latency_s", "energy_j"):
            a, b = getattr(found, name), getattr(wanted, name)
            assert math.isclose(a, b, rel_tol=1e-12), name


@pytest.mark.parametrize("seed", SEEDS)
def test_validity_agrees(seed, make_problem, make_rows, broken):
    """evaluate_many is valid exactly where no rule explains a violation."""
    for _, problem, rows in cases(100 + seed, make_problem, make_rows):
        cost, valid = evaluate_many(problem, rows, workers=1)
        wanted = [broken(problem, row) for row in rows]
        assert valid.tolist() == [not names for names in wanted]
        assert np.isfinite(cost).all()
        full = [evaluate(problem, Partition(problem.graph, row)) for row in rows]
        assert [found.valid for found in full] == valid.tolist()
        assert [found.bottleneck_s for found in full] == cost.tolist()


def test_random_cases_meet_every_rule(make_problem, make_rows, broken):
    """The cases above break each rule and keep all of them, often enough to tell."""
    rules = "no_skip triangle memory pin together apart all_chips"
    counts = dict.fromkeys(rules.split(), 0)
    num_valid = num_replicas = 0
    for seed in SEEDS:
        for _, problem, rows in cases(100 + seed, make_problem, make_rows):
            num_replicas += bool(problem.graph.op_replicable.any())
            for row in rows[:2]:
                names = broken(problem, row)
                num_valid += not names
                for name in names:
                    counts[name] += 1
    assert min(counts.values()) >= 10, counts
    assert num_valid >= 100
    assert num_replicas >= 50


def test_memory_to_the_last_byte(make_problem, make_rows):
    """A chip with just what it needs is valid, and with one byte less it is not."""
    for rng, problem, rows in cases(6, make_problem, make_rows, rules=False, rows=1):
        package = problem.package
        rules = ("triangle",) if package.has_rule("triangle") else ()
        free = replace(package, rules=rules, base_chip=None)
        partition = Partition(problem.graph, rows[0])
        found = evaluate(replace(problem, package=free), partition)
        needs = [max(load.memory_bytes, 1) for load in found.chips]
        short = int(rng.integers(problem.num_chips))
        for less, fits in ((0, found.valid), (1, False)):
            if found.chips[short].memory_bytes <= less:
                continue
            chips = [
                replace(chip, memory_bytes=need - less * (c == short))
                for c, (chip, need) in enumerate(zip(package.chips, needs, strict=True))
            ]
            tight = replace(free, rules=(*rules, "memory"), chips=tuple(chips))
            _, valid = evaluate_many(replace(problem, package=tight), rows, workers=1)
            assert valid.tolist() == [fits]


def test_rows_without_a_meaning(make_problem, make_rows):
    """A chip out of range, -1, or an edge to a lower chip costs inf and is invalid."""
    for rng, problem, rows in cases(7, make_problem, make_rows, rows=4):
        ordinary = np.flatnonzero(~problem.graph.op_replicable)
        rows[0] = -1
        rows[1, rng.choice(ordinary)] = problem.num_chips
        rows[2, rng.choice(ordinary)] = -1
        cost, valid = evaluate_many(problem, rows[:3], workers=1)
        assert np.isinf(cost).all()
        assert not valid.any()


def test_edges_to_a_lower_chip(make_problem, make_rows, broken):
    """A row is finite exactly if it keeps dataflow, whichever op is moved."""
    met = set()
    for rng, problem, rows in cases(8, make_problem, make_rows, rows=8):
        ordinary = np.flatnonzero(~problem.graph.op_replicable)
        for row in rows:
            row[rng.choice(ordinary)] = rng.integers(problem.num_chips)
        cost, valid = evaluate_many(problem, rows, workers=1)
        kept = ["dataflow" not in broken(problem, row) for row in rows]
        assert np.isfinite(cost).tolist() == kept
        assert not valid[np.isinf(cost)].any()
        met.update(kept)
    assert met == {True, False}


def test_columns_of_replicas_are_not_read(make_problem, make_rows):
    """Any number in the column of a replicable op gives the same result."""
    met = False
    for _, problem, rows in cases(9, make_problem, make_rows):
        replicable = problem.graph.op_replicable
        met |= bool(replicable.any())
        other = rows.copy()
        other[:, replicable] = 77
        for a, b in zip(
            evaluate_many(problem, rows), evaluate_many(problem, other), strict=True
        ):
            assert a.tolist() == b.tolist()
    assert met


def test_number_of_workers_changes_nothing(make_problem, make_rows):
    """One thread and several give the same arrays."""
    rng = np.random.default_rng(3)
    problem = make_problem(rng, 20, num_chips=5)
    rows = make_rows(rng, problem, 500)
    one = evaluate_many(problem, rows, workers=1)
    for workers in (2, 3, None):
        several = evaluate_many(problem, rows, workers=workers)
        assert one[0].tolist() == several[0].tolist()
        assert one[1].tolist() == several[1].tolist()


def test_sixty_four_chips(make_package, make_rows):
    """All 64 bits of a chip mask work: a 70-op chain over 64 chips agrees."""
    problem = Problem(chain(70), make_package(64, long_edges="relay"))
    rng = np.random.default_rng(0)
    for row in make_rows(rng, problem, 9):
        found = evaluate(problem, Partition(problem.graph, row))
        wanted = recompute(problem.graph, problem.package, row.tolist())
        for a, b in zip(
            (*found.chips, *found.hops), (*wanted.chips, *wanted.hops), strict=True
        ):
            assert differences(a, b) == []
