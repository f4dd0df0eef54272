"""verify: exhaustive bounds, recomputed from all partitions in plain Python."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from mcmpart.bounds import certificate
from mcmpart.bounds.certificate import make_certificate
from mcmpart.bounds.prove import Bound
from mcmpart.errors import VerificationError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.partition import Partition
from mcmpart.plan import write_result
from mcmpart.problem import Problem, UserRules
from mcmpart.solve import make_result, solve
from mcmpart.verify import Confirmed, confirm_certificate, verify


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


@pytest.mark.parametrize("method", ["ideals", "lump", "chain", "exact"])
def test_a_proven_bound(toy, method):
    """What stages confirm holds; 1 % above the optimum is refused, by any method."""
    result = result_of(toy, 0, 0, 0, 1, 1, 2)
    verify(replace(result, bound=Bound(6.2, method)))
    with pytest.raises(VerificationError, match=r"does not hold: the bound of 6\.262"):
        verify(replace(result, bound=Bound(6.2 * 1.01, method)))


def test_an_unknown_method(toy):
    """A method that is none of ours is named, with those that there are."""
    result = result_of(toy, *[0] * 6)
    with pytest.raises(
        VerificationError,
        match="the method of the lower bound is 'magic', and it is one of simple, ",
    ):
        verify(replace(result, bound=Bound(5.0, "magic")))


def folder_of(problem, folder):
    """Write graph and package as they stand beside a certificate."""
    folder.mkdir(exist_ok=True)
    write_result(result_of(problem, 0, 1, 0, 1), folder)
    return folder


@pytest.mark.parametrize(
    ("method", "share", "confirmed"),
    [
        ("exhaustive", 1.0, Confirmed.PLAINLY),
        ("exhaustive", 1.01, Confirmed.NO),
        ("exact", 1.0, Confirmed.AGAIN),
        ("exact", 1.01, Confirmed.NO),
        ("simple", 0.1, Confirmed.PLAINLY),
        ("simple", 1.0, Confirmed.NO),
    ],
)
def test_bounds_that_live_tensors_decide(
    live_tensors, live_optimum_s, tmp_path, method, share, confirmed
):
    """Bounds that stages cannot confirm are settled by all partitions, or solved again.

    11.2 s is the optimum, and all on one chip, which its live tensors forbid, 4.3 s.
    """
    folder = folder_of(live_tensors, tmp_path)
    document = make_certificate(live_tensors, live_optimum_s * share, method)
    assert confirm_certificate(document, folder) is confirmed


def test_a_plan_that_live_tensors_decide(live_tensors, live_optimum_s):
    """A plan with such a bound is not refused for what stages do not tell."""
    result = solve(live_tensors)
    assert result.lower_bound_s == pytest.approx(live_optimum_s)
    for method in ("exhaustive", "exact"):
        verify(replace(result, bound=Bound(result.lower_bound_s, method)))
    with pytest.raises(VerificationError, match=r"partitions takes 11\.2"):
        verify(replace(result, bound=Bound(11.4, "exact")))


@pytest.mark.parametrize(
    ("bound_s", "search_s", "confirmed"),
    [
        (6.2, 1.0, Confirmed.AGAIN),
        (6.3, 1.0, Confirmed.NO),
        (6.3, 0.0, Confirmed.OPEN),
    ],
)
def test_proven_again(toy, tmp_path, monkeypatch, bound_s, search_s, confirmed):
    """Where plain Python gives up: a better plan, or a proof, or neither.

    A search of no time at all is refused, and finds nothing.
    """
    monkeypatch.setattr(certificate, "MAX_OPS", 5)
    monkeypatch.setattr(
        sys.modules[confirm_certificate.__module__], "SEARCH_S", search_s
    )
    write_result(result_of(toy, 0, 0, 0, 1, 1, 2), tmp_path)
    document = make_certificate(toy, bound_s, "chain")
    assert confirm_certificate(document, tmp_path) is confirmed
