"""A result in words: the per-chip table, what limits it, what to be aware of."""

from __future__ import annotations

import numpy as np

from mcmpart.reference import op_seconds
from mcmpart.solve import Result
from mcmpart.units import format_bytes, format_rate, format_seconds

COLUMNS = ("chip", "ops", "compute", "transfer", "stage", "in", "out", "memory", "of")
"""Heads of the per-chip table."""


def table_rows(result: Result) -> list[tuple[str, ...]]:
    """Return one row of text per used chip, in the order of ``COLUMNS``."""
    rows: list[tuple[str, ...]] = []
    for load, chip in zip(
        result.metrics.chips, result.problem.package.chips, strict=True
    ):
        if load.ops == 0:
            continue
        share = load.memory_bytes / chip.memory_bytes
        rows.append(
            (
                str(load.chip),
                str(load.ops),
                format_seconds(load.compute_s),
                format_seconds(load.transfer_s),
                format_seconds(load.stage_s),
                format_bytes(load.in_bytes),
                format_bytes(load.out_bytes),
                format_bytes(load.memory_bytes),
                f"{100 * share:.0f} %",
            )
        )
    return rows


def headline(result: Result) -> str:
    """Return throughput, bottleneck, bound and gap in one sentence."""
    metrics = result.metrics
    used = result.partition.num_used_chips
    chips = f"{used} of {result.problem.num_chips} chips"
    if metrics.bottleneck_s == 0:
        return f"{chips}: the graph costs nothing, so its throughput has no limit"
    return (
        f"{format_rate(metrics.throughput_per_s)} on {chips}: bottleneck "
        f"{format_seconds(metrics.bottleneck_s)}, proven lower bound "
        f"{format_seconds(result.lower_bound_s)} ({result.lower_bound_method}), "
        f"gap {100 * result.gap:.1f} %"
    )


def limit(result: Result) -> str:
    """Return the sentence that says what the throughput is limited by."""
    metrics = result.metrics
    if metrics.bottleneck_s == 0:
        return "nothing limits the throughput"
    if result.problem.package.link_limit:
        for hop in metrics.hops:
            if hop.link_s >= metrics.bottleneck_s:
                return (
                    f"the link from chip {hop.hop} to chip {hop.hop + 1} limits the "
                    f"throughput: it carries {format_bytes(hop.bytes)} per inference"
                )
    worst = max(metrics.chips, key=lambda load: load.stage_s)
    compute = worst.compute_s / worst.stage_s
    name, share = _largest_op(result, worst.chip, worst.compute_s)
    part = "compute" if worst.compute_s >= worst.transfer_s else "transfer"
    return (
        f"chip {worst.chip} limits the throughput, by its {part}: "
        f"{format_seconds(worst.compute_s)} compute ({100 * compute:.0f} % of its "
        f"stage) and {format_seconds(worst.transfer_s)} transfer; its largest op "
        f"{name!r} takes {100 * share:.0f} % of the compute"
    )


def warnings_of(result: Result) -> list[str]:
    """Return what a user should be aware of, one sentence each."""
    warnings = []
    unused = [load.chip for load in result.metrics.chips if load.ops == 0]
    if unused:
        shown = ", ".join(str(chip) for chip in unused)
        warnings.append(f"{len(unused)} of the chips stay empty: {shown}")
    if result.problem.graph.num_ops == 0:
        warnings.append("the graph has no ops: there is nothing to place")
    fastest_s = result.problem.costs.op_s.min(axis=0)
    if fastest_s.size and result.metrics.bottleneck_s > 0:
        op = int(fastest_s.argmax())
        if fastest_s[op] > 0.5 * result.metrics.bottleneck_s:
            share = fastest_s[op] / result.metrics.bottleneck_s
            warnings.append(
                f"op {result.problem.graph.op_name[op]!r} alone is {100 * share:.0f} % "
                "of the bottleneck: no partition can go far beyond it"
            )
    if result.stopped_by == "interrupt":
        warnings.append("the search was interrupted: this is the best plan until then")
    return warnings


def _largest_op(result: Result, chip: int, compute_s: float) -> tuple[str, float]:
    """Return the chip's most expensive op and its share of the chip's compute."""
    graph = result.problem.graph
    ops = np.flatnonzero(result.partition.chip_of == chip).tolist()
    kind = result.problem.package.chips[chip]
    seconds, op = max((op_seconds(graph, op, kind), op) for op in ops)
    return graph.op_name[op], seconds / compute_s if compute_s else 0.0
