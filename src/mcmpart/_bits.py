"""Sets of chips as 64-bit masks inside compiled kernels: bit c is chip c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic

from mcmpart._jit import inner

NO_CHIPS = np.uint64(0)
EVERY_CHIP = np.uint64(2**64 - 1)
"""A mask with the bit of every chip set."""

ONE = np.uint64(1)


def _count(instruction: str) -> Callable[[np.uint64], int]:
    """Return one of LLVM's bit-counting instructions as a function for kernels."""

    # numba hands in its own objects, which have no type information.
    def typed(context: object, mask: object) -> tuple[Any, Callable[..., Any]]:
        def emit(context: Any, builder: Any, signature: object, args: Any) -> Any:  # noqa: ANN401
            if instruction == "ctpop":
                return builder.ctpop(args[0])
            # False: the count of an empty mask is 64, not undefined.
            undefined = context.get_constant(types.boolean, False)
            return getattr(builder, instruction)(args[0], undefined)

        return types.int64(types.uint64), emit

    return cast("Callable[[np.uint64], int]", intrinsic(typed))


lowest = _count("cttz")
"""Return the lowest chip of a mask; 64 if it is empty."""

num_chips_in = _count("ctpop")
"""Return how many chips a mask has."""

_leading_zeros = _count("ctlz")


@inner
def highest(mask: np.uint64) -> int:
    """Return the highest chip of a mask; -1 if it is empty."""
    return 63 - _leading_zeros(mask)


@inner
def bit(chip: int) -> np.uint64:
    """Return a mask with the bit of ``chip`` set."""
    return ONE << np.uint64(chip)


@inner
def at_least(chip: int) -> np.uint64:
    """Return the mask of ``chip``, 0 to 63, and all above it."""
    return EVERY_CHIP << np.uint64(chip)


@inner
def at_most(chip: int) -> np.uint64:
    """Return the mask of ``chip``, 0 to 63, and all below it."""
    return EVERY_CHIP >> np.uint64(63 - chip)


@inner
def is_single(mask: np.uint64) -> bool:
    """Return whether a mask, not empty, has exactly one chip."""
    return mask & (mask - ONE) == NO_CHIPS


@inner
def run_end(first: int, mask: np.uint64) -> int:
    """Return the first chip above ``first`` that is not in the mask; 64 if none is."""
    return lowest(~(mask | (bit(first) - ONE)))
