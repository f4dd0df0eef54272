"""How many threads a call may use."""

from __future__ import annotations

import operator
import os

from mcmpart.errors import InputError


def num_workers(workers: int | None) -> int:
    """Return the number given, or one per core for None.

    Raises
    ------
    InputError
        It is no whole number from 1 up.
    """
    if workers is None:
        return os.cpu_count() or 1
    try:
        count = operator.index(workers)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"the number of workers is {workers!r}: give at least 1")
    return count
