"""The search protocol: a method proposes, an evaluator judges, a loop keeps score.

Every method, ours or a user's, goes through :func:`run_search`: one budget, one trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from mcmpart.bounds.prove import OPTIMAL, Bound
from mcmpart.errors import InputError
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Bool, Float64, Int32
from mcmpart.problem import Problem
from mcmpart.search.interrupt import is_pressed, noted_interrupts


@dataclass(frozen=True, slots=True, eq=False)
class Evaluations:
    """What an evaluator found out about some partitions.

    Attributes
    ----------
    chip_of
        ``[B, V] int32``.
    bottleneck_s
        ``[B] float64``.
    valid
        ``[B] bool``.
    stage_s
        ``[B, C] float64``: time of each chip's stage as the evaluator saw it, 0 for an
        empty chip, NaN where it does not know; None where it tells no stage times.
    """

    chip_of: Int32
    bottleneck_s: Float64
    valid: Bool
    stage_s: Float64 | None = None

    @property
    def valid_s(self) -> Float64:
        """Bottleneck of each valid row, infinite for the others, ``[B] float64``."""
        return np.where(self.valid, self.bottleneck_s, np.inf)


class Evaluator(Protocol):
    """Judges partitions ``[B, V] int32`` of one problem."""

    def __call__(self, chip_of: Int32) -> Evaluations:
        """Return what was found out, one entry per row."""
        ...


class SearchMethod(Protocol):
    """Proposes partitions and learns from what they turn out to cost.

    Attributes
    ----------
    name
        What ``--method`` calls it; stands in the trace.
    done
        True when it has nothing more to propose.
    """

    name: str
    done: bool

    def propose(self) -> Int32:
        """Return partitions to judge next, ``[B, V] int32``; B may be 0.

        One call should take some 50 ms at most, so that the budget is kept.
        """
        ...

    def observe(self, evaluations: Evaluations) -> None:
        """Take note of what the last proposals cost."""
        ...


@runtime_checkable
class Proving(Protocol):
    """A method that also knows a bound, by the analytical model.

    Attributes
    ----------
    bound
        What no valid partition can beat.
    """

    @property
    def bound(self) -> Bound:
        """The best bound so far."""
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """What a method gets to work with.

    Attributes
    ----------
    problem
        The problem.
    seed
        Decides every random choice.
    workers
        Threads it may use.
    deadline
        ``time.perf_counter()`` after which a proposal comes too late.
    start
        ``[V] int32`` valid partition to start from, or None.
    shares_a_core
        Whether a thread beside the search has need of a core just now.
    """

    problem: Problem
    seed: int = 0
    workers: int = 1
    deadline: float = float("inf")
    start: Int32 | None = None
    shares_a_core: Callable[[], bool] = lambda: False

    def threads(self) -> int:
        """Return how many threads to use just now."""
        return max(self.workers - self.shares_a_core(), 1)

    def is_late(self) -> bool:
        """Return whether the deadline has passed, or Ctrl-C was pressed."""
        return time.perf_counter() >= self.deadline or is_pressed()


@dataclass(frozen=True, slots=True)
class Budget:
    """When a search stops: the first of these to be met.

    Attributes
    ----------
    time_s
        Wall time.
    evaluations
        Number of partitions judged, or None.
    gap
        Relative distance of the best plan from the proven lower bound; the tolerance
        of the proofs, ``bounds.prove.OPTIMAL``, counts as 0.
    """

    time_s: float = 10.0
    evaluations: int | None = None
    gap: float = 0.0

    def __post_init__(self) -> None:
        if not (self.time_s > 0 and np.isfinite(self.time_s)):
            raise InputError(f"the time limit is {self.time_s} s: give more than 0")
        if self.evaluations is not None and self.evaluations < 1:
            raise InputError(
                f"the limit is {self.evaluations} partitions judged: give at least 1"
            )
        if not 0 <= self.gap < 1:
            raise InputError(
                f"the gap is {self.gap}: give a share from 0 to below 1, 0.01 is 1 %"
            )


@dataclass(frozen=True, slots=True)
class TracePoint:
    """One improvement: when, how good, how far from the bound, and by whom."""

    evaluations: int
    seconds: float
    bottleneck_s: float
    lower_bound_s: float
    method: str


@dataclass(slots=True)
class SearchRecord:
    """The score of a running search.

    Attributes
    ----------
    best
        ``[V] int32``, the best valid partition so far, or None.
    bottleneck_s
        Its cost; infinite while there is none.
    evaluations, seconds
        What was spent.
    trace
        One point per improvement.
    stopped_by
        ``"gap"``, ``"time"``, ``"evaluations"``, ``"done"`` or ``"interrupt"``.
    """

    best: Int32 | None = None
    bottleneck_s: float = float("inf")
    evaluations: int = 0
    seconds: float = 0.0
    trace: list[TracePoint] = field(default_factory=list)
    stopped_by: str = ""


def pipeline_evaluator(problem: Problem, workers: int) -> Evaluator:
    """Return the analytical model as an evaluator."""

    def judge(chip_of: Int32) -> Evaluations:
        bottleneck_s, valid = evaluate_many(problem, chip_of, workers=workers)
        return Evaluations(chip_of, bottleneck_s, valid)

    return judge


def checked(evaluator: Evaluator) -> Evaluator:
    """Return an evaluator of the caller's own whose answers are looked at.

    Raises
    ------
    InputError
        From the evaluator returned: an answer is no :class:`Evaluations`, has not one
        entry per row, or says that a valid partition takes less than 0 s, or NaN.
    """

    def judge(chip_of: Int32) -> Evaluations:
        found = evaluator(chip_of)
        if not isinstance(found, Evaluations):
            raise InputError(
                f"the evaluator returned a {type(found).__name__}: return "
                "mcmpart.search.Evaluations(chip_of, bottleneck_s, valid)"
            )
        rows = chip_of.shape[0]
        for name in ("bottleneck_s", "valid"):
            shape = np.shape(getattr(found, name))
            if shape != (rows,):
                raise InputError(
                    f"the evaluator's {name} has shape {shape}: give one entry for "
                    f"each of the {rows} partitions"
                )
        stated_s = np.asarray(found.bottleneck_s)[np.asarray(found.valid, dtype=bool)]
        wrong = stated_s[~(stated_s >= 0)]
        if wrong.size:
            raise InputError(
                f"the evaluator says {wrong[0]} s of a partition that it calls valid: "
                "give seconds from 0 on, or call it invalid"
            )
        return found

    return judge


def relative_gap(bottleneck_s: float, lower_bound_s: float) -> float:
    """Return (bottleneck - bound) / bottleneck, from 0 (proven optimal) to 1."""
    if bottleneck_s <= lower_bound_s:
        return 0.0
    if not np.isfinite(bottleneck_s):
        return 1.0
    return (bottleneck_s - lower_bound_s) / bottleneck_s


def run_search(
    method: SearchMethod,
    evaluator: Evaluator,
    budget: Budget,
    lower_bound_s: float | Callable[[], float],
    *,
    started: float,
    start: Int32 | None = None,
    on_improvement: Callable[[TracePoint], None] = lambda point: None,
) -> SearchRecord:
    """Run ``method`` until the budget is spent and return the score.

    An interrupt (Ctrl-C) ends the search and keeps the best partition so far.

    Parameters
    ----------
    lower_bound_s
        What no partition can beat; a function where that rises during the search. The
        trace has a point, by the name of ``bound``, for each rise.
    started
        ``time.perf_counter()`` at which the time limit began to count.
    start
        ``[V] int32``, judged before anything the method proposes.
    on_improvement
        Called with each new point of the trace.
    """
    record = SearchRecord()

    def bound_s() -> float:
        return lower_bound_s() if callable(lower_bound_s) else lower_bound_s

    def judge(rows: Int32, name: str) -> None:
        found = evaluator(rows)
        method.observe(found)
        if _keep_best(record, found):
            note(name)

    def note(name: str) -> None:
        point = TracePoint(
            evaluations=record.evaluations,
            seconds=time.perf_counter() - started,
            bottleneck_s=record.bottleneck_s,
            lower_bound_s=bound_s(),
            method=name,
        )
        record.trace.append(point)
        on_improvement(point)

    try:
        with noted_interrupts():
            if start is not None:
                judge(start[None], "start")
            while not record.stopped_by:
                rows = _checked_rows(method)
                if budget.evaluations is not None:
                    rows = rows[: budget.evaluations - record.evaluations]
                if rows.shape[0]:
                    judge(rows, method.name)
                if record.trace and bound_s() > record.trace[-1].lower_bound_s:
                    note("bound")
                record.seconds = time.perf_counter() - started
                record.stopped_by = _stop_reason(record, method, budget, bound_s())
    except KeyboardInterrupt:
        record.seconds = time.perf_counter() - started
        record.stopped_by = "interrupt"
    return record


def _checked_rows(method: SearchMethod) -> Int32:
    """Return the next proposal; the evaluator checks the chips."""
    rows = np.asarray(method.propose())
    if rows.ndim != 2:
        raise InputError(
            f"method {method.name!r} proposed an array of shape {rows.shape}: propose "
            "one row per partition, [B, V]"
        )
    return rows


def _keep_best(record: SearchRecord, found: Evaluations) -> bool:
    """Keep the best valid row; return whether it is better than what there was."""
    record.evaluations += found.chip_of.shape[0]
    cost = found.valid_s
    row = int(cost.argmin())
    if cost[row] >= record.bottleneck_s:
        return False
    record.best = found.chip_of[row].copy()
    record.bottleneck_s = float(cost[row])
    return True


def _stop_reason(
    record: SearchRecord, method: SearchMethod, budget: Budget, lower_bound_s: float
) -> str:
    if is_pressed():
        return "interrupt"
    if record.best is not None:
        gap = relative_gap(record.bottleneck_s, lower_bound_s)
        if gap <= max(budget.gap, OPTIMAL):
            return "gap"
    if budget.evaluations is not None and record.evaluations >= budget.evaluations:
        return "evaluations"
    if record.seconds >= budget.time_s:
        return "time"
    return "done" if method.done else ""


def no_rows(problem: Problem) -> Int32:
    """Return an empty proposal, ``[0, V] int32``."""
    return np.empty((0, problem.graph.num_ops), dtype=np.int32)
