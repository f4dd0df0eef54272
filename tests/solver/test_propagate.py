"""The kernel's rules, run to rest, leave exactly what their plain twins leave.

Every rule only removes chips, so whatever the order, the rules come to rest in the same
domains; a rule that is too weak, too strong or not woken shows as a difference.
"""

import itertools

import numpy as np
import pytest

from mcmpart.problem import Problem
from mcmpart.solver import Solver
from mcmpart.solver.setup import make_rules


class ContradictionError(Exception):
    """A block has no chip left, or a rule cannot be kept."""


class Twin:
    """The propagation rules over sets of chips, each one a method."""

    def __init__(self, tools, problem, used, domain, *, full):
        self.chip_graph = tools.chip_graph
        blocks, package = problem.blocks.arrays, problem.package_arrays
        self.num_chips, self.used, self.full = problem.num_chips, used, full
        self.domain = domain
        self.blocks = range(len(domain))
        self.succ = [row(blocks.succ_ptr, blocks.succ, n) for n in self.blocks]
        self.edges = [(u, v) for u in self.blocks for v in self.succ[u]]
        self.apart = blocks.apart.tolist()
        self.items = [row(blocks.item_ptr, blocks.item, n) for n in self.blocks]
        self.own = blocks.weight_bytes + 2 * (blocks.host_bytes + blocks.output_bytes)
        self.shared = blocks.item_weight_bytes + 2 * blocks.item_host_bytes
        self.memory_bytes = package.memory_bytes
        self.cover = package.no_skip or problem.user.all_chips
        self.triangle = package.triangle
        self.spans = plain_spans(self.succ, package.triangle) if self.cover else {}
        self.graph = None
        self.rules = [self.keep_dataflow, self.keep_spans, self.keep_apart]
        self.rules += [self.keep_chip_graph] * bool(package.triangle)
        self.rules += [self.fit_ranges, self.fit_memory] * bool(package.memory)
        self.rules += [self.cover_chips] * bool(self.cover)

    def run(self):
        """Run the rules until nothing changes; return whether they agree."""
        try:
            before = None
            while before != self.domain:
                before = [set(chips) for chips in self.domain]
                for rule in self.rules:
                    rule()
        except ContradictionError:
            return False
        return True

    def restrict(self, n, allowed):
        """Keep the allowed chips of a block."""
        self.domain[n] &= set(allowed)
        if not self.domain[n]:
            raise ContradictionError

    def fixed(self):
        """Return the chips of the fixed blocks."""
        return {n: min(own) for n, own in enumerate(self.domain) if len(own) == 1}

    def keep_dataflow(self):
        """f(u) <= f(v)."""
        for u, v in self.edges:
            self.restrict(v, range(min(self.domain[u]), self.num_chips))
            self.restrict(u, range(max(self.domain[v]) + 1))

    def keep_spans(self):
        """f(v) <= f(u) + span."""
        for (u, v), span in self.spans.items():
            self.restrict(v, range(max(self.domain[u]) + span + 1))
            low = max(min(self.domain[v]) - span, 0)
            self.restrict(u, range(low, self.num_chips))

    def keep_apart(self):
        """f(a) != f(b)."""
        for a, b in self.apart + [pair[::-1] for pair in self.apart]:
            if len(self.domain[a]) == 1:
                self.restrict(b, set(range(self.num_chips)) - self.domain[a])

    def keep_chip_graph(self):
        """No arc of the chip graph has a longer path beside it."""
        fixed, chips = self.fixed(), range(self.num_chips)
        arcs = {
            (fixed[u], fixed[v])
            for u, v in self.edges
            if u in fixed and v in fixed and fixed[u] != fixed[v]
        }
        above, below, paths = self.paths(fixed) if self.full else ({}, {}, set())
        graph = self.graph = self.chip_graph(chips, frozenset(arcs), frozenset(paths))
        if not graph.is_legal:
            raise ContradictionError
        for u, v in self.edges:
            if u in fixed and v not in fixed:
                self.restrict(
                    v, [c for c in chips if (fixed[u], c) not in graph.no_arc]
                )
            if v in fixed and u not in fixed:
                self.restrict(
                    u, [c for c in chips if (c, fixed[v]) not in graph.no_arc]
                )
        for n in above:
            self.keep_paths(n, above[n], below[n], fixed)

    def keep_paths(self, n, above, below, fixed):
        """Keep an open block where the paths over it may lead."""
        graph, chips = self.graph, range(self.num_chips)
        for a in above:
            self.restrict(n, [c for c in chips if (a, c) not in graph.no_path])
        for b in below:
            self.restrict(n, [c for c in chips if (c, b) not in graph.no_path])
        for a, b in itertools.product(above, below):
            if (a, b) in graph.arcs:
                self.restrict(n, {a, b})
        for v in self.succ[n]:
            for b in below if v in fixed else ():
                if (b, fixed[v]) in graph.reach:
                    self.restrict(n, {b})
        for p in (u for u in fixed if n in self.succ[u]):
            for a in above:
                if (fixed[p], a) in graph.reach:
                    self.restrict(n, {a})

    def paths(self, fixed):
        """Return the chips above and below each open block, and joined pairs of chips.

        Joined means by a path of edges between fixed blocks over open ones only.
        """
        above = {n: set() for n in self.blocks if n not in fixed}
        below = {n: set() for n in above}
        joined = set()
        for start, chip in fixed.items():
            reached = set()
            ahead = list(self.succ[start])
            while ahead:
                v = ahead.pop()
                if v in reached:
                    continue
                reached.add(v)
                if v in fixed:
                    joined.add((chip, fixed[v]))
                else:
                    above[v].add(chip)
                    ahead += self.succ[v]
        for n in reversed(self.blocks):
            for v in self.succ[n] if n in below else ():
                below[n] |= {fixed[v]} if v in fixed else below[v]
        return above, below, {(a, b) for a, b in joined if a != b}

    def fit_ranges(self):
        """Compare what blocks store that chips a to b must hold with those chips."""
        for a, b in itertools.combinations_with_replacement(range(self.num_chips), 2):
            bound = [n for n in self.blocks if self.domain[n] <= set(range(a, b + 1))]
            if self.own[bound].sum() > self.memory_bytes[a : b + 1].sum():
                raise ContradictionError

    def fit_memory(self):
        """Compare what fixed blocks store, and what would join, with each chip."""
        fixed = self.fixed()
        for c in range(self.num_chips):
            here = [n for n, chip in fixed.items() if chip == c]
            items = sorted({item for n in here for item in self.items[n]})
            room = (
                self.memory_bytes[c] - self.own[here].sum() - self.shared[items].sum()
            )
            if room < 0:
                raise ContradictionError
            for n in self.blocks:
                if here and n not in fixed and self.own[n] > room:
                    self.restrict(n, self.domain[n] - {c})

    def cover_chips(self):
        """Every empty chip that must be used gets a block of its own (Hall)."""
        fixed = self.fixed()
        top = self.used - 1 if self.used else max(map(min, self.domain))
        empty = set(range(top + 1)) - set(fixed.values())
        takers = {
            c: {n for n in self.blocks if n not in fixed and c in self.domain[n]}
            for c in empty
        }
        for count in range(1, len(empty) + 1):
            for some in itertools.combinations(sorted(empty), count):
                if len(set().union(*(takers[c] for c in some))) < count:
                    raise ContradictionError
        for c in empty:
            if len(takers[c]) == 1:
                self.restrict(min(takers[c]), {c})
                return


def row(indptr, indices, n):
    """Return a row of a Csr."""
    return indices[indptr[n] : indptr[n + 1]].tolist()


def plain_spans(succ, triangle):
    """Return the largest f(v) - f(u) of each edge: one more than what fits between."""
    after = {}
    for n in reversed(range(len(succ))):
        after[n] = set(succ[n]).union(*(after[v] for v in succ[n]))
    spans = {}
    for u, v in ((u, v) for u, targets in enumerate(succ) for v in targets):
        outside = {u, v} | after[v] | {n for n in after if u in after[n]}
        if triangle:
            outside |= {n for n in after[u] if v in after[n]}
        spans[u, v] = 1 + len(succ) - len(outside)
    return spans


def as_sets(masks):
    """Return each mask's chips."""
    return [{c for c in range(64) if mask >> c & 1} for mask in masks.tolist()]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_rules_equal_their_twins(full, seed, tools, small_problem):
    """After each decision: the same domains, or a contradiction in both."""
    rng = np.random.default_rng(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(40):
        num_chips = int(rng.integers(2, 6))
        problem = small_problem(rng, int(rng.integers(2, 11)), num_chips)
        rules = make_rules(problem)
        for used in np.flatnonzero(rules.possible).tolist():
            margin_bytes = int(rng.choice([0, 0, 5]))
            for step in tools.walk(
                problem, rng, used, full=full, margin_bytes=margin_bytes
            ):
                domain = as_sets(rules.root[used] & step.allowed)
                twin = Twin(tools, problem, used, domain, full=full)
                twin.memory_bytes = twin.memory_bytes - margin_bytes
                assert all(domain)
                assert twin.run() == step.consistent, tools.told(problem)
                outcomes[step.consistent] += 1
                if step.consistent:
                    found = as_sets(step.domains.block["chips"])
                    assert found == twin.domain, (tools.told(problem), step.allowed)
    assert outcomes[True] >= 500
    assert outcomes[False] >= 5


@pytest.mark.parametrize("full", [False, True])
def test_the_chip_graph_equals_its_definition(full, tools, small_problem):
    """Arcs, paths and what they forbid are those of the fixed blocks, both ways."""
    rng = np.random.default_rng(20)
    num_forbidden = 0
    for _ in range(60):
        num_chips = int(rng.integers(4, 7))
        problem = small_problem(rng, 12, num_chips, rules=("triangle",), user=False)
        for step in tools.walk(problem, rng, 0, full=full):
            if not step.consistent or step.snapshots:
                continue
            domain = as_sets(step.domains.block["chips"])
            twin = Twin(tools, problem, 0, domain, full=full)
            assert twin.run()
            assert twin.domain == as_sets(step.domains.block["chips"])
            for wanted, out, into in (
                (twin.graph.arcs, "arcs_out", "arcs_in"),
                (twin.graph.reach, "reaches", "reached_by"),
                (twin.graph.no_arc, "no_arc_out", "no_arc_in"),
                (twin.graph.no_path, "no_path_out", "no_path_in"),
            ):
                targets = as_sets(step.domains.graph[out])
                sources = as_sets(step.domains.graph[into])
                assert {(c, d) for c, ds in enumerate(targets) for d in ds} == wanted
                assert {(c, d) for d, cs in enumerate(sources) for c in cs} == wanted
            num_forbidden += len(twin.graph.no_path)
    assert num_forbidden >= 50


@pytest.mark.parametrize("down", [False, True])
def test_open_blocks_hear_of_each_forbidden_arc(down, tools, make_package):
    """Along 0 -> 1 -> 2 -> 3 a neighbour of chip 0 loses chip 2, and then chip 3.

    Ops 0 to 3 are in a row; op 4 reads op 0, and may join it or stand next to it. The
    same upside down, from chip 4: op 0 feeds the row's last, and loses 2, then 1.
    """
    edges = [(0, 1), (1, 2), (2, 3), (0, 4)]
    if down:
        edges = [(4 - v, 4 - u) for u, v in edges]
    graph = tools.edge_graph(5, edges)
    package = make_package(5, rules=("triangle",))
    solver = Solver(Problem(graph, package, replica_threshold=0.0))
    heard = []
    for i in range(4):
        solver.assign(4 - i if down else i, 4 - i if down else i)
        heard.append(solver.domain(0 if down else 4))
    wanted = [(0, 1, 2, 3, 4), (0, 1, 2, 3, 4), (0, 1, 3, 4), (0, 1, 4)]
    if down:
        wanted = [tuple(sorted(4 - c for c in chips)) for chips in wanted]
    assert heard == wanted
