"""The dtypes that a graph names, and the bits of one element of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FLOAT_BITS: Final[Mapping[str, int]] = {
    "fp64": 64,
    "fp32": 32,
    "fp16": 16,
    "bf16": 16,
    "fp8": 8,
    "fp4": 4,
}
"""Dtypes that a change of precision rescales."""

INTEGER_BITS: Final[Mapping[str, int]] = {
    "int64": 64,
    "uint64": 64,
    "int32": 32,
    "uint32": 32,
    "int16": 16,
    "uint16": 16,
    "int8": 8,
    "uint8": 8,
    "int4": 4,
    "uint4": 4,
    "int2": 2,
    "uint2": 2,
}
"""Integer dtypes: a quantised model computes in one of them."""

PRECISION_BITS: Final[Mapping[str, int]] = {**FLOAT_BITS, **INTEGER_BITS}
"""Dtypes that a model can be deployed in."""
