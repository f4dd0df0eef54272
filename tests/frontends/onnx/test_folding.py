"""Constants: what is folded, what follows its readers, what stays an op."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from .models import read, said, save, tensor, value, weight, weights_of

node = helper.make_node


@pytest.mark.parametrize(
    ("attribute", "given", "size"),
    [
        ("value_float", 1.0, 4),
        ("value_floats", [1.0, 2.0, 3.0], 12),
        ("value", helper.make_tensor("t", 1, [2, 3], [0.0] * 6), 24),
    ],
)
def test_constant_node_is_a_weight_of_its_reader(
    tmp_path: Path, attribute: str, given: object, size: int
) -> None:
    """A Constant is no op: its reader stores it."""
    nodes = [
        node("Constant", [], ["k"], **{attribute: given}),
        node("Add", ["x", "k"], ["y"], "add"),
    ]
    result = read(save(tmp_path, nodes, [value("x", [2, 3])], ["y"]))
    assert result.graph.op_name == ("add",)
    assert weights_of(result, "add") == {"k": size}
    assert result.report.num_folded == 1


def test_string_constants_are_weights(tmp_path: Path) -> None:
    """Strings are not evaluated, and count 8 bytes each."""
    nodes = [
        node("Constant", [], ["k"], value_strings=["a", "bc"]),
        node("StringConcat", ["s", "k"], ["y"], "cat"),
    ]
    result = read(save(tmp_path, nodes, [value("s", [2], 8)], ["y"], opset=20))
    assert weights_of(result, "cat") == {"k": 16}


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [({}, (2, 3, 4)), ({"start": 1}, (3, 4)), ({"start": -2, "end": -1}, (3,))],
)
def test_shape_node_has_the_sizes(
    tmp_path: Path, attributes: dict[str, int], shape: tuple[int, ...]
) -> None:
    """Shape with start and end folds, and the Reshape it feeds has that shape."""
    nodes = [
        node("Shape", ["x"], ["s"], **attributes),
        node("Reshape", ["v", "s"], ["y"]),
    ]
    given = [value("x", [2, 3, 4]), value("v", [int(np.prod(shape))])]
    result = read(save(tmp_path, nodes, given, ["y"]))
    assert tensor(result, "y")[0] == shape
    assert result.report.num_folded == 1


def test_size_node_is_the_number_of_elements(tmp_path: Path) -> None:
    """Size of 2 x 3 is 6: the Range up to it has 6 elements."""
    nodes = [
        node("Size", ["x"], ["n"]),
        node("Range", ["zero", "n", "one"], ["r"]),
        node("Add", ["x6", "r"], ["y"]),
    ]
    given = [value("x", [2, 3]), value("x6", [1], 7)]
    weights = [weight("zero", np.int64(0)), weight("one", np.array([1]))]
    result = read(save(tmp_path, nodes, given, ["y"], weights=weights))
    assert tensor(result, "y") == ((6,), 48)


def test_default_domain_has_two_names(tmp_path: Path) -> None:
    """Nodes of "ai.onnx" are read like those of the empty domain."""
    nodes = [
        node("Shape", ["x"], ["s"], domain="ai.onnx"),
        node("Gather", ["s", "last"], ["n"], domain="ai.onnx"),
        node("Reshape", ["x", "n"], ["y"], domain="ai.onnx"),
    ]
    last = weight("last", np.array([1, 0]))
    result = read(save(tmp_path, nodes, [value("x", [2, 3])], ["y"], weights=[last]))
    assert tensor(result, "y")[0] == (3, 2)
    assert result.graph.op_kind == ("Reshape",)


def test_ops_of_which_only_the_shape_is_read_are_dropped(tmp_path: Path) -> None:
    """Shape of a Relu needs no Relu: it is dropped, and named."""
    nodes = [
        node("Relu", ["x"], ["r"], "relu"),
        node("Shape", ["r"], ["s"]),
        node("Reshape", ["z", "s"], ["y"], "reshape"),
    ]
    given = [value("x", [2, 3]), value("z", [6])]
    result = read(save(tmp_path, nodes, given, ["y"]))
    assert result.graph.op_name == ("reshape",)
    assert said(result.report.notes, "whose values nobody needs", "relu")


def test_large_constants_are_not_computed(tmp_path: Path) -> None:
    """A ConstantOfShape of 4 GB and the Transpose of a 64 KiB weight stay ops."""
    nodes = [
        node("ConstantOfShape", ["s"], ["z"], "zeros"),
        node("Transpose", ["w"], ["t"], "turn"),
        node("MatMul", ["x", "t"], ["y"], "mm"),
    ]
    weights = [
        weight("s", np.array([1 << 15, 1 << 15])),
        weight("w", np.zeros((128, 128), np.float32)),
    ]
    path = save(tmp_path, nodes, [value("x", [1, 128])], ["y", "z"], weights=weights)
    result = read(path)
    assert sorted(result.graph.op_name) == ["mm", "turn", "zeros"]
    assert tensor(result, "z")[1] == 1 << 32
    assert weights_of(result, "turn") == {"w": 1 << 16}


def test_random_ops_stay_and_are_named(tmp_path: Path) -> None:
    """RandomNormalLike of a constant is no constant."""
    nodes = [
        node("RandomNormalLike", ["w"], ["n"], "noise"),
        node("Add", ["x", "n"], ["y"]),
    ]
    w = weight("w", np.zeros(3, np.float32))
    result = read(save(tmp_path, nodes, [value("x", [3])], ["y"], weights=[w]))
    assert "noise" in result.graph.op_name
    assert said(result.report.notes, "random op", "noise")


def test_dropout_of_inference_is_not_random(tmp_path: Path) -> None:
    """Without training mode a Dropout is not reported."""
    nodes = [node("Dropout", ["x"], ["y"])]
    assert not read(save(tmp_path, nodes, [value("x", [3])], ["y"])).report.notes


def test_dequantised_weight_stays_small(tmp_path: Path) -> None:
    """DequantizeLinear of a weight is not folded: int8 bytes stay int8 bytes."""
    nodes = [
        node("DequantizeLinear", ["q", "s"], ["w"], "dq"),
        node("MatMul", ["x", "w"], ["y"], "mm"),
    ]
    weights = [weight("q", np.zeros((4, 4), np.int8)), weight("s", np.float32(0.1))]
    path = save(tmp_path, nodes, [value("x", [1, 4])], ["y"], weights=weights)
    assert weights_of(read(path), "dq") == {"q": 16, "s": 4}


def test_constant_nonzero_is_exact(tmp_path: Path) -> None:
    """NonZero of a known mask has its true size, and nothing is assumed."""
    nodes = [node("NonZero", ["m"], ["n"]), node("GatherND", ["x", "t"], ["y"]),
             node("Transpose", ["n"], ["t"])]  # fmt: skip
    mask = weight("m", np.array([1, 0, 1, 1]))
    result = read(save(tmp_path, nodes, [value("x", [4])], ["y"], weights=[mask]))
    assert tensor(result, "y") == ((3,), 12)
    assert not result.graph.assumptions


def test_output_may_be_a_weight_or_an_input(tmp_path: Path) -> None:
    """A model output that is an initializer, a constant or an input is no op."""
    nodes = [node("Constant", [], ["k"], value_float=1.0), node("Relu", ["x"], ["y"])]
    w = weight("w", np.zeros(3, np.float32))
    path = save(tmp_path, nodes, [value("x", [3])], ["w", "k", "x", "y"], weights=[w])
    graph = read(path).graph
    assert graph.op_kind == ("Relu",)
    assert set(graph.weight_name) == {"w", "k"}
    assert list(graph.tensor_is_output) == [True, True]


def test_unused_weights_are_left_out(tmp_path: Path) -> None:
    """An initializer that nobody reads takes no memory."""
    nodes = [node("Add", ["x", "w"], ["y"])]
    weights = [weight("w", np.zeros(3, np.float32)), weight("idle", np.zeros(9))]
    path = save(tmp_path, nodes, [value("x", [3])], ["y"], weights=weights)
    assert read(path).graph.weight_name == ("w",)


def test_small_types_compute_in_their_own(tmp_path: Path) -> None:
    """A bfloat16 constant chain folds, and its reader computes in bf16."""
    nodes = [
        node("Cast", ["c"], ["k"], to=16),
        node("Add", ["x", "k"], ["y"], "add"),
    ]
    path = save(
        tmp_path, nodes, [value("x", [3], 16)], ["y"],
        weights=[weight("c", np.ones(3, np.float32))],
    )  # fmt: skip
    result = read(path)
    assert result.graph.op_dtype == ("bf16",)
    assert weights_of(result, "add") == {"k": 6}
