"""Sets of chips in 64-bit masks, against Python's sets."""

import numpy as np
import pytest

from mcmpart import _bits

MASKS = [
    *(1 << c for c in (0, 1, 31, 32, 62, 63)),
    *((1 << c) - 1 for c in (1, 2, 32, 63, 64)),
    *(2**64 - (1 << c) for c in (0, 1, 32, 63)),
    *np.random.default_rng(0).integers(1, 2**64, 50, dtype=np.uint64).tolist(),
]


@pytest.fixture(scope="module")
def bits(tools):
    """Give the helpers, callable from Python."""
    _lowest, _highest, _count = _bits.lowest, _bits.highest, _bits.num_chips_in
    _bit, _up, _down = _bits.bit, _bits.at_least, _bits.at_most
    _single, _end = _bits.is_single, _bits.run_end

    @tools.compiled
    def of_mask(mask):
        return _lowest(mask), _highest(mask), _count(mask), _single(mask)

    @tools.compiled
    def of_chip(chip):
        return _bit(chip), _up(chip), _down(chip)

    @tools.compiled
    def run_end(first, mask):
        return _end(first, mask)

    return of_mask, of_chip, run_end


def chips_in(mask):
    """Return the chips of a mask."""
    return {c for c in range(64) if mask >> c & 1}


def test_what_a_mask_has(bits):
    """Its lowest and highest chip, how many it has, and whether that is one."""
    for mask in MASKS:
        chips = chips_in(mask)
        wanted = min(chips), max(chips), len(chips), len(chips) == 1
        assert bits[0](np.uint64(mask)) == wanted


def test_an_empty_mask(bits):
    """The lowest chip is 64 and the highest -1: both lie outside."""
    assert bits[0](np.uint64(0))[:3] == (64, -1, 0)


def test_masks_around_a_chip(bits):
    """The chip alone, it with all above, it with all below."""
    for chip in range(64):
        alone, above, below = (chips_in(int(mask)) for mask in bits[1](chip))
        assert alone == {chip}
        assert above == set(range(chip, 64))
        assert below == set(range(chip + 1))


def test_the_end_of_a_run(bits):
    """The first chip above, where the run of chips from ``first`` stops."""
    for mask in MASKS:
        chips = chips_in(mask)
        for first in chips:
            past = min(set(range(first + 1, 65)) - chips)
            assert bits[2](first, np.uint64(mask)) == past
