"""Damaged models: an import or one sentence, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, defs, helper

from mcmpart.errors import InputError
from mcmpart.frontends import import_model

from .models import read, save, value

FAULTS = Path(__file__).parents[2] / "data" / "cases" / "faults"
MODELS = [
    "cf_if_capture",
    "cf_scan_capture",
    "constant_nodes_chain",
    "function_calls_function",
    "optional_empty_inputs",
    "qdq_groups",
    "shape_arith_reshape",
    "string_tensors",
]


def _import(path: Path) -> bool:
    """Return whether the model imports; an InputError is the only other way out."""
    try:
        import_model(path)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize("name", MODELS)
def test_flipped_bytes(tmp_path: Path, name: str) -> None:
    """One to three bytes are overwritten, 150 times, by a fixed seed."""
    whole = (FAULTS / name / "model.onnx").read_bytes()
    rng = random.Random(name)
    path = tmp_path / "model.onnx"
    imported = 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 255, rng.randrange(256)])
        path.write_bytes(data)
        imported += _import(path)
    assert 0 < imported < 150


@pytest.mark.parametrize("name", MODELS)
def test_missing_and_swapped_inputs(tmp_path: Path, name: str) -> None:
    """A node loses an input or an attribute, or reads another tensor, 100 times."""
    whole = onnx.load(FAULTS / name / "model.onnx")
    rng = random.Random(name)
    path = tmp_path / "model.onnx"
    imported = 0
    for _ in range(100):
        model = onnx.ModelProto()
        model.CopyFrom(whole)
        node = rng.choice(model.graph.node)
        names = [n for other in model.graph.node for n in (*other.input, *other.output)]
        choice = rng.randrange(3)
        if choice == 0 and node.input:
            del node.input[rng.randrange(len(node.input))]
        elif choice == 1 and node.attribute:
            del node.attribute[rng.randrange(len(node.attribute))]
        elif node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        path.write_bytes(model.SerializeToString())
        imported += _import(path)
    assert 0 < imported < 100


@pytest.mark.parametrize("version", [1 << 62, 1 << 31, 0, -1])
def test_impossible_opset_version(tmp_path: Path, version: int) -> None:
    """The sentence names the version met and those that onnx knows."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    path = save(tmp_path, [relu], [value("x", [2])], ["y"], opset=version)
    known = rf"version {version} of.*ai\.onnx 1 to {defs.onnx_opset_version()}"
    with pytest.raises(InputError, match=known):
        read(path)


def test_version_of_another_domain(tmp_path: Path) -> None:
    """A domain of one's own may have version 0, and none has -1."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    args = (tmp_path, [relu], [value("x", [2])], ["y"])
    assert read(save(*args, domains={"my.dom": 0})).graph.num_ops == 1
    with pytest.raises(InputError, match=r"version -1 of the domain 'my\.dom'"):
        read(save(*args, domains={"my.dom": -1}))


def _field(number: int, body: bytes) -> bytes:
    """Return a protobuf field that holds bytes."""
    head, length = bytearray([number << 3 | 2]), len(body)
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + body


def test_deep_nesting_is_one_sentence(tmp_path: Path) -> None:
    """5,000 bodies inside each other, the innermost with a large weight."""
    graph = _field(5, _field(9, bytes(1 << 19)))
    for _ in range(5000):
        graph = _field(1, _field(5, _field(6, graph)))
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08" + _field(7, graph))
    with pytest.raises(InputError, match=r"model\.onnx nests too deeply"):
        import_model(path)


@pytest.mark.parametrize("as_constant", [False, True])
def test_negative_sparse_dimension(tmp_path: Path, as_constant: bool) -> None:
    """A sparse tensor of -2 elements is refused by name."""
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    index = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    sparse = helper.make_sparse_tensor(values, index, [-2])
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if as_constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    path = save(tmp_path, nodes, [value("x", [2])], ["y"])
    if not as_constant:
        model = onnx.load(path)
        model.graph.sparse_initializer.append(sparse)
        onnx.save(model, path)
    with pytest.raises(InputError, match=r"sparse weight 'w' has shape \[-2\]"):
        read(path)


def test_negative_dimension(tmp_path: Path) -> None:
    """A weight of -2 elements is refused by name."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-2])
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [2])], ["y"], weights=[w])
    with pytest.raises(InputError, match=r"'w' has .* shape \[-2\]"):
        read(path)
