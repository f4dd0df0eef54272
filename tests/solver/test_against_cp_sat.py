"""The solver against CP-SAT, which gets the same rules and nothing else in common."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.problem import Problem, UserRules
from mcmpart.solver import sample_rows
from mcmpart.solver._search import IMPOSSIBLE, OUT_OF_BUDGET, SAMPLE, Wish, search
from mcmpart.solver._trail import reset
from mcmpart.solver.setup import make_rules, room_for

NUM_GRAPHS = 200
NUM_GROUPS = 4
"""Groups of graphs that run as tests of their own, side by side."""

TIME_S = 10.0
"""Limit of CP-SAT, which takes some 0.03 s."""

MAX_CONFLICTS = 10_000
"""A search that meets more has begun with the wrong blocks."""

EVENLY = Wish(SAMPLE, np.empty((0, 0)), 0.0, np.empty(0, dtype=np.int32))


def _load_benchmark(name):
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


find_partition = _load_benchmark("cp_sat").find_partition


def pinned_problem(rng, make_package):
    """Return a problem whose rules hold together about every other time.

    2 to 9 random ops are pinned where a random cut of the op order into C runs puts
    them, so that no pin alone contradicts another, and up to 29 random pairs must be
    apart.
    """
    num_ops, num_chips = int(rng.integers(20, 61)), int(rng.integers(3, 9))
    reach, chance = int(rng.choice([4, 8, 16])), float(rng.choice([0.1, 0.2, 0.3]))
    graph = random_dag(num_ops, rng, chance, reach=reach)
    names = graph.op_name
    cuts = np.sort(rng.integers(0, num_ops + 1, num_chips - 1))
    chip_of = np.searchsorted(cuts, np.arange(num_ops), side="right")
    pinned = rng.choice(num_ops, int(rng.integers(2, 10)), replace=False)
    pairs = [rng.choice(num_ops, 2, replace=False) for _ in range(rng.integers(30))]
    user = UserRules(
        pins={names[op]: int(chip_of[op]) for op in pinned},
        apart=tuple((names[a], names[b]) for a, b in pairs),
    )
    return Problem(
        graph, make_package(num_chips, rules=("no_skip", "triangle")), user=user
    )


def is_refuted(problem):
    """Whether searches refute each number of used chips."""
    rules = make_rules(problem)
    domains = room_for(rules)
    counts = np.flatnonzero(rules.possible[1:]) + 1
    return all(_is_refuted(count, rules, domains) for count in counts)


def _is_refuted(num_used, rules, domains):
    """Whether a search that may fail often refutes it, in one of 100 random orders."""
    state = np.zeros(1, dtype=np.uint64)
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(domains.block.size)
        reset(num_used, rules, domains)
        outcome, _ = search(
            rules,
            domains,
            order.astype(np.int32),
            EVENLY,
            MAX_CONFLICTS,
            True,
            False,
            state,
        )
        if outcome != OUT_OF_BUDGET:
            return outcome == IMPOSSIBLE
    return False


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_same_verdict(group, make_package, broken):
    """Both find a valid partition, or both prove that there is none, 200 times."""
    count = NUM_GRAPHS // NUM_GROUPS
    num_feasible = num_skipped = 0
    for seed in range(group * count, (group + 1) * count):
        problem = pinned_problem(np.random.default_rng(seed), make_package)
        answer = find_partition(problem, seed, TIME_S)
        if answer.outcome == "unknown":
            num_skipped += 1
            continue
        rows = sample_rows(problem, None, np.arange(4), workers=1)
        if answer.outcome == "solved":
            num_feasible += 1
            assert rows.solved.any(), seed
            assert not broken(problem, answer.chip_of), seed
            assert not broken(problem, rows.chip_of[rows.solved][0]), seed
        else:
            assert not rows.solved.any(), seed
            assert is_refuted(problem), seed
    assert num_skipped <= 0.02 * count
    assert 0.3 * count <= num_feasible <= 0.7 * count


@pytest.mark.parametrize(
    ("rules", "all_chips"),
    [
        (("no_skip", "triangle"), False),
        (("no_skip",), False),
        (("triangle",), False),
        (("triangle",), True),
        ((), False),
    ],
)
@pytest.mark.parametrize("helped", [False, True])
def test_model_has_the_rules(rules, all_chips, helped, make_package, broken):
    """The model admits a placement, every op pinned, iff it breaks no rule."""
    long_edges = "forbid" if "triangle" in rules else "direct"
    package = make_package(4, rules=rules, long_edges=long_edges)
    num_valid = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        graph = random_dag(int(rng.integers(3, 8)), rng, 0.4)
        names = graph.op_name
        chip_of = np.sort(rng.integers(0, 4, len(names)))
        late = rng.random() < 0.1
        pins = dict(zip(names, chip_of[::-1] if late else chip_of, strict=True))
        apart = (tuple(rng.choice(names, 2, replace=False)),)
        user = UserRules(
            pins={name: int(chip) for name, chip in pins.items()},
            apart=apart if rng.random() < 0.2 else (),
            all_chips=all_chips,
        )
        problem = Problem(graph, package, user=user, replica_threshold=0.0)
        row = np.array(list(user.pins.values()), dtype=np.int32)
        is_valid = not broken(problem, row)
        answer = find_partition(problem, seed, TIME_S, helped=helped)
        assert answer.outcome == ("solved" if is_valid else "infeasible"), seed
        if is_valid:
            assert answer.chip_of.tolist() == row.tolist()
        num_valid += is_valid
    assert 5 <= num_valid <= 115


def test_number_of_chips(make_package):
    """Six ops in a row use exactly as many of eight chips as asked for.

    With op 4 on chip 2 only op 5 can stand above: they use 3 or 4.
    """
    package = make_package(8, rules=("no_skip", "triangle"))
    problem = Problem(chain(6), package, user=UserRules(pins={"op_4": 2}))
    for num_used in range(1, 9):
        answer = find_partition(problem, 0, TIME_S, num_used=num_used)
        if 3 <= num_used <= 4:
            assert sorted(set(answer.chip_of.tolist())) == list(range(num_used))
        else:
            assert answer.outcome == "infeasible"


def test_hint(make_package, broken):
    """A hint that breaks the rules does no harm."""
    package = make_package(3, rules=("no_skip", "triangle"))
    problem = Problem(chain(6), package, user=UserRules(all_chips=True))
    backwards = np.array([2, 2, 1, 1, 0, 0], dtype=np.int32)
    answer = find_partition(problem, 0, TIME_S, backwards)
    assert not broken(problem, answer.chip_of)


def test_memory_is_refused(make_package):
    """A package with the rule ``memory``, which the model lacks, is refused."""
    problem = Problem(chain(2), make_package(2))
    with pytest.raises(InputError, match="take it off the package's rules"):
        find_partition(problem, 0, TIME_S)
