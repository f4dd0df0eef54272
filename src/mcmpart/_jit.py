"""The one place where numba is met: typed decorators with an on-disk cache."""

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
    return _compiled(function, {})


def leaf(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` compiled without reference counts: it may not make arrays.

    Taking an array out of a tuple counts a reference, atomically, at every use; in the
    small kernels that run millions of times a second that was most of their time.
    """
    # The leading underscore is numba's: the option is not in its type hints either.
    return _compiled(function, {"_nrt": False})


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` as a leaf that is copied into each of its callers.

    A call passes every array of a tuple as seven arguments, which costs more than most
    small functions do. Cannot be called from Python.
    """
    options = {
        "forceinline": True,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }
    return _compiled(function, {"_nrt": False, **options})


def _compiled(function: Callable[P, R], extra: dict[str, Any]) -> Callable[P, R]:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **extra}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the installation nor the user's cache folder can be written: the
        # kernels are then compiled in every process.
        compiled = numba.njit(**options)(function)
    return cast("Callable[P, R]", compiled)
