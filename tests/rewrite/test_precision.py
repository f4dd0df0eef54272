"""Tests of the change of precision."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.rewrite import set_precision


def toy(*, shape=(5, 10), dtype="fp32", seconds=None):
    """Return Gather(table, ids) -> MatMul(w): 5 rows of 10 out of a table of 1000."""
    builder = GraphBuilder("toy")
    builder.host_tensor(TensorSpec("ids", 40, "int64", (5,)))
    builder.weight(TensorSpec("table", 40_000, dtype))
    builder.weight(TensorSpec("w", 800, dtype))
    rows = TensorSpec("rows", 200, dtype, shape)
    builder.op(
        OpSpec(
            "gather",
            "Gather",
            dtype,
            bytes=440,
            reads=("ids",),
            weights=("table",),
            writes=(rows,),
        )
    )
    builder.op(
        OpSpec(
            "out",
            "MatMul",
            dtype,
            flops=2000,
            bytes=200 + 800 + 400,
            seconds=seconds,
            reads=("rows",),
            weights=("w",),
            writes=(TensorSpec("y", 400, dtype, (5, 20)),),
        )
    )
    builder.output("y")
    return builder.build()


def test_int8_quarters_the_floats():
    """fp32 to int8: float bytes are divided by 4 and the ids stay."""
    graph = set_precision(toy(), "int8", ("int8", "bf16"))
    assert graph.tensor_bytes.tolist() == [40, 50, 100]
    assert graph.tensor_dtype == ("int64", "int8", "int8")
    assert graph.weight_bytes.tolist() == [10_000, 200]
    assert graph.weight_dtype == graph.op_dtype == ("int8", "int8")
    # Gather: 40 bytes of ids stay, 400 of rows shrink; not the table it did not read.
    assert graph.op_bytes.tolist() == [40 + 100, 350]
    assert graph.op_flops.tolist() == [0, 2000]
    assert graph.assumptions == ()


def test_auto_keeps_what_the_package_has():
    """Auto leaves fp32 where the package gives an fp32 peak, or one for all."""
    graph = toy()
    assert set_precision(graph, "auto", ("bf16", "fp32")) is graph
    assert set_precision(graph, "auto", ("*",)) is graph


def test_auto_takes_the_first_one():
    """Auto takes the package's first dtype where fp32 has no peak, and says so."""
    graph = set_precision(toy(), "auto", ("bf16", "int8"))
    assert graph.tensor_bytes.tolist() == [40, 100, 200]
    assert graph.assumptions == (
        "the package gives no fp32 peak: float tensors and 2 ops computed as bf16; "
        "choose with --precision",
    )


def test_auto_mixed_dtypes():
    """Auto changes only the float dtype that has no peak."""
    graph = toy()
    graph = replace(graph, weight_dtype=("fp16", "fp32"), op_dtype=("fp16", "fp32"))
    graph = set_precision(graph, "auto", ("fp16",))
    assert graph.weight_bytes.tolist() == [40_000, 400]
    assert graph.op_dtype == ("fp16", "fp16")
    assert (
        "no fp32 peak: float tensors and 1 op computed as fp16" in graph.assumptions[0]
    )


def test_any_precision_of_a_package_with_one_peak():
    """A package with one peak for all takes every precision."""
    assert set_precision(toy(), "bf16", ("*",)).weight_bytes.tolist() == [20_000, 400]


def test_wider():
    """bf16 to fp32 doubles the bytes."""
    graph = set_precision(toy(dtype="bf16"), "fp32", ("fp32",))
    assert graph.weight_bytes.tolist() == [80_000, 1600]
    assert graph.tensor_bytes.tolist() == [40, 200, 400]


def test_packed_int4_rounds_up():
    """5 elements of int4 take 3 bytes; without a shape, 20 bytes of fp32 take 3 too."""
    builder = GraphBuilder("odd")
    builder.host_tensor(TensorSpec("x", 20, "fp32", (5,)))
    builder.host_tensor(TensorSpec("z", 20, "fp32"))
    builder.weight(TensorSpec("w", 20, "fp32"))
    builder.op(OpSpec("out", "Op", bytes=61, reads=("x", "z"), weights=("w",)))
    graph = set_precision(builder.build(), "int4", ("int4",))
    assert graph.tensor_bytes.tolist() == [3, 3]
    assert graph.weight_bytes.tolist() == [3]
    # 61 x 9 / 60 = 9.15
    assert graph.op_bytes.tolist() == [10]


def test_non_float_bytes_bound():
    """An op that touches fewer bytes than its integers keeps its bytes."""
    graph = toy()
    graph = replace(graph, op_bytes=np.array([30, 1400]))
    assert set_precision(graph, "int8", ("int8",)).op_bytes.tolist() == [30, 350]


def test_unknown_dtype_is_left_alone():
    """A tensor of unknown dtype keeps its bytes, and so does an op of only such."""
    builder = GraphBuilder("unknown")
    builder.host_tensor(TensorSpec("x", 20))
    builder.op(OpSpec("out", "Op", bytes=60, reads=("x",)))
    graph = set_precision(builder.build(), "int8", ("int8",))
    assert graph.tensor_bytes.tolist() == [20]
    assert (graph.op_bytes.tolist(), graph.op_dtype) == ([60], ("int8",))


def test_measured_time_is_kept():
    """A measured time stays, and an assumption says that the dtype did not."""
    graph = set_precision(toy(seconds=0.5), "int8", ("int8",))
    assert graph.op_seconds[1] == 0.5
    assert graph.assumptions == (
        "1 op keeps its measured time, although fp32 became int8",
    )


@pytest.mark.parametrize("precision", ["auto", "int8", "bf16"])
def test_twice_is_once(precision):
    """Setting the same precision again returns the same graph."""
    graph = set_precision(toy(), precision, ("int8", "bf16"))
    assert set_precision(graph, precision, ("int8", "bf16")) is graph


def test_huge_bytes_do_not_overflow():
    """Bytes whose product passes 2^63 are rescaled exactly."""
    builder = GraphBuilder("huge")
    builder.weight(TensorSpec("w", 2**40, "fp32"))
    builder.op(OpSpec("out", "Op", bytes=2**40, weights=("w",)))
    graph = set_precision(builder.build(), "int8", ("int8",))
    assert graph.op_bytes.tolist() == graph.weight_bytes.tolist() == [2**38]


def test_precision_without_a_peak():
    """A precision the package has no peak for names those it has."""
    with pytest.raises(InputError, match="no fp8 peak: choose one of int8, bf16"):
        set_precision(toy(), "fp8", ("int8", "bf16"))


def test_precision_that_is_none():
    """A word that is no dtype is refused with the list of dtypes."""
    with pytest.raises(
        InputError, match=r"'fp33' is no dtype .* choose auto or one of"
    ):
        set_precision(toy(), "fp33", ("*",))
