import pytest

from mcmpart.frontends.op_costs import OpCost, cost_of

from .op_views import MS, TensorType, fp32, i64, op, u8

VIEWS = [
    *("BitCast", "Constant", "Dropout", "Expand", "Flatten", "Identity", "Optional"),
    *("OptionalGetElement", "OptionalHasElement", "Reshape", "SequenceAt"),
    *("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
    *("SequenceLength", "Shape", "Size", "Squeeze", "Unsqueeze"),
]


@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_costs_exactly_nothing(kind):
    """A view moves no byte however large its tensor is."""
    assert cost_of(op(kind, [fp32(1000, 1000)], [fp32(1000, 1000)])) == OpCost(0, 0)


def test_dropout_in_training_draws():
    """training_mode = true makes Dropout an elementwise op."""
    inputs = [fp32(4), fp32(), TensorType("bool", ())]
    view = op("Dropout", inputs, [fp32(4)], constants={2: True})
    assert cost_of(view).flops == 40


@pytest.mark.parametrize(
    "kind", ["Transpose", "Concat", "Split", "Tile", "DepthToSpace", "ReverseSequence"]
)
def test_a_copy_reads_and_writes_its_bytes(kind):
    """Input and output of 24 elements move once each, with no FLOP."""
    assert cost_of(op(kind, [fp32(4, 6)], [fp32(6, 4)])) == OpCost(0, 192)


def test_a_slice_reads_what_it_writes():
    """Two elements of a million cost 16 bytes."""
    cost = cost_of(op("Slice", [fp32(10**6), i64(1), i64(1)], [fp32(2)]))
    assert cost == OpCost(0, 16)


@pytest.mark.parametrize("kind", ["ConstantOfShape", "Range", "EyeLike"])
def test_a_created_tensor_is_written_only(kind):
    """Ten float32 are 40 bytes."""
    assert cost_of(op(kind, [i64(1)], [fp32(10)])) == OpCost(0, 40)


def test_scatter_copies_its_data():
    """Data in, data out, indices and updates; an addition is one FLOP each."""
    shapes = ([fp32(10, 4), i64(2, 1), fp32(2, 4)], [fp32(10, 4)])
    moved = 160 + 16 + 32 + 160
    assert cost_of(op("ScatterND", *shapes)) == OpCost(0, moved)
    added = op("ScatterND", *shapes, attributes={"reduction": "add"})
    assert cost_of(added) == OpCost(8, moved)


def test_cast_like_reads_no_byte_of_its_second_input():
    """Eight uint8 in, eight float32 out."""
    cost = cost_of(op("CastLike", [u8(8), fp32(1000)], [fp32(8)]))
    assert cost == OpCost(8, 8 + 32)


@pytest.mark.parametrize(
    ("mode", "flops"), [("nearest", 1), ("linear", 8), ("cubic", 32)]
)
def test_resize_weighs_the_taps_of_two_axes(mode, flops):
    """2 taps an axis make 4 multiply-adds, 4 taps make 16."""
    view = op(
        "Resize",
        [fp32(1, 1, 2, 2), None, fp32(4)],
        [fp32(1, 1, 4, 4)],
        attributes={"mode": mode},
    )
    assert cost_of(view).flops == 16 * flops


def test_top_k_compares_along_a_heap():
    """The best 4 of 3 x 100 take two comparisons each."""
    view = op("TopK", [fp32(3, 100), i64(1)], [fp32(3, 4), i64(3, 4)])
    assert cost_of(view).flops == 600


def test_quantised_gather_reads_packed_rows():
    """Three rows of 32 int4 values are 48 bytes."""
    view = op(
        "GatherBlockQuantized",
        [u8(1000, 16), i64(3), fp32(1000, 2)],
        [fp32(3, 32)],
        MS,
        {"bits": 4},
    )
    assert cost_of(view).bytes == 24 + 48 + 384
