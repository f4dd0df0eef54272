"""Output types of onnxruntime's matrix products."""

from __future__ import annotations

from collections.abc import Mapping

from mcmpart.frontends.op_costs.matmul import broadcast, fused_matmul_shapes, transposed
from mcmpart.frontends.op_costs.reading import (
    dim,
    in_shape,
    input_of,
    int_attribute,
    int_constants,
)
from mcmpart.frontends.op_costs.types import OpView, ShapeRule, TensorType, Types

# Codes of onnx.TensorProto.DataType.
DTYPE_OF_CODE: Mapping[int, str] = {
    1: "fp32",
    2: "uint8",
    3: "int8",
    6: "int32",
    7: "int64",
    10: "fp16",
    11: "fp64",
    16: "bf16",
    17: "fp8",
    18: "fp8",
    19: "fp8",
    20: "fp8",
}


def matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of numpy's matmul."""
    batch = broadcast(a[:-2], b[:-2])
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return (*batch, *rows, *columns)


def _product(a: int, b: int, dtype_from: int | str) -> ShapeRule:
    """Return the rule of a product; its dtype is named, or that of an input."""

    def rule(op: OpView) -> Types | None:
        left, right = input_of(op, a), input_of(op, b)
        dtype = _dtype(op, dtype_from)
        if left is None or right is None or dtype is None:
            return None
        return (TensorType(dtype, matmul_shape(left.shape, right.shape)),)

    return rule


def _dtype(op: OpView, source: int | str) -> str | None:
    """Return a dtype that is named, or that of the input at a position."""
    if isinstance(source, str):
        return source
    tensor = input_of(op, source)
    return None if tensor is None else tensor.dtype


def _fused_matmul(op: OpView) -> Types | None:
    """Return the product's type after the op's four transposes."""
    left = input_of(op, 0)
    if left is None or input_of(op, 1) is None:
        return None
    return (TensorType(left.dtype, matmul_shape(*fused_matmul_shapes(op))),)


def _gemm_type(op: OpView, b: int, dtype: str) -> Types | None:
    """Return the type of A' B', transposed by transA and transB."""
    left, right = input_of(op, 0), input_of(op, b)
    if left is None or right is None:
        return None
    a = transposed(left.shape, int_attribute(op, "transA", 0))
    return (
        TensorType(
            dtype,
            matmul_shape(a, transposed(right.shape, int_attribute(op, "transB", 0))),
        ),
    )


def _fused_gemm(op: OpView) -> Types | None:
    """Return the product's type; the attribute dtype overrides A's."""
    left = input_of(op, 0)
    if left is None:
        return None
    named = DTYPE_OF_CODE.get(int_attribute(op, "dtype", 0))
    return _gemm_type(op, 1, named or left.dtype)


def _quantized_gemm(op: OpView) -> Types | None:
    """Return the product's type: of y_zero_point, or the scale's without one."""
    dtype = _dtype(op, 8) or _dtype(op, 1)
    return None if dtype is None else _gemm_type(op, 3, dtype)


def _packed_weight(op: OpView) -> Types | None:
    """Return [..., N], with N an attribute or the second value of B_shape."""
    left = input_of(op, 0)
    columns = int_attribute(op, "N", 0)
    if not columns and op.kind == "MatMulFpQ4":
        columns = dim(int_constants(op, 2) or (), 1, 0)
    if left is None or not columns:
        return None
    return (TensorType(left.dtype, (*left.shape[:-1], columns)),)


def _mlp(op: OpView) -> Types | None:
    """Return [..., N] and the residual sum."""
    outputs = _packed_weight(op)
    return None if outputs is None else (*outputs, input_of(op, 0))


def _query_key_value(op: OpView) -> Types | None:
    """Return [..., Nq], twice [..., Nkv], and the residual sum."""
    left = input_of(op, 0)
    widths = [int_attribute(op, name, 0) for name in ("Nq", "Nkv", "Nkv")]
    if left is None or not all(widths):
        return None
    products = [TensorType(left.dtype, (*left.shape[:-1], n)) for n in widths]
    return (*products, left)


def _distances(op: OpView) -> Types | None:
    """Return one distance for each pair of rows."""
    left = input_of(op, 0)
    if left is None or input_of(op, 1) is None:
        return None
    return (TensorType(left.dtype, (dim(left.shape, 0), dim(in_shape(op, 1), 0))),)


RULES: Mapping[str, ShapeRule] = {
    "CDist": _distances,
    "DynamicQuantizeMatMul": _product(0, 1, 0),
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "GemmFastGelu": _product(0, 1, 0),
    "GemmFloat8": _fused_gemm,
    "MatMulBnb4": _packed_weight,
    "MatMulFpQ4": _packed_weight,
    "MatMulInteger16": _product(0, 1, "int32"),
    "MatMulIntegerToFloat": _product(0, 1, 2),
    "MatMulNBits": _packed_weight,
    "MatMulNBitsMlp": _mlp,
    "MatMulNBitsQkv": _query_key_value,
    "MatMulPacked": _packed_weight,
    "QGemm": _quantized_gemm,
    "QOrderedMatMul": _product(0, 2, 0),
    "SparseToDenseMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
}
"""Shape rules of com.microsoft."""
