"""Generators of real convolutional networks whose branches part and meet again.

The default sizes are those of the published models, as int8: one byte per element. A
batch normalisation is one scale and one shift per channel, as it is after training.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mcmpart.graph._layers import concat, conv_unit, linear, pool
from mcmpart.graph._sized import SizedBuilder
from mcmpart.graph.graph import Graph


class _Layer(NamedTuple):
    """A convolution of a branch, in the order of the arguments of ``conv_unit``."""

    channels: int
    kernel: tuple[int, int]
    stride: int
    padded: bool


class _Module(NamedTuple):
    """A module of Inception: its branches of layers, and what follows its pool.

    ``pooled`` is the layer behind an average pool; a module without it ends a grid and
    has a maximum pool of stride 2. In the branches that ``splits`` names the last two
    layers stand side by side.
    """

    branches: tuple[tuple[_Layer, ...], ...]
    pooled: _Layer | None = None
    splits: tuple[int, ...] = ()


def inception(
    modules: tuple[int, int, int] = (3, 4, 2),
    *,
    channels: int = 32,
    side: int = 299,
    classes: int = 1000,
) -> Graph:
    """Return Inception-v3 without its auxiliary head: 313 ops.

    Every module concatenates branches of unequal depth, and a reduction stands between
    two grids. On the last grid two branches end in a 1x3 and a 3x1 convolution side by
    side, which have a Concat of their own.

    Parameters
    ----------
    modules
        Number of modules on each of the three grids, without the two reductions.
    channels
        Channels of the first convolution, even; all others grow in proportion.
    side, classes
        Side of the image ``x``, and number of scores.

    References
    ----------
    C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision",
    CVPR 2016, Table 1.
    """
    net = SizedBuilder("inception_" + "_".join(map(str, modules)))
    x = net.host("x", (3, side, side))
    x = conv_unit(net, "stem_0", x, channels, (3, 3), stride=2, padded=False)
    x = conv_unit(net, "stem_1", x, channels, (3, 3), padded=False)
    x = conv_unit(net, "stem_2", x, 2 * channels, (3, 3))
    x = pool(net, "pool_0", "MaxPool", x, stride=2, padded=False)
    x = conv_unit(net, "stem_3", x, 80 * channels // 32)
    x = conv_unit(net, "stem_4", x, 6 * channels, (3, 3), padded=False)
    x = pool(net, "pool_1", "MaxPool", x, stride=2, padded=False)
    for name, module in _inception_modules(modules, channels):
        x = _inception_module(net, name, x, module)
    return net.build(_classifier(net, x, classes))


def resnet(
    stages: tuple[int, ...] = (3, 4, 6, 3),
    *,
    channels: int = 64,
    side: int = 224,
    classes: int = 1000,
) -> Graph:
    """Return a residual network of bottleneck blocks, ResNet-50: 175 ops.

    A block adds its input to three convolutions. The first block of a stage widens it,
    and from the second stage on halves its side, so its shortcut is a convolution too.

    Parameters
    ----------
    stages
        Number of blocks of each stage.
    channels
        Channels of the first convolution; stage s writes ``4 * channels * 2**s``.
    side, classes
        Side of the image ``x``, and number of scores.

    References
    ----------
    K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, Table 1;
    the stride is that of the 3x3 convolution, as in most trained models.
    """
    net = SizedBuilder("resnet_" + "_".join(map(str, stages)))
    x = net.host("x", (3, side, side))
    x = conv_unit(net, "stem", x, channels, (7, 7), stride=2)
    x = pool(net, "pool", "MaxPool", x, stride=2)
    for stage, num_blocks in enumerate(stages):
        for block in range(num_blocks):
            stride = 2 if stage and not block else 1
            name = f"s{stage}.b{block}"
            x = _bottleneck(net, name, x, channels << stage, stride, first=block == 0)
    return net.build(_classifier(net, x, classes))


def shufflenet(
    stages: tuple[int, ...] = (4, 8, 4),
    *,
    channels: int = 116,
    side: int = 224,
    classes: int = 1000,
) -> Graph:
    """Return a ShuffleNet-v2: 230 ops.

    A unit splits its channels (one op, two tensors), convolves one half, concatenates
    and shuffles. The first unit of a stage convolves all of its input in two branches,
    of stride 2.

    Parameters
    ----------
    stages
        Number of units of each stage.
    channels
        Channels of the first stage, even; each next stage has twice as many.
    side, classes
        Side of the image ``x``, and number of scores.

    References
    ----------
    N. Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture
    Design", ECCV 2018, Figure 3 and Table 5.
    """
    net = SizedBuilder("shufflenet_" + "_".join(map(str, stages)))
    x = net.host("x", (3, side, side))
    x = conv_unit(net, "stem", x, 24, (3, 3), stride=2)
    x = pool(net, "pool", "MaxPool", x, stride=2)
    for stage, num_units in enumerate(stages):
        half = (channels << stage) // 2
        for unit in range(num_units):
            name = f"s{stage}.u{unit}"
            if unit == 0:
                kept = _depthwise(net, f"{name}.keep_0", x, stride=2)
                kept = conv_unit(net, f"{name}.keep_1", kept, half)
            else:
                shape = (half, *net.shape[x][1:])
                split = f"{name}.split"
                kept = net.op(split, "Split", (x,), shape, extra=(shape,))
                (x,) = net.extra_names(split, 1)
            x = conv_unit(net, f"{name}.0", x, half)
            x = _depthwise(net, f"{name}.1", x, stride=1 if unit else 2)
            x = conv_unit(net, f"{name}.2", x, half)
            x = _shuffle(net, name, concat(net, f"{name}.concat", [kept, x]))
    x = conv_unit(net, "last", x, 1024)
    return net.build(_classifier(net, x, classes))


def _inception_modules(
    counts: tuple[int, int, int], channels: int
) -> Iterator[tuple[str, _Module]]:
    """Yield the modules of Inception-v3 in order, each with its name."""

    def layer(base: int, height: int = 1, width: int = 1, stride: int = 1) -> _Layer:
        # What ends a grid takes whole windows only.
        padded = stride == 1
        return _Layer(base * channels // 32, (height, width), stride, padded)

    one, five = (layer(64),), (layer(48), layer(64, 5, 5))
    start, end = (layer(64), layer(96, 3, 3)), layer(96, 3, 3)
    for i in range(counts[0]):
        yield f"a{i}", _Module((one, five, (*start, end)), layer(64 if i else 32))
    yield "reduce_0", _Module(((layer(384, 3, 3, 2),), (*start, layer(96, 3, 3, 2))))
    for i in range(counts[1]):
        # The factored 7x7 convolutions widen from module to module.
        base = 128 if i == 0 else 192 if i == counts[1] - 1 else 160
        first, flat, tall = layer(base), layer(base, 1, 7), layer(base, 7, 1)
        once = (first, flat, layer(192, 7, 1))
        twice = (first, tall, flat, tall, layer(192, 1, 7))
        yield f"b{i}", _Module(((layer(192),), once, twice), layer(192))
    factored = (layer(192), layer(192, 1, 7), layer(192, 7, 1), layer(192, 3, 3, 2))
    yield "reduce_1", _Module(((layer(192), layer(320, 3, 3, 2)), factored))
    sides = (layer(384, 1, 3), layer(384, 3, 1))
    short, long = (layer(384), *sides), (layer(448), layer(384, 3, 3), *sides)
    for i in range(counts[2]):
        branches = ((layer(320),), short, long)
        yield f"c{i}", _Module(branches, layer(192), splits=(1, 2))


def _inception_module(net: SizedBuilder, name: str, x: str, module: _Module) -> str:
    """Add the branches, the pool last, and their Concat."""
    ends = []
    for b, layers in enumerate(module.branches):
        at, end = f"{name}.{b}", x
        split = len(layers) - (2 if b in module.splits else 0)
        for i, layer in enumerate(layers[:split]):
            end = conv_unit(net, f"{at}.{i}", end, *layer)
        sides = [
            conv_unit(net, f"{at}.{i}", end, *layers[i])
            for i in range(split, len(layers))
        ]
        ends.append(concat(net, f"{at}.concat", sides) if sides else end)
    if module.pooled:
        end = pool(net, f"{name}.pool", "AveragePool", x)
        end = conv_unit(net, f"{name}.pooled", end, *module.pooled)
    else:
        end = pool(net, f"{name}.pool", "MaxPool", x, stride=2, padded=False)
    return concat(net, f"{name}.concat", [*ends, end])


def _bottleneck(
    net: SizedBuilder, name: str, x: str, width: int, stride: int, *, first: bool
) -> str:
    body = conv_unit(net, f"{name}.0", x, width)
    body = conv_unit(net, f"{name}.1", body, width, (3, 3), stride=stride)
    body = conv_unit(net, f"{name}.2", body, 4 * width, relu=False)
    if first:
        x = conv_unit(net, f"{name}.down", x, 4 * width, stride=stride, relu=False)
    total = net.pointwise(f"{name}.add", "Add", (x, body))
    return net.pointwise(f"{name}.relu", "Relu", (total,))


def _depthwise(net: SizedBuilder, name: str, x: str, stride: int) -> str:
    width = net.shape[x][0]
    return conv_unit(
        net, name, x, width, (3, 3), stride=stride, groups=width, relu=False
    )


def _shuffle(net: SizedBuilder, name: str, x: str) -> str:
    """Interleave the two halves of the channels."""
    width, *size = net.shape[x]
    pairs = net.view(f"{name}.pair", "Reshape", x, (2, width // 2, *size))
    turned = (width // 2, 2, *size)
    mixed = net.pointwise(f"{name}.mix", "Transpose", (pairs,), turned, per_item=0)
    return net.view(f"{name}.flat", "Reshape", mixed, (width, *size))


def _classifier(net: SizedBuilder, x: str, classes: int) -> str:
    """Add the mean of each channel and one linear layer: 3 ops."""
    width = net.shape[x][0]
    means = net.pointwise("head.mean", "GlobalAveragePool", (x,), (width, 1, 1))
    flat = net.view("head.flat", "Flatten", means, (1, width))
    return linear(net, "head", flat, classes)
