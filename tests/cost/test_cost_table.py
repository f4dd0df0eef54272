"""Tests of the cost table."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.cost import cost_table
from mcmpart.graph.synthetic import chain
from mcmpart.hardware.package import Chip, Link, Package

CHIP = Chip(
    memory_bytes=1000,
    memory_bandwidth_bytes_per_s=100.0,
    io_bandwidth_bytes_per_s=10.0,
    op_overhead_s=1.0,
    peak_ops_per_s=(("int8", 1000.0), ("bf16", 500.0)),
    e_flop_j=0.0,
    e_mem_j_per_byte=0.0,
)


def package(*chips):
    """Return a ring of the chips."""
    return Package(
        name="toy",
        source="by hand",
        topology="ring",
        long_edges="relay",
        io="serial",
        link_limit=True,
        rules=("no_skip",),
        chips=chips,
        links=(Link(10.0, 0.0, 0.0),) * (len(chips) - 1),
    )


def toy(dtypes=("int8", "bf16", "int8"), seconds=(np.nan,) * 3):
    """Return ops of 4000 FLOPs and 100 bytes, 4000 and 1000, and a view."""
    return replace(
        chain(3),
        op_flops=np.array([4000, 4000, 0]),
        op_bytes=np.array([100, 1000, 0]),
        op_dtype=dtypes,
        op_seconds=np.array(seconds, dtype=np.float64),
    )


def test_each_class_has_a_row():
    """Identical chips share a row, in order of first appearance."""
    fast = replace(CHIP, peak_ops_per_s=(("*", 8000.0),), op_overhead_s=0.0)
    table = cost_table(toy(), package(CHIP, fast, CHIP))
    # 1 + max(4, 1); 1 + max(8, 10); the view 0. Fast: max(0.5, 1); max(0.5, 10).
    assert table.op_s.tolist() == [[5.0, 11.0, 0.0], [1.0, 10.0, 0.0]]
    assert table.assumptions == ()


def test_table_is_read_only():
    """Nobody can change a cost after it was computed."""
    table = cost_table(toy(), package(CHIP))
    with pytest.raises(ValueError, match="read-only"):
        table.op_s[0, 0] = 1.0


def test_measured_seconds_win():
    """A measured time, 0 included, replaces the roofline on every class."""
    fast = replace(CHIP, op_overhead_s=0.0)
    graph = toy(seconds=(0.25, 0.0, 0.5))
    table = cost_table(graph, package(CHIP, fast))
    assert table.op_s.tolist() == [[0.25, 0.0, 0.5]] * 2
    assert table.assumptions == ()


def test_some_measured():
    """Where only some ops were measured, an assumption says so; views do not count."""
    table = cost_table(toy(seconds=(0.25, np.nan, np.nan)), package(CHIP))
    assert table.op_s.tolist() == [[0.25, 11.0, 0.0]]
    assert table.assumptions == (
        "1 of 3 ops has no measured time: costed by the roofline",
    )


def test_dtype_without_a_peak():
    """Integers are costed at the first peak, and counted by dtype."""
    table = cost_table(toy(dtypes=("int64", "bool", "string")), package(CHIP))
    assert table.op_s.tolist() == [[5.0, 11.0, 0.0]]
    assert table.assumptions == (
        "2 ops compute in dtypes that a chip has no peak for, bool (1), int64 (1): "
        "costed at its int8 peak",
    )


def test_one_op_without_a_peak():
    """A single op is said in the singular."""
    table = cost_table(toy(dtypes=("int64", "int8", "int8")), package(CHIP))
    assert table.assumptions == (
        "1 op computes in a dtype that a chip has no peak for, int64 (1): "
        "costed at its int8 peak",
    )


def test_no_ops():
    """A graph without ops has an empty table."""
    graph = replace(
        chain(1),
        op_name=(),
        op_kind=(),
        op_dtype=(),
        op_flops=np.zeros(0, np.int64),
        op_bytes=np.zeros(0, np.int64),
        op_gemm=np.zeros((0, 3), np.int64),
        op_seconds=np.zeros(0),
        op_replicable=np.zeros(0, np.bool_),
        tensor_producer=np.array([-1, -1], np.int32),
        use_tensor=np.zeros(0, np.int32),
        use_op=np.zeros(0, np.int32),
    )
    assert cost_table(graph, package(CHIP, CHIP)).op_s.shape == (1, 0)
