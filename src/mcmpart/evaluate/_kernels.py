"""Compiled evaluation: loads per chip, static rules, bottleneck.

The plain twin of all of it is ``reference.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcmpart._bits import EVERY_CHIP, bit
from mcmpart._jit import jit, leaf
from mcmpart.blocks import BlockArrays, LiveArrays
from mcmpart.graph.graph import Bool, Float64, Int32, Int64
from mcmpart.problem import PackageArrays

UInt64 = NDArray[np.uint64]


class Loads(NamedTuple):
    """What each chip and hop carries under one partition; kernels fill it in.

    Attributes
    ----------
    compute_s
        ``[C] float64``.
    in_bytes, out_bytes, weight_bytes, peak_live_bytes
        ``[C] int64``.
    written_bytes
        ``[C] int64``: all tensors that the chip's blocks write.
    num_blocks
        ``[C] int64``: blocks on each chip.
    hop_bytes
        ``[C] int64``: entry i is the traffic from chip i to i + 1 (the last stays 0).
    arcs
        ``[C] uint64``: bit b of entry a is set iff the chip graph has the arc a -> b.
    """

    compute_s: Float64
    in_bytes: Int64
    out_bytes: Int64
    weight_bytes: Int64
    peak_live_bytes: Int64
    written_bytes: Int64
    num_blocks: Int64
    hop_bytes: Int64
    arcs: UInt64


@leaf
def sum_blocks(
    chip_of: Int32, blocks: BlockArrays, chip_class: Int32, loads: Loads
) -> bool:
    """Add each block's own costs to its chip; False if a chip is out of range.

    Reads ``chip_of`` ``[N] int32``; resets ``loads`` and writes all but ``hop_bytes``,
    ``arcs`` and ``peak_live_bytes``, which it only clears.
    """
    num_chips = chip_class.size
    for c in range(num_chips):
        loads.compute_s[c] = 0.0
        loads.in_bytes[c] = 0
        loads.out_bytes[c] = 0
        loads.weight_bytes[c] = 0
        loads.peak_live_bytes[c] = 0
        loads.written_bytes[c] = 0
        loads.num_blocks[c] = 0
        loads.hop_bytes[c] = 0
        loads.arcs[c] = np.uint64(0)
    # Neighbouring blocks mostly share a chip: a run of them is summed in registers.
    first = 0
    while first < chip_of.size:
        c = chip_of[first]
        if c < 0 or c >= num_chips:
            return False
        k = chip_class[c]
        compute_s = 0.0
        in_bytes = out_bytes = weight_bytes = written_bytes = 0
        n = first
        while n < chip_of.size and chip_of[n] == c:
            compute_s += blocks.block_s[k, n]
            in_bytes += blocks.host_bytes[n]
            out_bytes += blocks.output_bytes[n]
            weight_bytes += blocks.weight_bytes[n]
            written_bytes += blocks.written_bytes[n]
            n += 1
        loads.compute_s[c] += compute_s
        loads.in_bytes[c] += in_bytes
        loads.out_bytes[c] += out_bytes
        loads.weight_bytes[c] += weight_bytes
        loads.written_bytes[c] += written_bytes
        loads.num_blocks[c] += n - first
        first = n
    for j in range(blocks.item_host_bytes.size):
        seen = np.uint64(0)
        for i in range(blocks.user_ptr[j], blocks.user_ptr[j + 1]):
            c = chip_of[blocks.user[i]]
            if seen & bit(c):
                continue
            seen |= bit(c)
            loads.compute_s[c] += blocks.item_s[chip_class[c], j]
            loads.in_bytes[c] += blocks.item_host_bytes[j]
            loads.weight_bytes[c] += blocks.item_weight_bytes[j]
    return True


@leaf
def sum_tensors(chip_of: Int32, blocks: BlockArrays, relay: bool, loads: Loads) -> bool:
    """Add the traffic of every cut tensor; False if an edge goes to a lower chip.

    Reads ``chip_of`` ``[N] int32``; writes ``in_bytes``, ``out_bytes``, ``hop_bytes``
    (differences, summed at the end) and ``arcs`` of ``loads``.
    """
    num_chips = loads.arcs.size
    for t in range(blocks.tensor_bytes.size):
        source = chip_of[blocks.tensor_producer[t]]
        size = blocks.tensor_bytes[t]
        seen = np.uint64(0)
        last = source
        for i in range(blocks.consumer_ptr[t], blocks.consumer_ptr[t + 1]):
            c = chip_of[blocks.consumer[i]]
            if c == source or seen & bit(c):
                continue
            if c < source:
                return False
            seen |= bit(c)
            loads.in_bytes[c] += size
            last = max(last, c)
        if last == source:
            continue
        if not blocks.tensor_is_output[t]:
            loads.out_bytes[source] += size
        loads.arcs[source] |= seen
        loads.hop_bytes[source] += size
        loads.hop_bytes[last] -= size
        if relay:
            for c in range(source + 1, last):
                if loads.num_blocks[c] > 0:
                    loads.out_bytes[c] += size
                    if not seen & bit(c):
                        loads.in_bytes[c] += size
    for c in range(1, num_chips):
        loads.hop_bytes[c] += loads.hop_bytes[c - 1]
    return True


@jit
def triangle_holds(arcs: UInt64) -> bool:
    """Return whether no arc a -> b of the chip graph has a longer path beside it.

    ``arcs`` ``[C] uint64`` goes to higher chips only.
    """
    num_chips = arcs.size
    reach = np.zeros(num_chips, dtype=np.uint64)
    for a in range(num_chips - 1, -1, -1):
        beyond = np.uint64(0)
        if arcs[a]:
            for b in range(a + 1, num_chips):
                if arcs[a] & bit(b):
                    beyond |= reach[b]
        if arcs[a] & beyond:
            return False
        reach[a] = arcs[a] | beyond
    return True


@jit
def peak_live(op_chip: Int32, live: LiveArrays, wanted: np.uint64, peak: Int64) -> None:
    """Write the largest sum of live tensors of each chip into ``peak`` ``[C] int64``.

    Only the chips whose bit is set in ``wanted`` are looked at; the others get 0.

    A tensor that the chip computes is live from its producer to its last reader on
    the chip; ``op_chip`` ``[V] int32`` is -1 for replicable ops, which live on every
    chip that needs them. Received tensors lie in the transfer buffers instead.
    """
    num_chips = peak.size
    num_tensors = live.tensor_bytes.size
    last = np.full(num_tensors, -1, dtype=np.int32)
    replica_last = np.full((live.num_replica_tensors, num_chips), -1, dtype=np.int32)
    need = needed_replicas(op_chip, live, replica_last)
    now = np.zeros(num_chips, dtype=np.int64)
    peak[:] = 0
    num_replicas = 0
    for op in range(op_chip.size):
        c = op_chip[op]
        if c < 0:
            mask = need[num_replicas]
            num_replicas += 1
            for chip in range(num_chips):
                if mask & wanted & bit(chip):
                    _run_replica(op, chip, live, replica_last, now, peak)
            continue
        if not wanted & bit(c):
            continue
        for i in range(live.write_ptr[op], live.write_ptr[op + 1]):
            t = live.write[i]
            now[c] += live.tensor_bytes[t]
            last[t] = op
            for j in range(live.consumer_ptr[t + 1] - 1, live.consumer_ptr[t] - 1, -1):
                if op_chip[live.consumer[j]] == c:
                    last[t] = live.consumer[j]
                    break
        peak[c] = max(peak[c], now[c])
        for i in range(live.read_ptr[op], live.read_ptr[op + 1]):
            t = live.read[i]
            row = live.replica_tensor[t]
            if last[t] == op or (row >= 0 and replica_last[row, c] == op):
                now[c] -= live.tensor_bytes[t]
        for i in range(live.write_ptr[op], live.write_ptr[op + 1]):
            if last[live.write[i]] == op:
                now[c] -= live.tensor_bytes[live.write[i]]


@jit
def needed_replicas(op_chip: Int32, live: LiveArrays, replica_last: Int32) -> UInt64:
    """Return the chips that need each replicable op, ``[R] uint64``.

    Also writes the last reader of each replica's tensor on each chip into
    ``replica_last`` ``[tensors of replicas, C] int32``, filled with -1 before.
    """
    need = np.zeros(live.replica.size, dtype=np.uint64)
    row_of = np.full(op_chip.size, -1, dtype=np.int32)
    for r in range(live.replica.size):
        row_of[live.replica[r]] = r
    for r in range(live.replica.size - 1, -1, -1):
        op = live.replica[r]
        for i in range(live.write_ptr[op], live.write_ptr[op + 1]):
            t = live.write[i]
            row = live.replica_tensor[t]
            for j in range(live.consumer_ptr[t], live.consumer_ptr[t + 1]):
                reader = live.consumer[j]
                if op_chip[reader] >= 0:
                    need[r] |= bit(op_chip[reader])
                    replica_last[row, op_chip[reader]] = reader
                    continue
                mask = need[row_of[reader]]
                need[r] |= mask
                for chip in range(replica_last.shape[1]):
                    if mask & bit(chip):
                        replica_last[row, chip] = reader
    return need


@leaf
def _run_replica(
    op: int, chip: int, live: LiveArrays, replica_last: Int32, now: Int64, peak: Int64
) -> None:
    for i in range(live.write_ptr[op], live.write_ptr[op + 1]):
        now[chip] += live.tensor_bytes[live.write[i]]
    peak[chip] = max(peak[chip], now[chip])
    for i in range(live.read_ptr[op], live.read_ptr[op + 1]):
        row = live.replica_tensor[live.read[i]]
        if row >= 0 and replica_last[row, chip] == op:
            now[chip] -= live.tensor_bytes[live.read[i]]
    for i in range(live.write_ptr[op], live.write_ptr[op + 1]):
        if replica_last[live.replica_tensor[live.write[i]], chip] == -1:
            now[chip] -= live.tensor_bytes[live.write[i]]


@leaf
def user_rules_hold(chip_of: Int32, blocks: BlockArrays) -> bool:
    """Return whether pins, together and apart hold for ``chip_of`` ``[N] int32``."""
    for n in range(chip_of.size):
        if blocks.pin[n] >= 0 and blocks.pin[n] != chip_of[n]:
            return False
    for i in range(blocks.same.shape[0]):
        if chip_of[blocks.same[i, 0]] != chip_of[blocks.same[i, 1]]:
            return False
    for i in range(blocks.apart.shape[0]):
        if chip_of[blocks.apart[i, 0]] == chip_of[blocks.apart[i, 1]]:
            return False
    return True


@leaf
def chips_are_used(num_blocks: Int64, all_chips: bool) -> bool:
    """Return whether the used chips are a prefix (and, if asked, all of them)."""
    for c in range(num_blocks.size):
        if num_blocks[c] == 0 and all_chips:
            return False
        if c > 0 and num_blocks[c] > 0 and num_blocks[c - 1] == 0:
            return False
    return True


@leaf
def bottleneck_of(loads: Loads, package: PackageArrays) -> float:
    """Return the time of the slowest stage or hop in seconds."""
    bottleneck = 0.0
    for c in range(loads.compute_s.size):
        transfer_s = (loads.in_bytes[c] + loads.out_bytes[c]) / package.io_bytes_per_s[
            c
        ]
        if package.serial_io:
            stage_s = loads.compute_s[c] + transfer_s
        else:
            stage_s = max(loads.compute_s[c], transfer_s)
        bottleneck = max(bottleneck, stage_s)
    if package.link_limit:
        for hop in range(package.hop_bytes_per_s.size):
            link_s = loads.hop_bytes[hop] / package.hop_bytes_per_s[hop]
            bottleneck = max(bottleneck, link_s)
    return bottleneck


@jit
def memory_fits(
    loads: Loads,
    op_chip: Int32,
    live: LiveArrays,
    memory_bytes: Int64,
    wanted: np.uint64,
) -> bool:
    """Return whether weights, double buffers and live tensors fit each wanted chip.

    The live tensors are at most all that the chip writes; only where that bound does
    not settle the matter, the exact peaks are computed.
    """
    unsettled = np.uint64(0)
    for c in range(memory_bytes.size):
        if not wanted & bit(c):
            continue
        room = _room_bytes(c, loads, memory_bytes)
        if room < 0:
            return False
        if loads.written_bytes[c] + live.replica_bytes > room:
            unsettled |= bit(c)
    if not unsettled:
        return True
    peak_live(op_chip, live, unsettled, loads.peak_live_bytes)
    for c in range(memory_bytes.size):
        room = _room_bytes(c, loads, memory_bytes)
        if unsettled & bit(c) and loads.peak_live_bytes[c] > room:
            return False
    return True


@leaf
def _room_bytes(c: int, loads: Loads, memory_bytes: Int64) -> int:
    """Return what weights and double buffers leave of a chip's memory."""
    buffers = 2 * (loads.in_bytes[c] + loads.out_bytes[c])
    return memory_bytes[c] - loads.weight_bytes[c] - buffers


@jit
def judge(
    chip_of: Int32,
    op_chip: Int32,
    blocks: BlockArrays,
    live: LiveArrays,
    package: PackageArrays,
    all_chips: bool,
    always_live: bool,
    loads: Loads,
) -> tuple[float, bool]:
    """Return bottleneck in seconds and static validity of one partition.

    Parameters
    ----------
    chip_of, op_chip
        ``[N]`` and ``[V] int32``: the same partition by block and by op.
    always_live
        Compute ``peak_live_bytes`` even where no rule asks for it.
    loads
        Written.

    Notes
    -----
    The bottleneck is infinite where it is not defined: a chip out of range, or an edge
    against the dataflow.
    """
    if not sum_blocks(chip_of, blocks, package.chip_class, loads):
        return np.inf, False
    if not sum_tensors(chip_of, blocks, package.relay, loads):
        return np.inf, False
    valid = user_rules_hold(chip_of, blocks)
    if package.no_skip or all_chips:
        valid = valid and chips_are_used(loads.num_blocks, all_chips)
    if package.triangle:
        valid = valid and triangle_holds(loads.arcs)
    if package.memory:
        valid = valid and memory_fits(
            loads, op_chip, live, package.memory_bytes, EVERY_CHIP
        )
    if always_live:
        peak_live(op_chip, live, EVERY_CHIP, loads.peak_live_bytes)
    return bottleneck_of(loads, package), valid


@jit
def new_loads(num_chips: int) -> Loads:
    """Return empty loads for ``num_chips`` chips."""
    return Loads(
        np.zeros(num_chips, dtype=np.float64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.int64),
        np.zeros(num_chips, dtype=np.uint64),
    )


@jit
def judge_rows(
    op_chips: Int32,
    blocks: BlockArrays,
    live: LiveArrays,
    package: PackageArrays,
    all_chips: bool,
    always_live: bool,
    bottleneck_s: Float64,
    valid: Bool,
) -> None:
    """Judge each row of ``op_chips`` ``[B, V] int32``; writes the last two, ``[B]``."""
    loads = new_loads(package.chip_class.size)
    chip_of = np.empty(blocks.first_op.size, dtype=np.int32)
    for row in range(op_chips.shape[0]):
        for n in range(chip_of.size):
            chip_of[n] = op_chips[row, blocks.first_op[n]]
        bottleneck_s[row], valid[row] = judge(
            chip_of,
            op_chips[row],
            blocks,
            live,
            package,
            all_chips,
            always_live,
            loads,
        )
