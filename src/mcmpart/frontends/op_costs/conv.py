"""Convolutions, as the matrix product their im2col form is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.elementwise import SIGMOID
from mcmpart.frontends.op_costs.matmul import product_cost
from mcmpart.frontends.op_costs.reading import (
    dim,
    in_shape,
    in_size,
    out_size,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# Two linear steps along each of two axes, with their weights (bilinear sampling).
_BILINEAR_FLOPS = 8


def _conv_at(
    weight: int, bias: int | None = None, *, flops_per_output: int = 0
) -> CostRule:
    """Return the rule of a convolution with the weight at a position.

    m = batch x output positions, n = output channels, k = input channels of one group
    x kernel taps, so 2 m n k counts a grouped convolution right. The weight has its
    output channels first in every layout, [M, C / group, taps...] and [M, taps..., C].
    """

    def rule(op: OpView) -> OpCost:
        kernel = in_shape(op, weight)
        channels, depth = dim(kernel, 0), math.prod(kernel[1:])
        rows = out_size(op) // channels if channels else 0
        biased = bias is not None and in_size(op, bias) > 0
        flops = (flops_per_output + biased) * out_size(op)
        return product_cost(op, (rows, channels, depth), extra_flops=flops)

    return rule


def _conv_transpose_at(weight: int, bias: int) -> CostRule:
    """Return the rule of a transposed convolution: each input element is spread.

    m = batch x input positions, n = output channels of one group x taps, k = input
    channels.
    """

    def rule(op: OpView) -> OpCost:
        kernel = in_shape(op, weight)
        channels, columns = dim(kernel, 0), math.prod(kernel[1:])
        rows = in_size(op, 0) // channels if channels else 0
        flops = out_size(op) if in_size(op, bias) else 0
        return product_cost(op, (rows, columns, channels), extra_flops=flops)

    return rule


def _deform_conv(op: OpView) -> OpCost:
    """Sample each tap bilinearly (and scale it by its mask), then convolve."""
    kernel = in_shape(op, 1)
    channels, taps = dim(kernel, 0), math.prod(kernel[2:])
    rows = out_size(op) // channels if channels else 0
    samples = rows * dim(in_shape(op, 0), 1) * taps
    per_sample = _BILINEAR_FLOPS + (in_size(op, 4) > 0)
    bias = out_size(op) if in_size(op, 3) else 0
    gemm = (rows, channels, math.prod(kernel[1:]))
    return product_cost(op, gemm, extra_flops=samples * per_sample + bias)


def _causal_conv(op: OpView) -> OpCost:
    """Convolve each channel by itself over time: k taps for each output."""
    taps = dim(in_shape(op, 1), -1)
    activates = text_attribute(op, "activation", "none") not in ("", "none")
    flops = (1 if in_size(op, 2) else 0) + (SIGMOID + 1 if activates else 0)
    gemm = (out_size(op), 1, taps)
    return product_cost(op, gemm, extra_flops=flops * out_size(op))


def _word_conv(op: OpView) -> OpCost:
    """Embed the characters of each word and convolve them over its length."""
    weight = in_shape(op, 1)
    words = math.prod(in_shape(op, 0)[:-1])
    length, window = dim(in_shape(op, 0), -1), dim(weight, 2)
    rows = words * max(length - window + 1, 1)
    depth = dim(weight, 1) * window * dim(weight, 3)
    gemm = (rows, dim(weight, 0), depth)
    # Bias, tanh and the running maximum of each product.
    return product_cost(op, gemm, extra_flops=10 * rows * gemm[1])


RULES: Mapping[str, CostRule] = {
    "CausalConvWithState": _causal_conv,
    "Conv": _conv_at(1, 2),
    "ConvInteger": _conv_at(1),
    "ConvTranspose": _conv_transpose_at(1, 2),
    "DeformConv": _deform_conv,
    # Multiplier, rounding, zero point and saturation of each output.
    "QLinearConv": _conv_at(3, 8, flops_per_output=4),
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "CausalConvWithState": _causal_conv,
    "ConvTransposeWithDynamicPads": _conv_transpose_at(1, 3),
    "FusedConv": _conv_at(1, 2, flops_per_output=1),
    "NhwcConv": _conv_at(1, 2),
    "NhwcFusedConv": _conv_at(1, 2, flops_per_output=1),
    "QLinearConv": _conv_at(3, 8, flops_per_output=4),
    "VarlenCausalConvWithState": _causal_conv,
    "WordConvEmbedding": _word_conv,
}
"""Rules of com.microsoft."""

NCHWC_RULES: Mapping[str, CostRule] = {"Conv": _conv_at(1, 2, flops_per_output=1)}
"""Rules of com.microsoft.nchwc, the layout onnxruntime writes for CPUs."""
