"""LSTM, GRU and RNN: the input and recurrent products, and the gates."""

from __future__ import annotations

from collections.abc import Mapping

from mcmpart.frontends.op_costs.elementwise import SIGMOID, TANH
from mcmpart.frontends.op_costs.matmul import product_cost
from mcmpart.frontends.op_costs.reading import (
    dim,
    in_shape,
    in_size,
    int_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView


def _recurrent(
    gates: int, flops_per_unit: int, *, weights_are_transposed: bool = False
) -> CostRule:
    """Return the rule of a cell: one [gates x H, I + H] product for each time step.

    The weights count once in the bytes: a chip keeps them while it runs the sequence.
    """

    def rule(op: OpView) -> OpCost:
        data = in_shape(op, 0)
        steps = dim(data, 0) * dim(data, 1)  # time x batch, in either layout
        directions = dim(in_shape(op, 1), 0)
        hidden = int_attribute(op, "hidden_size", 0)
        if not hidden:
            hidden = dim(in_shape(op, 2), 1 if weights_are_transposed else 2)
        gemm = (directions * steps, gates * hidden, dim(data, 2) + hidden)
        # W and R each have a bias; three peepholes are a multiply-add each.
        per_unit = flops_per_unit + (2 * gates if in_size(op, 3) else 0)
        per_unit += 6 if gates == 4 and in_size(op, 7) else 0
        units = directions * steps * hidden
        return product_cost(op, gemm, extra_flops=units * per_unit)

    return rule


# Three sigmoids, two tanh, and c = f c + i g, h = o tanh(c).
_LSTM_UNIT = 3 * SIGMOID + 2 * TANH + 4
# Two sigmoids, one tanh, the reset product and h = (1 - z) n + z h.
_GRU_UNIT = 2 * SIGMOID + TANH + 5

RULES: Mapping[str, CostRule] = {
    "GRU": _recurrent(3, _GRU_UNIT),
    "LSTM": _recurrent(4, _LSTM_UNIT),
    "RNN": _recurrent(1, TANH),
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "DynamicQuantizeLSTM": _recurrent(4, _LSTM_UNIT, weights_are_transposed=True),
}
"""Rules of com.microsoft: DynamicQuantizeLSTM stores W as [D, I, 4 H]."""
