"""``mcmpart import``: the graph file, the report, and what it refuses."""

import json
from pathlib import Path

from mcmpart.graph import read_graph
from mcmpart.graph.file import content_hash


def test_writes_the_graph(cli, model):
    """The graph is written, and the report on stdout names assumption and coverage."""
    result = cli("import", model, "-o", "out/toy.graph.json")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "6 nodes -> 6 ops (0 nodes folded to constants)"
    assert "100 % of ops, 100 % of estimated work have a cost rule" in lines
    assert any(
        line.startswith("assumption: dimension 'batch' set to 1") for line in lines
    )
    assert lines[-1] == "written to out/toy.graph.json"
    # 2 * 1 * 64 * 64 for each of three products, 64 for each Relu.
    assert read_graph(Path("out/toy.graph.json")).op_flops.sum() == 3 * 8192 + 3 * 64


def test_dim(cli, model):
    """--dim sets the batch, and no assumption is left."""
    result = cli("import", model, "-o", "toy.graph.json.gz", "--dim", "batch=8")
    assert "assumption" not in result.stdout
    graph = read_graph(Path("toy.graph.json.gz"))
    assert graph.op_flops.sum() == 8 * (3 * 8192 + 3 * 64)


def test_json(cli, bert):
    """--json prints one object with the file, the graph's hash and the report."""
    result = cli("import", bert, "-o", "bert.graph.json.gz", "--json")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    assert document["file"] == "bert.graph.json.gz"
    graph = read_graph(Path(document["file"]))
    assert document["graph"] == {"name": graph.name, "sha256": content_hash(graph)}
    report = document["report"]
    assert report["num_ops"] == graph.num_ops
    assert report["ops_of_kind"]["LayerNormalization"] == 9
    assert (report["ops_covered"], report["dims"]) == (1.0, {})


def test_a_name_of_another_kind(error, model, work):
    """A name that is no graph file's is refused, so that no model is overwritten."""
    before = model.read_bytes()
    assert "let it end in .graph.json or .graph.json.gz" in error(
        "import", model, "-o", model
    )
    assert model.read_bytes() == before


def test_a_folder_that_is_a_file(error, model):
    """An output below a file is refused."""
    assert "cannot write toy.onnx/x.graph.json" in error(
        "import", model, "-o", f"{model}/x.graph.json"
    )


def test_broken_model(error, work):
    """A file that is no model is refused, and nothing is written."""
    Path("bad.onnx").write_bytes(b"")
    assert "is empty" in error("import", "bad.onnx", "-o", "x.graph.json")
    assert [path.name for path in work.iterdir()] == ["bad.onnx"]
