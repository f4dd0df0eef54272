"""lower_bound: certificates that hold, by each method."""

import numpy as np
import pytest

from mcmpart import certify
from mcmpart.bounds import simple_bound_s
from mcmpart.bounds.certificate import check
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.certify import BOUND_METHODS, lower_bound, proven
from mcmpart.errors import InfeasibleError, InputError, NoPlanFoundError
from mcmpart.graph.file import content_hash
from mcmpart.graph.synthetic import chain, random_dag
from mcmpart.problem import Problem, UserRules
from mcmpart.search.warm import warm_up
from mcmpart.solve import solve


@pytest.fixture(scope="session", autouse=True)
def _compiled():
    warm_up()


@pytest.fixture
def long_chain(make_package):
    """Give 20 ops of 1 s on 4 chips, too many to look at in full: 5.2 s is best."""
    graph = chain(20, flops=0, tensor_bytes=1, seconds=[1.0] * 20)
    return Problem(graph, make_package(4), replica_threshold=0.0)


@pytest.mark.parametrize(
    ("asked", "method", "closest"),
    [("chain", "ideals", 1e-8), ("ideals", "ideals", 1e-8), ("exact", "exact", 1e-5)],
)
def test_the_optimum(long_chain, asked, method, closest):
    """Each method proves 5 s and two bytes; ideals come before the chain."""
    document = lower_bound(long_chain, asked, time_s=30)
    assert document.method == method
    assert 5.2 * (1 - closest) <= document.bound_s <= 5.2 * (1 + 1e-12)
    assert check(document, long_chain.graph, long_chain.package)


def test_simple(long_chain):
    """20 s on four chips, though more is known by then."""
    document = lower_bound(long_chain, "simple", time_s=30)
    assert document.method == "simple"
    assert document.bound_s == pytest.approx(5)


def test_tiny_problems(toy, toy_optimum_s):
    """What was judged in full needs no other proof, unless exact is asked for."""
    for method in ("chain", "ideals"):
        document = lower_bound(toy, method)
        assert document.method == "exhaustive"
        assert document.bound_s == pytest.approx(toy_optimum_s, rel=1e-12)
    assert lower_bound(toy, "exact").method == "exact"


@pytest.mark.parametrize("method", BOUND_METHODS)
def test_never_above_the_optimum(method, make_problem):
    """On random problems no bound is above the best of all partitions."""
    rng = np.random.default_rng(0)
    num_tried = num_tight = 0
    for _ in range(12):
        problem = make_problem(rng, int(rng.integers(1, 7)), rules=True)
        best_s = best_of_all(problem).bottleneck_s
        if not 0 < best_s < np.inf:
            continue
        num_tried += 1
        document = lower_bound(problem, method, time_s=5.0)
        assert 0 <= document.bound_s <= best_s
        num_tight += document.bound_s >= best_s * (1 - 1e-5)
    assert num_tried > 6
    assert method == "simple" or num_tight >= num_tried - 1


def test_rules_of_the_user_are_kept(toy):
    """A certificate says what was demanded, and its bound counts on it."""
    user = UserRules(together=(("op_0", "op_2"),))
    document = lower_bound(Problem(toy.model, toy.package, user=user))
    assert document.bound_s == pytest.approx(7.2)
    assert document.rules.together == [["op_0", "op_2"]]


def test_the_replicas_that_solve_chooses(make_package, monkeypatch):
    """Where the threshold is open, the certificate is for the graph that solve made."""
    graph = random_dag(30, np.random.default_rng(4), 0.3)
    package = make_package(3, long_edges="direct")
    chosen = Problem(graph, package, replica_threshold=0.3)
    assert chosen.graph.op_replicable.any()

    def choose(problem, **options):
        return solve(chosen, **options)

    monkeypatch.setattr(certify, "solve", choose)
    problem, document, _, _ = proven(Problem(graph, package), "simple", 2.0)
    assert problem is chosen
    assert document.graph_sha256 == content_hash(chosen.graph)
    assert document.bound_s == simple_bound_s(chosen)


def test_no_plan_to_aim_at(long_chain, monkeypatch):
    """Where the search finds no plan in time, the simple bound is left."""

    def give_up(*arguments, **options):
        raise NoPlanFoundError("none")

    monkeypatch.setattr(certify, "solve", give_up)
    document = lower_bound(long_chain)
    assert (document.method, document.bound_s) == ("simple", pytest.approx(5))


def test_little_time(long_chain):
    """A bound that is stopped at once holds too."""
    assert 5 * (1 - 1e-9) <= lower_bound(long_chain, time_s=1e-3).bound_s <= 5.2


@pytest.mark.parametrize("time_s", [0.0, -1.0, float("inf"), float("nan")])
def test_no_time(toy, time_s):
    """A time that is not above 0 is refused with the value met."""
    with pytest.raises(InputError, match=f"the time limit is {time_s} s: give more"):
        lower_bound(toy, time_s=time_s)


def test_unknown_method(toy):
    """It is named, with the nearest known one and all of them."""
    with pytest.raises(InputError) as caught:
        lower_bound(toy, "chian")
    assert str(caught.value) == (
        "there is no bound 'chian' (did you mean 'chain'?): choose one of chain, "
        "ideals, exact, simple"
    )


def test_infeasible(make_package):
    """Where no partition exists there is nothing to bound."""
    problem = Problem(chain(3, weight_bytes=100), make_package(2, memory_bytes=99))
    with pytest.raises(InfeasibleError):
        lower_bound(problem)
