"""The one place where HiGHS is met: integer programs as arrays in, dual bounds out.

HiGHS: Huangfu and Hall, Mathematical Programming Computation 10 (2018).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import highspy
import numpy as np
from highspy.highs import HighsCallbackEvent
from numpy.typing import ArrayLike, NDArray

INFINITY = math.inf

POLL_S = 0.05
PATIENCE_S = 0.2
"""How often the solver is looked after, and how long it has for ending early."""

FEASIBLE = 1e-6
"""What HiGHS allows a row to be off by."""

BOUND_IS_VALID = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kTimeLimit,
    highspy.HighsModelStatus.kInterrupt,
)
"""How an integer program ends with a dual bound."""


@dataclass(slots=True)
class Program:
    """A mixed integer linear program that grows column by column and row by row.

    Every row says ``low <= sum of coefficient x column <= high``.
    """

    maximise: bool
    cost: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integral: list[bool] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    @property
    def num_columns(self) -> int:
        """Number of columns so far."""
        return len(self.cost)

    def binary(self, cost: float = 0.0, low: int = 0, high: int = 1) -> int:
        """Add a 0-1 column, or one fixed at ``low == high``; return its index."""
        return self._column(cost, low, high, True)

    def real(self, cost: float = 0.0, low: float = 0.0, high: float = INFINITY) -> int:
        """Add a continuous column; return its index."""
        return self._column(cost, low, high, False)

    def row(
        self,
        terms: Iterable[tuple[int, float]],
        low: float = -INFINITY,
        high: float = INFINITY,
    ) -> None:
        """Add a row; a column may stand in several terms."""
        summed: dict[int, float] = {}
        for column, coefficient in terms:
            summed[column] = summed.get(column, 0.0) + coefficient
        self.index += summed.keys()
        self.value += summed.values()
        self.start.append(len(self.index))
        self.row_low.append(low)
        self.row_high.append(high)

    def at_least(
        self, column: int, terms: Iterable[tuple[int, float]], low: float = 0.0
    ) -> None:
        """Demand column >= terms + low."""
        minus = [(other, -coefficient) for other, coefficient in terms]
        self.row([(column, 1.0), *minus], low=low)

    def _column(self, cost: float, low: float, high: float, integral: bool) -> int:
        self.cost.append(cost)
        self.lower.append(low)
        self.upper.append(high)
        self.integral.append(integral)
        return len(self.cost) - 1


@dataclass(frozen=True, slots=True)
class Solved:
    """What came of a program.

    Attributes
    ----------
    infeasible
        It is proven that no solution exists.
    bound
        No solution has a better objective: valid also where time ran out.
    objective, values
        Of the best solution found; None where there is none.
    optimal
        Whether ``objective`` is as good as ``bound`` says one can be.
    """

    infeasible: bool
    bound: float
    objective: float | None
    values: NDArray[np.float64] | None
    optimal: bool


def solve_program(
    program: Program,
    time_s: float,
    *,
    is_late: Callable[[], bool] = lambda: False,
    relative_gap: float = 1e-6,
    on_solution: Callable[[NDArray[np.float64]], None] | None = None,
) -> Solved:
    """Return the best solution and a bound, found by one thread within ``time_s``.

    Parameters
    ----------
    is_late
        Asked now and then; True ends the search as the time limit does.
    relative_gap
        Stop where bound and objective are as close as this.
    on_solution
        Called with the values of each solution that is better than those before.

    Notes
    -----
    HiGHS keeps rows and integers within 1e-6: callers scale their rows to some 1,000
    and leave that much room on the safe side.
    """
    worst = INFINITY if program.maximise else -INFINITY
    reduced = _Reduced(program)
    if reduced.lp.num_col_ == 0:
        return reduced.without_columns()
    is_integral = highspy.HighsVarType.kInteger in reduced.lp.integrality_
    solver = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        # With presolve, HiGHS 1.12 to 1.15 has proven optima that were none.
        ("presolve", "off"),
        ("threads", 1),
        ("time_limit", max(time_s, 0.0)),
        ("mip_rel_gap", relative_gap),
        ("mip_abs_gap", 1e-9),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(reduced.lp)

    def stop_if_late(event: HighsCallbackEvent) -> None:
        event.interrupt(is_late())

    def tell(event: HighsCallbackEvent) -> None:
        if on_solution is not None:
            on_solution(reduced.values(event.data_out.mip_solution))

    if on_solution is not None:
        solver.cbMipImprovingSolution += tell
    solver.cbMipInterrupt += stop_if_late
    solver.cbSimplexInterrupt += stop_if_late
    if not _ran(solver, is_late):
        return Solved(False, worst, None, None, False)
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Solved(True, -worst, None, None, False)
    info = solver.getInfo()
    optimal = status == highspy.HighsModelStatus.kOptimal
    trusted = is_integral and status in BOUND_IS_VALID
    bound = info.mip_dual_bound + reduced.offset if trusted else worst
    objective = values = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        values = reduced.values(solver.getSolution().col_value)
        objective = info.objective_function_value + reduced.offset
        if optimal and not is_integral:
            bound = objective
    return Solved(False, bound, objective, values, optimal)


def _ran(solver: highspy.Highs, is_late: Callable[[], bool]) -> bool:
    """Run the solver; return False if it does not hear that it should end.

    While HiGHS solves a first relaxation, it asks nobody. It is left alone then, and
    ends by its time limit.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            solver.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="highs", daemon=True)
    thread.start()
    while thread.is_alive() and not is_late():
        thread.join(POLL_S)
    thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    return not thread.is_alive()


class _Reduced:
    """A program without its fixed columns, and without the rows that hold anyway.

    It is the little of a presolve that can be seen to be right.

    Attributes
    ----------
    lp
        What is left.
    offset
        What the fixed columns cost.
    """

    def __init__(self, program: Program) -> None:
        lower, upper = np.array(program.lower), np.array(program.upper)
        is_fixed = lower == upper
        self._values = np.where(is_fixed, lower, 0.0)
        self._columns = np.flatnonzero(~is_fixed)
        cost = np.array(program.cost)
        self.offset = float(cost @ self._values)
        num_rows = len(program.row_low)
        row = np.repeat(np.arange(num_rows), np.diff(program.start))
        column = np.array(program.index, dtype=np.int64)
        value = np.array(program.value)
        constant = np.bincount(row, value * self._values[column], num_rows)
        row_low = np.array(program.row_low) - constant
        row_high = np.array(program.row_high) - constant
        is_open = ~is_fixed[column] & (value != 0)
        row, column, value = row[is_open], column[is_open], value[is_open]
        ends = value * lower[column], value * upper[column]
        least = np.bincount(row, np.minimum(*ends), num_rows)
        most = np.bincount(row, np.maximum(*ends), num_rows)
        rows = np.flatnonzero((least < row_low) | (most > row_high))
        is_kept = np.isin(row, rows)
        number = np.cumsum(~is_fixed) - 1
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self._columns.size, rows.size
        lp.col_cost_ = cost[self._columns]
        lp.col_lower_, lp.col_upper_ = lower[self._columns], upper[self._columns]
        lp.row_lower_, lp.row_upper_ = row_low[rows], row_high[rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        length = np.bincount(row, minlength=num_rows)[rows]
        lp.a_matrix_.start_ = np.append(0, np.cumsum(length)).astype(np.int32)
        lp.a_matrix_.index_ = number[column[is_kept]].astype(np.int32)
        lp.a_matrix_.value_ = value[is_kept]
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[program.integral[j]] for j in self._columns.tolist()]
        sense = highspy.ObjSense
        lp.sense_ = sense.kMaximize if program.maximise else sense.kMinimize
        self.lp = lp

    def values(self, left: ArrayLike) -> NDArray[np.float64]:
        """Return the values of all columns, given those of what is left."""
        values: NDArray[np.float64] = self._values.copy()
        values[self._columns] = left
        return values

    def without_columns(self) -> Solved:
        """Return what is known where every column is fixed."""
        lp = self.lp
        holds = all(low <= FEASIBLE for low in lp.row_lower_) and all(
            high >= -FEASIBLE for high in lp.row_upper_
        )
        if not holds:
            return Solved(True, self.offset, None, None, False)
        return Solved(False, self.offset, self.offset, self._values, True)
