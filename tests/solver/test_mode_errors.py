"""Bad arguments of the two modes end in one sentence each."""

import re

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem
from mcmpart.solver import fix_many, sample_many


@pytest.fixture
def problem(make_package):
    """Give three ops in a row on two chips."""
    return Problem(chain(3), make_package(2), replica_threshold=0.0)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (2, 3), (6,), (1, 3, 2)])
def test_probabilities_of_another_shape(shape, problem):
    """One row per op and one column per chip."""
    text = (
        f"probabilities have shape {shape}: give one row per op and one column per "
        "chip, (3, 2)"
    )
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        sample_many(problem, np.ones(shape), [0])


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, -np.inf])
def test_probabilities_that_are_none(value, problem):
    """Negative, not a number or infinite."""
    weights = np.ones((3, 2))
    weights[1, 1] = value
    text = "a probability is negative or not finite: give numbers from 0 up"
    with pytest.raises(InputError, match=f"^{text}$"):
        sample_many(problem, weights, [0])


@pytest.mark.parametrize("share", [-0.01, 1.01, np.nan])
def test_a_share_outside_0_to_1(share, problem):
    """Of the draws that ignore the probabilities."""
    text = f"uniform_share is {share}: give a share from 0 to 1"
    with pytest.raises(InputError, match=f"^{text}$"):
        sample_many(problem, None, [0], uniform_share=share)


def test_an_unknown_order(problem):
    """The message lists the known ones, in both modes."""
    text = "there is no order 'up': choose one of random, topological, work"
    with pytest.raises(InputError, match=f"^{text}$"):
        sample_many(problem, None, [0], order="up")
    with pytest.raises(InputError, match=f"^{text}$"):
        fix_many(problem, np.zeros((1, 3), dtype=int), [0], order="up")


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        (7, "shape () and type int64"),
        ([[1, 2]], "shape (1, 2) and type int64"),
        ([0.5], "shape (1,) and type float64"),
        ([True], "shape (1,) and type bool"),
        (["1"], "shape (1,) and type <U1"),
    ],
)
def test_seeds_that_are_no_row_of_whole_numbers(seeds, told, problem):
    """A single number, a table, or another type."""
    text = f"seeds have {told}: give a row of whole numbers, one per partition"
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        sample_many(problem, None, seeds)
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        fix_many(problem, np.zeros((1, 3), dtype=int), seeds)


def test_a_negative_seed(problem):
    """The message says which."""
    with pytest.raises(InputError, match=r"^a seed is -3: give 0 or more$"):
        sample_many(problem, None, [4, -3])


@pytest.mark.parametrize(
    ("candidates", "told"),
    [
        (np.zeros((1, 3)), "shape (1, 3) and type float64"),
        (np.zeros(3, dtype=np.int32), "shape (3,) and type int32"),
        (np.zeros((1, 1, 3), dtype=np.int32), "shape (1, 1, 3) and type int32"),
    ],
)
def test_candidates_that_are_no_rows_of_whole_numbers(candidates, told, problem):
    """A single row without its batch, or fractions."""
    text = f"candidates have {told}: give whole numbers, one row per partition"
    with pytest.raises(InputError, match=f"^{re.escape(text)}$"):
        fix_many(problem, candidates, [0])


def test_candidates_of_another_graph(problem):
    """The number of columns is that of the ops."""
    text = "candidates have 4 columns: give one for each of the 3 ops"
    with pytest.raises(InputError, match=f"^{text}$"):
        fix_many(problem, np.zeros((1, 4), dtype=int), [0])


def test_more_seeds_than_candidates(problem):
    """Each candidate has a seed of its own."""
    text = "there are 1 candidates and 2 seeds: give one seed per candidate"
    with pytest.raises(InputError, match=f"^{text}$"):
        fix_many(problem, np.zeros((1, 3), dtype=int), [0, 1])


def test_large_probabilities(problem):
    """Only ratios count: numbers near the largest there are do not overflow."""
    shape = (problem.graph.num_ops, problem.num_chips)
    plain, _ = sample_many(problem, np.ones(shape), range(50))
    large, _ = sample_many(problem, np.full(shape, 1e308), range(50))
    assert (plain == large).all()


def test_seeds_beyond_63_bits(problem):
    """Seeds on either side of 2^63 may stand in one list."""
    rows, _ = sample_many(problem, None, [2**64 - 1, 0])
    assert (rows[1] == sample_many(problem, None, [0])[0][0]).all()


@pytest.mark.parametrize("workers", [0, -3, 1.5, "2"])
def test_workers(problem, workers):
    """The number of workers is a whole number from 1 up."""
    with pytest.raises(InputError, match=r"the number of workers is .*: give at least"):
        sample_many(problem, None, [0], workers=workers)


def test_text_for_probabilities(problem):
    """Text is refused in a sentence."""
    with pytest.raises(InputError, match="probabilities are not real numbers"):
        sample_many(problem, "even", [0])
