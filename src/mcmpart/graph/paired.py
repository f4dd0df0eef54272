"""Generators of real networks of two halves that meet: encoder and decoder, two towers.

The default sizes are those of int8 models: one byte per element.
"""

from __future__ import annotations

from mcmpart.graph._layers import concat, linear
from mcmpart.graph._sized import SizedBuilder
from mcmpart.graph.graph import Graph


def encoder_decoder(
    layers: int = 6,
    *,
    hidden: int = 512,
    heads: int = 8,
    sequence: int = 128,
    target: int = 64,
    vocabulary: int = 32_128,
    tied: bool = False,
) -> Graph:
    """Return an encoder and a decoder of ``layers`` layers each, T5-small: 590 ops.

    An encoder layer has 35 ops: self-attention 24, feed-forward 11. A decoder layer has
    24 more: the keys and values of its cross-attention are projections of the encoder's
    last tensor, which so has ``2 * layers`` readers. The layers of a half share one
    position bias.

    Parameters
    ----------
    layers
        Number of layers of the encoder, and of the decoder.
    hidden, heads
        Width, a multiple of ``heads``; the feed-forward layers are four times as wide.
    sequence, target
        Number of ids that the encoder and the decoder read.
    vocabulary
        Number of ids there are: rows of an embedding table.
    tied
        The encoder, the decoder and the head share one table, instead of one each.

    References
    ----------
    C. Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
    Text-to-Text Transformer", JMLR 2020, sections 2.1 and 3.1.1.
    """
    net = SizedBuilder(f"encoder_decoder_{layers}")
    tables = ("encoder.table", "decoder.table", "head.table")
    if tied:
        tables = ("table",) * 3
    for table in dict.fromkeys(tables):
        net.weight(table, (vocabulary, hidden))
    mask = _padding_mask(net, sequence)
    ids, wide = net.host("ids", (sequence,)), (sequence, hidden)
    words = net.gather("encoder.words", ids, tables[0], wide)
    bias = _position_bias(net, "encoder.bias", sequence, heads)
    bias = net.pointwise("encoder.bias.mask", "Add", (bias, mask))
    memory = _layers(net, "encoder", words, layers, bias, heads)

    ids, wide = net.host("target", (target,)), (target, hidden)
    words = net.gather("decoder.words", ids, tables[1], wide)
    bias = _position_bias(net, "decoder.bias", target, heads)
    causal = (target * target,)
    bias = net.pointwise("decoder.bias.mask", "Add", (bias,), weights=causal)
    x = _layers(net, "decoder", words, layers, bias, heads, cross=(memory, mask))
    logits = net.op(
        "head",
        "MatMul",
        (x,),
        (target, vocabulary),
        flops=2 * target * hidden * vocabulary,
        tied=(tables[2],),
        gemm=(target, vocabulary, hidden),
    )
    return net.build(logits)


def two_tower(
    tables: int = 26,
    *,
    rows: int = 400_000,
    width: int = 64,
    features: int = 13,
    batch: int = 128,
) -> Graph:
    """Return a recommender of two towers that meet in a dot product: 65 ops.

    The user tower is a DLRM: an MLP over dense features, ``tables`` look-ups, the dot
    products of all pairs of those vectors, and an MLP over the pairs and the dense
    vector. The item tower is an MLP over half as many tables of its own. Tables shrink
    as 1, 1/2, 1/3, ..., since few of a real model's hold most of its rows.

    Parameters
    ----------
    tables
        Number of the user tower's tables, 2 or more.
    rows, width
        Rows of the largest table of a tower, and the length of every vector.
    features
        Number of dense features of a user.
    batch
        Number of pairs of a user and an item scored at once.

    References
    ----------
    M. Naumov et al., "Deep Learning Recommendation Model for Personalization and
    Recommendation Systems", arXiv 1906.00091, section 2; P. Covington et al., "Deep
    Neural Networks for YouTube Recommendations", RecSys 2016, for towers that meet in
    a dot product.
    """
    net = SizedBuilder(f"two_tower_{tables}")
    sizes = (512, 256, width)
    dense = _mlp(net, "user.bottom", net.host("user.dense", (batch, features)), sizes)
    users = _look_ups(net, "user", tables, rows, (batch, width))
    pairs = _interaction(net, "user", [dense, *users])
    joined = concat(net, "user.join", [dense, pairs], axis=1)
    user = _mlp(net, "user.top", joined, sizes)

    items = _look_ups(net, "item", tables // 2, rows, (batch, width))
    item = _mlp(net, "item.top", concat(net, "item.concat", items, axis=1), sizes)

    product = net.pointwise("score.mul", "Mul", (user, item))
    total = net.pointwise("score.sum", "ReduceSum", (product,), (batch, 1))
    return net.build(net.pointwise("score.sigmoid", "Sigmoid", (total,), per_item=6))


def _padding_mask(net: SizedBuilder, sequence: int) -> str:
    shape = (1, 1, sequence)
    mask = net.host("mask", (sequence,))
    mask = net.view("mask.unsqueeze", "Unsqueeze", mask, shape)
    mask = net.pointwise("mask.sub", "Sub", (mask,))
    return net.pointwise("mask.mul", "Mul", (mask,))


def _position_bias(net: SizedBuilder, name: str, length: int, heads: int) -> str:
    """Add the look-up of one number per head for each bucket of distances."""
    buckets = net.host(f"{name}.buckets", (length, length))
    table = net.weight(f"{name}.table", (32, heads))
    bias = net.gather(name, buckets, table, (length, length, heads))
    turn = f"{name}.transpose"
    return net.pointwise(
        turn, "Transpose", (bias,), (heads, length, length), per_item=0
    )


def _layers(
    net: SizedBuilder,
    half: str,
    x: str,
    layers: int,
    bias: str,
    heads: int,
    cross: tuple[str, str] | None = None,
) -> str:
    """Add the layers of one half and its last norm.

    ``cross`` is the tensor that a decoder's layers read too, and its mask.
    """
    for layer in range(layers):
        name = f"{half}.l{layer}"
        x = _attention(net, f"{name}.self", x, bias, heads)
        if cross:
            memory, mask = cross
            x = _attention(net, f"{name}.cross", x, mask, heads, memory=memory)
        x = _feed_forward(net, f"{name}.ff", x)
    return _rms_norm(net, f"{half}.norm", x)


def _rms_norm(net: SizedBuilder, name: str, x: str) -> str:
    length, hidden = net.shape[x]
    square = net.pointwise(f"{name}.pow", "Pow", (x,))
    mean = net.pointwise(f"{name}.mean", "ReduceMean", (square,), (length, 1))
    safe = net.pointwise(f"{name}.eps", "Add", (mean,))
    root = net.pointwise(f"{name}.sqrt", "Sqrt", (safe,))
    scale = net.pointwise(f"{name}.reciprocal", "Reciprocal", (root,))
    unit = net.pointwise(f"{name}.scale", "Mul", (x, scale))
    return net.pointwise(f"{name}.weight", "Mul", (unit,), weights=(hidden,))


def _attention(
    net: SizedBuilder,
    name: str,
    x: str,
    bias: str,
    heads: int,
    *,
    memory: str | None = None,
) -> str:
    """Add x + attention(norm(x)); keys and values are of ``memory``, or of norm(x)."""
    length, hidden = net.shape[x]
    queries = _rms_norm(net, f"{name}.norm", x)
    keys = queries if memory is None else memory
    q = _heads(net, f"{name}.q", queries, heads)
    k = _heads(net, f"{name}.k", keys, heads, turned=True)
    v = _heads(net, f"{name}.v", keys, heads)
    scores = net.matmul(f"{name}.scores", q, k)
    biased = net.pointwise(f"{name}.bias", "Add", (scores, bias))
    weights = net.pointwise(f"{name}.softmax", "Softmax", (biased,), per_item=8)
    mixed = net.matmul(f"{name}.mix", weights, v)
    shape = (length, heads, hidden // heads)
    turn = f"{name}.transpose"
    mixed = net.pointwise(turn, "Transpose", (mixed,), shape, per_item=0)
    flat = net.view(f"{name}.reshape", "Reshape", mixed, (length, hidden))
    out = net.matmul(f"{name}.out", flat, hidden)
    return net.pointwise(f"{name}.residual", "Add", (x, out))


def _heads(
    net: SizedBuilder, name: str, x: str, heads: int, *, turned: bool = False
) -> str:
    """Add a projection cut into [heads, length, depth], or with depth before length."""
    length, hidden = net.shape[x]
    depth = hidden // heads
    flat = net.matmul(name, x, hidden)
    cut = net.view(f"{name}.reshape", "Reshape", flat, (length, heads, depth))
    shape = (heads, depth, length) if turned else (heads, length, depth)
    return net.pointwise(f"{name}.transpose", "Transpose", (cut,), shape, per_item=0)


def _feed_forward(net: SizedBuilder, name: str, x: str) -> str:
    hidden = net.shape[x][1]
    h = _rms_norm(net, f"{name}.norm", x)
    h = net.matmul(f"{name}.up", h, 4 * hidden)
    h = net.pointwise(f"{name}.relu", "Relu", (h,))
    h = net.matmul(f"{name}.down", h, hidden)
    return net.pointwise(f"{name}.residual", "Add", (x, h))


def _mlp(net: SizedBuilder, name: str, x: str, widths: tuple[int, ...]) -> str:
    """Add linear layers with a Relu between each two."""
    for i, width in enumerate(widths):
        if i:
            x = net.pointwise(f"{name}.relu_{i}", "Relu", (x,))
        x = linear(net, f"{name}.fc_{i}", x, width)
    return x


def _look_ups(
    net: SizedBuilder, tower: str, tables: int, rows: int, shape: tuple[int, int]
) -> list[str]:
    """Add one Gather per table, each of its own ids."""
    return [
        net.gather(
            f"{tower}.gather_{i}",
            net.host(f"{tower}.ids_{i}", shape[:1]),
            net.weight(f"{tower}.table_{i}", (rows // (i + 1), shape[1])),
            shape,
        )
        for i in range(tables)
    ]


def _interaction(net: SizedBuilder, tower: str, vectors: list[str]) -> str:
    """Add the dot product of each pair of vectors: a product with its lower half."""
    batch, width = net.shape[vectors[0]]
    n = len(vectors)
    flat = concat(net, f"{tower}.concat", vectors, axis=1)
    rows = net.view(f"{tower}.rows", "Reshape", flat, (batch, n, width))
    turn = f"{tower}.transpose"
    columns = net.pointwise(turn, "Transpose", (rows,), (batch, width, n), per_item=0)
    square = net.matmul(f"{tower}.products", rows, columns)
    line = net.view(f"{tower}.line", "Reshape", square, (batch, n * n))
    pairs = (batch, n * (n - 1) // 2)
    return net.pointwise(f"{tower}.pairs", "Gather", (line,), pairs, per_item=0)
