"""Partition: which chip runs which op."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcmpart.blocks import replica_readers
from mcmpart.errors import InputError
from mcmpart.graph.graph import Graph, Int32, frozen

NO_CHIP = -1
"""Chip of a replicable op: every chip that needs it computes it."""


def chip_numbers(values: ArrayLike) -> Int32:
    """Return ``values`` as a new int32 array, cut off at the ends of its range.

    Raises
    ------
    InputError
        They are not whole numbers.
    """
    given = np.asarray(values)
    if given.size == 0:
        return given.astype(np.int32)
    if given.dtype.kind not in "iu":
        raise InputError(f"chip_of holds {given.dtype} values: give whole chip numbers")
    known, kept = np.iinfo(given.dtype), np.iinfo(np.int32)
    low, high = max(known.min, kept.min), min(known.max, kept.max)
    chips: Int32 = np.clip(given, low, high).astype(np.int32)
    return chips


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """An assignment of the ops of ``graph`` to chips.

    Attributes
    ----------
    graph
        The graph after the rewrites (:attr:`Problem.graph`).
    chip_of
        ``[V] int32``, read-only; ``NO_CHIP`` exactly for the replicable ops.

    Raises
    ------
    InputError
        ``chip_of`` has another length than the graph, a chip below 0, or is not of
        whole numbers.
    """

    graph: Graph
    chip_of: Int32

    def __post_init__(self) -> None:
        chip_of = chip_numbers(self.chip_of)
        if chip_of.shape != (self.graph.num_ops,):
            raise InputError(
                f"chip_of has shape {chip_of.shape}: give one chip for each of the "
                f"{self.graph.num_ops} ops of graph {self.graph.name!r}"
            )
        chip_of[self.graph.op_replicable] = NO_CHIP
        lost = np.flatnonzero((chip_of < 0) & ~self.graph.op_replicable)
        if lost.size:
            raise InputError(
                f"op {self.graph.op_name[lost[0]]!r} is on chip {chip_of[lost[0]]}: "
                "chips count from 0"
            )
        object.__setattr__(self, "chip_of", frozen(chip_of))

    @property
    def num_used_chips(self) -> int:
        """Number of chips with at least one op."""
        return np.unique(self.chip_of[self.chip_of >= 0]).size

    def by_name(self) -> dict[str, int]:
        """Return the chip of each op that is not replicable, by op name."""
        return {
            name: chip
            for name, chip in zip(
                self.graph.op_name, self.chip_of.tolist(), strict=True
            )
            if chip >= 0
        }

    def replicas(self) -> dict[int, list[str]]:
        """Return the names of the replicable ops that each chip computes."""
        placed: dict[int, list[str]] = {}
        each_op = np.arange(self.graph.num_ops, dtype=np.int32)
        readers = replica_readers(self.graph, each_op)
        for op in sorted(readers):
            for chip in sorted({int(self.chip_of[reader]) for reader in readers[op]}):
                placed.setdefault(chip, []).append(self.graph.op_name[op])
        return dict(sorted(placed.items()))
