"""From a Problem to the arrays that the propagation rules read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mcmpart._bits import EVERY_CHIP
from mcmpart.blocks import (
    BlockArrays,
    Blocks,
    bytes_alone,
    item_bytes,
    own_bytes,
)
from mcmpart.graph.graph import Bool, Csr, Int32, Int64
from mcmpart.problem import Problem
from mcmpart.solver._arrays import (
    EXTRA,
    ROW,
    Domains,
    Rules,
    UInt64,
    new_domains,
)
from mcmpart.solver._root import propagate_root
from mcmpart.solver._spans import edge_spans


def make_rules(problem: Problem, blocks: Blocks | None = None) -> Rules:
    """Return the arrays of ``problem``, propagated as far as they go undecided.

    Where the rules contradict each other before any decision, ``possible`` is all
    False.

    Parameters
    ----------
    blocks
        What is placed; None takes ``problem.blocks``.
    """
    return _rules_of(problem, problem.blocks if blocks is None else blocks)


@lru_cache(maxsize=8)
def _rules_of(problem: Problem, blocks: Blocks) -> Rules:
    arrays, package = blocks.arrays, problem.package_arrays
    num_blocks, num_chips = blocks.num_blocks, problem.num_chips
    cover = bool((package.no_skip and num_blocks) or problem.user.all_chips)
    need_bytes = own_bytes(arrays)
    lists = _Lists(num_blocks)
    lists.add("succ", Csr(arrays.succ_ptr, arrays.succ))
    lists.add("pred", Csr(arrays.pred_ptr, arrays.pred))
    root = _own_chips(problem, blocks)
    if cover:
        spans, before, after = edge_spans(
            arrays.succ_ptr, arrays.succ, bool(package.triangle)
        )
        _add_spans(lists, arrays, spans, num_chips)
        root &= _chips_by_rank(before, after, num_chips)
    a, b = arrays.apart[:, 0], arrays.apart[:, 1]
    lists.add("apart", Csr.from_pairs(np.append(a, b), np.append(b, a), num_blocks))
    lists.add("item", Csr(arrays.item_ptr, arrays.item))
    lists.extra["need_bytes"][:num_blocks] = need_bytes
    rules = Rules(
        rows=lists.rows,
        extra=lists.extra,
        near=lists.near(),
        span=lists.span(),
        by_need=np.argsort(-need_bytes, kind="stable").astype(np.int32),
        item_bytes=item_bytes(arrays),
        memory_bytes=package.memory_bytes,
        root=root,
        root_cover=np.zeros((num_chips + 1, num_chips + 1), dtype=np.int64),
        possible=_chip_counts(problem, blocks, cover),
        cover=cover,
        triangle=bool(package.triangle),
        memory=bool(package.memory),
    )
    propagate_root(rules, room_for(rules), True)
    return rules


def room_for(rules: Rules) -> Domains:
    """Return domains of the right size, contents not set."""
    return new_domains(
        rules.rows.size - 1, rules.memory_bytes.size, rules.item_bytes.size
    )


def _chip_counts(problem: Problem, blocks: Blocks, cover: bool) -> Bool:
    """Return the numbers of used chips (0: any) that are worth looking at."""
    counts = np.zeros(problem.num_chips + 1, dtype=np.bool_)
    if problem.user.all_chips:
        counts[problem.num_chips] = True
    elif cover:
        most = min(problem.num_chips, blocks.num_blocks)
        counts[: most + 1] = True
    else:
        counts[0] = True
    if problem.package_arrays.memory:
        # Each thing is stored once at least.
        stored = item_bytes(blocks.arrays).sum() + own_bytes(blocks.arrays).sum()
        counts[1:] &= int(stored) <= np.cumsum(
            problem.package_arrays.memory_bytes, dtype=np.float64
        )
    return counts


def _own_chips(problem: Problem, blocks: Blocks) -> UInt64:
    """Return the chips of each block by its own rules, ``[C + 1, N] uint64``.

    That is pins, the memory it needs alone, and the number of chips in use.
    """
    arrays, memory_bytes = blocks.arrays, problem.package_arrays.memory_bytes
    num_blocks, num_chips = blocks.num_blocks, problem.num_chips
    allowed = np.full(num_blocks, 2**num_chips - 1, dtype=np.uint64)
    pinned = arrays.pin >= 0
    allowed[pinned] = np.uint64(1) << arrays.pin[pinned].astype(np.uint64)
    if problem.package_arrays.memory:
        alone = bytes_alone(arrays, _live_bytes(problem, blocks))
        for c in range(num_chips):
            too_big = alone > memory_bytes[c]
            allowed[too_big] &= ~(np.uint64(1) << np.uint64(c))
    used = [2**num_chips - 1] + [2**m - 1 for m in range(1, num_chips + 1)]
    return allowed & np.array(used, dtype=np.uint64)[:, None]


def _chips_by_rank(before: Int64, after: Int64, num_chips: int) -> UInt64:
    """Return where relatives leave each block, ``[C + 1, N] uint64``.

    Each chip below f(n) holds a block that is not n nor a descendant of it, and each
    of the used chips above it one that is no ancestor.
    """
    num_blocks = before.size
    highest = np.minimum(num_blocks - 1 - after, num_chips - 1)
    lowest = np.zeros((num_chips + 1, num_blocks), dtype=np.int64)
    for used in range(1, num_chips + 1):
        lowest[used] = np.maximum(used - num_blocks + before, 0)
    below = EVERY_CHIP >> (63 - highest).astype(np.uint64)
    above = EVERY_CHIP << np.minimum(lowest, 63).astype(np.uint64)
    return below & above


def _live_bytes(problem: Problem, blocks: Blocks) -> Int64:
    """Return what is live at least when each block runs, ``[N] int64``.

    While an op runs, all that it writes is. (``inner_peak_bytes`` is no least: it keeps
    what leaves a block to its end.)
    """
    ops = problem.ops.arrays
    live_bytes = np.zeros(blocks.num_blocks, dtype=np.int64)
    np.maximum.at(live_bytes, blocks.block_of[ops.first_op], ops.written_bytes)
    return live_bytes


class _Lists:
    """Gathers the lists of the blocks into one array."""

    def __init__(self, num_blocks: int) -> None:
        self.rows = np.zeros(num_blocks + 1, dtype=ROW)
        self.extra = np.zeros(num_blocks + 1, dtype=EXTRA)
        self._near: list[Int32] = []
        self._span: list[Int32] = []
        self._size = 0

    def add(self, name: str, lists: Csr, span: Int64 | None = None) -> None:
        """Add Csr rows, and the spans of their entries, under a field's name."""
        table = self.extra if name in ("apart", "item") else self.rows
        table[name] = lists.indptr + self._size
        self._size += lists.indices.size
        self._near.append(lists.indices)
        spans = np.zeros(lists.indices.size) if span is None else span
        self._span.append(spans.astype(np.int32))

    def near(self) -> Int32:
        """Return all entries, one list after the other."""
        return np.concatenate(self._near)

    def span(self) -> Int32:
        """Return the spans of all entries, 0 where there is none."""
        return np.concatenate(self._span)


def _add_spans(lists: _Lists, arrays: BlockArrays, span: Int64, num_chips: int) -> None:
    """Add the edges whose span is less than the whole module, by either end."""
    num_blocks = arrays.first_op.size
    source = np.repeat(np.arange(num_blocks), np.diff(arrays.succ_ptr))
    tight = span < num_chips - 1
    source, target, span = source[tight], arrays.succ[tight], span[tight]
    lists.add("ahead", Csr.from_pairs(source, target, num_blocks), span)
    by_target = np.lexsort((source, target))
    behind = Csr.from_pairs(target, source, num_blocks)
    lists.add("behind", behind, span[by_target])
