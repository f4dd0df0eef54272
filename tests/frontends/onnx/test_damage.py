"""Damaged models: an import or one sentence, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import onnx
import pytest

from mcmpart.errors import InputError
from mcmpart.frontends import import_model

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
