"""Local functions cost their bodies, with their attributes and inputs bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import FunctionProto, NodeProto, helper

from mcmpart.errors import InputError

from .models import (
    BOOL,
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


def function(
    name: str, inputs: list[str], outputs: list[str], nodes: list[NodeProto], **more
) -> FunctionProto:
    """Return a function of the domain loc."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("loc", 1)]
    return helper.make_function("loc", name, inputs, outputs, nodes, imports, **more)


def model(folder: Path, nodes: list[NodeProto], functions: list[FunctionProto], **more):
    """Return a model on x of 2 x 3 elements that uses the functions."""
    return save(
        folder,
        nodes,
        [value("x", [2, 3])],
        ["y"],
        functions=functions,
        domains={"loc": 1},
        **more,
    )


def call(name: str, *inputs: str, output: str = "y", **attributes: object) -> NodeProto:
    """Return a call of a function."""
    return node(name, list(inputs), [output], name.lower(), domain="loc", **attributes)


def test_function_is_one_op_with_its_bodys_cost(tmp_path: Path) -> None:
    """Exp then Neg on 6 elements: 6 x (4 + 1) FLOPs, and a rule for all of it."""
    twice = function(
        "Twice", ["a"], ["c"], [node("Exp", ["a"], ["b"]), node("Neg", ["b"], ["c"])]
    )
    result = read(model(tmp_path, [call("Twice", "x")], [twice]))
    assert result.graph.op_kind == ("loc::Twice",)
    assert flops(result, "twice") == 30
    assert tensor(result, "y") == ((2, 3), 24)
    assert result.report.ops_covered == 1.0


def test_function_goes_before_the_op_of_its_name(tmp_path: Path) -> None:
    """A function loc::Relu is not the ONNX Relu."""
    own = function("Relu", ["a"], ["b"], [node("Exp", ["a"], ["b"])])
    result = read(model(tmp_path, [call("Relu", "x")], [own]))
    assert flops(result, "relu") == 24


def test_attributes_are_bound(tmp_path: Path) -> None:
    """The axis of the call reaches the body; left out, the default does."""
    body = [node("Concat", ["a", "a"], ["b"])]
    body[0].attribute.add(name="axis", ref_attr_name="axis", type=2)
    double = function(
        "Double",
        ["a"],
        ["b"],
        body,
        attribute_protos=[helper.make_attribute("axis", 0)],
    )
    default = read(model(tmp_path, [call("Double", "x")], [double]))
    assert tensor(default, "y")[0] == (4, 3)
    given = read(model(tmp_path, [call("Double", "x", axis=1)], [double]))
    assert tensor(given, "y")[0] == (2, 6)


def test_attributes_reach_bodies_inside_the_function(tmp_path: Path) -> None:
    """A reference inside an If of the function is bound too."""
    inner = node("Concat", ["a", "a"], ["t"])
    inner.attribute.add(name="axis", ref_attr_name="along", type=2)
    branch = helper.make_graph([inner], "b", [], [value("t", None)])
    choose = node("If", ["c"], ["b"], then_branch=branch, else_branch=branch)
    chosen = function("Chosen", ["a", "c"], ["b"], [choose], attributes=["along"])
    path = save(
        tmp_path,
        [call("Chosen", "x", "c", along=1)],
        [value("x", [2, 3]), value("c", [], BOOL)],
        ["y"],
        functions=[chosen],
        domains={"loc": 1},
    )
    assert tensor(read(path), "y")[0] == (2, 6)


def test_absent_input_is_absent_inside(tmp_path: Path) -> None:
    """A Clip without its upper bound stays without it."""
    clip = function(
        "Cut", ["a", "lo", "hi"], ["b"], [node("Clip", ["a", "lo", "hi"], ["b"])]
    )
    lo = weight("lo", np.float32(0))
    result = read(model(tmp_path, [call("Cut", "x", "lo")], [clip], weights=[lo]))
    assert tensor(result, "y")[0] == (2, 3)
    assert weights_of(result, "cut") == {"lo": 4}


def test_shape_arithmetic_inside_folds(tmp_path: Path) -> None:
    """A function that flattens by its input's Shape has a static output."""
    nodes = [
        node("Size", ["a"], ["n"]),
        node("Constant", [], ["axis"], value_ints=[0]),
        node("Unsqueeze", ["n", "axis"], ["s"]),
        node("Reshape", ["a", "s"], ["b"]),
    ]
    flat = function("Flat", ["a"], ["b"], nodes)
    assert tensor(read(model(tmp_path, [call("Flat", "x")], [flat])), "y")[0] == (6,)


def test_constants_of_a_function_are_stored_once(tmp_path: Path) -> None:
    """Two calls share the constant of the body: one weight with two users."""
    table = helper.make_tensor("t", 1, [2, 3], [1.0] * 6)
    nodes = [node("Constant", [], ["k"], value=table), node("Add", ["a", "k"], ["b"])]
    shift = function("Shift", ["a"], ["b"], nodes)
    calls = [call("Shift", "x", output="m"), call("Shift", "m")]
    graph = read(model(tmp_path, calls, [shift])).graph
    assert graph.weight_name == ("loc::Shift/k",)
    assert list(graph.weight_bytes) == [24]
    assert len(graph.users_of.row(0)) == 2


def test_captured_tensors_do_not_leak_into_functions(tmp_path: Path) -> None:
    """A call reads its inputs and nothing else."""
    neg = function("Minus", ["x"], ["b"], [node("Neg", ["x"], ["b"])])
    nodes = [node("Exp", ["x"], ["e"], "exp"), call("Minus", "e")]
    assert edges(read(model(tmp_path, nodes, [neg]))) == {("exp", "minus")}


def test_each_call_reads_its_own_inputs(tmp_path: Path) -> None:
    """Two calls on the same types are read once, and do not share their inputs."""
    neg = function("Minus", ["a"], ["b"], [node("Neg", ["a"], ["b"])])
    nodes = [
        node("Exp", ["x"], ["e"], "exp"),
        node("Minus", ["e"], ["m"], "first", domain="loc"),
        node("Minus", ["x"], ["n"], "second", domain="loc"),
        node("Add", ["m", "n"], ["y"], "add"),
    ]
    assert edges(read(model(tmp_path, nodes, [neg]))) == {
        ("exp", "first"),
        ("first", "add"),
        ("second", "add"),
    }


def test_endless_calls_are_refused(tmp_path: Path) -> None:
    """A function that calls itself, through another one, is an error."""
    ping = function("Ping", ["a"], ["b"], [call("Pong", "a", output="b")])
    pong = function("Pong", ["a"], ["b"], [call("Ping", "a", output="b")])
    with pytest.raises(InputError, match=r"loc::Ping -> loc::Pong -> loc::Ping call"):
        read(model(tmp_path, [call("Ping", "x")], [ping, pong]))


def test_too_deep_calls_are_refused(tmp_path: Path) -> None:
    """A chain of 100 functions ends in an error, not in a full stack."""
    functions = [
        function(f"F{i}", ["a"], ["b"], [call(f"F{i + 1}", "a", output="b")])
        for i in range(100)
    ]
    functions.append(function("F100", ["a"], ["b"], [node("Neg", ["a"], ["b"])]))
    with pytest.raises(InputError, match="deeper than 64"):
        read(model(tmp_path, [call("F0", "x")], functions))


def test_doubling_calls_are_read_once_each(tmp_path: Path) -> None:
    """Forty functions, each calling the next twice: 2^40 Negs, read at once."""
    functions = [
        function(
            f"F{i}",
            ["a"],
            ["c"],
            [
                call(f"F{i + 1}", "a", output="b"),
                call(f"F{i + 1}", "b", output="c"),
            ],
        )
        for i in range(40)
    ]
    functions.append(function("F40", ["a"], ["c"], [node("Neg", ["a"], ["c"])]))
    result = read(model(tmp_path, [call("F0", "x")], functions))
    assert flops(result, "f0") == 6 * 2**40


def test_unknown_op_inside_counts_against_the_function(tmp_path: Path) -> None:
    """A function of a known and an unknown op is not covered, its work half is."""
    nodes = [node("Neg", ["a"], ["b"]), node("Foo", ["b"], ["c"], domain="my.dom")]
    mixed = function("Mixed", ["a"], ["c"], nodes)
    result = read(model(tmp_path, [call("Mixed", "x")], [mixed]))
    assert result.report.ops_covered == 0.0
    assert result.report.work_covered == 0.5
    assert said(result.graph.assumptions, "my.dom::Foo has no cost rule", "loc::Mixed/")


def test_known_function_output_is_a_constant(tmp_path: Path) -> None:
    """A function that returns only a constant is folded into a weight."""
    nodes = [node("Constant", [], ["b"], value_floats=[1.0, 2.0, 3.0])]
    three = function("Three", [], ["b"], nodes)
    calls = [call("Three", output="k"), node("Add", ["x", "k"], ["y"], "add")]
    result = read(model(tmp_path, calls, [three]))
    assert result.graph.op_name == ("add",)
    assert weights_of(result, "add") == {"k": 12}
