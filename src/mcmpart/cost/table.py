"""CostTable: the seconds of each op on each class of chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcmpart.cost.roofline import roofline_seconds
from mcmpart.graph import Graph
from mcmpart.graph.graph import Float64, frozen
from mcmpart.hardware.package import Chip, Package


@dataclass(frozen=True, slots=True, eq=False)
class CostTable:
    """What every op costs on every class of chip of a package.

    Attributes
    ----------
    op_s
        ``[K, V] float64``, read-only: seconds of op v on a chip of class k, the order
        of classes being that of ``Package.classes``.
    assumptions
        One sentence per guess.
    """

    op_s: Float64
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        frozen(self.op_s)


def cost_table(graph: Graph, package: Package) -> CostTable:
    """Return t(v, k): the measured seconds where there are any, else the roofline.

    A dtype that a class has no peak for (integers, bool, strings) is costed at the
    first peak of the class, and an assumption says so.

    Notes
    -----
    Measured seconds hold on every class: a graph file has one time per op.
    """
    op_s = np.array([_class_seconds(graph, chip) for chip in package.classes])
    measured = ~np.isnan(graph.op_seconds)
    op_s[:, measured] = graph.op_seconds[measured]
    sentences = [_fallback_sentence(graph, chip) for chip in package.classes]
    sentences.append(_mixture_sentence(graph))
    return CostTable(op_s, tuple(dict.fromkeys(s for s in sentences if s)))


def _class_seconds(graph: Graph, chip: Chip) -> Float64:
    first_peak = chip.peak_ops_per_s[0][1]
    peak_of = {dtype: chip.peak(dtype) or first_peak for dtype in set(graph.op_dtype)}
    return roofline_seconds(
        graph.op_flops,
        graph.op_bytes,
        peak_ops_per_s=np.array([peak_of[d] for d in graph.op_dtype], np.float64),
        memory_bandwidth_bytes_per_s=chip.memory_bandwidth_bytes_per_s,
        overhead_s=chip.op_overhead_s,
    )


def _fallback_sentence(graph: Graph, chip: Chip) -> str:
    """Return what is assumed about dtypes that ``chip`` has no peak for, or ``""``.

    Only ops whose time needs a peak count: no measured time, some FLOPs.
    """
    needs_peak = np.isnan(graph.op_seconds) & (graph.op_flops > 0)
    dtypes = [graph.op_dtype[op] for op in np.flatnonzero(needs_peak)]
    counts = Counter(d for d in dtypes if chip.peak(d) is None)
    if not counts:
        return ""
    listed = _listed([f"{dtype or 'unknown'} ({n})" for dtype, n in counts.items()])
    ops = "1 op computes" if counts.total() == 1 else f"{counts.total()} ops compute"
    unknown = "a dtype" if len(counts) == 1 else "dtypes"
    return (
        f"{ops} in {unknown} that a chip has no peak for, "
        f"{listed}: costed at its {chip.peak_ops_per_s[0][0]} peak"
    )


def _mixture_sentence(graph: Graph) -> str:
    """Return a sentence where only some of the ops have a measured time, or ``""``."""
    measured = ~np.isnan(graph.op_seconds)
    estimated = ~measured & ((graph.op_flops > 0) | (graph.op_bytes > 0))
    if not (measured.any() and estimated.any()):
        return ""
    count = np.count_nonzero(estimated)
    return (
        f"{count} of {graph.num_ops} ops {'has' if count == 1 else 'have'} no measured "
        "time: costed by the roofline"
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(sorted(words))
