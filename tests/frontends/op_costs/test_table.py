import numpy as np
import onnx
import pytest

from mcmpart.frontends.op_costs import (
    OpView,
    TensorType,
    cost_of,
    has_rule,
    infer_outputs,
    is_random,
    rule_names,
)
from mcmpart.frontends.op_costs.views import MICROSOFT_RULES, RULES

from .op_views import MS, fp32, op

CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap", "Gradient"}
ODD_TENSORS = {
    "absent": None,
    "rank_0": TensorType("fp32", ()),
    "rank_1": TensorType("int64", (3,)),
    "empty_rank_1": TensorType("uint8", (0,)),
    "empty_rank_4": TensorType("fp16", (2, 0, 3, 0)),
    "no_batch": TensorType("fp32", (0, 4, 4, 4)),
    "rank_2": TensorType("fp32", (2, 3)),
    "rank_5": TensorType("int4", (1, 2, 3, 1, 2)),
}
ATTRIBUTES = {
    "bare": {},
    "zeros": dict.fromkeys(
        ("num_heads", "kv_num_heads", "q_num_heads", "group", "k", "N", "K", "bits"), 0
    ),
    "text": dict.fromkeys(("axis", "num_heads", "kernel_shape", "equation"), "ij,jk"),
    "short": {
        "kernel_shape": (3,),
        "strides": (0,),
        "pads": (),
        "qkv_hidden_sizes": (4,),
        "axis": 9,
        "axes": (7,),
    },
}


def _split(name: str) -> tuple[str, str]:
    domain, _, kind = name.rpartition("::")
    return domain, kind


def test_every_onnx_op_but_control_flow_has_a_rule():
    """Onnx's own list of schemas, all versions and domains, is covered."""
    missing = {
        (schema.domain, schema.name)
        for schema in onnx.defs.get_all_schemas_with_history()
        if not has_rule(schema.domain, schema.name)
    }
    assert {kind for _, kind in missing} <= CONTROL_FLOW


def test_control_flow_has_no_rule():
    """The importer costs the bodies of If, Loop, Scan and SequenceMap."""
    assert cost_of(op("If", [fp32()], [fp32()])) is None
    assert not any(has_rule("", kind) for kind in CONTROL_FLOW)


def test_the_domain_is_part_of_the_key():
    """Gelu has a rule in two domains and none in a third."""
    assert has_rule("", "Gelu")
    assert has_rule("ai.onnx", "Gelu")
    assert has_rule(MS, "Gelu")
    assert not has_rule("my.dom", "Gelu")
    assert cost_of(op("Gelu", [fp32(3)], [fp32(3)], "my.dom")) is None


def test_rule_names_are_sorted_and_qualified():
    """Kinds outside the default domain carry it."""
    names = rule_names()
    assert names == sorted(set(names))
    assert "MatMul" in names
    assert "com.microsoft::FusedMatMul" in names
    assert all(has_rule(*_split(name)) for name in names)


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
@pytest.mark.parametrize("tensor", ODD_TENSORS.values(), ids=ODD_TENSORS)
def test_no_rule_breaks_on_odd_tensors(tensor, attributes):
    """Each rule answers whole numbers >= 0, with 0 to 20 inputs of any odd shape."""
    for name in rule_names():
        for count in (0, 1, 3, 20):
            view = OpView(
                *_split(name),
                21,
                attributes,
                (tensor,) * count,
                (tensor,) * (count and 2),
                (None,) * count,
            )
            cost = cost_of(view)
            assert cost is not None, name
            numbers = (cost.flops, cost.bytes, *(cost.gemm or ()))
            assert all(type(n) is int and n >= 0 for n in numbers), (name, cost)
            types = infer_outputs(view)
            assert types is None or len(types) == len(view.outputs), name


def test_no_rule_breaks_on_known_values():
    """A constant of any shape and dtype in every input is taken or left."""
    for value in (np.zeros(0, np.int64), np.array(-3), np.ones((2, 2), np.float32)):
        for name in rule_names():
            view = OpView(
                *_split(name),
                21,
                {},
                (fp32(2, 3, 4),) * 9,
                (fp32(2, 3, 4),) * 3,
                (value,) * 9,
            )
            cost = cost_of(view)
            assert min(cost.flops, cost.bytes) >= 0, name
            infer_outputs(view)


def test_only_views_cost_nothing():
    """With ordinary tensors every rule but a view's moves bytes."""
    views = {*RULES, *(f"{MS}::{kind}" for kind in MICROSOFT_RULES)}
    for name in rule_names():
        view = op(_split(name)[1], [fp32(2, 3)] * 3, [fp32(2, 3)], _split(name)[0])
        assert (cost_of(view).bytes == 0) == (name in views), name


def test_random_ops_are_named():
    """A draw is random; Dropout's mode is read elsewhere."""
    assert is_random("", "RandomNormalLike")
    assert is_random("ai.onnx", "Bernoulli")
    assert not is_random("", "Dropout")
    assert not is_random("my.dom", "RandomNormal")
