"""Disturbances: steps, splits and merges, every outcome worked out by hand."""

import numpy as np
import pytest

from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.problem import Problem
from mcmpart.search import disturb
from mcmpart.search.disturb import Disturber

LOAD_S = np.array([1.0, 3.0, 1.5, 0.0])
"""Chip 1 is the slowest; of chips 0, 1 and 2 the last two have more to do together."""


@pytest.fixture
def tell(monkeypatch):
    """Give a function that sets the module's constants."""

    def set_constants(**values):
        for name, value in values.items():
            monkeypatch.setattr(disturb, name, value)

    return set_constants


def net(package, *reads):
    """Return a problem of ops "0", "1", ... that read the tensors of these ops."""
    builder = GraphBuilder("net")
    builder.host_tensor(TensorSpec("x", 8))
    for op, producers in enumerate(reads):
        tensors = tuple(f"{name}.t" for name in producers) or ("x",)
        writes = (TensorSpec(f"{op}.t", 8),)
        builder.op(OpSpec(str(op), "Op", flops=10, reads=tensors, writes=writes))
    builder.output(f"{len(reads) - 1}.t")
    return Problem(builder.build(), package)


@pytest.fixture
def ladder(make_package):
    """Give six ops in a row, of which op 2 also feeds op 5, on four chips."""
    return net(make_package(4), "", "0", "1", "2", "3", "42")


def outcomes(problem, chip_of, load_s=LOAD_S, count=300):
    """Return all that comes of a partition in many moves, as a set of strings."""
    disturber = Disturber(problem, np.random.default_rng(0))
    given = np.array([int(c) for c in chip_of], dtype=np.int32)
    found = set()
    for _ in range(count):
        moved = disturber.disturb(given, load_s)
        assert moved.dtype == np.int32
        found.add("".join(map(str, moved)))
    assert "".join(map(str, given)) == chip_of
    return found


def test_steps_of_windows(ladder, tell):
    """All blocks of the slowest chip from one on go up, or all up to one go down."""
    tell(SHARES=(1, 0, 0), SLOWEST_SHARE=1, TAIL_SHARE=1)
    assert outcomes(ladder, "001122") == {"002222", "001222", "000022", "000122"}


def test_steps_of_closures(make_package, tell):
    """A block goes up with descendants on its chip, nearest first, down with ancestors.

    Of the four ops 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3.
    """
    tell(SHARES=(1, 0, 0), SLOWEST_SHARE=1, TAIL_SHARE=0)
    diamond = net(make_package(4), "", "0", "0", "12")
    up = {"2111", "2211", "2221", "2222", "1211", "1212", "1121", "1122", "1112"}
    down = {"1110", "1010", "1000", "0000", "1011", "0011", "1101", "0101", "0111"}
    assert outcomes(diamond, "1111", count=1000) == up | down
    # Op 3 stands elsewhere and stays.
    up = {"2112", "2212", "2222", "1212", "1122"}
    down = {"0112", "1012", "0012", "1102", "0102"}
    assert outcomes(diamond, "1112", count=1000) == up | down


def test_a_step_ends_at_the_module(ladder, tell):
    """Nothing goes below chip 0 or beyond the last chip."""
    tell(SHARES=(1, 0, 0), SLOWEST_SHARE=1, TAIL_SHARE=1)
    assert "000111" in outcomes(ladder, "000111", np.array([9.0, 1, 1, 1]))
    assert "112333" in outcomes(ladder, "112333", np.array([1.0, 1, 1, 9]))


def test_splits_that_open_a_chip(ladder, tell):
    """The slowest chip becomes two, and all behind shift up."""
    tell(SHARES=(0, 1, 0), SLOWEST_SHARE=1, TAIL_SHARE=1, OPENING_SHARE=1)
    # Its one inner cut, and both ends, where all of it stays or goes.
    assert outcomes(ladder, "001122") == {"001233", "002233", "001133"}


def test_splits_that_merge_behind(ladder, tell):
    """The two lightest neighbours, chips 2 and 3, make room for half of chip 1."""
    tell(SHARES=(0, 1, 0), SLOWEST_SHARE=1, TAIL_SHARE=1, OPENING_SHARE=0)
    tell(LIGHTEST_SHARE=1)
    load_s = np.array([2.0, 9.0, 0.5, 0.5])
    assert outcomes(ladder, "011123", load_s) == {
        "011233",
        "012233",
        "022233",
        "011133",
    }


def test_splits_that_merge_before(ladder, tell):
    """The two lightest neighbours, chips 0 and 1, make room for half of chip 3."""
    tell(SHARES=(0, 1, 0), SLOWEST_SHARE=1, TAIL_SHARE=1, OPENING_SHARE=0)
    tell(LIGHTEST_SHARE=1)
    load_s = np.array([0.5, 0.5, 2.0, 9.0])
    assert outcomes(ladder, "012333", load_s) == {
        "001233",
        "001223",
        "001222",
        "001333",
    }


def test_merges(ladder, tell):
    """Any two neighbours become one; of a single chip nothing does."""
    tell(SHARES=(0, 0, 1), LIGHTEST_SHARE=0)
    assert outcomes(ladder, "001123") == {"000012", "001112", "001122"}
    assert outcomes(ladder, "000000") == {"000000"}


def test_merges_of_the_lightest(ladder, tell):
    """Chips 2 and 3, with 1.5 s together, become one."""
    tell(SHARES=(0, 0, 1), LIGHTEST_SHARE=1)
    assert outcomes(ladder, "001123") == {"001122"}


def test_other_chips_have_their_turn(ladder, tell):
    """A share of the moves begins at any block, also where the slow hop has none."""
    tell(SHARES=(1, 0, 0), TAIL_SHARE=1)
    found = outcomes(ladder, "001122")
    assert {"011122", "001123", "001222"} <= found
    empty = np.array([0.0, 0.0, 0.0, 9.0])
    assert "011122" in outcomes(ladder, "001122", empty)
