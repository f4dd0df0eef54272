"""The propagation rules, one function each, and the loop that runs them to rest.

Every rule is a necessary condition: it removes a chip from a domain only if no valid
partition that agrees with the domains uses it (docs/algorithm.md draws each one).
"""

from __future__ import annotations

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
)
from mcmpart._jit import inner, leaf
from mcmpart.solver._arrays import ABOVE, BELOW, FIXED, HIGHEST, LOWEST, Domains, Rules
from mcmpart.solver._chip_graph import add_arc, add_path
from mcmpart.solver._cover import cover_chips
from mcmpart.solver._trail import add_above, add_below, notify, restrict, take


@leaf
def propagate(rules: Rules, domains: Domains, full: bool) -> bool:
    """Run the rules until nothing changes; False if they contradict each other.

    The rules on paths through open blocks (``carry_paths``, ``bypass``, ``antichain``)
    cost most and run only if ``full``.
    """
    while True:
        while domains.now[0].queue_size > 0:
            n = take(domains)
            why = domains.block[n].changed
            domains.block[n].changed = 0
            if not _look_at(n, why, rules, domains, full):
                return False
        if domains.now[0].stale | domains.now[0].moved:
            if not _apply_chip_graph(rules, domains, full):
                return False
            continue
        if rules.memory and not fit_memory(rules, domains):
            return False
        if domains.now[0].queue_size > 0:
            continue
        if rules.cover and not cover_chips(rules, domains):
            return False
        if domains.now[0].queue_size == 0:
            return True


@inner
def _look_at(n: int, why: int, rules: Rules, domains: Domains, full: bool) -> bool:
    """Tell the neighbours of block ``n`` what changed about it."""
    if not (
        keep_dataflow(n, why, rules, domains) and keep_spans(n, why, rules, domains)
    ):
        return False
    if why & FIXED:
        if not keep_apart(n, rules, domains):
            return False
        if rules.triangle and not draw_arcs(n, rules, domains):
            return False
    if not (full and rules.triangle):
        return True
    if is_single(domains.block[n].chips):
        return not why & FIXED or start_paths(n, rules, domains)
    if not why & (ABOVE | BELOW):
        return True
    return (
        carry_paths(n, why, rules, domains)
        and bypass(n, rules, domains)
        and antichain(n, rules, domains)
    )


@inner
def keep_dataflow(n: int, why: int, rules: Rules, domains: Domains) -> bool:
    """f(u) <= f(v) on each edge u -> v."""
    if why & LOWEST:
        allowed = at_least(lowest(domains.block[n].chips))
        for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
            if not restrict(int(rules.near[i]), allowed, rules, domains):
                return False
    if why & HIGHEST:
        allowed = at_most(highest(domains.block[n].chips))
        for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
            if not restrict(int(rules.near[i]), allowed, rules, domains):
                return False
    return True


@inner
def keep_spans(n: int, why: int, rules: Rules, domains: Domains) -> bool:
    """f(v) <= f(u) + span(u, v): so many chips between can be filled at most."""
    if why & HIGHEST:
        high = highest(domains.block[n].chips)
        for i in range(rules.rows[n].ahead, rules.rows[n + 1].ahead):
            allowed = at_most(min(high + rules.span[i], 63))
            if not restrict(int(rules.near[i]), allowed, rules, domains):
                return False
    if why & LOWEST:
        low = lowest(domains.block[n].chips)
        for i in range(rules.rows[n].behind, rules.rows[n + 1].behind):
            allowed = at_least(max(low - rules.span[i], 0))
            if not restrict(int(rules.near[i]), allowed, rules, domains):
                return False
    return True


@inner
def keep_apart(n: int, rules: Rules, domains: Domains) -> bool:
    """f(n) != f(v) for each pair of the user's; ``n`` is fixed."""
    for i in range(rules.extra[n].apart, rules.extra[n + 1].apart):
        if not restrict(int(rules.near[i]), ~domains.block[n].chips, rules, domains):
            return False
    return True


@inner
def draw_arcs(n: int, rules: Rules, domains: Domains) -> bool:
    """Add the arcs between ``n``, now fixed, and fixed neighbours; keep others legal.

    An open neighbour loses the chips that a forbidden arc would lead to.
    """
    chip = lowest(domains.block[n].chips)
    for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
        v = int(rules.near[i])
        if not restrict(v, ~domains.graph[chip].no_arc_out, rules, domains):
            return False
        there = domains.block[v].chips
        if not is_single(there):
            domains.chip[chip].open_out |= there
        elif there != bit(chip) and not add_arc(chip, lowest(there), domains):
            return False
    for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
        p = int(rules.near[i])
        if not restrict(p, ~domains.graph[chip].no_arc_in, rules, domains):
            return False
        there = domains.block[p].chips
        if not is_single(there):
            domains.chip[chip].open_in |= there
        elif there != bit(chip) and not add_arc(lowest(there), chip, domains):
            return False
    return True


@inner
def start_paths(n: int, rules: Rules, domains: Domains) -> bool:
    """Note the paths that end at block ``n``, now fixed, and start those from it."""
    here = domains.block[n].chips
    chip = lowest(here)
    if not _join_paths(chip, domains.paths[n].above, domains.paths[n].below, domains):
        return False
    for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
        v = int(rules.near[i])
        if not _tell_below(v, here, rules, domains):
            return False
        # Even if the chip is no news: that an edge leads from it is.
        notify(v, ABOVE, domains)
    for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
        p = int(rules.near[i])
        if not _tell_above(p, here, rules, domains):
            return False
        notify(p, BELOW, domains)
    return True


@inner
def carry_paths(n: int, why: int, rules: Rules, domains: Domains) -> bool:
    """Pass on, through the open block ``n``, which chips reach what lies beyond."""
    if why & ABOVE:
        for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
            if not _tell_below(
                int(rules.near[i]), domains.paths[n].above, rules, domains
            ):
                return False
    if why & BELOW:
        for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
            if not _tell_above(
                int(rules.near[i]), domains.paths[n].below, rules, domains
            ):
                return False
    return True


@inner
def bypass(n: int, rules: Rules, domains: Domains) -> bool:
    """f(n) is a or b if n lies on a path a ~> b and the chip graph has the arc a -> b.

    Anywhere else the path would be a longer one beside the arc.
    """
    rest = domains.paths[n].above
    while rest:
        a = lowest(rest)
        rest &= rest - ONE
        ends = domains.graph[a].arcs_out & domains.paths[n].below
        while ends:
            allowed = bit(a) | (ends & ~(ends - ONE))
            ends &= ends - ONE
            if not restrict(n, allowed, rules, domains):
                return False
    return True


@inner
def antichain(n: int, rules: Rules, domains: Domains) -> bool:
    """f(n) = b if n reaches chip b, b reaches c, and an edge leads from n to c.

    Anywhere else the arc to c would have the path over b beside it. The same the other
    way round.
    """
    for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
        there = domains.block[int(rules.near[i])].chips
        if is_single(there):
            between = domains.paths[n].below & domains.graph[lowest(there)].reached_by
            if not _meet(n, between, rules, domains):
                return False
    for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
        there = domains.block[int(rules.near[i])].chips
        if is_single(there):
            between = domains.paths[n].above & domains.graph[lowest(there)].reaches
            if not _meet(n, between, rules, domains):
                return False
    return True


@inner
def fit_memory(rules: Rules, domains: Domains) -> bool:
    """What blocks store that are bound to chips a to b fits those chips together.

    On a single chip shared items count, too, and an open block that would not fit any
    more loses the chip.
    """
    return _ranges_fit(rules, domains) and _chips_fit(rules, domains)


@leaf
def _ranges_fit(rules: Rules, domains: Domains) -> bool:
    num_chips = rules.memory_bytes.size
    for b in range(num_chips):
        domains.chip[b].sum_bytes = 0
    for a in range(num_chips - 1, -1, -1):
        # Memories may add up to more than 64 bits; what is stored does not.
        room = 0.0
        bound_bytes = 0
        for b in range(a, num_chips):
            room += rules.memory_bytes[b] - domains.now[0].margin_bytes
            bound_bytes += domains.bound_bytes[a, b]
            domains.chip[b].sum_bytes += bound_bytes
            if domains.chip[b].sum_bytes > room:
                return False
    return True


@leaf
def _chips_fit(rules: Rules, domains: Domains) -> bool:
    fuller = domains.now[0].fuller
    domains.now[0].fuller = NO_CHIPS
    if not fuller:
        return True
    least_room = np.int64(2**62)
    rest = fuller
    while rest:
        c = lowest(rest)
        rest &= rest - ONE
        room = _room(c, rules, domains)
        if room < 0:
            return False
        least_room = min(least_room, room)
    for i in range(rules.by_need.size):
        n = int(rules.by_need[i])
        if rules.extra[n].need_bytes <= least_room:
            break
        if is_single(domains.block[n].chips):
            continue
        too_small = _chips_without(rules.extra[n].need_bytes, fuller, rules, domains)
        if not restrict(n, ~too_small, rules, domains):
            return False
    return True


@inner
def _chips_without(
    need_bytes: int, chips: np.uint64, rules: Rules, domains: Domains
) -> np.uint64:
    """Return those of ``chips`` that have less than ``need_bytes`` left."""
    without = NO_CHIPS
    while chips:
        c = lowest(chips)
        chips &= chips - ONE
        if need_bytes > _room(c, rules, domains):
            without |= bit(c)
    return without


@inner
def _room(c: int, rules: Rules, domains: Domains) -> int:
    """Return the bytes that the fixed blocks and the margin leave of chip ``c``."""
    used_bytes = domains.chip[c].used_bytes + domains.now[0].margin_bytes
    return rules.memory_bytes[c] - used_bytes


@leaf
def _apply_chip_graph(rules: Rules, domains: Domains, full: bool) -> bool:
    """Make the open blocks obey the chip graph, where it has changed."""
    stale, moved = domains.now[0].stale, domains.now[0].moved
    domains.now[0].stale = NO_CHIPS
    domains.now[0].moved = NO_CHIPS
    rest = stale
    while rest:
        if not _forbid_arcs(lowest(rest), rules, domains):
            return False
        rest &= rest - ONE
    if not full:
        return True
    changed = stale | moved
    for n in range(domains.block.size):
        if is_single(domains.block[n].chips):
            continue
        above, below = (
            domains.paths[n].above & changed,
            domains.paths[n].below & changed,
        )
        if above:
            notify(n, ABOVE, domains)
        if below:
            notify(n, BELOW, domains)
        if not _allow_paths(n, above, below, rules, domains):
            return False
    return True


@inner
def _forbid_arcs(c: int, rules: Rules, domains: Domains) -> bool:
    """Keep open neighbours of chip ``c``'s blocks where arcs may lead to, or from."""
    out, into = ~domains.graph[c].no_arc_out, ~domains.graph[c].no_arc_in
    open_out = open_in = NO_CHIPS
    n = int(domains.chip[c].first_on)
    for _ in range(domains.chip[c].num_on):
        for i in range(rules.rows[n].succ, rules.rows[n + 1].succ):
            v = int(rules.near[i])
            if not is_single(domains.block[v].chips):
                if not restrict(v, out, rules, domains):
                    return False
                open_out |= domains.block[v].chips
        for i in range(rules.rows[n].pred, rules.rows[n + 1].pred):
            p = int(rules.near[i])
            if not is_single(domains.block[p].chips):
                if not restrict(p, into, rules, domains):
                    return False
                open_in |= domains.block[p].chips
        n = int(domains.block[n].next_on)
    domains.chip[c].open_out = open_out
    domains.chip[c].open_in = open_in
    return True


@inner
def _tell_below(v: int, above: np.uint64, rules: Rules, domains: Domains) -> bool:
    """Tell block ``v`` that the chips ``above`` reach it."""
    if is_single(domains.block[v].chips):
        return _join_paths(lowest(domains.block[v].chips), above, NO_CHIPS, domains)
    news = above & ~domains.paths[v].above
    return not add_above(v, above, domains) or _allow_paths(
        v, news, NO_CHIPS, rules, domains
    )


@inner
def _tell_above(p: int, below: np.uint64, rules: Rules, domains: Domains) -> bool:
    """Tell block ``p`` that it reaches the chips ``below``."""
    if is_single(domains.block[p].chips):
        return _join_paths(lowest(domains.block[p].chips), NO_CHIPS, below, domains)
    news = below & ~domains.paths[p].below
    return not add_below(p, below, domains) or _allow_paths(
        p, NO_CHIPS, news, rules, domains
    )


@inner
def _join_paths(
    chip: int, above: np.uint64, below: np.uint64, domains: Domains
) -> bool:
    """Note that the chips ``above`` reach ``chip``, and it those ``below``."""
    rest = above & ~bit(chip)
    while rest:
        if not add_path(lowest(rest), chip, domains):
            return False
        rest &= rest - ONE
    rest = below & ~bit(chip)
    while rest:
        if not add_path(chip, lowest(rest), domains):
            return False
        rest &= rest - ONE
    return True


@inner
def _allow_paths(
    n: int, above: np.uint64, below: np.uint64, rules: Rules, domains: Domains
) -> bool:
    """Keep ``n`` where paths from chips ``above`` and to chips ``below`` may lead."""
    forbidden = NO_CHIPS
    while above:
        forbidden |= domains.graph[lowest(above)].no_path_out
        above &= above - ONE
    while below:
        forbidden |= domains.graph[lowest(below)].no_path_in
        below &= below - ONE
    return restrict(n, ~forbidden, rules, domains)


@inner
def _meet(n: int, chips: np.uint64, rules: Rules, domains: Domains) -> bool:
    """Restrict ``n`` to each of ``chips`` at once: to the only one, or to nothing."""
    if chips == NO_CHIPS:
        return True
    return is_single(chips) and restrict(n, chips, rules, domains)
