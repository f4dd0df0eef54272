"""The errors that mcmpart raises at its boundary, each with its exit code.

Every message is one sentence: the rule, the value met, the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence


class McmpartError(Exception):
    """Base of every error that a user can cause and mend (exit code 2)."""

    exit_code = 2


class InputError(McmpartError):
    """A file, a value or an option that mcmpart cannot use (exit code 2)."""


class GraphError(InputError):
    """A computation graph with faults; the message lists all of them.

    Attributes
    ----------
    faults
        One sentence per fault, in the order they were met.
    """

    def __init__(self, name: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        shown = "; ".join(self.faults[:8])
        more = len(self.faults) - 8
        tail = f"; and {more} more" if more > 0 else ""
        super().__init__(f"graph {name!r} is not valid: {shown}{tail}")


class InfeasibleError(McmpartError):
    """No valid partition exists (exit code 1).

    Attributes
    ----------
    rule
        The static rule that cannot be met, for example ``"memory"``.
    """

    exit_code = 1

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(message)


class NoPlanFoundError(McmpartError):
    """The search met no valid partition in the time given (exit code 3)."""

    exit_code = 3


class VerificationError(McmpartError):
    """A plan whose rules or metrics do not hold when recomputed (exit code 1)."""

    exit_code = 1
