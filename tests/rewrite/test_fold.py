"""Tests of folding weight-only ops."""

import pytest

from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec, content_hash
from mcmpart.graph.synthetic import transformer
from mcmpart.rewrite import fold_weights


def op(name, reads=(), weights=(), size=8, *, kind="Op", dtype="fp32", seconds=None):
    """Return an op that writes ``name.t``."""
    return OpSpec(
        name,
        kind,
        dtype,
        flops=10,
        bytes=10,
        seconds=seconds,
        reads=reads,
        weights=weights,
        writes=(TensorSpec(f"{name}.t", size, dtype),),
    )


def toy(*ops, weights, outputs=("out.t",), together=()):
    """Return a graph with the HOST tensor ``x``."""
    builder = GraphBuilder("toy")
    builder.host_tensor(TensorSpec("x", 8, "fp32"))
    for name, size in weights.items():
        builder.weight(TensorSpec(name, size, "int8" if size < 50 else "fp32"))
    for spec in ops:
        builder.op(spec)
    for name in outputs:
        builder.output(name)
    for group in together:
        builder.together(group)
    return builder.build()


def weights_of(graph, name):
    """Return name -> bytes of the weights that an op reads."""
    rows = graph.weights_of.row(graph.op_name.index(name))
    return {graph.weight_name[w]: int(graph.weight_bytes[w]) for w in rows}


def test_op_becomes_a_weight():
    """An Add of two weights becomes one weight with the size of what it writes."""
    graph = fold_weights(
        toy(
            op("add", (), ("a", "b"), 100),
            op("out", ("x", "add.t")),
            weights={"a": 100, "b": 60},
        )
    )
    assert graph.op_name == ("out",)
    assert graph.weight_name == ("add.t",)
    assert (graph.weight_bytes.tolist(), graph.weight_dtype) == ([100], ("fp32",))
    assert graph.tensor_name == ("x", "out.t")
    assert graph.tensor_producer.tolist() == [-1, 0]
    assert graph.tensor_is_output.tolist() == [False, True]
    assert [graph.tensor_name[t] for t in graph.reads.row(0)] == ["x"]
    assert graph.assumptions == (
        "1 op that reads only weights was folded into a weight",
    )


def test_folding_goes_on():
    """What reads only folded tensors and weights folds too, and counts once."""
    graph = fold_weights(
        toy(
            op("add", (), ("a", "b"), 100),
            op("mul", ("add.t",), ("a",), 120),
            op("out", ("x", "mul.t")),
            op("other", ("x",), ("a",)),
            weights={"a": 100, "b": 60},
        )
    )
    assert weights_of(graph, "out") == {"mul.t": 120}
    assert weights_of(graph, "other") == {"a": 100}
    assert graph.weight_name == ("a", "mul.t")
    assert graph.assumptions == (
        "2 ops that read only weights were folded into weights",
    )


def test_tied_embedding_through_transpose():
    """Gather(emb) and MatMul(h, Transpose(emb)) share one stored embedding."""
    graph = fold_weights(
        toy(
            op("gather", ("x",), ("emb",), kind="Gather"),
            op("turn", (), ("emb",), 1000, kind="Transpose"),
            op("out", ("gather.t", "turn.t"), kind="MatMul"),
            weights={"emb": 1000},
        )
    )
    assert graph.weight_name == ("emb",)
    assert weights_of(graph, "gather") == weights_of(graph, "out") == {"emb": 1000}


@pytest.mark.parametrize(
    "kind", ["DequantizeLinear", "com.microsoft::DequantizeLinear"]
)
def test_dequantised_weight_keeps_its_int8_bytes(kind):
    """A chip stores int8 weight, scale and zero point, also behind a Transpose."""
    graph = fold_weights(
        toy(
            op("dq", (), ("w", "scale", "zero"), 160, kind=kind),
            op("turn", ("dq.t",), (), 160, kind="Transpose"),
            op("out", ("x", "turn.t")),
            op("plain", ("x", "dq.t")),
            weights={"w": 40, "scale": 4, "zero": 1},
        )
    )
    stored = {"w": 40, "scale": 4, "zero": 1}
    assert weights_of(graph, "out") == weights_of(graph, "plain") == stored
    assert graph.weight_bytes.sum() == 45


def test_reshape_by_a_constant_shape():
    """Reshape(w, shape) is w; the shape is not stored."""
    graph = fold_weights(
        toy(
            op("shape", (), ("w", "s"), 400, kind="Reshape"),
            op("out", ("x", "shape.t"), ("w",)),
            weights={"w": 400, "s": 16},
        )
    )
    assert graph.weight_name == ("w",)
    assert weights_of(graph, "out") == {"w": 400}


def test_smaller_output_is_a_new_weight():
    """A Cast that halves its weight leaves the half, which its two readers share."""
    graph = fold_weights(
        toy(
            op("cast", (), ("w",), 50, kind="Cast", dtype="bf16"),
            op("mid", ("x", "cast.t")),
            op("out", ("mid.t", "cast.t")),
            weights={"w": 100},
        )
    )
    assert graph.weight_name == ("cast.t",)
    assert graph.weight_dtype == ("bf16",)
    assert graph.users_of.row(0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("stays", "outputs"),
    [
        (op("c", (), ("w",)), ("c.t", "out.t")),
        (op("c", (), ("w",), kind="RandomNormalLike"), ("out.t",)),
        (op("c", (), ("w",), kind="aten::bernoulli"), ("out.t",)),
        (op("c", (), ("w",), seconds=0.5), ("out.t",)),
        (op("c", (), ("w",), seconds=0.0), ("out.t",)),
        (op("c", ("x",), ("w",)), ("out.t",)),
        (op("c"), ("out.t",)),
    ],
    ids=[
        "output",
        "random",
        "bernoulli",
        "measured",
        "measured as 0",
        "reads x",
        "reads nothing",
    ],
)
def test_what_stays(stays, outputs):
    """Ops that write outputs, draw, were measured, or read no weight do not fold."""
    graph = toy(
        stays, op("out", ("x", "c.t"), ("w",)), weights={"w": 8}, outputs=outputs
    )
    assert fold_weights(graph) is graph


def test_two_written_tensors():
    """A Split of a weight leaves one weight for each tensor that is read."""
    builder = GraphBuilder("split")
    builder.host_tensor(TensorSpec("x", 8))
    builder.weight(TensorSpec("w", 100))
    writes = (TensorSpec("a", 60), TensorSpec("b", 40), TensorSpec("c", 0))
    builder.op(OpSpec("split", "Split", weights=("w",), writes=writes))
    builder.op(OpSpec("out", "Op", reads=("x", "a", "b")))
    graph = fold_weights(builder.build())
    assert weights_of(graph, "out") == {"a": 60, "b": 40}
    assert graph.tensor_name == ("x",)


def test_groups_lose_folded_members():
    """A group keeps the members that stay, and a group of one vanishes."""
    graph = fold_weights(
        toy(
            op("dq", (), ("w",), 32, kind="DequantizeLinear"),
            op("mid", ("x", "dq.t")),
            op("out", ("mid.t",)),
            weights={"w": 8},
            together=(("dq", "mid", "out"), ("dq", "out")),
        )
    )
    assert graph.op_name == ("mid", "out")
    assert graph.together == ((0, 1),)


def test_unused_weight_vanishes():
    """A weight that nobody reads is dropped without an assumption."""
    graph = fold_weights(toy(op("out", ("x",), ("a",)), weights={"a": 8, "b": 9}))
    assert graph.weight_name == ("a",)
    assert graph.assumptions == ()


def test_twice_is_once():
    """Folding a folded graph returns it unchanged."""
    graph = fold_weights(
        toy(
            op("add", (), ("a", "b"), 100),
            op("out", ("x", "add.t")),
            weights={"a": 100, "b": 60},
        )
    )
    assert fold_weights(graph) is graph


def test_nothing_to_fold():
    """A model without weight-only ops stays the very graph it was."""
    graph = transformer(1)
    assert fold_weights(graph) is graph


def test_measured_benchmark_graph_stays():
    """A measured first op that reads nothing but weights is work that was done."""
    builder = GraphBuilder("measured")
    builder.weight(TensorSpec("w", 100))
    first = op("first", (), ("w",), 100, seconds=1.0)
    builder.op(first)
    builder.op(op("last", ("first.t",), (), seconds=1.0))
    graph = builder.build()
    assert content_hash(fold_weights(graph)) == content_hash(graph)


def test_long_chain_of_folds():
    """2,000 weight-only ops in a row fold into one weight."""
    builder = GraphBuilder("long")
    builder.host_tensor(TensorSpec("x", 8))
    builder.weight(TensorSpec("w", 7))
    builder.op(op("c0", (), ("w",)))
    for i in range(1, 2000):
        builder.op(op(f"c{i}", (f"c{i - 1}.t",), (), 8 + i))
    builder.op(op("out", ("x", "c1999.t")))
    graph = fold_weights(builder.build())
    assert graph.op_name == ("out",)
    assert weights_of(graph, "out") == {"c1999.t": 2007}
