"""Solver: the domains of one problem, decided step by step from Python."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np

from mcmpart.errors import InfeasibleError, InputError
from mcmpart.graph.graph import Int32
from mcmpart.problem import Problem
from mcmpart.solver._arrays import lowest_chips
from mcmpart.solver._propagate import propagate
from mcmpart.solver._search import decide
from mcmpart.solver._trail import reset, undo
from mcmpart.solver.setup import make_rules, room_for


class Solver:
    """Holds, for each op, the set of chips that is still possible.

    For programs that bring their own loop; ``sample_many`` and ``fix_many`` run the
    whole loop on all cores.

    Parameters
    ----------
    problem
        The graph, the package and the user's rules.
    num_used
        Exactly so many chips are to be used; None leaves it open.

    Raises
    ------
    InputError
        ``num_used`` is not from 1 to the number of chips.
    InfeasibleError
        The rules contradict each other before any decision.

    References
    ----------
    Xie et al., "A Transferable Approach for Partitioning Machine Learning Models on
    Multi-Chip-Modules", MLSys 2022: the solver a policy talks to op by op.

    Examples
    --------
    >>> from mcmpart import Problem, load_package
    >>> from mcmpart.graph.synthetic import chain
    >>> solver = Solver(Problem(chain(4), load_package("ring36")))
    >>> solver.domain(3)
    (0, 1, 2, 3)
    >>> solver.assign(3, 1)
    1
    >>> solver.domain(0), solver.domain(2)
    ((0,), (0, 1))
    """

    def __init__(self, problem: Problem, num_used: int | None = None) -> None:
        if num_used is not None:
            num_used = _whole(num_used, "num_used")
        if num_used is not None and not 1 <= num_used <= problem.num_chips:
            raise InputError(
                f"num_used is {num_used}: give a number of chips from 1 to "
                f"{problem.num_chips}"
            )
        self._problem = problem
        self._rules = make_rules(problem)
        self._domains = room_for(self._rules)
        row = num_used or 0
        if row == 0 and problem.user.all_chips:
            row = problem.num_chips
        if row and not self._rules.cover:
            raise InputError(
                f"num_used is {num_used}, but the package {problem.package.name!r} "
                "allows chips to be skipped: leave it open"
            )
        if not self._rules.possible[row]:
            raise InfeasibleError(
                "rules",
                "no partition of the blocks is left: the rules contradict each other",
            )
        self._row = row
        self.restart()

    @property
    def num_decisions(self) -> int:
        """Number of decisions in force."""
        return int(self._domains.now["num_decisions"][0])

    @property
    def is_solved(self) -> bool:
        """Whether every op has one chip left; then only memory is still to check."""
        chips = self._domains.block["chips"]
        return not self._is_refuted and bool(
            (chips & (chips - np.uint64(1)) == 0).all()
        )

    @property
    def chip_of(self) -> Int32:
        """Lowest chip still possible of each op, ``[V] int32``; -1 for replicable ops.

        The partition itself once ``is_solved``.
        """
        return self._problem.blocks.expand(lowest_chips(self._domains))

    def restart(self) -> None:
        """Take every decision back, and forget what was refuted.

        ``assign`` goes back step by step, so a wrong decision at the beginning may cost
        any number of steps to find: start afresh in another order after some dozens.
        """
        self._is_refuted = False
        reset(self._row, self._rules, self._domains)
        propagate(self._rules, self._domains, True)

    def domain(self, op: int) -> tuple[int, ...]:
        """Return the chips still possible for an op, ascending.

        Raises
        ------
        InputError
            There is no such op, or it is replicable and has no chip of its own.
        """
        return _chips_in(int(self._domains.block["chips"][self._block(op)]))

    def assign(self, op: int, chips: int | np.integer | Iterable[int]) -> int:
        """Restrict an op to some of its chips, and go back where that contradicts.

        Parameters
        ----------
        chips
            A chip or several; those no longer possible are left out.

        Returns
        -------
        int
            How many decisions stand. One more than before if all went well; fewer if
            some had to be taken back: then their opposite holds, and the loop goes on
            from the first decision that no longer stands.

        Raises
        ------
        InputError
            There is no such op, or none of the chips is possible.
        InfeasibleError
            Every decision was refuted, and no partition is left.
        """
        block = self._block(op)
        if isinstance(chips, Iterable):
            wanted = {_whole(chip, "chip") for chip in chips}
        else:
            wanted = {_whole(chips, "chip")}
        possible = wanted.intersection(self.domain(op))
        if not possible:
            raise InputError(
                f"op {self._problem.graph.op_name[op]!r} can stand on chips "
                f"{self.domain(op)} and was assigned to {sorted(wanted)}: choose from "
                "its domain"
            )
        mask = np.uint64(sum(1 << int(chip) for chip in possible))
        if self.num_decisions == self._domains.decision.size:
            raise InputError("there are as many decisions as ops: take one back first")
        self._is_refuted = not decide(block, mask, self._rules, self._domains, True)
        if self._is_refuted:
            raise InfeasibleError(
                "rules", "no partition is left: every decision was refuted"
            )
        return self.num_decisions

    def undo(self) -> int:
        """Take the last decision back; return how many are left.

        Raises
        ------
        InputError
            There is none.
        """
        if self.num_decisions == 0:
            raise InputError("there is no decision to take back: assign an op first")
        return undo(self._rules, self._domains)

    def _block(self, op: int) -> int:
        if self._is_refuted:
            raise InfeasibleError(
                "rules", "no partition is left: every decision was refuted"
            )
        graph = self._problem.graph
        op = _whole(op, "op")
        if not 0 <= op < graph.num_ops:
            raise InputError(
                f"there is no op {op}: the graph has ops 0 to {graph.num_ops - 1}"
            )
        block = int(self._problem.blocks.block_of[op])
        if block < 0:
            raise InputError(
                f"op {graph.op_name[op]!r} is replicable: every chip that needs it "
                "computes it, so it has no domain"
            )
        return block


def _chips_in(mask: int) -> tuple[int, ...]:
    return tuple(c for c in range(mask.bit_length()) if mask >> c & 1)


def _whole(value: object, what: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} is {value!r}: give a whole number") from None
