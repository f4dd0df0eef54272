"""The main path: a problem in, a verified result out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mcmpart._workers import num_workers
from mcmpart.bounds import simple_bound_s
from mcmpart.bounds.exhaustive import TINY_OPS, TINY_PARTITIONS, best_of_all
from mcmpart.bounds.infeasible import raise_if_impossible
from mcmpart.bounds.prove import Bound
from mcmpart.errors import InputError, NoPlanFoundError
from mcmpart.evaluate import Evaluation, evaluate
from mcmpart.graph.graph import Int32
from mcmpart.partition import NO_CHIP, Partition
from mcmpart.problem import Problem
from mcmpart.replication import choose_replicas
from mcmpart.rules import Violation, explain
from mcmpart.search import (
    METHODS,
    Budget,
    Evaluator,
    SearchMethod,
    SearchRecord,
    Setting,
    TracePoint,
    checked,
    pipeline_evaluator,
    relative_gap,
    run_search,
)
from mcmpart.search.beside import Proof, WithProof
from mcmpart.search.interrupt import noted_interrupts
from mcmpart.search.warm import warm_up
from mcmpart.shortage import CORE_S, last_resort, late_after
from mcmpart.solver.explain import raise_if_contradictory
from mcmpart.units import format_seconds


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The best partition found, what it costs, and how far it can be from the best.

    Attributes
    ----------
    problem, partition
        What was asked, and the answer.
    metrics
        Every figure of the partition under the analytical model.
    bound
        No partition of this problem has a smaller bottleneck, and how that is known.
    trace
        One point per improvement.
    method, seed, budget, workers
        How it was found.
    evaluations, seconds, stopped_by
        What was spent, and what ended the search: ``"gap"``, ``"time"``,
        ``"evaluations"``, ``"done"`` or ``"interrupt"``.
    notes
        What a user should know of the search, one sentence each.
    measured_s
        Smallest bottleneck that an evaluator of the caller's own reported, in seconds;
        None where the analytical model judged.
    """

    problem: Problem
    partition: Partition
    metrics: Evaluation
    bound: Bound
    trace: tuple[TracePoint, ...]
    method: str
    seed: int
    budget: Budget
    workers: int
    evaluations: int
    seconds: float
    stopped_by: str
    notes: tuple[str, ...] = ()
    measured_s: float | None = None

    @property
    def lower_bound_s(self) -> float:
        """No partition of this problem has a smaller bottleneck."""
        return self.bound.seconds

    @property
    def lower_bound_method(self) -> str:
        """How the bound is known."""
        return self.bound.method

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
    evaluator: Evaluator | None = None,
    on_improvement: Callable[[TracePoint], None] = lambda point: None,
) -> Result:
    """Return the best valid partition found within the budget.

    Parameters
    ----------
    problem
        The graph, the package and the rules.
    method
        A key of ``mcmpart.search.METHODS``, or what makes a method of your own from a
        :class:`Setting`. With an evaluator ``"auto"`` is ``"correct"``.
    time_s, evaluations, gap
        The budget: wall time of the search in seconds, number of partitions judged,
        and the gap to the lower bound at which to stop.
    seed
        Decides every random choice.
    workers
        Threads, by default one per core.
    start
        A partition to start from; it need not be valid.
    evaluator
        Judges the partitions in place of the analytical model: a simulator, hardware.
        The lower bound says nothing of its values, so the gap does not end the search.
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
    if method == "auto" and evaluator is not None:
        # auto's stages move by the analytical model; this one learns the evaluator's.
        method = "correct"
    if evaluator is not None:
        evaluator = checked(evaluator)
    make_method = _method_called(method)
    if seed < 0:
        raise InputError(f"the seed is {seed}: give 0 or more")
    raise_if_impossible(problem)
    with noted_interrupts():
        warm_up(
            method if isinstance(method, str) else "",
            with_solver=problem.user.binds_chips,
            with_triangle=problem.package_arrays.triangle,
        )
        started = time.perf_counter()
        record = None
        if start is None and evaluator is None:
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
        if record is None and method == "auto" and evaluator is None:
            record = _exhaust(problem, budget, started, on_improvement)
            if record is not None:
                bound = Bound(record.bottleneck_s, "exhaustive")
        search = partial(
            run_search,
            evaluator=evaluator or pipeline_evaluator(problem, workers),
            budget=budget,
            started=started,
            start=setting.start,
            on_improvement=on_improvement,
        )
        if record is None and evaluator is None and evaluations is None:
            with Proof(problem, setting.deadline, gap) as proof:
                setting = replace(setting, shares_a_core=proof.needs_a_core)
                record = search(
                    WithProof(make_method(setting), proof),
                    lower_bound_s=lambda: proof.bound.seconds,
                )
            bound = proof.bound
        elif record is None:
            known_s = bound.seconds if evaluator is None else 0.0
            record = search(make_method(setting), lower_bound_s=known_s)
        partition = _partition_of(problem, record, evaluator)
        measured_s = _measured_s(record, evaluator)
        return Result(
            problem=problem,
            partition=partition,
            metrics=evaluate(problem, partition),
            bound=bound,
            trace=tuple(record.trace),
            method=method if isinstance(method, str) else _name_of(method),
            seed=seed,
            budget=budget,
            workers=workers,
            evaluations=record.evaluations,
            seconds=record.seconds,
            stopped_by=record.stopped_by,
            notes=_notes(problem, start, measured_s),
            measured_s=measured_s,
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
        bound=Bound(simple_bound_s(problem), "simple"),
        trace=(),
        method="given",
        seed=0,
        budget=Budget(),
        workers=1,
        evaluations=1,
        seconds=0.0,
        stopped_by="done",
    )


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


def _partition_of(
    problem: Problem, record: SearchRecord, evaluator: Evaluator | None
) -> Partition:
    if record.best is not None:
        return Partition(problem.graph, record.best)
    if record.stopped_by == "interrupt":
        raise KeyboardInterrupt
    spent = f"partitions judged: {record.evaluations}, time: {record.seconds:.1f} s"
    if evaluator is not None and record.evaluations:
        raise NoPlanFoundError(
            f"the evaluator called every partition invalid ({spent}): give it more "
            "--time, or another --method"
        )
    chip_of = last_resort(problem, spent)
    if evaluator is not None and not evaluator(chip_of[None]).valid[0]:
        raise NoPlanFoundError(
            f"the evaluator called the only partition invalid that was found ({spent})"
        )
    return Partition(problem.graph, chip_of)


def _measured_s(record: SearchRecord, evaluator: Evaluator | None) -> float | None:
    return None if evaluator is None or record.best is None else record.bottleneck_s


def _notes(
    problem: Problem, start: Partition | None, measured_s: float | None
) -> tuple[str, ...]:
    notes = []
    if measured_s is not None:
        notes.append(
            f"an evaluator judged the partitions and measured "
            f"{format_seconds(measured_s)} for this one; all other figures are those "
            "of the cost model"
        )
    broken = () if start is None else _broken(problem, start)
    if broken:
        notes.append(
            f"the partition to start from is not valid here (rule {broken[0].rule}: "
            f"{broken[0].message}), so it was only a hint"
        )
    return tuple(notes)


def _broken(problem: Problem, start: Partition) -> Sequence[Violation]:
    chip_of = start.chip_of.tolist()
    return explain(problem.graph, problem.package, chip_of, problem.user)
