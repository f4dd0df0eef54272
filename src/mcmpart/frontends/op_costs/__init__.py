"""FLOP and byte rules of ops, by domain and kind."""

from mcmpart.frontends.op_costs.microsoft_shapes import infer_outputs
from mcmpart.frontends.op_costs.table import (
    cost_of,
    has_rule,
    is_random,
    rule_names,
)
from mcmpart.frontends.op_costs.types import (
    Attribute,
    CostRule,
    OpCost,
    OpView,
    TensorType,
)

__all__ = [
    "Attribute",
    "CostRule",
    "OpCost",
    "OpView",
    "TensorType",
    "cost_of",
    "has_rule",
    "infer_outputs",
    "is_random",
    "rule_names",
]
