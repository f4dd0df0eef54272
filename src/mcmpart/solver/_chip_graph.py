"""Rule "chip graph": no arc a -> b of the chip graph has a longer path beside it.

The graph is kept with its transitive closure, and with the arcs and paths that may
never be added: those that would put a longer path beside an arc.
"""

from __future__ import annotations

import numpy as np

from mcmpart._bits import NO_CHIPS, ONE, at_least, at_most, bit, highest, lowest
from mcmpart._jit import inner, leaf
from mcmpart.solver._arrays import Domains, Records


@inner
def add_arc(a: int, b: int, domains: Domains) -> bool:
    """Note that an edge leads from chip ``a`` to ``b``; False if the rule forbids it.

    Marks as stale the chips whose forbidden arcs or paths change.
    """
    graph = domains.graph
    if graph[a].arcs_out & bit(b):
        return True
    if graph[a].no_arc_out & bit(b):
        return False
    _save(domains)
    graph[a].arcs_out |= bit(b)
    graph[b].arcs_in |= bit(a)
    _close(a, b, domains)
    return True


@inner
def add_path(a: int, b: int, domains: Domains) -> bool:
    """Note that chip ``a`` reaches ``b``, by whatever arcs; False if it must not."""
    graph = domains.graph
    if graph[a].reaches & bit(b):
        return True
    if graph[a].no_path_out & bit(b):
        return False
    _save(domains)
    _close(a, b, domains)
    return True


@leaf
def restore(num_saved: int, domains: Domains) -> None:
    """Bring the chip graph back to what it was when ``num_saved`` graphs were saved."""
    if domains.now[0].num_saved > num_saved:
        domains.now[0].num_saved = num_saved
        for c in range(domains.graph.size):
            domains.graph[c] = domains.saved[num_saved, c]


@inner
def clear(c: int, graph: Records) -> None:
    """Forget the arcs and paths of chip ``c``."""
    graph[c].arcs_out = graph[c].arcs_in = NO_CHIPS
    graph[c].reaches = graph[c].reached_by = NO_CHIPS
    graph[c].no_arc_out = graph[c].no_arc_in = NO_CHIPS
    graph[c].no_path_out = graph[c].no_path_in = NO_CHIPS
    graph[c].out_sum = graph[c].in_sum = NO_CHIPS


@inner
def _save(domains: Domains) -> None:
    k = domains.now[0].num_saved
    domains.now[0].num_saved = k + 1
    for c in range(domains.graph.size):
        domains.saved[k, c] = domains.graph[c]


@leaf
def _close(a: int, b: int, domains: Domains) -> None:
    """Close the paths over a -> b, and work out anew what is forbidden."""
    graph = domains.graph
    beyond = bit(b) | graph[b].reaches
    before = bit(a) | graph[a].reached_by
    rest = before
    while rest:
        c = lowest(rest)
        rest &= rest - ONE
        graph[c].reaches |= beyond
    rest = beyond
    while rest:
        c = lowest(rest)
        rest &= rest - ONE
        graph[c].reached_by |= before
    domains.now[0].moved |= before | beyond
    num_chips = graph.size
    for c in range(num_chips):
        _forbid_out(c, domains)
    for c in range(num_chips - 1, -1, -1):
        _forbid_in(c, domains)


@inner
def _forbid_out(c: int, domains: Domains) -> None:
    """Write the chips to which no path, and no arc, may lead from ``c``.

    A path c ~> d breaks an arc x -> y if x is or reaches c, d is or reaches y, and not
    both x = c and y = d. An arc c -> d is also wrong beside a path over a third chip.
    ``out_sum`` is what the chip's own arcs and those before it forbid.
    """
    graph = domains.graph
    inner = _all_before(graph[c].arcs_out, graph)
    outer = NO_CHIPS
    rest = graph[c].reached_by
    while rest:
        x = highest(rest)
        rest &= ~(graph[x].reached_by | bit(x))
        outer |= graph[x].out_sum
    detour = NO_CHIPS
    rest = graph[c].reaches
    while rest:
        x = lowest(rest)
        rest &= ~(graph[x].reaches | bit(x))
        detour |= graph[x].reaches
    graph[c].out_sum = inner | outer | graph[c].arcs_out
    no_path = (inner | outer) & ~at_most(c)
    if no_path & ~graph[c].no_path_out:
        graph[c].no_path_out = no_path
        domains.now[0].moved |= bit(c)
    no_arc = no_path | detour
    if no_arc & ~graph[c].no_arc_out & domains.chip[c].open_out:
        domains.now[0].stale |= bit(c)
    graph[c].no_arc_out = no_arc


@inner
def _forbid_in(c: int, domains: Domains) -> None:
    """Write the chips from which no path, and no arc, may lead to ``c``."""
    graph = domains.graph
    inner = _all_beyond(graph[c].arcs_in, graph)
    outer = NO_CHIPS
    rest = graph[c].reaches
    while rest:
        x = lowest(rest)
        rest &= ~(graph[x].reaches | bit(x))
        outer |= graph[x].in_sum
    detour = NO_CHIPS
    rest = graph[c].reached_by
    while rest:
        x = highest(rest)
        rest &= ~(graph[x].reached_by | bit(x))
        detour |= graph[x].reached_by
    graph[c].in_sum = inner | outer | graph[c].arcs_in
    no_path = (inner | outer) & ~at_least(c)
    if no_path & ~graph[c].no_path_in:
        graph[c].no_path_in = no_path
        domains.now[0].moved |= bit(c)
    no_arc = no_path | detour
    if no_arc & ~graph[c].no_arc_in & domains.chip[c].open_in:
        domains.now[0].stale |= bit(c)
    graph[c].no_arc_in = no_arc


@inner
def _all_before(chips: np.uint64, graph: Records) -> np.uint64:
    """Return what reaches one of ``chips``."""
    union = NO_CHIPS
    while chips:
        union |= graph[lowest(chips)].reached_by
        chips &= chips - ONE
    return union


@inner
def _all_beyond(chips: np.uint64, graph: Records) -> np.uint64:
    """Return what one of ``chips`` reaches."""
    union = NO_CHIPS
    while chips:
        union |= graph[lowest(chips)].reaches
        chips &= chips - ONE
    return union
