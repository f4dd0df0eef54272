"""Ops that move no byte: a view, a header, or a wrapper of whole tensors."""

from __future__ import annotations

from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import all_bytes, int_constant, out_size
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

FREE = OpCost(0, 0)

# One draw, one comparison and one scaling for each element.
_DROPOUT_TRAINING_FLOPS = 10


def _free(op: OpView) -> OpCost:
    """Return zero: the output shares the input's memory or lives in its header."""
    del op
    return FREE


def _dropout(op: OpView) -> OpCost:
    """Return zero at inference; one draw per element where training is asked for."""
    if int_constant(op, 2, 0):
        return OpCost(_DROPOUT_TRAINING_FLOPS * out_size(op), all_bytes(op))
    return FREE


RULES: Mapping[str, CostRule] = {
    "BitCast": _free,
    "Constant": _free,
    "Dropout": _dropout,
    "Expand": _free,
    "Flatten": _free,
    "Identity": _free,
    "Optional": _free,
    "OptionalGetElement": _free,
    "OptionalHasElement": _free,
    "Reshape": _free,
    "SequenceAt": _free,
    "SequenceConstruct": _free,
    "SequenceEmpty": _free,
    "SequenceErase": _free,
    "SequenceInsert": _free,
    "SequenceLength": _free,
    "Shape": _free,
    "Size": _free,
    "Squeeze": _free,
    "Unsqueeze": _free,
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "BitmaskDropout": _dropout,
    "ExpandDims": _free,
}
"""Rules of com.microsoft."""
