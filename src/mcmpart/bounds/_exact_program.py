"""The whole problem as one mixed integer program, every rule in it.

Axis letters: N blocks, T cut tensors, J shared items, C chips (those worth using).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from mcmpart._highs import Program
from mcmpart.blocks import Blocks, item_bytes, own_bytes
from mcmpart.bounds._exact_columns import ExactProgram, Terms
from mcmpart.bounds._exact_memory import add_live_tensors
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem, unmerged_blocks

ROOM = 1e3
"""About what the bottleneck is, in the program's unit of time, and the capacity of a
chip, in that of memory."""

MOST_TERMS = 3_000_000
"""Size up to which a program is made: some 3 s and 300 MB."""


def num_terms(problem: Problem, blocks: Blocks) -> int:
    """Return about how many coefficients the program has."""
    arrays, num_chips = blocks.arrays, problem.num_chips
    uses = arrays.consumer.size
    terms = num_chips * (8 * uses + 8 * blocks.num_blocks + 4 * arrays.user.size)
    if problem.package_arrays.triangle:
        terms += 5 * arrays.succ.size * num_chips**2 // 2
    return terms


def exact_program(
    problem: Problem,
    most_s: float = np.inf,
    is_late: Callable[[], bool] = lambda: False,
) -> ExactProgram | None:
    """Return the program of all partitions of at most ``most_s`` seconds.

    None if ``is_late`` says so before it is made.

    Notes
    -----
    A bound of it is one of the problem. Solutions obey every rule up to the tolerance
    of the solver, so that they are to be judged all the same.

    Where all chips and hops are alike and none is pinned, an empty chip may as well be
    a trailing one: moving what stands behind it down by one chip changes no stage, and
    the hops on its two sides carry the same.
    """
    return _Builder(problem, most_s).build(is_late)


class _Builder:
    """Adds the columns and rows, rule by rule."""

    def __init__(self, problem: Problem, most_s: float) -> None:
        self._problem = problem
        self._package = problem.package_arrays
        self._blocks = unmerged_blocks(problem)
        self._arrays = self._blocks.arrays
        self._most_s = most_s
        user = problem.user
        is_dense = self._package.no_skip or user.all_chips or problem.chips_are_alike
        self._dense = is_dense
        self._num_chips = problem.num_chips
        if is_dense and not user.pins and not user.all_chips:
            self._num_chips = max(1, min(problem.num_chips, self._blocks.num_blocks))
        self._program = Program(maximise=False)
        self._used = self._columns(1)[0] if self._dense else []
        self._compute: list[Terms] = [[] for _ in range(self._num_chips)]
        self._bytes: list[Terms] = [[] for _ in range(self._num_chips)]
        self._stored: list[Terms] = [[] for _ in range(self._num_chips)]
        self._hops: list[Terms] = [[] for _ in range(self._num_chips)]

    def build(self, is_late: Callable[[], bool]) -> ExactProgram | None:
        """Return the program, or None if it is late before that is made."""
        unit_s = _unit_s(self._problem, self._most_s)
        self._exact = ExactProgram(
            self._program,
            self._blocks,
            self._place_blocks(),
            self._program.real(
                1.0,
                low=simple_bound_s(self._problem) * (1 - 1e-9) / unit_s,
                high=self._most_s / unit_s,
            ),
            unit_s,
        )
        self._add_chip_rules()
        self._add_blocks()
        self._add_items()
        for t in range(self._arrays.tensor_bytes.size):
            if is_late():
                return None
            self._add_tensor(t)
        self._add_times()
        if self._package.triangle and not self._add_triangle(is_late):
            return None
        if self._package.memory:
            self._add_memory()
        return self._exact

    def _columns(self, count: int) -> list[list[int]]:
        """Return ``count`` rows of continuous columns in [0, 1], one per chip."""
        return [
            [self._program.real(high=1.0) for _ in range(self._num_chips)]
            for _ in range(count)
        ]

    def _place_blocks(self) -> Int32:
        """Add dataflow and pins; return the prefix columns."""
        program, num_blocks = self._program, self._blocks.num_blocks
        prefix = np.empty((num_blocks, self._num_chips + 1), dtype=np.int32)
        prefix[:, 0] = program.binary(high=0)
        prefix[:, -1] = program.binary(low=1)
        for n, pin in enumerate(self._arrays.pin.tolist()):
            for c in range(1, self._num_chips):
                low, high = (0, 1) if pin < 0 else (int(pin < c), int(pin < c))
                prefix[n, c] = program.binary(low=low, high=high)
                program.row([(prefix[n, c], 1.0), (prefix[n, c - 1], -1.0)], low=0.0)
            for s in self._successors(n):
                assert n < s, "blocks stand in a topological order"
        for n in range(num_blocks):
            for s in self._successors(n):
                for c in range(1, self._num_chips):
                    program.row([(prefix[n, c], 1.0), (prefix[s, c], -1.0)], low=0.0)
        return prefix

    def _successors(self, n: int) -> list[int]:
        ptr = self._arrays.succ_ptr
        return list(self._arrays.succ[ptr[n] : ptr[n + 1]].tolist())

    def _crosses(self, a: int, b: int, c: int, d: int) -> Terms:
        """Return an expression: 1 iff block a stands below chip c and b not below d.

        For an edge a -> b and c <= d; else it is 0 or less.
        """
        prefix = self._exact.prefix
        return [(int(prefix[a, c]), 1.0), (int(prefix[b, d]), -1.0)]

    def _add_chip_rules(self) -> None:
        """Add no_skip, all_chips and apart."""
        on_chip, num_blocks = self._exact.on_chip, self._blocks.num_blocks
        for c, used in enumerate(self._used):
            everyone = [term for n in range(num_blocks) for term in on_chip(n, c)]
            low = 1.0 if self._problem.user.all_chips else 0.0
            self._program.row([*everyone, (used, -1.0)], low=0.0)
            self._program.row([(used, 1.0)], low=low)
            if c:
                self._program.row([(self._used[c - 1], 1.0), (used, -1.0)], low=0.0)
            for n in range(num_blocks):
                if not self._successors(n):
                    below = int(self._exact.prefix[n, c])
                    self._program.at_least(used, [(below, -1.0)], 1.0)
        for a, b in self._arrays.apart.tolist():
            for c in range(self._num_chips):
                self._program.row([*on_chip(a, c), *on_chip(b, c)], high=1.0)

    def _add_blocks(self) -> None:
        arrays = self._arrays
        moved = arrays.host_bytes + arrays.output_bytes
        for n in range(self._blocks.num_blocks):
            for c in range(self._num_chips):
                here = self._exact.on_chip(n, c)
                seconds = arrays.block_s[self._package.chip_class[c], n]
                self._compute[c] += _times(here, seconds)
                self._bytes[c] += _times(here, moved[n])
                self._stored[c] += _times(here, own_bytes(arrays)[n] - 2 * moved[n])

    def _add_items(self) -> None:
        """Add what all users of one chip pay once."""
        arrays = self._arrays
        stored = item_bytes(arrays) - 2 * arrays.item_host_bytes
        for j, columns in enumerate(self._columns(arrays.item_host_bytes.size)):
            users = arrays.user[arrays.user_ptr[j] : arrays.user_ptr[j + 1]].tolist()
            for c, column in enumerate(columns):
                for n in users:
                    self._program.at_least(column, self._exact.on_chip(n, c))
                seconds = arrays.item_s[self._package.chip_class[c], j]
                self._compute[c].append((column, seconds))
                self._bytes[c].append((column, float(arrays.item_host_bytes[j])))
                self._stored[c].append((column, float(stored[j])))

    def _add_tensor(self, t: int) -> None:
        """Add the traffic of a tensor in and out of each chip, and over each hop."""
        arrays = self._arrays
        size = float(arrays.tensor_bytes[t])
        u = int(arrays.tensor_producer[t])
        readers = arrays.consumer[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]
        relay, is_output = self._package.relay, bool(arrays.tensor_is_output[t])
        last = self._num_chips - 1
        for c in range(self._num_chips):
            received, sent, hop = (self._program.real(high=1.0) for _ in range(3))
            for v in readers.tolist():
                here, home = self._exact.on_chip(v, c), self._exact.on_chip(u, c)
                if c > 0:
                    self._program.at_least(received, here + _minus(home))
                if c < last and not is_output:
                    self._program.at_least(sent, home + _minus(here))
                if c < last:
                    self._program.at_least(hop, self._crosses(u, v, c + 1, c + 1))
                if relay and 0 < c < last:
                    passing, low = self._crosses(u, v, c, c + 1), 0.0
                    if not self._dense:
                        passing, low = [*passing, (self._occupied()[c], 1.0)], -1.0
                    self._program.at_least(received, passing, low)
                    self._program.at_least(sent, passing, low)
            self._bytes[c] += [(received, size), (sent, size)]
            self._hops[c].append((hop, size))

    def _occupied(self) -> list[int]:
        """Return columns that are 1 where a chip has an op, made when first needed."""
        if not self._used:
            self._used = self._columns(1)[0]
            for n in range(self._blocks.num_blocks):
                for c, used in enumerate(self._used):
                    self._program.at_least(used, self._exact.on_chip(n, c))
        return self._used

    def _add_times(self) -> None:
        package, unit_s = self._package, self._exact.unit_s
        for c in range(self._num_chips):
            compute = _times(self._compute[c], 1 / unit_s)
            transfer = _times(self._bytes[c], 1 / unit_s / package.io_bytes_per_s[c])
            if package.serial_io:
                self._program.at_least(self._exact.bottleneck, compute + transfer)
            else:
                self._program.at_least(self._exact.bottleneck, compute)
                self._program.at_least(self._exact.bottleneck, transfer)
            if package.link_limit and c < self._num_chips - 1:
                hop = _times(self._hops[c], 1 / unit_s / package.hop_bytes_per_s[c])
                self._program.at_least(self._exact.bottleneck, hop)

    def _add_triangle(self, is_late: Callable[[], bool]) -> bool:
        """Add the arcs of the chip graph, what they reach, and the rule.

        False if it is late before that is done.
        """
        program, num_chips = self._program, self._num_chips
        arc, reach = self._columns(num_chips), self._columns(num_chips)
        for n in range(self._blocks.num_blocks):
            if is_late():
                return False
            for s in self._successors(n):
                for a in range(num_chips):
                    for b in range(a + 1, num_chips):
                        both = self._exact.on_chip(n, a) + self._exact.on_chip(s, b)
                        self._program.at_least(arc[a][b], both, -1.0)
        for a in range(num_chips):
            for b in range(a + 1, num_chips):
                self._program.at_least(reach[a][b], [(arc[a][b], 1.0)])
                for c in range(a + 1, b):
                    path = [(arc[a][c], 1.0), (reach[c][b], 1.0)]
                    self._program.at_least(reach[a][b], path, -1.0)
                    program.row([(arc[a][b], 1.0), *path], high=2.0)
        return True

    def _add_memory(self) -> None:
        """Add weights, double buffers and live tensors, where they might not fit."""
        graph, arrays = self._problem.graph, self._arrays
        most = int(own_bytes(arrays).sum() + item_bytes(arrays).sum())
        most += int(4 * arrays.tensor_bytes.sum() + graph.tensor_bytes.sum())
        if most <= int(self._package.memory_bytes.min()):
            return
        for c in range(self._num_chips):
            # An empty chip of no memory at all must stay possible.
            capacity = max(float(self._package.memory_bytes[c]), 1.0)
            peak = add_live_tensors(self._problem, self._exact, c, capacity / ROOM)
            need = self._stored[c] + _times(self._bytes[c], 2.0)
            # What does not fit alone need not be told apart, and large coefficients
            # have cost a solver its right answer.
            need = [
                (i, float(np.clip(a, -2 * capacity, 2 * capacity))) for i, a in need
            ]
            fits = _times(need, ROOM / capacity) + peak
            self._program.row(
                fits, high=ROOM * self._package.memory_bytes[c] / capacity
            )


def _unit_s(problem: Problem, most_s: float) -> float:
    """Return what makes the bottleneck some ``ROOM`` units."""
    arrays, package = problem.ops.arrays, problem.package_arrays
    if np.isfinite(most_s):
        return most_s / ROOM if most_s > 0 else 1.0
    moved = float(arrays.host_bytes.sum() + arrays.output_bytes.sum())
    shared_s = moved / float(package.io_bytes_per_s.sum())
    guess_s = max(simple_bound_s(problem), shared_s)
    moved_bytes = arrays.tensor_bytes[arrays.tensor_bytes > 0]
    if guess_s == 0 and moved_bytes.size:
        # Only traffic between chips costs: then one tensor at least, or nothing.
        rates = np.concatenate([package.io_bytes_per_s, package.hop_bytes_per_s])
        guess_s = float(moved_bytes.min() / rates.max())
    return guess_s / ROOM if guess_s > 0 else 1.0


def _times(terms: Iterable[tuple[int, float]], factor: float) -> Terms:
    return [(column, coefficient * float(factor)) for column, coefficient in terms]


def _minus(terms: Terms) -> Terms:
    return _times(terms, -1.0)
