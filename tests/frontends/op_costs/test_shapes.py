import numpy as np
import pytest

from mcmpart.frontends.op_costs import TensorType, infer_outputs

from .op_views import MS, fp32, i64, op, u8

SCALE, ZERO = fp32(), u8()
QUANTISED = [SCALE, ZERO, SCALE, ZERO]


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "outputs"),
    [
        (
            "Attention",
            [fp32(2, 5, 16), fp32(16, 48), fp32(48), None, fp32(2, 2, 4, 3, 4)],
            {"num_heads": 4},
            [fp32(2, 5, 16), fp32(2, 2, 4, 8, 4)],
        ),
        (
            "Attention",
            [fp32(2, 5, 16), fp32(16, 32)],
            {"num_heads": 4, "qkv_hidden_sizes": (8, 8, 16)},
            [fp32(2, 5, 16)],
        ),
        (
            "MultiHeadAttention",
            [fp32(2, 5, 16), fp32(2, 7, 16), fp32(2, 7, 24)],
            {"num_heads": 4},
            [fp32(2, 5, 24), fp32(2, 4, 7, 4), fp32(2, 4, 7, 6)],
        ),
        (
            "MultiHeadAttention",
            [fp32(2, 5, 4, 3, 4)],
            {"num_heads": 4},
            [fp32(2, 5, 16)],
        ),
        (
            "GroupQueryAttention",
            [fp32(2, 1, 64), None, None, fp32(2, 2, 6, 8), fp32(2, 2, 6, 8)],
            {"num_heads": 4, "kv_num_heads": 2},
            [fp32(2, 1, 32), fp32(2, 2, 7, 8), fp32(2, 2, 7, 8)],
        ),
        (
            "QAttention",
            [u8(2, 5, 16), u8(16, 48), fp32(48), SCALE, SCALE],
            {"num_heads": 4},
            [fp32(2, 5, 16)],
        ),
        (
            "SkipLayerNormalization",
            [fp32(2, 5, 16)] * 2,
            {},
            [fp32(2, 5, 16), fp32(2, 5, 1), fp32(2, 5, 1), fp32(2, 5, 16)],
        ),
        (
            "EmbedLayerNormalization",
            [i64(2, 5), None, fp32(9, 16), fp32(8, 16), None, fp32(16), fp32(16)],
            {},
            [fp32(2, 5, 16), TensorType("int32", (2,)), fp32(2, 5, 16)],
        ),
        ("FusedMatMul", [fp32(2, 5, 3), fp32(2, 4, 3)], {"transB": 1}, [fp32(2, 5, 4)]),
        (
            "FusedMatMul",
            [fp32(3, 2, 5), fp32(2, 3, 4)],
            {"transA": 1, "transBatchA": 1},
            [fp32(2, 5, 4)],
        ),
        ("FusedGemm", [fp32(3, 5), fp32(3, 4)], {"transA": 1}, [fp32(5, 4)]),
        ("MatMulNBits", [fp32(2, 5, 32), u8(24, 1, 16)], {"N": 24}, [fp32(2, 5, 24)]),
        ("QGemm", [u8(5, 3), SCALE, ZERO, u8(3, 4), SCALE, ZERO], {}, [fp32(5, 4)]),
        (
            "QGemm",
            [u8(5, 3), SCALE, ZERO, u8(3, 4), SCALE, ZERO, None, SCALE, ZERO],
            {},
            [u8(5, 4)],
        ),
        ("MatMulIntegerToFloat", [u8(5, 3), u8(3, 4), SCALE, SCALE], {}, [fp32(5, 4)]),
        (
            "FusedConv",
            [fp32(1, 3, 8, 8), fp32(4, 3, 3, 3)],
            {"pads": (1, 1, 1, 1), "strides": (2, 2)},
            [fp32(1, 4, 4, 4)],
        ),
        (
            "FusedConv",
            [fp32(1, 3, 9, 9), fp32(4, 3, 3, 3)],
            {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
            [fp32(1, 4, 5, 5)],
        ),
        (
            "NhwcConv",
            [fp32(1, 8, 8, 4), fp32(16, 3, 3, 4)],
            {},
            [fp32(1, 6, 6, 16)],
        ),
        ("NhwcMaxPool", [u8(1, 8, 8, 3)], {"kernel_shape": (2, 2)}, [u8(1, 7, 7, 3)]),
        (
            "QLinearConv",
            [u8(1, 8, 8, 3), SCALE, ZERO, u8(4, 3, 3, 3), *QUANTISED],
            {"channels_last": 1},
            [u8(1, 6, 6, 4)],
        ),
        (
            "QLinearAveragePool",
            [u8(1, 3, 8, 8), *QUANTISED],
            {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1},
            [u8(1, 3, 4, 4)],
        ),
        (
            "QLinearGlobalAveragePool",
            [u8(1, 8, 8, 3), *QUANTISED],
            {"channels_last": 1},
            [u8(1, 1, 1, 3)],
        ),
        (
            "QLinearConcat",
            [SCALE, ZERO, u8(2, 3), SCALE, ZERO, u8(2, 4), SCALE, ZERO],
            {"axis": 1},
            [u8(2, 7)],
        ),
        (
            "QLinearAdd",
            [u8(2, 1, 3), SCALE, ZERO, u8(4, 3), SCALE, ZERO, SCALE, ZERO],
            {},
            [u8(2, 4, 3)],
        ),
        (
            "DynamicQuantizeLSTM",
            [fp32(5, 2, 3), u8(1, 3, 16), u8(1, 4, 16)],
            {},
            [fp32(5, 1, 2, 4), fp32(1, 2, 4), fp32(1, 2, 4)],
        ),
        ("BiasSplitGelu", [fp32(2, 4, 8), fp32(8)], {}, [fp32(2, 4, 4)]),
        ("QuantizeLinear", [fp32(2, 3), SCALE, ZERO], {}, [u8(2, 3)]),
        ("DequantizeLinear", [u8(2, 3), SCALE, ZERO], {}, [fp32(2, 3)]),
        (
            "GatherBlockQuantized",
            [u8(8, 16), i64(3), fp32(8, 2)],
            {"bits": 4, "quantize_axis": 1},
            [fp32(3, 32)],
        ),
        ("GridSample", [fp32(1, 3, 8, 8), fp32(1, 4, 5, 2)], {}, [fp32(1, 3, 4, 5)]),
    ],
)
def test_output_types_follow_the_inputs(kind, inputs, attributes, outputs):
    """Each output has the dtype and shape that the op's definition gives."""
    view = op(kind, inputs, [None] * len(outputs), MS, attributes)
    assert infer_outputs(view) == tuple(outputs)


@pytest.mark.parametrize(
    ("kind", "inputs", "constants", "output"),
    [
        ("CropAndResize", [fp32(1, 3, 8, 8), fp32(5, 4), i64(5), i64(2)], {3: [4, 6]},
         fp32(5, 3, 4, 6)),
        ("ExpandDims", [fp32(2, 3), i64()], {1: -1}, fp32(2, 3, 1)),
        ("Range", [fp32()] * 3, {0: 0.0, 1: 5.0, 2: 2.0}, fp32(3)),
        ("Pad", [fp32(2, 3), i64(4)], {1: [0, 1, 1, 2]}, fp32(3, 6)),
        ("RelativePositionBias", [fp32(32, 4), i64(), i64()], {1: 5, 2: 7},
         fp32(1, 4, 5, 7)),
    ],
)  # fmt: skip
def test_output_types_follow_known_values(kind, inputs, constants, output):
    """A shape that is data is inferred where the data is known, and None elsewhere."""
    assert infer_outputs(op(kind, inputs, [None], MS, constants=constants)) == (output,)
    assert infer_outputs(op(kind, inputs, [None], MS)) is None


def test_cache_length_follows_the_total_length():
    """A shared cache of 9 positions stays, with 7 in use."""
    view = op(
        "GroupQueryAttention",
        [fp32(2, 1, 64), None, None, fp32(2, 2, 9, 8), fp32(2, 2, 9, 8), i64(2), i64()],
        [None, None, None],
        MS,
        {"num_heads": 4, "kv_num_heads": 2},
        constants={6: 7},
    )
    assert infer_outputs(view)[1] == fp32(2, 2, 9, 8)


def test_simplified_normalization_of_the_default_domain_has_a_shape():
    """Onnxruntime writes SimplifiedLayerNormalization without its own domain."""
    view = op("SimplifiedLayerNormalization", [fp32(2, 5), fp32(5)], [None, None])
    assert infer_outputs(view) == (fp32(2, 5), fp32(2, 1))


def test_no_shape_rule_and_unknown_inputs_answer_none():
    """An op of another domain, and an op whose deciding input is unknown."""
    assert infer_outputs(op("Gelu", [fp32(2)], [None], "my.dom")) is None
    assert infer_outputs(op("FusedMatMul", [fp32(2, 3), None], [None], MS)) is None
    assert infer_outputs(op("MatMul", [fp32(2, 3), fp32(3, 4)], [None])) is None


def test_an_output_beyond_the_rule_stays_unknown():
    """The answer has one entry for each output of the op."""
    view = op("Gelu", [fp32(2)], [None, None], MS)
    assert infer_outputs(view) == (fp32(2), None)


def test_a_range_that_never_moves_has_no_shape():
    """A step of 0 is no shape, and no division by it."""
    constants = {0: np.float32(0), 1: np.float32(5), 2: np.float32(0)}
    view = op("Range", [fp32()] * 3, [None], MS, constants=constants)
    assert infer_outputs(view) is None
