"""Weights outside the model file, and large ones inside it, are never loaded."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.lean import LARGE_BYTES, without_large_data

from .models import INT64, read, said, save, tensor, value, weight

node = helper.make_node


def external(
    name: str, shape: list[int], elem: int = TensorProto.FLOAT, **entries: object
) -> TensorProto:
    """Return an initializer whose data lie in another file."""
    tensor_ = TensorProto(name=name, data_type=elem, dims=shape)
    tensor_.data_location = TensorProto.EXTERNAL
    for key, entry in entries.items():
        tensor_.external_data.add(key=key, value=str(entry))
    return tensor_


def matmul(folder: Path, w: TensorProto) -> Path:
    """Return x[1, k] times w[k, n]."""
    nodes = [node("MatMul", ["x", w.name], ["y"])]
    return save(folder, nodes, [value("x", [1, w.dims[0]])], ["y"], weights=[w])


def test_size_comes_from_the_shape(tmp_path: Path) -> None:
    """A weight in a sub-folder has the bytes of its shape."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "w.bin").write_bytes(bytes(96))
    result = read(matmul(tmp_path, external("w", [4, 6], location="deep/w.bin")))
    assert list(result.graph.weight_bytes) == [96]
    assert not result.graph.assumptions


@pytest.mark.parametrize("location", ["../w.bin", "/etc/hostname", "a/../../w.bin", ""])
def test_path_out_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    """External data must lie in the model's folder, whether they exist or not."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(96))
    path = matmul(folder, external("w", [4, 6], location=location))
    with pytest.raises(
        InputError, match=r"'w' lies in.*leads out of the model's folder"
    ):
        read(path)


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A symbolic link that leads outside is refused, one that stays inside is not."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(96))
    path = matmul(folder, external("w", [4, 6], location="link.bin"))
    (folder / "link.bin").symlink_to("../w.bin")
    with pytest.raises(InputError, match=r"link\.bin.*leads out"):
        read(path)
    (folder / "real.bin").write_bytes(bytes(96))
    (folder / "link.bin").unlink()
    (folder / "link.bin").symlink_to("real.bin")
    assert not read(path).graph.assumptions


def test_missing_and_short_files_are_assumptions(tmp_path: Path) -> None:
    """A file that is gone or too short does not stop planning; it is named."""
    gone = matmul(tmp_path, external("w", [4, 6], location="gone.bin"))
    assert said(read(gone).graph.assumptions, "gone.bin (weight w)", "export")
    (tmp_path / "short.bin").write_bytes(bytes(95))
    short = matmul(tmp_path, external("w", [4, 6], location="short.bin"))
    assert said(read(short).graph.assumptions, "too short", "short.bin (weight w)")


def test_link_to_itself_is_an_error(tmp_path: Path) -> None:
    """A symbolic link that never ends at a file is refused by name."""
    (tmp_path / "loop.bin").symlink_to("loop.bin")
    path = matmul(tmp_path, external("w", [4, 6], location="loop.bin"))
    with pytest.raises(InputError, match=r"'w' lies in 'loop\.bin'.*back to itself"):
        read(path)


def test_unusable_name_is_an_error(tmp_path: Path) -> None:
    """A name longer than a file system allows is one sentence."""
    path = matmul(tmp_path, external("w", [4, 6], location="w" * 300))
    with pytest.raises(InputError, match=r"cannot read 'www.*where the weight 'w' lie"):
        read(path)


@pytest.mark.parametrize(
    "entries", [{"offset": 1 << 40}, {"offset": 1}, {"length": 200}, {"length": 95}]
)
def test_extent_that_does_not_fit_is_an_assumption(
    tmp_path: Path, entries: dict[str, int]
) -> None:
    """Data beyond the end of the file, or too few for the shape, are named."""
    (tmp_path / "w.bin").write_bytes(bytes(96))
    result = read(matmul(tmp_path, external("w", [4, 6], location="w.bin", **entries)))
    assert said(result.graph.assumptions, "too short", "w.bin (weight w)")
    assert list(result.graph.weight_bytes) == [96]


def test_short_inline_data_is_an_assumption(tmp_path: Path) -> None:
    """A weight of 20,000 bytes that holds 100 is planned from its shape, and named."""
    w = TensorProto(name="w", data_type=1, dims=[50, 100], raw_data=bytes(100))
    result = read(matmul(tmp_path, w))
    assert said(result.graph.assumptions, "fewer bytes than its shape", ": w")
    assert list(result.graph.weight_bytes) == [20_000]


@pytest.mark.parametrize("through", ["s", "t"])
def test_shape_in_a_missing_file_names_the_file(tmp_path: Path, through: str) -> None:
    """A Reshape whose integers are gone, read directly or cast, asks for the file."""
    shape = external("s", [2], TensorProto.INT32, location="gone.bin")
    if through == "s":
        shape.data_type = INT64
    nodes = [
        node("Cast", ["s"], ["t"], to=INT64),
        node("Reshape", ["x", through], ["y"]),
    ]
    path = save(tmp_path, nodes, [value("x", [2, 6])], ["y"], weights=[shape])
    with pytest.raises(InputError, match=r"missing.*gone\.bin \(weight s\)") as raised:
        read(path)
    assert "--dim" not in str(raised.value)


def test_bad_offset_is_an_error(tmp_path: Path) -> None:
    """An offset that is no number is the file's fault, not a traceback."""
    for offset in ("seven", "-1"):
        w = external("w", [4, 6], location="w.bin", offset=offset)
        with pytest.raises(InputError, match="'w' has an offset or a length"):
            read(matmul(tmp_path, w))


def test_small_external_shape_is_read(tmp_path: Path) -> None:
    """A shape that lies outside is a wanted value: Reshape needs its integers."""
    (tmp_path / "s.bin").write_bytes(bytes(8) + np.array([3, 4]).tobytes())
    shape = external("s", [2], INT64, location="s.bin", offset=8, length=16)
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [2, 6])], ["y"], weights=[shape])
    assert tensor(read(path), "y") == ((3, 4), 48)


def test_gigabytes_outside_cost_nothing(tmp_path: Path) -> None:
    """A 4 GiB weight (a file with a hole) is planned in a few MB of memory."""
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(1 << 32)
    path = matmul(tmp_path, external("w", [1 << 15, 1 << 15], location="w.bin"))
    tracemalloc.start()
    try:
        result = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(result.graph.weight_bytes) == [1 << 32]
    assert peak < 20e6


def test_large_inline_weight_is_not_copied(tmp_path: Path) -> None:
    """A 16 MiB weight inside the file leaves no copy of itself in memory."""
    path = matmul(tmp_path, weight("w", np.zeros((2048, 2048), np.float32)))
    tracemalloc.start()
    try:
        result = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(result.graph.weight_bytes) == [1 << 24]
    assert peak < 8e6


def lean(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model parsed without its large data."""
    raw = memoryview(model.SerializeToString())
    return onnx.ModelProto.FromString(without_large_data(raw))


def test_lean_model_keeps_all_but_large_data() -> None:
    """Raw and typed data above the limit go, wherever they stand; the rest stays."""
    count = LARGE_BYTES // 4 + 1
    big = helper.make_tensor("big", 1, [count], bytes(4 * count), raw=True)
    typed = helper.make_tensor("typed", 1, [count], [0.0] * count)
    small = helper.make_tensor("small", 7, [2], [3, 4])
    inner = helper.make_graph(
        [node("Constant", [], ["t"], value=big)], "b", [], [value("t", [count])]
    )
    graph = helper.make_graph(
        [node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)],
        "g",
        [value("c", [], 9)],
        [value("y", [count])],
        [big, typed, small],
    )
    found = lean(helper.make_model(graph))
    first, second, third = found.graph.initializer
    assert (first.name, list(first.dims), first.raw_data) == ("big", [count], b"")
    assert (second.name, list(second.float_data)) == ("typed", [])
    assert list(third.int64_data) == [3, 4]
    held = found.graph.node[0].attribute[0].g.node[0].attribute[0].t
    assert (held.name, held.raw_data) == ("big", b"")


def test_lean_model_of_small_tensors_is_the_model() -> None:
    """Without large tensors nothing changes."""
    graph = helper.make_graph(
        [node("Add", ["x", "w"], ["y"])],
        "g",
        [value("x", [2])],
        [value("y", [2])],
        [weight("w", np.ones(2, np.float32))],
    )
    model = helper.make_model(graph)
    assert lean(model) == model


def test_broken_bytes_are_a_value_error() -> None:
    """A length beyond the end, an endless number, an unused wire type."""
    for raw in (b"\x3a\x7fabc", b"\x08" + b"\xff" * 12, b"\x0b", b"\x09\x00"):
        with pytest.raises(ValueError, match=r"field|number|wire"):
            without_large_data(memoryview(raw))
