"""What a cost rule sees of an op, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Attribute: TypeAlias = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
)

BITS_OF_DTYPE: Mapping[str, int] = {
    "bool": 8,
    "string": 64,
    "int4": 4,
    "uint4": 4,
    "fp4": 4,
    "int2": 2,
    "uint2": 2,
    "int8": 8,
    "uint8": 8,
    "fp8": 8,
    "int16": 16,
    "uint16": 16,
    "fp16": 16,
    "bf16": 16,
    "int32": 32,
    "uint32": 32,
    "fp32": 32,
    "int64": 64,
    "uint64": 64,
    "fp64": 64,
    "complex64": 64,
    "complex128": 128,
}
"""Bits of one element; a string counts as an 8-byte reference (an assumption)."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor's dtype (a key of ``BITS_OF_DTYPE``) and static shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes, packed: 5 int4 elements take ceil(5 / 2) = 3."""
        return (self.size * BITS_OF_DTYPE[self.dtype] + 7) // 8


@dataclass(frozen=True, slots=True)
class OpView:
    """One op with everything static about it.

    Attributes
    ----------
    domain, kind, opset
        ``""`` for the default domain; opset is the version the model imports.
    attributes
        Scalars and tuples; graph and tensor attributes are left out.
    inputs, outputs
        One entry per position; None for an optional one that is absent.
    constants
        One entry per input: its value where it is known and small, else None.
    """

    domain: str
    kind: str
    opset: int
    attributes: Mapping[str, Attribute]
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType | None, ...]
    constants: tuple[NDArray[np.generic] | None, ...]


@dataclass(frozen=True, slots=True)
class OpCost:
    """FLOPs (a multiply-add counts 2), bytes touched, and m, n, k of the product."""

    flops: int
    bytes: int
    gemm: tuple[int, int, int] | None = None


CostRule: TypeAlias = Callable[[OpView], OpCost]

Types: TypeAlias = Sequence[TensorType | None]
"""The types of an op's outputs, by position; None where one is unknown."""

ShapeRule: TypeAlias = Callable[[OpView], Types | None]
