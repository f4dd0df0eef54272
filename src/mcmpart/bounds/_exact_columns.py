"""The columns of the exact program, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcmpart._highs import Program
from mcmpart.blocks import Blocks
from mcmpart.graph.graph import Int32

Terms = list[tuple[int, float]]
"""A linear expression: columns and their coefficients."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactProgram:
    """The program and what its columns mean.

    Attributes
    ----------
    program
        Minimises the column ``bottleneck``.
    blocks
        What is placed: one op a block, but for groups.
    prefix
        ``[N, C + 1] int32``: entry (n, c) is the column that is 1 iff the chip of block
        n is below c.
    bottleneck
        The column of the slowest stage or hop, in units of ``unit_s`` seconds.
    """

    program: Program
    blocks: Blocks
    prefix: Int32
    bottleneck: int
    unit_s: float

    def on_chip(self, n: int, c: int) -> Terms:
        """Return an expression that is 1 iff block n is on chip c, and else 0."""
        return [(int(self.prefix[n, c + 1]), 1.0), (int(self.prefix[n, c]), -1.0)]

    def chip_of(self, values: NDArray[np.float64]) -> Int32:
        """Return the chip of each op, ``[V] int32``, in a solution."""
        below = values[self.prefix[:, 1:-1]] > 0.5
        chip_of_block = (~below).sum(axis=1).astype(np.int32)
        return self.blocks.expand(chip_of_block)

    def forbid(self, chip_of: Int32) -> None:
        """Add a row that the partition ``[V] int32``, and no other, breaks."""
        terms: Terms = []
        chip_of_block = self.blocks.contract(chip_of).tolist()
        for n, c in enumerate(chip_of_block):
            terms += self.on_chip(n, c)
        self.program.row(terms, high=len(chip_of_block) - 1)
