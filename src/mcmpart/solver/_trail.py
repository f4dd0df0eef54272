"""Changing the domains, and undoing it."""

from __future__ import annotations

import numpy as np

from mcmpart._bits import (
    EVERY_CHIP,
    NO_CHIPS,
    at_most,
    bit,
    highest,
    is_single,
    lowest,
    run_end,
)
from mcmpart._jit import inner, leaf
from mcmpart.solver._arrays import (
    ABOVE,
    BELOW,
    FIXED,
    HIGHEST,
    LOWEST,
    Domains,
    Rules,
)
from mcmpart.solver._chip_graph import clear, restore


@leaf
def reset(row: int, rules: Rules, domains: Domains) -> None:
    """Start afresh with exactly ``row`` used chips, or any number if it is 0."""
    num_chips = rules.memory_bytes.size
    now = domains.now
    now[0].queue_first = now[0].queue_size = now[0].num_decisions = now[0].work = 0
    now[0].trail_size = now[0].num_saved = now[0].top = now[0].margin_bytes = 0
    now[0].stale = now[0].moved = now[0].required = NO_CHIPS
    now[0].covered = now[0].fuller = NO_CHIPS
    domains.chip[num_chips].cover = rules.root_cover[row, num_chips]
    for c in range(num_chips):
        domains.chip[c].cover = rules.root_cover[row, c]
        domains.chip[c].first_on = -1
        domains.chip[c].num_on = 0
        domains.chip[c].used_bytes = 0
        domains.chip[c].open_out = domains.chip[c].open_in = NO_CHIPS
        for j in range(domains.item_users.shape[0]):
            domains.item_users[j, c] = 0
        for d in range(num_chips):
            domains.bound_bytes[c, d] = 0
        clear(c, domains.graph)
    if rules.cover and row > 0:
        domains.now[0].required = at_most(row - 1)
    top = 0
    for n in range(domains.block.size):
        chips = rules.root[row, n]
        domains.block[n].chips = chips
        domains.paths[n].above = NO_CHIPS
        domains.paths[n].below = NO_CHIPS
        domains.block[n].changed = 0
        top = max(top, lowest(chips))
        _bind_bytes(n, chips, 1, rules, domains)
        if is_single(chips):
            _link(n, lowest(chips), rules, domains)
            notify(n, FIXED, domains)
    _raise_top(top, domains)


@inner
def notify(n: int, why: int, domains: Domains) -> None:
    """Put block ``n`` into the queue, or add ``why`` if it is there."""
    if domains.block[n].changed == 0:
        at = domains.now[0].queue_first + domains.now[0].queue_size
        if at >= domains.queue.size:
            at -= domains.queue.size
        domains.queue[at] = n
        domains.now[0].queue_size += 1
    domains.block[n].changed |= why


@inner
def take(domains: Domains) -> int:
    """Return the next block of the queue, which must not be empty."""
    first = domains.now[0].queue_first
    domains.now[0].queue_first = first + 1 if first + 1 < domains.queue.size else 0
    domains.now[0].queue_size -= 1
    domains.now[0].work += 1
    return int(domains.queue[first])


@inner
def restrict(n: int, allowed: np.uint64, rules: Rules, domains: Domains) -> bool:
    """Take from block ``n`` the chips not allowed; False if none is left."""
    old = domains.block[n].chips
    new = old & allowed
    if new == old:
        return True
    if new == NO_CHIPS:
        return False
    _record(n, old, domains)
    domains.block[n].chips = new
    _count_cover(old & ~new, 1, domains)
    _bind_bytes(n, old, -1, rules, domains)
    _bind_bytes(n, new, 1, rules, domains)
    why = 0
    low = lowest(new)
    if low != lowest(old):
        why |= LOWEST
        _raise_top(low, domains)
    if highest(new) != highest(old):
        why |= HIGHEST
    if is_single(new):
        why |= FIXED
        _link(n, low, rules, domains)
    if why:
        notify(n, why, domains)
    return True


@inner
def add_above(n: int, chips: np.uint64, domains: Domains) -> bool:
    """Note that ``chips`` reach block ``n``; True if that is news."""
    old = domains.paths[n].above
    if chips & ~old == NO_CHIPS:
        return False
    _record(n + domains.block.size, old, domains)
    domains.paths[n].above = old | chips
    notify(n, ABOVE, domains)
    return True


@inner
def add_below(n: int, chips: np.uint64, domains: Domains) -> bool:
    """Note that block ``n`` reaches ``chips``; True if that is news."""
    old = domains.paths[n].below
    if chips & ~old == NO_CHIPS:
        return False
    _record(n + 2 * domains.block.size, old, domains)
    domains.paths[n].below = old | chips
    notify(n, BELOW, domains)
    return True


@inner
def mark(n: int, chips: np.uint64, at: int, domains: Domains) -> None:
    """Begin a decision: block ``n`` to ``chips``, made at position ``at``."""
    level = domains.now[0].num_decisions
    domains.now[0].num_decisions = level + 1
    domains.decision[level].block = n
    domains.decision[level].chips = chips
    domains.decision[level].at = at
    domains.decision[level].trail_size = domains.now[0].trail_size
    domains.decision[level].num_saved = domains.now[0].num_saved
    domains.decision[level].top = domains.now[0].top
    domains.decision[level].required = domains.now[0].required


@leaf
def undo(rules: Rules, domains: Domains) -> int:
    """Take the last decision back, with all that followed; return its level."""
    level = domains.now[0].num_decisions - 1
    domains.now[0].num_decisions = level
    while domains.now[0].queue_size > 0:
        domains.block[take(domains)].changed = 0
    num_blocks = domains.block.size
    first = domains.decision[level].trail_size
    for i in range(domains.now[0].trail_size - 1, first - 1, -1):
        n = int(domains.trail[i].what)
        old = domains.trail[i].old
        if n >= 2 * num_blocks:
            domains.paths[n - 2 * num_blocks].below = old
        elif n >= num_blocks:
            domains.paths[n - num_blocks].above = old
        else:
            new = domains.block[n].chips
            if is_single(new):
                _unlink(n, lowest(new), rules, domains)
            _count_cover(old & ~new, -1, domains)
            _bind_bytes(n, new, -1, rules, domains)
            _bind_bytes(n, old, 1, rules, domains)
            domains.block[n].chips = old
    domains.now[0].trail_size = first
    restore(domains.decision[level].num_saved, domains)
    domains.now[0].top = domains.decision[level].top
    domains.now[0].required = domains.decision[level].required
    domains.now[0].stale = NO_CHIPS
    domains.now[0].moved = NO_CHIPS
    domains.now[0].fuller = NO_CHIPS
    for c in range(domains.graph.size):
        domains.chip[c].open_out = domains.chip[c].open_in = EVERY_CHIP
    return level


@inner
def _record(what: int, old: np.uint64, domains: Domains) -> None:
    i = domains.now[0].trail_size
    domains.trail[i].what = what
    domains.trail[i].old = old
    domains.now[0].trail_size = i + 1


@inner
def _count_cover(gone: np.uint64, lost: int, domains: Domains) -> None:
    """Subtract ``lost`` from the supporters of each chip in ``gone``.

    The counts are kept as differences: a run of neighbouring chips, the usual case,
    changes two numbers.
    """
    while gone:
        first = lowest(gone)
        past = run_end(first, gone)
        domains.chip[first].cover -= lost
        domains.chip[past].cover += lost
        gone &= ~at_most(past - 1)


@inner
def _bind_bytes(
    n: int, chips: np.uint64, sign: int, rules: Rules, domains: Domains
) -> None:
    """Add what block ``n`` needs to the chips it is bound to lie between."""
    if rules.memory:
        need_bytes = sign * rules.extra[n].need_bytes
        domains.bound_bytes[lowest(chips), highest(chips)] += need_bytes


@inner
def _raise_top(low: int, domains: Domains) -> None:
    """Note that a block stands on chip ``low`` or later: all up to it are used."""
    if low >= domains.now[0].top:
        domains.now[0].top = low
        domains.now[0].required |= at_most(low)


@inner
def _link(n: int, chip: int, rules: Rules, domains: Domains) -> None:
    """Enter block ``n``, now fixed, into the list and the memory of its chip."""
    domains.block[n].next_on = domains.chip[chip].first_on
    domains.chip[chip].first_on = n
    domains.chip[chip].num_on += 1
    domains.now[0].covered |= bit(chip)
    if not rules.memory:
        return
    domains.now[0].fuller |= bit(chip)
    domains.chip[chip].used_bytes += rules.extra[n].need_bytes
    for i in range(rules.extra[n].item, rules.extra[n + 1].item):
        j = int(rules.near[i])
        domains.item_users[j, chip] += 1
        if domains.item_users[j, chip] == 1:
            domains.chip[chip].used_bytes += rules.item_bytes[j]


@inner
def _unlink(n: int, chip: int, rules: Rules, domains: Domains) -> None:
    """Undo ``_link``; ``n`` is the latest block of the chip."""
    domains.chip[chip].first_on = domains.block[n].next_on
    domains.chip[chip].num_on -= 1
    if domains.chip[chip].num_on == 0:
        domains.now[0].covered &= ~bit(chip)
    if not rules.memory:
        return
    domains.chip[chip].used_bytes -= rules.extra[n].need_bytes
    for i in range(rules.extra[n].item, rules.extra[n + 1].item):
        j = int(rules.near[i])
        domains.item_users[j, chip] -= 1
        if domains.item_users[j, chip] == 0:
            domains.chip[chip].used_bytes -= rules.item_bytes[j]
