"""GraphBuilder: names to dense ids, and every fault at once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcmpart.errors import GraphError
from mcmpart.graph import HOST, GraphBuilder, OpSpec, TensorSpec, unique_names


def toy() -> GraphBuilder:
    """Return x -> a -> y -> b -> z, b declared first; a reads the weight w."""
    builder = GraphBuilder("toy")
    builder.host_tensor(TensorSpec("x", 8, "fp32", (2,)))
    builder.weight(TensorSpec("w", 4, "fp32"))
    builder.op(OpSpec("b", "Relu", reads=("y",), writes=(TensorSpec("z", 16),)))
    builder.op(
        OpSpec(
            "a",
            "MatMul",
            flops=10,
            bytes=20,
            gemm=(1, 2, 3),
            seconds=0.5,
            reads=("x",),
            weights=("w",),
            writes=(TensorSpec("y", 12),),
        )
    )
    builder.output("z")
    return builder


def faults_of(builder: GraphBuilder) -> tuple[str, ...]:
    """Return the faults that build() raises."""
    with pytest.raises(GraphError) as caught:
        builder.build()
    return caught.value.faults


def test_ops_are_sorted_and_numbered():
    """The op declared second but read first becomes op 0; all columns follow."""
    graph = toy().build()
    assert graph.op_name == ("a", "b")
    assert graph.op_kind == ("MatMul", "Relu")
    assert graph.op_flops.tolist() == [10, 0]
    assert graph.op_bytes.tolist() == [20, 0]
    assert graph.op_gemm.tolist() == [[1, 2, 3], [0, 0, 0]]
    assert graph.op_seconds[0] == 0.5
    assert math.isnan(graph.op_seconds[1])
    assert graph.tensor_name == ("x", "y", "z")
    assert graph.tensor_producer.tolist() == [HOST, 0, 1]
    assert graph.tensor_bytes.tolist() == [8, 12, 16]
    assert graph.tensor_shape == ((2,), None, None)
    assert graph.tensor_is_output.tolist() == [False, False, True]


def test_rows_both_ways():
    """The compressed rows give the neighbours of ops, tensors and weights."""
    graph = toy().build()
    assert graph.successors.row(0).tolist() == [1]
    assert graph.predecessors.row(1).tolist() == [0]
    assert graph.reads.row(0).tolist() == [0]
    assert graph.writes.row(1).tolist() == [2]
    assert graph.consumers.row(1).tolist() == [1]
    assert graph.consumers.row(2).tolist() == []
    assert graph.weights_of.row(0).tolist() == [0]
    assert graph.users_of.row(0).tolist() == [0]
    assert (graph.num_ops, graph.num_tensors, graph.num_weights) == (2, 3, 1)
    assert graph.num_edges == 1


def test_arrays_are_read_only():
    """Nobody can change a built graph by accident."""
    graph = toy().build()
    with pytest.raises(ValueError, match="read-only"):
        graph.op_flops[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        graph.successors.indices[0] = 1


def test_a_sorted_graph_keeps_its_order():
    """Among ready ops the one declared first comes first."""
    builder = GraphBuilder("islands")
    for name in ("q", "b", "m", "a"):
        builder.op(OpSpec(name, "Constant"))
    assert builder.build().op_name == ("q", "b", "m", "a")


def test_two_reads_of_one_tensor_are_one_use():
    """Mul(x, x) reads x once: traffic counts tensors, not edges."""
    builder = GraphBuilder("square")
    builder.op(OpSpec("c", "Constant", writes=(TensorSpec("x", 4),)))
    builder.op(OpSpec("m", "Mul", reads=("x", "x"), weights=("w", "w")))
    builder.weight(TensorSpec("w", 1))
    graph = builder.build()
    assert graph.use_op.tolist() == [1]
    assert graph.weight_use_op.tolist() == [1]
    assert graph.num_edges == 1


def test_two_tensors_between_two_ops_are_one_edge():
    """Edges are pairs of ops, however many tensors pass."""
    builder = GraphBuilder("split")
    pair = (TensorSpec("p", 4), TensorSpec("q", 4))
    builder.op(OpSpec("s", "Split", writes=pair))
    builder.op(OpSpec("j", "Add", reads=("q", "p")))
    graph = builder.build()
    assert graph.num_edges == 1
    assert graph.reads.row(1).tolist() == [0, 1]


def test_an_empty_graph_is_a_graph():
    """Output = input, no op at all: nothing to split, and no error."""
    builder = GraphBuilder("empty")
    builder.host_tensor(TensorSpec("x", 4))
    builder.output("x")
    graph = builder.build()
    assert graph.num_ops == 0
    assert graph.tensor_is_output.tolist() == [True]
    assert graph.successors.indptr.tolist() == [0]


def test_groups_are_sorted_indices_and_singles_vanish():
    """A group names ops once, by index; a group of one op demands nothing."""
    builder = toy()
    builder.together(["b", "a", "b"])
    builder.together(["a"])
    assert builder.build().together == ((0, 1),)


def test_a_weight_may_be_a_model_output():
    """An initializer that is an output is no fault and marks no tensor."""
    builder = toy()
    builder.output("w")
    assert builder.build().tensor_is_output.sum() == 1


def test_all_faults_are_gathered():
    """Five different faults come in one error, eight of them shown at most."""
    builder = GraphBuilder("bad")
    builder.op(OpSpec("n", "A", flops=-1, writes=(TensorSpec("t", 4),)))
    builder.op(OpSpec("n", "B", reads=("ghost",), writes=(TensorSpec("t", -4),)))
    builder.output("nothing")
    builder.together(["n", "nobody"])
    assert faults_of(builder) == (
        "op 'n' has -1 FLOPs: give a whole number from 0 to 2^63 - 1",
        "two ops are called 'n': rename one",
        "tensor 't' is written twice, by op 'n' and by op 'n': a tensor has one "
        "producer",
        "tensor 't' has -4 bytes: give a whole number from 0 to 2^63 - 1",
        "op 'n' reads 'ghost', which no op writes and which is no input of the model",
        "the model output 'nothing' is written by no op",
        "a together group names 'nobody', which is no op",
    )


def test_many_faults_are_counted():
    """The message shows eight faults and counts the rest; the list has them all."""
    builder = GraphBuilder("bad")
    for i in range(11):
        builder.output(f"o{i}")
    with pytest.raises(GraphError, match=r"graph 'bad' is not .*; and 3 more$") as e:
        builder.build()
    assert len(e.value.faults) == 11


@pytest.mark.parametrize("bad", [1.5, 2.0, True, 2**63, "8", math.nan, None])
def test_sizes_that_are_no_integers_are_faults(bad):
    """A float, a truth value or more than 2^63 - 1 is refused, never cut."""
    builder = GraphBuilder("bad")
    builder.host_tensor(TensorSpec("x", bad))
    builder.op(OpSpec("a", "A", flops=bad, bytes=bad))
    builder.op(OpSpec("b", "B", gemm=(1, 2, bad)))
    builder.op(OpSpec("c", "C", writes=(TensorSpec("y", 1, shape=(bad,)),)))
    assert [fault.split(":")[0] for fault in faults_of(builder)] == [
        f"op 'a' has {bad} FLOPs",
        f"op 'a' has {bad} bytes",
        f"op 'b' has the gemm {(1, 2, bad)}",
        f"tensor 'y' has the shape {(bad,)}",
        f"tensor 'x' has {bad} bytes",
    ]


def test_numpy_integers_are_integers():
    """Sizes that a frontend computed with numpy are taken; shapes become int."""
    size = np.int64(5)
    builder = GraphBuilder("numpy")
    builder.op(
        OpSpec(
            "a",
            "A",
            flops=size,
            bytes=size,
            writes=(TensorSpec("y", size, "", (size,)),),
        )
    )
    graph = builder.build()
    assert graph.op_flops.tolist() == [5]
    assert type(graph.tensor_shape[0][0]) is int


@pytest.mark.parametrize("seconds", [-1.0, 1e10, math.nan, math.inf])
def test_a_measured_time_is_finite(seconds):
    """A measured time that is negative or not finite is a fault."""
    builder = GraphBuilder("bad")
    builder.op(OpSpec("a", "A", seconds=seconds))
    assert faults_of(builder) == (f"op 'a' has the time {seconds} s: give 0 to 1e+09",)


def test_a_weight_is_no_tensor():
    """Reading a weight as a tensor, or a tensor as a weight, is a fault."""
    builder = GraphBuilder("bad")
    builder.weight(TensorSpec("w", 4))
    builder.host_tensor(TensorSpec("x", 4))
    builder.op(OpSpec("a", "A", reads=("w",), weights=("x",)))
    first, second = faults_of(builder)
    assert first.startswith("op 'a' reads 'w', which no op writes")
    assert second == "op 'a' reads the weight 'x', which is not declared"


def test_a_cycle_is_named_along_its_edges():
    """The cycle a -> b -> c -> a is shown in the direction of the data."""
    builder = GraphBuilder("loop")
    for name, before in (("a", "c"), ("b", "a"), ("c", "b"), ("d", "c")):
        builder.op(OpSpec(name, "X", reads=(before,), writes=(TensorSpec(name, 1),)))
    (fault,) = faults_of(builder)
    assert fault in {
        f"the ops form a cycle ({cycle}): remove one edge"
        for cycle in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c")
    }


def test_an_op_that_reads_itself_is_a_cycle():
    """A self-loop is the shortest cycle."""
    builder = GraphBuilder("loop")
    builder.op(OpSpec("a", "X", reads=("t",), writes=(TensorSpec("t", 1),)))
    assert faults_of(builder) == ("the ops form a cycle (a -> a): remove one edge",)


def test_a_long_cycle_is_cut_short():
    """Of a cycle of ten ops six are shown."""
    builder = GraphBuilder("loop")
    for i in range(10):
        writes = (TensorSpec(str(i), 1),)
        builder.op(OpSpec(f"op{i}", "X", reads=(str((i + 9) % 10),), writes=writes))
    (fault,) = faults_of(builder)
    assert fault.count(" -> ") == 7
    assert " -> ... -> " in fault


def test_unique_names_stay_close_to_the_given_ones():
    """Twins get a number, a given name is never stolen, empty ones get the kind."""
    names = ["n", "n", "n_1", "n", "", "relu_4"]
    kinds = ["A", "A", "A", "A", "my.dom::Relu", "Relu"]
    assert unique_names(names, kinds) == [
        "n",
        "n_2",
        "n_1",
        "n_3",
        "relu_4_1",
        "relu_4",
    ]


def test_twenty_thousand_twins_are_named_in_linear_time():
    """As many ops as a huge model has may share one name."""
    names = unique_names(["n"] * 20_000, ["A"] * 20_000)
    assert names[-1] == "n_19999"


@given(st.lists(st.sampled_from(["", "n", "n_1", "n_2", "a_0", "a_1"]), max_size=12))
def test_names_are_unique_and_first_come_first_kept(names):
    """No two keys are equal, and the first op with a name keeps it."""
    keys = unique_names(names, ["A"] * len(names))
    assert len(set(keys)) == len(names)
    for name in set(names) - {""}:
        assert keys[names.index(name)] == name


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"flops": 2**55}, "7.21e+16 FLOPs"),
        ({"bytes": 2**55}, "7.21e+16 bytes touched by ops"),
    ],
)
def test_totals_stay_far_below_64_bits(spec, what):
    """A graph whose sums could overflow is refused, with the total it has."""
    builder = GraphBuilder("huge")
    for i in range(2):
        builder.op(OpSpec(f"op_{i}", "A", **spec))
    builder.build()
    builder.op(OpSpec("one_more", "A", **dict.fromkeys(spec, 1)))
    (fault,) = faults_of(builder)
    assert what in fault


def test_a_shape_beyond_64_bits_is_refused():
    """A shape of more elements than can be counted is a fault, not an overflow."""
    builder = GraphBuilder("huge")
    builder.host_tensor(TensorSpec("x", 8, "fp32", (2**40, 2**40)))
    (fault,) = faults_of(builder)
    assert "1.21e+24 elements of tensors" in fault
