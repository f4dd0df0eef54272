"""What every benchmark here shares: best-of timing, child processes, one table."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its target and a reference measured in the same run.

    ``better`` is ``">="`` or ``"<="``: how the figure must stand to the target.
    """

    what: str
    figure: float
    unit: str
    better: str
    target: float
    reference: str
    ratio: float

    @property
    def met(self) -> bool:
        """Return whether the target is met."""
        if self.better == ">=":
            return self.figure >= self.target
        return self.figure <= self.target


@dataclass(frozen=True, slots=True)
class Child:
    """A finished child process: wall time and peak resident memory."""

    wall_s: float
    peak_bytes: int


def best_of(function: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the shortest wall time of ``repeats`` calls, in seconds."""
    times_s = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times_s.append(time.perf_counter() - began)
    return min(times_s)


def run_child(command: Sequence[str], *, repeats: int = 3) -> Child:
    """Return the quickest wall time and the largest peak of ``repeats`` processes."""
    times_s, peaks = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert child.stderr is not None
        message = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        times_s.append(time.perf_counter() - began)
        peaks.append(usage.ru_maxrss * 1024)
        if status:
            raise RuntimeError(f"{command} failed: {message}")
    return Child(min(times_s), max(peaks))


def show(rows: Sequence[Row]) -> None:
    """Print the table, and exit with 1 if a target is missed."""
    for row in rows:
        verdict = "met" if row.met else "MISSED"
        print(
            f"{row.what:<44} {row.figure:>12,.4g} {row.unit:<8} "
            f"target {row.better} {row.target:,g} {verdict:<6} "
            f"| {row.ratio:,.3g} x {row.reference}"
        )
    if not all(row.met for row in rows):
        sys.exit(1)
