"""verify: exhaustive bounds, recomputed from all partitions in plain Python."""

from dataclasses import replace

import numpy as np
import pytest

from mcmpart.bounds.prove import Bound
from mcmpart.errors import VerificationError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.problem import Problem, UserRules
from mcmpart.solve import make_result, solve
from mcmpart.verify import verify


def result_of(problem, *chips):
    """Return the result of the partition with these chips."""
    return make_result(problem, Partition(problem.graph, np.array(chips)))


def test_the_exhaustive_bound(toy):
    """It is the least bottleneck of all: neither above nor below it holds."""
    best = solve(toy)
    verify(best)
    worse = result_of(toy, 0, 0, 0, 1, 1, 2)
    assert worse.metrics.bottleneck_s == pytest.approx(7.2)
    for claimed_s, holds in ((7.2, False), (6.2, True), (16 / 3, False)):
        claim = replace(worse, bound=Bound(claimed_s, "exhaustive"))
        if holds:
            verify(claim)
            continue
        with pytest.raises(
            VerificationError, match=r"best of all valid partitions takes 6\.2"
        ):
            verify(claim)


def test_the_exhaustive_bound_knows_the_rules(toy):
    """Partitions that the user's rules forbid do not count as better."""
    user = UserRules(apart=(("op_0", "op_1"),))
    result = solve(Problem(toy.model, toy.package, user=user))
    # [4] [2 1 3] [2 4] is left.
    assert result.metrics.bottleneck_s == pytest.approx(6.2)
    verify(result)
    user = UserRules({"op_0": 0, "op_1": 1, "op_2": 1, "op_4": 1})
    result = solve(Problem(toy.model, toy.package, user=user))
    # [4] [2 1 3 2] [4].
    assert result.metrics.bottleneck_s == pytest.approx(8.2)
    assert result.lower_bound_method == "exhaustive"
    verify(result)


def test_replicas_do_not_count_as_partitions(make_package):
    """An exhaustive bound of a graph with replicas verifies on a wide package.

    Six ops with a chip cannot use more than 6 of 64 chips: C(11, 6) = 462 partitions,
    not the C(21, 6) that 16 chips would have.
    """
    names = [f"mask_{i}" for i in range(10)] + [f"layer_{i}" for i in range(6)]
    net = GraphBuilder("masked")
    net.host_tensor(TensorSpec("x", 1))
    last = "x"
    for name in names:
        copied = name.startswith("mask")
        out = TensorSpec(f"{name}.t", 1)
        reads = (last,) if copied else (last, "mask_9.t")
        net.op(
            OpSpec(
                name, "Op", seconds=1.0, replicable=copied, reads=reads, writes=(out,)
            )
        )
        last = out.name
    net.output(last)
    graph = net.build()
    result = solve(Problem(graph, make_package(64)))
    assert (result.lower_bound_method, result.evaluations) == ("exhaustive", 462)
    verify(result)


def test_the_largest_exhaustive_bound(make_package):
    """What solve judges in full, verify judges too: 16 ops on 5 chips, 4,845 ways."""
    problem = Problem(chain(16, flops=0, seconds=[1.0] * 16), make_package(5))
    result = solve(problem)
    assert (result.lower_bound_method, result.evaluations) == ("exhaustive", 4845)
    verify(result)


def test_no_exhaustive_bound_of_large_graphs(make_package):
    """With more partitions than solve would judge the claim is refused, and soon."""
    problem = Problem(chain(40), make_package(8))
    result = result_of(problem, *[0] * 40)
    bound = Bound(result.metrics.bottleneck_s, "exhaustive")
    claim = replace(result, bound=bound)
    with pytest.raises(VerificationError, match="is not for a graph of 40 ops"):
        verify(claim)
