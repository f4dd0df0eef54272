"""Depth-first search over the domains, and the draws of the two modes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._bits import (
    NO_CHIPS,
    ONE,
    at_least,
    at_most,
    bit,
    highest,
    is_single,
    lowest,
    num_chips_in,
)
from mcmpart._jit import inner, leaf
from mcmpart._rng import next_below, next_unit
from mcmpart.graph.graph import Float64, Int32
from mcmpart.solver._arrays import Domains, Rules, UInt64
from mcmpart.solver._propagate import propagate
from mcmpart.solver._trail import mark, restrict, undo

# Outcomes of a search.
SOLVED = 0
OUT_OF_BUDGET = 1
IMPOSSIBLE = 2

# What decides the chip of an open block.
SAMPLE = 0
FIX_NEAREST = 1
FIX_RANDOM = 2


class Wish(NamedTuple):
    """Where the blocks would like to stand.

    Attributes
    ----------
    mode
        ``SAMPLE``, ``FIX_NEAREST`` or ``FIX_RANDOM``.
    weights
        ``[N, C] float64``, not negative: chances of the chips; ``[0, 0]`` for equal
        ones. Read in SAMPLE mode.
    uniform_share
        Share of the draws that ignore the weights.
    candidate
        ``[N] int32``: the partition to correct. Read in FIX mode.
    """

    mode: int
    weights: Float64
    uniform_share: float
    candidate: Int32


@leaf
def search(
    rules: Rules,
    domains: Domains,
    order: Int32,
    wish: Wish,
    max_conflicts: int,
    full: bool,
    resume: bool,
    state: UInt64,
) -> tuple[int, int]:
    """Decide one block after the other, and go back where the rules contradict.

    In FIX mode the order is walked twice: first every block keeps the chip it has in
    the candidate wherever that is still possible, then the open ones get another.

    Parameters
    ----------
    domains
        Reset, or as an earlier search left it.
    order
        ``[N] int32``: the blocks in the order of decision.
    max_conflicts
        Give up after more contradictions that taking the last decision back did not
        resolve.
    full
        Whether all rules run.
    resume
        Take the solution in ``domains`` for a contradiction and look for the next.
    state
        ``[1] uint64``, the random state; changed.

    Returns
    -------
    outcome, num_conflicts
        ``SOLVED``, ``OUT_OF_BUDGET`` or, if every decision was refuted, ``IMPOSSIBLE``.
    """
    num_blocks = order.size
    at = num_blocks if wish.mode == SAMPLE else 0
    num_conflicts = 0
    consistent = not resume
    refuting = resume
    while True:
        if consistent and propagate(rules, domains, full):
            at = _next_open(at, order, wish, domains)
            if at == 2 * num_blocks:
                return SOLVED, num_conflicts
            n = int(order[at % num_blocks])
            if at < num_blocks:
                chip = wish.candidate[n]
            else:
                chip = choose_chip(n, domains.block[n].chips, wish, state)
            mark(n, bit(chip), at, domains)
            refuting = False
            consistent = restrict(n, bit(chip), rules, domains)
        else:
            num_conflicts += refuting
            refuting = True
            if domains.now[0].num_decisions == 0:
                return IMPOSSIBLE, num_conflicts
            if num_conflicts > max_conflicts:
                return OUT_OF_BUDGET, num_conflicts
            level = undo(rules, domains)
            at = domains.decision[level].at
            consistent = _refute(level, rules, domains)


@leaf
def decide(
    n: int, chips: np.uint64, rules: Rules, domains: Domains, full: bool
) -> bool:
    """Restrict block ``n`` to some of its chips, and go back where that contradicts.

    Afterwards ``now.num_decisions`` tells how many decisions still stand. False if
    every decision was refuted and the rules contradict each other nevertheless.
    """
    mark(n, chips, 0, domains)
    consistent = restrict(n, chips, rules, domains)
    while not (consistent and propagate(rules, domains, full)):
        if domains.now[0].num_decisions == 0:
            return False
        consistent = _refute(undo(rules, domains), rules, domains)
    return True


@inner
def _refute(level: int, rules: Rules, domains: Domains) -> bool:
    """Take the chips of a decision, just undone, from its block."""
    others = ~domains.decision[level].chips
    return restrict(int(domains.decision[level].block), others, rules, domains)


@inner
def _next_open(at: int, order: Int32, wish: Wish, domains: Domains) -> int:
    """Return the next position at which there is something to decide."""
    num_blocks = order.size
    while at < num_blocks:
        n = int(order[at])
        c = wish.candidate[n]
        chips = domains.block[n].chips
        wanted = bit(c) if 0 <= c < domains.graph.size else NO_CHIPS
        if chips & wanted and not is_single(chips):
            return at
        at += 1
    while at < 2 * num_blocks and is_single(
        domains.block[order[at - num_blocks]].chips
    ):
        at += 1
    return at


@inner
def choose_chip(n: int, chips: np.uint64, wish: Wish, state: UInt64) -> int:
    """Return the chip of a mask, not empty, that block ``n`` would like."""
    if wish.mode == FIX_NEAREST:
        return _nearest(chips, wish.candidate[n])
    weighted = wish.mode == SAMPLE and wish.weights.size > 0
    if weighted and next_unit(state) >= wish.uniform_share:
        return _draw(n, chips, wish.weights, state)
    return _draw_evenly(chips, state)


@inner
def _nearest(chips: np.uint64, wanted: int) -> int:
    """Return the chip of a mask nearest to ``wanted``; the lower of two."""
    wanted = min(max(wanted, 0), 63)
    below = highest(chips & at_most(wanted))
    above = lowest(chips & at_least(wanted))
    if above == 64 or (below >= 0 and wanted - below <= above - wanted):
        return below
    return above


@inner
def _draw_evenly(chips: np.uint64, state: UInt64) -> int:
    for _ in range(next_below(state, num_chips_in(chips))):
        chips &= chips - ONE
    return lowest(chips)


@inner
def _draw(n: int, chips: np.uint64, weights: Float64, state: UInt64) -> int:
    """Draw by the weights of the possible chips; evenly where they are all zero."""
    total = 0.0
    rest = chips
    while rest:
        total += weights[n, lowest(rest)]
        rest &= rest - ONE
    if total <= 0.0:
        return _draw_evenly(chips, state)
    left = next_unit(state) * total
    rest = chips
    last = lowest(rest)
    while rest:
        c = lowest(rest)
        rest &= rest - ONE
        if weights[n, c] > 0.0:
            last = c
            left -= weights[n, c]
            if left < 0.0:
                break
    return last
