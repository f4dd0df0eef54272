from mcmpart.frontends.op_costs import OpCost, cost_of

from .op_views import MS, fp32, op, u8


def test_conv_counts_its_multiply_adds():
    """3 x 3, 64 -> 64 channels on 56 x 56: the textbook 231 MFLOPs."""
    view = op(
        "Conv",
        [fp32(1, 64, 56, 56), fp32(64, 64, 3, 3)],
        [fp32(1, 64, 56, 56)],
        attributes={"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)},
    )
    flops = 2 * 64 * 64 * 9 * 56 * 56
    moved = 4 * (2 * 64 * 56 * 56 + 64 * 64 * 9)
    assert cost_of(view) == OpCost(flops, moved, (3136, 64, 576))


def test_conv_bias_is_one_add_for_each_output():
    """A bias of 8 channels on 2 x 8 x 4 x 4 outputs adds 256 FLOPs."""
    inputs = [fp32(2, 3, 4, 4), fp32(8, 3, 1, 1)]
    plain = cost_of(op("Conv", inputs, [fp32(2, 8, 4, 4)]))
    biased = cost_of(op("Conv", [*inputs, fp32(8)], [fp32(2, 8, 4, 4)]))
    assert biased.flops - plain.flops == 256


def test_grouped_conv_divides_its_depth():
    """Four groups of 16 channels: k = 16 x 9."""
    view = op(
        "Conv",
        [fp32(1, 64, 8, 8), fp32(32, 16, 3, 3)],
        [fp32(1, 32, 6, 6)],
        attributes={"group": 4},
    )
    assert cost_of(view).flops == 2 * 36 * 32 * 16 * 9


def test_depthwise_conv_has_a_depth_of_its_taps():
    """One input channel for each of 32: 2 x 9 FLOPs for each output."""
    view = op(
        "Conv",
        [fp32(1, 32, 10, 10), fp32(32, 1, 3, 3)],
        [fp32(1, 32, 8, 8)],
        attributes={"group": 32},
    )
    assert cost_of(view).gemm == (64, 32, 9)


def test_transposed_conv_spreads_each_input_element():
    """16 -> 8 channels, 2 x 2 with stride 2, from 5 x 5: 2 x 25 x 16 x 8 x 4 FLOPs."""
    view = op(
        "ConvTranspose",
        [fp32(1, 16, 5, 5), fp32(16, 8, 2, 2)],
        [fp32(1, 8, 10, 10)],
        attributes={"strides": (2, 2)},
    )
    cost = cost_of(view)
    assert (cost.flops, cost.gemm) == (25600, (25, 32, 16))


def test_quantised_conv_reads_its_weight_at_input_three():
    """QLinearConv adds 4 FLOPs an output to requantise, and one for the bias."""
    scale, zero = fp32(), u8()
    inputs = [u8(1, 3, 4, 4), scale, zero, u8(8, 3, 1, 1), scale, zero, scale, zero]
    cost = cost_of(op("QLinearConv", [*inputs, fp32(8)], [u8(1, 8, 4, 4)]))
    assert cost.flops == 2 * 16 * 8 * 3 + 5 * 128
    assert cost.bytes == 48 + 24 + 3 * 4 + 3 + 32 + 128


def test_integer_conv_is_a_plain_product():
    """ConvInteger's zero points are no bias."""
    inputs = [u8(1, 3, 4, 4), u8(8, 3, 1, 1), u8(), u8()]
    assert cost_of(op("ConvInteger", inputs, [u8(1, 8, 4, 4)])).flops == 768


def test_channels_last_conv_counts_alike():
    """NhwcConv with [M, taps, taps, C] weights has the same product."""
    view = op(
        "NhwcConv", [fp32(1, 8, 8, 4), fp32(16, 3, 3, 4)], [fp32(1, 6, 6, 16)], MS
    )
    assert cost_of(view).gemm == (36, 16, 36)


def test_deformable_conv_adds_its_sampling():
    """8 FLOPs for each bilinear sample: 9 taps x 2 channels x 4 positions."""
    view = op(
        "DeformConv",
        [fp32(1, 2, 4, 4), fp32(5, 2, 3, 3), fp32(1, 18, 2, 2)],
        [fp32(1, 5, 2, 2)],
    )
    assert cost_of(view).flops == 2 * 4 * 5 * 18 + 8 * 72


def test_causal_conv_is_depthwise():
    """Four taps for each of 2 x 6 x 5 outputs, and one bias."""
    view = op(
        "CausalConvWithState",
        [fp32(2, 6, 5), fp32(6, 1, 4), fp32(6)],
        [fp32(2, 6, 5), fp32(2, 6, 3)],
    )
    assert cost_of(view).flops == 60 * (8 + 1)


def test_conv_without_outputs_costs_nothing():
    """A batch of 0 has no positions."""
    view = op("Conv", [fp32(0, 3, 4, 4), fp32(8, 3, 1, 1)], [fp32(0, 8, 4, 4)])
    assert cost_of(view).flops == 0
