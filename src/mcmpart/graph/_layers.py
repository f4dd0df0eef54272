"""Layers of several ops, or of windows, on a SizedBuilder."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mcmpart.graph._sized import SizedBuilder


def conv(
    net: SizedBuilder,
    name: str,
    x: str,
    channels: int,
    kernel: tuple[int, int] = (1, 1),
    stride: int = 1,
    padded: bool = True,
    *,
    groups: int = 1,
) -> str:
    """Add a convolution without bias: [c, h, w] in, [``channels``, ...] out."""
    width, *sides = net.shape[x]
    size = _windows(sides, kernel, stride, padded=padded)
    depth = width // groups * math.prod(kernel)
    points = math.prod(size)
    return net.op(
        name,
        "Conv",
        (x,),
        (channels, *size),
        flops=2 * channels * points * depth,
        weights=(channels * depth,),
        gemm=(points, channels, depth),
    )


def conv_unit(
    net: SizedBuilder,
    name: str,
    x: str,
    channels: int,
    kernel: tuple[int, int] = (1, 1),
    stride: int = 1,
    padded: bool = True,
    *,
    groups: int = 1,
    relu: bool = True,
) -> str:
    """Add a convolution without bias, its batch normalisation and perhaps a Relu."""
    x = conv(net, f"{name}.conv", x, channels, kernel, stride, padded, groups=groups)
    x = net.pointwise(
        f"{name}.norm",
        "BatchNormalization",
        (x,),
        per_item=2,
        weights=(channels, channels),
    )
    return net.pointwise(f"{name}.relu", "Relu", (x,)) if relu else x


def pool(
    net: SizedBuilder,
    name: str,
    kind: str,
    x: str,
    *,
    stride: int = 1,
    padded: bool = True,
) -> str:
    """Add a pool over windows of 3 x 3; the average divides each sum."""
    width, *sides = net.shape[x]
    shape = (width, *_windows(sides, (3, 3), stride, padded=padded))
    each = 9 + (kind == "AveragePool")
    return net.op(name, kind, (x,), shape, flops=each * math.prod(shape))


def concat(net: SizedBuilder, name: str, parts: Sequence[str], axis: int = 0) -> str:
    """Add a Concat of tensors that are alike on all other axes."""
    shape = list(net.shape[parts[0]])
    shape[axis] = sum(net.shape[part][axis] for part in parts)
    return net.pointwise(name, "Concat", tuple(parts), tuple(shape), per_item=0)


def linear(net: SizedBuilder, name: str, x: str, width: int) -> str:
    """Add a Gemm with bias: [m, k] in, [m, ``width``] out."""
    m, k = net.shape[x]
    return net.op(
        name,
        "Gemm",
        (x,),
        (m, width),
        flops=(2 * k + 1) * m * width,
        weights=(k * width, width),
        gemm=(m, width, k),
    )


def _windows(
    sides: Sequence[int], kernel: tuple[int, int], stride: int, *, padded: bool
) -> list[int]:
    """Return how many windows fit along each side; 1 where it is too short for one."""
    return [
        max(((side - 1) if padded else (side - taps)) // stride + 1, 1)
        for side, taps in zip(sides, kernel, strict=True)
    ]
