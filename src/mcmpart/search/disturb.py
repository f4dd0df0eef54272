"""Disturbances: the moves of anneal, which leave it to FIX to make them valid."""

from __future__ import annotations

import numpy as np

from mcmpart.graph.graph import Bool, Float64, Int32, Int64
from mcmpart.problem import Problem

SHARES = (0.5, 0.375, 0.125)
"""Chances of a step, a split and a merge. Only steps and splits lead to new bests, but
no series of them empties a chip, which is what merges are for."""

SLOWEST_SHARE = 0.75
"""Share of the moves that take from the slowest chip. No other move lowers the
bottleneck at once; those keep the way to it open."""

LIGHTEST_SHARE = 0.5
"""Share of the merges that take the two neighbours with the least to do."""

OPENING_SHARE = 0.25
"""Share of the splits that merge nothing, and use one more chip."""

TAIL_SHARE = 0.5
"""Share of the groups that are a window of the order; the others are closures."""

MAX_CLOSURE = 32
"""Most blocks of a closure, as in ``local``."""


class Disturber:
    """Moves some blocks of a partition, by chance, to chips nearby.

    A move begins at a block and takes a group on its chip: going up, the block with
    some of its descendants there (the block alone included), or all blocks of the chip
    that stand at or behind it in the topological order; going down, ancestors and the
    blocks before it. The group then makes

    - a **step** to the next chip, up or down, or
    - a **split**: it gets a chip of its own beside the old one. Two neighbouring chips
      elsewhere become one and all chips in between shift by one, so that no more chips
      are used; or, now and then, all behind shift up.

    A **merge** joins two neighbouring chips, and all behind shift down.

    Parameters
    ----------
    rng
        Source of all choices; changed.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self._blocks = problem.blocks.arrays
        self._num_chips = problem.num_chips
        self._rng = rng

    def disturb(self, chip_of: Int32, load_s: Float64) -> Int32:
        """Return another placement of the blocks, ``[N] int32``, valid or not.

        Parameters
        ----------
        chip_of
            ``[N] int32``, at least one block.
        load_s
            ``[C] float64``: stage time of each chip, or of the hop behind it if that is
            longer.
        """
        kind = self._rng.random()
        if kind < SHARES[2]:
            moved = self._merge(chip_of, load_s)
        else:
            n = self._first_block(chip_of, load_s)
            up = self._is_lucky(0.5)
            group = self._group(n, up, chip_of)
            if kind < SHARES[2] + SHARES[1]:
                moved = self._split(int(chip_of[n]), group, up, chip_of, load_s)
            else:
                moved = chip_of.copy()
                moved[group] += 1 if up else -1
        return np.clip(moved, 0, self._num_chips - 1)

    def _is_lucky(self, chance: float) -> bool:
        return bool(self._rng.random() < chance)

    def _first_block(self, chip_of: Int32, load_s: Float64) -> int:
        if self._is_lucky(SLOWEST_SHARE):
            members = np.flatnonzero(chip_of == load_s.argmax())
            # A slow hop may start at a chip that stands empty.
            if members.size:
                return int(self._rng.choice(members))
        return int(self._rng.integers(chip_of.size))

    def _group(self, n: int, up: bool, chip_of: Int32) -> Int64:
        if self._is_lucky(TAIL_SHARE):
            members = np.flatnonzero(chip_of == chip_of[n])
            return members[members >= n] if up else members[members <= n]
        # Log-uniform: a fifth are single blocks, and half have six or more.
        limit = int(MAX_CLOSURE ** self._rng.random())
        return self._closure(n, up, limit, chip_of)

    def _closure(self, n: int, up: bool, limit: int, chip_of: Int32) -> Int64:
        """Return ``n`` and its nearest relatives on its chip, ``limit`` at most."""
        blocks, chip = self._blocks, chip_of[n]
        if up:
            ptr, near = blocks.succ_ptr, blocks.succ
        else:
            ptr, near = blocks.pred_ptr, blocks.pred
        group = [n]
        known = {n}
        for member in group:
            for other in near[ptr[member] : ptr[member + 1]].tolist():
                if len(group) == limit:
                    return np.array(group)
                if other not in known and chip_of[other] == chip:
                    known.add(other)
                    group.append(other)
        return np.array(group)

    def _split(
        self, chip: int, group: Int64, up: bool, chip_of: Int32, load_s: Float64
    ) -> Int32:
        """Return ``chip`` in two, and room made for the new one."""
        moves = np.zeros(chip_of.size, dtype=np.bool_)
        moves[group] = True
        here = chip_of == chip
        upper: Bool = here & (moves if up else ~moves)
        lower = here & ~upper
        pair = self._pair(chip_of, load_s)
        if pair < 0 or self._is_lucky(OPENING_SHARE):
            pair = self._num_chips
        moved = chip_of.copy()
        if pair >= chip:
            moved[(chip_of > chip) & (chip_of <= pair)] += 1
            moved[upper] = chip + 1
        else:
            moved[(chip_of > pair) & (chip_of < chip)] -= 1
            moved[lower] = chip - 1
        return moved

    def _merge(self, chip_of: Int32, load_s: Float64) -> Int32:
        moved = chip_of.copy()
        pair = self._pair(chip_of, load_s)
        if pair >= 0:
            moved[chip_of > pair] -= 1
        return moved

    def _pair(self, chip_of: Int32, load_s: Float64) -> int:
        """Return a chip to be merged with the next one, -1 if only chip 0 is used."""
        last = int(chip_of.max())
        if last == 0:
            return -1
        if self._is_lucky(LIGHTEST_SHARE):
            return int((load_s[:last] + load_s[1 : last + 1]).argmin())
        return int(self._rng.integers(last))
