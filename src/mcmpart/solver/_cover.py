"""Rule "no_skip": the chips that must be used can all be used at once."""

from __future__ import annotations

import numpy as np

from mcmpart._bits import NO_CHIPS, ONE, bit, is_single, lowest, num_chips_in
from mcmpart._jit import inner, leaf
from mcmpart.solver._arrays import Domains, Rules
from mcmpart.solver._trail import restrict

NOBODY = 64
"""No chip is matched to the block."""


@inner
def cover_chips(rules: Rules, domains: Domains) -> bool:
    """Check that distinct open blocks can fill the required chips still empty.

    A chip that only one block can fill gets it. If at most k empty chips are open to
    k blocks or fewer, for each k, they can be filled in the order of scarcity;
    otherwise a matching decides (Hall's theorem).
    """
    empty = domains.now[0].required & ~domains.now[0].covered
    if empty == NO_CHIPS:
        return True
    num_empty = num_chips_in(empty)
    scarce = NO_CHIPS
    num_open = 0
    for c in range(rules.memory_bytes.size):
        num_open += domains.chip[c].cover
        domains.chip[c].num_open = num_open
        if not empty & bit(c):
            continue
        if num_open == 0:
            return False
        if num_open == 1:
            return _give(c, rules, domains)
        if num_open < num_empty:
            scarce |= bit(c)
    return not _is_tight(scarce, domains) or _can_match(empty, domains)


@inner
def _is_tight(scarce: np.uint64, domains: Domains) -> bool:
    """Return whether more than k of the chips are open to k blocks or fewer."""
    rest = scarce
    while rest:
        num_open = domains.chip[lowest(rest)].num_open
        rest &= rest - ONE
        others = scarce
        num_scarcer = 0
        while others:
            num_scarcer += domains.chip[lowest(others)].num_open <= num_open
            others &= others - ONE
        if num_scarcer > num_open:
            return True
    return False


@leaf
def _give(c: int, rules: Rules, domains: Domains) -> bool:
    """Give chip ``c`` the one block that can stand there."""
    for n in range(domains.block.size):
        if domains.block[n].chips & bit(c):
            return restrict(n, bit(c), rules, domains)
    return False


@leaf
def _can_match(empty: np.uint64, domains: Domains) -> bool:
    """Return whether each empty chip can get an open block of its own."""
    for c in range(64):
        domains.match[c].block = -1
    rest = empty
    for n in range(domains.block.size):
        domains.holder[n] = NOBODY
        chips = domains.block[n].chips & rest
        if chips and not is_single(domains.block[n].chips):
            c = lowest(chips)
            domains.match[c].block = n
            domains.holder[n] = c
            rest &= ~bit(c)
    while rest:
        if not _augment(lowest(rest), domains):
            return False
        rest &= rest - ONE
    return True


@inner
def _augment(start: int, domains: Domains) -> bool:
    """Match chip ``start`` too, by moving blocks along an alternating path."""
    seen = bit(start)
    frontier = seen
    while frontier:
        c = lowest(frontier)
        frontier &= frontier - ONE
        for n in range(domains.block.size):
            if not domains.block[n].chips & bit(c) or is_single(domains.block[n].chips):
                continue
            held = domains.holder[n]
            if held == NOBODY:
                _shift(n, c, start, domains)
                return True
            if not seen & bit(held):
                seen |= bit(held)
                frontier |= bit(held)
                domains.match[held].came_from = c
    return False


@inner
def _shift(n: int, c: int, start: int, domains: Domains) -> None:
    """Give ``n`` to ``c``, the block of ``c`` to the chip before, up to ``start``."""
    while True:
        displaced = domains.match[c].block
        domains.match[c].block = n
        domains.holder[n] = c
        if c == start:
            return
        n = displaced
        c = domains.match[c].came_from
