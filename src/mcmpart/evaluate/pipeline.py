"""The analytical cost model ("pipeline"): one partition in full, or many at once."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcmpart.errors import InputError
from mcmpart.evaluate._kernels import Loads, judge, judge_rows, new_loads
from mcmpart.graph.graph import Bool, Float64
from mcmpart.loads import ChipLoad, HopLoad
from mcmpart.partition import Partition, chip_numbers
from mcmpart.problem import Problem

ROWS_PER_TASK = 64
"""Fewest partitions that are worth a thread of their own."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Every figure of one partition.

    Attributes
    ----------
    valid
        Whether all static rules hold.
    bottleneck_s, latency_s, energy_j
        Seconds between two results, seconds of one inference, joules of one.
    chips, hops
        Loads of all chips, used or not, and of the hops of a ring.
    """

    valid: bool
    bottleneck_s: float
    latency_s: float
    energy_j: float
    chips: tuple[ChipLoad, ...]
    hops: tuple[HopLoad, ...]

    @property
    def throughput_per_s(self) -> float:
        """Results per second; infinite for a graph that costs nothing."""
        return 1 / self.bottleneck_s if self.bottleneck_s else math.inf


def evaluate(problem: Problem, partition: Partition) -> Evaluation:
    """Return every figure of ``partition``.

    Raises
    ------
    InputError
        The partition is of another graph, an op is on a chip that the package does not
        have, or an edge goes to a lower chip: the figures are not defined then.
    """
    if partition.chip_of.size != problem.graph.num_ops:
        raise InputError(
            f"the partition is for {partition.chip_of.size} ops, and the graph has "
            f"{problem.graph.num_ops}: evaluate a partition of this problem's graph"
        )
    loads = new_loads(problem.num_chips)
    bottleneck_s, valid = judge(
        problem.ops.contract(partition.chip_of),
        partition.chip_of.copy(),
        problem.ops.arrays,
        problem.live,
        problem.package_arrays,
        problem.user.all_chips,
        True,
        loads,
    )
    if not math.isfinite(bottleneck_s):
        raise InputError(
            "the partition sends an edge to a lower chip or uses a chip that package "
            f"{problem.package.name!r} does not have (chips 0 to "
            f"{problem.num_chips - 1}): rules.explain names the ops"
        )
    chips = _chip_loads(problem, loads)
    hops = _hop_loads(problem, loads)
    return Evaluation(
        valid=bool(valid),
        bottleneck_s=float(bottleneck_s),
        latency_s=_latency_s(problem, partition, chips, hops),
        energy_j=_energy_j(problem, partition, hops),
        chips=chips,
        hops=hops,
    )


def evaluate_many(
    problem: Problem, chip_of: NDArray[np.integer], *, workers: int | None = None
) -> tuple[Float64, Bool]:
    """Return bottleneck and static validity of many partitions, on all cores.

    Parameters
    ----------
    chip_of
        ``[B, V]`` integers; the columns of replicable ops are not read.
    workers
        Number of threads, by default one per core; the result does not depend on it.

    Returns
    -------
    bottleneck_s
        ``[B] float64``; infinite where a chip is out of range (a row of -1 among them)
        or an edge goes to a lower chip.
    valid
        ``[B] bool``.

    Raises
    ------
    InputError
        ``chip_of`` has another number of columns than the graph has ops, or is not of
        whole numbers.
    """
    rows = np.atleast_2d(chip_numbers(chip_of))
    if rows.ndim != 2 or rows.shape[1] != problem.graph.num_ops:
        raise InputError(
            f"chip_of has shape {np.shape(chip_of)}: give one row per partition and "
            f"one column for each of the {problem.graph.num_ops} ops"
        )
    rows[:, problem.graph.op_replicable] = -1
    num_rows = rows.shape[0]
    bottleneck_s = np.empty(num_rows)
    valid = np.empty(num_rows, dtype=np.bool_)
    workers = workers or os.cpu_count() or 1
    num_tasks = max(1, min(workers, num_rows // ROWS_PER_TASK))
    cuts = np.linspace(0, num_rows, num_tasks + 1).astype(int)

    def judge_slice(task: int) -> None:
        part = slice(cuts[task], cuts[task + 1])
        judge_rows(
            rows[part],
            problem.ops.arrays,
            problem.live,
            problem.package_arrays,
            problem.user.all_chips,
            False,
            bottleneck_s[part],
            valid[part],
        )

    if num_tasks == 1:
        judge_slice(0)
    else:
        with ThreadPoolExecutor(num_tasks) as pool:
            list(pool.map(judge_slice, range(num_tasks)))
    return bottleneck_s, valid


def _chip_loads(problem: Problem, loads: Loads) -> tuple[ChipLoad, ...]:
    serial = problem.package.io == "serial"
    chips = []
    for c, chip in enumerate(problem.package.chips):
        compute_s = float(loads.compute_s[c])
        in_bytes, out_bytes = int(loads.in_bytes[c]), int(loads.out_bytes[c])
        transfer_s = (in_bytes + out_bytes) / chip.io_bandwidth_bytes_per_s
        weight_bytes = int(loads.weight_bytes[c])
        buffer_bytes = 2 * (in_bytes + out_bytes)
        peak_live_bytes = int(loads.peak_live_bytes[c])
        chips.append(
            ChipLoad(
                chip=c,
                ops=int(loads.num_blocks[c]),
                compute_s=compute_s,
                in_bytes=in_bytes,
                out_bytes=out_bytes,
                transfer_s=transfer_s,
                stage_s=compute_s + transfer_s
                if serial
                else max(compute_s, transfer_s),
                weight_bytes=weight_bytes,
                buffer_bytes=buffer_bytes,
                peak_live_bytes=peak_live_bytes,
                memory_bytes=weight_bytes + buffer_bytes + peak_live_bytes,
            )
        )
    return tuple(chips)


def _hop_loads(problem: Problem, loads: Loads) -> tuple[HopLoad, ...]:
    if problem.package.topology != "ring":
        return ()
    return tuple(
        HopLoad(i, int(size), int(size) / link.bandwidth_bytes_per_s)
        for i, (size, link) in enumerate(
            zip(loads.hop_bytes[:-1], problem.package.links, strict=True)
        )
    )


def _latency_s(
    problem: Problem,
    partition: Partition,
    chips: tuple[ChipLoad, ...],
    hops: tuple[HopLoad, ...],
) -> float:
    stages_s = sum(chip.compute_s + chip.transfer_s for chip in chips)
    links = problem.package.links
    if problem.package.topology == "ring":
        return stages_s + sum(links[hop.hop].latency_s for hop in hops if hop.bytes)
    num_pairs = np.count_nonzero(_pair_bytes(problem, partition))
    return stages_s + (num_pairs * links[0].latency_s if num_pairs else 0.0)


def _energy_j(
    problem: Problem, partition: Partition, hops: tuple[HopLoad, ...]
) -> float:
    graph, package = problem.graph, problem.package
    flops = np.zeros(package.num_chips, dtype=np.int64)
    touched = np.zeros(package.num_chips, dtype=np.int64)
    placed = partition.chip_of >= 0
    np.add.at(flops, partition.chip_of[placed], graph.op_flops[placed])
    np.add.at(touched, partition.chip_of[placed], graph.op_bytes[placed])
    index = {name: op for op, name in enumerate(graph.op_name)}
    for chip, names in partition.replicas().items():
        copies = [index[name] for name in names]
        flops[chip] += graph.op_flops[copies].sum()
        touched[chip] += graph.op_bytes[copies].sum()
    compute_j = sum(
        float(flops[c]) * chip.e_flop_j + float(touched[c]) * chip.e_mem_j_per_byte
        for c, chip in enumerate(package.chips)
    )
    if package.topology == "ring":
        return compute_j + sum(
            hop.bytes * package.links[hop.hop].e_link_j_per_byte for hop in hops
        )
    moved = float(_pair_bytes(problem, partition).sum())
    return compute_j + (moved * package.links[0].e_link_j_per_byte if moved else 0.0)


def _pair_bytes(problem: Problem, partition: Partition) -> NDArray[np.int64]:
    """Return the bytes from each chip to each other one, ``[C, C] int64``."""
    arrays = problem.ops.arrays
    chip_of = problem.ops.contract(partition.chip_of)
    tensor = np.repeat(
        np.arange(arrays.tensor_bytes.size), np.diff(arrays.consumer_ptr)
    )
    source = chip_of[arrays.tensor_producer[tensor]].astype(np.int64)
    target = chip_of[arrays.consumer].astype(np.int64)
    num_chips = problem.num_chips
    key = np.unique((tensor * num_chips + source) * num_chips + target)
    pairs = np.zeros(num_chips * num_chips, dtype=np.int64)
    np.add.at(
        pairs,
        key % (num_chips * num_chips),
        arrays.tensor_bytes[key // (num_chips * num_chips)],
    )
    square = pairs.reshape(num_chips, num_chips)
    np.fill_diagonal(square, 0)
    return square
