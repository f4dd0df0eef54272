"""exact: the mixed integer program of the whole problem, for small graphs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcmpart._highs import solve_program
from mcmpart.bounds._exact_columns import ExactProgram
from mcmpart.bounds._exact_program import MOST_TERMS, exact_program, num_terms
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem

SAFE = 1 - 1e-6
"""What a bound gives away for the tolerances of the program's solver."""

BETTER = 1 - 1e-6
"""Only partitions that are better than the known one by this are looked for."""

OPTIMAL = 1 - 4e-6
"""A partition this close to its bound counts as optimal."""

RELATIVE_GAP = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class ExactResult:
    """What the program gave.

    Attributes
    ----------
    bound_s
        No valid partition has a smaller bottleneck; infinite where there is none.
    chip_of, bottleneck_s
        The best valid partition found, ``[V] int32``, and its cost; None and infinite
        where none better than the known one was found.
    proven
        The partition, or the known one where None was found, is optimal within some
        1e-6.
    infeasible
        It is proven that no valid partition exists.
    """

    bound_s: float
    chip_of: Int32 | None
    bottleneck_s: float
    proven: bool
    infeasible: bool


def exact_bound(
    problem: Problem,
    time_s: float,
    *,
    best_s: float = np.inf,
    is_late: Callable[[], bool] = lambda: False,
    on_partition: Callable[[Int32], None] = lambda chip_of: None,
) -> ExactResult:
    """Return a lower bound, and the partitions met on the way to it.

    Parameters
    ----------
    problem
        The problem. Where its program would be too large, nothing but ``simple`` is
        given.
    time_s
        Wall time; what is given at its end is valid too.
    best_s
        Cost of a known partition: only better ones are looked for.
    is_late
        Asked now and then; True ends the search as the time limit does.
    on_partition
        Called with each valid partition ``[V] int32`` that is better than those before.
    """
    return _Exact(problem, time_s, best_s, is_late, on_partition).run()


class _Exact:
    """Solves the program, and again without each partition that is not valid."""

    def __init__(
        self,
        problem: Problem,
        time_s: float,
        best_s: float,
        is_late: Callable[[], bool],
        on_partition: Callable[[Int32], None],
    ) -> None:
        self._problem = problem
        self._until = time.perf_counter() + time_s
        self._known_s = best_s
        self._is_late = is_late
        self._on_partition = on_partition
        self._bound_s = simple_bound_s(problem)
        self._best: Int32 | None = None
        self._best_s = best_s

    def run(self) -> ExactResult:
        """Return what was found within the time."""
        is_small = num_terms(self._problem, self._problem.ops) <= MOST_TERMS
        if is_small and not self._is_over():
            most_s = self._best_s * BETTER if np.isfinite(self._best_s) else np.inf
            exact = exact_program(self._problem, most_s, self._is_over)
            while exact is not None and not self._is_over() and self._solve(exact):
                pass
        bound_s = min(self._bound_s, self._best_s)
        return ExactResult(
            bound_s=bound_s,
            chip_of=self._best,
            bottleneck_s=self._best_s if self._best is not None else np.inf,
            proven=np.isfinite(bound_s) and bound_s >= self._best_s * OPTIMAL,
            infeasible=bool(np.isinf(bound_s)),
        )

    def _is_over(self) -> bool:
        return self._is_late() or time.perf_counter() >= self._until

    def _solve(self, exact: ExactProgram) -> bool:
        """Solve the program once; return whether it is worth another time."""
        invalid: dict[bytes, Int32] = {}

        def judge(values: NDArray[np.float64]) -> None:
            chip_of = exact.chip_of(values)
            if not self._is_valid(chip_of):
                invalid[chip_of.tobytes()] = chip_of

        solved = solve_program(
            exact.program,
            self._until - time.perf_counter(),
            is_late=self._is_over,
            relative_gap=RELATIVE_GAP,
            on_solution=judge,
        )
        if solved.values is not None:
            judge(solved.values)
        below_s = min(self._known_s * BETTER, self._best_s)
        bound_s = below_s if solved.infeasible else solved.bound * exact.unit_s
        if np.isfinite(bound_s):
            self._bound_s = max(self._bound_s, bound_s * SAFE)
        elif solved.infeasible:
            self._bound_s = np.inf
        for chip_of in invalid.values():
            exact.forbid(chip_of)
        is_proven = self._bound_s >= self._best_s * OPTIMAL
        return solved.optimal and bool(invalid) and not is_proven

    def _is_valid(self, chip_of: Int32) -> bool:
        """Return whether the partition is valid; keep it if it is the best."""
        bottleneck_s, valid = evaluate_many(self._problem, chip_of[None], workers=1)
        if valid[0] and bottleneck_s[0] < self._best_s:
            self._best, self._best_s = chip_of, float(bottleneck_s[0])
            self._on_partition(chip_of)
        return bool(valid[0])
