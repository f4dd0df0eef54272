"""Compiled placements that change by one block at a time.

A move takes a block to the chip before or after its own, and touches the loads of those
two chips and of the hop between them only: O(degree) whatever the size of the graph.
The plain twin is a full evaluation after each move (tests/search).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart._bits import bit
from mcmpart._jit import jit, leaf
from mcmpart.blocks import BlockArrays
from mcmpart.evaluate._kernels import Loads, new_loads, sum_blocks, sum_tensors
from mcmpart.graph.graph import Int32, Int64
from mcmpart.problem import PackageArrays

UInt64 = NDArray[np.uint64]


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
