"""Asynchronous successive halving: many short runs, longer ones for the better half."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcmpart.graph.graph import Int32


@dataclass(slots=True, eq=False)
class Candidate:
    """What a run came to: its cost and partition ``[V] int32``."""

    cost_s: float
    chip_of: Int32
    is_promoted: bool = False


@dataclass(slots=True)
class Halving:
    """Says which candidate deserves a longer run next.

    Runs stand on rungs; one on rung r is 2^r times as long as one on rung 0. Whoever
    is in the better half of a rung is promoted to the next one, as soon as that is so:
    nobody waits for a rung to be full, so that there is a good candidate at any time.

    References
    ----------
    Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020: the
    asynchronous form of successive halving.
    """

    rungs: list[list[Candidate]] = field(default_factory=list)

    @property
    def num_entrants(self) -> int:
        """Candidates on rung 0."""
        return len(self.rungs[0]) if self.rungs else 0

    def add(self, rung: int, candidate: Candidate) -> None:
        """Take note of what a run on a rung came to."""
        while len(self.rungs) <= rung:
            self.rungs.append([])
        self.rungs[rung].append(candidate)

    def promote(self) -> tuple[int, Candidate] | None:
        """Return whom to run on which rung, the highest first; None for a new one."""
        for rung in range(len(self.rungs) - 1, -1, -1):
            ranking = sorted(self.rungs[rung], key=lambda c: c.cost_s)
            for candidate in ranking[: len(ranking) // 2]:
                if not candidate.is_promoted:
                    candidate.is_promoted = True
                    return rung + 1, candidate
        return None
