"""Symbolic and unknown dimensions: set, assumed, or asked for in one error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from mcmpart.errors import InputError
from mcmpart.frontends import import_model

from .models import INT64, read, said, save, tensor, value, weight

node = helper.make_node
W = weight("w", np.ones((4, 6), np.float32))


def dense(folder: Path, batch: int | str | None) -> Path:
    """Return x[batch, 4] times a 4 x 6 weight."""
    return save(
        folder, [node("MatMul", ["x", "w"], ["y"])], [value("x", [batch, 4])], ["y"],
        weights=[W],
    )  # fmt: skip


def test_batch_is_one_by_assumption(tmp_path: Path) -> None:
    """An open symbol becomes 1, with the flag that sets it."""
    result = read(dense(tmp_path, "batch"))
    assert tensor(result, "y") == ((1, 6), 24)
    assert result.graph.assumptions == (
        "dimension 'batch' set to 1; choose with --dim batch=N",
    )
    assert result.report.dims == (("batch", 1),)


def test_batch_is_set(tmp_path: Path) -> None:
    """--dim batch=8 sets shapes, bytes and FLOPs, and nothing is assumed."""
    result = read(dense(tmp_path, "batch"), batch=8)
    assert tensor(result, "y") == ((8, 6), 192)
    assert result.graph.op_flops[0] == 2 * 8 * 4 * 6
    assert tuple(result.graph.op_gemm[0]) == (8, 6, 4)
    assert not result.graph.assumptions
    assert result.report.dims == (("batch", 8),)


def test_nameless_dimension_has_a_place(tmp_path: Path) -> None:
    """A dimension without a symbol is reached as TENSOR.AXIS."""
    path = dense(tmp_path, None)
    assert said(read(path).graph.assumptions, "'x.0' set to 1", "--dim x.0=N")
    assert tensor(import_model(path, dims={"x.0": 3}), "y") == ((3, 6), 72)


def test_zero_is_a_size(tmp_path: Path) -> None:
    """A batch of 0 gives tensors of 0 bytes."""
    assert tensor(read(dense(tmp_path, "batch"), batch=0), "y") == ((0, 6), 0)


def test_sums_of_symbols_are_computed(tmp_path: Path) -> None:
    """An attention mask of past + 1 follows past."""
    nodes = [node("Relu", ["m"], ["a"]), node("Relu", ["p"], ["b"])]
    given = [value("m", [1, "past + 1"]), value("p", [1, "past"])]
    path = save(tmp_path, nodes, given, ["a", "b"])
    assert tensor(read(path, past=7), "m") == ((1, 8), 32)
    assert tensor(read(path), "m") == ((1, 2), 8)
    assert read(path).report.dims == (("past", 1),)


def test_symbols_that_must_agree_are_shown(tmp_path: Path) -> None:
    """Two symbols for one size: set only one, and the error shows both shapes."""
    nodes = [node("Concat", ["x", "z"], ["y"], "join", axis=1)]
    given = [value("x", ["n", 4]), value("z", ["m", 4])]
    path = save(tmp_path, nodes, given, ["y"])
    assert tensor(read(path, n=8, m=8), "y") == ((8, 8), 256)
    with pytest.raises(InputError, match=r"'join'.*x \[8, 4\], z \[1, 4\].*--dim"):
        read(path, n=8)


def test_unknown_dimension_names_the_nearest(tmp_path: Path) -> None:
    """--dim bach=2 is answered with batch; a model without open sizes says so."""
    with pytest.raises(InputError, match=r"bach=2 names no.*did you mean 'batch'"):
        read(dense(tmp_path, "batch"), bach=2)
    with pytest.raises(InputError, match="it has batch"):
        read(dense(tmp_path, "batch"), zzz=2)
    with pytest.raises(InputError, match="all its sizes are fixed"):
        read(dense(tmp_path, 2), batch=2)


def test_negative_size_is_refused(tmp_path: Path) -> None:
    """A dimension is 0 or more."""
    with pytest.raises(InputError, match="'batch' is -1"):
        read(dense(tmp_path, "batch"), batch=-1)


def reshape(folder: Path, **extra: object) -> Path:
    """Return a Reshape by a shape that the host gives, then Relu and Exp."""
    nodes = [
        node("Reshape", ["x", "s"], ["r"], "reshape"),
        node("Relu", ["r"], ["a"]),
        node("Exp", ["a"], ["y"]),
    ]
    given = [value("x", [2, 6]), value("s", [2], INT64)]
    return save(folder, nodes, given, ["y"], **extra)  # type: ignore[arg-type]


def test_run_time_shape_is_one_error_with_its_first_op(tmp_path: Path) -> None:
    """Three tensors have no shape for one reason: the Reshape, named once."""
    with pytest.raises(InputError) as raised:
        read(reshape(tmp_path))
    message = str(raised.value)
    assert "1 shape could not be found: 'r' of 'reshape' (Reshape)" in message
    assert "--dim r.0=N" in message


def test_two_causes_are_both_listed(tmp_path: Path) -> None:
    """Each op that hides a shape is listed in the one error."""
    nodes = [
        node("Reshape", ["x", "s"], ["r"], "first"),
        node("Expand", ["x", "t"], ["e"], "second"),
    ]
    given = [value("x", [2, 6]), value("s", [2], INT64), value("t", [3], INT64)]
    with pytest.raises(InputError, match=r"2 shape.*'first'.*'second'"):
        read(save(tmp_path, nodes, given, ["r", "e"]))


def test_run_time_shape_may_be_given_by_axis(tmp_path: Path) -> None:
    """--dim r.0=3 --dim r.1=4 answers the error."""
    result = import_model(reshape(tmp_path), dims={"r.0": 3, "r.1": 4})
    assert tensor(result, "y") == ((3, 4), 48)


def test_run_time_shape_may_stand_in_the_file(tmp_path: Path) -> None:
    """value_info fills the gap, its symbols set like any other."""
    path = reshape(tmp_path, stated=[value("r", ["rows", 4])])
    assert tensor(read(path, rows=3), "y") == ((3, 4), 48)
    with pytest.raises(InputError, match="'r' of 'reshape'"):
        read(path)


def test_sums_of_symbols_may_stand_in_the_file(tmp_path: Path) -> None:
    """A stated size of 2*rows follows rows; one of unknown symbols stays unknown."""
    path = reshape(tmp_path, stated=[value("r", ["2*rows", 4])])
    assert tensor(read(path, rows=3), "y") == ((6, 4), 96)
    with pytest.raises(InputError, match="'r' of 'reshape'"):
        read(path)


def test_inner_shapes_need_no_value_info(tmp_path: Path) -> None:
    """A chain to a scalar output is typed from the input alone."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("ReduceSum", ["a"], ["y"], keepdims=0),
    ]
    result = read(save(tmp_path, nodes, [value("x", [3, 5])], ["y"]))
    assert tensor(result, "a") == ((3, 5), 60)
    assert tensor(result, "y") == ((), 4)


@pytest.mark.parametrize(
    ("nodes", "name", "shape"),
    [
        ([node("NonZero", ["x"], ["o"])], "o", (2, 12)),
        ([node("Unique", ["x"], ["o", "", "i"])], "i", (12,)),
        ([node("Unique", ["x"], ["o"], axis=1)], "o", (3, 4)),
        ([node("Compress", ["x", "c"], ["o"], axis=0)], "o", (3, 4)),
        ([node("Compress", ["x", "c"], ["o"])], "o", (3,)),
        ([node("TopK", ["x", "k"], ["o", "i"])], "i", (3, 4)),
        ([node("Slice", ["x", "k", "k"], ["o"])], "o", (3, 4)),
        ([node("NonMaxSuppression", ["b", "p", "five"], ["o"])], "o", (10, 3)),
        ([node("NonMaxSuppression", ["b", "p", "k"], ["o"])], "o", (16, 3)),
    ],
)
def test_data_dependent_sizes_have_a_bound(
    tmp_path: Path, nodes: list, name: str, shape: tuple[int, ...]
) -> None:
    """The most an op can return is taken, and named as an assumption."""
    given = [
        value("x", [3, 4]),
        value("c", [3], 9),
        value("k", [1], INT64),
        value("b", [1, 8, 4]),
        value("p", [1, 2, 8]),
    ]
    five = weight("five", np.array([5]))
    result = read(save(tmp_path, nodes, given, [name], weights=[five]))
    assert tensor(result, name)[0] == shape
    assert said(result.graph.assumptions, "depends on data", f"{name} {list(shape)}")


def test_input_without_type_is_named(tmp_path: Path) -> None:
    """An input must at least have an element type."""
    path = save(tmp_path, [node("Relu", ["x"], ["y"])], [value("x", [2], 0)], ["y"])
    with pytest.raises(InputError, match="the input 'x' has element type 0"):
        read(path)
