"""Every model of the case library imports, or fails, as its index says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcmpart.errors import InputError
from mcmpart.frontends import import_model

from .models import edges, flops, host, read, said, tensor, weights_of

CASES = Path(__file__).parents[2] / "data" / "cases"


def _index(part: str) -> list[dict[str, Any]]:
    cases = json.loads((CASES / part / "INDEX.json").read_text())["cases"]
    return [case | {"path": CASES / part / case["file"]} for case in cases]


ALL = _index("faults") + _index("real")
# Planning without the data works; no shape at all is an error that names the input.
WORKS_ANYWAY, ALSO_AN_ERROR = {"ext_missing"}, {"no_shapes_at_all"}
OK = [
    c
    for c in ALL
    if (c["expect"] == "ok" or c["id"] in WORKS_ANYWAY) and c["id"] not in ALSO_AN_ERROR
]
ERRORS = [c for c in ALL if c["expect"] == "error" and c["id"] not in WORKS_ANYWAY]


def _path(case: str) -> Path:
    return next(c["path"] for c in ALL if c["id"] == case)


@pytest.mark.parametrize("case", OK, ids=lambda c: c["id"])
def test_case_imports_whole(case: dict[str, Any]) -> None:
    """Every node is an op, folded or dropped with a note, and all costs are known."""
    result = import_model(case["path"])
    graph, report = result.graph, result.report
    assert report.num_nodes == case["nodes"]
    assert len(set(graph.op_name)) == graph.num_ops
    assert "" not in graph.tensor_name
    assert (graph.op_bytes >= 0).all()
    if case["id"] not in {"custom_domain"}:
        assert report.ops_covered == report.work_covered == 1.0
    if not any("dropped" in note or "copied" in note for note in report.notes):
        assert graph.num_ops + report.num_folded == case["nodes"]


@pytest.mark.parametrize("case", OK, ids=lambda c: c["id"])
def test_case_keeps_its_inputs_edges_and_named_weights(case: dict[str, Any]) -> None:
    """Edges and initializers that the index asks for stand in the graph."""
    result = import_model(case["path"])
    checks = case.get("checks", {})
    for pair in checks.get("edge", []):
        assert tuple(pair) in edges(result)
    for name in checks.get("initializer_kept", []):
        assert name in result.graph.weight_name
    for name in case.get("input_shapes", {}):
        assert name in host(result)
    for name in case.get("output_names", []):
        t = result.graph.tensor_name.index(name)
        assert result.graph.tensor_is_output[t]
    for name in case.get("symbolic_dims", []):
        assert (name, 1) in result.report.dims
        assert said(result.graph.assumptions, repr(name), f"--dim {name}=N")


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: c["id"])
def test_case_fails_with_one_sentence(case: dict[str, Any]) -> None:
    """The error is one line and names what the index asks for."""
    with pytest.raises(InputError) as raised:
        import_model(case["path"])
    message = str(raised.value)
    assert "\n" not in message
    for name in case["error_must_name"]:
        assert name in message


def test_cycle_names_both_nodes() -> None:
    """The error of a cycle names the nodes on it."""
    with pytest.raises(InputError, match=r"cycle.*(add_0.*relu_1|relu_1.*add_0)"):
        import_model(_path("graph_cycle"))


def test_twin_writers_are_both_named() -> None:
    """The error of a tensor written twice names both nodes."""
    with pytest.raises(InputError, match=r"'made_twice'.*'relu_0'.*'neg_1'"):
        import_model(_path("ssa_violation"))


def test_newer_ir_gives_both_numbers() -> None:
    """The error of a too new IR version gives it and the newest that is read."""
    with pytest.raises(InputError, match=r"IR version 99.*reads up to \d+"):
        import_model(_path("ir99"))


def test_lfs_pointer_folder_and_cut_file_are_told_apart() -> None:
    """Each broken file is called by what it is."""
    for case, words in (
        ("not_a_protobuf", "Git LFS pointer"),
        ("directory_as_file", "is a folder"),
        ("truncated_protobuf", "truncated"),
    ):
        with pytest.raises(InputError, match=words):
            import_model(_path(case))


def test_input_without_shape_is_named_with_the_remedy() -> None:
    """The error names x, which has no shape; given its sizes, the model imports."""
    with pytest.raises(InputError, match=r"'x' has no shape.*--dim x\.0=N"):
        import_model(_path("no_shapes_at_all"))
    result = import_model(_path("no_shapes_at_all"), dims={"x.0": 2, "x.1": 4})
    assert tensor(result, "x") == ((2, 4), 32)


def test_missing_external_data_is_an_assumption() -> None:
    """Planning needs shapes alone; the file that is gone is named."""
    result = read(_path("ext_missing"))
    assert said(result.graph.assumptions, "gone.bin", "export")
    assert sorted(result.graph.weight_bytes) == [4096, 4096]


def test_if_captures_weight_and_tensor() -> None:
    """The If of the case reads the tensor mid and the weight wcap."""
    result = read(_path("cf_if_capture"))
    assert weights_of(result, "if_1") == {"wcap": 24}
    assert ("relu_0", "if_1") in edges(result)


def test_body_weights_count_once() -> None:
    """Weights inside If branches are weights of the If, each of its own bytes."""
    result = read(_path("cf_body_initializers"))
    graph = result.graph
    owner = next(
        n for n, k in zip(graph.op_name, graph.op_kind, strict=True) if k == "If"
    )
    names = weights_of(result, owner)
    assert all(name.startswith(owner + "/") for name in names)
    assert len(names) >= 2
    assert len(set(graph.weight_name)) == graph.num_weights


def test_tied_weight_is_one_weight_with_two_users() -> None:
    """The tied w is stored once, and its users have no edge for it."""
    graph = read(_path("tied_both_ends")).graph
    assert graph.weight_name == ("w",)
    assert [graph.op_kind[i] for i in graph.users_of.row(0)] == ["MatMul", "MatMul"]
    assert graph.num_edges == graph.num_ops - 1


def test_transposed_embedding_makes_no_edge() -> None:
    """The Transpose of a weight is folded: the head does not hang on the front."""
    result = read(_path("tied_embedding_transpose"))
    assert "Transpose" not in result.graph.op_kind


def test_constant_chain_follows_its_readers() -> None:
    """Nine nodes of which five are constants leave four ops."""
    result = read(_path("constant_nodes_chain"))
    assert (result.graph.num_ops, result.report.num_folded) == (4, 5)


def test_shape_arithmetic_folds_for_any_batch() -> None:
    """Shape -> Gather -> Concat -> Reshape folds, and follows --dim."""
    for batch in (1, 3):
        result = read(_path("shape_arith_reshape"), batch=batch)
        assert "Shape" not in result.graph.op_kind
        assert result.report.num_folded == 6
        shape, _ = tensor(result, "y")
        assert shape is not None
        assert shape[0] == batch


def test_dead_ops_are_dropped_by_name() -> None:
    """The two dead ops of the case are named."""
    result = read(_path("dead_node"))
    assert result.graph.num_ops == 2
    assert said(result.report.notes, "2 dead ops", "exp_1", "matmul_2")


def test_unsorted_nodes_are_sorted_with_a_note() -> None:
    """The file's order is wrong, the graph's is not."""
    result = read(_path("unsorted_nodes"))
    assert said(result.report.notes, "sorted")
    assert all(u < v for u in range(4) for v in result.graph.successors.row(u))


def test_data_dependent_size_has_an_upper_bound() -> None:
    """NonZero of 12 elements in 2 axes: at most 2 x 12 int64, 192 bytes."""
    result = read(_path("nonzero_data_dependent"))
    assert tensor(result, "nz") == ((2, 12), 192)
    assert said(result.graph.assumptions, "NonZero", "nz [2, 12]")


def test_zero_size_and_zero_ops() -> None:
    """A tensor of no elements has 0 bytes; a model without nodes says so."""
    graph = read(_path("dim_zero")).graph
    sizes = [
        b for s, b in zip(graph.tensor_shape, graph.tensor_bytes, strict=True) if 0 in s
    ]
    assert sizes
    assert not any(sizes)
    result = read(_path("no_nodes_output_is_input"))
    assert result.graph.num_ops == 0
    assert result.graph.tensor_is_output.all()
    assert said(result.report.lines(), "no ops")


def test_unknown_op_is_counted_and_named() -> None:
    """my.dom::Foo: assumed shape and cost, named with the flag; 3 of 5 ops covered."""
    result = read(_path("custom_domain"))
    assert said(result.graph.assumptions, "my.dom::Foo", "no shape rule")
    assert said(result.graph.assumptions, "no cost rule", "--op-cost my.dom::Foo=FLOPS")
    assert result.report.ops_covered == 0.6
    assert result.report.unruled[0].num_ops == 2
    assert (result.graph.op_bytes > 0).all()


def test_fused_attention_costs_its_products() -> None:
    """com.microsoft Attention is not free, and every op has a rule."""
    result = read(_path("com_microsoft_fused"))
    graph = result.graph
    attention = graph.op_kind.index("com.microsoft::Attention")
    assert graph.op_flops[attention] == graph.op_flops.max()
    assert not result.graph.assumptions


def test_functions_cost_their_bodies() -> None:
    """A function of two ops on 4 x 3 elements costs both, also two levels down."""
    result = read(_path("function_both_sides"))
    graph = result.graph
    twice = [
        n for n, k in zip(graph.op_name, graph.op_kind, strict=True) if "loc::" in k
    ]
    assert len(twice) == 2
    assert all(flops(result, name) > 0 for name in twice)
    outer = read(_path("function_calls_function"))
    assert said(outer.graph.op_kind, "loc::Outer")
    assert outer.report.ops_covered == 1.0


def test_data_movement_is_not_free() -> None:
    """Transposes cost bytes though no FLOPs."""
    graph = read(_path("only_data_movement")).graph
    assert graph.op_flops.sum() == 0
    assert graph.op_bytes.sum() > 0


def test_gather_touches_rows_and_stores_the_table() -> None:
    """Bytes touched by the Gathers are far below the bytes of their tables."""
    graph = read(_path("gather_big_table")).graph
    gathers = [i for i, k in enumerate(graph.op_kind) if k == "Gather"]
    assert graph.op_flops[gathers].sum() == 0
    assert graph.op_bytes[gathers].sum() < graph.weight_bytes.sum() // 10


def test_int4_weights_are_packed() -> None:
    """40 int4 elements take 20 bytes."""
    graph = read(_path("int4_weights")).graph
    packed = graph.weight_dtype.index("int4")
    assert graph.weight_bytes[packed] == 20


def test_string_bytes_are_an_assumption() -> None:
    """Strings are counted as 8-byte references, which is said."""
    result = read(_path("string_tensors"))
    assert said(result.graph.assumptions, "string", "8-byte")


def test_training_dropout_is_named() -> None:
    """A Dropout that drops is reported as random."""
    assert said(read(_path("dropout_training_mode")).report.notes, "Dropout", "random")


def test_initializers_listed_as_inputs_are_weights() -> None:
    """IR 3 lists weights as inputs: only the real input comes from the host."""
    result = read(_path("ir3_init_is_input"))
    assert len(host(result)) == 1
    assert result.graph.num_weights == 7
    assert not result.graph.assumptions


def test_quantised_cut_carries_one_byte() -> None:
    """DequantizeLinear of an activation shares a chip with its one reader."""
    result = read(_path("qdq_groups"))
    graph = result.graph
    groups = {frozenset(graph.op_name[op] for op in group) for group in graph.together}
    assert groups == {
        frozenset({"dequantizelinear_1", "matmul_3", "quantizelinear_4"}),
        frozenset({"dequantizelinear_5", "relu_6", "quantizelinear_7"}),
        frozenset({"dequantizelinear_5#2", "add_11"}),
        frozenset({"dequantizelinear_8", "matmul_10"}),
    }
    assert tensor(result, "aq")[1] * 4 == tensor(result, "ad")[1]
    assert said(result.report.notes, "DequantizeLinear copied", "dequantizelinear_5")


def test_ops_between_quantised_tensors_compute_in_eight_bits() -> None:
    """MatMul and Relu on dequantised operands are int8, the last Add is not all so."""
    graph = read(_path("qdq_groups")).graph
    dtype = dict(zip(graph.op_name, graph.op_dtype, strict=True))
    assert (dtype["matmul_3"], dtype["relu_6"]) == ("int8", "int8")
    assert (dtype["add_11"], dtype["quantizelinear_4"]) == ("fp32", "fp32")
    assert said(graph.assumptions, "compute in int8", "3 ops")


def test_optional_inputs_and_outputs_have_no_name() -> None:
    """Absent inputs and outputs leave no tensor behind, and LSTM keeps its Y_h."""
    graph = read(_path("optional_empty_inputs")).graph
    lstm = graph.op_kind.index("LSTM")
    assert len(graph.writes.row(lstm)) == 1


def test_twin_names_become_unique() -> None:
    """Three nodes called n get three keys, the first keeps its name."""
    assert read(_path("duplicate_node_names")).graph.op_name == ("n", "n_1", "n_2")
