"""dnn-partitioning graphs: every value by hand, and every fault in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mcmpart.cli.main import app
from mcmpart.errors import InputError
from mcmpart.frontends import import_model, load_graph
from mcmpart.graph import read_graph

PUBLIC = Path(__file__).parents[1] / "data" / "public" / "dnn-partitioning"

Judge = Callable[[Path, list[int]], float]


def toy() -> dict[str, Any]:
    """Return three nodes with gaps in their ids, the last one first, edges unsorted."""
    return {
        "maxSizePerFPGA": 1e6,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [
            {
                "id": 12,
                "name": "head",
                "supportedOnFpga": True,
                "cpuLatency": 20.0,
                "fpgaLatency": 2,
                "isBackwardNode": False,
                "colorClass": 3,
                "size": 64.4,
            },
            {
                "id": 30,
                "supportedOnFpga": 1,
                "cpuLatency": 15.0,
                "fpgaLatency": 1.5,
                "isBackwardNode": 0,
                "colorClass": None,
                "size": 100.0,
                "layerId": 1,
            },
            {"id": 7, "name": "body", "fpgaLatency": 0.5, "colorClass": 3},
        ],
        "edges": [
            {"sourceId": 7, "destId": 12, "cost": 0.0001, "size": 9.0},
            {"sourceId": 30, "destId": 12, "cost": 2.0},
            {"sourceId": 30, "destId": 7, "cost": 2},
        ],
    }


def write(folder: Path, document: object) -> Path:
    """Return the path of the document as a file."""
    path = folder / "toy.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_ops(tmp_path: Path) -> None:
    """Ops have the accelerator's times, a name or their id, and an order that runs."""
    graph = load_graph(write(tmp_path, toy()))
    assert graph.name == "toy"
    assert graph.source.kind == "dnn-partitioning"
    assert graph.op_name == ("node30", "body", "head")
    assert graph.op_kind == ("Op",) * 3
    assert graph.op_seconds.tolist() == [0.0015, 0.0005, 0.002]
    assert not graph.op_flops.any()
    assert not graph.op_bytes.any()


def test_tensors_weights_and_groups(tmp_path: Path) -> None:
    """A source has one tensor of cost x 12.5e6 bytes, sizes are weights, colours bind.

    2 ms are 25,000,000 bytes, 0.0001 ms are 1,250; the sink has no tensor.
    """
    graph = load_graph(write(tmp_path, toy()))
    assert graph.tensor_producer.tolist() == [0, 1]
    assert graph.tensor_bytes.tolist() == [25_000_000, 1250]
    assert not graph.tensor_is_output.any()
    assert [graph.predecessors.row(op).tolist() for op in range(3)] == [[], [0], [0, 1]]
    assert graph.weight_bytes.tolist() == [64, 100]
    assert [graph.weights_of.row(op).tolist() for op in range(3)] == [[1], [], [0]]
    assert graph.together == ((1, 2),)


@pytest.mark.parametrize(
    ("chip_of", "stage_ms"),
    [
        ([0, 0, 0], 1.5 + 0.5 + 2),
        # Chip 1 gets the tensor of node30 once, although both of its ops read it.
        ([0, 1, 1], 2 + 0.5 + 2),
    ],
)
def test_stages(
    tmp_path: Path, chip_of: list[int], stage_ms: float, bottleneck_ms: Judge
) -> None:
    """A stage takes its latencies and its edge costs, in the authors' setting."""
    path = write(tmp_path, toy())
    assert bottleneck_ms(path, chip_of) == pytest.approx(stage_ms, rel=1e-12)


def test_bytes_are_rounded(tmp_path: Path) -> None:
    """A third of a ms is 4,166,667 bytes, the nearest whole number."""
    document = toy()
    document["edges"][0]["cost"] = 1 / 3
    graph = load_graph(write(tmp_path, document))
    assert graph.tensor_bytes.tolist() == [25_000_000, 4_166_667]


def test_assumptions_and_notes(tmp_path: Path) -> None:
    """Each conversion is listed once, and so are the keys that are not used."""
    imported = import_model(write(tmp_path, toy()))
    assert imported.graph.assumptions == (
        "op times are the fpgaLatency of the dnn-partitioning graph, in ms",
        "an edge cost of x ms is a tensor of x * 12.5e6 bytes, rounded, one a source: "
        "it takes x ms at the 12.5 GB/s of package mtpp",
        "the size of a node, all memory it needs, is the bytes of its weights",
        "the ops of one colorClass share a chip: 1 colour class",
        "1 op that no op reads writes no tensor, and nothing is read from the host: "
        "traffic is that between ops",
    )
    assert imported.report.assumptions == imported.graph.assumptions
    assert imported.report.notes[1:] == (
        "keys that are not used: maxSizePerFPGA, maxFPGAs, maxCPUs; of nodes "
        "cpuLatency, layerId; of edges size",
    )
    assert imported.report.num_ops == imported.report.ruled_ops == 3


def test_names_are_made_unique(tmp_path: Path) -> None:
    """Nodes of one name get numbers, also where an id makes the same name."""
    document = toy()
    for node in document["nodes"]:
        node["name"] = "x"
    document["nodes"][0]["name"] = ""
    document["nodes"][1]["name"] = "node12"
    graph = load_graph(write(tmp_path, document))
    assert sorted(graph.op_name) == ["node12", "node12_1", "x"]


def test_partition_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command keeps the colour class on one chip, and its plan verifies."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, toy())
    options = ["--package", "mtpp", "--chips", "2", "--all-chips", "--json"]
    done = CliRunner().invoke(
        app, ["partition", "toy.json", *options], catch_exceptions=False
    )
    assert done.exit_code == 0
    plan = json.loads(done.stdout)
    assert plan["chip_of"] == {"node30": 0, "body": 1, "head": 1}
    assert plan["metrics"]["bottleneck_s"] == pytest.approx(0.0045)


def test_import_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph file that import writes holds the same graph."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, toy())
    command = ["import", "toy.json", "-o", "g.graph.json", "--from", "dnn-partitioning"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    graph, written = load_graph(path), read_graph(Path("g.graph.json"))
    assert written.op_name == graph.op_name
    assert written.op_seconds.tolist() == graph.op_seconds.tolist()
    assert written.assumptions == graph.assumptions


@pytest.mark.parametrize("option", ["dims", "op_costs"])
def test_options_without_effect_are_refused(tmp_path: Path, option: str) -> None:
    """Sizes and costs of such a graph are fixed."""
    with pytest.raises(InputError, match="a dnn-partitioning graph, whose sizes"):
        load_graph(write(tmp_path, toy()), **{option: {"batch": 2}})


def change(part: str, i: int, **values: object) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets keys of a node or an edge; None takes them out."""

    def apply(document: dict[str, Any]) -> None:
        for key, value in values.items():
            if value is None:
                del document[part][i][key]
            else:
                document[part][i][key] = value

    return apply


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            change("edges", 1, sourceId=12, destId=30),
            r"\(node30 -> body -> head -> node30\)",
        ),
        (change("edges", 0, destId=7), r"cycle \(body -> body\)"),
        (
            change("edges", 2, destId=8),
            "edges.2 has the destId 8, which is the id of no",
        ),
        (change("edges", 0, sourceId=8), "edges.0 has the sourceId 8"),
        (change("nodes", 2, id=12), "nodes.0 and nodes.2 both have the id 12"),
        (change("edges", 2, cost=3.0), "edges.2 has the cost 3, .*sourceId 30 has 2"),
        (change("edges", 0, cost=-1.0), "'edges.0.cost' is -1.0: .*, in ms"),
        (change("edges", 0, cost=None), "the key 'edges.0.cost' is missing"),
        (change("nodes", 0, fpgaLatency=-2.0), "'nodes.0.fpgaLatency' is -2.0: .* ms"),
        (change("nodes", 0, fpgaLatency="2 s"), "is '2 s': .* valid number, in ms"),
        (change("nodes", 0, fpgaLatency=1e300), "'nodes.0.fpgaLatency' is 1e.300"),
        (change("nodes", 0, fpgaLatency=10**400), "'nodes.0.fpgaLatency' is 1000"),
        (change("nodes", 0, fpgaLatency=True), "'nodes.0.fpgaLatency' is True"),
        (change("nodes", 0, size="64 KiB"), "is '64 KiB': .* valid number, in bytes"),
        (change("nodes", 0, size=1e30), "'nodes.0.size' is 1e.30: .*, in bytes"),
        (change("nodes", 0, id="12"), "'nodes.0.id' is '12': .* valid integer"),
        (change("nodes", 1, isBackwardNode=2), "'nodes.1.isBackwardNode' is 2"),
        (change("nodes", 1, isBackwardNode=1), "training graph, 1 node .*give the inf"),
        (change("nodes", 0, supportedOnFpga=0), "nodes.0, with the id 12, has no supp"),
        (lambda d: d["nodes"].clear(), "'nodes' is .*at least 1"),
        (lambda d: d.update(nodes={}), "'nodes' is {}: .* valid list"),
        (lambda d: d["nodes"].append(3), "'nodes.3' is 3"),
        (lambda d: d.pop("edges"), "JSON, but .* no dnn-partitioning graph"),
    ],
)
def test_faults(
    tmp_path: Path, fault: Callable[[dict[str, Any]], None], words: str
) -> None:
    """A fault ends in one sentence with the file and the place, and exit code 2."""
    document = toy()
    fault(document)
    path = write(tmp_path, document)
    with pytest.raises(InputError, match=words) as raised:
        load_graph(path)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 500
    done = CliRunner().invoke(app, ["inspect", str(path)], catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: {raised.value}\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"[]", 'no dnn-partitioning graph: it has no "nodes"'),
        (
            b'{"nodes": [{"id": 1, "fpga',
            "not a dnn-partitioning graph: .*line 1 column",
        ),
        (b'{"nodes": [], "nodes": []}', "the key 'nodes' twice"),
        (b'{"nodes": [{"id": 1, "fpgaLatency": NaN}], "edges": []}', "the number NaN"),
        (b'{"nodes": "\xff", "edges": []}', "binary data, not JSON text"),
        (b"node1 -- Input -- 3", "not a dnn-partitioning graph"),
    ],
)
def test_wrong_files(tmp_path: Path, content: bytes, words: str) -> None:
    """A file that --from forces is refused for what it is."""
    path = tmp_path / "toy.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as raised:
        load_graph(path, format="dnn-partitioning")
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "ops", "edges", "seconds"),
    [
        # The sum of fpgaLatency, by awk.
        ("inceptionv3", 326, 363, 0.310969),
        # The same, and the published optimum on one chip: 201.45 and 182.563 ms.
        ("resnet50", 177, 193, 0.20145),
        ("gnmt", 96, 122, 0.182563),
    ],
)
def test_public_graphs(
    name: str, ops: int, edges: int, seconds: float, bottleneck_ms: Judge
) -> None:
    """Published graphs keep every edge, and one chip takes the sum of latencies."""
    path = PUBLIC / f"{name}_inference.json"
    graph = load_graph(path)
    assert (graph.num_ops, graph.num_edges) == (ops, edges)
    assert graph.op_seconds.sum() == pytest.approx(seconds, rel=1e-12)
    assert bottleneck_ms(path, [0] * ops) == pytest.approx(1e3 * seconds, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "last", "optimum_ms"),
    [("resnet50", 56, 101.281406), ("gnmt", 53, 93.1943477)],
)
def test_public_optimum(
    name: str, last: int, optimum_ms: float, bottleneck_ms: Judge
) -> None:
    """A cut behind node ``last`` takes the time of the known best one on two chips.

    The optima are those of an exact dynamic program over ideals.
    """
    path = PUBLIC / f"{name}_inference.json"
    numbers = [int(name.removeprefix("node")) for name in load_graph(path).op_name]
    chip_of = [int(number > last) for number in numbers]
    assert bottleneck_ms(path, chip_of) == pytest.approx(optimum_ms, rel=1e-6)
