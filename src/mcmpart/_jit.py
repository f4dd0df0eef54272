"""The one place where numba is met: a typed ``jit`` with an on-disk cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

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


def leaf(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` compiled without reference counts: it may not make arrays.

    Taking an array out of a tuple counts a reference, atomically, at every use; in the
    small kernels that run millions of times a second that was most of their time.
    """
    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
    # The leading underscore is numba's: the option is not in its type hints either.
    options["_nrt"] = False
    return cast("Callable[P, R]", numba.njit(**options)(function))
