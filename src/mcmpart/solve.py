"""The main path: a problem in, a verified result out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mcmpart._workers import num_workers
from mcmpart.bounds import simple_bound_s
from mcmpart.bounds.exhaustive import TINY_OPS, TINY_PARTITIONS, best_of_all
from mcmpart.bounds.infeasible import raise_if_impossible
from mcmpart.errors import InputError
from mcmpart.evaluate import Evaluation, evaluate
from mcmpart.graph.graph import Int32
from mcmpart.partition import NO_CHIP, Partition
from mcmpart.problem import Problem
from mcmpart.replication import choose_replicas
from mcmpart.rules import explain
from mcmpart.search import (
    METHODS,
    Budget,
    SearchMethod,
    SearchRecord,
    Setting,
    TracePoint,
    pipeline_evaluator,
    relative_gap,
    run_search,
)
from mcmpart.search.interrupt import noted_interrupts
from mcmpart.search.warm import warm_up
from mcmpart.shortage import CORE_S, last_resort, late_after
from mcmpart.solver.explain import raise_if_contradictory


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The best partition found, what it costs, and how far it can be from the best.

    Attributes
    ----------
    problem, partition
        What was asked, and the answer.
    metrics
        Every figure of the partition under the analytical model.
    lower_bound_s, lower_bound_method
        No partition of this problem has a smaller bottleneck; how that is known.
    trace
        One point per improvement.
    method, seed, budget, workers
        How it was found.
    evaluations, seconds, stopped_by
        What was spent, and what ended the search: ``"gap"``, ``"time"``,
        ``"evaluations"``, ``"done"`` or ``"interrupt"``.
    notes
        What a user should know of the search, one sentence each.
    """

    problem: Problem
    partition: Partition
    metrics: Evaluation
    lower_bound_s: float
    lower_bound_method: str
    trace: tuple[TracePoint, ...]
    method: str
    seed: int
    budget: Budget
    workers: int
    evaluations: int
    seconds: float
    stopped_by: str
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Relative distance from the bound, 0 when the partition is proven optimal."""
        return relative_gap(self.metrics.bottleneck_s, self.lower_bound_s)


def solve(
    problem: Problem,
    *,
    method: str | Callable[[Setting], SearchMethod] = "auto",
    time_s: float = 10.0,
    evaluations: int | None = None,
    gap: float = 0.01,
    seed: int = 0,
    workers: int | None = None,
    start: Partition | None = None,
    on_improvement: Callable[[TracePoint], None] = lambda point: None,
) -> Result:
    """Return the best valid partition found within the budget.

    Parameters
    ----------
    problem
        The graph, the package and the rules.
    method
        A key of ``mcmpart.search.METHODS``, or what makes a method of your own from a
        :class:`Setting`.
    time_s, evaluations, gap
        The budget: wall time of the search in seconds, number of partitions judged,
        and the gap to the lower bound at which to stop.
    seed
        Decides every random choice.
    workers
        Threads, by default one per core.
    start
        A partition to start from; it need not be valid.
    on_improvement
        Called with each new best.

    Raises
    ------
    InputError
        An unknown method, a partition to start from that is for another graph, or a
        seed, worker count or budget out of range.
    InfeasibleError
        It is proven that no valid partition exists.
    NoPlanFoundError
        None was found in the time given.
    """
    budget = Budget(time_s, evaluations, gap)
    workers = num_workers(workers)
    make_method = _method_called(method)
    if seed < 0:
        raise InputError(f"the seed is {seed}: give 0 or more")
    raise_if_impossible(problem)
    with noted_interrupts():
        warm_up(
            method if isinstance(method, str) else "",
            with_solver=problem.user.binds_chips,
        )
        started = time.perf_counter()
        record = None
        if start is None:
            problem, record = choose_replicas(problem, time_s)
        if record is None:
            raise_if_contradictory(problem, late_after(CORE_S))
        setting = Setting(
            problem=problem,
            seed=seed,
            workers=workers,
            deadline=started + time_s,
            start=None if start is None else _start_of(problem, start),
        )
        bound = Bound(simple_bound_s(problem), "simple")
        if record is None and method == "auto":
            record = _exhaust(problem, budget, started, on_improvement)
            if record is not None:
                bound = Bound(record.bottleneck_s, "exhaustive")
        if record is None:
            record = run_search(
                make_method(setting),
                pipeline_evaluator(problem, workers),
                budget,
                bound.seconds,
                started=started,
                start=setting.start,
                on_improvement=on_improvement,
            )
        partition = _partition_of(problem, record)
        return Result(
            problem=problem,
            partition=partition,
            metrics=evaluate(problem, partition),
            lower_bound_s=bound.seconds,
            lower_bound_method=bound.method,
            trace=tuple(record.trace),
            method=method if isinstance(method, str) else _name_of(method),
            seed=seed,
            budget=budget,
            workers=workers,
            evaluations=record.evaluations,
            seconds=record.seconds,
            stopped_by=record.stopped_by,
            notes=_notes(problem, start),
        )


def make_result(problem: Problem, partition: Partition) -> Result:
    """Return a partition of your own as a result: to be written, verified, reported.

    Raises
    ------
    InputError
        It breaks a rule, and the message says which and how; or it is for another
        graph.
    """
    # Which ops are replicated is the problem's to say.
    partition = Partition(problem.graph, partition.chip_of)
    broken = explain(
        problem.graph, problem.package, partition.chip_of.tolist(), problem.user
    )
    if broken:
        raise InputError(
            f"the partition breaks the rule {broken[0].rule}: {broken[0].message}"
        )
    return Result(
        problem=problem,
        partition=partition,
        metrics=evaluate(problem, partition),
        lower_bound_s=simple_bound_s(problem),
        lower_bound_method="simple",
        trace=(),
        method="given",
        seed=0,
        budget=Budget(),
        workers=1,
        evaluations=1,
        seconds=0.0,
        stopped_by="done",
    )


class Bound(NamedTuple):
    """A lower bound in seconds and the method that proves it."""

    seconds: float
    method: str


def _method_called(
    method: str | Callable[[Setting], SearchMethod],
) -> Callable[[Setting], SearchMethod]:
    if not isinstance(method, str):
        return method
    if method not in METHODS:
        raise InputError(
            f"there is no method {method!r}: choose one of {', '.join(METHODS)}"
        )
    return METHODS[method]


def _name_of(make_method: Callable[[Setting], SearchMethod]) -> str:
    """Return the function's or class's name; a partial or a callable has none."""
    return str(getattr(make_method, "__name__", type(make_method).__name__))


def _start_of(problem: Problem, start: Partition) -> Int32:
    """Return the chips to start from, replicated ops as ``problem`` has them."""
    if start.chip_of.size != problem.graph.num_ops:
        raise InputError(
            f"the partition to start from is for {start.chip_of.size} ops, and the "
            f"graph has {problem.graph.num_ops}: start from a partition of this graph"
        )
    chip_of = start.chip_of.copy()
    chip_of[problem.graph.op_replicable] = NO_CHIP
    return chip_of


def _exhaust(
    problem: Problem,
    budget: Budget,
    started: float,
    on_improvement: Callable[[TracePoint], None],
) -> SearchRecord | None:
    """Judge all partitions of a problem if they are few; None if they are not."""
    if problem.graph.num_ops > TINY_OPS:
        return None
    limit = min(TINY_PARTITIONS, budget.evaluations or TINY_PARTITIONS)
    found = best_of_all(problem, limit)
    if not found.complete:
        return None
    seconds = time.perf_counter() - started
    point = TracePoint(
        evaluations=found.num_judged,
        seconds=seconds,
        bottleneck_s=found.bottleneck_s,
        lower_bound_s=found.bottleneck_s,
        method="exhaustive",
    )
    if found.chip_of is not None:
        on_improvement(point)
    return SearchRecord(
        best=found.chip_of,
        bottleneck_s=found.bottleneck_s,
        evaluations=found.num_judged,
        seconds=seconds,
        trace=[] if found.chip_of is None else [point],
        stopped_by="gap",
    )


def _partition_of(problem: Problem, record: SearchRecord) -> Partition:
    if record.best is not None:
        return Partition(problem.graph, record.best)
    if record.stopped_by == "interrupt":
        raise KeyboardInterrupt
    spent = f"partitions judged: {record.evaluations}, time: {record.seconds:.1f} s"
    return Partition(problem.graph, last_resort(problem, spent))


def _notes(problem: Problem, start: Partition | None) -> tuple[str, ...]:
    if start is None:
        return ()
    broken = explain(
        problem.graph, problem.package, start.chip_of.tolist(), problem.user
    )
    if not broken:
        return ()
    return (
        f"the partition to start from is not valid here (rule {broken[0].rule}: "
        f"{broken[0].message}), so it was only a hint",
    )
