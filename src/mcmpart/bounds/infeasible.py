"""Proofs that no valid partition exists, in words a user can act on."""

from __future__ import annotations

import numpy as np

from mcmpart.blocks import bytes_alone
from mcmpart.errors import InfeasibleError
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.units import format_bytes


def raise_if_impossible(problem: Problem) -> None:
    """Raise where it is proven that no partition obeys all rules.

    Silence proves nothing: the checks are necessary conditions, each over all
    partitions (pins against dataflow, chips against ops, memory of one block, memory
    of all together).

    Raises
    ------
    InfeasibleError
        With the rule, the chip or op, the demand and the bound.
    """
    _check_all_chips(problem)
    _check_pins(problem)
    if problem.package_arrays.memory:
        _check_block_memory(problem)
        _check_total_memory(problem)


def _check_all_chips(problem: Problem) -> None:
    num_blocks = problem.blocks.num_blocks
    if problem.user.all_chips and num_blocks < problem.num_chips:
        raise InfeasibleError(
            "all_chips",
            f"no plan exists: all {problem.num_chips} chips are demanded and the graph "
            f"has {num_blocks} ops that can stand on chips of their own: ask for "
            f"{num_blocks} chips or fewer",
        )


def _check_pins(problem: Problem) -> None:
    """Push pins along the edges: f(u) <= f(v) leaves each op an interval of chips."""
    arrays = problem.ops.arrays
    if not (arrays.pin >= 0).any():
        return
    num_ops = problem.ops.num_blocks
    low = np.where(arrays.pin >= 0, arrays.pin, 0)
    high = np.where(arrays.pin >= 0, arrays.pin, problem.num_chips - 1)
    low_from = np.arange(num_ops)
    for n in range(num_ops):
        for p in arrays.pred[arrays.pred_ptr[n] : arrays.pred_ptr[n + 1]].tolist():
            if low[p] > low[n]:
                low[n], low_from[n] = low[p], low_from[p]
        if 0 <= arrays.pin[n] < low[n]:
            first, second = (_op_name(problem, int(b)) for b in (low_from[n], n))
            raise InfeasibleError(
                "dataflow",
                f"no plan exists: {second!r} is pinned to chip {arrays.pin[n]} and "
                f"depends on {first!r}, pinned to the later chip {low[n]}: data flows "
                "to higher chips only",
            )
    for n in range(num_ops - 1, -1, -1):
        after = arrays.succ[arrays.succ_ptr[n] : arrays.succ_ptr[n + 1]]
        high[n] = min(high[n], high[after].min(initial=problem.num_chips - 1))
    if problem.package_arrays.no_skip and num_ops:
        _check_cover(problem, low, high)


def _check_cover(problem: Problem, low: Int32, high: Int32) -> None:
    """Check that each chip up to the highest pin is open to some op (no_skip)."""
    top = int(low.max())
    pinned = _op_name(problem, int(low.argmax()))
    if problem.ops.num_blocks <= top:
        raise InfeasibleError(
            "no_skip",
            f"no plan exists: {pinned!r} cannot stand below chip {top}, and the "
            f"graph's ops ({problem.ops.num_blocks}) are too few for chips 0 to {top}: "
            "pin to a lower chip",
        )
    for chip in range(top):
        if not ((low <= chip) & (chip <= high)).any():
            raise InfeasibleError(
                "no_skip",
                f"no plan exists: with the pins no op can stand on chip {chip}, but "
                f"{pinned!r} stands on chip {top} or later and no chip before a used "
                "one may stay empty: pin to a lower chip",
            )


def _check_block_memory(problem: Problem) -> None:
    """Compare what each op needs, whatever stands beside it, with the chips."""
    arrays = problem.ops.arrays
    need = bytes_alone(arrays, arrays.inner_peak_bytes)
    roomiest = int(problem.package_arrays.memory_bytes.max())
    room = np.where(
        arrays.pin >= 0,
        problem.package_arrays.memory_bytes[np.maximum(arrays.pin, 0)],
        roomiest,
    )
    over = np.flatnonzero(need > room)
    if over.size:
        n = int(over[(need - room)[over].argmax()])
        where = (
            f"chip {arrays.pin[n]}, to which it is pinned,"
            if arrays.pin[n] >= 0
            else "the roomiest chip"
        )
        raise InfeasibleError(
            "memory",
            f"no plan exists: op {_op_name(problem, n)!r} alone needs "
            f"{format_bytes(int(need[n]))} and {where} has "
            f"{format_bytes(int(room[n]))}: it does not fit by "
            f"{format_bytes(int(need[n] - room[n]))}; give chips more memory or choose "
            "a smaller --precision",
        )


def _check_total_memory(problem: Problem) -> None:
    """Compare what is stored at least once with the memory of all chips."""
    arrays = problem.ops.arrays
    weights = int(arrays.weight_bytes.sum() + arrays.item_weight_bytes.sum())
    buffers = 2 * int(
        arrays.host_bytes.sum()
        + arrays.item_host_bytes.sum()
        + arrays.output_bytes.sum()
    )
    # Python's own integers: the memories of a package may add up beyond 64 bits.
    capacity = [chip.memory_bytes for chip in problem.package.chips]
    if weights + buffers <= sum(capacity):
        return
    room = max(capacity)
    fewest = -(-(weights + buffers) // room)
    raise InfeasibleError(
        "memory",
        f"no plan exists: the model needs at least {format_bytes(weights + buffers)} "
        f"({format_bytes(weights)} weights, {format_bytes(buffers)} input and output "
        f"buffers) and the {len(capacity)} chips have "
        f"{format_bytes(sum(capacity))} together; at {format_bytes(room)} a chip "
        f"it takes at least {fewest} chips",
    )


def _op_name(problem: Problem, block: int) -> str:
    return problem.graph.op_name[int(problem.ops.arrays.first_op[block])]
