"""_highs: silent, and a bound that is valid however a program ends."""

import math
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest

from mcmpart import _highs
from mcmpart._highs import Program, solve_program


def knapsack(gains, sizes, room, *, integral=True):
    """Return the program that packs the best gains into a room."""
    program = Program(maximise=True)
    columns = [
        program.binary(gain) if integral else program.real(gain, 0.0, 1.0)
        for gain in gains
    ]
    program.row(zip(columns, sizes, strict=True), high=room)
    return program


def hard():
    """Return a knapsack that takes more than a look: 60 items, three rooms."""
    rng = np.random.default_rng(0)
    gains = rng.integers(50, 100, 60)
    program = Program(maximise=True)
    columns = [program.binary(float(gain)) for gain in gains]
    for _ in range(3):
        sizes = rng.integers(50, 100, 60).tolist()
        program.row(zip(columns, sizes, strict=True), high=1_400.0)
    return program


def test_by_hand():
    """Gains 5 4 3, sizes 4 3 2, room 5: the last two, 7."""
    solved = solve_program(knapsack([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0), 60.0)
    assert (solved.infeasible, solved.optimal) == (False, True)
    assert solved.objective == pytest.approx(7)
    assert solved.bound == pytest.approx(7)
    assert np.round(solved.values).tolist() == [0, 1, 1]


def test_without_integers():
    """The same in parts: 3 + 4 for the room of 5, none left; the bound is exact."""
    solved = solve_program(
        knapsack([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 7.0, integral=False), 60.0
    )
    # 3 and 4 take 5, and half of the 5 fits into 2.
    assert solved.objective == solved.bound == pytest.approx(9.5)
    assert solved.optimal


def test_minimise():
    """The least of x + 2 y with x + y >= 3, x <= 2."""
    program = Program(maximise=False)
    x, y = program.real(1.0, 0.0, 2.0), program.real(2.0)
    program.row([(x, 1.0), (y, 1.0)], low=3.0)
    solved = solve_program(program, 60.0)
    assert solved.bound == pytest.approx(4)
    assert solved.values == pytest.approx([2, 1])


@pytest.mark.parametrize("seed", range(3))
def test_against_all_choices(seed):
    """Optimum and bound of random knapsacks, by trying every choice."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        gains = rng.uniform(1, 9, 6).tolist()
        sizes = rng.uniform(1, 9, 6).tolist()
        best = max(
            np.dot(gains, choice)
            for choice in product((0, 1), repeat=6)
            if np.dot(sizes, choice) <= 12
        )
        solved = solve_program(knapsack(gains, sizes, 12.0), 60.0)
        assert solved.objective == pytest.approx(best, rel=1e-5)
        assert solved.bound >= best * (1 - 1e-6)


@pytest.mark.parametrize("maximise", [True, False])
def test_infeasible(maximise):
    """No solution: that is proven, and no value is a bound of nothing."""
    program = Program(maximise=maximise)
    x = program.binary(1.0)
    program.row([(x, 1.0)], low=2.0)
    solved = solve_program(program, 60.0)
    assert (solved.infeasible, solved.optimal) == (True, False)
    assert solved.bound == (-math.inf if maximise else math.inf)
    assert (solved.objective, solved.values) == (None, None)


@pytest.mark.parametrize("time_s", [0.0, -1.0])
@pytest.mark.parametrize("integral", [True, False])
def test_no_time(time_s, integral):
    """Without any time there is a bound that nothing beats, if only infinity."""
    program = knapsack([5.0, 4.0, 3.0], [4.0, 3.0, 2.0], 5.0, integral=integral)
    solved = solve_program(program, time_s)
    assert not solved.infeasible
    assert solved.bound >= 7


def test_a_bound_before_the_end():
    """A search that is stopped by the clock has a bound above the optimum."""
    full = solve_program(hard(), 60.0)
    assert full.optimal
    early = solve_program(hard(), 0.01)
    assert early.bound >= full.objective - 1e-6
    assert early.objective is None or early.objective <= full.objective + 1e-6


def test_is_late():
    """What is late before it begins ends without having looked at all choices."""
    asked = []

    def late():
        asked.append(True)
        return True

    full = solve_program(hard(), 60.0)
    stopped = solve_program(hard(), 60.0, is_late=late)
    assert asked
    assert not stopped.optimal
    assert not stopped.infeasible
    assert stopped.bound >= full.objective - 1e-6


def test_an_error_in_is_late_surfaces_or_stops():
    """Asking is allowed any number of times: False changes nothing."""
    asked = []
    solved = solve_program(hard(), 60.0, is_late=lambda: asked.append(True) is True)
    assert asked
    assert solved.optimal


def test_solutions_are_told():
    """Each better solution is told once it is found, the best one last."""
    program, told = hard(), []
    solved = solve_program(program, 60.0, on_solution=told.append)
    gains = [float(np.dot(program.cost, values)) for values in told]
    assert gains == sorted(gains)
    assert gains[-1] == pytest.approx(solved.objective)


def test_terms_are_summed():
    """A column in several terms of a row counts with all of them: 1 x - 3 x >= -2."""
    program = Program(maximise=True)
    x = program.real(1.0)
    program.row([(x, 1.0), (x, -3.0)], low=-2.0)
    assert solve_program(program, 60.0).bound == pytest.approx(1)
    assert len(program.index) == 1


def test_fixed_columns():
    """A 0-1 column may be fixed at either value."""
    program = Program(maximise=True)
    program.binary(3.0, 0, 0)
    program.binary(2.0, 1, 1)
    program.binary(1.0)
    solved = solve_program(program, 60.0)
    assert solved.objective == pytest.approx(3)


@pytest.mark.parametrize(
    ("low", "high", "fits"), [(-1.0, 1.0, True), (1.0, 2.0, False), (-2.0, -1.0, False)]
)
def test_no_columns(low, high, fits):
    """Without columns every row says whether 0 fits it."""
    program = Program(maximise=True)
    program.row([], low, high)
    solved = solve_program(program, 60.0)
    assert (solved.infeasible, solved.optimal) == (not fits, fits)
    assert solved.objective == (0.0 if fits else None)


def test_nothing_is_printed():
    """A program that is solved leaves stdout and stderr empty: no banner, no log.

    In a process of its own: HiGHS writes to the file descriptors.
    """
    code = (
        "from mcmpart._highs import Program, solve_program\n"
        "program = Program(maximise=True)\n"
        "columns = [program.binary(float(i % 7 + 1)) for i in range(30)]\n"
        "program.row([(c, c % 5 + 1.0) for c in columns], high=20.0)\n"
        "assert solve_program(program, 60.0).optimal\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_changes_nothing(seed):
    """Programs with fixed columns and rows that hold anyway, by trying every choice."""
    rng = np.random.default_rng(seed)
    num_infeasible = 0
    for _ in range(60):
        program = Program(maximise=bool(rng.integers(2)))
        low = (rng.random(6) < 0.3).astype(int)
        high = np.maximum(low, rng.random(6) < 0.7).astype(int)
        gains = rng.integers(-5, 6, 6)
        for column in range(6):
            program.binary(float(gains[column]), int(low[column]), int(high[column]))
        rows = [
            (rng.integers(-3, 4, 6), *sorted(rng.integers(-8, 9, 2))) for _ in "abc"
        ]
        for terms, least, most in rows:
            program.row(list(enumerate(terms.tolist())), float(least), float(most))
        values = [
            int(gains @ choice)
            for choice in product(
                *(sorted({a, b}) for a, b in zip(low, high, strict=True))
            )
            if all(least <= terms @ choice <= most for terms, least, most in rows)
        ]
        solved = solve_program(program, 60.0)
        assert solved.infeasible == (not values)
        num_infeasible += solved.infeasible
        if values:
            best = max(values) if program.maximise else min(values)
            assert solved.objective == pytest.approx(best)
            assert solved.bound == pytest.approx(best)
            assert gains @ solved.values == pytest.approx(best)
            assert ((low <= solved.values) & (solved.values <= high)).all()
    assert 5 < num_infeasible < 55


def test_a_solver_that_hears_nothing(monkeypatch):
    """A solver that asks nobody whether it is late is left alone after a moment."""
    release = threading.Event()
    monkeypatch.setattr(_highs.highspy.Highs, "run", lambda solver: release.wait(60))
    solved = solve_program(hard(), 60.0, is_late=lambda: True)
    release.set()
    assert (solved.infeasible, solved.optimal, solved.values) == (False, False, None)
    assert solved.bound == np.inf


def test_an_error_in_the_solver_surfaces(monkeypatch):
    """What goes wrong in its thread is raised by the caller's."""

    def fail(solver):
        raise MemoryError("no room")

    monkeypatch.setattr(_highs.highspy.Highs, "run", fail)
    with pytest.raises(MemoryError, match="no room"):
        solve_program(hard(), 60.0)
