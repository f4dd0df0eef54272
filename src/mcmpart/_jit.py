"""The one place where numba is met: a typed ``jit`` with an on-disk cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` compiled at its first call, without the GIL, cached on disk.

    Bounds are not checked and integer division by zero is not an error: kernels get
    arrays that a Problem has checked.
    """
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Callable[P, R]", compiled)
