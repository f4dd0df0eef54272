"""Ops that have no rule: assumed and named, costed by the user, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import helper

from mcmpart.errors import InputError
from mcmpart.frontends import import_model

from .models import edges, flops, read, said, save, tensor, value

node = helper.make_node


def foo_model(folder: Path, **extra: object) -> Path:
    """Return Relu -> Foo -> Relu -> Foo on 2 x 3 elements."""
    nodes = [
        node("Relu", ["x"], ["a"], "r0"),
        node("Foo", ["a"], ["b"], "f0", domain="my.dom"),
        node("Relu", ["b"], ["c"], "r1"),
        node("Foo", ["c"], ["y"], "f1", domain="my.dom"),
    ]
    more = {"domains": {"my.dom": 1}} | extra
    return save(folder, nodes, [value("x", [2, 3])], ["y"], **more)  # type: ignore[arg-type]


def test_unknown_op_is_assumed_and_shown(tmp_path: Path) -> None:
    """Foo takes its input's shape, one FLOP an element, its bytes in and out."""
    result = read(foo_model(tmp_path))
    assert tensor(result, "b") == ((2, 3), 24)
    assert flops(result, "f0") == 6
    assert result.graph.op_bytes[1] == 48
    assert said(result.graph.assumptions, "no shape rule", "first input: b, y")
    assert said(result.graph.assumptions, "--op-cost my.dom::Foo=FLOPS (ops: f0, f1)")
    assert said(result.report.lines(), "50 % of ops", "have a cost rule")
    assert said(result.report.lines(), "my.dom::Foo, 2 ops: f0, f1")


def test_op_cost_is_the_users_word(tmp_path: Path) -> None:
    """--op-cost my.dom::Foo=1000 costs each Foo, which then counts as covered."""
    result = import_model(foo_model(tmp_path), op_costs={"my.dom::Foo": 1000})
    assert flops(result, "f0") == flops(result, "f1") == 1000
    assert result.report.ops_covered == result.report.work_covered == 1.0
    assert not said(result.graph.assumptions, "no cost rule")


@pytest.mark.parametrize("name", ["Relu", "ai.onnx::Relu", "::Relu"])
def test_op_cost_overrides_a_rule(tmp_path: Path, name: str) -> None:
    """The default domain may be written out or left out."""
    result = import_model(foo_model(tmp_path), op_costs={name: 7})
    assert flops(result, "r0") == 7


def test_op_cost_of_no_op_names_the_nearest(tmp_path: Path) -> None:
    """A misspelt kind is answered with the one that was meant."""
    with pytest.raises(InputError, match=r"did you mean my\.dom::Foo"):
        import_model(foo_model(tmp_path), op_costs={"my.dom::Fooo": 1})
    with pytest.raises(InputError, match="0 or more FLOPs"):
        import_model(foo_model(tmp_path), op_costs={"my.dom::Foo": -1})


def test_strict_gathers_every_unknown_kind(tmp_path: Path) -> None:
    """One error names each kind with its count, its first ops and the flag."""
    path = foo_model(tmp_path)
    with pytest.raises(InputError) as raised:
        import_model(path, strict=True)
    message = str(raised.value)
    assert "my.dom::Foo (2 ops: f0, f1) has no cost rule" in message
    assert "--op-cost my.dom::Foo=FLOPS" in message
    assert "my.dom::Foo (2 ops: f0, f1) has no shape rule" in message


def test_strict_passes_with_costs_and_shapes(tmp_path: Path) -> None:
    """With its cost given and its shapes in the file, Foo is no guess."""
    path = foo_model(tmp_path, stated=[value("b", [2, 3]), value("y", [2, 3])])
    result = import_model(path, strict=True, op_costs={"my.dom::Foo": 5})
    assert not result.graph.assumptions


def test_value_info_gives_an_unknown_ops_shape(tmp_path: Path) -> None:
    """What the file says of Foo's output goes before the guess."""
    path = foo_model(tmp_path, stated=[value("b", [5]), value("y", [7])])
    result = read(path)
    assert tensor(result, "b") == ((5,), 20)
    assert tensor(result, "y") == ((7,), 28)
    assert not said(result.graph.assumptions, "shape rule")


def test_unknown_op_without_inputs_has_no_shape(tmp_path: Path) -> None:
    """There is nothing to take its shape from: an error, and --dim answers it."""
    nodes = [
        node("Source", [], ["s"], "src", domain="my.dom"),
        node("Relu", ["s"], ["y"]),
    ]
    path = save(
        tmp_path, nodes, [], ["y"], domains={"my.dom": 1}, stated=[value("s", None)]
    )
    with pytest.raises(InputError, match=r"'s' of 'src'.*no shape rule"):
        read(path)
    assert tensor(import_model(path, dims={"s.0": 4}), "y") == ((4,), 16)


def test_wrong_guess_is_explained(tmp_path: Path) -> None:
    """Where an assumed shape does not fit the next op, the error says it is assumed."""
    nodes = [
        node("Foo", ["x"], ["a"], domain="my.dom"),
        node("MatMul", ["a", "x"], ["y"], "mm"),
    ]
    path = save(tmp_path, nodes, [value("x", [2, 3])], ["y"], domains={"my.dom": 1})
    with pytest.raises(InputError, match=r"'mm'.*behind my\.dom::Foo are assumed"):
        read(path)


def test_one_kind_in_two_domains_is_two_kinds(tmp_path: Path) -> None:
    """Gelu of ONNX and Gelu of com.microsoft are told apart."""
    nodes = [
        node("Gelu", ["x"], ["a"]),
        node("Gelu", ["a"], ["y"], domain="com.microsoft"),
    ]
    path = save(
        tmp_path, nodes, [value("x", [2, 3])], ["y"], opset=20,
        domains={"com.microsoft": 1},
    )  # fmt: skip
    result = read(path)
    assert result.graph.op_kind == ("Gelu", "com.microsoft::Gelu")
    assert tensor(result, "y") == ((2, 3), 24)
    assert result.report.ops_covered == 1.0


def test_domain_that_is_not_imported_is_an_assumption(tmp_path: Path) -> None:
    """A domain without an import is taken as version 1."""
    result = read(foo_model(tmp_path, domains={}))
    assert said(result.graph.assumptions, "does not import", "my.dom")
    assert edges(result) == {("r0", "f0"), ("f0", "r1"), ("r1", "f1")}


def test_machine_learning_ops_have_types(tmp_path: Path) -> None:
    """A ZipMap makes a map: bytes of its values, which is said."""
    zipped = node(
        "ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]
    )
    path = save(
        tmp_path, [zipped], [value("x", [2, 3])], ["y"], domains={"ai.onnx.ml": 3}
    )
    result = read(path)
    assert tensor(result, "y")[1] == 24
    assert said(result.graph.assumptions, "map", "y")


def test_ops_that_keep_a_shape_are_no_guess(tmp_path: Path) -> None:
    """MeanVarianceNormalization has no shape in its schema, and keeps its input's."""
    nodes = [node("MeanVarianceNormalization", ["x"], ["y"])]
    result = read(save(tmp_path, nodes, [value("x", [1, 2, 3, 4])], ["y"]))
    assert tensor(result, "y") == ((1, 2, 3, 4), 96)
    assert not result.graph.assumptions
