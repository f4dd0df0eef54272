import pytest

from mcmpart.frontends.op_costs import OpCost, cost_of

from .op_views import MS, fp32, i64, op, u8


@pytest.mark.parametrize(
    ("kind", "flops"), [("Add", 1), ("Relu", 1), ("Sigmoid", 6), ("Gelu", 8)]
)
def test_elementwise_flops_come_from_the_table(kind, flops):
    """Each of 12 outputs costs what the table says; inputs and output move once."""
    cost = cost_of(op(kind, [fp32(3, 4)], [fp32(3, 4)]))
    assert cost == OpCost(12 * flops, 96)


def test_broadcast_add_counts_outputs():
    """[3, 1] + [4] makes 12 sums."""
    cost = cost_of(op("Add", [fp32(3, 1), fp32(4)], [fp32(3, 4)]))
    assert cost == OpCost(12, 4 * (3 + 4 + 12))


def test_variadic_sum_adds_one_less_than_its_inputs():
    """Three inputs of 4 elements take 8 adds."""
    assert cost_of(op("Sum", [fp32(4)] * 3, [fp32(4)])).flops == 8


def test_random_like_reads_only_a_shape():
    """RandomUniformLike writes 16 bytes and reads none."""
    assert cost_of(op("RandomUniformLike", [fp32(4)], [fp32(4)])).bytes == 16


@pytest.mark.parametrize(
    ("kind", "flops"),
    [("ReduceSum", 24), ("ReduceMean", 24 + 2), ("ReduceL2", 48 + 2), ("ArgMax", 24)],
)
def test_reduction_counts_inputs(kind, flops):
    """24 inputs to 2 outputs: one FLOP for each input, and some for each output."""
    cost = cost_of(op(kind, [fp32(2, 12)], [fp32(2, 1)]))
    assert cost == OpCost(flops, 4 * 26)


def test_pool_counts_its_window():
    """A 3 x 3 window for each of 2 x 4 outputs; the average divides once."""
    shapes = ([fp32(1, 2, 6, 6)], [fp32(1, 2, 2, 2)])
    attributes = {"kernel_shape": (3, 3)}
    assert cost_of(op("MaxPool", *shapes, "", attributes)).flops == 72
    assert cost_of(op("AveragePool", *shapes, "", attributes)).flops == 80


def test_batch_normalization_is_one_multiply_add_at_inference():
    """In training its statistics cost four FLOPs more."""
    view = ([fp32(1, 2, 3, 3)] + [fp32(2)] * 4, [fp32(1, 2, 3, 3)])
    assert cost_of(op("BatchNormalization", *view)).flops == 36
    trained = op("BatchNormalization", *view, "", {"training_mode": 1})
    assert cost_of(trained).flops == 108


def test_softmax_costs_eight_flops_each():
    """max, subtract, exp (4), sum, divide."""
    assert cost_of(op("Softmax", [fp32(2, 5)], [fp32(2, 5)])).flops == 80


def test_skip_normalization_adds_skip_and_bias():
    """SkipLayerNormalization is LayerNormalization and two adds."""
    shapes = ([fp32(2, 5)], [fp32(2, 5)])
    plain = cost_of(op("LayerNormalization", *shapes)).flops
    assert cost_of(op("SkipLayerNormalization", *shapes, MS)).flops == plain + 20


def test_embedding_normalization_does_not_read_its_tables():
    """A word table of 30,522 rows costs 2 x 3 rows of 8 read, and the output."""
    view = op(
        "EmbedLayerNormalization",
        [*[i64(2, 3)] * 2, *(fp32(n, 8) for n in (30_522, 512, 2)), *[fp32(8)] * 2],
        [fp32(2, 3, 8)],
        MS,
    )
    rows = 4 * 2 * 3 * 8
    assert cost_of(view).bytes == 2 * 48 + 3 * rows + 2 * 32 + rows


def test_fourier_transform_is_n_log_n():
    """Three real signals of 1,024 points: 5 x 1,024 x 10 FLOPs each."""
    view = op(
        "DFT",
        [fp32(3, 1024, 1), None, i64()],
        [fp32(3, 1024, 2)],
        constants={2: 1},
    )
    assert cost_of(view).flops == 3 * 5 * 1024 * 10


def test_short_time_transform_counts_frames():
    """7 frames of 64 points, windowed and transformed."""
    view = op("STFT", [fp32(1, 256, 1), i64(), fp32(64)], [fp32(1, 7, 33, 2)])
    assert cost_of(view).flops == 7 * (64 + 5 * 64 * 6)


def test_box_suppression_compares_the_boxes_kept():
    """2 classes of 100 boxes with 10 kept: a sort and 12 FLOPs for each pair."""
    view = op(
        "NonMaxSuppression",
        [fp32(1, 100, 4), fp32(1, 2, 100), i64()],
        [i64(20, 3)],
        constants={2: 10},
    )
    assert cost_of(view).flops == 200 * (7 + 120)


def test_grid_sample_weighs_four_taps():
    """Bilinear: 4 multiply-adds for each of 3 x 20 outputs."""
    view = op("GridSample", [fp32(1, 3, 8, 8), fp32(1, 4, 5, 2)], [fp32(1, 3, 4, 5)])
    assert cost_of(view) == OpCost(8 * 60, 4 * (192 + 40 + 60))


def test_region_pooling_reads_only_its_taps():
    """One region of a huge image: 2 x 2 bins of one sample and 4 taps of 4 bytes."""
    view = op(
        "RoiAlign",
        [fp32(1, 1, 4000, 4000), fp32(1, 4), i64(1)],
        [fp32(1, 1, 2, 2)],
        attributes={"sampling_ratio": 1},
    )
    assert cost_of(view) == OpCost(32, 64 + 16 + 8 + 16)


def test_trees_are_walked_to_their_depth():
    """10 samples, 2 trees of 7 nodes: 3 comparisons each, and the sum."""
    view = op(
        "TreeEnsembleRegressor",
        [fp32(10, 4)],
        [fp32(10, 1)],
        "ai.onnx.ml",
        {"nodes_treeids": (0,) * 7 + (1,) * 7, "nodes_nodeids": tuple(range(7)) * 2},
    )
    assert cost_of(view).flops == 2 * 10 * 2 * 3 + 20


def test_linear_classifier_is_a_product():
    """4 features to 3 classes for 10 samples."""
    view = op(
        "LinearClassifier",
        [fp32(10, 4)],
        [i64(10), fp32(10, 3)],
        "ai.onnx.ml",
        {"coefficients": (0.5,) * 12},
    )
    assert cost_of(view).gemm == (10, 3, 4)


def test_quantised_add_dequantises_both_sides():
    """Nine FLOPs for each output."""
    scale, zero = fp32(), u8()
    inputs = [u8(4), scale, zero, u8(4), scale, zero, scale, zero]
    assert cost_of(op("QLinearAdd", inputs, [u8(4)], MS)).flops == 36


def test_optimiser_step_counts_every_state():
    """Adam writes a weight and two moments: 14 FLOPs for each element of them."""
    view = op("Adam", [fp32(4)] * 4, [fp32(4)] * 3, "ai.onnx.preview.training")
    assert cost_of(view).flops == 14 * 12
