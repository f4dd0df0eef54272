"""Short forms for building an OpView in a test."""

from collections.abc import Mapping

import numpy as np

from mcmpart.frontends.op_costs import Attribute, OpView, TensorType

MS = "com.microsoft"


def fp32(*shape: int) -> TensorType:
    """Return a float32 tensor's type."""
    return TensorType("fp32", shape)


def u8(*shape: int) -> TensorType:
    """Return a uint8 tensor's type."""
    return TensorType("uint8", shape)


def i64(*shape: int) -> TensorType:
    """Return an int64 tensor's type."""
    return TensorType("int64", shape)


def op(
    kind: str,
    inputs: list[TensorType | None],
    outputs: list[TensorType | None],
    domain: str = "",
    attributes: Mapping[str, Attribute] | None = None,
    *,
    constants: Mapping[int, object] | None = None,
) -> OpView:
    """Return the view of an op; constants map a position to its value."""
    known = constants or {}
    values = tuple(
        np.asarray(known[i]) if i in known else None for i in range(len(inputs))
    )
    return OpView(
        domain=domain,
        kind=kind,
        opset=21,
        attributes=attributes or {},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        constants=values,
    )
