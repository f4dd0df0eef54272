"""Compiled dynamic program over ideals: whether every stage can keep to a limit.

An ideal is a set of blocks with all their ancestors; what chips 0 to b - 1 run together
is one. All times are whole units, each rounded down, so that no sum depends on the
order of its terms and nothing that fits is refused.

Axis letters beside those of blocks.py: I ideals, L = ceil(N / 64) words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart._bits import ONE, bit, lowest
from mcmpart._jit import inner, jit
from mcmpart.blocks import BlockArrays
from mcmpart.graph.graph import Float64, Int32, Int64

UInt64 = NDArray[np.uint64]


class StageCosts(NamedTuple):
    """What a stage may hold, in whole units of time and bytes.

    Attributes
    ----------
    block_units
        ``[K, N] int64``: compute time of each block on each class of chip.
    item_units
        ``[K, J] int64``: the same for shared items.
    least_units
        ``[N] int64``: on its fastest chip; what a stage holds of it is never more than
        ``limit_units``.
    units_per_byte
        ``[K] float64``: of transfer.
    least_units_per_byte
        The smallest of them.
    limit_units
        Most units of a stage.
    hop_bytes
        ``[C - 1] int64``: most bytes on each hop.
    memory_bytes
        ``[K] int64``: most bytes of weights and double buffers on each class.
    class_chips
        ``[K] uint64``: the chips of each class.
    serial, relay
        The package's switches.
    between_row
        ``[consumers] int32``: for each entry of ``consumer`` the row of ``between``, or
        -1 where no block stands between.
    between
        ``[R, L] uint64``: blocks on a path from the producer to that consumer. Under
        the triangle rule none of them is in a stage that the edge jumps over.
    """

    block_units: Int64
    item_units: Int64
    least_units: Int64
    units_per_byte: Float64
    least_units_per_byte: float
    limit_units: int
    hop_bytes: Int64
    memory_bytes: Int64
    class_chips: UInt64
    serial: bool
    relay: bool
    between_row: Int32
    between: UInt64


class Ideals(NamedTuple):
    """The ideals that may stand behind some number of chips.

    Attributes
    ----------
    bits
        ``[I, L] uint64``: the blocks of each.
    least_units, num_blocks
        ``[I] int64``: sums over those blocks; the order of the ideals.
    units
        ``[I, K] int64``: compute time on each class.
    fixed_bytes, weight_bytes
        ``[I] int64``: from and to the host, and stored, by the blocks alone.
    cut_bytes, sent_bytes
        ``[I] int64``: tensors with a reader outside; those that are no model outputs.
    levels
        ``[I] uint64``: bit b is set iff chips 0 to b - 1 can hold it; of all blocks
        together, iff chip b can be the last used one.
    """

    bits: UInt64
    least_units: Int64
    num_blocks: Int64
    units: Int64
    fixed_bytes: Int64
    weight_bytes: Int64
    cut_bytes: Int64
    sent_bytes: Int64
    levels: UInt64


@jit
def list_ideals(
    max_visits: int,
    max_kept: int,
    num_chips: int,
    blocks: BlockArrays,
    costs: StageCosts,
    ideals: Ideals,
) -> tuple[int, int]:
    """Visit every ideal and write those that some level allows into ``ideals``.

    Each ideal is reached once, by adding blocks in ascending order.

    Parameters
    ----------
    max_visits
        Stop after so many ideals.
    max_kept
        Rows of ``ideals``; further ones are only counted.

    Returns
    -------
    num_kept, num_visited
        ``num_visited`` is -1 if there are more than ``max_visits``.
    """
    num_blocks = blocks.first_op.size
    missing = np.diff(blocks.pred_ptr)
    readers_left = np.diff(blocks.consumer_ptr)
    inside = np.zeros(ideals.bits.shape[1], dtype=np.uint64)
    total = np.zeros(NUM_SUMS, dtype=np.int64)
    units = np.zeros(costs.block_units.shape[0], dtype=np.int64)
    all_units = costs.least_units.sum()
    # Blocks that can be added, ascending, one stretch for each depth of the walk.
    room = 64 * num_blocks + 1_024
    ready = np.empty(room, dtype=np.int32)
    first = np.zeros(num_blocks + 2, dtype=np.int64)
    at = np.zeros(num_blocks + 2, dtype=np.int64)
    chosen = np.empty(num_blocks + 1, dtype=np.int32)
    size = 0
    for n in range(num_blocks):
        if missing[n] == 0:
            ready[size] = n
            size += 1
    first[1] = size
    depth = 0
    kept = visited = 0
    while True:
        if at[depth] == first[depth]:
            visited += 1
            if visited > max_visits:
                return kept, -1
            levels = levels_of(inside, total, all_units, num_chips, blocks, costs)
            if levels or depth == num_blocks:
                if kept < max_kept:
                    _keep(kept, depth, inside, total, units, levels, ideals)
                kept += 1
        if at[depth] < first[depth + 1]:
            n = ready[at[depth]]
            at[depth] += 1
            _add(n, 1, blocks, costs, readers_left, inside, total, units)
            size = first[depth + 1]
            later = first[depth + 1] - at[depth]
            if size + later + blocks.succ_ptr[n + 1] - blocks.succ_ptr[n] > room:
                return kept, -1
            size = _ready_after(n, at[depth], size, missing, blocks, ready)
            chosen[depth] = n
            depth += 1
            at[depth] = first[depth]
            first[depth + 1] = size
        else:
            if depth == 0:
                return kept, visited
            depth -= 1
            n = chosen[depth]
            _add(n, -1, blocks, costs, readers_left, inside, total, units)
            for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
                missing[blocks.succ[i]] += 1


LEAST, FIXED, WEIGHTS, CUT, SENT = range(5)
NUM_SUMS = 5


@inner
def _has(words: UInt64, n: int) -> bool:
    return (words[n >> 6] & bit(n & 63)) != np.uint64(0)


@inner
def _is_between(n: int, low: UInt64, high: UInt64) -> bool:
    return _has(high, n) and not _has(low, n)


@inner
def _ready_after(
    n: int, begin: int, size: int, missing: Int64, blocks: BlockArrays, ready: Int32
) -> int:
    """Append what can follow once ``n`` is in: what could before, and what now can."""
    for i in range(begin, size):
        ready[size + i - begin] = ready[i]
    low = size
    end = size + size - begin
    for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
        v = blocks.succ[i]
        missing[v] -= 1
        if missing[v] == 0:
            j = end
            while j > low and ready[j - 1] > v:
                ready[j] = ready[j - 1]
                j -= 1
            ready[j] = v
            end += 1
    return end


@inner
def _add(
    n: int,
    sign: int,
    blocks: BlockArrays,
    costs: StageCosts,
    readers_left: Int64,
    inside: UInt64,
    total: Int64,
    units: Int64,
) -> None:
    """Put block ``n`` into the ideal (``sign`` 1), or take it out (-1)."""
    inside[n >> 6] ^= bit(n & 63)
    total[LEAST] += sign * costs.least_units[n]
    total[FIXED] += sign * (blocks.host_bytes[n] + blocks.output_bytes[n])
    total[WEIGHTS] += sign * blocks.weight_bytes[n]
    for k in range(units.size):
        units[k] += sign * costs.block_units[k, n]
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        if sign > 0:
            readers_left[t] -= 1
        if readers_left[t] == 0:
            total[CUT] -= sign * blocks.tensor_bytes[t]
            if not blocks.tensor_is_output[t]:
                total[SENT] -= sign * blocks.tensor_bytes[t]
        if sign < 0:
            readers_left[t] += 1
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        t = blocks.write[i]
        total[CUT] += sign * blocks.tensor_bytes[t]
        if not blocks.tensor_is_output[t]:
            total[SENT] += sign * blocks.tensor_bytes[t]


@inner
def levels_of(
    inside: UInt64,
    total: Int64,
    all_units: int,
    num_chips: int,
    blocks: BlockArrays,
    costs: StageCosts,
) -> np.uint64:
    """Return the numbers of chips b that the ideal can stand behind, as bits.

    Chips 0 to b - 1 compute it and send what is cut at least once; the others compute
    the rest and receive that at least once; the hop between carries it all; what is
    pinned to a chip is on its side.
    """
    before = total[LEAST]
    after = all_units - total[LEAST]
    if costs.serial:
        before += np.int64(total[SENT] * costs.least_units_per_byte)
        after += np.int64(total[CUT] * costs.least_units_per_byte)
    limit = costs.limit_units
    levels = np.uint64(0)
    for b in range(num_chips):
        if before > b * limit or after > (num_chips - b) * limit:
            continue
        if b > 0 and total[CUT] > costs.hop_bytes[b - 1]:
            continue
        levels |= bit(b)
    if not levels:
        return levels
    for n in range(blocks.pin.size):
        chip = blocks.pin[n]
        if chip >= 0:
            below = bit(chip) | (bit(chip) - ONE)
            if _has(inside, n):
                levels &= ~below
            else:
                levels &= below
    return levels


@inner
def _keep(
    row: int,
    num_blocks: int,
    inside: UInt64,
    total: Int64,
    units: Int64,
    levels: np.uint64,
    ideals: Ideals,
) -> None:
    for word in range(inside.size):
        ideals.bits[row, word] = inside[word]
    ideals.least_units[row] = total[LEAST]
    ideals.num_blocks[row] = num_blocks
    for k in range(units.size):
        ideals.units[row, k] = units[k]
    ideals.fixed_bytes[row] = total[FIXED]
    ideals.weight_bytes[row] = total[WEIGHTS]
    ideals.cut_bytes[row] = total[CUT]
    ideals.sent_bytes[row] = total[SENT]
    ideals.levels[row] = levels


@jit
def extend(
    begin: int,
    budget: int,
    fill_chips: bool,
    blocks: BlockArrays,
    costs: StageCosts,
    ideals: Ideals,
    reach: UInt64,
) -> tuple[int, bool]:
    """Extend what is reached from ideal ``begin`` on, in ascending order.

    Parameters
    ----------
    budget
        Stop after about this many pairs of ideals, and tensors cut there.
    fill_chips
        No chip before the last used one may be left empty.
    reach
        ``[I] uint64``: bit b is set iff b stages within the limits can hold the ideal;
        written. An ideal is final when it is reached, since stages only add blocks.

    Returns
    -------
    next, complete
        Where to go on; True as soon as all blocks are reached.
    """
    last = ideals.levels.size - 1
    cut = np.empty(blocks.tensor_bytes.size, dtype=np.int32)
    i = begin
    while i < last and budget > 0:
        if reach[i]:
            if not fill_chips:
                reach[i] = _with_empty_chips(reach[i], ideals.levels[i])
            num_cut = _cut_tensors(i, blocks, ideals, cut)
            for j in range(i + 1, last + 1):
                if ideals.least_units[j] - ideals.least_units[i] > costs.limit_units:
                    break
                budget -= 1
                new = (reach[i] << ONE) & ideals.levels[j] & ~reach[j]
                if (j < last and not new) or not _is_subset(i, j, ideals):
                    continue
                budget -= num_cut
                chips = stage_chips(i, j, num_cut, cut, blocks, costs, ideals)
                if j < last:
                    reach[j] |= ((reach[i] & chips) << ONE) & ideals.levels[j]
                elif reach[i] & chips & ideals.levels[last]:
                    return i, True
        i += 1
    return i, False


@inner
def _is_subset(i: int, j: int, ideals: Ideals) -> bool:
    for word in range(ideals.bits.shape[1]):
        if ideals.bits[i, word] & ~ideals.bits[j, word]:
            return False
    return True


@inner
def _with_empty_chips(reached: np.uint64, levels: np.uint64) -> np.uint64:
    """Return the levels that leaving the next chips empty reaches too."""
    more = (reached << ONE) & levels & ~reached
    while more:
        reached |= more
        more = (reached << ONE) & levels & ~reached
    return reached


@inner
def _cut_tensors(i: int, blocks: BlockArrays, ideals: Ideals, cut: Int32) -> int:
    """Write the tensors that ideal ``i`` makes and others read; return how many."""
    inside = ideals.bits[i]
    size = 0
    for t in range(blocks.tensor_bytes.size):
        p = blocks.tensor_producer[t]
        if not _has(inside, p):
            continue
        for c in range(blocks.consumer_ptr[t], blocks.consumer_ptr[t + 1]):
            n = blocks.consumer[c]
            if not _has(inside, n):
                cut[size] = t
                size += 1
                break
    return size


@inner
def stage_chips(
    i: int,
    j: int,
    num_cut: int,
    cut: Int32,
    blocks: BlockArrays,
    costs: StageCosts,
    ideals: Ideals,
) -> np.uint64:
    """Return the chips on which what ``j`` has beyond its subset ``i`` fits.

    Parameters
    ----------
    num_cut, cut
        The tensors that ``i`` cuts.
    """
    low, high = ideals.bits[i], ideals.bits[j]
    num_classes = costs.block_units.shape[0]
    fits = np.uint64(0)
    for k in range(num_classes):
        if ideals.units[j, k] - ideals.units[i, k] <= costs.limit_units:
            fits |= costs.class_chips[k]
    if not fits or not _may_be_one_stage(low, high, blocks):
        return np.uint64(0)
    traffic = _traffic_bytes(i, j, num_cut, cut, blocks, costs, ideals)
    if traffic < 0:
        return np.uint64(0)
    weights = ideals.weight_bytes[j] - ideals.weight_bytes[i]
    for item in range(blocks.item_host_bytes.size):
        if _is_used(item, low, high, blocks):
            traffic += blocks.item_host_bytes[item]
            weights += blocks.item_weight_bytes[item]
    for k in range(num_classes):
        compute = ideals.units[j, k] - ideals.units[i, k]
        for item in range(blocks.item_host_bytes.size):
            if costs.item_units[k, item] and _is_used(item, low, high, blocks):
                compute += costs.item_units[k, item]
        transfer = np.int64(traffic * costs.units_per_byte[k])
        stage = max(compute, transfer)
        if costs.serial:
            stage = compute + transfer
        if stage > costs.limit_units or weights + 2 * traffic > costs.memory_bytes[k]:
            fits &= ~costs.class_chips[k]
    return fits


@inner
def _may_be_one_stage(low: UInt64, high: UInt64, blocks: BlockArrays) -> bool:
    """Return whether no two blocks to be apart are both between the two ideals."""
    for q in range(blocks.apart.shape[0]):
        a, b = blocks.apart[q, 0], blocks.apart[q, 1]
        if _is_between(a, low, high) and (_is_between(b, low, high)):
            return False
    return True


@inner
def _traffic_bytes(
    i: int,
    j: int,
    num_cut: int,
    cut: Int32,
    blocks: BlockArrays,
    costs: StageCosts,
    ideals: Ideals,
) -> int:
    """Return bytes in and out of the stage without items, or -1 if a jump is illegal.

    What ``j`` cuts is sent by the stage, but for what ``i`` had made already: under
    ``relay`` that is received and sent on, otherwise it jumps over the stage.
    """
    low, high = ideals.bits[i], ideals.bits[j]
    traffic = ideals.fixed_bytes[j] - ideals.fixed_bytes[i] + ideals.sent_bytes[j]
    if costs.relay:
        traffic += ideals.cut_bytes[i]
    for row in range(num_cut):
        t = cut[row]
        consumed = False
        beyond = False
        for c in range(blocks.consumer_ptr[t], blocks.consumer_ptr[t + 1]):
            n = blocks.consumer[c]
            if not _has(high, n):
                beyond = True
                edge = costs.between_row[c]
                if edge >= 0:
                    for word in range(low.size):
                        if costs.between[edge, word] & high[word] & ~low[word]:
                            return -1
            elif not _has(low, n):
                consumed = True
        size = blocks.tensor_bytes[t]
        if costs.relay:
            # A model output is sent on like any other tensor.
            if beyond and blocks.tensor_is_output[t]:
                traffic += size
            continue
        if consumed:
            traffic += size
        if beyond and not blocks.tensor_is_output[t]:
            traffic -= size
    return traffic


@inner
def _is_used(item: int, low: UInt64, high: UInt64, blocks: BlockArrays) -> bool:
    """Return whether a block between the two ideals needs the item."""
    for i in range(blocks.user_ptr[item], blocks.user_ptr[item + 1]):
        n = blocks.user[i]
        if _is_between(n, low, high):
            return True
    return False


@jit
def stage_before(
    j: int,
    level: int,
    fill_chips: bool,
    blocks: BlockArrays,
    costs: StageCosts,
    ideals: Ideals,
    reach: UInt64,
) -> int:
    """Return an ideal from which chip ``level`` - 1 reaches ideal ``j``.

    ``j`` itself if that chip may stay empty there; -1 if there is none.
    """
    chip = bit(level - 1)
    if not fill_chips and reach[j] & chip and j < ideals.levels.size - 1:
        return j
    cut = np.empty(blocks.tensor_bytes.size, dtype=np.int32)
    for i in range(j - 1, -1, -1):
        if reach[i] & chip and _is_subset(i, j, ideals):
            num_cut = _cut_tensors(i, blocks, ideals, cut)
            chips = stage_chips(i, j, num_cut, cut, blocks, costs, ideals)
            if chips & chip:
                return i
    return -1


@jit
def mark_between(
    ancestors: UInt64, descendants: UInt64, blocks: BlockArrays, row_of: Int32
) -> int:
    """Give a row to each edge that has blocks between its ends; return how many.

    Parameters
    ----------
    ancestors, descendants
        ``[N, L] uint64``: of each block, without itself.
    row_of
        ``[consumers] int32``, written: -1 where there is none.
    """
    rows = 0
    for t in range(blocks.tensor_bytes.size):
        p = blocks.tensor_producer[t]
        for c in range(blocks.consumer_ptr[t], blocks.consumer_ptr[t + 1]):
            row_of[c] = -1
            for word in range(ancestors.shape[1]):
                if descendants[p, word] & ancestors[blocks.consumer[c], word]:
                    row_of[c] = rows
                    rows += 1
                    break
    return rows


@jit
def closures(blocks: BlockArrays, ancestors: UInt64, descendants: UInt64) -> None:
    """Write ancestors and descendants of each block, ``[N, L] uint64`` of zeros."""
    for n in range(blocks.first_op.size):
        for i in range(blocks.pred_ptr[n], blocks.pred_ptr[n + 1]):
            p = blocks.pred[i]
            for word in range(ancestors.shape[1]):
                ancestors[n, word] |= ancestors[p, word]
            ancestors[n, p >> 6] |= bit(p & 63)
    for n in range(blocks.first_op.size - 1, -1, -1):
        for i in range(blocks.succ_ptr[n], blocks.succ_ptr[n + 1]):
            s = blocks.succ[i]
            for word in range(descendants.shape[1]):
                descendants[n, word] |= descendants[s, word]
            descendants[n, s >> 6] |= bit(s & 63)


@jit
def closure_sums(closure: UInt64, weight: Float64) -> Float64:
    """Return the sum of ``weight`` ``[N] float64`` over each row's blocks, ``[N]``."""
    sums = np.zeros(weight.size, dtype=np.float64)
    for n in range(weight.size):
        for word in range(closure.shape[1]):
            rest = closure[n, word]
            while rest:
                sums[n] += weight[64 * word + lowest(rest)]
                rest &= rest - ONE
    return sums
