import pytest

from mcmpart.frontends.op_costs import OpCost, TensorType, cost_of

from .op_views import MS, fp32, i64, op, u8


def test_matmul_folds_the_batch_into_m():
    """[2, 3, 4] x [4, 5] is one product of m = 6, n = 5, k = 4."""
    cost = cost_of(op("MatMul", [fp32(2, 3, 4), fp32(4, 5)], [fp32(2, 3, 5)]))
    assert cost == OpCost(240, 4 * (24 + 20 + 30), (6, 5, 4))


def test_matmul_broadcasts_a_batch_of_the_right_operand():
    """[3, 4] x [7, 4, 5] is seven products: m = 21."""
    cost = cost_of(op("MatMul", [fp32(3, 4), fp32(7, 4, 5)], [fp32(7, 3, 5)]))
    assert cost.gemm == (21, 5, 4)


@pytest.mark.parametrize(
    ("a", "b", "out", "gemm"),
    [
        (fp32(4), fp32(4), fp32(), (1, 1, 4)),
        (fp32(4), fp32(2, 4, 5), fp32(2, 5), (2, 5, 4)),
        (fp32(2, 3, 4), fp32(4), fp32(2, 3), (6, 1, 4)),
    ],
)
def test_matmul_takes_vectors_as_numpy_does(a, b, out, gemm):
    """A 1-D operand is a row on the left and a column on the right."""
    assert cost_of(op("MatMul", [a, b], [out])).gemm == gemm


def test_matmul_of_a_zero_size_batch_costs_nothing():
    """No rows, no FLOPs; the weight is still an input of 80 bytes."""
    cost = cost_of(op("MatMul", [fp32(0, 4), fp32(4, 5)], [fp32(0, 5)]))
    assert cost == OpCost(0, 80, (0, 5, 4))


def test_gemm_transposes_and_adds_its_bias():
    """A' is [2, 3], B' is [3, 4]: 48 FLOPs and one add for each of 8 outputs."""
    view = op(
        "Gemm",
        [fp32(3, 2), fp32(4, 3), fp32(4)],
        [fp32(2, 4)],
        attributes={"transA": 1, "transB": 1},
    )
    assert cost_of(view) == OpCost(48 + 8, 4 * (6 + 12 + 4 + 8), (2, 4, 3))


def test_quantised_matmul_reads_its_weight_after_two_scales():
    """QLinearMatMul's B is input 3; requantisation is 4 FLOPs for each output."""
    view = op(
        "QLinearMatMul",
        [u8(2, 4), fp32(), u8(), u8(4, 5), fp32(), u8(), fp32(), u8()],
        [u8(2, 5)],
    )
    cost = cost_of(view)
    assert (cost.flops, cost.gemm) == (80 + 40, (2, 5, 4))


def test_packed_int4_weight_counts_its_packed_bytes():
    """MatMulNBits with N = 24, K = 32: 16 packed bytes for each column."""
    view = op(
        "MatMulNBits",
        [fp32(2, 5, 32), u8(24, 1, 16), fp32(24)],
        [fp32(2, 5, 24)],
        MS,
        {"N": 24, "K": 32, "bits": 4, "block_size": 32},
    )
    product, unpacking = 2 * 10 * 24 * 32, 2 * 24 * 32
    moved = 4 * 320 + 384 + 4 * 24 + 4 * 240
    assert cost_of(view) == OpCost(product + unpacking, moved, (10, 24, 32))


def test_int4_matmul_weight_takes_half_a_byte_each():
    """Five int4 elements take 3 bytes."""
    cost = cost_of(op("MatMul", [fp32(1, 5), TensorType("int4", (5, 1))], [fp32(1, 1)]))
    assert cost.bytes == 20 + 3 + 4


def test_fused_matmul_moves_batch_axes_behind_the_rows():
    """TransBatchA makes [5, 2, 3] two matrices of [5, 3]; alpha adds one FLOP each."""
    view = op(
        "FusedMatMul",
        [fp32(5, 2, 3), fp32(2, 3, 4)],
        [fp32(2, 5, 4)],
        MS,
        {"transBatchA": 1, "alpha": 2.0},
    )
    cost = cost_of(view)
    assert (cost.gemm, cost.flops) == ((10, 4, 3), 240 + 40)


@pytest.mark.parametrize(
    ("equation", "shapes", "out", "flops", "gemm"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], (2, 4), 48, (2, 4, 3)),
        (
            "bhqd,bhkd->bhqk",
            [(2, 4, 5, 8), (2, 4, 7, 8)],
            (2, 4, 5, 7),
            4480,
            (40, 7, 8),
        ),
        ("...ij,...jk", [(6, 2, 3), (6, 3, 4)], (6, 2, 4), 288, (12, 4, 3)),
        ("i,j->ij", [(3,), (4,)], (3, 4), 12, None),
        ("ij->ji", [(3, 4)], (4, 3), 0, None),
        ("ij->i", [(3, 4)], (3,), 12, None),
        ("ii->i", [(3, 3)], (3,), 0, None),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], (2, 5), 48 + 80, None),
    ],
)
def test_einsum_costs_its_index_space(equation, shapes, out, flops, gemm):
    """A contraction is 2 FLOPs for each point of the labels it runs over."""
    view = op(
        "Einsum",
        [fp32(*shape) for shape in shapes],
        [fp32(*out)],
        attributes={"equation": equation},
    )
    cost = cost_of(view)
    assert (cost.flops, cost.gemm) == (flops, gemm)


def test_einsum_with_an_impossible_equation_still_costs_its_bytes():
    """An equation that does not fit the shapes falls back to one FLOP an output."""
    view = op("Einsum", [fp32(2, 3)], [fp32(6)], attributes={"equation": "ijk->i"})
    assert cost_of(view) == OpCost(6, 48)


def test_mixture_of_experts_reads_only_the_experts_used():
    """One token with k = 2 of 8 experts reads a quarter of the weights."""
    view = op(
        "MoE",
        [fp32(1, 16), fp32(1, 8), fp32(8, 32, 16), None, fp32(8, 16, 32)],
        [fp32(1, 16)],
        MS,
        {"k": 2},
    )
    cost = cost_of(view)
    assert cost.gemm == (2, 32 + 32, 16)
    assert cost.bytes == 4 * (16 + 8 + 16) + 2 * 2 * 4 * 32 * 16


def test_gather_reads_rows_not_the_table():
    """Three rows of a table of 64 GB cost three rows read and written."""
    view = op("Gather", [fp32(10**9, 16), i64(3)], [fp32(3, 16)])
    assert cost_of(view) == OpCost(0, 24 + 2 * 192)
