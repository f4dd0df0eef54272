"""What is known of a value while a model is read, and ONNX types in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, TensorShapeProto, TypeProto, ValueInfoProto

from mcmpart.frontends.op_costs.types import TensorType

Container: TypeAlias = Literal["", "sequence", "optional", "map"]
PartialShape: TypeAlias = tuple[int | str | None, ...]

_DTYPE_OF_NAME: Mapping[str, str] = {
    "FLOAT": "fp32",
    "UINT8": "uint8",
    "INT8": "int8",
    "UINT16": "uint16",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "STRING": "string",
    "BOOL": "bool",
    "FLOAT16": "fp16",
    "DOUBLE": "fp64",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
    "BFLOAT16": "bf16",
    "FLOAT8E4M3FN": "fp8",
    "FLOAT8E4M3FNUZ": "fp8",
    "FLOAT8E5M2": "fp8",
    "FLOAT8E5M2FNUZ": "fp8",
    "FLOAT8E8M0": "fp8",
    "UINT4": "uint4",
    "INT4": "int4",
    "FLOAT4E2M1": "fp4",
    "UINT2": "uint2",
    "INT2": "int2",
}

# Older versions of onnx lack the newest element types.
_NAMES = frozenset(TensorProto.DataType.keys())

DTYPE_OF_ELEM: Mapping[int, str] = {
    TensorProto.DataType.Value(name): dtype
    for name, dtype in _DTYPE_OF_NAME.items()
    if name in _NAMES
}
"""mcmpart's dtype of each ONNX element type."""

ELEM_OF_DTYPE: Mapping[str, int] = {
    dtype: elem for elem, dtype in reversed(list(DTYPE_OF_ELEM.items()))
}
FLOAT_DTYPES = frozenset({"fp64", "fp32", "fp16", "bf16", "fp8", "fp4"})


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of the model and what is known of it before it runs.

    Attributes
    ----------
    elem
        ONNX element type; 0 unknown.
    shape
        None when it could not be found; then ``cause`` says why.
    container, length
        A sequence holds ``length`` tensors of this type; an optional or a map counts
        as one.
    const
        The value itself, where it is known and small.
    tensor
        Name of the tensor of the main graph that this is; ``""`` inside bodies.
    weight
        Name of the weight that this is (an initializer or a folded constant).
    cause
        Index of the unresolved op that hides the shape, or -1.
    """

    elem: int
    shape: tuple[int, ...] | None
    container: Container = ""
    length: int = 1
    const: NDArray[np.generic] | None = None
    tensor: str = ""
    weight: str = ""
    cause: int = -1

    @property
    def dtype(self) -> str:
        """Our name of the element type, ``""`` when unknown."""
        return DTYPE_OF_ELEM.get(self.elem, "")

    @property
    def type(self) -> TensorType | None:
        """Dtype and shape; a sequence is one tensor with its length in front."""
        if self.shape is None or not self.dtype:
            return None
        front = (self.length,) if self.container == "sequence" else ()
        return TensorType(self.dtype, front + self.shape)

    @property
    def bytes(self) -> int:
        """Bytes it takes, 0 when unknown."""
        return self.type.bytes if self.type else 0

    def anonymous(self) -> Value:
        """Return the value without its name in the main graph."""
        if not (self.tensor or self.weight):
            return self
        return replace(self, tensor="", weight="")

    def opaque(self) -> Value:
        """Return the value as a loop sees it: it changes, so it is no constant."""
        return replace(self, tensor="", weight="", const=None)


def type_proto(value: Value) -> TypeProto:
    """Return the ONNX type of ``value``."""
    proto = TypeProto()
    tensor = proto.tensor_type
    if value.container == "sequence":
        tensor = proto.sequence_type.elem_type.tensor_type
    elif value.container == "optional":
        tensor = proto.optional_type.elem_type.tensor_type
    tensor.elem_type = value.elem
    if value.shape is not None:
        tensor.shape.SetInParent()
        for size in value.shape:
            tensor.shape.dim.add().dim_value = size
    return proto


def read_type(proto: TypeProto) -> tuple[Container, int, PartialShape | None]:
    """Return container, element type and the shape as far as it is written.

    A dimension is its size, its name, or None when it has neither.
    """
    container: Container = ""
    while True:
        which = proto.WhichOneof("value")
        if which == "sequence_type":
            container, proto = container or "sequence", proto.sequence_type.elem_type
        elif which == "optional_type":
            container, proto = container or "optional", proto.optional_type.elem_type
        elif which == "map_type":
            container, proto = "map", proto.map_type.value_type
        else:
            break
    tensor: Any = (
        proto.sparse_tensor_type if which == "sparse_tensor_type" else proto.tensor_type
    )
    if not tensor.HasField("shape"):
        return container, tensor.elem_type, None
    return container, tensor.elem_type, tuple(_size(dim) for dim in tensor.shape.dim)


def stated_types(values: Iterable[ValueInfoProto]) -> dict[str, TypeProto]:
    """Return the type that a file states for each name; one with a shape wins."""
    types: dict[str, TypeProto] = {}
    for value in values:
        if value.name not in types or read_type(value.type)[2] is not None:
            types[value.name] = value.type
    return types


def _size(dim: TensorShapeProto.Dimension) -> int | str | None:
    # A negative size is how some exporters write "unknown".
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return str(dim.dim_param) or None
