"""Raises a lower bound, limit by limit: from simple to ideals and chain."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mcmpart.blocks import Blocks
from mcmpart.bounds.chain import Chain, Range, lump, make_chain, refute
from mcmpart.bounds.exact import exact_bound
from mcmpart.bounds.ideals import MAX_VISITS, proof_blocks, within_limit
from mcmpart.bounds.simple import simple_bound_s
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.units import CLOSED

OPTIMAL = CLOSED
"""A plan this close to its bound counts as optimal: the tolerance of the proofs."""

FINEST = 1e-9
"""How close below a plan the ideals, which count in whole units, refute."""

COARSEST_STEP = 1e-4
"""Limits closer together than this share are not told apart."""

MUCH_BETTER = 0.98
"""A plan this much below the limit that could not be refuted is a new goal."""

NEXT = 0.8
"""Where the next limit lies between what is proven and what could not be."""

VISITS_PER_S = 1_000_000
"""Ideals that are listed in a second at least: listing them cannot be stopped."""

FIRST_IDEALS_S = 1.0
"""Time for ideals before chain has its turn at the same limit; doubled each time."""

MOST_OPS = 20_000
"""In a larger graph only the simple bound is given: the table of ancestors takes more
than 100 MB, and a stage has too many blocks for an integer program."""

SHARE = 0.6
GOAL_SHARE = 0.2
"""Shares of the time left that one limit may take, and a chain for the first one, which
is the hardest: where it is out of reach, an easier one gives a bound at least."""

MOST_PLACES = 1_500
EXACT_SHARE = 0.6
"""Ops x chips up to which the whole problem is tried as one integer program where a
chain fails, and the share of the time left that this may take."""

HOLDS = 1 - 1e-6
"""What a chain bound gives away for the tolerances of the integer programs."""

BELOW = 1 - 5e-6
"""A chain cannot tell limits apart that are closer than this to a plan's value."""


class Bound(NamedTuple):
    """A lower bound and how it is known.

    Attributes
    ----------
    seconds
        No partition has a smaller bottleneck.
    method
        ``"simple"``, ``"exhaustive"``, ``"ideals"``, ``"lump"``, ``"chain"`` or
        ``"exact"``.
    ranges
        Of a chain: least and most work in seconds that the first b chips can have done.
    """

    seconds: float
    method: str
    ranges: tuple[Range, ...] = ()


class Prover:
    """Raises the lower bound of a problem towards the best plan that is known.

    Each attempt tries to refute one limit: first the best plan less the gap that is
    asked for; where that fails, limits between what is proven and what is not.

    Parameters
    ----------
    problem
        The problem.
    deadline
        ``time.perf_counter()`` at which attempts end.
    is_late
        True ends an attempt at once.
    with_chain
        Go on with the chain where ideals do not settle a limit.

    Attributes
    ----------
    bound
        The best so far.
    found, found_by
        ``[V] int32``: a valid partition that a proof came upon, or None; by which
        method.
    done
        Whether further attempts can gain nothing for the best plan they were told of.
    """

    def __init__(
        self,
        problem: Problem,
        deadline: float,
        is_late: Callable[[], bool],
        *,
        with_chain: bool = True,
    ) -> None:
        self.bound = Bound(simple_bound_s(problem), "simple")
        self.found: Int32 | None = None
        self.found_by = ""
        self.done = False
        self._problem = problem
        self._deadline = deadline
        self._is_late = is_late
        self._with_chain = with_chain
        self._told_s = np.inf
        self._open_s = np.inf
        self._ideals_s = FIRST_IDEALS_S
        self._few_ideals = True
        self._open_ranges: tuple[Range, ...] = ()
        self._no_lump_s = np.inf
        self._exact_was_tried = False

    @cached_property
    def _blocks(self) -> Blocks:
        return proof_blocks(self._problem)

    @cached_property
    def _chain(self) -> Chain:
        return make_chain(self._problem, self._blocks)

    def attempt(self, best_s: float, gap: float) -> None:
        """Try to refute the next limit below ``best_s``; sets the attributes."""
        self.tell(best_s)
        limit_s = self._next_limit_s(best_s, gap)
        self.done = limit_s is None or not 0 < self._problem.ops.num_blocks <= MOST_OPS
        if limit_s is None or self.done:
            return
        if self._by_ideals(limit_s, self._ends(SHARE)):
            return
        limit_s = min(limit_s, best_s * BELOW)
        share = SHARE if np.isfinite(self._open_s) else GOAL_SHARE
        if not self._by_chain(limit_s, self._ends(share)):
            self._open_s = limit_s
            self._by_exact(best_s)

    def _ends(self, share: float) -> float:
        """Return when a share of the time left will be over."""
        now = time.perf_counter()
        return now + share * max(self._deadline - now, 0.0)

    def tell(self, best_s: float) -> None:
        """Take note of a better plan: what it keeps to cannot be refuted any more."""
        self._told_s = min(self._told_s, best_s)

    def confirms(self, bound_s: float) -> bool:
        """Return whether a bound is proven again: what is below it is refuted."""
        if bound_s <= self.bound.seconds:
            return True
        limit_s = bound_s * BELOW
        self._ideals_s = max(self._deadline - time.perf_counter(), 0.0) / 2
        if not self._by_ideals(limit_s, self._deadline):
            self._by_chain(limit_s, self._deadline)
        return self.bound.seconds >= limit_s * HOLDS

    def _next_limit_s(self, best_s: float, gap: float) -> float | None:
        proven_s = self.bound.seconds
        if not np.isfinite(best_s) or proven_s >= best_s * (1 - max(gap, OPTIMAL)):
            return None
        # A little closer than asked for: what a chain gives away must not spoil it.
        goal_s = best_s * (1 - max(0.99 * gap, FINEST))
        # With few ideals the goal itself is quick, however often the plan improves.
        top_s = min(goal_s, self._open_s)
        if self._few_ideals and goal_s < self._open_s:
            return goal_s
        if goal_s < MUCH_BETTER * self._open_s:
            return goal_s
        if top_s - proven_s <= COARSEST_STEP * top_s:
            return None
        return proven_s + NEXT * (top_s - proven_s)

    def _by_ideals(self, limit_s: float, ends: float) -> bool:
        """Return whether ideals settle the limit, one way or the other."""
        if not self._few_ideals:
            return False
        ends = min(time.perf_counter() + self._ideals_s, ends)
        self._ideals_s *= 2
        left_s = self._deadline - time.perf_counter()
        answer = within_limit(
            self._problem,
            self._blocks,
            limit_s,
            is_late=lambda: self._is_vain(limit_s) or time.perf_counter() > ends,
            max_visits=int(min(MAX_VISITS, VISITS_PER_S * max(left_s, 0.0))),
        )
        self._few_ideals = not answer.gave_up
        if answer.refuted:
            self.bound = Bound(limit_s, "ideals")
        if answer.chip_of is not None:
            _, valid = evaluate_many(self._problem, answer.chip_of[None])
            if valid[0]:
                self.found, self.found_by = answer.chip_of, "ideals"
            # A rule that ideals do not look at may still refute the limit; chain does
            # not look at it either.
            self._open_s = limit_s
        return answer.refuted or answer.chip_of is not None

    def _is_vain(self, limit_s: float) -> bool:
        """Return whether an attempt at the limit should end: time, or a plan."""
        return self._is_late() or self._told_s <= limit_s

    def _by_exact(self, best_s: float) -> None:
        """Solve a small problem as one integer program, once."""
        size = self._problem.ops.num_blocks * self._problem.num_chips
        if self._exact_was_tried or not self._with_chain or size > MOST_PLACES:
            return
        self._exact_was_tried = True
        result = exact_bound(
            self._problem,
            EXACT_SHARE * max(self._deadline - time.perf_counter(), 0.0),
            best_s=best_s,
            is_late=self._is_late,
        )
        if result.chip_of is not None:
            self.found, self.found_by = result.chip_of, "exact"
        # Where nothing better is found, the bound may be that of a better partition.
        bound_s = min(result.bound_s, best_s)
        if bound_s > self.bound.seconds:
            self.bound = Bound(bound_s, "exact")

    def _by_chain(self, limit_s: float, ends: float) -> bool:
        if not self._with_chain:
            return False

        def left_s() -> float:
            return ends - time.perf_counter()

        def is_vain() -> bool:
            return self._is_vain(limit_s)

        if self._by_lump(limit_s, left_s):
            return True
        attempt = refute(self._chain, limit_s, left_s, is_vain, self._open_ranges)
        if not attempt.refuted:
            self._open_ranges = attempt.ranges
            return False
        self.bound = Bound(limit_s * HOLDS, "chain", attempt.ranges)
        return True

    def _by_lump(self, limit_s: float, left_s: Callable[[], float]) -> bool:
        """Raise the bound as far as lumps do; return whether the limit is refuted."""
        tried_s = limit_s
        while tried_s < self._no_lump_s * (1 - COARSEST_STEP):
            if self._is_late() or left_s() <= 0:
                return False
            if lump(self._chain, tried_s, left_s, self._is_late) is not None:
                self.bound = Bound(tried_s * HOLDS, "lump")
                if tried_s == limit_s:
                    return True
            else:
                self._no_lump_s = tried_s
            proven_s = self.bound.seconds
            tried_s = proven_s + (self._no_lump_s - proven_s) / 2
            if self._no_lump_s - proven_s <= COARSEST_STEP * proven_s:
                break
        return False
