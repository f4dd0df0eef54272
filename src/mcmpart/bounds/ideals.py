"""ideals: exact dynamic programming where the graph has few ideals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mcmpart.blocks import Blocks
from mcmpart.bounds._ideals import (
    Ideals,
    StageCosts,
    closures,
    extend,
    list_ideals,
    mark_between,
    stage_before,
)
from mcmpart.graph.graph import Int32, Int64
from mcmpart.problem import Problem, unmerged_blocks

MAX_VISITS = 1_000_000
"""Ideals that are looked at before giving up: half a second or so."""

MAX_BYTES = 512 * 2**20
"""Memory that the listed ideals may take."""

PAIRS_PER_CALL = 20_000_000
"""Pairs of ideals, and tensors cut there, that take some 50 ms."""

UNITS_OF_LIMIT = 2**44
"""Time is counted in this fraction of the limit, each term rounded down."""

NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class WithinLimit:
    """Whether all stages can keep to a limit.

    Attributes
    ----------
    refuted
        No partition keeps to it.
    chip_of
        ``[V] int32``: a partition that does, if the rules that the method looks at are
        all there are; or None.
    gave_up
        There are too many ideals for this limit, or for any.
    """

    refuted: bool = False
    chip_of: Int32 | None = None
    gave_up: bool = False


def proof_blocks(problem: Problem) -> Blocks:
    """Return the blocks on which a bound is a bound for every partition of the ops.

    Views are merged where that loses nothing (``rewrite.coarsen``): not under triangle
    and memory, and under no_skip only where an empty chip can change places with the
    last one.
    """
    package = problem.package_arrays
    if package.triangle or package.memory or not _may_skip(problem):
        return unmerged_blocks(problem)
    return problem.blocks


def _may_skip(problem: Problem) -> bool:
    """Return whether leaving any chip empty gains nothing that the rules forbid."""
    if problem.user.all_chips:
        return False
    return not problem.package_arrays.no_skip or problem.chips_are_alike


def within_limit(
    problem: Problem,
    blocks: Blocks,
    limit_s: float,
    *,
    is_late: Callable[[], bool] = lambda: False,
    max_visits: int = MAX_VISITS,
) -> WithinLimit:
    """Return whether a partition has a bottleneck of at most ``limit_s``.

    Parameters
    ----------
    blocks
        Of :func:`proof_blocks`.
    limit_s
        Above 0.
    is_late
        Asked every 50 ms; True ends the search without an answer.
    max_visits
        Ideals of the graph that are looked at.

    Notes
    -----
    Dynamic programming over ideals (Archer et al. 2023, arXiv 2311.03703, section 4;
    Tarnawski et al. 2020): b chips reach an ideal if b - 1 chips reach a smaller one
    and the difference fits chip b. Every rule that one stage can break alone is
    looked at (compute, transfer, weights and buffers, hops, pins, apart, all_chips,
    relay); of the triangle rule only what it says of one edge: no stage that an edge
    jumps over holds a block on another path between its ends; live tensors are not
    looked at. So a refuted limit is refuted, and a partition that is found must still
    be judged.
    """
    if blocks.num_blocks == 0:
        return WithinLimit(chip_of=blocks.expand(np.zeros(0, dtype=np.int32)))
    arrays = blocks.arrays
    costs = stage_costs(problem, blocks, limit_s)
    ideals = _listed(problem, blocks, costs, max_visits)
    if ideals is None:
        return WithinLimit(gave_up=True)
    reach = np.zeros(ideals.levels.size, dtype=np.uint64)
    if ideals.num_blocks[0]:
        # Not even the empty set has a level: the work alone is too much.
        return WithinLimit(refuted=True)
    reach[0] = 1
    at, found = 0, False
    while at < reach.size - 1 and not found:
        if is_late():
            return WithinLimit()
        at, found = extend(
            at,
            PAIRS_PER_CALL,
            not _may_skip(problem),
            arrays,
            costs,
            ideals,
            reach,
        )
    if not found:
        return WithinLimit(refuted=True)
    chip_of = _placed(problem, blocks, costs, ideals, reach)
    if problem.package_arrays.no_skip:
        # Where chips may be left empty here all are alike: the used ones move up.
        chip_of = np.unique(chip_of, return_inverse=True)[1].astype(np.int32)
    return WithinLimit(chip_of=blocks.expand(chip_of))


def _placed(
    problem: Problem,
    blocks: Blocks,
    costs: StageCosts,
    ideals: Ideals,
    reach: np.ndarray,
) -> Int32:
    """Return the chips of the blocks, walking back from all of them to none."""
    chip_of = np.zeros(blocks.num_blocks, dtype=np.int32)
    j = reach.size - 1
    last_levels = int(ideals.levels[j])
    for level in range(problem.num_chips, 0, -1):
        if j == reach.size - 1 and not last_levels >> (level - 1) & 1:
            continue
        i = stage_before(
            j, level, not _may_skip(problem), blocks.arrays, costs, ideals, reach
        )
        if i < 0 or i == j:
            continue
        chip_of[members(ideals.bits[j] & ~ideals.bits[i])] = level - 1
        j = i
    return chip_of


def members(words: np.ndarray) -> np.ndarray:
    """Return the blocks whose bits are set in ``words`` ``[L] uint64``, ascending."""
    octets = words.astype("<u8").view(np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


def stage_costs(problem: Problem, blocks: Blocks, limit_s: float) -> StageCosts:
    """Return the costs of ``blocks`` in units of which ``limit_s`` has 2^44."""
    arrays, package = blocks.arrays, problem.package_arrays
    unit_s = limit_s / UNITS_OF_LIMIT
    num_classes = arrays.block_s.shape[0]

    def in_units(seconds: np.ndarray) -> Int64:
        # What is over the limit is over it by any amount; sums must fit 64 bits.
        units: Int64 = np.floor(np.minimum(seconds / unit_s, 2 * UNITS_OF_LIMIT))
        return units.astype(np.int64)

    units_per_byte = 1 / package.class_io_bytes_per_s / unit_s
    chips = package.chip_class
    memory = np.full(num_classes, NO_LIMIT)
    if package.memory:
        memory[:] = 0
        np.maximum.at(memory, chips, package.memory_bytes)
    hops = np.full(package.hop_bytes_per_s.size, NO_LIMIT)
    if package.link_limit:
        most = package.hop_bytes_per_s * limit_s * (1 + 1e-12)
        hops = np.minimum(most, 2.0**62).astype(np.int64)
    between_row, between = _between(blocks, package.triangle)
    block_units = in_units(arrays.block_s)
    return StageCosts(
        block_units=block_units,
        item_units=in_units(arrays.item_s),
        least_units=block_units.min(axis=0),
        units_per_byte=units_per_byte,
        least_units_per_byte=float(units_per_byte.min()),
        # One unit more for each term that was rounded before it was cut off.
        limit_units=UNITS_OF_LIMIT + blocks.num_blocks + 2,
        hop_bytes=hops,
        memory_bytes=memory,
        class_chips=np.array(
            [
                sum(1 << int(c) for c in np.flatnonzero(chips == k))
                for k in range(num_classes)
            ],
            dtype=np.uint64,
        ),
        serial=package.serial_io,
        relay=package.relay,
        between_row=between_row,
        between=between,
    )


@lru_cache(maxsize=1)
def ancestry(blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return ancestors and descendants of each block, ``[N, L] uint64`` each."""
    words = -(-blocks.num_blocks // 64)
    ancestors = np.zeros((blocks.num_blocks, words), dtype=np.uint64)
    descendants = np.zeros_like(ancestors)
    closures(blocks.arrays, ancestors, descendants)
    return ancestors, descendants


@lru_cache(maxsize=1)
def _between(blocks: Blocks, triangle: bool) -> tuple[Int32, np.ndarray]:
    """Return ``between_row`` and ``between`` of the stage costs, for any limit."""
    arrays = blocks.arrays
    words = -(-blocks.num_blocks // 64)
    row_of = np.full(arrays.consumer.size, -1, dtype=np.int32)
    if not triangle:
        return row_of, np.zeros((0, words), dtype=np.uint64)
    ancestors, descendants = ancestry(blocks)
    mark_between(ancestors, descendants, arrays, row_of)
    edges = np.flatnonzero(row_of >= 0)
    tensor = np.repeat(
        np.arange(arrays.tensor_bytes.size), np.diff(arrays.consumer_ptr)
    )[edges]
    start, end = arrays.tensor_producer[tensor], arrays.consumer[edges]
    return row_of, descendants[start] & ancestors[end]


def _listed(
    problem: Problem, blocks: Blocks, costs: StageCosts, max_visits: int
) -> Ideals | None:
    """Return the ideals in ascending order of work; None if there are too many."""
    words = -(-blocks.num_blocks // 64)
    none = _room(0, words, costs.block_units.shape[0])
    kept, visited = list_ideals(
        max_visits, 0, problem.num_chips, blocks.arrays, costs, none
    )
    row_bytes = 8 * (words + costs.block_units.shape[0] + 8)
    if visited < 0 or kept * row_bytes > MAX_BYTES:
        return None
    ideals = _room(kept, words, costs.block_units.shape[0])
    list_ideals(max_visits, kept, problem.num_chips, blocks.arrays, costs, ideals)
    # A larger ideal may take no more time: then its size comes second.
    order = np.lexsort((ideals.num_blocks, ideals.least_units))
    ideals = Ideals._make(column[order] for column in ideals)
    last_pin = int(blocks.arrays.pin.max(initial=0))
    if problem.user.all_chips:
        last_pin = problem.num_chips - 1
    ideals.levels[-1] = sum(1 << c for c in range(last_pin, problem.num_chips))
    return ideals


def _room(num_ideals: int, words: int, num_classes: int) -> Ideals:
    return Ideals(
        bits=np.zeros((num_ideals, words), dtype=np.uint64),
        least_units=np.zeros(num_ideals, dtype=np.int64),
        num_blocks=np.zeros(num_ideals, dtype=np.int64),
        units=np.zeros((num_ideals, num_classes), dtype=np.int64),
        fixed_bytes=np.zeros(num_ideals, dtype=np.int64),
        weight_bytes=np.zeros(num_ideals, dtype=np.int64),
        cut_bytes=np.zeros(num_ideals, dtype=np.int64),
        sent_bytes=np.zeros(num_ideals, dtype=np.int64),
        levels=np.zeros(num_ideals, dtype=np.uint64),
    )
