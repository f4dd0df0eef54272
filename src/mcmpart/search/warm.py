"""Compiles the kernels before the clock starts."""

from __future__ import annotations

import logging
import threading

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

_ready: list[bool] = []


def warm_up() -> None:
    """Compile every kernel, or load it from the cache on disk; once per process.

    A search's time limit counts from after this. Compiling happens on the first run
    after an installation only, and is announced on the log.
    """
    if _ready:
        return
    notice = threading.Timer(
        SLOW_S, logger.info, ["compiling the kernels, on the first run only ..."]
    )
    notice.daemon = True
    notice.start()
    problem = Problem(diamond(2), load_package("ring36"))
    judge = pipeline_evaluator(problem, 1)
    for make_method in METHODS.values():
        method = make_method(Setting(problem))
        for _ in range(PROPOSALS):
            if is_pressed():
                notice.cancel()
                raise KeyboardInterrupt
            rows = method.propose()
            if rows.shape[0]:
                method.observe(judge(rows))
                evaluate(problem, Partition(problem.graph, rows[0]))
    notice.cancel()
    _ready.append(True)
