"""The static rules as a model for OR-Tools CP-SAT: a second opinion, and a yardstick.

The model states the rules of docs/concepts.md and nothing of how mcmpart's own solver
works: blocks u, v, w; chips a < b < c; f(n) is the chip of block n.

- ``up_to[n, c]`` is f(n) <= c and ``on[n, c]`` is f(n) = c, the order encoding:
  up_to[n, c - 1] => up_to[n, c], and on[n, c] <=> up_to[n, c] and not up_to[n, c - 1].
- dataflow, edge u -> v: up_to[v, c] => up_to[u, c].
- no_skip: on[n, c] => used[c], used[c] => some on[n, c], used[c] => used[c - 1].
- triangle: an edge u -> v draws the arc a -> b, on[u, a] and on[v, b] => arc[a, b];
  arcs are paths and paths join, path[a, b] and path[b, c] => path[a, c]; and no arc
  stands beside a longer path, path[a, b] and path[b, c] => not arc[a, c]. An arc that
  no edge draws may be true too, but that only forbids more.
- apart: not both on[u, c] and on[v, c]. pin: on[n, chip].
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcmpart.blocks import BlockArrays
from mcmpart.errors import InputError
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem

try:
    from ortools.sat.python import cp_model
except ImportError as error:
    raise ImportError(
        "CP-SAT needs OR-Tools, which is not installed: pip install 'mcmpart[exact]'"
    ) from error

Outcome = Literal["solved", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What CP-SAT found.

    Attributes
    ----------
    outcome
        ``"unknown"`` where the time limit was met first.
    chip_of
        ``[V] int32``, -1 for replicable ops; None unless solved.
    build_s, solve_s
        CPU time to write the model down in Python, and that CP-SAT took.
    """

    outcome: Outcome
    chip_of: Int32 | None
    build_s: float
    solve_s: float


def find_partition(
    problem: Problem,
    seed: int,
    time_s: float,
    hint: Int32 | None = None,
    *,
    num_used: int | None = None,
    helped: bool = False,
) -> Answer:
    """Return a valid partition of ``problem``, or the proof that there is none.

    Parameters
    ----------
    seed
        CP-SAT's own seed.
    time_s
        Limit of its wall time, not counting that to build the model; it gets one core.
    hint
        ``[V] int32``: where its search looks first.
    num_used
        Exactly so many chips are to be used; None leaves it open. Read where no chip
        may be skipped.
    helped
        Also state what follows from the triangle rule for blocks on a path beside an
        edge: it makes CP-SAT several times as fast on large graphs.

    Raises
    ------
    InputError
        The package has the rule ``memory``, which the model leaves out.
    """
    if problem.package_arrays.memory:
        raise InputError(
            f"package {problem.package.name!r} has the rule 'memory', which the CP-SAT "
            "model does not have: take it off the package's rules"
        )
    began = time.process_time()
    model = _RuleModel(problem, num_used)
    if helped and problem.package_arrays.triangle:
        model.help()
    if hint is not None:
        model.hint(problem.blocks.contract(hint))
    build_s = time.process_time() - began
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_time_in_seconds = time_s
    began = time.process_time()
    status = solver.solve(model.model)
    solve_s = time.process_time() - began
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        chip_of = problem.blocks.expand(model.chips(solver))
        return Answer("solved", chip_of, build_s, solve_s)
    outcome: Outcome = "infeasible" if status == cp_model.INFEASIBLE else "unknown"
    return Answer(outcome, None, build_s, solve_s)


class _RuleModel:
    """A CP-SAT model of the rules over the blocks of a problem."""

    def __init__(self, problem: Problem, num_used: int | None) -> None:
        self.model = cp_model.CpModel()
        self._arrays = problem.blocks.arrays
        self._num_blocks = problem.blocks.num_blocks
        self._num_chips = problem.num_chips
        self._place()
        self._keep_user_rules()
        for u, v in _edges(self._arrays):
            for c in range(self._num_chips):
                self.model.add_implication(self._up_to[v][c], self._up_to[u][c])
        if problem.package_arrays.no_skip or problem.user.all_chips:
            least = self._num_chips if problem.user.all_chips else num_used or 0
            self._use_prefix(least, num_used or self._num_chips)
        if problem.package_arrays.triangle:
            self._keep_triangle()

    def help(self) -> None:
        """State for each edge u -> v and w on another path: f(w) is f(u) or f(v).

        Anywhere else the path over w would be a longer one beside the arc. In the order
        encoding: f(w) <= f(u) or f(w) >= f(v).
        """
        add = self.model.add_bool_or
        for u, v, w in _bypassed(self._arrays):
            first = self.model.new_bool_var("")
            for c in range(self._num_chips):
                add(~first, ~self._up_to[u][c], self._up_to[w][c])
                add(first, ~self._up_to[w][c], self._up_to[v][c])

    def hint(self, chip_of: Int32) -> None:
        """Suggest a chip for each block."""
        for n, chip in enumerate(chip_of.tolist()):
            for c in range(self._num_chips - 1):
                self.model.add_hint(self._up_to[n][c], chip <= c)

    def chips(self, solver: cp_model.CpSolver) -> Int32:
        """Return the chip of each block, ``[N] int32``."""
        rows = [[solver.boolean_value(on) for on in row] for row in self._on]
        return np.array([row.index(True) for row in rows], dtype=np.int32)

    def _place(self) -> None:
        """Give each block one chip."""
        model, last = self.model, self._num_chips - 1
        always = model.new_constant(True)
        self._up_to = [
            [*(model.new_bool_var("") for _ in range(last)), always]
            for _ in range(self._num_blocks)
        ]
        self._on = []
        for up_to in self._up_to:
            on = [up_to[0], *(model.new_bool_var("") for _ in range(last))]
            for c in range(1, last + 1):
                model.add_implication(up_to[c - 1], up_to[c])
                model.add_implication(on[c], up_to[c])
                model.add_implication(on[c], ~up_to[c - 1])
                model.add_bool_or(~up_to[c], up_to[c - 1], on[c])
            self._on.append(on)

    def _keep_user_rules(self) -> None:
        for n in np.flatnonzero(self._arrays.pin >= 0).tolist():
            self.model.add_bool_or(self._on[n][self._arrays.pin[n]])
        for u, v in self._arrays.apart.tolist():
            for c in range(self._num_chips):
                self.model.add_bool_or(~self._on[u][c], ~self._on[v][c])

    def _use_prefix(self, least: int, most: int) -> None:
        """Use the chips 0, 1, ... without a gap, from ``least`` to ``most`` of them."""
        used = [self.model.new_bool_var("") for _ in range(self._num_chips)]
        for c in range(self._num_chips):
            self.model.add_bool_or(~used[c], *(row[c] for row in self._on))
            for row in self._on:
                self.model.add_implication(row[c], used[c])
            if c > 0:
                self.model.add_implication(used[c], used[c - 1])
            if c < least:
                self.model.add_bool_or(used[c])
            if c >= most:
                self.model.add_bool_or(~used[c])

    def _keep_triangle(self) -> None:
        model, add = self.model, self.model.add_bool_or
        num_chips = self._num_chips
        pairs = [(a, b) for a in range(num_chips) for b in range(a + 1, num_chips)]
        arc = {pair: model.new_bool_var("") for pair in pairs}
        path = {pair: model.new_bool_var("") for pair in pairs}
        for a, b in pairs:
            model.add_implication(arc[a, b], path[a, b])
            for c in range(b + 1, num_chips):
                add(~path[a, b], ~path[b, c], path[a, c])
                add(~path[a, b], ~path[b, c], ~arc[a, c])
        for u, v in _edges(self._arrays):
            for a, b in pairs:
                add(~self._on[u][a], ~self._on[v][b], arc[a, b])


def _edges(arrays: BlockArrays) -> Iterator[tuple[int, int]]:
    """Give the data edges between blocks."""
    for u in range(arrays.first_op.size):
        for v in arrays.succ[arrays.succ_ptr[u] : arrays.succ_ptr[u + 1]].tolist():
            yield u, v


def _bypassed(arrays: BlockArrays) -> Iterator[tuple[int, int, int]]:
    """Give each edge u -> v with each block w on another path u ~> w ~> v."""
    num_blocks = arrays.first_op.size
    # Sets of blocks as the bits of Python integers; blocks stand in topological order.
    below, above = [0] * num_blocks, [0] * num_blocks
    edges = list(_edges(arrays))
    for u, v in reversed(edges):
        below[u] |= below[v] | 1 << v
    for u, v in sorted(edges, key=lambda edge: edge[1]):
        above[v] |= above[u] | 1 << u
    for u, v in edges:
        between = below[u] & above[v]
        while between:
            w = between.bit_length() - 1
            between ^= 1 << w
            yield u, v, w
