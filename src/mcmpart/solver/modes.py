"""SAMPLE and FIX mode on many rows at once, on all cores."""

from __future__ import annotations

import operator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcmpart._workers import num_workers
from mcmpart.errors import InputError
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Bool, Float64, Int32
from mcmpart.problem import Problem
from mcmpart.solver._arrays import Domains, UInt64
from mcmpart.solver._rows import Limits, Model, solve_rows
from mcmpart.solver._search import FIX_NEAREST, FIX_RANDOM, SAMPLE, SOLVED
from mcmpart.solver.setup import make_rules, room_for

Order = Literal["random", "topological", "work"]

ORDERS: tuple[Order, ...] = ("random", "topological", "work")
"""In which order ops are decided: drawn anew for each attempt, sources first, or those
with the most work first."""

UNIFORM_SHARE = 0.02
"""Share of draws that ignore the probabilities: a sharp policy that is wrong about one
op could otherwise never be corrected."""

ATTEMPTS = 100
WORK_PER_BLOCK = 1_000
"""Limits of a row: searches, and looks at a block for each block of the graph. A
transformer's row takes one search and some six looks."""

ROWS_PER_CALL = 16
"""Rows between two looks at an interrupt."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What came of each row.

    Attributes
    ----------
    chip_of
        ``[B, V] int32``: partitions; -1 for replicable ops and in unsolved rows.
    solved
        ``[B] bool``.
    num_attempts
        ``[B] int32``: searches that each row took, 0 for one that needed none.
    """

    chip_of: Int32
    solved: Bool
    num_attempts: Int32


def sample_many(
    problem: Problem,
    probabilities: NDArray[np.floating] | None,
    seeds: ArrayLike,
    *,
    order: Order = "random",
    uniform_share: float = UNIFORM_SHARE,
    workers: int | None = None,
) -> tuple[Int32, Bool]:
    """Return one valid partition per seed, drawn by the probabilities.

    SAMPLE mode: walk the ops in an order, draw each one's chip from its row of
    ``probabilities`` restricted to the chips still possible, propagate, and go back
    where the rules contradict each other. Ops that share a block (views and groups)
    take the row of its first op.

    Parameters
    ----------
    probabilities
        ``[V, C]`` floats, not negative; rows need not sum to one. None draws evenly.
    seeds
        ``[B]`` integers, not negative; each row depends on its own seed only.
    order
        One of ``ORDERS``.
    uniform_share
        Share of the draws, 0 to 1, that ignore the probabilities.
    workers
        Number of threads, by default one per core; the result does not depend on it.

    Returns
    -------
    chip_of
        ``[B, V] int32``; -1 for replicable ops, and for all ops of an unsolved row.
    solved
        ``[B] bool``; False where the limit of attempts was met, or where the rules
        contradict each other.

    Raises
    ------
    InputError
        An array of another shape, a negative or non-finite probability, a negative
        seed, or an unknown order.

    References
    ----------
    Xie et al., "A Transferable Approach for Partitioning Machine Learning Models on
    Multi-Chip-Modules", MLSys 2022 (SAMPLE mode of the constraint solver).
    """
    rows = sample_rows(
        problem,
        probabilities,
        seeds,
        order=order,
        uniform_share=uniform_share,
        workers=workers,
    )
    return rows.chip_of, rows.solved


def fix_many(
    problem: Problem,
    candidates: NDArray[np.integer],
    seeds: ArrayLike,
    *,
    order: Order = "random",
    nearest: bool = True,
    workers: int | None = None,
) -> tuple[Int32, Bool]:
    """Return a valid partition near each candidate.

    FIX mode: walk the ops in an order and keep each one's chip wherever that is still
    possible; then give the open ops a chip. A valid candidate comes back unchanged.

    Parameters
    ----------
    candidates
        ``[B, V]`` integers, valid or not; the columns of replicable ops are not read.
        A number that is no chip is only never kept.
    seeds
        ``[B]`` integers, not negative; each row depends on its own seed only.
    order
        One of ``ORDERS``.
    nearest
        Give an open op the possible chip nearest to its candidate; otherwise draw
        evenly, as the paper does.
    workers
        Number of threads, by default one per core; the result does not depend on it.

    Returns
    -------
    chip_of, solved
        As for :func:`sample_many`.

    Raises
    ------
    InputError
        An array of another shape or type, a negative seed, or an unknown order.

    References
    ----------
    Xie et al., MLSys 2022 (FIX mode of the constraint solver).
    """
    rows = fix_rows(
        problem, candidates, seeds, order=order, nearest=nearest, workers=workers
    )
    return rows.chip_of, rows.solved


def sample_rows(
    problem: Problem,
    probabilities: NDArray[np.floating] | None,
    seeds: ArrayLike,
    *,
    order: Order = "random",
    uniform_share: float = UNIFORM_SHARE,
    workers: int | None = None,
) -> Rows:
    """Do what :func:`sample_many` does, and tell how many attempts it took."""
    if not 0 <= uniform_share <= 1:
        raise InputError(f"uniform_share is {uniform_share}: give a share from 0 to 1")
    weights = np.empty((0, 0))
    if probabilities is not None:
        weights = _checked_weights(problem, probabilities)
    checked_seeds = _checked_seeds(seeds)
    no_candidates = np.empty((checked_seeds.size, 0), dtype=np.int32)
    share = float(uniform_share)
    task = _Task(problem, SAMPLE, weights, share, _order_of(problem, order))
    return task.run(no_candidates, checked_seeds, workers)


def fix_rows(
    problem: Problem,
    candidates: NDArray[np.integer],
    seeds: ArrayLike,
    *,
    order: Order = "random",
    nearest: bool = True,
    workers: int | None = None,
) -> Rows:
    """Do what :func:`fix_many` does, and tell how many attempts it took."""
    rows = _checked_candidates(problem, candidates)
    checked_seeds = _checked_seeds(seeds)
    if checked_seeds.size != rows.shape[0]:
        raise InputError(
            f"there are {rows.shape[0]} candidates and {checked_seeds.size} seeds: "
            "give one seed per candidate"
        )
    mode = FIX_NEAREST if nearest else FIX_RANDOM
    task = _Task(problem, mode, np.empty((0, 0)), 0.0, _order_of(problem, order))
    _, valid = evaluate_many(problem, rows, workers=workers)
    todo = np.flatnonzero(~valid)
    chip_of = rows.copy()
    chip_of[:, problem.graph.op_replicable] = -1
    solved, num_attempts = valid.copy(), np.zeros(rows.shape[0], dtype=np.int32)
    if todo.size:
        candidate_of = problem.blocks.contract(rows[todo])
        fixed = task.run(candidate_of, checked_seeds[todo], workers)
        chip_of[todo], solved[todo] = fixed.chip_of, fixed.solved
        num_attempts[todo] = fixed.num_attempts
    return Rows(chip_of, solved, num_attempts)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """One way to fill rows: everything but the rows."""

    problem: Problem
    mode: int
    weights: Float64
    uniform_share: float
    order: Int32

    def run(self, candidates: Int32, seeds: UInt64, workers: int | None) -> Rows:
        """Fill one row per seed, in slices on threads."""
        problem, num_rows = self.problem, seeds.size
        rules = make_rules(problem)
        num_blocks = problem.blocks.num_blocks
        chip_of = np.empty((num_rows, num_blocks), dtype=np.int32)
        outcome = np.empty(num_rows, dtype=np.int32)
        num_attempts = np.empty(num_rows, dtype=np.int32)
        num_threads = max(1, min(num_workers(workers), num_rows))
        rooms: SimpleQueue[Domains] = SimpleQueue()
        for _ in range(num_threads):
            rooms.put(room_for(rules))

        def fill(first: int) -> None:
            part = slice(first, first + ROWS_PER_CALL)
            room = rooms.get()
            solve_rows(
                rules,
                Model(problem.blocks.arrays, problem.live, problem.package_arrays),
                self.mode,
                self.weights,
                self.uniform_share,
                candidates[part],
                seeds[part],
                self.order,
                Limits(ATTEMPTS, WORK_PER_BLOCK * (num_blocks + 100)),
                chip_of[part],
                outcome[part],
                num_attempts[part],
                room,
            )
            rooms.put(room)

        firsts = range(0, num_rows, ROWS_PER_CALL)
        if num_threads == 1 or len(firsts) == 1:
            for first in firsts:
                fill(first)
        else:
            pool = ThreadPoolExecutor(num_threads)
            try:
                list(pool.map(fill, firsts))
            finally:
                # After an interrupt the calls that wait are not begun.
                pool.shutdown(cancel_futures=True)
        return Rows(problem.blocks.expand(chip_of), outcome == SOLVED, num_attempts)


def _order_of(problem: Problem, order: Order) -> Int32:
    """Return the blocks in the order of decision; empty for a random one."""
    num_blocks = problem.blocks.num_blocks
    if order == "random":
        return np.empty(0, dtype=np.int32)
    if order == "topological":
        return np.arange(num_blocks, dtype=np.int32)
    if order == "work":
        work = problem.blocks.arrays.block_s.min(axis=0)
        return np.argsort(-work, kind="stable").astype(np.int32)
    raise InputError(f"there is no order {order!r}: choose one of {', '.join(ORDERS)}")


def _checked_weights(problem: Problem, probabilities: ArrayLike) -> Float64:
    try:
        weights = np.asarray(probabilities).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(
            "the probabilities are not real numbers: give one row per op and one "
            "column per chip"
        ) from None
    shape = (problem.graph.num_ops, problem.num_chips)
    if weights.shape != shape:
        raise InputError(
            f"probabilities have shape {weights.shape}: give one row per op and one "
            f"column per chip, {shape}"
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(
            "a probability is negative or not finite: give numbers from 0 up"
        )
    rows = weights[problem.blocks.arrays.first_op]
    # Only ratios count; scaled, the sum of a row is finite.
    rows = rows / np.maximum(rows.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.ascontiguousarray(rows)


def _checked_seeds(seeds: ArrayLike) -> UInt64:
    given = np.asarray(seeds)
    if given.dtype.kind in "fO" and given.ndim == 1:
        # Whole numbers on either side of 2^63 have no common type in numpy.
        given = _large_seeds(seeds, given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            f"seeds have shape {given.shape} and type {given.dtype}: give a row of "
            "whole numbers, one per partition"
        )
    if given.size and given.min() < 0:
        raise InputError(f"a seed is {given.min()}: give 0 or more")
    return given.astype(np.uint64)


def _large_seeds(seeds: ArrayLike, given: NDArray[np.generic]) -> NDArray[np.generic]:
    try:
        return np.array([operator.index(seed) for seed in seeds], dtype=np.uint64)  # type: ignore[union-attr, arg-type]
    except (TypeError, OverflowError):
        return given


def _checked_candidates(problem: Problem, candidates: NDArray[np.integer]) -> Int32:
    given = np.asarray(candidates)
    if given.dtype.kind not in "iu" or given.ndim != 2:
        raise InputError(
            f"candidates have shape {given.shape} and type {given.dtype}: give whole "
            "numbers, one row per partition"
        )
    if given.shape[1] != problem.graph.num_ops:
        raise InputError(
            f"candidates have {given.shape[1]} columns: give one for each of the "
            f"{problem.graph.num_ops} ops"
        )
    clipped = np.clip(given, -1, problem.num_chips)
    return np.ascontiguousarray(clipped, dtype=np.int32)
