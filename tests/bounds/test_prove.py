"""prove: the bound rises towards a plan, and never above it."""

import math
import time

import numpy as np
import pytest

from mcmpart.bounds import prove, simple_bound_s
from mcmpart.bounds.chain import Attempt
from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.bounds.ideals import WithinLimit, proof_blocks, within_limit
from mcmpart.bounds.prove import OPTIMAL, Prover
from mcmpart.evaluate import evaluate_many
from mcmpart.graph import GraphBuilder
from mcmpart.graph.synthetic import chain
from mcmpart.hardware.loader import load_package
from mcmpart.problem import Problem


@pytest.fixture(scope="session", autouse=True)
def _compiled():
    # Ideals get a second before the chain has its turn: too little to compile in.
    problem = Problem(chain(2), load_package("ring36"))
    within_limit(problem, proof_blocks(problem), 1.0)


def new_prover(problem, seconds=60.0, is_late=lambda: False, **options):
    """Return a prover with a minute's time."""
    return Prover(problem, time.perf_counter() + seconds, is_late, **options)


def prove_all(prover, best_s, gap=0.0, most=60):
    """Make attempts until there is nothing left; return the bounds on the way."""
    bounds = [prover.bound]
    for _ in range(most):
        prover.attempt(best_s, gap)
        bounds.append(prover.bound)
        if prover.done:
            return bounds
    raise AssertionError("the prover does not end")


def test_the_toy(toy, toy_optimum_s):
    """One attempt proves the optimum by ideals, the next sees that nothing is left."""
    prover = new_prover(toy)
    assert prover.bound.method == "simple"
    assert prover.bound.seconds == pytest.approx(16 / 3)
    prover.attempt(toy_optimum_s, 0.0)
    assert (prover.bound.method, prover.done) == ("ideals", False)
    assert toy_optimum_s * (1 - 1e-8) < prover.bound.seconds <= toy_optimum_s
    prover.attempt(toy_optimum_s, 0.0)
    assert prover.done


def test_no_plan_to_aim_at(toy):
    """Without a plan there is nothing to do."""
    prover = new_prover(toy)
    prover.attempt(math.inf, 0.0)
    assert (prover.bound.method, prover.done, prover.found) == ("simple", True, None)


def test_a_gap_is_enough(toy, toy_optimum_s):
    """A bound within the gap that is asked for ends it: 16 / 3 is within 15 %."""
    prover = new_prover(toy)
    prover.attempt(toy_optimum_s, 0.15)
    assert (prover.bound.method, prover.done) == ("simple", True)
    prover.attempt(toy_optimum_s, 0.1)
    assert 0.9 * toy_optimum_s <= prover.bound.seconds < 0.92 * toy_optimum_s


def test_a_better_plan_is_found(toy, toy_optimum_s):
    """Told of a plan of 16.2 s, it comes upon better ones, down to the optimum."""
    prover, best_s = new_prover(toy), 16.2
    for _ in range(60):
        prover.attempt(best_s, 0.0)
        if prover.done:
            break
        if prover.found is not None:
            cost, valid = evaluate_many(toy, prover.found[None])
            assert valid[0]
            best_s = min(best_s, cost[0])
    assert prover.done
    assert best_s == pytest.approx(toy_optimum_s)
    assert prover.bound.seconds == pytest.approx(toy_optimum_s)


def test_what_is_found_must_be_valid(make_package):
    """A partition whose live tensors do not fit is not handed out, nor refuted."""
    # Buffers of 2 * 20 B fit 50 B, and live tensors of 20 B do not.
    graph = chain(6, flops=0, tensor_bytes=10, seconds=[1] * 6)
    problem = Problem(graph, make_package(1, memory_bytes=50))
    prover = new_prover(problem, with_chain=False)
    prove_all(prover, 100.0)
    assert prover.found is None
    # 6 s and 20 bytes are what stages alone need.
    assert prover.bound.seconds <= 8.0


@pytest.mark.parametrize("few_ideals", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_it_only_rises(seed, few_ideals, make_problem, monkeypatch):
    """Each bound is at least the one before and at most the optimum."""
    if not few_ideals:
        monkeypatch.setattr(prove, "MAX_VISITS", 1)
    rng = np.random.default_rng(seed)
    methods = set()
    num_tried = num_tight = 0
    for _ in range(15):
        problem = make_problem(rng, int(rng.integers(2, 7)), rules=True)
        best = best_of_all(problem)
        if not 0 < best.bottleneck_s < math.inf:
            continue
        prover = new_prover(problem)
        bounds = [bound.seconds for bound in prove_all(prover, best.bottleneck_s)]
        assert bounds == sorted(bounds)
        assert bounds[-1] <= best.bottleneck_s
        assert bounds[0] == simple_bound_s(problem)
        methods.add(prover.bound.method)
        num_tried += 1
        num_tight += bounds[-1] >= best.bottleneck_s * (1 - OPTIMAL)
        if prover.found is not None:
            cost, valid = evaluate_many(problem, prover.found[None])
            assert valid[0]
            assert cost[0] >= bounds[-1]
    assert num_tried > 8
    assert num_tight > 0.8 * num_tried
    assert ("ideals" in methods) is few_ideals
    assert few_ideals or methods & {"chain", "lump"}


def test_chain_where_ideals_are_many(toy, toy_optimum_s, monkeypatch):
    """The chain proves the toy too, within the tolerance, and hands out its steps."""
    monkeypatch.setattr(prove, "MAX_VISITS", 1)
    prover = new_prover(toy)
    prover.attempt(toy_optimum_s, 0.0)
    bound = prover.bound
    assert bound.method == "chain"
    assert toy_optimum_s * (1 - OPTIMAL) <= bound.seconds <= toy_optimum_s
    assert len(bound.ranges) == toy.num_chips + 1
    assert any(low > high for low, high in bound.ranges)
    prover.attempt(toy_optimum_s, 0.0)
    assert prover.done


def test_a_lump_decides(make_package, net, monkeypatch):
    """A block that no stage can hold is tried before the chain."""
    monkeypatch.setattr(prove, "MAX_VISITS", 1)
    graph = net(("u", 4.0, ("x",), (100,)), ("v", 4.0, ("u.0",), (1,)))
    prover = new_prover(Problem(graph, make_package(2)))
    prover.attempt(8.2, 0.0)
    assert prover.bound.method == "lump"
    assert 8.2 * (1 - OPTIMAL) <= prover.bound.seconds <= 8.2
    prover.attempt(8.2, 0.0)
    assert prover.done


def test_without_chain(toy, toy_optimum_s, monkeypatch):
    """Ideals alone give up where they are many, and it ends all the same."""
    monkeypatch.setattr(prove, "MAX_VISITS", 1)
    prover = new_prover(toy, with_chain=False)
    prove_all(prover, toy_optimum_s)
    assert prover.bound.method == "simple"


def test_easier_limits_where_the_goal_is_out_of_reach(toy, toy_optimum_s, monkeypatch):
    """Limits between what is proven and what is not: near 6 s if 6 s can be proven."""
    monkeypatch.setattr(prove, "MOST_PLACES", 0)
    tried = []

    def within(problem, blocks, limit_s, **options):
        tried.append(limit_s)
        return WithinLimit(refuted=limit_s < 6.0)

    monkeypatch.setattr(prove, "within_limit", within)
    monkeypatch.setattr(prove, "lump", lambda *arguments: None)
    monkeypatch.setattr(prove, "refute", lambda *arguments: Attempt(False, ()))
    prover = new_prover(toy)
    prove_all(prover, toy_optimum_s)
    assert tried[0] == pytest.approx(toy_optimum_s)
    assert 6.0 * (1 - 1e-3) < prover.bound.seconds < 6.0
    refuted = [limit_s for limit_s in tried if limit_s < 6.0]
    assert refuted == sorted(refuted)


def test_exact_where_a_chain_fails(toy, toy_optimum_s, monkeypatch):
    """A small problem is then tried as one program, once."""
    calls = []

    def counted(*arguments, **options):
        calls.append(options["best_s"])
        return exact_bound(*arguments, **options)

    monkeypatch.setattr(prove, "MAX_VISITS", 1)
    monkeypatch.setattr(prove, "lump", lambda *arguments: None)
    monkeypatch.setattr(prove, "refute", lambda *arguments: Attempt(False, ()))
    monkeypatch.setattr(prove, "exact_bound", counted)
    prover = new_prover(toy)
    prove_all(prover, toy_optimum_s)
    assert calls == [toy_optimum_s]
    assert prover.bound.method == "exact"
    assert toy_optimum_s * (1 - OPTIMAL) <= prover.bound.seconds <= toy_optimum_s


def test_no_exact_program_of_large_problems(toy, toy_optimum_s, monkeypatch):
    """With more ops x chips than allowed it is not tried."""
    monkeypatch.setattr(prove, "MAX_VISITS", 1)
    monkeypatch.setattr(prove, "MOST_PLACES", 17)
    monkeypatch.setattr(prove, "lump", lambda *arguments: None)
    monkeypatch.setattr(prove, "refute", lambda *arguments: Attempt(False, ()))
    monkeypatch.delattr(prove, "exact_bound")
    prover = new_prover(toy)
    prove_all(prover, toy_optimum_s)
    assert prover.bound.method == "simple"


def test_no_proof_of_huge_graphs(toy, toy_optimum_s, monkeypatch):
    """Above ``MOST_OPS`` the simple bound is all there is."""
    monkeypatch.setattr(prove, "MOST_OPS", 5)
    monkeypatch.delattr(prove, "proof_blocks")
    prover = new_prover(toy)
    prover.attempt(toy_optimum_s, 0.0)
    assert (prover.bound.method, prover.done) == ("simple", True)


def test_no_ops(make_package):
    """An empty graph has nothing to prove."""
    prover = new_prover(Problem(GraphBuilder("empty").build(), make_package(2)))
    prover.attempt(1.0, 0.0)
    assert (prover.bound.seconds, prover.done) == (0.0, True)


def test_stopped(toy, toy_optimum_s):
    """When it is late an attempt proves nothing."""
    prover = new_prover(toy, is_late=lambda: True)
    prover.attempt(toy_optimum_s, 0.0)
    assert (prover.bound.method, prover.found) == ("simple", None)


@pytest.mark.parametrize("few_ideals", [True, False])
def test_confirms(toy, toy_optimum_s, monkeypatch, few_ideals):
    """A bound is proven again, by ideals or by a chain; a larger one is not."""
    if not few_ideals:
        monkeypatch.setattr(prove, "MAX_VISITS", 1)
    assert new_prover(toy).confirms(16 / 3 * (1 - 1e-9))
    assert new_prover(toy).confirms(toy_optimum_s)
    assert not new_prover(toy).confirms(toy_optimum_s * 1.01)
