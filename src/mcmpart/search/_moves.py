"""Compiled local search: a placement that changes by one block at a time.

A move takes a block to the chip before or after its own, and touches the loads of
those two chips and of the hop between them only: O(degree) whatever the size of the
graph. The plain twin is a full evaluation after each move (tests/search).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart._jit import jit
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
    members, slot
        ``[C, N]`` and ``[N] int32``: the blocks of each chip in no order, and the
        place of each block in that list.
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
        slot,
        loads,
    )


@jit
def dataflow_allows(n: int, to: int, placement: Placement, blocks: BlockArrays) -> bool:
    """Return whether block ``n`` may stand on chip ``to`` as far as its edges go."""
    if to < placement.chip_of[n]:
        for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
            producer = blocks.tensor_producer[blocks.read[i]]
            if placement.chip_of[producer] > to:
                return False
        return True
    before = bit(to) - np.uint64(1)
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        if placement.reader_chips[blocks.write[i]] & before:
            return False
    return True


@jit
def _count_tensor(
    t: int,
    source: int,
    low: int,
    sign: int,
    placement: Placement,
    blocks: BlockArrays,
    relay: bool,
) -> None:
    """Add (+1) or take away (-1) tensor ``t`` on two neighbours and their hop."""
    size = sign * blocks.tensor_bytes[t]
    loads = placement.loads
    chips = placement.reader_chips[t]
    beyond_source = ~((bit(source) << np.uint64(1)) - np.uint64(1))
    crossing = chips & beyond_source
    if not crossing:
        return
    if not blocks.tensor_is_output[t] and (source == low or source == low + 1):
        loads.out_bytes[source] += size
    for c in range(low, low + 2):
        if c <= source:
            continue
        here = (crossing & bit(c)) != 0
        further = (crossing & ~((bit(c) << np.uint64(1)) - np.uint64(1))) != 0
        relayed = relay and further
        if here or relayed:
            loads.in_bytes[c] += size
        if relayed:
            loads.out_bytes[c] += size
    above = ~((bit(low) << np.uint64(1)) - np.uint64(1))
    if source <= low and crossing & above:
        loads.hop_bytes[low] += size


@jit
def _change_arc(a: int, b: int, by: int, placement: Placement) -> bool:
    """Count a tensor of the arc a -> b; True if the arc appears or disappears."""
    if a == b:
        return False
    before = placement.arc_tensors[a, b]
    placement.arc_tensors[a, b] = before + by
    if before == 0:
        placement.loads.arcs[a] |= bit(b)
        return True
    if before + by == 0:
        placement.loads.arcs[a] &= ~bit(b)
        return True
    return False


@jit
def move(
    n: int,
    to: int,
    placement: Placement,
    blocks: BlockArrays,
    package: PackageArrays,
) -> bool:
    """Take block ``n`` to the neighbouring chip ``to``; True if the chip graph changed.

    Everything but ``op_chip``, ``members`` and ``slot`` follows; the move is undone by
    the opposite one.
    """
    source = placement.chip_of[n]
    low = min(source, to)
    relay = package.relay
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        producer = placement.chip_of[blocks.tensor_producer[t]]
        _count_tensor(t, producer, low, -1, placement, blocks, relay)
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        _count_tensor(blocks.write[i], source, low, -1, placement, blocks, relay)
    changed = False
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        producer = placement.chip_of[blocks.tensor_producer[t]]
        placement.readers[t, source] -= 1
        if placement.readers[t, source] == 0:
            placement.reader_chips[t] &= ~bit(source)
            changed |= _change_arc(producer, source, -1, placement)
        placement.readers[t, to] += 1
        if placement.readers[t, to] == 1:
            placement.reader_chips[t] |= bit(to)
            changed |= _change_arc(producer, to, 1, placement)
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        chips = placement.reader_chips[blocks.write[i]]
        for c in range(low, package.chip_class.size):
            if chips & bit(c):
                changed |= _change_arc(source, c, -1, placement)
                changed |= _change_arc(to, c, 1, placement)
    placement.chip_of[n] = to
    for i in range(blocks.read_ptr[n], blocks.read_ptr[n + 1]):
        t = blocks.read[i]
        producer = placement.chip_of[blocks.tensor_producer[t]]
        _count_tensor(t, producer, low, 1, placement, blocks, relay)
    for i in range(blocks.write_ptr[n], blocks.write_ptr[n + 1]):
        _count_tensor(blocks.write[i], to, low, 1, placement, blocks, relay)
    _move_own(n, source, -1, placement, blocks, package)
    _move_own(n, to, 1, placement, blocks, package)
    return changed


@jit
def _move_own(
    n: int,
    c: int,
    sign: int,
    placement: Placement,
    blocks: BlockArrays,
    package: PackageArrays,
) -> None:
    """Add (+1) or take away (-1) block ``n``'s own costs and items on chip ``c``."""
    loads = placement.loads
    k = package.chip_class[c]
    loads.compute_s[c] += sign * blocks.block_s[k, n]
    loads.in_bytes[c] += sign * blocks.host_bytes[n]
    loads.out_bytes[c] += sign * blocks.output_bytes[n]
    loads.weight_bytes[c] += sign * blocks.weight_bytes[n]
    loads.written_bytes[c] += sign * blocks.written_bytes[n]
    loads.num_blocks[c] += sign
    for i in range(blocks.item_ptr[n], blocks.item_ptr[n + 1]):
        j = blocks.item[i]
        placement.users[j, c] += sign
        count = placement.users[j, c]
        if (sign > 0 and count == 1) or (sign < 0 and count == 0):
            loads.compute_s[c] += sign * blocks.item_s[k, j]
            loads.in_bytes[c] += sign * blocks.item_host_bytes[j]
            loads.weight_bytes[c] += sign * blocks.item_weight_bytes[j]


@jit
def _list_move(
    n: int, source: int, to: int, placement: Placement, blocks: BlockArrays
) -> None:
    """Bring ``members``, ``slot`` and ``op_chip`` up to date after a move."""
    last = placement.members[source, placement.loads.num_blocks[source]]
    placement.members[source, placement.slot[n]] = last
    placement.slot[last] = placement.slot[n]
    placement.slot[n] = placement.loads.num_blocks[to] - 1
    placement.members[to, placement.slot[n]] = n
    for i in range(blocks.member_ptr[n], blocks.member_ptr[n + 1]):
        placement.op_chip[blocks.member[i]] = to


@jit
def stage_of(c: int, loads: Loads, package: PackageArrays) -> float:
    """Return the stage time of chip ``c``."""
    transfer_s = (loads.in_bytes[c] + loads.out_bytes[c]) / package.io_bytes_per_s[c]
    if package.serial_io:
        return loads.compute_s[c] + transfer_s
    return max(loads.compute_s[c], transfer_s)


@jit
def hop_of(hop: int, loads: Loads, package: PackageArrays) -> float:
    """Return the time of a hop, 0 where links do not limit."""
    if not package.link_limit:
        return 0.0
    return loads.hop_bytes[hop] / package.hop_bytes_per_s[hop]


@jit
def _excess(value_s: float, target_s: float) -> float:
    over = max(value_s - target_s, 0.0) / target_s
    return over * over


@jit
def pair_energy(
    low: int, target_s: float, loads: Loads, package: PackageArrays
) -> float:
    """Return the excess over the target of chips ``low``, ``low + 1`` and their hop."""
    return (
        _excess(stage_of(low, loads, package), target_s)
        + _excess(stage_of(low + 1, loads, package), target_s)
        + _excess(hop_of(low, loads, package), target_s)
    )


@jit
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


@jit
def _chips_allow(
    source: int, to: int, num_blocks: Int64, package: PackageArrays, all_chips: bool
) -> bool:
    """Return whether the used chips may change as this move would change them.

    Under ``relay`` chips open and close at the end only, where nothing is relayed, and
    a chip that was left empty below the end stays so.
    """
    if num_blocks[source] > 1 and num_blocks[to] > 0:
        return True
    if all_chips and num_blocks[source] == 1:
        return False
    if not (package.no_skip or package.relay):
        return True
    if num_blocks[source] == 1:
        if to > source or num_blocks[to] == 0:
            return False
        for c in range(source + 1, num_blocks.size):
            if num_blocks[c] > 0:
                return False
        return True
    if to < source:
        return False
    for c in range(to, num_blocks.size):
        if num_blocks[c] > 0:
            return False
    return True


@jit
def _apart_allows(n: int, to: int, placement: Placement, blocks: BlockArrays) -> bool:
    for i in range(blocks.apart.shape[0]):
        a, b = blocks.apart[i, 0], blocks.apart[i, 1]
        if (a == n and placement.chip_of[b] == to) or (
            b == n and placement.chip_of[a] == to
        ):
            return False
    return True


@jit
def anneal_moves(
    placement: Placement,
    num_moves: int,
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
    """Try ``num_moves`` random moves; keep the best valid placement met.

    The energy is the sum over chips and hops of (max(0, load - target) / target)^2;
    a move that raises it is taken with probability exp(-rise / temperature), which
    falls geometrically from ``hot`` to ``cold``. Half of the moves start at the
    slowest chip.

    Parameters
    ----------
    placement
        Valid; changed.
    state
        ``[1] uint64``, the random state; changed.
    best
        ``[V] int32``, written with the best placement.

    Returns
    -------
    bottleneck_s, num_costed
        That of ``best``, and how many moves were legal and so costed.
    """
    num_chips = package.chip_class.size
    loads = placement.loads
    best_s, worst = slowest(loads, package)
    best[:] = placement.op_chip
    num_costed = 0
    cooling = (cold / hot) ** (1.0 / max(num_moves, 1))
    temperature = hot
    for _ in range(num_moves):
        temperature *= cooling
        source = worst
        if next_below(state, 2) == 0:
            source = next_below(state, num_chips)
        if loads.num_blocks[source] == 0:
            continue
        n = placement.members[source, next_below(state, loads.num_blocks[source])]
        to = source + 2 * next_below(state, 2) - 1
        if to < 0 or to >= num_chips or blocks.pin[n] >= 0:
            continue
        if not (
            dataflow_allows(n, to, placement, blocks)
            and _chips_allow(source, to, loads.num_blocks, package, all_chips)
            and _apart_allows(n, to, placement, blocks)
        ):
            continue
        num_costed += 1
        low = min(source, to)
        before = pair_energy(low, target_s, loads, package)
        compute_low, compute_high = loads.compute_s[low], loads.compute_s[low + 1]
        changed = move(n, to, placement, blocks, package)
        rise = pair_energy(low, target_s, loads, package) - before
        taken = rise <= 0 or next_unit(state) < np.exp(-rise / temperature)
        if taken and package.triangle and changed:
            taken = triangle_holds(loads.arcs)
        if taken:
            _list_move(n, source, to, placement, blocks)
            if package.memory:
                taken = memory_fits(
                    loads, placement.op_chip, live, package.memory_bytes
                )
        if not taken:
            moved_back = placement.op_chip[blocks.first_op[n]] == to
            move(n, source, placement, blocks, package)
            loads.compute_s[low], loads.compute_s[low + 1] = compute_low, compute_high
            if moved_back:
                _list_move(n, to, source, placement, blocks)
            continue
        bottleneck_s, worst = slowest(loads, package)
        if bottleneck_s < best_s:
            best_s = bottleneck_s
            best[:] = placement.op_chip
    return best_s, num_costed
