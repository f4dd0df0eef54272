"""Fixtures of the command line's tests: a runner, models and package files."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from mcmpart.cli.main import app
from mcmpart.graph.file import write_graph
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import preset_text

WIDTH = 64
NODES = ("mm_0", "relu_0", "mm=1", "relu, 1", "mm_2", "relu_2")


def run_cli(*arguments):
    """Return what the command did; anything but an exit is raised here."""
    texts = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, texts, catch_exceptions=False)


def error_of(*arguments, code=2):
    """Return the one line that the command ends with, in the way errors must end."""
    result = run_cli(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    *before, line = result.stderr.splitlines()
    assert not [other for other in before if other.startswith("error")]
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def build_model():
    """Return x[batch, 64] -> three times MatMul, Relu -> y, as an ONNX model."""
    nodes, weights, last = [], [], "x"
    for i, name in enumerate(NODES):
        output = "y" if i == len(NODES) - 1 else f"t_{i}"
        inputs = [last]
        if i % 2 == 0:
            weight = np.full((WIDTH, WIDTH), 0.01, np.float32)
            weights.append(numpy_helper.from_array(weight, f"w_{i}"))
            inputs.append(f"w_{i}")
        kind = "Relu" if i % 2 else "MatMul"
        nodes.append(helper.make_node(kind, inputs, [output], name=name))
        last = output
    ends = [
        helper.make_tensor_value_info(end, TensorProto.FLOAT, ["batch", WIDTH])
        for end in "xy"
    ]
    graph = helper.make_graph(nodes, "toy", ends[:1], ends[1:], weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Give an empty folder, and stand in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(work):
    """Give :func:`run_cli`, in the work folder: a command may write where it stands."""
    return run_cli


@pytest.fixture
def error(work):
    """Give :func:`error_of`, in the work folder too."""
    return error_of


@pytest.fixture
def model(work):
    """Give a tiny ONNX model, ``toy.onnx`` in the work folder."""
    onnx.save(build_model(), work / "toy.onnx")
    return Path("toy.onnx")


@pytest.fixture
def graph_file(work):
    """Give a chain of 12 ops as a graph file, in the work folder."""
    path = Path("chain.graph.json")
    write_graph(chain(12, weight_bytes=4_096), path)
    return path


@pytest.fixture
def package_file(work):
    """Give a function that writes ring36's TOML with one line replaced."""

    def write(old, new):
        text = preset_text("ring36")
        assert old in text
        Path("package.toml").write_text(text.replace(old, new), encoding="utf-8")
        return "package.toml"

    return write


@pytest.fixture
def bert():
    """Give the path of a small BERT as PyTorch exports it."""
    real = Path(__file__).parents[1] / "data" / "cases" / "real"
    return real / "bert_tiny_dynamo" / "model.onnx"
