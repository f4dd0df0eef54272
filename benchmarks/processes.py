"""Whole processes: --help, a 500-op model to plan.json, large imports.

python benchmarks/processes.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import onnx
from _timing import PEAK, Child, Row, run_child, show
from onnx import TensorProto, helper

MCMPART = [sys.executable, "-m", "mcmpart"]
IMPORT = "import sys, mcmpart; mcmpart.load_graph(sys.argv[1])" + PEAK
PARSE = "import sys, onnx; onnx.load(sys.argv[1], load_external_data=False)" + PEAK
INFER = (
    "import sys, onnx; "
    "onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1]), data_prop=True)" + PEAK
)
GIB = 2**30
MIB = 2**20


def save_chain(path: Path, num_ops: int) -> None:
    """Save a chain of MatMul, Add and Relu over 64 features, without value_info."""
    nodes, weights = [], []
    read = "x"
    for i in range(num_ops):
        kind = ("MatMul", "Add", "Relu")[i % 3]
        reads = [read]
        if kind != "Relu":
            shape = [64, 64] if kind == "MatMul" else [64]
            size = 64 * 64 if kind == "MatMul" else 64
            weights.append(
                helper.make_tensor(
                    f"w{i}", TensorProto.FLOAT, shape, bytes(4 * size), raw=True
                )
            )
            reads.append(f"w{i}")
        nodes.append(helper.make_node(kind, reads, [f"t{i}"], name=f"n{i}"))
        read = f"t{i}"
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor_value_info(read, TensorProto.FLOAT, [8, 64])],
        weights,
    )
    onnx.save(helper.make_model(graph, ir_version=8), path)


def save_external(folder: Path, total_bytes: int) -> Path:
    """Save 32 MatMuls whose weights of ``total_bytes`` lie in a (sparse) data file."""
    num_layers = 32
    width = int((total_bytes / num_layers / 4) ** 0.5)
    size = width * width * 4
    nodes, weights = [], []
    for i in range(num_layers):
        weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT)
        weight.dims.extend([width, width])
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (
            ("location", "model.data"),
            ("offset", str(i * size)),
            ("length", str(size)),
        ):
            weight.external_data.add(key=key, value=value)
        weights.append(weight)
        read = f"t{i - 1}" if i else "x"
        nodes.append(helper.make_node("MatMul", [read, f"w{i}"], [f"t{i}"]))
    graph = helper.make_graph(
        nodes,
        "external",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info(f"t{num_layers - 1}", TensorProto.FLOAT, None)],
        weights,
    )
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, ir_version=8).SerializeToString())
    with (folder / "model.data").open("wb") as data:
        data.truncate(num_layers * size)
    return path


def import_rows(folder: Path) -> list[Row]:
    """Measure the two large imports."""
    large = folder / "chain-20000.onnx"
    save_chain(large, 20_000)
    external = save_external(folder, 2 * GIB)
    rows = []
    for name, path, parser, most_s, most_bytes in (
        ("20,000-op chain", large, INFER, 15.0, GIB),
        ("2 GiB of external data", external, PARSE, 2.0, 300 * MIB),
    ):
        ours = run_child([sys.executable, "-c", IMPORT, str(path)])
        theirs = run_child([sys.executable, "-c", parser, str(path)])
        what = "onnx parsing and inferring" if parser == INFER else "onnx parsing"
        rows += [
            Row(
                f"import {name}",
                ours.wall_s,
                "s",
                "<=",
                most_s,
                f"{what} ({theirs.wall_s:.2f} s)",
                ours.wall_s / theirs.wall_s,
            ),
            Row(
                f"import {name}, peak memory",
                ours.peak_bytes / MIB,
                "MiB",
                "<=",
                most_bytes / MIB,
                f"{what} ({theirs.peak_bytes / MIB:.0f} MiB)",
                ours.peak_bytes / theirs.peak_bytes,
            ),
        ]
    return rows


def plan_row(folder: Path, python: Child) -> Row:
    """Measure a 500-op model to plan.json with --time 2, as a whole process."""
    model = folder / "chain-500.onnx"
    save_chain(model, 500)
    command = [*MCMPART, "partition", str(model), "--time", "2", "-o"]
    run_child([*command, str(folder / "cold")], repeats=1)
    child = run_child([*command, str(folder / "plan")])
    return Row(
        "500-op ONNX to plan.json, --time 2",
        child.wall_s,
        "s",
        "<=",
        5.0,
        f"python -c pass ({python.wall_s * 1e3:.0f} ms)",
        child.wall_s / python.wall_s,
    )


def main() -> None:
    """Print the table."""
    python = run_child([sys.executable, "-c", "pass"], repeats=5)
    help_ = run_child([*MCMPART, "--help"], repeats=7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show(
            [
                Row(
                    "mcmpart --help",
                    help_.wall_s,
                    "s",
                    "<=",
                    0.3,
                    f"python -c pass ({python.wall_s * 1e3:.0f} ms)",
                    help_.wall_s / python.wall_s,
                ),
                plan_row(folder, python),
                *import_rows(folder),
            ]
        )


if __name__ == "__main__":
    main()
