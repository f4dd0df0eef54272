"""The live tensors of each chip, op by op, as columns and rows of the exact program."""

from __future__ import annotations

import numpy as np

from mcmpart.blocks import replica_readers
from mcmpart.bounds._exact_columns import ExactProgram, Terms
from mcmpart.graph.graph import HOST
from mcmpart.problem import Problem

MOST_TERMS = 300_000
"""Beyond this size the live tensors are left out, which keeps a bound valid."""

MOST_UNITS = 2e3
"""Tensors count no more than this, which is more than a chip has room for."""


def add_live_tensors(
    problem: Problem, exact: ExactProgram, c: int, unit_bytes: float
) -> Terms:
    """Add the largest sum of live tensors of chip c; return it in ``unit_bytes``.

    A tensor is live at an op if the chip computes it no later and reads it no earlier.
    Ops of other chips count too: what is live while they run was so before.

    Returns
    -------
    list
        Empty where there would be too many rows.
    """
    live_at = _live_at(problem)
    if problem.num_chips * sum(map(len, live_at)) > MOST_TERMS:
        return []
    live = _Chip(problem, exact, c).live()
    size = np.minimum(problem.graph.tensor_bytes / unit_bytes, MOST_UNITS)
    peak = exact.program.real()
    for tensors in live_at:
        terms = [(peak, 1.0)]
        for t, use in tensors:
            terms += [(i, -float(size[t]) * factor) for i, factor in live[t, use]]
        if len(terms) > 1:
            exact.program.row(terms, low=0.0)
    return [(peak, 1.0)]


def _live_at(problem: Problem) -> list[list[tuple[int, int]]]:
    """Return for each op the tensors that may be live, each with its next use.

    That is the op itself for what it writes, and else the first reader from there on.
    """
    graph = problem.graph
    live_at: list[list[tuple[int, int]]] = [[] for _ in range(graph.num_ops)]
    for t, producer in enumerate(graph.tensor_producer.tolist()):
        if producer == HOST:
            continue
        done = producer - 1
        for use in (producer, *graph.consumers.row(t).tolist()):
            for op in range(done + 1, use + 1):
                live_at[op].append((t, use))
            done = use
    return live_at


class _Chip:
    """Where ops and tensors are, on one chip."""

    def __init__(
        self,
        problem: Problem,
        exact: ExactProgram,
        c: int,
    ) -> None:
        self._graph = problem.graph
        self._exact = exact
        self._program = exact.program
        self._c = c
        readers = replica_readers(problem.graph, exact.blocks.block_of)
        self._copy = {op: self._any_of(blocks) for op, blocks in readers.items()}

    def live(self) -> dict[tuple[int, int], Terms]:
        """Return an expression that is at least 1 if a tensor is used here from an op.

        That is, if its producer and that op, or a later reader, are on the chip; keys
        are tensor and op, which writes or reads it.
        """
        live: dict[tuple[int, int], Terms] = {}
        for t, producer in enumerate(self._graph.tensor_producer.tolist()):
            if producer == HOST:
                continue
            live[t, producer] = home = self._on_chip(producer)
            # Who reads a replica on a chip has its copy there.
            given = [] if producer in self._copy else home
            later: Terms = []
            for reader in self._graph.consumers.row(t).tolist()[::-1]:
                column = self._program.real(high=1.0)
                use = [*given, *self._on_chip(reader)]
                self._program.at_least(column, use, -1.0 if given else 0.0)
                self._program.at_least(column, later, 0.0)
                live[t, reader] = later = [(column, 1.0)]
        return live

    def _on_chip(self, op: int) -> Terms:
        if op in self._copy:
            return [(self._copy[op], 1.0)]
        return self._exact.on_chip(int(self._exact.blocks.block_of[op]), self._c)

    def _any_of(self, blocks: frozenset[int]) -> int:
        column = self._program.real(high=1.0)
        for n in sorted(blocks):
            self._program.at_least(column, self._exact.on_chip(n, self._c), 0.0)
        return column
