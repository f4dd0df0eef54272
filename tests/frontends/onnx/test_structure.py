"""Names, order, faults and versions of the main graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from mcmpart.errors import InputError
from mcmpart.frontends.onnx import node_keys

from .models import edges, flops, host, read, said, save, tensor, value, weight

node = helper.make_node
X = [value("x", [2, 3])]


def test_nameless_nodes_are_called_by_kind_and_place(tmp_path: Path) -> None:
    """Keys count all nodes of the file, folded ones too."""
    nodes = [
        node("Constant", [], ["k"], value_float=1.0),
        node("Add", ["x", "k"], ["a"]),
        node("Foo", ["a"], ["y"], domain="my.dom"),
    ]
    path = save(tmp_path, nodes, X, ["y"], domains={"my.dom": 1})
    assert read(path).graph.op_name == ("add_1", "foo_2")
    assert node_keys(onnx.load(path).graph.node) == ["constant_0", "add_1", "foo_2"]


def test_strange_names_survive(tmp_path: Path) -> None:
    """Slashes, spaces, quotes, 300 characters and other scripts stay as they are."""
    names = ["/a:b.c", "a b\n'c'", "é" * 300, "../up"]
    last = "x"
    nodes = []
    for name in names:
        nodes.append(node("Relu", [last], [f"t {name}"], name))
        last = f"t {name}"
    graph = read(save(tmp_path, nodes, X, [last])).graph
    assert graph.op_name == tuple(names)
    assert graph.tensor_name == ("x", *(f"t {name}" for name in names))


def test_op_may_be_called_like_a_tensor(tmp_path: Path) -> None:
    """Ops and tensors have names of their own."""
    nodes = [node("Relu", ["x"], ["y"], "x"), node("Exp", ["y"], ["z"], "y")]
    assert edges(read(save(tmp_path, nodes, X, ["z"]))) == {("x", "y")}


def test_body_weight_may_be_called_like_a_tensor(tmp_path: Path) -> None:
    """A body's weight gets another name where a tensor has its path as name."""
    w = weight("w", np.ones((2, 3), np.float32))
    add = node("Add", ["x", "w"], ["t"])
    branch = helper.make_graph([add], "b", [], [value("t", [2, 3])], [w])
    nodes = [
        node("Relu", ["x"], ["if/then_branch/w"], "relu"),
        node("If", ["c"], ["i"], "if", then_branch=branch, else_branch=branch),
        node("Add", ["i", "if/then_branch/w"], ["y"]),
    ]
    given = [*X, value("c", [], 9)]
    graph = read(save(tmp_path, nodes, given, ["y"])).graph
    assert set(graph.weight_name) == {"if/then_branch/w_", "if/else_branch/w"}


def test_unused_input_stays_a_host_tensor(tmp_path: Path) -> None:
    """An input that nobody reads is no fault."""
    given = [*X, value("idle", [5])]
    result = read(save(tmp_path, [node("Relu", ["x"], ["y"])], given, ["y"]))
    assert host(result) == ["x", "idle"]


def test_dead_chain_is_dropped_whole(tmp_path: Path) -> None:
    """What only a dead op reads is dead too, with weights and unknown shapes."""
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Exp", ["x"], ["d"], "d0"),
        node("Reshape", ["d", "s"], ["e"], "d1"),
    ]
    given = [*X, value("s", [2], 7)]
    result = read(save(tmp_path, nodes, given, ["y"]))
    assert result.graph.op_kind == ("Relu",)
    assert said(result.report.notes, "2 dead ops dropped", "d0, d1")


def test_unknown_name_is_named_with_its_reader(tmp_path: Path) -> None:
    """A tensor from nowhere is the reader's fault; so is an output from nowhere."""
    nodes = [node("Add", ["x", "ghost"], ["y"], "add")]
    with pytest.raises(InputError, match="node 'add' reads 'ghost'"):
        read(save(tmp_path, nodes, X, ["y"]))
    with pytest.raises(InputError, match="outputs reads 'ghost'"):
        read(save(tmp_path, [node("Relu", ["x"], ["y"])], X, ["ghost"]))


def test_twin_inputs_and_initializers_are_named(tmp_path: Path) -> None:
    """A name is given once."""
    relu = [node("Relu", ["x"], ["y"])]
    with pytest.raises(InputError, match="the input 'x' is listed twice"):
        read(save(tmp_path, relu, [*X, *X], ["y"]))
    w = weight("w", np.ones(3, np.float32))
    with pytest.raises(InputError, match="the initializer 'w' is given twice"):
        read(save(tmp_path, relu, X, ["y"], weights=[w, w]))


def test_node_may_not_write_an_input_or_a_weight(tmp_path: Path) -> None:
    """Writing over an initializer names it and the node."""
    w = weight("w", np.ones(3, np.float32))
    nodes = [node("Relu", ["x"], ["w"], "over")]
    with pytest.raises(InputError, match=r"'w' is written twice.*'over'"):
        read(save(tmp_path, nodes, X, ["w"], weights=[w]))


def test_long_cycle_is_cut_short(tmp_path: Path) -> None:
    """A cycle of 3,000 nodes is found without recursion, and six are named."""
    nodes = [
        node("Relu", [f"t{i}"], [f"t{(i + 1) % 3000}"], f"n{i}") for i in range(3000)
    ]
    with pytest.raises(InputError, match=r"cycle \(n\d+( -> n\d+){5} -> \.\.\. ->"):
        read(save(tmp_path, nodes, X, ["t0"]))


def test_default_value_of_an_input_is_a_weight(tmp_path: Path) -> None:
    """Since IR 4 an initializer that is an input is a default, which is said."""
    w = weight("w", np.ones((2, 3), np.float32))
    nodes = [node("Add", ["x", "w"], ["y"])]
    given = [*X, value("w", [2, 3])]
    new = read(save(tmp_path, nodes, given, ["y"], weights=[w]))
    assert host(new) == ["x"]
    assert said(new.graph.assumptions, "default value", "w")
    old = read(save(tmp_path, nodes, given, ["y"], weights=[w], ir=3, opset=8))
    assert host(old) == ["x"]
    assert not old.graph.assumptions


def test_sparse_weight_counts_what_it_stores(tmp_path: Path) -> None:
    """One non-zero of 6 elements: one fp32 and one int64 are 12 bytes, not 24."""
    path = save(tmp_path, [node("Add", ["x", "w"], ["y"])], X, ["y"])
    model = onnx.load(path)
    values = helper.make_tensor("w", 1, [1], [1.0])
    sparse = helper.make_sparse_tensor(
        values, helper.make_tensor("i", 7, [1], [4]), [2, 3]
    )
    model.graph.sparse_initializer.append(sparse)
    onnx.save(model, path)
    result = read(path)
    assert list(result.graph.weight_bytes) == [12]
    assert tensor(result, "y") == ((2, 3), 24)


def test_old_opset_broadcasts_by_attribute(tmp_path: Path) -> None:
    """Add of opset 6 with broadcast=1 keeps its first input's shape."""
    add = node("Add", ["x", "w"], ["y"], "add", broadcast=1, axis=1)
    w = weight("w", np.ones(3, np.float32))
    result = read(save(tmp_path, [add], X, ["y"], weights=[w], opset=6, ir=3))
    assert tensor(result, "y") == ((2, 3), 24)
    assert flops(result, "add") == 6


def test_missing_opset_is_an_assumption(tmp_path: Path) -> None:
    """Without opset_import the newest opset of the IR version is taken."""
    path = save(tmp_path, [node("Relu", ["x"], ["y"])], X, ["y"], opset=None, ir=8)
    result = read(path)
    assert said(result.graph.assumptions, "does not say which opset", "IR version 8")


def test_newer_opset_matters_where_an_op_is_unknown(tmp_path: Path) -> None:
    """Opset 999 of known ops is an assumption; of an unknown one, both numbers."""
    newest = onnx.defs.onnx_opset_version()
    known = read(save(tmp_path, [node("Relu", ["x"], ["y"])], X, ["y"], opset=999))
    assert said(known.graph.assumptions, "opset 999 is newer", str(newest))
    path = save(tmp_path, [node("Relu2", ["x"], ["y"])], X, ["y"], opset=999)
    with pytest.raises(InputError, match=rf"opset 999.*up to {newest}.*Relu2"):
        read(path)


def test_name_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    """A damaged name is shown, not a traceback."""
    path = save(tmp_path, [node("Relu", ["x"], ["yyyy"])], X, ["yyyy"])
    path.write_bytes(path.read_bytes().replace(b"yyyy", b"\xff\xfe\xfd\xfc"))
    with pytest.raises(InputError, match="is no UTF-8 text"):
        read(path)


def test_weight_without_its_elements_is_an_error(tmp_path: Path) -> None:
    """A small initializer that is shorter than its shape is named."""
    w = weight("w", np.ones(3, np.float32))
    w.dims[0] = 4
    path = save(tmp_path, [node("Add", ["x", "w"], ["y"])], X, ["y"], weights=[w])
    with pytest.raises(InputError, match="'w' does not hold the 4 elements"):
        read(path)


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        ([node("SplitToSequence", ["x"], ["s"], axis=1)], (2, 3)),
        ([node("SequenceConstruct", ["x", "x"], ["s"])], (4, 3)),
        (
            [
                node("SequenceConstruct", ["x", "x"], ["q"]),
                node("SequenceErase", ["q"], ["s"]),
            ],
            (2, 3),
        ),
        (
            [
                node("SequenceEmpty", [], ["q"]),
                node("SequenceInsert", ["q", "x"], ["s"]),
            ],
            (2, 3),
        ),
    ],
)
def test_sequences_have_lengths(tmp_path: Path, nodes: list, shape: tuple) -> None:
    """A sequence's length is followed from its making to its joining."""
    axis = 1 if nodes[0].op_type == "SplitToSequence" else 0
    join = node("ConcatFromSequence", ["s"], ["y"], axis=axis)
    result = read(save(tmp_path, [*nodes, join], X, ["y"]))
    assert tensor(result, "y")[0] == shape
    assert said(result.graph.assumptions, "a sequence is counted", "s (")


def test_optional_holds_its_tensor(tmp_path: Path) -> None:
    """What goes into an Optional comes out with its shape."""
    nodes = [node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["y"])]
    assert tensor(read(save(tmp_path, nodes, X, ["y"])), "y") == ((2, 3), 24)
