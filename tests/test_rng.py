"""Random numbers of the kernels: splitmix64 and what is drawn from it."""

import numpy as np
import pytest

from mcmpart._rng import new_state, next_below, next_unit, next_word

WORD = 2**64 - 1


def plain_words(state, count):
    """Return the next words of splitmix64 in plain integers."""
    words = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & WORD
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
        words.append(word ^ (word >> 31))
    return words


def test_published_words():
    """From the state 1234567 come the words that the published C code gives."""
    state = np.array([1234567], dtype=np.uint64)
    assert [int(next_word(state)) for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@pytest.mark.parametrize("start", [0, 1, 2**63, WORD])
def test_words_equal_the_plain_twin(start):
    """The kernel wraps at 64 bits like plain integers with a mask."""
    state = np.array([start], dtype=np.uint64)
    assert [int(next_word(state)) for _ in range(20)] == plain_words(start, 20)


def test_unit_is_the_upper_53_bits():
    """A unit is its word's upper 53 bits as a fraction, so in [0, 1)."""
    state = np.array([5], dtype=np.uint64)
    units = [next_unit(state) for _ in range(1000)]
    assert units == [(word >> 11) / 2**53 for word in plain_words(5, 1000)]
    assert min(units) >= 0
    assert max(units) < 1
    assert np.mean(units) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("bound", [1, 2, 7, 2**31])
def test_below_scales_the_upper_32_bits(bound):
    """An integer below the bound is the word's upper half times the bound."""
    state = np.array([9], dtype=np.uint64)
    drawn = [int(next_below(state, bound)) for _ in range(1000)]
    assert drawn == [(word >> 32) * bound >> 32 for word in plain_words(9, 1000)]
    if bound == 7:
        # 1000 / 7 = 143 of each, with a standard deviation of 11.
        assert min(np.bincount(drawn)) > 143 - 5 * 11


def test_seed_and_stream_give_the_state():
    """The same seed and stream give the same state, others another one."""
    states = [int(new_state(s, t)[0]) for s in range(20) for t in range(20)]
    assert states == [int(new_state(s, t)[0]) for s in range(20) for t in range(20)]
    assert len(set(states)) == 400
    assert new_state(3).dtype == np.uint64
    assert new_state(3).tolist() == new_state(3, 0).tolist()
