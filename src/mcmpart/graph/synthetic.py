"""Seeded generators of computation graphs: toys, shapes of the field, random DAGs.

Sizes are those of int8 models: one byte per element.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcmpart.graph._layers import conv
from mcmpart.graph._sized import SizedBuilder
from mcmpart.graph.graph import Graph


def chain(
    num_ops: int,
    *,
    flops: int | Sequence[int] = 2_000_000,
    tensor_bytes: int | Sequence[int] = 16_384,
    weight_bytes: int | Sequence[int] = 0,
    seconds: Sequence[float] | None = None,
) -> Graph:
    """Return x -> op_0 -> op_1 -> ... ; the last tensor is the model output.

    Parameters
    ----------
    num_ops
        Number of ops, 1 or more.
    flops, tensor_bytes, weight_bytes
        One number for all ops or one per op: FLOPs, bytes of the tensor it writes,
        bytes of its own weight (0: none). Op 0 reads the HOST tensor ``x``, as large
        as its output.
    seconds
        Measured time of each op; None leaves the times to the cost model.
    """
    flops_of, out_of = _each(flops, num_ops), _each(tensor_bytes, num_ops)
    weight_of = _each(weight_bytes, num_ops)
    net = SizedBuilder(f"chain_{num_ops}")
    last = net.host("x", (out_of[0],))
    for i in range(num_ops):
        last = net.op(
            f"op_{i}",
            "Op",
            (last,),
            (out_of[i],),
            flops=flops_of[i],
            weights=(weight_of[i],) if weight_of[i] else (),
            seconds=None if seconds is None else seconds[i],
        )
    return net.build(last)


def diamond(
    width: int = 2, *, flops: int = 2_000_000, tensor_bytes: int = 16_384
) -> Graph:
    """Return source -> ``width`` parallel ops -> sink, all alike.

    The source's tensor has ``width`` consumers; the sink reads ``width`` tensors.
    """
    net = SizedBuilder(f"diamond_{width}")
    shape = (tensor_bytes,)
    source = net.op("source", "Op", (net.host("x", shape),), shape, flops=flops)
    arms = [
        net.op(f"arm_{i}", "Op", (source,), shape, flops=flops) for i in range(width)
    ]
    return net.build(net.op("sink", "Op", tuple(arms), shape, flops=flops))


def residual(
    num_blocks: int,
    *,
    ops_per_block: int = 3,
    flops: int = 2_000_000,
    tensor_bytes: int = 16_384,
    weight_bytes: int = 65_536,
) -> Graph:
    """Return blocks of ``ops_per_block`` ops in a row, each block bridged by an Add.

    A block is x -> body -> Add(x, body), so it has ``ops_per_block + 1`` ops.
    """
    net = SizedBuilder(f"residual_{num_blocks}x{ops_per_block}")
    shape = (tensor_bytes,)
    trunk = net.host("x", shape)
    for block in range(num_blocks):
        last = trunk
        for i in range(ops_per_block):
            last = net.op(
                f"b{block}.op_{i}",
                "Op",
                (last,),
                shape,
                flops=flops,
                weights=(weight_bytes,),
            )
        trunk = net.pointwise(f"b{block}.add", "Add", (trunk, last))
    return net.build(trunk)


def inception_like(
    num_blocks: int = 9, *, branches: int = 4, channels: int = 256, side: int = 28
) -> Graph:
    """Return blocks of parallel convolution branches of unequal depth, concatenated.

    Branch b of a block holds b + 1 convolutions (the last branch a pool in front), as
    in C. Szegedy et al., "Going deeper with convolutions", CVPR 2015. For a network as
    trained, see :func:`mcmpart.graph.branchy.inception`.
    """
    net = SizedBuilder(f"inception_{num_blocks}x{branches}")
    last = net.host("x", (channels, side, side))
    for block in range(num_blocks):
        ends = []
        for branch in range(branches):
            name = f"b{block}.{branch}"
            end = last
            if branch == branches - 1:
                end = net.pointwise(f"{name}.pool", "MaxPool", (end,))
            width = max(channels // branches, 1)
            for i in range(branch + 1):
                kernel = (3, 3) if i else (1, 1)
                end = conv(net, f"{name}.conv_{i}", end, width, kernel)
            ends.append(end)
        width = sum(net.shape[end][0] for end in ends)
        last = net.pointwise(
            f"b{block}.concat", "Concat", tuple(ends), (width, side, side), per_item=0
        )
    return net.build(last)


def unet_like(depth: int = 4, *, channels: int = 32, side: int = 128) -> Graph:
    """Return an encoder and a decoder of ``depth`` levels with long skips between.

    Level d has ``channels * 2**d`` channels at ``side / 2**d``; the skip of level d
    jumps over all deeper levels, as in O. Ronneberger et al., "U-Net", MICCAI 2015.
    """
    net = SizedBuilder(f"unet_{depth}")
    last = net.host("x", (channels, side, side))
    skips = []
    for level in range(depth):
        width, size = channels << level, max(side >> level, 1)
        for i in range(2):
            last = conv(net, f"down_{level}.conv_{i}", last, width, (3, 3))
            last = net.pointwise(f"down_{level}.relu_{i}", "Relu", (last,))
        skips.append(last)
        half = (width, max(size // 2, 1), max(size // 2, 1))
        last = net.pointwise(f"down_{level}.pool", "MaxPool", (last,), half)
    last = conv(net, "middle.conv", last, channels << depth, (3, 3))
    for level in reversed(range(depth)):
        width, skip = channels << level, skips[level]
        size = net.shape[skip][1]
        up = (net.shape[last][0], size, size)
        last = net.pointwise(f"up_{level}.resize", "Resize", (last,), up)
        last = conv(net, f"up_{level}.conv", last, width, (3, 3))
        joined = (2 * width, size, size)
        last = net.pointwise(
            f"up_{level}.concat", "Concat", (skip, last), joined, per_item=0
        )
        for i in range(2):
            last = conv(net, f"up_{level}.conv_{i}", last, width, (3, 3))
            last = net.pointwise(f"up_{level}.relu_{i}", "Relu", (last,))
    return net.build(last)


def transformer(
    num_layers: int = 36,
    *,
    hidden: int = 768,
    heads: int = 12,
    sequence: int = 128,
    vocabulary: int = 30_522,
    tied_head: bool = False,
) -> Graph:
    """Return an int8 BERT-like encoder of 58 ops a layer: 2,105 ops at 36 layers.

    Layer norm, softmax and GELU are written out in small ops as exporters write them.
    Every layer reads one mask, made by five small ops from a HOST tensor. With
    ``tied_head`` one more MatMul with the embedding table gives the logits.

    References
    ----------
    J. Devlin et al., "BERT", NAACL 2019, for the sizes; D. Hendrycks and K. Gimpel,
    arXiv 1606.08415, for the tanh form of GELU.
    """
    net = SizedBuilder(f"transformer_{num_layers}")
    ids, positions = net.host("ids", (sequence,)), net.host("positions", (sequence,))
    mask = net.host("mask", (sequence,))
    for kind, shape in (
        ("Unsqueeze", (1, sequence)),
        ("Unsqueeze", (1, 1, sequence)),
        ("Cast", (1, 1, sequence)),
        ("Sub", (1, 1, sequence)),
        ("Mul", (1, 1, sequence)),
    ):
        count = len(net.shape)
        name = f"mask.{kind.lower()}_{count}"
        if kind == "Unsqueeze":
            mask = net.view(name, kind, mask, shape)
        else:
            mask = net.pointwise(name, kind, (mask,), shape)
    wide = (sequence, hidden)
    table = net.weight("embedding", (vocabulary, hidden))
    words = net.gather("words", ids, table, wide)
    places = net.gather("places", positions, net.weight("pos", wide), wide)
    x = net.pointwise("embed.add", "Add", (words, places))
    x = _layer_norm(net, "embed.norm", x)
    for layer in range(num_layers):
        x = _attention(net, f"l{layer}.attn", x, mask, heads)
        x = _layer_norm(net, f"l{layer}.norm_0", x)
        x = _feed_forward(net, f"l{layer}.ff", x, 4 * hidden)
        x = _layer_norm(net, f"l{layer}.norm_1", x)
    if not tied_head:
        return net.build(x)
    logits = (sequence, vocabulary)
    return net.build(
        net.op(
            "head",
            "MatMul",
            (x,),
            logits,
            flops=2 * sequence * hidden * vocabulary,
            tied=(table,),
            gemm=(sequence, vocabulary, hidden),
        )
    )


def random_dag(
    num_ops: int,
    rng: np.random.Generator,
    edge_probability: float = 0.3,
    *,
    reach: int = 16,
    view_probability: float = 0.1,
    output_probability: float = 0.05,
    tie_probability: float = 0.2,
    max_flops: int = 4_000_000,
    max_tensor_bytes: int = 65_536,
    max_weight_bytes: int = 262_144,
) -> Graph:
    """Return a random DAG: HOST inputs, shared tensors, tied weights, views.

    Parameters
    ----------
    num_ops
        Number of ops, 1 or more.
    rng
        Source of all choices.
    edge_probability
        Chance in [0, 1] that an op reads a given tensor of the ``reach`` ops before it
        (every fifth op or so writes two tensors). An op that reads none of them, or one
        in ten, reads one of two HOST tensors.
    view_probability
        Chance of an op without FLOPs, bytes and weights.
    output_probability
        Chance that a tensor is a model output although it is read; tensors that nobody
        reads always are.
    tie_probability
        Chance that an op with a weight uses one that an earlier op has.
    max_flops, max_tensor_bytes, max_weight_bytes
        Sizes are uniform from 1 to these.
    """
    net = SizedBuilder(f"random_{num_ops}")
    hosts = [net.host(f"x_{i}", (int(rng.integers(1, 4096)),)) for i in range(2)]
    written: list[tuple[str, ...]] = []
    read: set[str] = set()
    weights: list[str] = []
    for i in range(num_ops):
        near = [name for names in written[-reach:] for name in names]
        picked = rng.random(len(near)) < edge_probability
        reads = [name for name, pick in zip(near, picked, strict=True) if pick]
        if not reads or rng.random() < 0.1:
            reads.append(hosts[int(rng.integers(2))])
        read.update(reads)
        view = rng.random() < view_probability
        num_writes = 1 + int(rng.random() < 0.2)
        shapes = [(int(rng.integers(1, max_tensor_bytes)),) for _ in range(num_writes)]
        tied: tuple[str, ...] = ()
        if not view and rng.random() < 0.5:
            if not weights or rng.random() >= tie_probability:
                size = int(rng.integers(1, max_weight_bytes))
                weights.append(net.weight(f"w_{i}", (size,)))
                tied = (weights[-1],)
            else:
                tied = (weights[int(rng.integers(len(weights)))],)
        name = f"op_{i}"
        first = net.op(
            name,
            "View" if view else "Op",
            tuple(reads),
            shapes[0],
            flops=0 if view else int(rng.integers(1, max_flops)),
            tied=tied,
            view=view,
            extra=tuple(shapes[1:]),
        )
        written.append((first, *net.extra_names(name, num_writes - 1)))
    outputs = [
        name
        for names in written
        for name in names
        if name not in read or rng.random() < output_probability
    ]
    return net.build(*outputs)


def _layer_norm(net: SizedBuilder, name: str, x: str) -> str:
    row = (net.shape[x][0], 1)
    hidden = net.shape[x][1]
    mean = net.pointwise(f"{name}.mean", "ReduceMean", (x,), row)
    centred = net.pointwise(f"{name}.sub", "Sub", (x, mean))
    square = net.pointwise(f"{name}.pow", "Pow", (centred,))
    variance = net.pointwise(f"{name}.var", "ReduceMean", (square,), row)
    safe = net.pointwise(f"{name}.eps", "Add", (variance,))
    deviation = net.pointwise(f"{name}.sqrt", "Sqrt", (safe,))
    unit = net.pointwise(f"{name}.div", "Div", (centred, deviation))
    scaled = net.pointwise(f"{name}.mul", "Mul", (unit,), weights=(hidden,))
    return net.pointwise(f"{name}.add", "Add", (scaled,), weights=(hidden,))


def _linear(net: SizedBuilder, name: str, x: str, width: int) -> str:
    product = net.matmul(f"{name}.matmul", x, width)
    return net.pointwise(f"{name}.bias", "Add", (product,), weights=(width,))


def _attention(net: SizedBuilder, name: str, x: str, mask: str, heads: int) -> str:
    sequence, hidden = net.shape[x]
    depth = hidden // heads
    split = (sequence, heads, depth)
    parts = []
    for part, shape in (
        ("q", (heads, sequence, depth)),
        ("k", (heads, depth, sequence)),
        ("v", (heads, sequence, depth)),
    ):
        flat = _linear(net, f"{name}.{part}", x, hidden)
        cut = net.view(f"{name}.{part}.reshape", "Reshape", flat, split)
        turn = f"{name}.{part}.transpose"
        parts.append(net.pointwise(turn, "Transpose", (cut,), shape, per_item=0))
    q, k, v = parts
    scaled = net.pointwise(f"{name}.scale", "Mul", (q,))
    scores = net.matmul(f"{name}.scores", scaled, k)
    masked = net.pointwise(f"{name}.mask", "Add", (scores, mask))
    weights = _softmax(net, f"{name}.softmax", masked)
    mixed = net.matmul(f"{name}.mix", weights, v)
    turned = net.pointwise(
        f"{name}.transpose", "Transpose", (mixed,), split, per_item=0
    )
    flat = net.view(f"{name}.reshape", "Reshape", turned, (sequence, hidden))
    out = _linear(net, f"{name}.out", flat, hidden)
    return net.pointwise(f"{name}.residual", "Add", (x, out))


def _softmax(net: SizedBuilder, name: str, x: str) -> str:
    row = (*net.shape[x][:-1], 1)
    largest = net.pointwise(f"{name}.max", "ReduceMax", (x,), row)
    shifted = net.pointwise(f"{name}.sub", "Sub", (x, largest))
    powers = net.pointwise(f"{name}.exp", "Exp", (shifted,))
    total = net.pointwise(f"{name}.sum", "ReduceSum", (powers,), row)
    return net.pointwise(f"{name}.div", "Div", (powers, total))


def _feed_forward(net: SizedBuilder, name: str, x: str, width: int) -> str:
    h = _linear(net, f"{name}.up", x, width)
    square = net.pointwise(f"{name}.square", "Mul", (h,))
    cube = net.pointwise(f"{name}.cube", "Mul", (square, h))
    bent = net.pointwise(f"{name}.bend", "Mul", (cube,))
    joined = net.pointwise(f"{name}.join", "Add", (h, bent))
    scaled = net.pointwise(f"{name}.scale", "Mul", (joined,))
    curve = net.pointwise(f"{name}.tanh", "Tanh", (scaled,))
    shifted = net.pointwise(f"{name}.shift", "Add", (curve,))
    gated = net.pointwise(f"{name}.gate", "Mul", (h, shifted))
    half = net.pointwise(f"{name}.half", "Mul", (gated,))
    out = _linear(net, f"{name}.down", half, net.shape[x][1])
    return net.pointwise(f"{name}.residual", "Add", (x, out))


def _each(value: int | Sequence[int], count: int) -> Sequence[int]:
    return [value] * count if isinstance(value, int) else value
