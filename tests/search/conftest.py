"""Compiles the kernels before tests that have a time limit."""

import pytest

from mcmpart.search import METHODS
from mcmpart.search.warm import warm_up


@pytest.fixture(scope="session", autouse=True)
def _compiled():
    for name in METHODS:
        warm_up(name)
