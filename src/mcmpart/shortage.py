"""What to say, and do, when a search ends without a valid plan."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from mcmpart.bounds.exhaustive import MAX_PARTITIONS, best_of_all
from mcmpart.errors import InfeasibleError, NoPlanFoundError
from mcmpart.evaluate import evaluate
from mcmpart.graph.graph import Int32
from mcmpart.hardware.package import MAX_CHIPS
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search import Setting, pipeline_evaluator
from mcmpart.search.interrupt import is_pressed
from mcmpart.search.slice import Slice
from mcmpart.solver.explain import Feasibility, contradiction, find_any
from mcmpart.units import format_bytes

SMALL_OPS = 32
"""Most ops of a graph whose partitions are looked at one by one."""

SEARCH_S = 2.0
"""Most time that goes into an exhaustive search of a larger graph."""

CORE_S = 2.0
"""Most time that goes into finding which demands contradict each other."""

HINT_S = 2.0
"""Most time that goes into working out what would fit."""

LARGEST_BYTES = 2**63 - 1
"""Most memory that a chip can have."""

SCALES = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 16.0)
"""Multiples of the chips' memory that are tried for the hint."""


def last_resort(problem: Problem, spent: str) -> Int32:
    """Return a valid partition, ``[V] int32``, or say why there is none.

    It is the best one where a graph is small, and any elsewhere.

    Raises
    ------
    InfeasibleError
        Every way to place the ops was looked at, or refuted, and none is valid.
    NoPlanFoundError
        The time was too short for that; the message says what would fit.
    """
    small = problem.graph.num_ops <= SMALL_OPS
    looked_at = best_of_all(problem, MAX_PARTITIONS if small else 0)
    if looked_at.chip_of is not None:
        return looked_at.chip_of
    found = Feasibility(None, is_impossible=looked_at.complete)
    if not looked_at.complete:
        found = find_any(problem, late_after(SEARCH_S))
    if found.chip_of is not None:
        return found.chip_of
    hint = _memory_hint(problem, time.perf_counter() + HINT_S)
    if is_pressed():
        raise KeyboardInterrupt
    if found.is_impossible:
        rule, reason = _reason(problem, hint)
        raise InfeasibleError(
            rule, f"no plan exists (all partitions were looked at): {reason}"
        )
    raise NoPlanFoundError(
        f"no valid plan was found ({spent}), and none is proven impossible: "
        + (hint or "give it more --time, another --seed, or a package with fewer rules")
    )


def late_after(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether the time is over, or Ctrl-C was pressed."""
    deadline = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= deadline or is_pressed()


def _reason(problem: Problem, hint: str) -> tuple[str, str]:
    """Return the rule that no partition obeys, and the sentence that says so."""
    if hint:
        return "memory", hint
    return contradiction(problem, late_after(CORE_S))


def _memory_hint(problem: Problem, deadline: float) -> str:
    """Return what is missing, if more memory or more chips would give a plan."""
    if not problem.package_arrays.memory:
        return ""
    for scale in SCALES:
        if time.perf_counter() >= deadline:
            break
        roomier = _with_memory(problem, scale)
        found = _first_plan(roomier, deadline)
        shortage = "" if found is None else _shortage(problem, roomier, found)
        if shortage:
            return shortage + _more_chips(problem, deadline)
    return ""


def _shortage(problem: Problem, roomier: Problem, chip_of: Int32) -> str:
    """Return the sentence on the chip that overflows most in a plan that is close.

    It is empty where none overflows: the search was only unlucky before.
    """
    loads = evaluate(roomier, Partition(roomier.graph, chip_of)).chips
    over = [
        (load.memory_bytes - chip.memory_bytes, load)
        for load, chip in zip(loads, problem.package.chips, strict=True)
    ]
    missing, worst = max(over, key=lambda pair: pair[0])
    if missing <= 0:
        return ""
    names = [
        problem.graph.op_name[op]
        for op, chip in enumerate(chip_of.tolist())
        if chip == worst.chip
    ]
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return (
        f"the closest plan does not fit by {format_bytes(missing)} on chip "
        f"{worst.chip} (ops {shown}), which needs {format_bytes(worst.memory_bytes)} "
        f"and has {format_bytes(problem.package.chips[worst.chip].memory_bytes)}"
    )


def _more_chips(problem: Problem, deadline: float) -> str:
    """Return how many chips would be enough, if a number up to the limit is."""
    count = problem.num_chips
    # A single chip may come without a link to join others by.
    while (
        count < MAX_CHIPS
        and problem.package.base_link is not None
        and time.perf_counter() < deadline
    ):
        count = min(2 * count, MAX_CHIPS)
        package = problem.package.with_chips(count)
        wider = dataclasses.replace(problem, package=package)
        found = _first_plan(wider, deadline)
        if found is not None:
            used = Partition(wider.graph, found).num_used_chips
            return f"; {used} chips of the same kind would be enough"
    return "; give chips more memory, or choose a smaller --precision"


def _with_memory(problem: Problem, scale: float) -> Problem:
    chips = tuple(
        dataclasses.replace(
            chip, memory_bytes=min(int(chip.memory_bytes * scale), LARGEST_BYTES)
        )
        for chip in problem.package.chips
    )
    package = dataclasses.replace(
        problem.package, chips=chips, base_chip=None, base_link=None
    )
    return dataclasses.replace(problem, package=package)


def _first_plan(problem: Problem, deadline: float) -> Int32 | None:
    method = Slice(Setting(problem, deadline=deadline), max_orders=2)
    judge = pipeline_evaluator(problem, 1)
    while not method.done and time.perf_counter() < deadline:
        rows = method.propose()
        if rows.shape[0] and judge(rows).valid[0]:
            chip_of: Int32 = rows[0]
            return chip_of
    return None
