"""Output types of onnxruntime's convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    dim,
    input_of,
    int_attribute,
    ints_attribute,
    text_attribute,
)
from mcmpart.frontends.op_costs.types import OpView, ShapeRule, TensorType, Types


def window_positions(
    op: OpView, spatial: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the positions of a sliding window along each spatial axis."""
    axes = len(spatial)
    strides = ints_attribute(op, "strides") or (1,) * axes
    auto = text_attribute(op, "auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        pairs = zip(spatial, strides, strict=False)
        return tuple(-(-size // max(stride, 1)) for size, stride in pairs)
    pads = (0,) * (2 * axes)
    if auto != "VALID":
        pads = ints_attribute(op, "pads") or pads
    dilations = ints_attribute(op, "dilations") or (1,) * axes
    rounds_up = int_attribute(op, "ceil_mode", 0) == 1
    return tuple(
        _positions(
            size,
            dim(dilations, axis) * (dim(kernel, axis) - 1) + 1,
            max(dim(strides, axis), 1),
            (dim(pads, axis, 0), dim(pads, axis + axes, 0)),
            rounds_up,
        )
        for axis, size in enumerate(spatial)
    )


def _positions(
    size: int, reach: int, stride: int, pads: tuple[int, int], rounds_up: bool
) -> int:
    """Return the positions along one axis of a window that reaches so far.

    Rounded up, the last window must still start inside the image or its left pad.
    """
    free = size + sum(pads) - reach
    if free < 0:
        return 0
    count = (-(-free // stride) if rounds_up else free // stride) + 1
    if rounds_up and (count - 1) * stride >= size + pads[0]:
        count -= 1
    return count


def _conv_at(weight: int, *, channels_last: bool = False) -> ShapeRule:
    """Return the rule of a convolution with the weight at a position."""

    def rule(op: OpView) -> Types | None:
        data, kernel = input_of(op, 0), input_of(op, weight)
        if data is None or kernel is None or len(data.shape) < 3:
            return None
        last = channels_last or int_attribute(op, "channels_last", 0) == 1
        taps = ints_attribute(op, "kernel_shape")
        if taps is None:
            taps = _weight_taps(op, data.shape, kernel.shape, last)
        return (_windowed(op, data, taps, last, dim(kernel.shape, 0)),)

    return rule


def _weight_taps(
    op: OpView, data: tuple[int, ...], kernel: tuple[int, ...], last: bool
) -> tuple[int, ...]:
    """Return the taps of a weight [M, C / group, taps...] or [M, taps..., C / group].

    Both layouts occur with channels-last data: the one whose channels fit is taken.
    """
    channels = dim(data, -1 if last else 1) // max(int_attribute(op, "group", 1), 1)
    if last and dim(kernel, 1) != channels and dim(kernel, -1) == channels:
        return kernel[1:-1]
    return kernel[2:]


def _windowed(
    op: OpView,
    data: TensorType,
    taps: tuple[int, ...],
    last: bool,
    channels: int | None = None,
) -> TensorType:
    """Return the type of a windowed op; a pool keeps the channels."""
    shape = data.shape
    spatial = shape[1:-1] if last else shape[2:]
    positions = window_positions(op, spatial, taps)
    kept = dim(shape, -1 if last else 1) if channels is None else channels
    if last:
        return TensorType(data.dtype, (shape[0], *positions, kept))
    return TensorType(data.dtype, (shape[0], kept, *positions))


def _pool(*, channels_last: bool = False) -> ShapeRule:
    """Return the rule of a pool with the attribute kernel_shape."""

    def rule(op: OpView) -> Types | None:
        data, taps = input_of(op, 0), ints_attribute(op, "kernel_shape")
        if data is None or taps is None or len(data.shape) < 3:
            return None
        last = channels_last or int_attribute(op, "channels_last", 0) == 1
        return (_windowed(op, data, taps, last),)

    return rule


def _global_pool(op: OpView) -> Types | None:
    """Return one position along each spatial axis."""
    data = input_of(op, 0)
    if data is None or len(data.shape) < 3:
        return None
    shape = data.shape
    ones = (1,) * (len(shape) - 2)
    if int_attribute(op, "channels_last", 0):
        return (TensorType(data.dtype, (shape[0], *ones, shape[-1])),)
    return (TensorType(data.dtype, (*shape[:2], *ones)),)


def _unfold(op: OpView) -> Types | None:
    """Return windows of one axis; their size is the new last axis."""
    data = input_of(op, 0)
    if data is None or not data.shape:
        return None
    axis = int_attribute(op, "dim", -1) % len(data.shape)
    size, step = int_attribute(op, "size", 1), max(int_attribute(op, "step", 1), 1)
    count = max((data.shape[axis] - size) // step + 1, 0)
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :], size)
    return (TensorType(data.dtype, shape),)


def _real_fft(op: OpView) -> Types | None:
    """Return the half spectrum of the last axis, as pairs."""
    data = input_of(op, 0)
    if data is None or not data.shape:
        return None
    bins = data.shape[-1]
    if int_attribute(op, "onesided", 1):
        bins = bins // 2 + 1
    return (TensorType(data.dtype, (*data.shape[:-1], bins, 2)),)


def _inverse_real_fft(op: OpView) -> Types | None:
    """Return the signal of a half spectrum of pairs."""
    data = input_of(op, 0)
    if data is None or len(data.shape) < 2:
        return None
    bins = data.shape[-2]
    length = 2 * (bins - 1) if int_attribute(op, "onesided", 1) else bins
    return (TensorType(data.dtype, (*data.shape[:-2], max(length, 0))),)


def _causal_conv(op: OpView) -> Types | None:
    """Return the input's type and the last k - 1 positions of each channel."""
    data, weight, past = (input_of(op, position) for position in (0, 1, 3))
    if data is None or weight is None:
        return None
    plain = len(data.shape) == 3 and not int_attribute(op, "channels_last", 0)
    state = past
    if state is None and plain:
        tail = math.prod(weight.shape[-1:]) - 1
        state = TensorType(data.dtype, (*data.shape[:2], max(tail, 0)))
    return (data, state)


RULES: Mapping[str, ShapeRule] = {
    "CausalConvWithState": _causal_conv,
    "FusedConv": _conv_at(1),
    "Irfft": _inverse_real_fft,
    "MaxpoolWithMask": _pool(),
    "NhwcConv": _conv_at(1, channels_last=True),
    "NhwcFusedConv": _conv_at(1, channels_last=True),
    "NhwcMaxPool": _pool(channels_last=True),
    "QLinearAveragePool": _pool(),
    "QLinearConv": _conv_at(3),
    "QLinearGlobalAveragePool": _global_pool,
    "Rfft": _real_fft,
    "UnfoldTensor": _unfold,
}
"""Shape rules of com.microsoft."""
