"""Graph files: round trip, content hash, and what the strict reader refuses."""

import copy
import gzip
import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcmpart.errors import GraphError, InputError
from mcmpart.graph import (
    Csr,
    Graph,
    GraphBuilder,
    OpSpec,
    Source,
    TensorSpec,
    content_hash,
    read_graph,
    write_graph,
)


def toy() -> Graph:
    """Return x -> a -> y -> b -> z with one of everything a file can hold."""
    builder = GraphBuilder("toy", Source("onnx", "toy.onnx", "00ff", "onnx 1.18"))
    builder.host_tensor(TensorSpec("x", 8, "fp32", (2,)))
    builder.weight(TensorSpec("w", 4, "fp32"))
    builder.op(
        OpSpec(
            "a",
            "MatMul",
            flops=10,
            bytes=20,
            gemm=(1, 2, 3),
            seconds=0.1,
            replicable=True,
            reads=("x",),
            weights=("w",),
            writes=(TensorSpec("y", 12, "fp32", ()),),
        )
    )
    builder.op(
        OpSpec("b", "my.dom::Foo", reads=("y", "x"), writes=(TensorSpec("z", 1),))
    )
    builder.output("z")
    builder.together(["a", "b"])
    builder.assume("the dim 'batch' was set to 1")
    return builder.build()


@pytest.fixture
def document(tmp_path):
    """Return the toy graph as the JSON value in its file."""
    path = tmp_path / "toy.graph.json"
    write_graph(toy(), path)
    return json.loads(path.read_text())


def assert_same(one: Graph, other: Graph) -> None:
    """Compare every field of two graphs, derived rows included."""
    for field in fields(Graph):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        elif isinstance(a, Csr):
            np.testing.assert_array_equal(a.indptr, b.indptr, err_msg=field.name)
            np.testing.assert_array_equal(a.indices, b.indices, err_msg=field.name)
        else:
            assert a == b, field.name


def refused(tmp_path, document) -> str:
    """Return the sentence with which the reader refuses the document."""
    path = tmp_path / "bad.graph.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize("name", ["toy.graph.json", "toy.graph.json.gz"])
def test_a_graph_survives_its_file(tmp_path, name):
    """Every field is equal after write and read, compressed or not."""
    path = tmp_path / name
    write_graph(toy(), path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert_same(read_graph(path), toy())


def test_the_file_is_columns(document):
    """The file has the keys and columns that other tools rely on."""
    assert document["format"] == "mcmpart.graph"
    assert document["version"] == 1
    assert document["ops"]["gemm"] == [[1, 2, 3], None]
    assert document["ops"]["seconds"] == [0.1, None]
    assert document["tensors"]["producer"] == [-1, 0, 1]
    assert document["tensors"]["shape"] == [[2], [], None]
    assert document["uses"] == {"tensor": [0, 0, 1], "op": [0, 1, 1]}
    assert document["weight_uses"] == {"weight": [0], "op": [0]}
    assert document["together"] == [[0, 1]]


def test_optional_columns_may_be_missing(tmp_path, document):
    """Without the optional keys a graph has no times, shapes, outputs or groups."""
    for key in ("seconds", "gemm", "replicable"):
        del document["ops"][key]
    for key in ("shape", "is_output", "dtype"):
        del document["tensors"][key]
    for key in ("together", "assumptions"):
        del document[key]
    path = tmp_path / "small.graph.json"
    path.write_text(json.dumps(document))
    graph = read_graph(path)
    assert np.isnan(graph.op_seconds).all()
    assert not graph.op_gemm.any()
    assert not graph.op_replicable.any()
    assert not graph.tensor_is_output.any()
    assert graph.tensor_shape == (None, None, None)
    assert graph.together == graph.assumptions == ()


def test_ops_out_of_order_are_sorted(tmp_path, document):
    """A file whose ops stand backwards gives the same graph, indices renumbered."""
    for column in document["ops"].values():
        column.reverse()
    document["tensors"]["producer"] = [-1, 1, 0]
    document["uses"]["op"] = [1, 0, 0]
    document["weight_uses"]["op"] = [1]
    path = tmp_path / "back.graph.json"
    path.write_text(json.dumps(document))
    assert_same(read_graph(path), toy())


def test_the_hash_is_of_the_content():
    """Name, source and assumptions do not count; a single byte of traffic does."""
    graph = toy()
    elsewhere = replace(graph, name="other", source=Source("json"), assumptions=())
    assert content_hash(elsewhere) == content_hash(graph)
    assert len(content_hash(graph)) == 64
    larger = replace(graph, tensor_bytes=graph.tensor_bytes + np.array([0, 0, 1]))
    assert content_hash(larger) != content_hash(graph)
    assert content_hash(replace(graph, together=())) != content_hash(graph)


@st.composite
def graphs(draw):
    """Draw a random graph of up to 6 ops, declared in any order."""
    num_ops = draw(st.integers(0, 6))
    sizes = st.integers(0, 2**50)
    builder = GraphBuilder("random")
    builder.host_tensor(TensorSpec("h", draw(sizes)))
    builder.weight(TensorSpec("w", draw(sizes), "int8"))
    ops = []
    for i in range(num_ops):
        before = st.sampled_from(["h", *(f"t{j}" for j in range(i))])
        seconds = st.none() | st.floats(0, 1e9)
        ops.append(
            OpSpec(
                draw(st.text(max_size=3)) + str(i),
                "K",
                flops=draw(sizes),
                seconds=draw(seconds),
                replicable=draw(st.booleans()),
                reads=tuple(draw(st.lists(before, max_size=3))),
                weights=draw(st.sampled_from([(), ("w",)])),
                writes=(TensorSpec(f"t{i}", draw(sizes)),),
            )
        )
        if draw(st.booleans()):
            builder.output(f"t{i}")
    for op in draw(st.permutations(ops)):
        builder.op(op)
    return builder.build()


@given(graphs())
def test_any_graph_survives_its_file(tmp_path_factory, graph):
    """Random graphs come back equal, with the same hash."""
    path = tmp_path_factory.mktemp("graphs") / "g.graph.json"
    write_graph(graph, path)
    back = read_graph(path)
    assert_same(back, graph)
    assert content_hash(back) == content_hash(graph)


def test_another_format_or_version_is_refused(tmp_path, document):
    """The reader refuses what it was not written for, and says what it wants."""
    assert refused(tmp_path, [1, 2]) == (
        'FILE is not a graph file: its "format" must be "mcmpart.graph"'
    )
    assert "must be" in refused(tmp_path, document | {"format": "mcmpart.plan"})
    assert refused(tmp_path, document | {"version": 2}) == (
        "FILE is a graph file of version 2, and this mcmpart reads version 1: make it "
        "again with this version"
    )
    for version in (True, 1.0, "1", None):
        sentence = refused(tmp_path, document | {"version": version})
        assert f"a graph file of version {version!r}" in sentence


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, document, number):
    """NaN, infinities and numbers beyond a float are named and refused."""
    text = json.dumps(document).replace("0.1", number)
    assert refused(tmp_path, text) == (
        f"FILE holds the number {number}: a graph file may hold finite numbers only"
    )


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("opss", {}, "'opss' is no key of a graph file (did you mean 'ops'?): remove"),
        (
            "tensors.producr",
            [],
            "'tensors.producr' is no key of a graph file (did you m",
        ),
        ("ops.flops.0", -1, "'ops.flops.0' is -1: input should be greater than or eq"),
        ("ops.flops.0", 1.5, "'ops.flops.0' is 1.5: input should be a valid integer"),
        ("ops.flops.0", True, "'ops.flops.0' is True: input should be a valid integer"),
        ("ops.flops.0", 2**63, "'ops.flops.0' is 9223372036854775808: input should be"),
        ("ops.seconds.0", 10**400, "'ops.seconds.0' is 1000"),
        ("ops.seconds.0", -0.5, "'ops.seconds.0' is -0.5: input should be greater"),
        ("ops.gemm.0", [1, 2], "'ops.gemm.0' is [1, 2]: list should have at least 3"),
        ("tensors.shape.0", [-1], "'tensors.shape.0.0' is -1"),
        ("tensors.producer.0", -2, "'tensors.producer.0' is -2"),
        ("tensors.bytes", [1], "the columns of 'tensors' differ in length"),
        ("uses.op", [0], "the columns of 'uses' differ in length"),
        ("ops.replicable", [], "the columns of 'ops' differ in length"),
        ("tensors.producer.1", 2, "tensors.producer names 2, and there are only 2"),
        ("uses.tensor.0", 3, "uses.tensor names 3, and there are only 3: indices"),
        ("uses.op.0", 2, "uses.op names 2, and there are only 2"),
        ("weight_uses.weight.0", 1, "weight_uses.weight names 1, and there are only 1"),
        ("weight_uses.op.0", 9, "weight_uses.op names 9, and there are only 2"),
        ("together", [[0, 2]], "together names 2, and there are only 2"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    tmp_path, document, place, value, sentence
):
    """Keys, types, ranges, lengths and indices are checked before any is used."""
    *path, last = place.split(".")
    target = document = copy.deepcopy(document)
    for step in path:
        target = target[int(step) if step.isdigit() else step]
    target[int(last) if last.isdigit() else last] = value
    assert refused(tmp_path, document).startswith(f"FILE: {sentence}")


def test_a_missing_key_is_named(tmp_path, document):
    """The sentence says which key to add."""
    del document["ops"]["flops"]
    assert refused(tmp_path, document) == (
        "FILE: the key 'ops.flops' is missing: add it"
    )


def test_faults_of_the_graph_itself_name_the_file(tmp_path, document):
    """A cycle or twin names in a well-formed file are GraphErrors with the path."""
    document["uses"]["tensor"][0] = 2
    path = tmp_path / "loop.graph.json"
    path.write_text(json.dumps(document))
    with pytest.raises(
        GraphError, match=r"loop\.graph\.json' is not valid: the ops fo"
    ):
        read_graph(path)


def test_a_group_may_not_repeat_an_op(tmp_path, document):
    """A together group with an op twice is a fault."""
    document["together"] = [[1, 1]]
    assert "together group [1, 1] names one op twice" in refused(tmp_path, document)


def test_broken_files_are_one_sentence(tmp_path):
    """An empty, a truncated and a half-compressed file are refused alike."""
    assert "is not a graph file: Expecting value" in refused(tmp_path, "")
    assert "is not a graph file: " in refused(tmp_path, '{"format": "mcmp')
    path = tmp_path / "cut.graph.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 100)[:-10])
    with pytest.raises(InputError, match="is not a whole gzip file"):
        read_graph(path)
