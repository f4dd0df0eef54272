"""``mcmpart inspect``: kinds, totals, largest parts, articulation points."""

import json

import pytest

from mcmpart.graph import write_graph
from mcmpart.graph.synthetic import chain


def test_toy(cli, model):
    """A tiny model is counted by hand: three products of 64 x 64, three Relus."""
    result = cli("inspect", model, "--dim", "batch=2")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "toy: 6 ops, 5 edges, 7 tensors, 3 weights"
    # 2 * 2 * 64 * 64 and 2 * 64 FLOPs; 4 bytes of 64 * 64 weights.
    assert lines[1].startswith("49.5 k FLOPs, ")
    assert lines[1].endswith("weights 48.0 KiB")
    assert lines[3].split() == ["kind", "ops", "FLOPs", "touched", "share"]
    # Bytes touched of a product: 4 * (128 + 4096 + 128); the Relus' work is 3456.
    assert lines[4].split() == ["MatMul", "3", "49.2", "k", "51.0", "KiB", "96.7", "%"]
    assert lines[-1].startswith(
        "6 of 6 ops are articulation points: mm_0, relu_0, mm=1"
    )


def test_one_of_each(cli, work):
    """One op, edge-less, with one weight is said in the singular."""
    write_graph(chain(1, weight_bytes=8), work / "one.graph.json")
    lines = cli("inspect", "one.graph.json").stdout.splitlines()
    assert lines[0] == "chain_1: 1 op, 0 edges, 2 tensors, 1 weight"
    assert lines[-1] == "1 of 1 op is an articulation point: op_0"


def test_json(cli, model):
    """--json gives the same as numbers, with every articulation point."""
    document = json.loads(cli("inspect", model, "--json").stdout)
    assert (document["ops"], document["edges"], document["weights"]) == (6, 5, 3)
    assert document["flops"] == 3 * 8192 + 3 * 64
    assert document["weight_bytes"] == 3 * 4 * 64 * 64
    kinds = {kind["kind"]: kind for kind in document["kinds"]}
    assert kinds["MatMul"]["ops"] == 3
    assert sum(kind["share"] for kind in kinds.values()) == pytest.approx(1)
    assert document["largest_tensors"][0] == {
        "name": "x",
        "dtype": "fp32",
        "shape": [1, 64],
        "bytes": 256,
        "producer": None,
        "readers": 1,
    }
    assert document["largest_weights"][0]["bytes"] == 16_384
    assert len(document["articulation_points"]) == 6
    assert document["assumptions"] == [
        "dimension 'batch' set to 1; choose with --dim batch=N"
    ]


def test_bert(cli, bert):
    """Of a small BERT ten tensors and ten weights are shown, the largest first."""
    document = json.loads(cli("inspect", bert, "--json").stdout)
    for part in ("largest_tensors", "largest_weights"):
        sizes = [entry["bytes"] for entry in document[part]]
        assert len(sizes) == 10
        assert sizes == sorted(sizes, reverse=True)
    assert document["kinds"][0]["kind"] == "MatMul"
    # The mask goes around every layer, the classifier's ops see all data.
    assert document["articulation_points"][-1] == "node_linear_25"


def test_graph_file(cli, graph_file):
    """A graph file is inspected as it is."""
    lines = cli("inspect", graph_file).stdout.splitlines()
    assert lines[0] == "chain_12: 12 ops, 11 edges, 13 tensors, 12 weights"
    assert "HOST" in lines[7]


def test_graph_file_has_fixed_sizes(error, graph_file):
    """--dim on a graph file is refused."""
    assert "leave out --dim" in error("inspect", graph_file, "--dim", "batch=2")


def test_unknown_dimension(error, model):
    """An unknown dimension is answered with the nearest one."""
    assert "did you mean 'batch'?" in error("inspect", model, "--dim", "bacth=2")
