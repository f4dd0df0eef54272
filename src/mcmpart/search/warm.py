"""Compiles the kernels that a run needs before the clock starts."""

from __future__ import annotations

import logging
import threading

from mcmpart.bounds.chain import make_chain
from mcmpart.bounds.ideals import proof_blocks, within_limit
from mcmpart.evaluate import evaluate
from mcmpart.graph.synthetic import diamond
from mcmpart.hardware.loader import load_package
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search import METHODS, Setting, pipeline_evaluator
from mcmpart.search.interrupt import is_pressed

logger = logging.getLogger(__name__)

SLOW_S = 2.0
"""Loading cached kernels takes less; more means that they were compiled."""

PROPOSALS = 4
"""Proposals after which every method has met all of its kernels."""

ALWAYS = ("greedy", "slice", "local")
"""Methods that ``auto`` and the choice of replicas run."""

SOLVER = "random"
"""A method that meets the kernels of the constraint solver."""

TRIANGLE = "anneal"
"""A method that ``auto`` runs under the triangle rule."""

PROOF = "proof"
"""Stands for the kernels of the lower bound."""

_ready: set[str] = set()


def warm_up(
    method: str = "auto", *, with_solver: bool = False, with_triangle: bool = False
) -> None:
    """Compile the kernels that a run needs, or load them from the cache on disk.

    A search's time limit counts from after this. Compiling happens on the first run
    after an installation only, and is announced on the log.

    Parameters
    ----------
    method
        A key of ``METHODS``; another name asks for no more than ``ALWAYS``.
    with_solver
        Whether the constraint solver will be needed.
    with_triangle
        Whether the package has the triangle rule, under which ``auto`` anneals.
    """
    names = dict.fromkeys([*ALWAYS, PROOF, *[SOLVER] * with_solver, method])
    if method == "auto" and with_triangle:
        names[TRIANGLE] = None
    known = {PROOF, *METHODS}
    cold = [name for name in names if name in known and name not in _ready]
    if not cold:
        return
    notice = threading.Timer(
        SLOW_S, logger.info, ["compiling the kernels, on the first run only ..."]
    )
    notice.daemon = True
    notice.start()
    try:
        for name in cold:
            _run(name)
            _ready.add(name)
    finally:
        notice.cancel()


def _run(name: str) -> None:
    """Let a method meet all of its kernels on a small problem."""
    problem = Problem(diamond(2), load_package("ring36"))
    if name == PROOF:
        blocks = proof_blocks(problem)
        within_limit(problem, blocks, 1.0)
        make_chain(problem, blocks)
        return
    judge = pipeline_evaluator(problem, 1)
    method = METHODS[name](Setting(problem))
    for _ in range(PROPOSALS):
        if is_pressed():
            raise KeyboardInterrupt
        rows = method.propose()
        if rows.shape[0]:
            method.observe(judge(rows))
            evaluate(problem, Partition(problem.graph, rows[0]))
