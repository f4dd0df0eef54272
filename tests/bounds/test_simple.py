"""The simple bound: worked by hand, and never above the optimum."""

import numpy as np
import pytest

from mcmpart.bounds import simple_bound_s
from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem


def timed(seconds):
    """Return a chain of these times."""
    return chain(len(seconds), flops=0, tensor_bytes=1, seconds=seconds)


@pytest.mark.parametrize(
    ("num_chips", "bound_s"),
    [
        (1, 16),
        (2, 8),
        # 16 / 4 = 4 is as much as the largest op; with more chips that op decides.
        (4, 4),
        (8, 4),
    ],
)
def test_shares_and_the_largest_op(make_package, num_chips, bound_s):
    """max(largest t, sum of t / C)."""
    problem = Problem(timed([4, 2, 1, 3, 2, 4]), make_package(num_chips))
    found = simple_bound_s(problem)
    assert found == pytest.approx(bound_s, rel=1e-11)
    assert found < bound_s


def test_fastest_chip(make_package):
    """Each op counts at its fastest chip."""
    # 2e6 FLOPs a piece: .5 + 2e6 / 1e6 = 2.5 s on chip 1; slower elsewhere.
    graph = chain(2, flops=2_000_000, tensor_bytes=1)
    package = make_package(2, overrides={1: {"peak_ops_per_s": (("*", 1e6),)}})
    assert simple_bound_s(Problem(graph, package)) == pytest.approx(2.5, rel=1e-11)


def test_replicas_count_once(make_package):
    """A replica that someone needs runs at least once; one that nobody needs, never."""
    builder = GraphBuilder("masked")
    builder.host_tensor(TensorSpec("x", 8))
    for name, reads, seconds, replicable in (
        ("mask", ("x",), 2.0, True),
        ("bias", ("mask.t",), 1.0, True),
        ("dead", ("mask.t",), 64.0, True),
        ("a", ("x", "bias.t"), 5.0, False),
        ("b", ("a.t", "bias.t"), 5.0, False),
    ):
        writes = (TensorSpec(f"{name}.t", 8),)
        builder.op(
            OpSpec(
                name,
                "Op",
                seconds=seconds,
                replicable=replicable,
                reads=reads,
                writes=writes,
            )
        )
    builder.output("b.t")
    problem = Problem(builder.build(), make_package(2))
    assert simple_bound_s(problem) == pytest.approx((2 + 1 + 5 + 5) / 2, rel=1e-11)


def test_nothing_to_do(make_package):
    """Without ops, or with views only, the bound is 0."""
    package = make_package(2)
    assert simple_bound_s(Problem(GraphBuilder("empty").build(), package)) == 0
    views = chain(2, flops=0, tensor_bytes=0)
    assert simple_bound_s(Problem(views, package)) == 0


def test_the_bound_is_met(make_package):
    """Where transfers take no time, equal ops on as many chips meet the bound."""
    problem = Problem(timed([1, 1, 1]), make_package(3, io="overlap"))
    cost, _ = evaluate_many(problem, np.array([[0, 1, 2]]))
    assert simple_bound_s(problem) == pytest.approx(cost[0], rel=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_never_above_the_optimum(seed, make_problem, make_all_rows):
    """By brute force over every placement of up to 5 ops, for every setting."""
    rng = np.random.default_rng(seed)
    num_solvable = 0
    tightest = 0.0
    for _ in range(40):
        num_chips = int(rng.integers(1, 5))
        num_ops = int(rng.integers(1, 6))
        problem = make_problem(rng, num_ops, num_chips=num_chips, rules=True)
        cost, valid = evaluate_many(problem, make_all_rows(problem), workers=1)
        if not valid.any():
            continue
        num_solvable += 1
        bound_s = simple_bound_s(problem)
        assert bound_s <= cost[valid].min()
        if bound_s:
            tightest = max(tightest, bound_s / cost[valid].min())
    assert num_solvable > 20
    assert tightest > 0.5
