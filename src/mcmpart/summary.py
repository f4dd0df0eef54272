"""A result in words: the per-chip table, what limits it, what to be aware of."""

from __future__ import annotations

from collections.abc import Sequence

from mcmpart.frontends.report import counted, shortened
from mcmpart.reference import op_seconds
from mcmpart.solve import Result
from mcmpart.units import (
    format_bytes,
    format_count,
    format_gap,
    format_rate,
    format_seconds,
)

COLUMNS = ("chip", "ops", "compute", "transfer", "stage", "in", "out", "memory", "of")
"""Heads of the per-chip table."""

DOMINANT = 0.9
"""Share of the bottleneck from which on a single op leaves a search nothing to gain."""

CHIPS_SHOWN = 3
"""Chips that one warning names."""


def table_rows(result: Result) -> list[tuple[str, ...]]:
    """Return one row of text per used chip, in the order of ``COLUMNS``.

    ``2+1`` ops are two of the chip's own and one replica.
    """
    replicas = result.partition.replicas()
    rows: list[tuple[str, ...]] = []
    for load, chip in zip(
        result.metrics.chips, result.problem.package.chips, strict=True
    ):
        if load.ops == 0:
            continue
        share = load.memory_bytes / chip.memory_bytes
        copies = len(replicas.get(load.chip, ()))
        rows.append(
            (
                str(load.chip),
                f"{load.ops}+{copies}" if copies else str(load.ops),
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


def summary_lines(result: Result) -> list[str]:
    """Return what stands below the table: replicas, speed, latency, energy, limit."""
    return [
        *placement(result),
        headline(result),
        one_inference(result),
        limit(result),
    ]


def placement(result: Result) -> list[str]:
    """Return where the ops went that the table does not count as one each.

    Empty when each op of the model stands on exactly one chip: then the table says all.
    """
    problem = result.problem
    num_folded = problem.model.num_ops - problem.graph.num_ops
    names, num_copies = _replicas(result)
    if not names and not num_folded:
        return []
    num_placed = len(result.partition.by_name())
    num_idle = problem.graph.num_ops - num_placed - len(names)
    parts = [f"{num_placed} on one chip each"]
    if names:
        parts.append(f"{len(names)} replicated")
    if num_idle:
        parts.append(f"{num_idle} that no chip needs")
    if num_folded:
        parts.append(f"{num_folded} that read only weights, folded before the search")
    lines = [f"{counted(problem.model.num_ops, 'op')}: {', '.join(parts)}"]
    if names:
        lines.append(
            "replicated on every chip that needs them: "
            f"{counted(len(names), 'op')} ({shortened(names)}), "
            f"{num_copies} {'copy' if num_copies == 1 else 'copies'} in all"
        )
    return lines


def headline(result: Result) -> str:
    """Return throughput, bottleneck, bound and gap in one sentence."""
    metrics = result.metrics
    used = result.partition.num_used_chips
    chips = f"{used} of {counted(result.problem.num_chips, 'chip')}"
    if metrics.bottleneck_s == 0:
        return f"{chips}: the graph costs nothing, so its throughput has no limit"
    return (
        f"{format_rate(metrics.throughput_per_s)} on {chips}: bottleneck "
        f"{format_seconds(metrics.bottleneck_s)}, proven lower bound "
        f"{format_seconds(result.lower_bound_s)} ({result.lower_bound_method}), "
        f"gap {format_gap(result.gap)}"
    )


def one_inference(result: Result) -> str:
    """Return latency and energy of one inference."""
    metrics = result.metrics
    return (
        f"latency {format_seconds(metrics.latency_s)} per inference, "
        f"energy {_format_joules(metrics.energy_j)}"
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
    warnings = [_unused_chips(result), _overflow(result)]
    if result.problem.graph.num_ops == 0:
        warnings.append("the graph has no ops: there is nothing to place")
    warnings.append(_dominant_op(result))
    if result.stopped_by == "interrupt":
        warnings.append("the search was interrupted: this is the best plan until then")
    return [sentence for sentence in (*warnings, *result.notes) if sentence]


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers with runs drawn together.

    Examples
    --------
    >>> ranges([0, 2, 3, 7, 8, 9])
    '0, 2-3, 7-9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def _replicas(result: Result) -> tuple[list[str], int]:
    """Return the names of the replicated ops, in graph order, and their copies."""
    names_on = result.partition.replicas().values()
    copied = {name for names in names_on for name in names}
    ordered = [name for name in result.problem.graph.op_name if name in copied]
    return ordered, sum(map(len, names_on))


def _unused_chips(result: Result) -> str:
    unused = [load.chip for load in result.metrics.chips if load.ops == 0]
    if not unused:
        return ""
    verb = "stays" if len(unused) == 1 else "stay"
    chips = counted(result.problem.num_chips, "chip")
    return f"{len(unused)} of the {chips} {verb} empty ({ranges(unused)})"


def _overflow(result: Result) -> str:
    """Return the sentence on chips that need more memory than they have, if any.

    Where the rule ``memory`` is on there are none.
    """
    package = result.problem.package
    over = [
        (load, chip.memory_bytes)
        for load, chip in zip(result.metrics.chips, package.chips, strict=True)
        if load.memory_bytes > chip.memory_bytes
    ]
    if not over:
        return ""
    over.sort(key=lambda pair: pair[1] / pair[0].memory_bytes)
    needs = [
        f"chip {load.chip} needs {format_bytes(load.memory_bytes)} of "
        f"{format_bytes(size)}"
        for load, size in over
    ]
    verb = "exceeds its" if len(over) == 1 else "exceed their"
    return (
        f"{counted(len(over), 'chip')} {verb} memory, which package {package.name!r} "
        f"does not enforce: {shortened(needs, CHIPS_SHOWN)}"
    )


def _dominant_op(result: Result) -> str:
    fastest_s = result.problem.costs.op_s.min(axis=0)
    if not fastest_s.size or result.metrics.bottleneck_s == 0:
        return ""
    op = int(fastest_s.argmax())
    share = fastest_s[op] / result.metrics.bottleneck_s
    if share < DOMINANT:
        return ""
    return (
        f"op {result.problem.graph.op_name[op]!r} alone is {100 * share:.0f} % of the "
        "bottleneck: no partition can go far beyond it"
    )


def _largest_op(result: Result, chip: int, compute_s: float) -> tuple[str, float]:
    """Return the chip's most expensive op and its share of the chip's compute."""
    graph = result.problem.graph
    copies = set(result.partition.replicas().get(chip, ()))
    kind = result.problem.package.chips[chip]
    seconds, op = max(
        (op_seconds(graph, op, kind), op)
        for op, placed in enumerate(result.partition.chip_of.tolist())
        if placed == chip or graph.op_name[op] in copies
    )
    return graph.op_name[op], seconds / compute_s if compute_s else 0.0


def _format_joules(energy_j: float) -> str:
    for factor, unit in ((1e12, "pJ"), (1e9, "nJ"), (1e6, "uJ"), (1e3, "mJ")):
        if 0 < energy_j * factor < 999.5:
            return f"{format_count(energy_j * factor)} {unit}"
    return f"{energy_j:.3g} J"
