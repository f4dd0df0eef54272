"""Ops that treat each output element alike: one table of FLOPs for each element."""

from __future__ import annotations

from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    in_size,
    out_bytes,
    out_size,
    per_output,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# One vector instruction: add, multiply, compare, select, divide, root, round.
_ONE = 1
# A transcendental: range reduction and a short polynomial, two multiply-adds.
TRANSCENDENTAL = 4
# 1 / (1 + exp(-x)).
SIGMOID = TRANSCENDENTAL + 2
# (e - 1) / (e + 1) with e = exp(2 x).
TANH = TRANSCENDENTAL + 4
# x / 2 * (1 + erf(x / sqrt 2)); the tanh form costs the same to a few FLOPs.
GELU = TRANSCENDENTAL + 4
# max, subtract, exp, sum, divide.
SOFTMAX = TRANSCENDENTAL + 4
# A counter-based generator: some rounds of multiply and exclusive-or.
_DRAW = 8

FLOPS_PER_ELEMENT: Mapping[str, int] = {
    "Abs": _ONE,
    "Acos": TRANSCENDENTAL,
    "Acosh": TRANSCENDENTAL,
    "Add": _ONE,
    "And": _ONE,
    "Asin": TRANSCENDENTAL,
    "Asinh": TRANSCENDENTAL,
    "Atan": TRANSCENDENTAL,
    "Atanh": TRANSCENDENTAL,
    "BitShift": _ONE,
    "BitwiseAnd": _ONE,
    "BitwiseNot": _ONE,
    "BitwiseOr": _ONE,
    "BitwiseXor": _ONE,
    "Ceil": _ONE,
    "Celu": TRANSCENDENTAL + 4,  # exp, divide, subtract, scale, select
    "Clip": 2,  # one comparison with each bound
    "Cos": TRANSCENDENTAL,
    "Cosh": TRANSCENDENTAL + 3,  # exp, reciprocal, add, halve
    "CumProd": _ONE,
    "CumSum": _ONE,
    "DequantizeLinear": 2,  # subtract the zero point, multiply by the scale
    "Div": _ONE,
    "DynamicQuantizeLinear": 6,  # min, max, then as QuantizeLinear
    "Elu": TRANSCENDENTAL + 3,  # exp, subtract, scale, select
    "Equal": _ONE,
    "Erf": TRANSCENDENTAL,
    "Exp": TRANSCENDENTAL,
    "Floor": _ONE,
    "Gelu": GELU,
    "Greater": _ONE,
    "GreaterOrEqual": _ONE,
    "HardSigmoid": 4,  # multiply, add, two bounds
    "HardSwish": 5,  # HardSigmoid and a multiply
    "IsInf": _ONE,
    "IsNaN": _ONE,
    "LeakyRelu": 2,  # multiply, select
    "Less": _ONE,
    "LessOrEqual": _ONE,
    "Log": TRANSCENDENTAL,
    "Mish": 2 * TRANSCENDENTAL + TANH + 2,  # x * tanh(log(1 + exp(x)))
    "Mod": 3,  # divide, multiply, subtract
    "Mul": _ONE,
    "Neg": _ONE,
    "Not": _ONE,
    "Or": _ONE,
    "PRelu": 2,  # multiply, select
    "Pow": 2 * TRANSCENDENTAL,  # exp of y times log
    "QuantizeLinear": 4,  # divide, round, add the zero point, saturate
    "Reciprocal": _ONE,
    "Relu": _ONE,
    "Round": _ONE,
    "Selu": TRANSCENDENTAL + 4,  # Elu and a scale
    "Shrink": 3,  # two comparisons, one add
    "Sigmoid": SIGMOID,
    "Sign": _ONE,
    "Sin": TRANSCENDENTAL,
    "Sinh": TRANSCENDENTAL + 3,  # exp, reciprocal, subtract, halve
    "Softplus": 2 * TRANSCENDENTAL + 1,  # log(1 + exp(x))
    "Softsign": 3,  # absolute value, add, divide
    "Sqrt": _ONE,
    "Sub": _ONE,
    "SwiGLU": SIGMOID + 2,  # swish of the gate times the value
    "Swish": SIGMOID + 2,  # x * sigmoid(alpha x)
    "Tan": TRANSCENDENTAL,
    "Tanh": TANH,
    "ThresholdedRelu": 2,  # compare, select
    "Where": _ONE,
    "Xor": _ONE,
    # Windows: one cosine or two, scaled.
    "BlackmanWindow": 2 * TRANSCENDENTAL + 4,
    "HammingWindow": TRANSCENDENTAL + 3,
    "HannWindow": TRANSCENDENTAL + 3,
    "MelWeightMatrix": 6,  # two slopes and their minimum
    # Draws.
    "Bernoulli": _DRAW + 1,
    "RandomNormal": _DRAW + 2 * TRANSCENDENTAL + 3,  # Box and Muller, 1958
    "RandomUniform": _DRAW + 2,
}
"""FLOPs of each output element, by kind of the default domain."""

MICROSOFT_FLOPS_PER_ELEMENT: Mapping[str, int] = {
    "BiasAdd": 2,  # bias and skip
    "BiasDropout": 2,  # bias and residual; inference draws nothing
    "BiasGelu": GELU + 1,
    "BiasSplitGelu": GELU + 2,  # bias, gelu of one half, times the other
    "BitmaskBiasDropout": 2,
    "ComplexMul": 3,  # 6 FLOPs for each pair of real numbers
    "ComplexMulConj": 3,
    "DequantizeBFP": 1,
    "DequantizeLinear": 2,
    "FastGelu": GELU + 1,
    "GatedAdd": SIGMOID + 3,
    "Gelu": GELU,
    "LinearAttentionGate": 2 * TRANSCENDENTAL + 3,
    "MulInteger": 3,  # two zero points, one multiply
    "MurmurHash3": 16,  # two rounds and the final mix of 32-bit multiplies
    "QLinearAdd": 9,  # two dequantisations, the add, one quantisation
    "QLinearConcat": 6,  # one dequantisation and one quantisation
    "QLinearLeakyRelu": 8,
    "QLinearMul": 9,
    "QLinearSigmoid": SIGMOID + 6,
    "QLinearWhere": 7,
    "QOrderedGelu": GELU + 6,
    "QuantizeBFP": 3,
    "QuantizeLinear": 4,
    "QuickGelu": SIGMOID + 2,  # x * sigmoid(alpha x)
    "SampleOp": 1,
    "ScaledSiLU": SIGMOID + 3,
    "SwiGLU": SIGMOID + 2,
}
"""FLOPs of each output element, by kind of com.microsoft."""

_UPDATE_FLOPS: Mapping[str, int] = {
    "Adagrad": 7,  # decay, square, accumulate, root, add, divide, subtract
    "Adam": 14,  # two moments, two corrections, root, divide, subtract
    "Momentum": 6,  # decay, velocity, step
}


def _variadic(op: OpView) -> OpCost:
    """Combine the inputs one by one: (number of inputs - 1) FLOPs for each element."""
    given = sum(tensor is not None for tensor in op.inputs)
    return OpCost(max(given - 1, 0) * out_size(op), all_bytes(op))


def _mean(op: OpView) -> OpCost:
    """Sum the inputs and divide."""
    given = sum(tensor is not None for tensor in op.inputs)
    return OpCost(max(given, 1) * out_size(op), all_bytes(op))


def _like(kind: str) -> CostRule:
    """Return the rule of a draw that reads its input's shape only."""

    def rule(op: OpView) -> OpCost:
        return OpCost(FLOPS_PER_ELEMENT[kind] * out_size(op), out_bytes(op))

    return rule


def _multinomial(op: OpView) -> OpCost:
    """Exponentiate and add up the classes once; search them for each sample."""
    classes = in_size(op, 0)
    searched = out_size(op) * (_DRAW + max(classes.bit_length(), 1))
    return OpCost((TRANSCENDENTAL + 1) * classes + searched, all_bytes(op))


def _update(flops: int) -> CostRule:
    """Return the rule of an optimiser step: FLOPs for each element of the outputs."""

    def rule(op: OpView) -> OpCost:
        size = sum(t.size for t in op.outputs if t is not None)
        return OpCost(flops * size, all_bytes(op))

    return rule


RULES: Mapping[str, CostRule] = {
    **{kind: per_output(flops) for kind, flops in FLOPS_PER_ELEMENT.items()},
    "Max": _variadic,
    "Mean": _mean,
    "Min": _variadic,
    "Multinomial": _multinomial,
    "RandomNormalLike": _like("RandomNormal"),
    "RandomUniformLike": _like("RandomUniform"),
    "Sum": _variadic,
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    kind: per_output(flops) for kind, flops in MICROSOFT_FLOPS_PER_ELEMENT.items()
}
"""Rules of com.microsoft."""

TRAINING_RULES: Mapping[str, CostRule] = {
    kind: _update(flops) for kind, flops in _UPDATE_FLOPS.items()
}
"""Rules of ai.onnx.preview.training."""
