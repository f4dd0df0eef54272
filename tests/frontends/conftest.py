"""Shares how published graphs are judged."""

import pytest

from mcmpart.frontends import load_graph
from mcmpart.hardware import load_package
from mcmpart.reference import recompute


@pytest.fixture
def bottleneck_ms():
    """Give the slowest stage of a file's graph in the setting of published results."""

    def judge(path, chip_of):
        package = load_package("mtpp").with_chips(max(chip_of) + 1)
        return recompute(load_graph(path), package, chip_of).bottleneck_s * 1e3

    return judge
