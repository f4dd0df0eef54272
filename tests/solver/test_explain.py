"""Whether any partition is valid, and which demands contradict each other."""

import itertools
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.errors import InfeasibleError
from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules
from mcmpart.solver.explain import contradiction, find_any, raise_if_contradictory


def later(seconds=20.0):
    """Return a function that tells whether so many seconds are over."""
    deadline = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= deadline


def net_of(reads_of, **op):
    """Return a graph of ops named a, b, c, ...; each reads the named ops or the input.

    A view among them has no FLOPs, no bytes and no time: give ``views``.
    """
    views = op.pop("views", "")
    net = GraphBuilder("net")
    net.host_tensor(TensorSpec("x", 1))
    for name, reads in reads_of.items():
        seconds = None if name in views else 1.0
        read = tuple(f"{p}.t" for p in reads) or ("x",)
        out = (TensorSpec(f"{name}.t", 1),)
        net.op(OpSpec(name, "Op", seconds=seconds, reads=read, writes=out))
    net.output(f"{name}.t")
    return net.build()


@pytest.fixture
def ladder(make_package):
    """Give a -> b -> c -> d with the shortcut a -> d, on four chips."""
    return net_of({"a": "", "b": "a", "c": "b", "d": "ac"}), make_package(4)


def test_any_partition_is_valid(ladder, broken):
    """What is found obeys every rule, the user's among them."""
    graph, package = ladder
    user = UserRules(pins={"b": 1, "d": 1}, apart=(("a", "c"),))
    problem = Problem(graph, package, user=user)
    found = find_any(problem, later())
    assert not found.is_impossible
    assert not broken(problem, found.chip_of)


def test_every_way_is_refuted(make_problem, make_all_rows):
    """On 150 random problems the verdict is that of looking at all partitions."""
    verdicts = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 3])
        problem = make_problem(rng, int(rng.integers(2, 6)), num_chips=3, rules=True)
        found = find_any(problem, later())
        exists = evaluate_many(problem, make_all_rows(problem))[1].any()
        assert found.is_impossible != exists, seed
        assert (found.chip_of is not None) == exists, seed
        verdicts.append(exists)
    assert 5 < sum(verdicts) < 148


def test_a_view_that_fills_a_chip(make_package):
    """A proof does not merge views: here one is alone on the middle chip."""
    graph = net_of({"a": "", "b": "a", "c": "b"}, views="b")
    package = make_package(3, rules=("no_skip", "memory"), long_edges="direct")
    problem = Problem(graph, package)
    assert problem.blocks.num_blocks == 2
    pinned = Problem(graph, package, user=UserRules(pins={"a": 0, "c": 2}))
    found = find_any(pinned, later())
    assert found.chip_of.tolist() == [0, 1, 2]


def test_no_time_is_no_proof(ladder):
    """Past the deadline nothing is claimed."""
    found = find_any(Problem(*ladder), lambda: True)
    assert (found.chip_of, found.is_impossible) == (None, False)


def test_the_demands_that_clash(ladder):
    """Only the pins, and the rule, that contradict each other are named."""
    graph, package = ladder[0], _with_rules(ladder[1], ("triangle", "memory"))
    # Data go a -> b -> c -> d over the chips, and from a to d at once.
    user = UserRules(pins={"a": 0, "b": 1, "c": 2, "d": 3})
    problem = Problem(graph, package, user=user)
    with pytest.raises(InfeasibleError) as caught:
        raise_if_contradictory(problem, later())
    assert caught.value.rule == "triangle"
    message = str(caught.value)
    assert message.startswith("no plan exists: the rule triangle, 'a' pinned to chip 0")
    assert message.endswith("contradict each other: drop one of them")
    assert "memory" not in message
    # Three pins are enough: a and b, and c or d behind them.
    assert message.count("pinned") == 3


def test_each_demand_named_is_needed(make_problem):
    """Without any one of the demands named there is a valid partition."""
    checked = 0
    for seed in range(250):
        rng = np.random.default_rng([seed, 7])
        problem = make_problem(rng, int(rng.integers(3, 7)), num_chips=3)
        names = [str(name) for name in rng.permutation(problem.graph.op_name)]
        pins = {name: int(rng.integers(3)) for name in names[:3]}
        user = UserRules(pins=pins)
        try:
            pinned = replace(problem, user=user, replica_threshold=0.0)
        except InfeasibleError:  # pins within one of the graph's groups
            continue
        if not find_any(pinned, later()).is_impossible:
            continue
        _, sentence = contradiction(pinned, later())
        named = set(re.findall(r"'(\w+)' pinned", sentence))
        assert named <= set(pins)
        for left_out in named:
            fewer = {name: chip for name, chip in pins.items() if name in named}
            del fewer[left_out]
            rules = [r for r in problem.package.rules if f"rule {r}" in sentence]
            package = _with_rules(problem.package, tuple(rules))
            relaxed = replace(pinned, package=package, user=UserRules(pins=fewer))
            assert not find_any(relaxed, later()).is_impossible, (seed, sentence)
            checked += 1
    assert checked > 10


def _with_rules(package, rules):
    long_edges = package.long_edges
    if "triangle" not in rules and long_edges == "forbid":
        long_edges = "direct"
    return replace(package, rules=rules, long_edges=long_edges)


def test_no_time_to_find_out_which(ladder):
    """Out of time, no set is claimed to be the smallest."""
    user = UserRules(pins={"a": 0, "b": 1, "c": 2, "d": 3})
    rule, sentence = contradiction(Problem(*ladder, user=user), lambda: True)
    assert rule == "rules"
    assert sentence == (
        "among no_skip, triangle, memory, pins some contradict each other, and the "
        "time was too short to find out which: drop some of the demands"
    )


def test_more_apart_than_chips(make_package):
    """Four ops pairwise apart on three chips are refuted, whatever else there is."""
    graph = net_of(dict.fromkeys("abcdefghijklmnop", ""))
    pairs = tuple(itertools.combinations("mnop", 2))
    package = make_package(3, rules=(), long_edges="direct")
    problem = Problem(graph, package, user=UserRules(apart=pairs))
    assert find_any(problem, later()).is_impossible


def test_memory_alone(make_package):
    """Where only memory is too small, the remedy is memory."""
    graph = chain(2, flops=0, tensor_bytes=10, seconds=[1, 1])
    problem = Problem(graph, make_package(1, memory_bytes=50))
    rule, sentence = contradiction(problem, later())
    assert rule == "memory"
    assert sentence == (
        "the rule memory cannot be met: give the chips more memory, choose a smaller "
        "--precision, or drop it"
    )


def test_apart_and_together_are_named(make_package):
    """Pairs apart and groups together are named by their ops."""
    graph = net_of({"a": "", "b": "a", "c": "b"})
    user = UserRules(together=(("a", "c"),), apart=(("a", "b"),))
    package = make_package(2)
    with pytest.raises(InfeasibleError, match="must be apart, but"):
        Problem(graph, package, user=user)
    user = UserRules(apart=(("a", "b"), ("b", "c")), pins={"c": 1})
    problem = Problem(graph, package, user=user)
    with pytest.raises(InfeasibleError) as caught:
        raise_if_contradictory(problem, later())
    assert "'a' apart from 'b' and 'b' apart from 'c'" in str(caught.value)


def test_silence_without_demands(ladder):
    """A problem with only the package's rules is not looked at: it costs nothing."""
    raise_if_contradictory(Problem(*ladder), later())
