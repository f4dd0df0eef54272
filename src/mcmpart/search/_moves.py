"""Compiled local search: a placement that changes by small moves.

A move takes a block, with what depends on it there, to the chip before or after its
own, and touches the loads of those two chips and of the hop between them only:
O(degree) for each block whatever the size of the graph. The plain twin is a full
evaluation after each move (tests/search).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart._jit import jit, leaf
from mcmpart._rng import next_below, next_unit
from mcmpart.blocks import BlockArrays, LiveArrays
from mcmpart.evaluate._kernels import (
    Loads,
    bit,
    memory_fits,
    new_loads,
    sum_blocks,
    sum_tensors,
    triangle_holds,
)
from mcmpart.graph.graph import Int32, Int64
from mcmpart.problem import PackageArrays

UInt64 = NDArray[np.uint64]

MAX_CLOSURE = 32
"""Most blocks that move at once."""


class Placement(NamedTuple):
    """A placement and everything a move must keep up to date; kernels write it.

    Attributes
    ----------
    chip_of, op_chip
        ``[N]`` and ``[V] int32``.
    readers
        ``[T, C] int32``: consumers of each cut tensor on each chip.
    reader_chips
        ``[T] uint64``: the chips with at least one.
    users
        ``[J, C] int32``: users of each shared item on each chip.
    arc_tensors
        ``[C, C] int32``: tensors that make the arc a -> b of the chip graph.
    members, num_members, slot
        ``[C, N]``, ``[C]`` and ``[N] int32``: the blocks of each chip in no order, how
        many they are, and the place of each block in that list.
    loads
        As :class:`Loads`, always those of ``chip_of``.
    """

    chip_of: Int32
    op_chip: Int32
    readers: Int32
    reader_chips: UInt64
    users: Int32
    arc_tensors: Int32
    members: Int32
    num_members: Int32
    slot: Int32
    loads: Loads


@jit
def new_placement(
    op_chip: Int32, blocks: BlockArrays, package: PackageArrays
) -> Placement:
    """Return the placement of ``op_chip`` ``[V] int32``, which must obey dataflow."""
    num_chips = package.chip_class.size
    num_blocks = blocks.first_op.size
    chip_of = np.empty(num_blocks, dtype=np.int32)
    members = np.zeros((num_chips, num_blocks), dtype=np.int32)
    slot = np.zeros(num_blocks, dtype=np.int32)
    size = np.zeros(num_chips, dtype=np.int32)
    for n in range(num_blocks):
        c = op_chip[blocks.first_op[n]]
        chip_of[n] = c
        members[c, size[c]] = n
        slot[n] = size[c]
        size[c] += 1
    loads = new_loads(num_chips)
    sum_blocks(chip_of, blocks, package.chip_class, loads)
    sum_tensors(chip_of, blocks, package.relay, loads)
    num_tensors = blocks.tensor_bytes.size
    readers = np.zeros((num_tensors, num_chips), dtype=np.int32)
    reader_chips = np.zeros(num_tensors, dtype=np.uint64)
    arc_tensors = np.zeros((num_chips, num_chips), dtype=np.int32)
    for t in range(num_tensors):
        source = chip_of[blocks.tensor_producer[t]]
        for i in range(blocks.consumer_ptr[t], blocks.consumer_ptr[t + 1]):
            c = chip_of[blocks.consumer[i]]
            readers[t, c] += 1
            if not reader_chips[t] & bit(c):
                reader_chips[t] |= bit(c)
                arc_tensors[source, c] += c != source
    users = np.zeros((blocks.item_host_bytes.size, num_chips), dtype=np.int32)
    for j in range(users.shape[0]):
        for i in range(blocks.user_ptr[j], blocks.user_ptr[j + 1]):
            users[j, chip_of[blocks.user[i]]] += 1
    return Placement(
        chip_of,
        op_chip.copy(),
        readers,
        reader_chips,
        users,
        arc_tensors,
        members,
        size,
        slot,
        loads,
    )


@leaf
def closure_of(
    n: int,
    up: bool,
    limit: int,
    placement: Placement,
    blocks: BlockArrays,
    group: Int32,
) -> int:
    """Write what must move along with block ``n`` to the next chip up, or down.

    Going up that is ``n`` with its descendants on its own chip, going down with its
    ancestors there: then no edge is turned around.

    Parameters
    ----------
    group
        ``[limit] int32``, written: the closure in an order in which its blocks can
        move one by one (last readers first going up, first producers first going down).

    Returns
    -------
    int
        Size of the closure, or 0 if it has more than ``limit`` blocks.
    """
    chip = placement.chip_of[n]
    group[0] = n
    size = 1
    done = 0
    while done < size:
        member = group[done]
        done += 1
        if up:
            first, past = blocks.succ_ptr[member], blocks.succ_ptr[member + 1]
        else:
            first, past = blocks.pred_ptr[member], blocks.pred_ptr[member + 1]
        for i in range(first, past):
            other = blocks.succ[i] if up else blocks.pred[i]
            if placement.chip_of[other] != chip:
                continue
            known = False
            for j in range(size):
                known |= group[j] == other
            if known:
                continue
            if size == limit:
                return 0
            group[size] = other
            size += 1
    for i in range(1, size):
        member = group[i]
        j = i
        while j > 0 and (group[j - 1] < member) == up:
            group[j] = group[j - 1]
            j -= 1
        group[j] = member
    return size


@leaf
def _count_tensor(
    size: int,
    is_output: bool,
    chips: np.uint64,
    source: int,
    low: int,
    relay: bool,
    in_bytes: Int64,
    out_bytes: Int64,
    hop_bytes: Int64,
) -> None:
    """Add a tensor's traffic on chips ``low`` and ``low + 1`` and on the hop between.

    ``size`` is its bytes, negative to take it away; ``chips`` those that read it;
    ``source`` the one that writes it. The last three are written.
    """
    crossing = (chips >> np.uint64(source)) >> np.uint64(1)
    if not crossing:
        return
    if not is_output and (source == low or source == low + 1):
        out_bytes[source] += size
    for c in range(max(low, source + 1), low + 2):
        beyond = (chips >> np.uint64(c)) >> np.uint64(1)
        relayed = relay and beyond != 0
        if relayed or chips & bit(c):
            in_bytes[c] += size
        if relayed:
            out_bytes[c] += size
    if source <= low and (chips >> np.uint64(low)) >> np.uint64(1):
        hop_bytes[low] += size


@leaf
def _change_arc(a: int, b: int, by: int, arc_tensors: Int32, arcs: UInt64) -> bool:
    """Count a tensor of the arc a -> b; True if the arc appears or disappears."""
    if a == b:
        return False
    before = arc_tensors[a, b]
    arc_tensors[a, b] = before + by
    if before == 0:
        arcs[a] |= bit(b)
        return True
    if before + by == 0:
        arcs[a] &= ~bit(b)
        return True
    return False


@leaf
def move(
    n: int,
    to: int,
    placement: Placement,
    blocks: BlockArrays,
    package: PackageArrays,
) -> bool:
    """Take block ``n`` to the neighbouring chip ``to``; True if the chip graph changed.

    The member lists and ``op_chip`` are left to :func:`list_group`; the move is undone
    by the opposite one.
    """
    source = placement.chip_of[n]
    low = min(source, to)
    _count_tensors(n, low, np.int64(-1), placement, blocks, package.relay)
    arc_tensors, arcs = placement.arc_tensors, placement.loads.arcs
    changed = False
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        producer = placement.chip_of[blocks.tensor_producer[t]]
        placement.readers[t, source] -= 1
        if placement.readers[t, source] == 0:
            placement.reader_chips[t] &= ~bit(source)
            changed |= _change_arc(producer, source, np.int64(-1), arc_tensors, arcs)
        placement.readers[t, to] += 1
        if placement.readers[t, to] == 1:
            placement.reader_chips[t] |= bit(to)
            changed |= _change_arc(producer, to, np.int64(1), arc_tensors, arcs)
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        chips = placement.reader_chips[blocks.write[i]] >> np.uint64(low)
        c = low
        while chips:
            if chips & np.uint64(1):
                changed |= _change_arc(source, c, np.int64(-1), arc_tensors, arcs)
                changed |= _change_arc(to, c, np.int64(1), arc_tensors, arcs)
            chips >>= np.uint64(1)
            c += 1
    placement.chip_of[n] = to
    _count_tensors(n, low, np.int64(1), placement, blocks, package.relay)
    _move_own(n, source, to, placement, blocks, package.chip_class)
    return changed


@leaf
def _count_tensors(
    n: int,
    low: int,
    sign: int,
    placement: Placement,
    blocks: BlockArrays,
    relay: bool,
) -> None:
    """Add (+1) or take away (-1) what block ``n`` reads and writes."""
    loads = placement.loads
    in_bytes, out_bytes, hop_bytes = loads.in_bytes, loads.out_bytes, loads.hop_bytes
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        _count_tensor(
            sign * blocks.tensor_bytes[t],
            blocks.tensor_is_output[t],
            placement.reader_chips[t],
            placement.chip_of[blocks.tensor_producer[t]],
            low,
            relay,
            in_bytes,
            out_bytes,
            hop_bytes,
        )
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        t = blocks.write[i]
        _count_tensor(
            sign * blocks.tensor_bytes[t],
            blocks.tensor_is_output[t],
            placement.reader_chips[t],
            placement.chip_of[n],
            low,
            relay,
            in_bytes,
            out_bytes,
            hop_bytes,
        )


@leaf
def _move_own(
    n: int,
    source: int,
    to: int,
    placement: Placement,
    blocks: BlockArrays,
    chip_class: Int32,
) -> None:
    """Move block ``n``'s own costs and its shared items from ``source`` to ``to``."""
    loads = placement.loads
    loads.compute_s[source] -= blocks.block_s[chip_class[source], n]
    loads.compute_s[to] += blocks.block_s[chip_class[to], n]
    loads.in_bytes[source] -= blocks.host_bytes[n]
    loads.in_bytes[to] += blocks.host_bytes[n]
    loads.out_bytes[source] -= blocks.output_bytes[n]
    loads.out_bytes[to] += blocks.output_bytes[n]
    loads.weight_bytes[source] -= blocks.weight_bytes[n]
    loads.weight_bytes[to] += blocks.weight_bytes[n]
    loads.written_bytes[source] -= blocks.written_bytes[n]
    loads.written_bytes[to] += blocks.written_bytes[n]
    loads.num_blocks[source] -= 1
    loads.num_blocks[to] += 1
    for i in range(blocks.item_ptr[n], blocks.item_ptr[n + 1]):
        j = blocks.item[i]
        placement.users[j, source] -= 1
        if placement.users[j, source] == 0:
            loads.compute_s[source] -= blocks.item_s[chip_class[source], j]
            loads.in_bytes[source] -= blocks.item_host_bytes[j]
            loads.weight_bytes[source] -= blocks.item_weight_bytes[j]
        placement.users[j, to] += 1
        if placement.users[j, to] == 1:
            loads.compute_s[to] += blocks.item_s[chip_class[to], j]
            loads.in_bytes[to] += blocks.item_host_bytes[j]
            loads.weight_bytes[to] += blocks.item_weight_bytes[j]


@leaf
def list_group(
    size: int, source: int, placement: Placement, blocks: BlockArrays, group: Int32
) -> None:
    """Bring member lists and ``op_chip`` up to date after a group left ``source``."""
    for i in range(size):
        n = group[i]
        to = placement.chip_of[n]
        placement.num_members[source] -= 1
        last = placement.members[source, placement.num_members[source]]
        placement.members[source, placement.slot[n]] = last
        placement.slot[last] = placement.slot[n]
        placement.slot[n] = placement.num_members[to]
        placement.members[to, placement.slot[n]] = n
        placement.num_members[to] += 1
        for j in range(blocks.member_ptr[n], blocks.member_ptr[n + 1]):
            placement.op_chip[blocks.member[j]] = to


@leaf
def stage_of(c: int, loads: Loads, package: PackageArrays) -> float:
    """Return the stage time of chip ``c``."""
    transfer_s = (loads.in_bytes[c] + loads.out_bytes[c]) / package.io_bytes_per_s[c]
    if package.serial_io:
        return loads.compute_s[c] + transfer_s
    return max(loads.compute_s[c], transfer_s)


@leaf
def hop_of(hop: int, loads: Loads, package: PackageArrays) -> float:
    """Return the time of a hop, 0 where links do not limit."""
    if not package.link_limit:
        return 0.0
    return loads.hop_bytes[hop] / package.hop_bytes_per_s[hop]


@leaf
def _excess(value_s: float, target_s: float) -> float:
    over = max(value_s - target_s, 0.0) / target_s
    return over * over


@leaf
def pair_energy(
    low: int, target_s: float, loads: Loads, package: PackageArrays
) -> float:
    """Return the excess over the target of chips ``low``, ``low + 1`` and their hop."""
    return (
        _excess(stage_of(low, loads, package), target_s)
        + _excess(stage_of(low + 1, loads, package), target_s)
        + _excess(hop_of(low, loads, package), target_s)
    )


@leaf
def slowest(loads: Loads, package: PackageArrays) -> tuple[float, int]:
    """Return the bottleneck in seconds and a chip it concerns."""
    worst_s = -1.0
    where = 0
    for c in range(package.chip_class.size):
        stage_s = stage_of(c, loads, package)
        if stage_s > worst_s:
            worst_s, where = stage_s, c
        if c + 1 < package.chip_class.size:
            hop_s = hop_of(c, loads, package)
            if hop_s > worst_s:
                worst_s, where = hop_s, c
    return worst_s, where


@leaf
def _chips_allow(
    source: int,
    to: int,
    size: int,
    num_blocks: Int64,
    package: PackageArrays,
    all_chips: bool,
) -> bool:
    """Return whether the used chips may change as a move of ``size`` would change them.

    Under ``no_skip`` and ``relay`` chips open and close at the end only, where nothing
    is relayed, and a chip that was left empty below the end stays so.
    """
    empties = num_blocks[source] == size
    opens = num_blocks[to] == 0
    if empties and all_chips:
        return False
    if not (empties or opens) or not (package.no_skip or package.relay):
        return True
    if empties and (opens or to > source):
        return False
    if opens and to < source:
        return False
    for c in range(max(source, to) + 1, num_blocks.size):
        if num_blocks[c] > 0:
            return False
    return True


@leaf
def _user_allows(
    size: int, to: int, placement: Placement, blocks: BlockArrays, group: Int32
) -> bool:
    """Return whether no pin holds a block of the group, and none to be apart is met."""
    for i in range(size):
        if blocks.pin[group[i]] >= 0:
            return False
    for i in range(blocks.apart.shape[0]):
        a, b = blocks.apart[i, 0], blocks.apart[i, 1]
        a_moves = False
        b_moves = False
        for j in range(size):
            a_moves |= group[j] == a
            b_moves |= group[j] == b
        if a_moves and b_moves:
            return False
        if (a_moves and placement.chip_of[b] == to) or (
            b_moves and placement.chip_of[a] == to
        ):
            return False
    return True


@leaf
def move_group(
    size: int,
    to: int,
    placement: Placement,
    blocks: BlockArrays,
    package: PackageArrays,
    group: Int32,
) -> bool:
    """Move a closure block by block; True if the chip graph changed."""
    changed = False
    for i in range(size):
        changed |= move(group[i], to, placement, blocks, package)
    return changed


@jit
def anneal_moves(
    placement: Placement,
    budget: int,
    target_s: float,
    hot: float,
    cold: float,
    all_chips: bool,
    state: UInt64,
    blocks: BlockArrays,
    live: LiveArrays,
    package: PackageArrays,
    best: Int32,
) -> tuple[float, int]:
    """Anneal by random closures until ``budget`` is spent; keep the best one met.

    The energy is the sum over chips and hops of (max(0, load - target) / target)^2;
    a move that raises it is taken with probability exp(-rise / temperature), which
    falls geometrically from ``hot`` to ``cold``. Half of the moves start at the
    slowest chip.

    Parameters
    ----------
    placement
        Valid; changed.
    budget
        Blocks looked at, whether moved or not: a measure of time that does not depend
        on the machine.
    state
        ``[1] uint64``, the random state; changed.
    best
        ``[V] int32``, written with the best valid placement.

    Returns
    -------
    bottleneck_s, num_costed
        That of ``best``, and how many moves of single blocks were costed.
    """
    num_chips = package.chip_class.size
    loads = placement.loads
    best_s, worst = slowest(loads, package)
    best[:] = placement.op_chip
    group = np.empty(MAX_CLOSURE, dtype=np.int32)
    num_costed = 0
    spent = 0
    while spent < budget:
        spent += 1
        source = worst
        if next_below(state, 2) == 0:
            source = next_below(state, num_chips)
        to = source + 2 * next_below(state, 2) - 1
        if loads.num_blocks[source] == 0 or to < 0 or to >= num_chips:
            continue
        n = placement.members[source, next_below(state, loads.num_blocks[source])]
        limit = 1 + next_below(state, MAX_CLOSURE)
        size = closure_of(n, to > source, limit, placement, blocks, group)
        spent += size
        if (
            size == 0
            or not _chips_allow(source, to, size, loads.num_blocks, package, all_chips)
            or not _user_allows(size, to, placement, blocks, group)
        ):
            continue
        num_costed += size
        low = min(source, to)
        before = pair_energy(low, target_s, loads, package)
        compute_low, compute_high = loads.compute_s[low], loads.compute_s[low + 1]
        changed = move_group(size, to, placement, blocks, package, group)
        rise = pair_energy(low, target_s, loads, package) - before
        temperature = hot * (cold / hot) ** (spent / budget)
        taken = rise <= 0 or next_unit(state) < np.exp(-rise / temperature)
        if taken and package.triangle and changed:
            taken = triangle_holds(loads.arcs)
        if taken:
            list_group(size, source, placement, blocks, group)
            if package.memory and not memory_fits(
                loads,
                placement.op_chip,
                live,
                package.memory_bytes,
                bit(low) | bit(low + 1),
            ):
                taken = False
        if not taken:
            listed = placement.op_chip[blocks.first_op[n]] == to
            move_group(size, source, placement, blocks, package, group)
            loads.compute_s[low] = compute_low
            loads.compute_s[low + 1] = compute_high
            if listed:
                list_group(size, to, placement, blocks, group)
            continue
        bottleneck_s, worst = slowest(loads, package)
        if bottleneck_s < best_s:
            best_s = bottleneck_s
            best[:] = placement.op_chip
    return best_s, num_costed
