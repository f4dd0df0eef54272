"""Problem: what its constructor refuses, rewrites and hands to the kernels."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from mcmpart.errors import GraphError, InfeasibleError, InputError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, diamond, transformer
from mcmpart.problem import Problem, UserRules


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            UserRules(pins={"op_9": 0}),
            r"the rule 'pin' names op 'op_9', which the graph does not have "
            r"\(ops that read only weights are folded\): did you mean 'op_\d'\?",
        ),
        (
            UserRules(together=(("op_0", "zzz"),)),
            r"the rule 'together' names op 'zzz', .+ are folded\)$",
        ),
        (
            UserRules(apart=(("xxx", "op_0"),)),
            r"the rule 'apart' names op 'xxx', .+ are folded\)$",
        ),
        (
            UserRules(pins={"op_1": 3}),
            "op 'op_1' is pinned to chip 3, and package 'toy' has chips 0 to 2",
        ),
        (
            UserRules(pins={"op_1": -1}),
            "op 'op_1' is pinned to chip -1, and package 'toy' has chips 0 to 2",
        ),
    ],
)
def test_unknown_names_and_chips(make_package, rules, message):
    """A rule on an op or chip that does not exist is refused, the nearest op named."""
    with pytest.raises(InputError, match=message):
        Problem(chain(4), make_package(3), user=rules)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan")])
def test_threshold_out_of_range(make_package, threshold):
    """The replica threshold is a share."""
    message = rf"replica_threshold is {threshold}: give a share from 0 to 1"
    with pytest.raises(InputError, match=message):
        Problem(chain(4), make_package(3), replica_threshold=threshold)


def test_unknown_precision(make_package):
    """A precision that the package gives no peak for is refused."""
    package = make_package(3, peak_ops_per_s=(("int8", 10.0),))
    with pytest.raises(InputError, match="no bf16 peak: choose one of int8"):
        Problem(chain(4), package, precision="bf16")


def test_pins_that_contradict_a_group(make_package):
    """Two pins within one group are infeasible at once, with both ops."""
    rules = UserRules(pins={"op_0": 0, "op_1": 1}, together=(("op_0", "op_1"),))
    message = (
        "no plan exists: 'op_0' is pinned to chip 0 and 'op_1' to chip 1, but they "
        "must share a chip: drop one pin or the together group"
    )
    with pytest.raises(InfeasibleError, match=message) as caught:
        Problem(chain(4), make_package(3), user=rules)
    assert caught.value.rule == "pin"


def test_pins_that_contradict_a_swallowed_op(make_package):
    """A group swallows what lies between, so a pin there counts too."""
    rules = UserRules(pins={"op_0": 0, "op_1": 1}, together=(("op_0", "op_2"),))
    with pytest.raises(InfeasibleError, match="they must share a chip"):
        Problem(chain(4), make_package(3), user=rules)


@pytest.mark.parametrize("pair", [("op_0", "op_1"), ("op_1", "op_1")])
def test_apart_that_contradicts_a_group(make_package, pair):
    """Ops of one group, or an op and itself, cannot be apart."""
    rules = UserRules(apart=(pair,), together=(("op_0", "op_2"),))
    message = "must be apart, but they must also share a chip: drop one of the two"
    with pytest.raises(InfeasibleError, match=message) as caught:
        Problem(chain(4), make_package(3), user=rules)
    assert caught.value.rule == "apart"


def test_rules_that_agree(make_package):
    """Pins that agree, and pairs that hold, pass."""
    rules = UserRules(
        pins={"op_0": 1, "op_1": 1},
        together=(("op_0", "op_1"),),
        apart=(("op_0", "op_3"),),
    )
    arrays = Problem(chain(4), make_package(3), user=rules).blocks.arrays
    assert arrays.pin.tolist() == [1, -1, -1]
    assert arrays.apart.tolist() == [[0, 2]]


def test_rewrites_are_applied(make_package):
    """Weight-only ops fold, precision is set, and each leaves an assumption."""
    builder = GraphBuilder("net")
    builder.host_tensor(TensorSpec("x", 64, "fp32", (16,)))
    builder.weight(TensorSpec("w", 64, "fp32"))
    builder.op(OpSpec("fold", "Exp", weights=("w",), writes=(TensorSpec("e", 64),)))
    reads = ("x", "e")
    writes = (TensorSpec("y", 64, "fp32", (16,)),)
    builder.op(OpSpec("add", "Add", flops=16, bytes=192, reads=reads, writes=writes))
    builder.output("y")
    package = make_package(2, peak_ops_per_s=(("int8", 10.0),))
    problem = Problem(builder.build(), package)
    assert problem.graph.op_name == ("add",)
    assert problem.graph.op_dtype == ("int8",)
    assert problem.graph.tensor_bytes.tolist() == [16, 16]
    assert problem.model.num_ops == 2
    assert (
        problem.assumptions[0]
        == "1 op that reads only weights was folded into a weight"
    )
    assert "the package gives no fp32 peak" in problem.assumptions[1]


def test_cost_assumptions_are_listed(make_package):
    """What the cost table had to guess stands among the assumptions."""
    graph = replace(chain(2), op_dtype=("int64", "int8"))
    package = make_package(2, peak_ops_per_s=(("int8", 10.0),))
    assert any("int64 (1)" in line for line in Problem(graph, package).assumptions)


def test_ops_and_blocks(make_package):
    """``ops`` has one op a block; ``blocks`` merges views and groups."""
    builder = GraphBuilder("net")
    builder.host_tensor(TensorSpec("x", 8))
    last = "x"
    for name, flops in (("a", 10), ("view", 0), ("b", 10), ("c", 10)):
        writes = (TensorSpec(f"{name}.t", 8),)
        builder.op(OpSpec(name, "Op", flops=flops, reads=(last,), writes=writes))
        last = f"{name}.t"
    builder.output(last)
    rules = UserRules(together=(("b", "c"),))
    problem = Problem(builder.build(), make_package(2), user=rules)
    assert problem.ops.block_of.tolist() == [0, 1, 2, 3]
    assert problem.blocks.block_of.tolist() == [0, 0, 1, 1]
    assert problem.ops.arrays.same.tolist() == [[2, 3]]
    assert problem.blocks.arrays.same.tolist() == []


def test_a_pinned_view_stays_a_block(make_package):
    """An op that a rule names keeps a chip of its own even if it costs nothing."""
    graph = chain(3, flops=0)
    graph = replace(graph, op_bytes=np.array([8, 0, 8]))
    free, pinned = (
        Problem(graph, make_package(2), user=rules)
        for rules in (UserRules(), UserRules(pins={"op_1": 1}))
    )
    assert free.blocks.num_blocks == 2
    assert pinned.blocks.num_blocks == 3


def test_replicable_ops_have_no_block(make_package):
    """The mask of a transformer is replicable, and in neither view a block."""
    problem = Problem(transformer(4), make_package(4))
    replicable = problem.graph.op_replicable
    assert replicable.any()
    assert (problem.ops.block_of[replicable] == -1).all()
    assert (problem.blocks.block_of[replicable] == -1).all()
    assert problem.ops.num_blocks == np.count_nonzero(~replicable)


def test_replica_threshold_counts(make_package):
    """At threshold 0 not even a view that all ops read is replicable; above 0 it is."""
    builder = GraphBuilder("view")
    builder.host_tensor(TensorSpec("x", 8))
    builder.op(OpSpec("view", "Reshape", reads=("x",), writes=(TensorSpec("v", 8),)))
    last = "x"
    for i in range(3):
        writes = (TensorSpec(f"t{i}", 8),)
        builder.op(OpSpec(f"op_{i}", "Op", flops=9, reads=(last, "v"), writes=writes))
        last = f"t{i}"
    graph = builder.build()
    for threshold, flag in ((0.0, False), (1e-9, True)):
        problem = Problem(graph, make_package(2), replica_threshold=threshold)
        assert problem.costs.op_s[0, 0] == 0
        assert problem.graph.op_replicable.tolist() == [flag, False, False, False]


def test_rules_hold_replicas_back(make_package):
    """An op that a user rule names is not replicable."""
    default = Problem(transformer(4), make_package(4))
    name = default.graph.op_name[int(np.flatnonzero(default.graph.op_replicable)[-1])]
    pinned = Problem(
        transformer(4), make_package(4), user=UserRules(pins={name: 0})
    ).graph
    assert not pinned.op_replicable[pinned.op_name.index(name)]


def test_flag_on_a_bound_op(make_package):
    """A graph whose marks contradict a user rule is refused."""
    graph = replace(diamond(2), op_replicable=np.array([True, False, False, False]))
    rules = UserRules(pins={"source": 0})
    with pytest.raises(GraphError, match="'source' is marked replicable and is bound"):
        Problem(graph, make_package(2), user=rules)


def test_package_arrays(make_package):
    """Chips, classes, hops and switches reach the kernels as they are."""
    package = make_package(
        3,
        overrides={1: {"memory_bytes": 7, "io_bandwidth_bytes_per_s": 4.0}},
        long_edges="relay",
        io="overlap",
        rules=("memory",),
    )
    arrays = Problem(chain(3), package).package_arrays
    assert arrays.chip_class.tolist() == [0, 1, 0]
    assert arrays.io_bytes_per_s.tolist() == [10, 4, 10]
    assert arrays.class_io_bytes_per_s.tolist() == [10, 4]
    assert arrays.memory_bytes.tolist() == [10**9, 7, 10**9]
    assert arrays.hop_bytes_per_s.tolist() == [20, 20]
    assert arrays[5:] == (False, True, True, False, False, True)


def test_switches_of_the_default(make_package):
    """serial, no relay, link limit, no_skip, triangle and memory on."""
    arrays = Problem(chain(3), make_package(1)).package_arrays
    assert arrays[5:] == (True, False, True, True, True, True)
    assert arrays.hop_bytes_per_s.tolist() == []


def test_a_problem_is_immutable(make_package):
    """Fields cannot be set, and ``replace`` makes a problem of its own."""
    problem = Problem(chain(3), make_package(2))
    with pytest.raises(FrozenInstanceError):
        problem.package = make_package(3)
    other = replace(problem, package=make_package(3))
    assert (problem.num_chips, other.num_chips) == (2, 3)
    assert other.model is problem.model


def test_rules_of_the_default_user():
    """A user who says nothing demands nothing, and no one else's rules change that."""
    rules = UserRules()
    assert (dict(rules.pins), rules.together, rules.apart) == ({}, (), ())
    pins = {"op_0": 1}
    rules = UserRules(pins)
    pins["op_1"] = 2
    assert rules.pins == {"op_0": 1}
    assert pickle.loads(pickle.dumps(rules)) == rules
