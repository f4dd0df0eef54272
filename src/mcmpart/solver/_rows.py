"""Many draws, one after the other: attempts, restarts and the final check."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcmpart._bits import EVERY_CHIP, at_most, lowest
from mcmpart._jit import jit, leaf
from mcmpart._rng import next_below, next_word
from mcmpart.blocks import BlockArrays, LiveArrays
from mcmpart.evaluate._kernels import (
    Loads,
    new_loads,
    peak_live,
    sum_blocks,
    sum_tensors,
)
from mcmpart.graph.graph import Bool, Float64, Int32
from mcmpart.problem import PackageArrays
from mcmpart.solver._arrays import Domains, Rules, UInt64
from mcmpart.solver._search import (
    IMPOSSIBLE,
    OUT_OF_BUDGET,
    SAMPLE,
    SOLVED,
    Wish,
    choose_chip,
    search,
)
from mcmpart.solver._trail import reset

CONFLICTS = 8
"""Contradictions that one step back does not resolve, after which an attempt is given
up, times Luby's sequence."""

CLOSE_FIT = 4
"""Every so many attempts nothing is kept free on the chips, so that a partition that
just fits is found, too."""


class Limits(NamedTuple):
    """How much work goes into one row.

    Attributes
    ----------
    attempts
        Most searches, each with a new order and new draws.
    work
        Most blocks looked at by the propagation, summed over the attempts.
    """

    attempts: int
    work: int


class Model(NamedTuple):
    """What the final check of the memory reads."""

    blocks: BlockArrays
    live: LiveArrays
    package: PackageArrays


@leaf
def luby(i: int) -> int:
    """Return entry ``i``, from 1, of 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...

    References
    ----------
    Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993.
    """
    while True:
        size = 1
        while size < i:
            size = 2 * size + 1
        if size == i:
            return (size + 1) // 2
        i -= size // 2


@leaf
def _shuffle(order: Int32, state: UInt64) -> None:
    for i in range(order.size - 1, 0, -1):
        j = next_below(state, i + 1)
        order[i], order[j] = order[j], order[i]


@jit
def solve_rows(
    rules: Rules,
    model: Model,
    mode: int,
    weights: Float64,
    uniform_share: float,
    candidates: Int32,
    seeds: UInt64,
    given_order: Int32,
    limits: Limits,
    chip_of: Int32,
    outcome: Int32,
    num_attempts: Int32,
    domains: Domains,
) -> None:
    """Draw, or correct, one partition per seed.

    Parameters
    ----------
    mode, weights, uniform_share
        As in :class:`Wish`.
    candidates
        ``[B, N] int32`` in the FIX modes, ``[0, 0]`` in SAMPLE mode.
    seeds
        ``[B] uint64``: each row depends on its own seed only.
    given_order
        ``[N] int32`` order of decision, or ``[0]`` for a random one at each attempt.
    chip_of
        ``[B, N] int32``, written: the partitions, -1 where a row is not solved.
    outcome, num_attempts
        ``[B] int32``, written: ``SOLVED``, ``OUT_OF_BUDGET`` or ``IMPOSSIBLE``; and
        the searches it took.
    domains
        Room, overwritten.
    """
    num_blocks = chip_of.shape[1]
    loads = new_loads(rules.memory_bytes.size)
    op_chip = np.full(model.live.write_ptr.size - 1, -1, dtype=np.int32)
    order = np.empty(num_blocks, dtype=np.int32)
    state = np.empty(1, dtype=np.uint64)
    candidate = np.empty(0, dtype=np.int32)
    for row in range(seeds.size):
        state[0] = seeds[row]
        next_word(state)
        for n in range(num_blocks):
            order[n] = given_order[n] if given_order.size > 0 else n
        if mode != SAMPLE:
            candidate = candidates[row]
        wish = Wish(mode, weights, uniform_share, candidate)
        outcome[row] = OUT_OF_BUDGET
        tried = work = missing_bytes = 0
        # The costlier rules run once the others have failed.
        full = False
        untried = rules.possible.copy()
        fewest, most = 1, untried.size - 1
        while outcome[row] != SOLVED and tried < limits.attempts:
            count = _next_count(tried, fewest, most, untried, rules, wish, state)
            if count < 0:
                outcome[row] = IMPOSSIBLE
            if count < 0 or work > limits.work:
                break
            if given_order.size == 0:
                _shuffle(order, state)
            reset(count, rules, domains)
            margin_bytes = missing_bytes if tried % CLOSE_FIT > 0 else 0
            domains.now[0].margin_bytes = margin_bytes
            conflicts_left = CONFLICTS * luby(tried + 1)
            overflow_bytes = 0
            while True:
                found, conflicts = search(
                    rules,
                    domains,
                    order,
                    wish,
                    conflicts_left,
                    full,
                    overflow_bytes > 0,
                    state,
                )
                if found != SOLVED or not rules.memory:
                    break
                conflicts_left -= conflicts
                overflow_bytes = _memory_overflow(domains, model, loads, op_chip)
                if overflow_bytes <= 0:
                    break
            if found == SOLVED:
                outcome[row] = SOLVED
            elif found == IMPOSSIBLE and margin_bytes == 0:
                untried[count] = False
            full = full or overflow_bytes == 0
            missing_bytes = overflow_bytes + margin_bytes // 2
            tried += 1
            work += domains.now[0].work
            fewest, most = _narrow(count, fewest, most, untried, rules.memory, state)
        num_attempts[row] = tried
        for n in range(num_blocks):
            solved = outcome[row] == SOLVED
            chip_of[row, n] = lowest(domains.block[n].chips) if solved else -1


@jit
def _memory_overflow(
    domains: Domains, model: Model, loads: Loads, op_chip: Int32
) -> int:
    """Return by how many bytes the partition overflows a chip; 0 or less if it fits."""
    blocks, package = model.blocks, model.package
    chip_of = np.empty(domains.block.size, dtype=np.int32)
    for n in range(chip_of.size):
        chip_of[n] = lowest(domains.block[n].chips)
        for i in range(blocks.member_ptr[n], blocks.member_ptr[n + 1]):
            op_chip[blocks.member[i]] = chip_of[n]
    sum_blocks(chip_of, blocks, package.chip_class, loads)
    sum_tensors(chip_of, blocks, package.relay, loads)
    peak_live(op_chip, model.live, EVERY_CHIP, loads.peak_live_bytes)
    worst = np.int64(-(2**62))
    for c in range(loads.in_bytes.size):
        buffer_bytes = 2 * (loads.in_bytes[c] + loads.out_bytes[c])
        stored_bytes = loads.weight_bytes[c] + loads.peak_live_bytes[c]
        worst = max(worst, stored_bytes + buffer_bytes - package.memory_bytes[c])
    return int(worst)


@leaf
def _next_count(
    tried: int,
    fewest: int,
    most: int,
    untried: Bool,
    rules: Rules,
    wish: Wish,
    state: UInt64,
) -> int:
    """Return the number of chips to use, 0 for any, or -1 if none is left.

    Where the used chips are a prefix, a draw first decides how many there are, since
    the last one holds a sink: the largest chip that the weights give a sink, or any
    number that is possible, evenly. A correction first leaves it open.
    """
    if untried[0] and (not rules.cover or (wish.mode != SAMPLE and tried < 2)):
        return 0
    first = wish.mode != SAMPLE and tried <= 2
    if first or (wish.mode == SAMPLE and wish.weights.size > 0):
        wanted = _last_sink(most, rules, wish, state)
        for count in range(wanted, fewest - 1, -1):
            if untried[count]:
                return count
    left = _num_untried(fewest, most, untried)
    if left == 0:
        return -1
    left = next_below(state, left)
    for count in range(fewest, most + 1):
        left -= untried[count]
        if left < 0:
            return count
    return -1


@leaf
def _num_untried(fewest: int, most: int, untried: Bool) -> int:
    total = 0
    for count in range(fewest, most + 1):
        total += untried[count]
    return total


@leaf
def _last_sink(most: int, rules: Rules, wish: Wish, state: UInt64) -> int:
    """Return how many chips the sinks would like to use, at most ``most``."""
    wanted = 1
    for n in range(rules.rows.size - 1):
        if rules.rows[n].succ < rules.rows[n + 1].succ:
            continue
        if wish.mode != SAMPLE:
            wanted = max(wanted, wish.candidate[n] + 1)
            continue
        chips = rules.root[0, n] & at_most(most - 1)
        if chips:
            wanted = max(wanted, choose_chip(n, chips, wish, state) + 1)
    return min(wanted, most)


@leaf
def _narrow(
    count: int, fewest: int, most: int, untried: Bool, memory: bool, state: UInt64
) -> tuple[int, int]:
    """Return the fewest and the most chips to try after ``count`` has failed.

    Fewer chips make most rules easier, but not memory: there either side is tried.
    Where that leaves nothing else, all numbers are open again.
    """
    if memory and next_below(state, 2) == 0:
        fewest = max(count, 1)
    else:
        most = count
    if _num_untried(fewest, most, untried) <= untried[count]:
        return 1, untried.size - 1
    return fewest, most
