"""The kind of a model file is told by content; each wrong file gets one sentence."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest
from onnx import helper

from mcmpart.errors import InputError
from mcmpart.frontends import FRONTENDS, import_model, load_graph
from mcmpart.graph import write_graph

from .onnx.models import save, value


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a model of one Relu on 2 x 2 elements."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    return save(tmp_path, [relu], [value("x", [2, 2])], ["y"])


def test_onnx_is_known_by_content(model: Path) -> None:
    """The name of the file does not matter."""
    other = model.rename(model.with_name("weights.json"))
    graph = load_graph(other)
    assert graph.op_kind == ("Relu",)
    assert (graph.source.kind, graph.source.file) == ("onnx", "weights.json")
    assert len(graph.source.sha256) == 64
    assert graph.source.tool.startswith("mcmpart ")


@pytest.mark.parametrize("name", ["g.graph.json", "g.graph.json.gz", "g.bin"])
def test_graph_file_is_known_by_content(model: Path, name: str) -> None:
    """A graph file, compressed or not, comes back as it was written."""
    path = model.parent / name
    write_graph(load_graph(model), path)
    result = import_model(path)
    assert result.graph.op_name == ("relu_0",)
    assert result.report.ops_covered == 1.0
    assert result.report.ops_of_kind == (("Relu", 1),)


@pytest.mark.parametrize("change", ["bom", "late", "spaces", "all"])
def test_graph_file_in_another_hand(model: Path, change: str) -> None:
    """A byte order mark, spaces in front or "format" as last key change nothing."""
    path = model.parent / "g.graph.json"
    write_graph(load_graph(model), path)
    document = json.loads(path.read_bytes())
    if change in ("late", "all"):
        document["name"] = "n" * 2000
        document["format"] = document.pop("format")
    text = json.dumps(document)
    if change in ("spaces", "all"):
        text = " " * 2000 + text
    mark = codecs.BOM_UTF8 if change in ("bom", "all") else b""
    path.write_bytes(mark + text.encode())
    assert load_graph(path).op_name == ("relu_0",)


def test_graph_file_takes_no_dims_or_costs(model: Path) -> None:
    """Sizes in a graph file are fixed: a flag that would do nothing is refused."""
    path = model.parent / "g.graph.json"
    write_graph(load_graph(model), path)
    with pytest.raises(InputError, match="leave out --dim"):
        load_graph(path, dims={"batch": 2})
    with pytest.raises(InputError, match="leave out --op-cost"):
        load_graph(path, op_costs={"Relu": 2})


def test_from_forces_the_kind(model: Path) -> None:
    """An ONNX model read as a graph file is an error of the graph reader."""
    with pytest.raises(InputError, match="not a graph file"):
        load_graph(model, format="graph")
    assert load_graph(model, format="onnx").num_ops == 1


def test_unknown_kind_names_those_there_are(model: Path) -> None:
    """--from takes the keys of the table."""
    with pytest.raises(InputError, match=f"choose {', '.join(FRONTENDS)}"):
        load_graph(model, format="caffe")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        (b"just a note about the model\n", "a text file"),
        ("Prüfbericht für das Modell".encode(), "a text file"),
        (b"PK\x03\x04" + bytes(40), r"zip archive.*\.pt2.*reads ONNX"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite"),
        (b'{"maxDevices": 4, "nodes": []}', "JSON, but no mcmpart graph"),
        (b"[1, 2]", "JSON, but no mcmpart graph"),
        (b'{"nodes": [', "not a graph file"),
        (b" " * 2000, "not a graph file"),
        (gzip.compress(b"{}", mtime=0)[:-6], "gzip"),
        (gzip.compress(b"\x08\x07\x3a\x00", mtime=0), "gzip file, but no graph file"),
        (b"\x08\x07\x3a\xff\xff\x03abc", "truncated"),
        (b"\x0a\x00", "no ONNX graph"),
        (bytes(range(128, 256)), "not a whole ONNX model"),
    ],
)
def test_wrong_content_is_one_sentence(
    tmp_path: Path, content: bytes, words: str
) -> None:
    """The message names the file and says what it is."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as raised:
        load_graph(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """A path to nothing and a path to a folder are told apart."""
    with pytest.raises(InputError, match="does not exist"):
        load_graph(tmp_path / "gone.onnx")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(InputError, match=r"cannot read .*: Not a directory"):
        load_graph(tmp_path / "file" / "model.onnx")
    with pytest.raises(InputError, match="is a folder"):
        load_graph(tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        load_graph(tmp_path, format="onnx")


def test_every_cut_of_a_model_is_an_input_error(model: Path) -> None:
    """A prefix of a model file is refused or, where only its tail is lost, imports."""
    whole = model.read_bytes()
    refused = 0
    for length in range(len(whole)):
        model.write_bytes(whole[:length])
        try:
            load_graph(model)
        except InputError:
            refused += 1
    assert refused >= len(whole) - 6
