import pytest

from mcmpart.frontends.op_costs import cost_of

from .op_views import MS, fp32, op, u8

# Sigmoid 6, tanh 8 FLOPs: i, f, o and g, then c and h.
LSTM_UNIT = 3 * 6 + 2 * 8 + 4


def test_lstm_multiplies_four_gates_for_each_step():
    """7 steps, batch 2, 5 inputs, 3 units: one [12, 8] product for each of 14 rows."""
    view = op(
        "LSTM",
        [fp32(7, 2, 5), fp32(1, 12, 5), fp32(1, 12, 3)],
        [fp32(7, 1, 2, 3), fp32(1, 2, 3), fp32(1, 2, 3)],
        attributes={"hidden_size": 3},
    )
    cost = cost_of(view)
    assert cost.gemm == (14, 12, 8)
    assert cost.flops == 2 * 14 * 12 * 8 + 14 * 3 * LSTM_UNIT
    assert cost.bytes == 4 * (70 + 60 + 36 + 42 + 6 + 6)


def test_bidirectional_lstm_doubles_the_rows():
    """Two directions run over the same steps; bias 8 and peepholes 6 FLOPs a unit."""
    view = op(
        "LSTM",
        [
            *(fp32(7, 2, 5), fp32(2, 12, 5), fp32(2, 12, 3), fp32(2, 24)),
            *(None, None, None, fp32(2, 9)),
        ],
        [fp32(7, 2, 2, 3)],
        attributes={"hidden_size": 3, "direction": "bidirectional"},
    )
    cost = cost_of(view)
    assert cost.gemm == (28, 12, 8)
    assert cost.flops == 2 * 28 * 12 * 8 + 28 * 3 * (LSTM_UNIT + 8 + 6)


@pytest.mark.parametrize(
    ("kind", "gates", "unit"), [("GRU", 3, 2 * 6 + 8 + 5), ("RNN", 1, 8)]
)
def test_gru_and_rnn_have_three_gates_and_one(kind, gates, unit):
    """The hidden size follows from R where the attribute is missing."""
    view = op(
        kind,
        [fp32(7, 2, 5), fp32(1, 3 * gates, 5), fp32(1, 3 * gates, 3)],
        [fp32(7, 1, 2, 3)],
    )
    cost = cost_of(view)
    assert cost.flops == 2 * 14 * 3 * gates * 8 + 42 * unit


def test_quantised_lstm_stores_its_weights_transposed():
    """DynamicQuantizeLSTM keeps R as [D, H, 4 H]."""
    view = op(
        "DynamicQuantizeLSTM",
        [fp32(7, 2, 5), u8(1, 5, 12), u8(1, 3, 12)],
        [fp32(7, 1, 2, 3)],
        MS,
    )
    assert cost_of(view).gemm == (14, 12, 8)
