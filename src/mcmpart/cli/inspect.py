"""``mcmpart inspect``: what is in a model, before it is placed anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcmpart.cli._console import print_json, print_table, show
from mcmpart.cli._options import (
    DimOption,
    FromOption,
    JsonOption,
    ModelArgument,
    ModelOptions,
    OpCostOption,
    StrictOption,
)

if TYPE_CHECKING:
    from mcmpart.graph import Graph
    from mcmpart.graph.graph import Int64

LARGEST = 10
"""Tensors and weights shown."""

SHOWN_POINTS = 8
"""Articulation points shown; --json lists all."""


def inspect_command(
    model: ModelArgument,
    *,
    dim: DimOption = None,
    op_cost: OpCostOption = None,
    strict: StrictOption = False,
    from_format: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is in MODEL: its ops by kind, its size, its largest parts.

    Articulation points are ops that every path from the inputs to the outputs passes:
    natural places to cut behind. The share is that of FLOPs plus bytes touched.
    """
    options = ModelOptions.parse(model, dim, op_cost, strict, from_format)
    imported = options.read()
    facts = _facts(imported.graph)
    if as_json:
        assumptions = list(imported.report.assumptions)
        print_json({**facts, "assumptions": assumptions})
    else:
        _show(imported.graph)
        for line in imported.report.assumptions:
            show(f"assumption: {line}")


def _facts(graph: Graph) -> dict[str, object]:
    from mcmpart.cli._articulation import articulation_points

    return {
        "name": graph.name,
        "ops": graph.num_ops,
        "edges": graph.num_edges,
        "tensors": graph.num_tensors,
        "weights": graph.num_weights,
        "flops": int(graph.op_flops.sum()),
        "bytes": int(graph.op_bytes.sum()),
        "tensor_bytes": int(graph.tensor_bytes.sum()),
        "weight_bytes": int(graph.weight_bytes.sum()),
        "kinds": [
            {"kind": kind, "ops": count, "flops": flops, "bytes": size, "share": share}
            for kind, count, flops, size, share in _kinds(graph)
        ],
        "largest_tensors": [_tensor(graph, t) for t in _largest(graph.tensor_bytes)],
        "largest_weights": [_weight(graph, w) for w in _largest(graph.weight_bytes)],
        "articulation_points": [graph.op_name[op] for op in articulation_points(graph)],
    }


def _kinds(graph: Graph) -> list[tuple[str, int, int, int, float]]:
    """Return (kind, ops, FLOPs, bytes, share of work), most work first."""
    sums: dict[str, list[int]] = {}
    for kind, flops, size in zip(
        graph.op_kind, graph.op_flops.tolist(), graph.op_bytes.tolist(), strict=True
    ):
        total = sums.setdefault(kind, [0, 0, 0])
        total[0] += 1
        total[1] += flops
        total[2] += size
    work = sum(flops + size for _, flops, size in sums.values())
    rows = [
        (kind, count, flops, size, (flops + size) / work if work else 0.0)
        for kind, (count, flops, size) in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row[4], -row[1], row[0]))


def _largest(sizes: Int64) -> list[int]:
    order = sorted(range(sizes.size), key=lambda i: (-int(sizes[i]), i))
    return order[:LARGEST]


def _tensor(graph: Graph, tensor: int) -> dict[str, object]:
    from mcmpart.graph.graph import HOST

    producer = int(graph.tensor_producer[tensor])
    shape = graph.tensor_shape[tensor]
    return {
        "name": graph.tensor_name[tensor],
        "dtype": graph.tensor_dtype[tensor],
        "shape": None if shape is None else list(shape),
        "bytes": int(graph.tensor_bytes[tensor]),
        "producer": None if producer == HOST else graph.op_name[producer],
        "readers": int(graph.consumers.row(tensor).size),
    }


def _weight(graph: Graph, weight: int) -> dict[str, object]:
    return {
        "name": graph.weight_name[weight],
        "dtype": graph.weight_dtype[weight],
        "bytes": int(graph.weight_bytes[weight]),
        "readers": int(graph.users_of.row(weight).size),
    }


def _show(graph: Graph) -> None:
    from mcmpart.cli._articulation import articulation_points
    from mcmpart.frontends.report import counted
    from mcmpart.units import format_bytes, format_count

    sizes = (
        counted(graph.num_ops, "op"),
        counted(graph.num_edges, "edge"),
        counted(graph.num_tensors, "tensor"),
        counted(graph.num_weights, "weight"),
    )
    show(f"{graph.name}: {', '.join(sizes)}")
    show(
        f"{format_count(int(graph.op_flops.sum()))} FLOPs, "
        f"{format_bytes(int(graph.op_bytes.sum()))} touched, "
        f"weights {format_bytes(int(graph.weight_bytes.sum()))}"
    )
    if not graph.num_ops:
        return
    kinds = [
        (kind, f"{n}", format_count(flops), format_bytes(size), f"{100 * share:.1f} %")
        for kind, n, flops, size, share in _kinds(graph)
    ]
    show()
    print_table(("kind", "ops", "FLOPs", "touched", "share"), kinds, "lrrrr")
    _show_tensors(graph)
    _show_weights(graph)
    _show_points(graph, articulation_points(graph))


def _show_tensors(graph: Graph) -> None:
    from mcmpart.graph.graph import HOST
    from mcmpart.units import format_bytes

    rows = []
    for t in _largest(graph.tensor_bytes):
        producer = int(graph.tensor_producer[t])
        rows.append(
            (
                graph.tensor_name[t],
                _shape(graph.tensor_shape[t]),
                graph.tensor_dtype[t],
                format_bytes(int(graph.tensor_bytes[t])),
                f"{graph.consumers.row(t).size}",
                "HOST" if producer == HOST else graph.op_name[producer],
            )
        )
    show()
    columns = ("largest tensors", "shape", "dtype", "size", "readers", "producer")
    print_table(columns, rows, "lllrrl")


def _show_weights(graph: Graph) -> None:
    from mcmpart.units import format_bytes

    if not graph.num_weights:
        return
    rows = [
        (
            graph.weight_name[w],
            graph.weight_dtype[w],
            format_bytes(int(graph.weight_bytes[w])),
            f"{graph.users_of.row(w).size}",
        )
        for w in _largest(graph.weight_bytes)
    ]
    show()
    print_table(("largest weights", "dtype", "size", "readers"), rows, "llrr")


def _show_points(graph: Graph, points: Sequence[int]) -> None:
    from mcmpart.frontends.report import counted, shortened

    names = [graph.op_name[op] for op in points]
    verb = "is an articulation point" if len(names) == 1 else "are articulation points"
    show()
    show(
        f"{len(names)} of {counted(graph.num_ops, 'op')} {verb}"
        f"{': ' if names else ''}{shortened(names, SHOWN_POINTS)}"
    )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape)) or "scalar"
