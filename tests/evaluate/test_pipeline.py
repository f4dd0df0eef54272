"""evaluate and evaluate_many: what they refuse, and what no relabelling may change."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.evaluate import evaluate, evaluate_many
from mcmpart.graph import HOST, GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.partition import Partition
from mcmpart.problem import Problem


def evaluated(problem, chip_of):
    """Return the evaluation of the chips of all ops."""
    return evaluate(problem, Partition(problem.graph, np.array(chip_of)))


def test_toy(toy, toy_optimum_s):
    """The optimum of the toy, and its throughput."""
    found = evaluated(toy, [0, 1, 1, 1, 2, 2])
    assert found.valid
    assert found.bottleneck_s == pytest.approx(toy_optimum_s, rel=1e-12)
    assert found.throughput_per_s == pytest.approx(1 / 6.2, rel=1e-12)


def test_invalid_is_still_costed(toy):
    """A partition that breaks a rule but no dataflow has all its figures."""
    found = evaluated(toy, [0, 0, 0, 2, 2, 2])
    assert not found.valid
    assert found.bottleneck_s == pytest.approx(9.2, rel=1e-12)


@pytest.mark.parametrize("chip_of", [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3]])
def test_undefined_is_refused(toy, chip_of):
    """An edge to a lower chip, or a chip too many, has no figures."""
    message = (
        "the partition sends an edge to a lower chip or uses a chip that package 'toy' "
        r"does not have \(chips 0 to 2\): rules.explain names the ops"
    )
    with pytest.raises(InputError, match=message):
        evaluated(toy, chip_of)


def test_many_takes_one_row_too(toy, toy_optimum_s):
    """A single partition is a batch of one."""
    cost, valid = evaluate_many(toy, np.array([0, 1, 1, 1, 2, 2]))
    assert cost.tolist() == pytest.approx([toy_optimum_s], rel=1e-12)
    assert valid.tolist() == [True]


def test_no_rows(toy):
    """An empty batch has empty results."""
    cost, valid = evaluate_many(toy, np.empty((0, 6), dtype=np.int32))
    assert (cost.shape, valid.shape) == ((0,), (0,))
    assert (cost.dtype, valid.dtype) == (np.float64, np.bool_)


@pytest.mark.parametrize("shape", [(2, 5), (7,), (1, 2, 6)])
def test_wrong_shapes(toy, shape):
    """Another number of columns is refused with both numbers."""
    message = r"chip_of has shape \(.+\): give one row .+ for each of the 6 ops"
    with pytest.raises(InputError, match=message):
        evaluate_many(toy, np.zeros(shape, dtype=np.int32))


def test_fractions_are_refused(toy):
    """Chips that are no whole numbers are refused, not rounded."""
    with pytest.raises(InputError, match="float64 values: give whole chip numbers"):
        evaluate_many(toy, np.zeros((1, 6)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.uint64])
def test_any_integer_type(toy, dtype):
    """Any integers will do, and the caller's array stays as it is."""
    given = np.array([[0, 1, 1, 1, 2, 2]], dtype=dtype)
    before = given.copy()
    assert evaluate_many(toy, given)[1].tolist() == [True]
    assert given.tolist() == before.tolist()


def test_numbers_beyond_32_bits(toy):
    """A chip number that would wrap round to 0 is out of range."""
    cost, valid = evaluate_many(toy, np.full((1, 6), 2**32))
    assert np.isinf(cost).all()
    assert not valid.any()


def relabelled(graph, rng):
    """Return the graph with its ops declared in a random order."""
    builder = GraphBuilder(graph.name)
    tensors = [
        TensorSpec(name, int(size), dtype, shape)
        for name, size, dtype, shape in zip(
            graph.tensor_name,
            graph.tensor_bytes,
            graph.tensor_dtype,
            graph.tensor_shape,
            strict=True,
        )
    ]
    for t in np.flatnonzero(graph.tensor_producer == HOST):
        builder.host_tensor(tensors[t])
    for name, size in zip(graph.weight_name, graph.weight_bytes, strict=True):
        builder.weight(TensorSpec(name, int(size), "int8"))
    for op in rng.permutation(graph.num_ops):
        builder.op(
            OpSpec(
                graph.op_name[op],
                graph.op_kind[op],
                graph.op_dtype[op],
                flops=int(graph.op_flops[op]),
                bytes=int(graph.op_bytes[op]),
                reads=tuple(graph.tensor_name[t] for t in graph.reads.row(op)),
                weights=tuple(graph.weight_name[w] for w in graph.weights_of.row(op)),
                writes=tuple(tensors[t] for t in graph.writes.row(op)),
            )
        )
    for t in np.flatnonzero(graph.tensor_is_output):
        builder.output(graph.tensor_name[t])
    return builder.build()


@pytest.mark.parametrize("seed", range(5))
def test_relabelling_keeps_the_cost(seed, make_problem, make_rows):
    """Ops in another order cost the same, but for the peak of live tensors."""
    rng = np.random.default_rng(seed)
    num_moved = 0
    for _ in range(10):
        package = make_problem(rng, 2).package
        rules = tuple(rule for rule in package.rules if rule != "memory")
        package = replace(package, rules=rules)
        graph = random_dag(20, rng, view_probability=0.0)
        # No replicas: which ops are depends on how far apart their readers stand.
        first, other = (
            Problem(labelled, package, replica_threshold=0.0)
            for labelled in (graph, relabelled(graph, rng))
        )
        num_moved += first.graph.op_name != other.graph.op_name
        for row in make_rows(rng, first, 6):
            chip_of_name = dict(zip(first.graph.op_name, row, strict=True))
            a = evaluated(first, row)
            b = evaluated(other, [chip_of_name[name] for name in other.graph.op_name])
            assert a.valid == b.valid
            for name in ("bottleneck_s", "latency_s", "energy_j"):
                assert math.isclose(getattr(a, name), getattr(b, name), rel_tol=1e-12)
            assert a.hops == b.hops
            for x, y in zip(a.chips, b.chips, strict=True):
                assert (x.in_bytes, x.out_bytes) == (y.in_bytes, y.out_bytes)
                assert x.weight_bytes == y.weight_bytes
    assert num_moved >= 5


def test_a_partition_of_another_graph_is_refused(toy):
    """A partition with another number of ops is an error, not a wild read."""
    other = Partition(chain(5), np.zeros(5, dtype=np.int32))
    with pytest.raises(InputError, match="is for 5 ops, and the graph has 6"):
        evaluate(toy, other)
