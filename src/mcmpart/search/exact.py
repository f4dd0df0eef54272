"""exact: the mixed integer program of the whole problem, begun at a slicing."""

from __future__ import annotations

import queue
import threading
import time
import weakref

import numpy as np

from mcmpart.bounds.exact import ExactResult, exact_bound
from mcmpart.bounds.prove import Bound
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.graph.graph import Int32
from mcmpart.search.method import Evaluations, Setting, no_rows
from mcmpart.search.slice import Slice

ORDERS = 8
"""Orders sliced for a first partition, which the program has to beat."""

WAIT_S = 0.02
"""A proposal waits this long for the program's next partition."""


class Exact:
    """Solves the whole problem as one program, in a thread, for small graphs.

    First it slices a few orders; then each better partition that the program meets is
    proposed at once. Where the program ends, the best partition is proven optimal
    within some 1e-6, by the analytical model.

    Notes
    -----
    The thread ends when the time is over, Ctrl-C is pressed or the method is dropped.
    """

    name = "exact"

    def __init__(self, setting: Setting) -> None:
        self.done = False
        self._setting = setting
        self._simple = Bound(simple_bound_s(setting.problem), "simple")
        self._slice = Slice(setting, max_orders=ORDERS)
        self._best_s = np.inf
        self._job: _Job | None = None

    @property
    def bound(self) -> Bound:
        """What no valid partition can beat: the program's, once that has ended."""
        if self._job is None or self._job.result is None:
            return self._simple
        return Bound(self._job.result.bound_s, "exact")

    def propose(self) -> Int32:
        """Return what was met since the last call; no row where that is nothing."""
        if not self._slice.done and not self._setting.is_late():
            return self._slice.propose()
        if self._job is None:
            self._job = _Job(self._setting, self._best_s)
            weakref.finalize(self, self._job.end)
        self._job.wait(WAIT_S)
        if self._setting.is_late():
            self._job.end()
        # Before the last rows are taken: the thread may end in between.
        self.done = self._job.is_over()
        return self._job.take()

    def observe(self, evaluations: Evaluations) -> None:
        """Remember what the program has to beat."""
        self._slice.observe(evaluations)
        valid_s = float(evaluations.valid_s.min(initial=np.inf))
        self._best_s = min(self._best_s, valid_s)


class _Job:
    """The program in its thread.

    Parameters
    ----------
    setting
        The problem, and when to stop.
    best_s
        Cost of the best partition so far, in seconds.
    """

    def __init__(self, setting: Setting, best_s: float) -> None:
        self.result: ExactResult | None = None
        self._setting = setting
        self._best_s = best_s
        self._stop = threading.Event()
        self._met = threading.Event()
        self._rows: queue.SimpleQueue[Int32] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="exact", daemon=True)
        self._thread.start()

    def wait(self, time_s: float) -> None:
        """Wait until something is met, the thread ends, or the time is over."""
        self._met.wait(time_s)

    def is_over(self) -> bool:
        """Return whether the thread has ended; what went wrong there is raised here."""
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def take(self) -> Int32:
        """Return the partitions met since the last call, ``[B, V] int32``."""
        self._met.clear()
        rows = [self._rows.get() for _ in range(self._rows.qsize())]
        return np.stack(rows) if rows else no_rows(self._setting.problem)

    def end(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.result = exact_bound(
                self._setting.problem,
                self._setting.deadline - time.perf_counter(),
                best_s=self._best_s,
                is_late=lambda: self._stop.is_set() or self._setting.is_late(),
                on_partition=self._note,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._met.set()

    def _note(self, chip_of: Int32) -> None:
        self._rows.put(chip_of)
        self._met.set()
