"""The arrays of the solver: what it is asked (Rules) and what it knows (Domains).

Axis letters: N blocks, M entries of their lists, J shared items, C chips, S entries of
an undo stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart.graph.graph import Bool, Int32, Int64

UInt64 = NDArray[np.uint64]

# An array of records: a[i].field reads and writes in place inside kernels.
Records = Any

# What most looks at a block read is kept apart from the rest: it fits the cache.
ROW = np.dtype([(name, np.int32) for name in ("succ", "pred", "ahead", "behind")])
EXTRA = np.dtype(
    [("need_bytes", np.int64), ("apart", np.int32), ("item", np.int32)], align=True
)
BLOCK = np.dtype(
    [("chips", np.uint64), ("changed", np.int32), ("next_on", np.int32)], align=True
)
PATHS = np.dtype([("above", np.uint64), ("below", np.uint64)])
CHIP = np.dtype(
    [
        ("cover", np.int64),
        ("open_out", np.uint64),
        ("open_in", np.uint64),
        ("used_bytes", np.int64),
        ("sum_bytes", np.int64),
        ("first_on", np.int32),
        ("num_on", np.int32),
        ("num_open", np.int32),
    ],
    align=True,
)
GRAPH = np.dtype(
    [
        (name, np.uint64)
        for name in (
            "arcs_out",
            "arcs_in",
            "reaches",
            "reached_by",
            "no_arc_out",
            "no_arc_in",
            "no_path_out",
            "no_path_in",
            "out_sum",
            "in_sum",
        )
    ]
)
TRAIL = np.dtype([("old", np.uint64), ("what", np.int32)], align=True)
DECISION = np.dtype(
    [
        ("chips", np.uint64),
        ("required", np.uint64),
        ("trail_size", np.int64),
        ("at", np.int64),
        ("block", np.int32),
        ("num_saved", np.int32),
        ("top", np.int32),
    ],
    align=True,
)
NOW = np.dtype(
    [
        ("stale", np.uint64),
        ("moved", np.uint64),
        ("required", np.uint64),
        ("covered", np.uint64),
        ("fuller", np.uint64),
        ("trail_size", np.int64),
        ("work", np.int64),
        ("queue_first", np.int64),
        ("queue_size", np.int64),
        ("num_decisions", np.int64),
        ("num_saved", np.int64),
        ("top", np.int64),
        ("margin_bytes", np.int64),
    ]
)
MATCH = np.dtype([("block", np.int32), ("came_from", np.int32)])


class Rules(NamedTuple):
    """What the propagation rules read; immutable.

    Attributes
    ----------
    rows
        ``[N + 1] ROW``: where the lists of a block begin in ``near``; they end where
        those of the next begin. ``succ``, ``pred``: data edges, blocks standing in
        topological order. ``ahead``, ``behind``: edges u -> v with a span, f(v) <=
        f(u) + span, by u and by v.
    extra
        ``[N + 1] EXTRA``: likewise ``apart``, blocks that must not share a chip, and
        ``item``, shared items. ``need_bytes``: weights and double buffers that the
        block needs wherever it stands.
    near, span
        ``[M] int32``: the lists, of blocks or items; the spans of the edges to them.
    by_need
        ``[N] int32``: the blocks, the needy ones first.
    item_bytes
        ``[J] int64``: what a chip stores once for all users of an item.
    memory_bytes
        ``[C] int64``: capacities.
    root, root_cover
        ``[C + 1, N] uint64`` and ``[C + 1, C + 1] int64``: the chips of each block if
        exactly m chips are used (row m), or any number (row 0), before any decision;
        and the differences of how many blocks each chip is open to.
    possible
        ``[C + 1] bool``: whether the root has no contradiction for the row.
    cover
        The used chips are a prefix (no_skip, or every chip is demanded).
    triangle, memory
        The package's rules.
    """

    rows: Records
    extra: Records
    near: Int32
    span: Int32
    by_need: Int32
    item_bytes: Int64
    memory_bytes: Int64
    root: UInt64
    root_cover: Int64
    possible: Bool
    cover: bool
    triangle: bool
    memory: bool


# What changed about a block since its neighbours last heard of it.
LOWEST = 1
HIGHEST = 2
FIXED = 4
ABOVE = 8
BELOW = 16


class Domains(NamedTuple):
    """The chips still possible for each block, and what follows from them.

    Attributes
    ----------
    block
        ``[N] BLOCK``. ``chips``: the domain; a block is fixed when that is one chip.
        ``changed``: why it is in the queue. ``next_on``: next fixed block of its chip.
    paths
        ``[N] PATHS``: chips of fixed ancestors (``above``) and descendants that a path
        of open blocks joins to this one; known only where the rules run in full.
    chip
        ``[C + 1] CHIP``. ``cover``: difference of the number of blocks open to a chip
        and to the one before; ``num_open``: that number, when last added up.
        ``first_on``, ``num_on``: its fixed blocks, latest first. ``used_bytes``: what
        they store. ``sum_bytes``: room for a sum. ``open_out``, ``open_in``: at least
        the chips to (from) which an open neighbour of theirs could draw an arc.
    graph
        ``[C] GRAPH``: the chip graph of the fixed blocks, a mask of chips each. No
        chip reaches itself; ``reaches`` also counts paths through open blocks. To
        chips in ``no_arc_out`` no arc may lead, to those in ``no_path_out`` no path.
    saved
        ``[S, C] GRAPH``: earlier chip graphs.
    trail
        ``[S] TRAIL``: ``what`` is n, n + N or n + 2 N, and ``old`` the earlier value
        of ``chips``, ``above`` or ``below`` of block n.
    decision
        ``[N] DECISION``: the decisions in force: a block to some ``chips``, made at a
        position (``at``) of the order; and what to undo it to.
    queue
        ``[N] int32``: ring buffer of the blocks to look at.
    item_users
        ``[J, C] int32``: fixed blocks of a chip that need an item.
    bound_bytes
        ``[C, C] int64``: what the blocks need whose lowest and highest chips are these.
    match, holder
        ``[64] MATCH`` and ``[N] int32``: room for the matching of chips to blocks.
    now
        ``[1] NOW``: sizes of the stacks; chips of which a forbidden arc concerns an
        open block (``stale``), whose paths changed (``moved``), that must be used
        (``required``), are used (``covered``), or got another block (``fuller``);
        ``top``: this chip and all below it are used; ``work``: blocks looked at;
        ``margin_bytes``: what is kept free on each chip for what no rule foresees.
    """

    block: Records
    paths: Records
    chip: Records
    graph: Records
    saved: Records
    trail: Records
    decision: Records
    queue: Int32
    item_users: Int32
    bound_bytes: Int64
    match: Records
    holder: Int32
    now: Records


def new_domains(num_blocks: int, num_chips: int, num_items: int) -> Domains:
    """Return room for the domains of a problem; contents are not set.

    Every entry of the trail removes a chip from a domain or adds one to a mask, so it
    has at most 3 N C; the chip graph grows by an arc or a path at most C^2 times.
    """
    return Domains(
        block=np.empty(num_blocks, dtype=BLOCK),
        paths=np.empty(num_blocks, dtype=PATHS),
        chip=np.empty(num_chips + 1, dtype=CHIP),
        graph=np.empty(num_chips, dtype=GRAPH),
        saved=np.empty((num_chips * num_chips + 1, num_chips), dtype=GRAPH),
        trail=np.empty(3 * num_blocks * num_chips + 1, dtype=TRAIL),
        decision=np.empty(num_blocks, dtype=DECISION),
        queue=np.empty(num_blocks, dtype=np.int32),
        item_users=np.empty((num_items, num_chips), dtype=np.int32),
        bound_bytes=np.empty((num_chips, num_chips), dtype=np.int64),
        match=np.empty(64, dtype=MATCH),
        holder=np.empty(num_blocks, dtype=np.int32),
        now=np.zeros(1, dtype=NOW),
    )


def lowest_chips(domains: Domains) -> Int32:
    """Return the lowest chip still possible for each block, ``[N] int32``."""
    chips = domains.block["chips"]
    below = (chips & (~chips + np.uint64(1))) - np.uint64(1)
    lowest: Int32 = np.bitwise_count(below).astype(np.int32)
    return lowest
