"""Tests of marking replicable ops."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.cost import roofline_seconds
from mcmpart.errors import GraphError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import random_dag, transformer
from mcmpart.rewrite import mark_replicable


def small(name, reads=("x",), weights=()):
    """Return an op that writes ``name.t``."""
    writes = (TensorSpec(f"{name}.t", 8),)
    return OpSpec(name, "Op", reads=reads, weights=weights, writes=writes)


def masked_chain(
    *,
    kind="Op",
    num_layers=10,
    flags=(),
    before=(),
    reads=("x",),
    weights=(),
    mask_weights=(),
):
    """Return mask -> every layer of a chain; ops: before, mask, layer_0, ...

    The mask reads ``reads`` and ``mask_weights``; layer i reads the weight ``w{i}``.
    """
    builder = GraphBuilder("masked")
    builder.host_tensor(TensorSpec("x", 8))
    for name, size in weights:
        builder.weight(TensorSpec(name, size))
    layers = [
        OpSpec(
            f"layer_{i}",
            "Op",
            reads=(f"l{i - 1}" if i else "x", "m"),
            weights=tuple(name for name, _ in weights if name == f"w{i}"),
            writes=(TensorSpec(f"l{i}", 8),),
        )
        for i in range(num_layers)
    ]
    writes = (TensorSpec("m", 8),)
    first = OpSpec("mask", kind, reads=reads, weights=mask_weights, writes=writes)
    for spec in (*before, first, *layers):
        builder.op(replace(spec, replicable=spec.name in flags))
    builder.output(f"l{num_layers - 1}")
    return builder.build()


def marked(graph, work, **options):
    """Return the names of the ops marked replicable."""
    work_s = np.array(work, dtype=np.float64)
    flags = mark_replicable(graph, work_s, **options).op_replicable
    return [graph.op_name[op] for op in np.flatnonzero(flags)]


def test_mask_exactly_at_the_threshold():
    """A mask of 2 of 1,000 s is replicable at 0.2 %, and one of 2.001 s is not."""
    graph = masked_chain()
    assert marked(graph, [2, *[100] * 9, 98]) == ["mask"]
    assert marked(graph, [2.001, *[100] * 9, 97.999]) == []
    assert marked(graph, [2.001, *[100] * 9, 97.999], threshold=0.0021) == ["mask"]


def test_threshold_zero():
    """At 0 a mask that costs nothing is not replicable; at any share above it is."""
    graph = masked_chain()
    assert marked(graph, [0, *[100] * 10], threshold=0.0) == []
    assert marked(graph, [0, *[100] * 10], threshold=1e-9) == ["mask"]


def test_flag_at_threshold_zero():
    """At 0 a legal flag stays, and the free op that it reads must have one too."""
    before = (small("root"),)
    work = [0, 0, *[100] * 10]
    graph = masked_chain(before=before, reads=("root.t",), flags=("root", "mask"))
    assert marked(graph, work, threshold=0.0) == ["root", "mask"]
    graph = masked_chain(before=before, reads=("root.t",), flags=("mask",))
    with pytest.raises(GraphError, match=r"'mask' .* reads op 'root', which has"):
        marked(graph, work, threshold=0.0)


def test_weight_bytes_exactly_at_the_threshold():
    """A mask with 2 of 1,000 bytes of weights is replicable, with 3 it is not."""
    for size, names in ((2, ["mask"]), (3, [])):
        weights = (("w", size), ("w5", 1000 - size))
        graph = masked_chain(weights=weights, mask_weights=("w",))
        assert marked(graph, [0, *[100] * 10]) == names


def test_shared_ancestor_and_weight_count_once():
    """A cone counts a shared op and a shared weight once."""
    before = (
        small("root", weights=("w",)),
        small("left", ("root.t",), ("w",)),
        small("right", ("root.t",), ("w",)),
    )
    weights = (("w", 2), ("w5", 998))
    graph = masked_chain(before=before, reads=("left.t", "right.t"), weights=weights)
    # 1.4 + 0.2 + 0.2 + 0.2 = 2 of 1,000; the root counted twice would be 3.4.
    work = [1.4, 0.2, 0.2, 0.2, *[100] * 9, 98]
    assert marked(graph, work) == ["root", "left", "right", "mask"]
    assert marked(graph, [1.41, *work[1:-1], 97.99]) == []


def test_readers_must_lie_far_apart():
    """Two readers with exactly 2 % of the work between them leave an op ordinary."""
    builder = GraphBuilder("near")
    builder.host_tensor(TensorSpec("x", 8))
    builder.op(small("r"))
    builder.op(small("a", ("x", "r.t")))
    builder.op(small("b", ("a.t",)))
    builder.op(small("c", ("b.t", "r.t")))
    graph = builder.build()
    assert marked(graph, [0, 49, 2, 49]) == []
    assert marked(graph, [0, 48.9, 2.1, 49]) == ["r"]
    assert marked(graph, [0, 49, 2, 49], spread=0.019) == ["r"]


def test_readers_through_replicable_ops():
    """A source read only by a replicable op is as far-read as that op."""
    graph = masked_chain(before=(small("root"),), reads=("root.t",))
    assert marked(graph, [1, 1, *[100] * 9, 98]) == ["root", "mask"]
    assert marked(graph, [1.5, 1, *[100] * 9, 97.5]) == []


def test_output_is_never_replicable():
    """A mask that is a model output stays ordinary."""
    graph = masked_chain()
    outputs = graph.tensor_is_output.copy()
    outputs[graph.tensor_name.index("m")] = True
    assert marked(replace(graph, tensor_is_output=outputs), [0, *[100] * 10]) == []


def test_reader_of_an_ordinary_op_is_not_replicable():
    """A cheap op behind an ordinary one stays ordinary."""
    graph = masked_chain(before=(small("root"),), reads=("root.t",))
    assert marked(graph, [50, 0, *[95] * 10]) == []


@pytest.mark.parametrize("kind", ["RandomNormal", "aten::rand", "Multinomial"])
def test_random_op_is_never_replicable(kind):
    """Copies of a random op would differ, so it stays ordinary."""
    assert marked(masked_chain(kind=kind), [0, *[100] * 10]) == []


def test_bound_ops_are_never_replicable():
    """Pinned ops and members of groups stay ordinary."""
    graph = masked_chain()
    assert marked(graph, [0, *[100] * 10], keep=frozenset({0})) == []
    grouped = replace(graph, together=((0, 3),))
    assert marked(grouped, [0, *[100] * 10]) == []


def test_no_work_at_all():
    """With zero work nothing lies far apart: no op is replicable."""
    assert marked(masked_chain(), [0] * 11) == []


def test_op_that_nobody_reads():
    """A cheap op without readers stays ordinary."""
    graph = masked_chain(before=(small("dead"),))
    assert marked(graph, [0, 0, *[100] * 10]) == ["mask"]


def test_flag_is_kept():
    """A legal flag stays however dear the op is and however near its readers."""
    graph = masked_chain(num_layers=2, flags=("mask",))
    assert marked(graph, [50, 25, 25]) == ["mask"]


def test_reader_of_a_flagged_op():
    """The cone of a flagged op's reader holds the flagged op."""
    before = (small("root"),)
    graph = masked_chain(before=before, reads=("root.t",), flags=("root",))
    assert marked(graph, [1, 1, *[100] * 9, 98]) == ["root", "mask"]
    assert marked(graph, [50, 1, *[94.9] * 10]) == ["root"]


def test_flagged_op_that_nobody_reads():
    """A replicable op without readers brings what it reads no reader."""
    builder = GraphBuilder("dead")
    builder.host_tensor(TensorSpec("x", 8))
    builder.op(small("root"))
    builder.op(small("a", ("root.t",)))
    builder.op(small("b", ("a.t",)))
    builder.op(replace(small("dead", ("root.t",)), replicable=True))
    with pytest.raises(
        GraphError, match=r"'dead' .* reads op 'root', which has a chip"
    ):
        marked(builder.build(), [0, 50, 50, 0])


def test_illegal_flags():
    """A flag on a random op or on a reader of an op with a chip is refused."""
    graph = masked_chain(kind="RandomUniform", flags=("mask",))
    with pytest.raises(GraphError, match="'mask' is marked replicable and is random"):
        marked(graph, [0, *[100] * 10])
    graph = masked_chain(flags=("layer_3",))
    with pytest.raises(
        GraphError, match="'layer_3' is marked replicable and reads op 'layer_2', which"
    ):
        marked(graph, [0, *[100] * 10])
    graph = masked_chain(flags=("layer_9",))
    with pytest.raises(GraphError, match=r"'layer_9' .* writes a model output"):
        marked(graph, [0, *[100] * 10])


def test_transformer_mask():
    """Of the benchmark graph exactly the five ops that make the mask are replicable."""
    graph = transformer(12)
    work_s = roofline_seconds(
        graph.op_flops,
        graph.op_bytes,
        peak_ops_per_s=np.full(graph.num_ops, 4e12),
        memory_bandwidth_bytes_per_s=64e9,
        overhead_s=1e-6,
    )
    marked_graph = mark_replicable(graph, work_s)
    names = [graph.op_name[op] for op in np.flatnonzero(marked_graph.op_replicable)]
    assert len(names) == 5
    assert all(name.startswith("mask.") for name in names)
    again = mark_replicable(marked_graph, work_s)
    assert np.array_equal(again.op_replicable, marked_graph.op_replicable)


def by_definition(graph, work_s, threshold, spread):
    """Return the replicable ops by the plain sets of the definition."""
    cone = {}
    for op in range(graph.num_ops):
        sources = graph.predecessors.row(op).tolist()
        outputs = graph.tensor_is_output[graph.writes.row(op)]
        if outputs.any() or not all(u in cone for u in sources):
            continue
        ops = {op}.union(*(cone[u] for u in sources))
        weights = {w for u in ops for w in graph.weights_of.row(u).tolist()}
        stored = sum(int(graph.weight_bytes[w]) for w in weights)
        if sum(work_s[u] for u in ops) <= threshold * work_s.sum() and (
            stored <= threshold * graph.weight_bytes.sum()
        ):
            cone[op] = ops
    chosen = set()
    for op in sorted(cone, reverse=True):
        readers, stack = set(), graph.successors.row(op).tolist()
        while stack:
            reader = stack.pop()
            if reader in chosen:
                stack.extend(graph.successors.row(reader).tolist())
            else:
                readers.add(reader)
        if readers and work_s[min(readers) + 1 : max(readers)].sum() > spread * (
            work_s.sum()
        ):
            chosen.add(op)
    return sorted(chosen)


def test_against_the_definition():
    """On 200 random DAGs the marks are those of the definition, taken literally."""
    total = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        graph = random_dag(25, rng, 0.15, output_probability=0)
        work_s = rng.integers(0, 5, graph.num_ops).astype(np.float64)
        expected = by_definition(graph, work_s, 0.15, 0.1)
        flags = mark_replicable(graph, work_s, threshold=0.15, spread=0.1).op_replicable
        assert np.flatnonzero(flags).tolist() == expected
        total += len(expected)
    assert total > 200
