"""Matrix products: dense, quantised, with packed weights, and Einsum."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.einsum import einsum_cost
from mcmpart.frontends.op_costs.elementwise import GELU
from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    dim,
    in_shape,
    in_size,
    int_attribute,
    out_shape,
    out_size,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

Gemm = tuple[int, int, int]


def product_cost(op: OpView, gemm: Gemm, *, extra_flops: int = 0) -> OpCost:
    """Return 2 m n k FLOPs and some extra, with all bytes touched once."""
    return OpCost(2 * math.prod(gemm) + extra_flops, all_bytes(op), gemm)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape two shapes broadcast to; the larger size where they clash."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(y if x == 1 else x if y == 1 else max(x, y) for x, y in pairs)


def matmul_gemm(a: tuple[int, ...], b: tuple[int, ...]) -> Gemm:
    """Return m, n, k of numpy's matmul, the broadcast batch folded into m."""
    rows, columns = (dim(a, -2) if len(a) > 1 else 1), dim(b, -1)
    if len(b) < 2:
        columns = 1
    batch = math.prod(broadcast(a[:-2], b[:-2]))
    return batch * rows, columns, dim(a, -1)


def transposed(shape: tuple[int, ...], flag: int) -> tuple[int, ...]:
    """Return the shape with its last two axes swapped where the flag is set."""
    if not flag or len(shape) < 2:
        return shape
    return (*shape[:-2], shape[-1], shape[-2])


def _matmul_at(a: int, b: int, flops_per_output: int = 0) -> CostRule:
    """Return the rule of a product of the inputs at two positions."""

    def rule(op: OpView) -> OpCost:
        gemm = matmul_gemm(in_shape(op, a), in_shape(op, b))
        return product_cost(op, gemm, extra_flops=flops_per_output * out_size(op))

    return rule


def _gemm_at(a: int, b: int, c: int, flops_per_output: int = 0) -> CostRule:
    """Return the rule of A' B' + C, transposed by transA and transB."""

    def rule(op: OpView) -> OpCost:
        left = transposed(in_shape(op, a), int_attribute(op, "transA", 0))
        right = transposed(in_shape(op, b), int_attribute(op, "transB", 0))
        flops = flops_per_output + (1 if in_size(op, c) else 0)
        gemm = matmul_gemm(left, right)
        return product_cost(op, gemm, extra_flops=flops * out_size(op))

    return rule


def fused_matmul_shapes(op: OpView) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes FusedMatMul multiplies, after its four transposes.

    ``transBatchA`` moves the batch axes behind the row axis: [m, b, k] holds b
    matrices [m, k] (and the same for B).
    """
    shapes = []
    for position, letter in enumerate("AB"):
        shape = in_shape(op, position)
        if int_attribute(op, f"transBatch{letter}", 0) and len(shape) > 2:
            shape = (*shape[1:-1], shape[0], shape[-1])
        shapes.append(transposed(shape, int_attribute(op, f"trans{letter}", 0)))
    return shapes[0], shapes[1]


def _fused_matmul(op: OpView) -> OpCost:
    """Multiply, and scale by alpha where it is not 1."""
    scales = op.attributes.get("alpha", 1.0) != 1.0
    gemm = matmul_gemm(*fused_matmul_shapes(op))
    return product_cost(op, gemm, extra_flops=out_size(op) if scales else 0)


def _packed_weight(op: OpView) -> OpCost:
    """Multiply by a [N, K] weight that is stored packed; unpacking costs 2 FLOPs each.

    N and K are attributes, or else follow from the shapes of output and input.
    """
    columns = int_attribute(op, "N", 0) or dim(out_shape(op), -1)
    depth = int_attribute(op, "K", 0) or dim(in_shape(op, 0), -1)
    rows = math.prod(in_shape(op, 0)[:-1])
    return product_cost(op, (rows, columns, depth), extra_flops=2 * columns * depth)


RULES: Mapping[str, CostRule] = {
    "Einsum": einsum_cost,
    "Gemm": _gemm_at(0, 1, 2),
    "MatMul": _matmul_at(0, 1),
    # One subtraction of a zero point for each product's row and column is left out:
    # kernels fold it into the accumulators.
    "MatMulInteger": _matmul_at(0, 1),
    # Multiplier, rounding, zero point and saturation of each output.
    "QLinearMatMul": _matmul_at(0, 3, 4),
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "DynamicQuantizeMatMul": _matmul_at(0, 1, 2),
    "FusedGemm": _gemm_at(0, 1, 2, 1),
    "FusedMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "GemmFastGelu": _matmul_at(0, 1, GELU + 1),
    "GemmFloat8": _gemm_at(0, 1, 2, 1),
    "MatMulBnb4": _packed_weight,
    "MatMulBlockQuantizedFp4Weight": _packed_weight,
    "MatMulBlockQuantizedFp8Weight": _packed_weight,
    "MatMulFpQ4": _packed_weight,
    "MatMulInteger16": _matmul_at(0, 1),
    "MatMulIntegerToFloat": _matmul_at(0, 1, 2),
    "MatMulNBits": _packed_weight,
    "MatMulPacked": _packed_weight,
    "QGemm": _gemm_at(0, 3, 6, 4),
    "QOrderedMatMul": _matmul_at(0, 2, 4),
    "SparseToDenseMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
}
"""Rules of com.microsoft."""
