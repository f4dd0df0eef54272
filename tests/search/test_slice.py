"""slice against brute force over all cuts of the graph's own order."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search import Evaluations, Setting
from mcmpart.search.slice import Slice, largest_block_s, memory_overflow

CASES_PER_SEED = 40


def cuts(problem):
    """Return every cut of the blocks' order into C segments, ``[B, V] int32``."""
    num_blocks, num_chips = problem.blocks.num_blocks, problem.num_chips
    ends = itertools.combinations_with_replacement(range(num_blocks + 1), num_chips - 1)
    positions = np.arange(num_blocks)
    chip_of = [np.searchsorted(np.array(end), positions, side="right") for end in ends]
    return problem.blocks.expand(np.array(chip_of, dtype=np.int32))


def jumps_are_harmless(problem, row):
    """Whether tensors pass only over chips that nothing enters or nothing leaves."""
    graph = problem.graph
    arcs = {
        (int(row[u]), int(row[v]))
        for u in np.flatnonzero(~graph.op_replicable)
        for v in graph.successors.row(u)
        if row[u] != row[v]
    }
    entered = {b for _, b in arcs}
    left = {a for a, _ in arcs}
    jumped = {c for a, b in arcs for c in range(a + 1, b)}
    return not (jumped & entered & left)


def best_cut_s(problem):
    """Return the smallest bottleneck of a cut that slice may take; inf if none."""
    rows = cuts(problem)
    cost, valid = evaluate_many(problem, rows, workers=1)
    if problem.package.has_rule("triangle"):
        valid = valid & [jumps_are_harmless(problem, row) for row in rows]
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


def with_memory(problem, memory_bytes):
    """Return the problem with the memory rule on and this much on every chip."""
    package = problem.package
    rules = tuple(dict.fromkeys((*package.rules, "memory")))
    chips = tuple(replace(chip, memory_bytes=memory_bytes) for chip in package.chips)
    return replace(problem, package=replace(package, rules=rules, chips=chips))


def best_roomy_cut_s(problem):
    """Return the best cut that fits even if no tensor were ever freed; inf if none."""
    written = np.zeros(problem.graph.num_ops, dtype=np.int64)
    produced = problem.graph.tensor_producer >= 0
    producers = problem.graph.tensor_producer[produced]
    np.add.at(written, producers, problem.graph.tensor_bytes[produced])
    best = np.inf
    for row in cuts(problem):
        found = evaluate(problem, Partition(problem.graph, row))
        room = [
            chip.memory_bytes - load.weight_bytes - load.buffer_bytes
            for chip, load in zip(problem.package.chips, found.chips, strict=True)
        ]
        live = [written[row == c].sum() for c in range(problem.num_chips)]
        jumps = problem.package.has_rule("triangle") and not jumps_are_harmless(
            problem, row
        )
        if found.valid and not jumps and np.all(np.array(live) <= room):
            best = min(best, found.bottleneck_s)
    return best


@pytest.mark.parametrize("seed", range(3))
def test_cuts_fit_the_memory(seed, make_problem):
    """Under memory limits the cut is valid, and as good as any that fits with ease.

    Where live tensors decide, the count along the way is on the safe side, so a better
    cut may be missed: what fits without it never is.
    """
    rng = np.random.default_rng(seed)
    num_tight = 0
    for _ in range(CASES_PER_SEED):
        problem = make_problem(rng, rng.integers(1, 7), view_probability=0.0)
        problem = with_memory(problem, int(rng.integers(200_000, 700_000)))
        problem = replace(problem, replica_threshold=0.0)
        rows = first_cut(problem)
        cost, valid = evaluate_many(problem, rows, workers=1)
        assert valid.all()
        found = cost.min(initial=np.inf)
        assert found >= best_cut_s(problem) * (1 - 1e-12)
        assert found <= best_roomy_cut_s(problem) * (1 + 1e-12)
        num_tight += best_cut_s(problem) > best_cut_s(without_memory(problem))
    assert num_tight > 5


@pytest.mark.parametrize("seed", range(3))
def test_every_proposal_is_valid_and_better(seed, make_problem):
    """Along any number of orders, each proposal is valid and beats those before."""
    rng = np.random.default_rng(seed)
    num_later = 0
    for _ in range(25):
        problem = make_problem(rng, int(rng.integers(2, 40)), rules=True)
        method = Slice(Setting(problem, seed=seed), max_orders=12)
        best = np.inf
        while not method.done:
            rows = method.propose()
            if rows.shape[0] == 0:
                continue
            cost, valid = evaluate_many(problem, rows, workers=1)
            assert valid.all()
            assert cost[0] < best
            num_later += np.isfinite(best)
            best = cost[0]
            method.observe(Evaluations(rows, cost, valid))
        assert method.num_orders == 12
    assert num_later > 5


def test_toy(toy, toy_optimum_s):
    """The first cut of the toy is its optimum."""
    cost, valid = evaluate_many(toy, first_cut(toy))
    assert valid.all()
    assert cost[0] == pytest.approx(toy_optimum_s, rel=1e-12)


def test_same_seed_same_cuts(make_problem):
    """The seed decides the random orders, and nothing else does."""
    problem = without_memory(make_problem(np.random.default_rng(5), 40, num_chips=4))

    def cuts_of(seed):
        method = Slice(Setting(problem, seed=seed), max_orders=20)
        rows = []
        while not method.done:
            rows += method.propose().tolist()
        return rows

    assert cuts_of(3) == cuts_of(3)
    assert cuts_of(3) != cuts_of(4)


def test_late_proposals_are_empty(toy):
    """After the deadline it proposes nothing more and does not hang."""
    method = Slice(Setting(toy, deadline=0.0))
    assert method.propose().shape == (0, 6)


def test_overflow_of_replicas_moves_the_cut(make_package):
    """A replica's live tensor is not counted along the way: the limit is tightened.

    Four layers of 1 s and 100 B of weights; the first and the third read ``mask.t``,
    100 B, which a replica makes. Two layers on chip 0 seem to need 200 B and need 300.
    """
    builder = GraphBuilder("masked")
    builder.host_tensor(TensorSpec("x", 0))
    mask = (TensorSpec("mask.t", 100),)
    builder.op(OpSpec("mask", "Op", replicable=True, reads=("x",), writes=mask))
    last = "x"
    for i in range(4):
        builder.weight(TensorSpec(f"w{i}", 100))
        reads = (last, "mask.t") if i in (0, 2) else (last,)
        writes = (TensorSpec(f"l{i}.t", 0),)
        builder.op(
            OpSpec(
                f"l{i}",
                "Op",
                seconds=1.0,
                reads=reads,
                weights=(f"w{i}",),
                writes=writes,
            )
        )
        last = f"l{i}.t"
    builder.output(last)
    graph = builder.build()
    roomy, narrow = (
        make_package(2, overrides={0: {"memory_bytes": memory_bytes}})
        for memory_bytes in (300, 240)
    )
    assert first_cut(Problem(graph, roomy)).tolist() == [[-1, 0, 0, 1, 1]]
    assert first_cut(Problem(graph, narrow)).tolist() == [[-1, 0, 1, 1, 1]]


def test_largest_block(make_package):
    """The guess to start from is a block's own time on its fastest chip, by hand."""
    graph = chain(2, flops=0, tensor_bytes=[30, 10], seconds=[1, 3])
    # op_0: 1 + x 30 / 40 in; op_1: 3 + output 10 / 40; the fastest port has 40 B/s.
    package = make_package(2, overrides={1: {"io_bandwidth_bytes_per_s": 40.0}})
    assert largest_block_s(Problem(graph, package)) == 3.25
    overlap = replace(package, io="overlap")
    assert largest_block_s(Problem(graph, overlap)) == 3.0


def test_memory_overflow(make_package):
    """What a placement lacks on each chip, by hand; nothing without the rule."""
    graph = chain(2, tensor_bytes=8, weight_bytes=100)
    # Each chip: 100 + 2 x 16 + 8 = 140.
    package = make_package(3, memory_bytes=130, overrides={1: {"memory_bytes": 500}})
    chips = np.array([0, 1], dtype=np.int32)
    assert memory_overflow(Problem(graph, package), chips).tolist() == [10, 0, 0]
    free = replace(package, rules=("no_skip", "triangle"))
    assert memory_overflow(Problem(graph, free), chips).tolist() == [0, 0, 0]
