"""Compiled annealing by moves of closures between neighbouring chips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcmpart._bits import bit
from mcmpart._jit import jit, leaf
from mcmpart._rng import next_below, next_unit
from mcmpart.blocks import BlockArrays, LiveArrays
from mcmpart.evaluate._kernels import Loads, memory_fits, triangle_holds
from mcmpart.graph.graph import Int32, Int64
from mcmpart.problem import PackageArrays
from mcmpart.search._placement import Placement, list_group, move_group

UInt64 = NDArray[np.uint64]

MAX_CLOSURE = 32
"""Most blocks that move at once."""


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
