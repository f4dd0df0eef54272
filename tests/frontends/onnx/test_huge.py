"""Large graphs: no recursion, no quadratic step, little memory."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from onnx import helper

from .models import read, save, value, weight

node = helper.make_node
X = [value("x", [2, 3])]
# Several times what it takes here, a small part of what a quadratic step would.
LIMIT_S = 20.0


def test_chain_of_20000_ops(tmp_path: Path) -> None:
    """20,000 ops in a row are imported in seconds."""
    nodes = [node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(20_000)]
    nodes[0].input[0] = "x"
    path = save(tmp_path, nodes, X, ["t20000"])
    start = time.perf_counter()
    graph = read(path).graph
    assert time.perf_counter() - start < LIMIT_S
    assert (graph.num_ops, graph.num_edges) == (20_000, 19_999)


def test_reversed_chain_with_weights(tmp_path: Path) -> None:
    """3,000 ops in reverse order, each with its own weight, are sorted."""
    count = 3_000
    nodes = [node("Add", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(count)]
    nodes[0].input[0] = "x"
    weights = [weight(f"w{i}", np.float32(i)) for i in range(count)]
    result = read(save(tmp_path, nodes[::-1], X, [f"t{count}"], weights=weights))
    assert result.graph.num_weights == count
    assert "the nodes were not in topological order: sorted" in result.report.notes
    assert result.graph.op_name[0] == f"add_{count - 1}"


def test_fan_in_of_eight(tmp_path: Path) -> None:
    """3,000 ops that each read the eight before them."""
    nodes = [node("Relu", ["x"], [f"t{i}"]) for i in range(8)]
    nodes += [
        node("Sum", [f"t{j}" for j in range(i - 8, i)], [f"t{i}"])
        for i in range(8, 3_000)
    ]
    graph = read(save(tmp_path, nodes, X, ["t2999"])).graph
    assert (graph.num_ops, graph.num_edges) == (3_000, 8 * 2_992)


def test_star_of_10000_readers(tmp_path: Path) -> None:
    """One dequantised tensor with 10,000 readers: 10,000 copies and groups."""
    readers = 10_000
    scale = [weight("s", np.float32(1)), weight("z", np.uint8(0))]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    ]
    nodes += [node("Relu", ["d"], [f"y{i}"]) for i in range(readers)]
    path = save(tmp_path, nodes, X, [f"y{i}" for i in range(readers)], weights=scale)
    start = time.perf_counter()
    graph = read(path).graph
    assert time.perf_counter() - start < LIMIT_S
    assert graph.num_ops == 2 * readers + 1
    assert len(graph.together) == readers


def test_2000_islands(tmp_path: Path) -> None:
    """2,000 ops without an edge between them."""
    nodes = [node("Relu", ["x"], [f"y{i}"]) for i in range(2_000)]
    graph = read(save(tmp_path, nodes, X, [f"y{i}" for i in range(2_000)])).graph
    assert (graph.num_ops, graph.num_edges) == (2_000, 0)
