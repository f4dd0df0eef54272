"""Raises the lower bound in a thread of its own, beside a search."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import numpy as np

from mcmpart.bounds.prove import Bound, Prover
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.search.interrupt import is_pressed
from mcmpart.search.method import Evaluations, Proving, SearchMethod

LONG_S = 10.0
"""A proof that has taken so long is a matter of integer programs."""

IDLE_S = 0.02
"""Pause while there is no plan to prove anything for, or nothing more to prove."""


class Proof:
    """A prover in a thread, from ``with`` to its end.

    The thread aims at the best plan it was told of and ends soon after the end of
    ``with``: a tenth of a second or, while ideals are listed, half of one. An error in
    it is raised there.

    Parameters
    ----------
    problem
        The problem.
    deadline
        ``time.perf_counter()`` at which the search ends.
    gap
        How close to the best plan the bound need come.

    Attributes
    ----------
    found_by
        The method that came upon what :meth:`take_found` returns.
    """

    def __init__(self, problem: Problem, deadline: float, gap: float) -> None:
        self._stop = threading.Event()
        self._prover = Prover(problem, deadline, self._is_over)
        self._gap = gap
        self._began = time.perf_counter()
        self._is_idle = False
        self._known = self._prover.bound
        self._best_s = np.inf
        self._found: Int32 | None = None
        self.found_by = ""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bound", daemon=True)

    @property
    def bound(self) -> Bound:
        """The best bound so far, the prover's or one that it was told of."""
        return max(self._prover.bound, self._known)

    def needs_a_core(self) -> bool:
        """Return whether the proof turns out to be long: it then has one to itself."""
        return not self._is_idle and time.perf_counter() > self._began + LONG_S

    def tell(self, best_s: float) -> None:
        """Take note of what the best plan costs."""
        if best_s < self._best_s:
            self._best_s = best_s
            self._prover.tell(best_s)

    def tell_bound(self, bound: Bound) -> None:
        """Take note of a bound that was proven elsewhere."""
        # Where nothing better than the best plan exists, it may be that of a better.
        bound = bound._replace(seconds=min(bound.seconds, self._best_s))
        if bound.seconds > self._known.seconds and np.isfinite(bound.seconds):
            self._known = bound

    def take_found(self) -> Int32 | None:
        """Return a partition ``[V] int32`` that a proof came upon, once."""
        found, self._found = self._found, None
        return found

    def __enter__(self) -> Proof:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _is_over(self) -> bool:
        return self._stop.is_set() or is_pressed()

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._prover.attempt(self._best_s, self._gap)
                if self._prover.found is not None:
                    self.found_by = self._prover.found_by
                    self._found, self._prover.found = self._prover.found, None
                self._is_idle = self._prover.done or self._found is not None
                if self._is_idle:
                    self._stop.wait(IDLE_S)
        except BaseException as error:
            self._error = error


class WithProof:
    """A search method that also proposes what a proof comes upon, and tells it."""

    def __init__(self, method: SearchMethod, proof: Proof) -> None:
        self.name = method.name
        self.done = method.done
        self._method = method
        self._proof = proof

    def propose(self) -> Int32:
        """Return the proof's partition if there is one, or else the method's own."""
        found = self._proof.take_found()
        if found is not None:
            self.name = self._proof.found_by
            return found[None]
        rows = self._method.propose()
        self.name, self.done = self._method.name, self._method.done
        if isinstance(self._method, Proving):
            self._proof.tell_bound(self._method.bound)
        return rows

    def observe(self, evaluations: Evaluations) -> None:
        """Let both take note."""
        self._proof.tell(float(evaluations.valid_s.min(initial=np.inf)))
        self._method.observe(evaluations)
        self.done = self._method.done
