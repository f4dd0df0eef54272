"""What every benchmark here shares: best-of timing, child processes, one table."""

from __future__ import annotations

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


PEAK = (
    "; print(next(line.split()[1] for line in open('/proc/self/status') "
    "if line.startswith('VmHWM')))"
)
"""Python source that prints the process's own peak memory in KiB (Linux)."""


def run_child(command: Sequence[str], *, repeats: int = 3) -> Child:
    """Return the quickest wall time and the largest peak of ``repeats`` processes.

    The peak is read from the last line of the output, if that is a number: a child's
    resource usage, as its parent sees it, would count the parent's memory too.
    """
    times_s, peaks = [], [0]
    for _ in range(repeats):
        began = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        times_s.append(time.perf_counter() - began)
        last = done.stdout.rpartition("\n")[0].rpartition("\n")[2]
        peaks.append(int(last) * 1024 if last.isdigit() else 0)
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
