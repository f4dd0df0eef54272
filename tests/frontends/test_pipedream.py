"""PipeDream profiles: every number by hand, and every fault in one sentence."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mcmpart.cli.main import app
from mcmpart.errors import InputError
from mcmpart.frontends import import_model, load_graph

PUBLIC = Path(__file__).parents[1] / "data" / "public" / "pipedream"

Judge = Callable[[Path, list[int]], float]


def node(
    number: int,
    what: str,
    forward: str = "1.000",
    activation: str = "8.0",
    parameters: str = "0.000",
) -> str:
    """Return the line of a node."""
    return (
        f"node{number} -- {what} -- forward_compute_time={forward}, "
        f"backward_compute_time=9.000, activation_size={activation}, "
        f"parameter_size={parameters}"
    )


# 25e6 bytes take 2 ms at the 12.5 GB/s of the package mtpp.
TOY = [
    node(1, "Input0", "5.000", "1000.0"),
    node(2, "Conv2d(3, 64, kernel_size=(3, 3))", "2.000", "25000000.0", "400.000"),
    node(4, "LSTM(8, 8)", "1.500", "[12500000.0; 6250000.0; 6250000.0]"),
    node(5, "__getitem__(0)", "0.000", "12500000.0"),
    node(9, "Linear(in_features=8)", "3.000", "7.0", "800.000"),
    "\tnode5 -- node9",
    "\tnode1 -- node2",
    "\tnode2 -- node4",
    "\tnode2 -- node9",
    "\tnode4 -- node5",
]
NAMES = (
    "node1.Input",
    "node2.Conv2d",
    "node4.LSTM",
    "node5.__getitem__",
    "node9.Linear",
)


def write(folder: Path, lines: list[str]) -> Path:
    """Return the path of the lines as a file."""
    path = folder / "toy.graph.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_ops(tmp_path: Path) -> None:
    """Ops have the forward times, an input node 0 s, kinds and names of their own."""
    graph = load_graph(write(tmp_path, TOY))
    assert graph.name == "toy"
    assert graph.source.kind == "pipedream"
    assert graph.op_name == NAMES
    assert graph.op_kind == ("Input", "Conv2d", "LSTM", "__getitem__", "Linear")
    assert graph.op_seconds.tolist() == [0, 0.002, 0.0015, 0, 0.003]
    assert not graph.op_flops.any()
    assert not graph.op_bytes.any()


def test_tensors_and_weights(tmp_path: Path) -> None:
    """An op that is read writes one tensor, a list added up; parameters are weights."""
    graph = load_graph(write(tmp_path, TOY))
    assert graph.tensor_producer.tolist() == [0, 1, 2, 3]
    assert graph.tensor_bytes.tolist() == [1000, 25_000_000, 25_000_000, 12_500_000]
    assert not graph.tensor_is_output.any()
    assert [graph.predecessors.row(op).tolist() for op in range(5)] == [
        [],
        [0],
        [1],
        [2],
        [1, 3],
    ]
    assert graph.weight_bytes.tolist() == [400, 800]
    assert graph.weight_use_op.tolist() == [1, 4]


@pytest.mark.parametrize(
    ("chip_of", "stage_ms"),
    [
        ([0, 0, 0, 0, 0], 2 + 1.5 + 3),
        # The tensor of node2 has two readers on chip 1, which gets it once.
        ([0, 0, 1, 1, 1], 1.5 + 3 + 2),
        ([0, 0, 0, 1, 1], 2 + 1.5 + 2 + 2),
    ],
)
def test_stages(
    tmp_path: Path, chip_of: list[int], stage_ms: float, bottleneck_ms: Judge
) -> None:
    """A stage takes its forward times and its traffic at 12.5 GB/s."""
    path = write(tmp_path, TOY)
    assert bottleneck_ms(path, chip_of) == pytest.approx(stage_ms, rel=1e-12)


def test_assumptions(tmp_path: Path) -> None:
    """Each conversion is listed once."""
    imported = import_model(write(tmp_path, TOY))
    assert imported.graph.assumptions == (
        "op times are the forward times of the PipeDream profile, in ms: this is the "
        "graph of inference",
        "1 input node (node1) set to 0 s: the time in the profile is that of loading "
        "data",
        "activation_size is the bytes of the one tensor that an op writes",
        "several activation sizes of one node are added up: node4",
        "parameter_size is the bytes of the weights of an op",
        "1 op that no op reads writes no tensor, and nothing is read from the host: "
        "traffic is that between ops",
    )
    assert imported.report.assumptions == imported.graph.assumptions
    assert imported.report.num_ops == imported.report.ruled_ops == 5


def test_another_hand(tmp_path: Path) -> None:
    """A byte order mark, CRLF, gzip, spaces for tabs and no name change nothing."""
    text = "\ufeff" + "\r\n".join(TOY).replace("\t", "  ") + "\r\n\r\n"
    path = tmp_path / "profile"
    path.write_bytes(gzip.compress(text.encode()))
    assert load_graph(path).op_name == NAMES


def test_long_description(tmp_path: Path) -> None:
    """A first op that is described in 5,000 characters is still told by content."""
    lines = [node(1, f"Net({'x' * 5000} -- y)"), *TOY[1:]]
    lines[6] = "\tnode1 -- node2"
    assert load_graph(write(tmp_path, lines)).op_name[0] == "node1.Net"


def test_stage_ids_are_noted(tmp_path: Path) -> None:
    """A profile that PipeDream has split is read, and its stages are left out."""
    lines = [line + " -- stage_id=3" if "time" in line else line for line in TOY]
    imported = import_model(write(tmp_path, lines))
    assert imported.graph.op_name == NAMES
    assert "stage_id is not used" in imported.report.notes


@pytest.mark.parametrize("option", ["dims", "op_costs"])
def test_options_without_effect_are_refused(tmp_path: Path, option: str) -> None:
    """Sizes and costs of a profile are fixed."""
    with pytest.raises(InputError, match="a PipeDream graph, whose sizes and costs"):
        load_graph(write(tmp_path, TOY), **{option: {"batch": 2}})


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        (9, "\tnode9 -- node5", "(node9.Linear -> node5.__getitem__ -> node9.Linear)"),
        (9, "\tnode2 -- node2", "cycle .*node2.Conv2d -> node2.Conv2d"),
        (7, "\tnode3 -- node4", "line 8 is an edge of 'node3', which is no node"),
        (9, "\tnode4", "line 10 is no edge, 'node4'"),
        (9, "\tnode4 -- node5 -- node9", "line 10 is no edge"),
        (2, node(2, "Twin"), "lines 2 and 3 are both node 'node2'"),
        (1, node(2, "C", "-1.000"), "line 2: forward_compute_time is '-1.000': .* ms"),
        (1, node(2, "C", "nan"), "line 2: forward_compute_time is 'nan'"),
        (1, node(2, "C", "1e400"), "line 2: forward_compute_time is '1e400'"),
        (1, node(2, "C", "2.0ms"), "'2.0ms': give a time in ms without its unit"),
        (1, node(2, "C", ""), "line 2: forward_compute_time is ''"),
        (1, node(2, "C", "1", "-8.0"), "line 2: activation_size is '-8.0'"),
        (1, node(2, "C", "1", "23.8MB"), "activation_size is '23.8MB': .* bytes"),
        (1, node(2, "C", "1", "23.8"), "activation_size is '23.8': give a whole"),
        (1, node(2, "C", "1", "[8.0; inf]"), "line 2: activation_size is 'inf'"),
        (1, node(2, "C", "1", "[]"), "line 2: activation_size is ''"),
        (1, node(2, "C", "1", "8.0", "1e30"), "line 2: parameter_size is '1e30'"),
        (1, node(2, "C", "1", "8e18"), "more than .* that a plan can count"),
        (1, "node2 -- Conv2d -- 2.0, 3.0", "line 2 is no node, 'node2 -- Conv2d"),
        (1, "node2 -- Conv2d(3, 6", "line 2 is no node"),
    ],
)
def test_faults(tmp_path: Path, line: int, text: str, words: str) -> None:
    """A fault ends in one sentence with the file and the place, and exit code 2."""
    lines = TOY.copy()
    lines[line] = text
    path = write(tmp_path, lines)
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
        (b"\n \n", "holds no node"),
        (b"\tnode1 -- node2\n", "holds no node: a line of one is ID -- OP"),
        (
            "\n".join(TOY).encode().replace(b"LSTM", b"LS\xffTM"),
            "line 3 is not UTF-8",
        ),
        (b"\x1f\x8b\x08\x00", "not a whole gzip file"),
    ],
)
def test_wrong_files(tmp_path: Path, content: bytes, words: str) -> None:
    """A file that --from forces is refused for what it is."""
    path = tmp_path / "graph.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as raised:
        load_graph(path, format="pipedream")
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_binary_profile_by_content(tmp_path: Path) -> None:
    """A profile with a broken byte is told as one, and not taken for a model."""
    path = tmp_path / "graph.txt"
    path.write_bytes("\n".join(TOY).encode().replace(b"LSTM", b"LS\xffTM"))
    with pytest.raises(InputError, match="no PipeDream graph: line 3 is not"):
        load_graph(path)


@pytest.mark.parametrize(
    ("name", "ops", "edges", "seconds"),
    [
        # The sum of forward_compute_time of all lines but the input nodes', by awk.
        ("nasnetamobile", 921, 1078, 0.322921),
        ("inception_v3", 326, 362, 0.289269),
        # The same, and the published optimum on one chip: 182.488 and 33.533 ms.
        ("resnet50", 177, 193, 0.182488),
        ("gnmt", 48, 58, 0.033533),
    ],
)
def test_public_graphs(
    name: str, ops: int, edges: int, seconds: float, bottleneck_ms: Judge
) -> None:
    """Published profiles keep every line, and one chip takes the sum of their times."""
    path = PUBLIC / f"{name}.graph.txt"
    graph = load_graph(path)
    assert (graph.num_ops, graph.num_edges) == (ops, edges)
    assert graph.op_seconds.sum() == pytest.approx(seconds, rel=1e-12)
    assert bottleneck_ms(path, [0] * ops) == pytest.approx(1e3 * seconds, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "last", "optimum_ms"),
    [("resnet50", 68, 107.831672), ("gnmt", 27, 18.8083165)],
)
def test_public_optimum(
    name: str, last: int, optimum_ms: float, bottleneck_ms: Judge
) -> None:
    """A cut behind node ``last`` takes the time of the known best one on two chips.

    The optima are those of an exact dynamic program over ideals.
    """
    path = PUBLIC / f"{name}.graph.txt"
    numbers = [
        int(name.partition(".")[0].removeprefix("node"))
        for name in load_graph(path).op_name
    ]
    chip_of = [int(number > last) for number in numbers]
    assert bottleneck_ms(path, chip_of) == pytest.approx(optimum_ms, rel=1e-6)
