"""Tests of the convolutional networks whose branches part and meet again."""

import numpy as np
import pytest

from mcmpart.graph.branchy import inception, resnet, shufflenet


def reads(graph, name):
    """Return the tensors that the op reads, by name and in ascending order."""
    row = graph.reads.row(graph.op_name.index(name))
    return [graph.tensor_name[t] for t in row]


def readers(graph, name):
    """Return the names of the ops that read the tensor."""
    row = graph.consumers.row(graph.tensor_name.index(name))
    return [graph.op_name[op] for op in row]


def shape(graph, op):
    """Return the shape of the op's first tensor."""
    return graph.tensor_shape[graph.tensor_name.index(f"{op}:0")]


def flops(graph, op):
    """Return the FLOPs of the op."""
    return graph.op_flops[graph.op_name.index(op)]


@pytest.mark.parametrize(
    ("make", "num_ops", "parameters", "giga_macs"),
    [
        # With its auxiliary head, 3,326,696 parameters more: 27,161,264.
        (inception, 313, 23_834_568, 5.713),
        (resnet, 175, 25_557_032, 4.089),
        (shufflenet, 230, 2_278_604, 0.145),
    ],
)
def test_published_size(make, num_ops, parameters, giga_macs):
    """The networks have the parameters and multiply-adds that torchvision lists."""
    graph = make()
    assert graph.num_ops == num_ops
    assert graph.weight_bytes.sum() == parameters
    multiplies = graph.op_gemm.prod(axis=1).sum()
    assert round(multiplies / 1e9, 3) == giga_macs
    products = np.isin(graph.op_kind, ["Conv", "Gemm"])
    # A multiply-add counts 2; the head adds a bias to each of 1,000 scores.
    assert graph.op_flops[products].sum() == 2 * multiplies + 1000


def test_inception_op_counts():
    """The ops of each kind of module add up."""
    # Ops: convolutions, three each, then pools and Concats.
    stem, head = 5 * 3 + 2, 3
    module = {"a": 7 * 3 + 2, "b": 10 * 3 + 2, "c": 9 * 3 + 1 + 3}
    reductions = (4 * 3 + 2) + (6 * 3 + 2)
    graph = inception((2, 1, 3), channels=2, side=75)
    modules = 2 * module["a"] + module["b"] + 3 * module["c"]
    assert graph.num_ops == stem + modules + reductions + head


def test_inception_concats():
    """A module joins four branches, a reduction three."""
    graph = inception((1, 1, 1), channels=2, side=75)
    ends = {
        name: reads(graph, f"{name}.concat")
        for name in ("a0", "reduce_0", "b0", "reduce_1", "c0")
    }
    assert [len(tensors) for tensors in ends.values()] == [4, 3, 4, 3, 4]
    assert ends["b0"] == [
        "b0.0.0.relu:0",
        "b0.1.2.relu:0",
        "b0.2.4.relu:0",
        "b0.pooled.relu:0",
    ]
    assert ends["reduce_1"][-1] == "reduce_1.pool:0"
    # Three convolutions and the pool start from the module before.
    starts = ["b0.0.0.conv", "b0.1.0.conv", "b0.2.0.conv", "b0.pool"]
    assert readers(graph, "reduce_0.concat:0") == starts


def test_inception_split_ends():
    """On the last grid two convolutions read one tensor and meet in a Concat."""
    graph = inception((0, 0, 1), channels=2, side=75)
    assert readers(graph, "c0.2.1.relu:0") == ["c0.2.2.conv", "c0.2.3.conv"]
    assert reads(graph, "c0.2.concat") == ["c0.2.2.relu:0", "c0.2.3.relu:0"]
    assert readers(graph, "c0.2.concat:0") == ["c0.concat"]


def test_inception_grids():
    """The grids are 35, 17 and 8 wide and hold 288, 768 and 2,048 channels."""
    graph = inception()
    assert shape(graph, "stem_0.conv") == (32, 149, 149)
    assert shape(graph, "pool_1") == (192, 35, 35)
    assert shape(graph, "a0.concat") == (256, 35, 35)
    assert shape(graph, "a2.concat") == (288, 35, 35)
    assert shape(graph, "reduce_0.concat") == (768, 17, 17)
    assert shape(graph, "b3.concat") == (768, 17, 17)
    assert shape(graph, "reduce_1.concat") == (1280, 8, 8)
    assert shape(graph, "c1.concat") == (2048, 8, 8)


def test_inception_flops():
    """A 1x7 convolution, a normalisation and the two pools cost what they compute."""
    graph = inception()
    assert flops(graph, "b0.1.1.conv") == 2 * (128 * 17 * 17) * (128 * 7)
    assert flops(graph, "b0.1.1.norm") == 2 * 128 * 17 * 17
    # Nine taps for each output, which the average also divides.
    assert flops(graph, "reduce_0.pool") == 9 * 288 * 17 * 17
    assert flops(graph, "a0.pool") == 10 * 192 * 35 * 35
    conv = graph.op_name.index("b0.1.1.conv")
    assert graph.op_bytes[conv] == 2 * 128 * 17 * 17 + 128 * 128 * 7


def test_resnet_shortcuts():
    """A shortcut is the block's input, or a convolution where a stage starts."""
    graph = resnet((2, 3), channels=2, side=32)
    shortcuts = {
        "s0.b0": "s0.b0.down.norm:0",
        "s0.b1": "s0.b0.relu:0",
        "s1.b0": "s1.b0.down.norm:0",
        "s1.b1": "s1.b0.relu:0",
        "s1.b2": "s1.b1.relu:0",
    }
    for block, shortcut in shortcuts.items():
        assert set(reads(graph, f"{block}.add")) == {shortcut, f"{block}.2.norm:0"}
    assert readers(graph, "s0.b1.relu:0") == ["s1.b0.0.conv", "s1.b0.down.conv"]
    assert graph.op_kind.count("Add") == 5


def test_resnet_hand_worked():
    """The sizes of one narrow block are those worked out by hand."""
    graph = resnet((1,), channels=2, side=8, classes=3)
    # Stem 3, pool 1, block 3 + 3 + 2 + 2 + 2, head 3.
    assert graph.num_ops == 19
    stem, head = 2 * 3 * 49 + 4, 8 * 3 + 3
    block = (2 * 2 + 4) + (2 * 2 * 9 + 4) + (2 * 8 + 16)
    down = 2 * 8 + 16
    assert graph.weight_bytes.sum() == stem + block + down + head
    # Stem and pool of stride 2: 8 x 8 becomes 4 x 4, then 2 x 2.
    assert flops(graph, "stem.conv") == 2 * (2 * 4 * 4) * (3 * 49)
    assert flops(graph, "s0.b0.1.conv") == 2 * (2 * 2 * 2) * (2 * 9)
    assert flops(graph, "head") == 2 * 8 * 3 + 3


def test_resnet_sides():
    """Each stage but the first halves the side and doubles the channels."""
    graph = resnet()
    lasts = ["s0.b2", "s1.b3", "s2.b5", "s3.b2"]
    shapes = [shape(graph, f"{block}.relu") for block in lasts]
    assert shapes == [(256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]
    assert shape(graph, "s1.b0.0.conv") == (128, 56, 56)


def test_shufflenet_split():
    """A unit splits off half of its channels, which goes straight to the Concat."""
    graph = shufflenet()
    split = graph.op_name.index("s0.u1.split")
    halves = graph.writes.row(split)
    assert [graph.tensor_shape[t] for t in halves] == [(58, 28, 28)] * 2
    assert readers(graph, "s0.u1.split:0") == ["s0.u1.concat"]
    assert readers(graph, "s0.u1.split:1") == ["s0.u1.0.conv"]
    assert readers(graph, "s0.u1.2.relu:0") == ["s0.u1.concat"]
    assert graph.op_bytes[split] == 2 * 116 * 28 * 28


def test_shufflenet_down():
    """The first unit of a stage convolves its whole input in two branches."""
    graph = shufflenet()
    starts = ["s1.u0.0.conv", "s1.u0.keep_0.conv"]
    assert sorted(readers(graph, "s0.u3.flat:0")) == starts
    branches = ["s1.u0.2.relu:0", "s1.u0.keep_1.relu:0"]
    assert sorted(reads(graph, "s1.u0.concat")) == branches
    assert shape(graph, "s0.u3.flat") == (116, 28, 28)
    assert shape(graph, "s1.u0.concat") == (232, 14, 14)
    assert graph.op_kind.count("Split") == 16 - 3


def test_shufflenet_depthwise():
    """A depthwise convolution reads one channel for each that it writes."""
    graph = shufflenet()
    assert flops(graph, "s0.u1.1.conv") == 2 * (58 * 28 * 28) * 9
    weights = graph.weights_of.row(graph.op_name.index("s0.u1.1.conv"))
    assert graph.weight_bytes[weights].tolist() == [58 * 9]


def test_shufflenet_shuffle():
    """A shuffle is a transpose that moves bytes, between two free views."""
    graph = shufflenet()
    ops = [graph.op_name.index(f"s0.u1.{step}") for step in ("pair", "mix", "flat")]
    assert [graph.op_kind[op] for op in ops] == ["Reshape", "Transpose", "Reshape"]
    assert graph.op_bytes[ops].tolist() == [0, 2 * 116 * 28 * 28, 0]
    assert shape(graph, "s0.u1.pair") == (2, 58, 28, 28)
    assert shape(graph, "s0.u1.mix") == (58, 2, 28, 28)
