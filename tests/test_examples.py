"""The shipped examples load, are small and clean, and do what their page says."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from mcmpart import import_model

EXAMPLES = Path(__file__).parents[1] / "examples"
MODELS = {"bert-tiny": (149, 18), "resnet18-slim": (50, 13)}


def test_all_models_are_known():
    """The folder holds the models that these tests and its page describe."""
    assert {path.stem for path in EXAMPLES.glob("*.onnx")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_model_is_covered_by_cost_rules(name):
    """Every op has a cost rule, and nothing but a batch size is assumed."""
    report = import_model(EXAMPLES / f"{name}.onnx").report
    assert report.num_nodes == MODELS[name][0]
    assert report.work_covered == 1
    assert report.ruled_ops == report.num_ops
    assert all("'batch' set to 1" in sentence for sentence in report.assumptions)


@pytest.mark.parametrize("name", MODELS)
def test_model_is_valid_and_small(name):
    """The model passes the ONNX checker, has the page's opset and is under 2 MB."""
    path = EXAMPLES / f"{name}.onnx"
    assert path.stat().st_size < 2_000_000
    model = onnx.load(path)
    onnx.checker.check_model(model)
    assert [entry.version for entry in model.opset_import] == [MODELS[name][1]]


@pytest.mark.parametrize("name", MODELS)
def test_model_names_no_path(name):
    """No metadata is left, in which exporters leave paths of their machine."""
    model = onnx.load(EXAMPLES / f"{name}.onnx")
    assert not model.metadata_props
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)


def test_quickstart():
    """The quick start runs and reports three ring sizes, larger ones faster."""
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    head, *lines = ran.stdout.splitlines()
    assert head == "bert-tiny: 149 ops, 84 weights"
    assert [line.split()[0] for line in lines] == ["4", "8", "16"]
    rates = [float(line.split()[2]) for line in lines]
    assert rates == sorted(rates)
