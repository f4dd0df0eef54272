"""Small problems, all their valid placements, and the solver's search laid bare.

A placement is a row of chips, one per block. What compares with the solver here finds
its answer by brute force.
"""

import itertools
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest

from mcmpart.errors import InfeasibleError
from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.evaluate._kernels import judge_rows
from mcmpart.graph.builder import GraphBuilder, OpSpec, TensorSpec
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.solver._arrays import Domains
from mcmpart.solver._propagate import propagate
from mcmpart.solver._rows import Limits, Model, solve_rows
from mcmpart.solver._search import IMPOSSIBLE, SAMPLE, SOLVED, Wish, search
from mcmpart.solver._trail import mark, reset, restrict, undo
from mcmpart.solver.setup import make_rules, room_for

MOST_PLACEMENTS = 20_000
"""Up to so many, all placements of a problem are looked at."""

SHARED = {"shared_4": 4, "shared_12": 12}
"""Weights, and their bytes, that several ops may use."""

EVENLY = Wish(SAMPLE, np.empty((0, 0)), 0.0, np.empty(0, dtype=np.int32))
"""What SAMPLE mode wishes without probabilities."""


def compiled(function):
    """Return a function compiled, so that it may call what is copied into its callers.

    Without a cache on disk: that would not notice when the copied function changes.
    """
    return numba.njit(error_model="numpy", _nrt=False)(function)


def edge_graph(num_ops, edges, rng=None, *, views=0.0, replicas=0.0):
    """Return a graph with these data edges; op u writes the tensor ``u:0``.

    Without ``rng`` each tensor has 1 byte, sinks write the outputs and nothing has a
    weight. With it all that is random, and so are, with these chances, which ops are
    views and which of those that read no op are replicable.
    """
    builder = GraphBuilder("small")
    builder.host_tensor(TensorSpec("x", _size(rng, 9)))
    for name, size in SHARED.items():
        builder.weight(TensorSpec(name, size))
    read = {u for u, _ in edges}
    for v in range(num_ops):
        reads = tuple(f"{u}:0" for u, w in edges if w == v)
        chance = np.ones(5) if rng is None else rng.random(5)
        weights = _weights(builder, v, rng, chance)
        is_replica = not reads and v in read and chance[2] < replicas
        is_view = bool(reads) and not weights and chance[3] < views
        builder.op(
            OpSpec(
                f"op_{v}",
                "Op",
                flops=0 if is_view else _size(rng, 20),
                bytes=0 if is_view else 1,
                replicable=is_replica,
                reads=reads or ("x",),
                weights=weights,
                writes=(TensorSpec(f"{v}:0", _size(rng, 12)),),
            )
        )
        if v not in read or (not is_replica and chance[4] < 0.25):
            builder.output(f"{v}:0")
    return builder.build()


def _size(rng, limit):
    """Return a random number from 1, below ``limit``; 1 without ``rng``."""
    return 1 if rng is None else int(rng.integers(1, limit))


def _weights(builder, v, rng, chance):
    """Return the weights of op v: one of its own, a shared one, both or none."""
    weights = []
    if chance[0] < 0.4:
        builder.weight(TensorSpec(f"w_{v}", _size(rng, 20)))
        weights.append(f"w_{v}")
    if chance[1] < 0.3:
        weights.append(str(rng.choice(list(SHARED))))
    return tuple(weights)


def all_edges(num_ops):
    """Yield the edge sets of all DAGs whose ops stand in topological order."""
    pairs = list(itertools.combinations(range(num_ops), 2))
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        yield list(itertools.compress(pairs, chosen))


def distinct_edges(num_ops):
    """Return the edge sets of all DAGs, one for each way of naming the ops.

    Two are the same DAG if their adjacency matrices, over all permutations of the ops,
    have the same least value as a binary number.
    """
    edge_sets = list(all_edges(num_ops))
    matrix = np.zeros((len(edge_sets), num_ops, num_ops), dtype=np.int64)
    for i, edges in enumerate(edge_sets):
        for u, v in edges:
            matrix[i, u, v] = 1
    digits = (1 << np.arange(num_ops * num_ops)).reshape(num_ops, num_ops)
    least = np.min(
        [
            (matrix[:, perm][:, :, perm] * digits).sum(axis=(1, 2))
            for perm in map(list, itertools.permutations(range(num_ops)))
        ],
        axis=0,
    )
    _, first = np.unique(least, return_index=True)
    return [edge_sets[i] for i in first]


def random_edges(rng, num_ops):
    """Return the edges of a random DAG: sparse, dense or like a network's blocks."""
    pairs = list(itertools.combinations(range(num_ops), 2))
    reach = int(rng.integers(1, num_ops + 1))
    chance = float(rng.choice([0.2, 0.4, 0.8]))
    return [(u, v) for u, v in pairs if v - u <= reach and rng.random() < chance]


def random_user(rng, graph, num_chips):
    """Return user rules, each now and then; they may contradict each other."""
    ordinary = np.flatnonzero(~graph.op_replicable)
    names = [graph.op_name[op] for op in rng.permutation(ordinary)]
    wanted = rng.random(4) < (0.3, 0.3, 0.3, 0.1)
    pins = {name: int(rng.integers(num_chips)) for name in names[:1] if wanted[0]}
    group = tuple(names[1 : 3 + int(rng.integers(2))])
    pair = tuple(rng.permutation(names)[:2].tolist())
    return UserRules(
        pins,
        together=(group,) if wanted[1] and len(group) > 1 else (),
        apart=(pair,) if wanted[2] and len(pair) > 1 else (),
        all_chips=bool(wanted[3]),
    )


def placements(num_blocks, num_chips):
    """Return every placement, ascending, ``[C ** N, N] int32``."""
    return _placements(num_blocks, num_chips).copy()


@lru_cache(maxsize=4)
def _placements(num_blocks, num_chips):
    grid = np.indices((num_chips,) * num_blocks, dtype=np.int32)
    return np.ascontiguousarray(grid.reshape(num_blocks, -1).T)


def valid_placements(problem, blocks=None):
    """Return the placements that the evaluation calls valid, ascending."""
    blocks = blocks or problem.blocks
    rows = placements(blocks.num_blocks, problem.num_chips)
    _, valid = evaluate_many(problem, blocks.expand(rows), workers=1)
    return rows[valid]


def keeps_rules(problem, rows, blocks=None):
    """Return which placements are valid but for the memory, ``bool``."""
    op_rows = (blocks or problem.blocks).expand(rows)
    valid = np.empty(len(rows), dtype=np.bool_)
    judge_rows(
        op_rows,
        problem.ops.arrays,
        problem.live,
        problem.package_arrays._replace(memory=False),
        problem.user.all_chips,
        False,
        np.empty(len(rows)),
        valid,
    )
    return valid


def num_used(rows):
    """Return how many chips each placement uses."""
    return np.array([len(set(row)) for row in rows.tolist()], dtype=int)


def as_chips(masks):
    """Return the lowest chip of each mask, ``int32``."""
    return np.bitwise_count(~masks & (masks - np.uint64(1))).astype(np.int32)


def reached(problem, used, order, *, full, blocks=None):
    """Return every placement that a search meets, ascending, repeats kept.

    ``used`` is the number of chips to use, 0 for any. Each solution is taken for a
    contradiction, until every decision is refuted. What no rule foresees of the memory
    is not checked.
    """
    blocks = blocks or problem.blocks
    rules = make_rules(problem, blocks)
    found = []
    outcome = SOLVED if rules.possible[used] else IMPOSSIBLE
    if outcome == SOLVED:
        domains, state = room_for(rules), np.zeros(1, dtype=np.uint64)
        reset(used, rules, domains)
        again = False
        while outcome == SOLVED:
            outcome, _ = search(
                rules, domains, order, EVENLY, 2**62, full, again, state
            )
            if outcome == SOLVED:
                found.append(domains.block["chips"].copy())
            again = True
    assert outcome == IMPOSSIBLE
    rows = as_chips(np.array(found, dtype=np.uint64).reshape(-1, blocks.num_blocks))
    return rows[np.lexsort(rows.T[::-1])]


def solved_rows(
    problem, mode, candidates, seeds, *, weights=None, limits=None, order=()
):
    """Return placements, outcomes and attempts of the kernel behind both modes."""
    rules = make_rules(problem)
    num_rows, num_blocks = len(seeds), problem.blocks.num_blocks
    chip_of = np.empty((num_rows, num_blocks), dtype=np.int32)
    outcome, attempts = np.empty((2, num_rows), dtype=np.int32)
    solve_rows(
        rules,
        Model(problem.blocks.arrays, problem.live, problem.package_arrays),
        mode,
        np.empty((0, 0)) if weights is None else weights,
        0.0,
        candidates,
        np.array(seeds, dtype=np.uint64),
        np.array(order, dtype=np.int32),
        limits or Limits(100, 10**9),
        chip_of,
        outcome,
        attempts,
        room_for(rules),
    )
    return chip_of, outcome, attempts


class Walked(NamedTuple):
    """A step of :func:`walk`.

    Attributes
    ----------
    allowed
        ``[N] uint64``: what the decisions in force, and those refuted, leave to blocks.
    consistent
        What the propagation found.
    domains
        As it left them.
    snapshots
        If a decision was just undone: :func:`snapshot` before it was made, and now.
    """

    allowed: np.ndarray
    consistent: bool
    domains: Domains
    snapshots: tuple | None = None


def walk(problem, rng, used, *, full, margin_bytes=0):
    """Decide blocks at random, propagate, undo and refute; yield each step."""
    rules = make_rules(problem)
    domains = room_for(rules)
    reset(used, rules, domains)
    domains.now["margin_bytes"] = margin_bytes
    allowed = np.full(domains.block.size, 2**problem.num_chips - 1, dtype=np.uint64)
    consistent = propagate(rules, domains, full)
    made = []
    yield Walked(allowed, consistent, domains)
    for _ in range(12):
        chips = domains.block["chips"]
        is_open = np.flatnonzero(chips & (chips - np.uint64(1)))
        has_room = len(made) < chips.size
        if consistent and has_room and is_open.size and rng.random() < 0.8:
            n = int(rng.choice(is_open))
            some = _some_of(rng, chips[n])
            made.append((n, some, allowed.copy(), snapshot(rules, domains)))
            allowed[n] &= some
            consistent = assume(n, some, rules, domains)
        elif made:
            n, some, allowed, before = made.pop()
            undo(rules, domains)
            pair = (before, snapshot(rules, domains))
            yield Walked(allowed, True, domains, pair)
            if not consistent:
                allowed[n] &= ~some
                consistent = cut(n, ~some, rules, domains)
        elif not consistent:
            return
        consistent = consistent and propagate(rules, domains, full)
        yield Walked(allowed, consistent, domains)


def _some_of(rng, mask):
    """Return some chips of a mask with several, mostly a single one."""
    chips = [c for c in range(64) if int(mask) >> c & 1]
    count = 1 if rng.random() < 0.7 else int(rng.integers(1, len(chips)))
    picked = rng.choice(chips, count, replace=False)
    return np.uint64(sum(1 << int(c) for c in picked))


@compiled
def assume(n, chips, rules, domains):
    """Begin a decision."""
    mark(n, chips, 0, domains)
    return restrict(n, chips, rules, domains)


@compiled
def cut(n, chips, rules, domains):
    """Restrict a block to chips."""
    return restrict(n, chips, rules, domains)


def snapshot(rules, domains):
    """Return all that an undo must bring back, as plain values."""
    chip = domains.chip[:-1]
    now = ("required", "covered", "top", "trail_size", "num_saved", "num_decisions")
    return {
        "chips": domains.block["chips"].tolist(),
        "paths": domains.paths.tolist(),
        "cover": domains.chip["cover"].tolist(),
        "fixed": [blocks_on(c, domains) for c in range(chip.size)],
        "used_bytes": chip["used_bytes"].tolist() if rules.memory else None,
        "bound_bytes": domains.bound_bytes.tolist() if rules.memory else None,
        "item_users": domains.item_users.tolist() if rules.memory else None,
        "graph": domains.graph.tolist(),
        **{name: int(domains.now[name][0]) for name in now},
    }


def blocks_on(chip, domains):
    """Return the list of fixed blocks that a chip keeps, latest first."""
    blocks, n = [], int(domains.chip["first_on"][chip])
    for _ in range(domains.chip["num_on"][chip]):
        blocks.append(n)
        n = int(domains.block["next_on"][n])
    return blocks


class ChipGraph:
    """Arcs and paths between chips, and what they forbid, straight from the rule.

    No arc x -> y may have a path x ~> z ~> y beside it.

    Attributes
    ----------
    arcs, reach
        Pairs of chips that an arc, or any path, leads from and to.
    no_arc, no_path
        Pairs (c, d), c below d, that another arc or path would break the rule.
    """

    def __init__(self, chips, arcs, paths):
        self.chips = chips
        self.arcs = arcs
        self.reach = self.closed(arcs | paths)
        self.is_legal = self.keeps_rule(arcs, self.reach)
        self.no_arc, self.no_path = set(), set()
        for pair in itertools.combinations(self.chips, 2):
            reach = self.closed(self.reach | {pair})
            if not self.keeps_rule(arcs, reach):
                self.no_path.add(pair)
            if not self.keeps_rule(arcs | {pair}, reach):
                self.no_arc.add(pair)

    def closed(self, pairs):
        """Return the pairs and all that follow by going on."""
        closed = set(pairs)
        for z, x, y in itertools.product(self.chips, repeat=3):
            if (x, z) in closed and (z, y) in closed:
                closed.add((x, y))
        return closed

    def keeps_rule(self, arcs, reach):
        """Return whether no arc has a longer path beside it."""
        return not any(
            (x, z) in reach and (z, y) in reach for x, y in arcs for z in self.chips
        )


@lru_cache(maxsize=1000)
def chip_graph(chips, arcs, paths):
    """Return the chip graph of two frozen sets of pairs of chips."""
    return ChipGraph(chips, arcs, paths)


def just_enough(rng, problem):
    """Return the problem with the memory that some placement needs, a valid one if few.

    Where all placements cannot be looked at, it is a cut of the blocks' order.
    """
    num_blocks, num_chips = problem.blocks.num_blocks, problem.num_chips
    cuts = np.sort(rng.integers(0, num_chips, num_blocks)).astype(np.int32)
    some = cuts[None]
    if num_chips**num_blocks <= MOST_PLACEMENTS:
        some = valid_placements(problem)
    needs = np.ones(num_chips, dtype=int)
    if len(some):
        row = problem.blocks.expand(some[int(rng.integers(len(some)))])
        chips = evaluate(problem, Partition(problem.graph, row)).chips
        needs = np.maximum([chip.memory_bytes for chip in chips], 1)
    if rng.random() < 0.5:
        needs[:] = needs.max()
    package = replace(
        problem.package,
        rules=(*problem.package.rules, "memory"),
        chips=tuple(
            replace(chip, memory_bytes=int(need))
            for chip, need in zip(problem.package.chips, needs, strict=True)
        ),
    )
    return replace(problem, package=package)


def told(problem):
    """Return what a failed test needs to say of its problem."""
    edges = [
        (u, v)
        for u in range(problem.graph.num_ops)
        for v in problem.graph.successors.row(u).tolist()
    ]
    chips = [chip.memory_bytes for chip in problem.package.chips]
    return f"{edges} {problem.package.rules} {chips} {problem.user}"


@pytest.fixture
def small_problem(make_package):
    """Give a maker of small problems; what is not given is random."""

    def make(rng, num_ops, num_chips, *, edges=None, rules=None, user=True, **ops):
        if rules is None:
            picked = rng.random(3) < (0.7, 0.6, 0.5)
            rules = tuple(itertools.compress(("no_skip", "triangle", "memory"), picked))
        if edges is None:
            edges = random_edges(rng, num_ops)
        graph = edge_graph(num_ops, edges, rng, **ops)
        package = make_package(
            num_chips,
            long_edges="forbid" if "triangle" in rules else "relay",
            rules=tuple(rule for rule in rules if rule != "memory"),
        )
        while True:
            wanted = random_user(rng, graph, num_chips) if user else UserRules()
            try:
                problem = Problem(graph, package, user=wanted, replica_threshold=0.0)
            except InfeasibleError:
                continue
            return just_enough(rng, problem) if "memory" in rules else problem

    return make


@pytest.fixture(scope="session")
def tools():
    """Give the functions of this file."""
    functions = (
        blocks_on,
        chip_graph,
        compiled,
        distinct_edges,
        edge_graph,
        keeps_rules,
        num_used,
        placements,
        reached,
        solved_rows,
        told,
        valid_placements,
        walk,
    )
    return SimpleNamespace(**{each.__name__: each for each in functions})
