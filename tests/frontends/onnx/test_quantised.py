"""Quantise-dequantise groups: cuts carry 1 byte an element, never 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import NodeProto, helper

from mcmpart.frontends import ImportResult

from .models import edges, read, said, save, tensor, value, weight

node = helper.make_node
SCALE = [weight("s", np.float32(0.1)), weight("z", np.uint8(0))]


def quantise(x: str, y: str) -> NodeProto:
    """Return a QuantizeLinear called after its output."""
    return node("QuantizeLinear", [x, "s", "z"], [y], y)


def dequantise(x: str, y: str) -> NodeProto:
    """Return a DequantizeLinear called after its output."""
    return node("DequantizeLinear", [x, "s", "z"], [y], y)


def groups(result: ImportResult) -> set[frozenset[str]]:
    """Return the groups by op name."""
    graph = result.graph
    return {frozenset(graph.op_name[i] for i in group) for group in graph.together}


def model(folder: Path, nodes: list[NodeProto], outputs: list[str], **extra: object):
    """Return a model on x of 2 x 4 elements."""
    weights = [*SCALE, *extra.pop("weights", [])]  # type: ignore[misc]
    return save(folder, nodes, [value("x", [2, 4])], outputs, weights=weights, **extra)


def test_groups_hold_an_op_with_its_q_and_its_dqs(tmp_path: Path) -> None:
    """Q DQ Relu Q DQ Exp: two groups, cut only at the uint8 tensor between."""
    nodes = [
        quantise("x", "q0"),
        dequantise("q0", "d0"),
        node("Relu", ["d0"], ["r"], "relu"),
        quantise("r", "q1"),
        dequantise("q1", "d1"),
        node("Exp", ["d1"], ["y"], "exp"),
    ]
    result = read(model(tmp_path, nodes, ["y"]))
    assert groups(result) == {frozenset({"d0", "relu", "q1"}), frozenset({"d1", "exp"})}
    assert tensor(result, "q1") == ((2, 4), 8)
    assert tensor(result, "d1") == ((2, 4), 32)


def test_dequantise_is_copied_to_each_reader(tmp_path: Path) -> None:
    """Three readers get three copies, each in its own group."""
    nodes = [quantise("x", "q"), dequantise("q", "d")]
    nodes += [node(kind, ["d"], [kind], kind) for kind in ("Relu", "Exp", "Neg")]
    result = read(model(tmp_path, nodes, ["Relu", "Exp", "Neg"]))
    assert edges(result) == {
        ("q", "d"), ("q", "d#2"), ("q", "d#3"),
        ("d", "Relu"), ("d#2", "Exp"), ("d#3", "Neg"),
    }  # fmt: skip
    assert len(groups(result)) == 3
    assert said(result.report.notes, "copied", "d (3 copies)")


def test_reader_that_reads_twice_has_one_copy(tmp_path: Path) -> None:
    """Mul(d, d) is one reader."""
    nodes = [
        quantise("x", "q"),
        dequantise("q", "d"),
        node("Mul", ["d", "d"], ["y"], "m"),
    ]
    result = read(model(tmp_path, nodes, ["y"]))
    assert groups(result) == {frozenset({"d", "m"})}


def test_dequantised_output_keeps_its_name(tmp_path: Path) -> None:
    """A DequantizeLinear that gives a model output stays; its reader has a copy."""
    nodes = [
        quantise("x", "q"),
        dequantise("q", "d"),
        node("Relu", ["d"], ["y"], "relu"),
    ]
    result = read(model(tmp_path, nodes, ["d", "y"]))
    graph = result.graph
    assert graph.tensor_is_output[graph.tensor_name.index("d")]
    assert not graph.tensor_is_output[graph.tensor_name.index("d#2")]
    assert groups(result) == {frozenset({"d#2", "relu"})}


def test_copies_avoid_names_that_are_taken(tmp_path: Path) -> None:
    """A node that is called d#2 already pushes the copy to d#3."""
    nodes = [
        quantise("x", "q"),
        dequantise("q", "d"),
        node("Relu", ["d"], ["a"], "d#2"),
        node("Exp", ["d"], ["b"], "exp"),
    ]
    result = read(model(tmp_path, nodes, ["a", "b"]))
    assert groups(result) == {frozenset({"d", "d#2"}), frozenset({"d#3", "exp"})}


def test_weights_are_dequantised_outside_the_groups(tmp_path: Path) -> None:
    """DequantizeLinear of a weight, per channel, with an int32 bias: int8, no group."""
    weights = [
        weight("wq", np.zeros((4, 3), np.int8)),
        weight("ws", np.ones(3, np.float32)),
        weight("wz", np.zeros(3, np.int8)),
        weight("bq", np.zeros(3, np.int32)),
        weight("bs", np.ones(3, np.float32)),
    ]
    nodes = [
        quantise("x", "q"),
        dequantise("q", "d"),
        node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], "w", axis=1),
        node("DequantizeLinear", ["bq", "bs"], ["b"], "b", axis=0),
        node("Gemm", ["d", "w", "b"], ["y"], "gemm"),
    ]
    result = read(model(tmp_path, nodes, ["y"], weights=weights))
    graph = result.graph
    assert groups(result) == {frozenset({"d", "gemm"})}
    assert graph.op_dtype[graph.op_name.index("gemm")] == "int8"
    assert said(graph.assumptions, "compute in int8", ": 1 op")


def test_half_quantised_op_is_not_int8(tmp_path: Path) -> None:
    """A float weight beside a dequantised input leaves the op in fp32."""
    w = weight("w", np.zeros((4, 3), np.float32))
    nodes = [
        quantise("x", "q"),
        dequantise("q", "d"),
        node("MatMul", ["d", "w"], ["y"], "mm"),
    ]
    graph = read(model(tmp_path, nodes, ["y"], weights=[w])).graph
    assert graph.op_dtype[graph.op_name.index("mm")] == "fp32"


def test_sixteen_bits_are_not_eight(tmp_path: Path) -> None:
    """Operands of uint16 leave the op in fp32, grouped all the same."""
    weights = [weight("z16", np.uint16(0))]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z16"], ["q"], "q"),
        node("DequantizeLinear", ["q", "s", "z16"], ["d"], "d"),
        node("Relu", ["d"], ["y"], "relu"),
    ]
    result = read(model(tmp_path, nodes, ["y"], weights=weights, opset=21, ir=10))
    assert result.graph.op_dtype == ("fp32", "fp32", "fp32")
    assert groups(result) == {frozenset({"d", "relu"})}


def test_integer_ops_compute_in_int8(tmp_path: Path) -> None:
    """The float scales of QLinearMatMul do not make it fp32."""
    nodes = [
        quantise("x", "q"),
        node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "s", "z"], ["y"], "mm"),
    ]
    w = weight("w", np.zeros((4, 3), np.uint8))
    graph = read(model(tmp_path, nodes, ["y"], weights=[w])).graph
    assert graph.op_dtype == ("fp32", "int8")


def test_packed_tensors_round_up(tmp_path: Path) -> None:
    """Seven int4 elements take 4 bytes."""
    nodes = [node("Cast", ["x"], ["c"], to=22), node("Cast", ["c"], ["y"], to=1)]
    path = save(tmp_path, nodes, [value("x", [7])], ["y"], opset=21, ir=10)
    assert tensor(read(path), "c") == ((7,), 4)
