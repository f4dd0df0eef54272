"""Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_shape,
    in_size,
    int_attribute,
    int_constant,
    length_constant,
    log2_ceil,
    out_shape,
    out_size,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView


def fft_flops(length: int) -> int:
    """Return 5 n log2(n), the usual count of a complex transform of n points.

    A length that is no power of two is counted alike: fast kernels exist for it too.
    """
    return 5 * length * log2_ceil(length)


def _dft(op: OpView) -> OpCost:
    """Transform one axis; its length is dft_length, else the signal's."""
    shape = in_shape(op, 0)
    axis = _dft_axis(op)
    signal = dim(shape, axis, 0)
    length = length_constant(op, 1, max(signal, dim(out_shape(op), axis, 0)))
    parts = dim(shape, -1) if len(shape) > 1 else 1
    lines = in_size(op, 0) // (signal * parts) if signal * parts else 0
    return OpCost(lines * fft_flops(length), all_bytes(op))


def _dft_axis(op: OpView) -> int:
    """Return the axis: an input from opset 20 on (default -2), before an attribute."""
    if op.opset >= 20:
        return int_constant(op, 2, -2)
    return int_attribute(op, "axis", 1)


def _stft(op: OpView) -> OpCost:
    """Window and transform each frame; the output is [B, frames, bins, 2]."""
    frames = dim(out_shape(op), 0) * dim(out_shape(op), 1)
    bins = dim(out_shape(op), 2)
    halved = int_attribute(op, "onesided", 1)
    guess = 2 * max(bins - 1, 1) if halved else bins
    length = dim(in_shape(op, 2), 0, 0) or length_constant(op, 3, guess)
    if not out_size(op):
        frames = 0
    return OpCost(frames * (length + fft_flops(length)), all_bytes(op))


def _real_fft(op: OpView) -> OpCost:
    """Transform the last signal_ndim axes: n log2(n) of their product, once each."""
    shape = in_shape(op, 0)
    axes = max(int_attribute(op, "signal_ndim", 1), 1)
    signal = math.prod(shape[-axes:])
    lines = in_size(op, 0) // signal if signal else 0
    return OpCost(lines * fft_flops(signal), all_bytes(op))


RULES: Mapping[str, CostRule] = {"DFT": _dft, "STFT": _stft}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {"Irfft": _real_fft, "Rfft": _real_fft}
"""Rules of com.microsoft."""
