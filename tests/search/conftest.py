"""Compiles the kernels before tests that have a time limit, and shares a problem."""

import pytest

from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.problem import Problem
from mcmpart.search import METHODS
from mcmpart.search.warm import warm_up


@pytest.fixture(scope="session", autouse=True)
def _compiled():
    for name in METHODS:
        warm_up(name)


@pytest.fixture
def islands(make_package):
    """Give two chains of three ops of 1 s, op by op in turn, on two chips.

    A tensor takes 10 s in or out, so the optimum is an island on each chip, 3 s, which
    no cut of the op order gives.
    """
    builder = GraphBuilder("islands")
    for i in range(2):
        builder.host_tensor(TensorSpec(f"x{i}", 0))
    for j in range(3):
        for i in range(2):
            reads = (f"x{i}" if j == 0 else f"{i}.{j - 1}.t",)
            writes = (TensorSpec(f"{i}.{j}.t", 0 if j == 2 else 100),)
            builder.op(
                OpSpec(f"{i}.{j}", "Op", seconds=1.0, reads=reads, writes=writes)
            )
    for i in range(2):
        builder.output(f"{i}.2.t")
    return Problem(builder.build(), make_package(2))
