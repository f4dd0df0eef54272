"""If, Loop, Scan and SequenceMap are one op each, with what their bodies read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from mcmpart.errors import InputError

from .models import (
    BOOL,
    INT64,
    edges,
    flops,
    read,
    said,
    save,
    tensor,
    value,
    weight,
    weights_of,
)

node = helper.make_node


def body(
    name: str,
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    weights: list[object] | None = None,
) -> GraphProto:
    """Return a sub-graph."""
    return helper.make_graph(nodes, name, inputs, outputs, weights or [])


def branch(nodes: list[NodeProto], output: str, weights: list[object] | None = None):
    """Return a branch of an If with one output of 2 x 3 elements."""
    return body("branch", nodes, [], [value(output, [2, 3])], weights)


def if_model(folder: Path, yes: GraphProto, no: GraphProto, **extra: object) -> Path:
    """Return Relu(x) -> mid, then an If over the two branches, then Neg."""
    nodes = [
        node("Relu", ["x"], ["mid"], "relu"),
        node("If", ["c"], ["y0"], "if", then_branch=yes, else_branch=no),
        node("Neg", ["y0"], ["y"], "neg"),
    ]
    inputs = [value("x", [2, 3]), value("c", [], BOOL)]
    return save(folder, nodes, inputs, ["y"], **extra)  # type: ignore[arg-type]


def test_if_reads_what_its_branches_capture(tmp_path: Path) -> None:
    """The branches read mid and wcap: one edge, one weight; cost is the larger one."""
    yes = branch([node("Exp", ["mid"], ["e"]), node("Add", ["e", "wcap"], ["t"])], "t")
    no = branch([node("Identity", ["mid"], ["f"])], "f")
    wcap = weight("wcap", np.ones((2, 3), np.float32))
    result = read(if_model(tmp_path, yes, no, weights=[wcap]))
    assert edges(result) == {("relu", "if"), ("if", "neg")}
    assert weights_of(result, "if") == {"wcap": 24}
    # Exp is 4 FLOPs an element, Add is 1; the Identity of the other branch is free.
    assert flops(result, "if") == 6 * (4 + 1)
    assert tensor(result, "y0") == ((2, 3), 24)
    assert not result.graph.assumptions


def test_if_costs_its_dearer_branch(tmp_path: Path) -> None:
    """Exp is 4 FLOPs an element and Neg is 1, whichever branch holds it."""
    cheap = branch([node("Neg", ["mid"], ["t"])], "t")
    dear = branch([node("Exp", ["mid"], ["t"])], "t")
    for pair in ((cheap, dear), (dear, cheap)):
        assert flops(read(if_model(tmp_path, *pair)), "if") == 24


def test_branch_may_return_an_outer_value(tmp_path: Path) -> None:
    """A branch without nodes that returns mid makes the edge all the same."""
    yes, no = branch([], "mid"), branch([node("Neg", ["x"], ["f"])], "f")
    result = read(if_model(tmp_path, yes, no))
    assert ("relu", "if") in edges(result)
    t = result.graph.tensor_name.index("x")
    assert {result.graph.op_name[i] for i in result.graph.consumers.row(t)} == {
        "relu",
        "if",
    }


def test_shadowed_name_is_no_capture(tmp_path: Path) -> None:
    """A branch that makes its own mid does not read the outer one."""
    own = [node("Abs", ["x"], ["mid"]), node("Neg", ["mid"], ["t"])]
    yes, no = branch(own, "t"), branch([node("Exp", ["x"], ["f"])], "f")
    result = read(if_model(tmp_path, yes, no))
    assert ("relu", "if") not in edges(result)
    assert said(result.report.notes, "1 dead op dropped", "relu")


def test_branch_weights_are_counted_once(tmp_path: Path) -> None:
    """Twin names in two branches are two weights; one read twice is one."""
    w = weight("w", np.ones((2, 3), np.float32))
    yes = branch(
        [node("Add", ["mid", "w"], ["s"]), node("Mul", ["s", "w"], ["t"])], "t", [w]
    )
    no = branch([node("Sub", ["mid", "w"], ["f"])], "f", [w])
    result = read(if_model(tmp_path, yes, no))
    assert weights_of(result, "if") == {
        "if/then_branch/w": 24,
        "if/else_branch/w": 24,
    }


def test_constant_condition_takes_one_branch(tmp_path: Path) -> None:
    """An If on a constant costs, and reads, only the branch it takes."""
    yes = branch([node("Neg", ["mid"], ["t"])], "t")
    w = weight("w", np.ones((2, 3), np.float32))
    no = branch([node("Exp", ["mid"], ["e"]), node("Add", ["e", "w"], ["f"])], "f", [w])
    nodes = [
        node("Relu", ["x"], ["mid"]),
        node("If", ["c"], ["y"], "if", then_branch=yes, else_branch=no),
    ]
    path = save(
        tmp_path, nodes, [value("x", [2, 3])], ["y"], weights=[weight("c", True)]
    )
    result = read(path)
    assert flops(result, "if") == 6
    assert not any(name.startswith("if/else") for name in result.graph.weight_name)
    assert said(result.report.notes, "If is constant", "if")


def test_branches_of_unlike_shapes_take_the_larger(tmp_path: Path) -> None:
    """One branch returns 2 x 3, the other 3: the larger, as an assumption."""
    total = node("ReduceSum", ["mid", "axis"], ["f"], keepdims=0)
    yes = branch([node("Neg", ["mid"], ["t"])], "t")
    no = body("no", [total], [], [value("f", [3])], [weight("axis", [0])])
    result = read(if_model(tmp_path, yes, no))
    assert tensor(result, "y0") == ((2, 3), 24)
    assert said(result.graph.assumptions, "branches of an If", "if")


def loop_model(
    folder: Path,
    inner: list[NodeProto],
    *,
    trips: int | None = 5,
    end: str = "go",
    weights: list[object] | None = None,
) -> Path:
    """Return a Loop that carries v and stacks s, on x of 2 x 3 elements."""
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("v", [2, 3])]
    outputs = [value(end, [], BOOL), value("v2", [2, 3]), value("s", [2, 3])]
    loop = body("loop", inner, inputs, outputs, weights)
    nodes = [
        node("Relu", ["x"], ["k"], "relu"),
        node("Loop", ["m", "", "x"], ["last", "all"], "loop", body=loop),
        node("Neg", ["last"], ["y"], "neg"),
    ]
    given = [value("x", [2, 3])]
    initial = []
    if trips is None:
        given.append(value("m", [], INT64))
    else:
        initial.append(weight("m", np.int64(trips)))
    return save(folder, nodes, given, ["y", "all"], weights=initial)


ADD = [node("Add", ["v", "k"], ["v2"]), node("Identity", ["v2"], ["s"])]


def test_loop_costs_its_body_times_the_trips(tmp_path: Path) -> None:
    """Five trips of an Add on 6 elements are 30 FLOPs; scan outputs are stacked."""
    result = read(loop_model(tmp_path, ADD))
    assert flops(result, "loop") == 30
    assert tensor(result, "all") == ((5, 2, 3), 120)
    assert ("relu", "loop") in edges(result)
    assert not result.graph.assumptions


def test_loop_sees_a_passed_on_condition(tmp_path: Path) -> None:
    """A condition that goes through an Identity still means: run all trips."""
    on = node("Identity", ["go"], ["on"])
    assert not read(loop_model(tmp_path, [*ADD, on], end="on")).graph.assumptions


def test_loop_that_may_end_early_is_an_assumption(tmp_path: Path) -> None:
    """A computed condition makes the limit an upper bound."""
    less = [node("Less", ["i", "three"], ["on"])]
    path = loop_model(
        tmp_path, [*ADD, *less], end="on", weights=[weight("three", np.int64(3))]
    )
    result = read(path)
    assert flops(result, "loop") == 5 * (6 + 1)
    assert said(result.graph.assumptions, "Loop 'loop' may end early", "5 trips")


@pytest.mark.parametrize("trips", [None, 2**63 - 1])
def test_unknown_trip_count_is_one(tmp_path: Path, trips: int | None) -> None:
    """A count from the host, or a while loop's, is taken as 1 and named."""
    result = read(loop_model(tmp_path, ADD, trips=trips))
    assert flops(result, "loop") == 6
    assert "trip count of Loop 'loop' unknown: taken as 1" in result.graph.assumptions


def test_loop_weights_do_not_grow_with_the_trips(tmp_path: Path) -> None:
    """A weight of the body is one weight of its own bytes."""
    inner = [node("Add", ["v", "w"], ["v2"]), node("Mul", ["v2", "k"], ["s"])]
    w = weight("w", np.ones((2, 3), np.float32))
    assert weights_of(read(loop_model(tmp_path, inner, weights=[w])), "loop") == {
        "loop/body/w": 24,
        "m": 8,
    }


def test_growing_state_is_an_assumption(tmp_path: Path) -> None:
    """A Loop that concatenates changes its state's shape, which is said."""
    grow = [
        node("Concat", ["v", "k"], ["v2"], axis=0),
        node("Identity", ["k"], ["s"]),
    ]
    result = read(loop_model(tmp_path, grow))
    assert tensor(result, "last") == ((4, 3), 48)
    assert said(result.graph.assumptions, "Loop carries", "changes its shape")


def test_if_in_a_loop_captures_through_both(tmp_path: Path) -> None:
    """An If inside a Loop reads an outer tensor: the Loop has the edge and the cost."""
    yes = branch([node("Exp", ["k"], ["t"])], "t")
    no = branch([node("Add", ["v", "k"], ["f"])], "f")
    inner = [
        node("If", ["go"], ["v2"], "choice", then_branch=yes, else_branch=no),
        node("Identity", ["v2"], ["s"]),
    ]
    result = read(loop_model(tmp_path, inner))
    assert ("relu", "loop") in edges(result)
    assert flops(result, "loop") == 5 * 6 * 4


def scan_model(folder: Path, **axes: list[int]) -> Path:
    """Return a Scan over 7 rows of 3: the running sum, and each row's square."""
    inner = [
        node("Add", ["sum", "row"], ["sum2"]),
        node("Mul", ["row", "scale"], ["square"]),
    ]
    scan = body(
        "scan",
        inner,
        [value("sum", [3]), value("row", [3])],
        [value("sum2", [3]), value("square", [3])],
    )
    nodes = [
        node("Relu", ["s"], ["scale"], "relu"),
        node("Scan", ["zero", "x"], ["y", "z"], "scan", body=scan, num_scan_inputs=1),
    ]
    for name, value_ in axes.items():
        nodes[1].attribute.append(helper.make_attribute(name, value_))
    shape = [3, 7] if "scan_input_axes" in axes else [7, 3]
    return save(
        folder,
        nodes,
        [value("x", shape), value("s", [3])],
        ["y", "z"],
        weights=[weight("zero", np.zeros(3, np.float32))],
    )


def test_scan_runs_over_its_axis(tmp_path: Path) -> None:
    """Seven trips of 3 adds and 3 multiplies are 42 FLOPs; the squares are stacked."""
    result = read(scan_model(tmp_path))
    assert flops(result, "scan") == 42
    assert tensor(result, "y") == ((3,), 12)
    assert tensor(result, "z") == ((7, 3), 84)
    assert ("relu", "scan") in edges(result)


def test_scan_axes_may_be_given(tmp_path: Path) -> None:
    """Scanning axis 1 and stacking on the last axis turns the shapes."""
    result = read(scan_model(tmp_path, scan_input_axes=[1], scan_output_axes=[-1]))
    assert flops(result, "scan") == 42
    assert tensor(result, "z") == ((3, 7), 84)


def test_sequence_map_runs_once_per_element(tmp_path: Path) -> None:
    """Three elements of 4 through Exp: 3 x 4 x 4 FLOPs, a sequence of three."""
    inner = body(
        "each", [node("Exp", ["e"], ["o"])], [value("e", [4])], [value("o", [4])]
    )
    nodes = [
        node("SequenceConstruct", ["x", "x", "x"], ["s"]),
        node("SequenceMap", ["s"], ["t"], "map", body=inner),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    result = read(save(tmp_path, nodes, [value("x", [4])], ["y"]))
    assert flops(result, "map") == 48
    assert tensor(result, "y") == ((12,), 48)


def test_missing_body_and_wrong_arity_are_errors(tmp_path: Path) -> None:
    """An If without a branch, and a Loop body that takes too few, are named."""
    lone = node("If", ["c"], ["y"], "lone", then_branch=branch([], "x"))
    given = [value("x", [2, 3]), value("c", [], BOOL)]
    with pytest.raises(InputError, match=r"'lone'.*has no else_branch"):
        read(save(tmp_path, [lone], given, ["y"]))
    short = body("short", [], [value("i", [], INT64)], [value("i", [], INT64)])
    loop = node("Loop", ["", "c", "x"], ["y"], "loop", body=short)
    with pytest.raises(InputError, match=r"body of node 'loop'.*takes 1 inputs"):
        read(save(tmp_path, [loop], given, ["y"]))


def test_unknown_name_in_a_body_is_named(tmp_path: Path) -> None:
    """A branch that reads what nobody writes is an error with its place."""
    yes = branch([node("Neg", ["nowhere"], ["t"], "lost")], "t")
    no = branch([], "mid")
    with pytest.raises(InputError, match=r"'if/then_branch/lost' reads 'nowhere'"):
        read(if_model(tmp_path, yes, no))
