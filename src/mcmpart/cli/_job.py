"""The work behind ``mcmpart partition``: from typed options to a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mcmpart.cli._console import Progress, note
from mcmpart.cli._options import METHODS, ModelOptions
from mcmpart.errors import InputError, McmpartError

if TYPE_CHECKING:
    from mcmpart.graph import Graph
    from mcmpart.hardware import Package
    from mcmpart.partition import Partition
    from mcmpart.plan import Plan
    from mcmpart.problem import Problem
    from mcmpart.search import Budget
    from mcmpart.solve import Result


MAX_WORKERS = 1024
"""More threads than any machine has cores for are a slip of the finger."""


class InterruptedSearchError(McmpartError):
    """Ctrl-C came before there was a plan (exit code 130)."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What to place where, as typed."""

    package: str
    chips: int | None
    precision: str
    replica_threshold: float | None
    pins: dict[str, int]
    together: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, str], ...]
    all_chips: bool
    start: Path | None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search, and for how long, as typed."""

    method: str
    time_s: float
    evaluations: int | None
    gap: float
    seed: int
    workers: int | None


@contextmanager
def interruptible(aim: str = "a plan was found") -> Iterator[None]:
    """Say of Ctrl-C that nothing was written: what keeps a result does not raise."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedSearchError(
            f"interrupted before {aim}: nothing was written"
        ) from error


def run(model: ModelOptions, task: TaskOptions, options: SearchOptions) -> Result:
    """Read the model, set the problem up and search; progress goes to stderr."""
    from mcmpart.solve import solve

    # A slip in an option is answered before a large model is read.
    budget = _budget(options)
    plan = _start_plan(task)
    problem = problem_of(model, task, plan)
    start = _partition_of(plan, problem.graph) if plan else None
    return solve(
        problem,
        method=options.method,
        time_s=budget.time_s,
        evaluations=budget.evaluations,
        gap=budget.gap,
        seed=options.seed,
        workers=options.workers,
        start=start,
        on_improvement=Progress(),
    )


def problem_of(
    model: ModelOptions, task: TaskOptions, start: Plan | None = None
) -> Problem:
    """Read the model and set the problem up; import notes go to stderr."""
    _check_share("--replica-threshold", task.replica_threshold)
    package = _package(task)
    return _problem(_imported(model), package, start, task)


def _budget(options: SearchOptions) -> Budget:
    from mcmpart._files import did_you_mean
    from mcmpart.search import Budget

    if options.method not in METHODS:
        raise InputError(
            f"there is no method {options.method!r}"
            f"{did_you_mean(options.method, METHODS)}: choose one of "
            f"{', '.join(METHODS)}"
        )
    if options.gap >= 1:
        raise InputError(
            f"--gap is {options.gap:g}, and a gap is a share below 1: 0.05 is 5 %"
        )
    if options.seed < 0:
        raise InputError(f"--seed is {options.seed}: give 0 or more")
    if options.workers is not None and not 1 <= options.workers <= MAX_WORKERS:
        raise InputError(
            f"--workers is {options.workers}: give 1 to {MAX_WORKERS}, or leave it out "
            "for one per core"
        )
    return Budget(options.time_s, options.evaluations, options.gap)


def _check_share(option: str, value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise InputError(f"{option} is {value:g}: give a share from 0 to 1")


def _package(task: TaskOptions) -> Package:
    from mcmpart.hardware import load_package

    package = load_package(task.package)
    return package if task.chips is None else package.with_chips(task.chips)


def _start_plan(task: TaskOptions) -> Plan | None:
    from mcmpart.plan import read_plan

    return None if task.start is None else read_plan(task.start)


def _imported(model: ModelOptions) -> Graph:
    imported = model.read()
    # Op kinds are what `inspect` is for; the plan's assumptions end on stdout.
    for line in replace(imported.report, ops_of_kind=(), assumptions=()).lines():
        note(line)
    return imported.graph


def _problem(
    graph: Graph, package: Package, start: Plan | None, task: TaskOptions
) -> Problem:
    from mcmpart.problem import Problem, UserRules

    return Problem(
        graph,
        package,
        precision=task.precision,
        user=UserRules(task.pins, task.together, task.apart, task.all_chips),
        replica_threshold=_threshold(start, task),
    )


def _threshold(start: Plan | None, task: TaskOptions) -> float | None:
    """Return the replica threshold that was typed, or else that of the first plan.

    That one was made with some ops replicated; with the same ones it is valid again.
    """
    if start is None or task.replica_threshold is not None:
        return task.replica_threshold
    return start.search.settings.replica_threshold


def _partition_of(plan: Plan, graph: Graph) -> Partition:
    """Return the plan's placement of the ops of ``graph``, by name.

    An op that was replicated then and is not now goes to the first chip that had it.
    """
    import numpy as np

    from mcmpart.partition import NO_CHIP, Partition

    placed = {
        name: int(chip)
        for chip, names in reversed(plan.replicas.items())
        for name in names
    }
    placed |= plan.chip_of
    lost = [
        name
        for name, copied in zip(graph.op_name, graph.op_replicable, strict=True)
        if name not in placed and not copied
    ]
    extra = sorted(placed.keys() - set(graph.op_name))
    if lost or extra:
        first = f"does not place op {lost[0]!r}" if lost else f"places op {extra[0]!r}"
        raise InputError(
            f"the plan to start from is not one of this model: it {first}; give a plan "
            "of the same model, read with the same options"
        )
    chip_of = [placed.get(name, NO_CHIP) for name in graph.op_name]
    return Partition(graph, np.array(chip_of, dtype=np.int32))
