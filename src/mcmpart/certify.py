"""Lower bounds for their own sake: how good at most can any partition be."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from mcmpart._files import did_you_mean
from mcmpart.bounds.certificate import Certificate, make_certificate
from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.infeasible import raise_if_impossible
from mcmpart.bounds.prove import Bound, Prover
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.errors import InputError, NoPlanFoundError
from mcmpart.evaluate import evaluate
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search.interrupt import is_pressed, noted_interrupts
from mcmpart.solve import Result, solve

BOUND_METHODS = ("chain", "ideals", "exact", "simple")
"""chain tries ideals first; the others are alone."""

SEARCH_SHARE = 0.2
LONGEST_SEARCH_S = 10.0
"""Time for a plan to aim at: a bound cannot be better than the best plan."""


def lower_bound(
    problem: Problem, method: str = "chain", time_s: float = 60.0
) -> Certificate:
    """Return a bottleneck in seconds that no partition of ``problem`` can beat.

    Parameters
    ----------
    problem
        The problem. Where it leaves the replica threshold open, the bound is for the
        replicas that ``solve`` chooses: others are another problem with other bounds.
    method
        ``"chain"`` (with ideals where they are few), ``"ideals"``, ``"exact"`` (the
        dual bound of the integer program), ``"simple"``.
    time_s
        Wall time; a bound that is stopped early is valid.

    Raises
    ------
    InputError
        An unknown method, or a time that is not above 0.
    InfeasibleError
        It is proven that no valid partition exists.
    """
    return proven(problem, method, time_s).certificate


class Proven(NamedTuple):
    """A certificate and how it came about.

    Attributes
    ----------
    problem
        What it is for: those ops are replicated that ``solve`` chooses.
    certificate
        The bound.
    best_s
        Bottleneck of the best partition met on the way, in seconds, or infinite: the
        bound cannot rise above it.
    stopped_by
        ``"done"``, ``"time"`` or ``"interrupt"``: a longer proof may say more then.
    """

    problem: Problem
    certificate: Certificate
    best_s: float
    stopped_by: str


def check_options(method: str, time_s: float) -> None:
    """Refuse what :func:`lower_bound` cannot do, before a model is read.

    Raises
    ------
    InputError
        An unknown method, or a time that is not above 0.
    """
    if method not in BOUND_METHODS:
        raise InputError(
            f"there is no bound {method!r}{did_you_mean(method, BOUND_METHODS)}: "
            f"choose one of {', '.join(BOUND_METHODS)}"
        )
    if not (time_s > 0 and np.isfinite(time_s)):
        raise InputError(f"the time limit is {time_s} s: give more than 0")


def proven(problem: Problem, method: str, time_s: float) -> Proven:
    """Return what :func:`lower_bound` does, with the problem that it is for."""
    check_options(method, time_s)
    raise_if_impossible(problem)
    deadline = time.perf_counter() + time_s
    best_s, stopped_by = np.inf, "done"
    with noted_interrupts():
        try:
            search_s = min(SEARCH_SHARE * time_s, LONGEST_SEARCH_S)
            result = solve(problem, time_s=search_s, gap=0.0)
        except NoPlanFoundError:
            # There is nothing to aim at.
            bound = Bound(simple_bound_s(problem), "simple")
        else:
            problem = result.problem
            bound, best_s = _bound(result, method, deadline)
        if time.perf_counter() >= deadline:
            stopped_by = "time"
        if is_pressed():
            stopped_by = "interrupt"
    return Proven(problem, make_certificate(problem, *bound), best_s, stopped_by)


def _bound(result: Result, method: str, deadline: float) -> tuple[Bound, float]:
    """Return the best bound, and the bottleneck of the best partition met."""
    problem, best_s = result.problem, result.metrics.bottleneck_s
    simple = Bound(simple_bound_s(problem), "simple")
    if method == "simple":
        return simple, best_s
    if method == "exact":
        left_s = deadline - time.perf_counter()
        exact = exact_bound(problem, left_s, best_s=best_s, is_late=is_pressed)
        best_s = min(best_s, exact.bottleneck_s)
        return max(simple, Bound(min(exact.bound_s, best_s), "exact")), best_s
    if result.lower_bound_method == "exhaustive":
        return result.bound, best_s
    with_chain = method == "chain"
    prover = Prover(problem, deadline, is_pressed, with_chain=with_chain)
    if with_chain or result.lower_bound_method == method:
        prover.bound = result.bound
    while not prover.done and time.perf_counter() < deadline and not is_pressed():
        prover.attempt(best_s, 0.0)
        if prover.found is not None:
            found = Partition(problem.graph, prover.found)
            best_s = min(best_s, evaluate(problem, found).bottleneck_s)
    return prover.bound, best_s
