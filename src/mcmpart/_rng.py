"""Random numbers inside compiled kernels: the state is an argument.

splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014): one 64-bit word of state, the same sequence on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcmpart._jit import leaf

UInt64 = NDArray[np.uint64]


def new_state(seed: int, stream: int = 0) -> UInt64:
    """Return the state ``[1] uint64`` of stream ``stream`` of ``seed``."""
    words = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)
    return words.astype(np.uint64)


@leaf
def next_word(state: UInt64) -> np.uint64:
    """Return the next 64 random bits; writes ``state`` ``[1] uint64``."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@leaf
def next_unit(state: UInt64) -> float:
    """Return a float in [0, 1) with 53 random bits."""
    return float(next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@leaf
def next_below(state: UInt64, bound: int) -> np.int64:
    """Return an integer in [0, bound), ``bound`` at most 2^31."""
    high = next_word(state) >> np.uint64(32)
    return np.int64((high * np.uint64(bound)) >> np.uint64(32))
