"""Tests of the networks of two halves that meet, and plans of all branchy networks."""

import numpy as np
import pytest

import mcmpart
from mcmpart.graph.branchy import inception, resnet, shufflenet
from mcmpart.graph.paired import encoder_decoder, two_tower


def readers(graph, name):
    """Return the names of the ops that read the tensor."""
    row = graph.consumers.row(graph.tensor_name.index(name))
    return [graph.op_name[op] for op in row]


def predecessors(graph, name):
    """Return the names of the ops that the op waits for."""
    row = graph.predecessors.row(graph.op_name.index(name))
    return [graph.op_name[op] for op in row]


def narrow(layers):
    """Return an encoder and decoder whose sizes are all different and small."""
    return encoder_decoder(
        layers, hidden=8, heads=2, sequence=5, target=3, vocabulary=11
    )


def test_encoder_decoder_op_counts():
    """An encoder layer has 35 ops and a decoder layer 59."""
    graph = narrow(3)
    names = [name.split(".")[:2] for name in graph.op_name]
    assert names.count(["encoder", "l1"]) == 35
    assert names.count(["decoder", "l1"]) == 59
    # Mask 3, words 2, biases 3 each, two norms of 7, the head.
    rest = 3 + 2 + 2 * 3 + 2 * 7 + 1
    assert graph.num_ops == 3 * (35 + 59) + rest
    assert encoder_decoder().num_ops == 6 * (35 + 59) + rest == 590


def test_encoder_decoder_published_size():
    """With one table it has the 60.5 million parameters of T5-small, and its mask."""
    tied = encoder_decoder(tied=True)
    causal_mask = 64 * 64
    assert tied.weight_bytes.sum() == 60_506_624 + causal_mask
    untied = encoder_decoder().weight_bytes.sum()
    assert untied - tied.weight_bytes.sum() == 2 * 32_128 * 512


def test_encoder_decoder_memory():
    """Keys and values of every decoder layer read the encoder's last tensor."""
    graph = narrow(3)
    expected = [f"decoder.l{i}.cross.{part}" for i in range(3) for part in "kv"]
    assert sorted(readers(graph, "encoder.norm.weight:0")) == expected
    queries = [
        predecessors(graph, f"decoder.l1.{part}.q") for part in ("self", "cross")
    ]
    assert queries == [
        ["decoder.l1.self.norm.weight"],
        ["decoder.l1.cross.norm.weight"],
    ]
    own = readers(graph, "decoder.l1.self.norm.weight:0")
    assert own == [f"decoder.l1.self.{part}" for part in "qkv"]


def test_encoder_decoder_biases():
    """The layers of a half share one bias, and cross-attention has the mask alone."""
    graph = narrow(3)
    for half in ("encoder", "decoder"):
        shared = [f"{half}.l{i}.self.bias" for i in range(3)]
        assert readers(graph, f"{half}.bias.mask:0") == shared
    cross = [f"decoder.l{i}.cross.bias" for i in range(3)]
    assert readers(graph, "mask.mul:0") == ["encoder.bias.mask", *cross]


def test_encoder_decoder_flops():
    """Cross-attention scores each target word against each source word."""
    graph = narrow(1)
    op = graph.op_name.index("decoder.l0.cross.scores")
    # Two heads of depth 4, 3 target and 5 source words.
    assert graph.tensor_shape[graph.writes.row(op)[0]] == (2, 3, 5)
    assert graph.op_flops[op] == 2 * (2 * 3 * 5) * 4
    key = graph.op_name.index("decoder.l0.cross.k")
    assert graph.op_flops[key] == 2 * (5 * 8) * 8
    assert graph.op_flops[graph.op_name.index("head")] == 2 * (3 * 11) * 8


def test_encoder_decoder_words():
    """Each half looks up its own ids; tied, they and the head share the table."""
    graph = encoder_decoder(1, tied=True)
    users = graph.users_of.row(graph.weight_name.index("table"))
    tied = ["encoder.words", "decoder.words", "head"]
    assert sorted(graph.op_name[op] for op in users) == sorted(tied)
    assert readers(graph, "ids") == ["encoder.words"]
    assert readers(graph, "target") == ["decoder.words"]


def test_two_tower_op_counts():
    """A look-up per table, and 26 ops beside them at any size."""
    # Three MLPs of 5; the interaction 6, its join, the items' Concat, the score 3.
    rest = 3 * 5 + 6 + 1 + 1 + 3
    assert two_tower().num_ops == 26 + 13 + rest == 65
    assert two_tower(8).num_ops == 8 + 4 + rest


def test_two_tower_weights():
    """Tables shrink harmonically; the first layers fit what is concatenated."""
    graph = two_tower(4, rows=12, width=2, features=3)
    users, items = (12 + 6 + 4 + 3) * 2, (12 + 6) * 2
    tail = (512 * 256 + 256) + (256 * 2 + 2)
    bottom = 3 * 512 + 512 + tail
    # The dense vector and the pairs of 5 vectors; two item vectors.
    top = (2 + 10) * 512 + 512 + tail
    item = 2 * 2 * 512 + 512 + tail
    assert graph.weight_bytes.sum() == users + items + bottom + top + item


def test_two_tower_interaction():
    """The user tower multiplies each two of its vectors, once."""
    graph = two_tower()
    looked_up = {f"user.gather_{i}" for i in range(26)}
    dense = "user.bottom.fc_2"
    assert set(predecessors(graph, "user.concat")) == {dense, *looked_up}
    assert set(predecessors(graph, "user.join")) == {dense, "user.pairs"}
    product = graph.op_name.index("user.products")
    assert graph.op_flops[product] == 2 * 128 * (27 * 27) * 64
    pairs = graph.tensor_name.index("user.pairs:0")
    assert graph.tensor_shape[pairs] == (128, 27 * 26 // 2)
    # The ids, the rows taken and the rows written; not the table.
    gather = graph.op_name.index("user.gather_0")
    assert graph.op_bytes[gather] == 128 + 2 * 128 * 64


def test_two_tower_meet():
    """The towers share no op before the product of their vectors."""
    graph = two_tower(4)
    tower = np.array([name.split(".")[0] for name in graph.op_name])
    crossings = {
        (graph.op_name[u], graph.op_name[v])
        for u in range(graph.num_ops)
        for v in graph.successors.row(u)
        if tower[u] != tower[v]
    }
    ends = ("user.top.fc_2", "item.top.fc_2")
    assert crossings == {(end, "score.mul") for end in ends}


SMALL = {
    "inception": lambda: inception((1, 1, 1), channels=8, side=75, classes=10),
    "resnet": lambda: resnet((1, 2), channels=8, side=32, classes=10),
    "shufflenet": lambda: shufflenet((1, 2), channels=8, side=32, classes=10),
    "encoder_decoder": lambda: narrow(2),
    "two_tower": lambda: two_tower(4, rows=1000, width=16, batch=8),
}


@pytest.mark.parametrize("name", SMALL)
def test_one_output(name):
    """Every tensor is read but the last op's, the one model output."""
    graph = SMALL[name]()
    unread = np.flatnonzero(np.diff(graph.consumers.indptr) == 0)
    assert unread.tolist() == np.flatnonzero(graph.tensor_is_output).tolist()
    assert graph.tensor_producer[unread].tolist() == [graph.num_ops - 1]


@pytest.mark.parametrize("name", SMALL)
def test_plan(name):
    """A small one of each network has a plan on many chips that verifies."""
    problem = mcmpart.Problem(SMALL[name](), mcmpart.load_package("ring36"))
    result = mcmpart.solve(problem, time_s=1, seed=0)
    mcmpart.verify(result)
    assert result.metrics.valid
    assert result.partition.num_used_chips > 1
