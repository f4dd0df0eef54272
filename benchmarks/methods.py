"""What each method finds within a number of partitions judged, or of seconds.

python benchmarks/methods.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mcmpart.bounds import simple_bound_s
from mcmpart.graph import branchy
from mcmpart.graph.graph import Float64
from mcmpart.graph.synthetic import transformer
from mcmpart.hardware.loader import load_package
from mcmpart.problem import Problem
from mcmpart.search import METHODS, Budget, Setting, pipeline_evaluator, run_search
from mcmpart.search.warm import warm_up

SEEDS = range(3)

BUDGETS = (100, 500, 5000)
"""Numbers of partitions judged after which the best so far is noted."""

TIMED = {"greedy": 1.0, "slice": 10.0, "local": 10.0}
"""Seconds for the methods that do not spend much time on judging."""


def problems() -> Iterator[tuple[str, Problem]]:
    """Give one deep and two branchy networks on ``ring36``, by name."""
    ring = load_package("ring36")
    for graph in (transformer(36), branchy.resnet(), branchy.inception()):
        yield graph.name, Problem(graph, ring)


def by_evaluations(name: str, problem: Problem, seed: int) -> tuple[list[float], float]:
    """Return the best bottleneck after each of ``BUDGETS``, and ms per evaluation."""
    started = time.perf_counter()
    record = run_search(
        METHODS[name](Setting(problem, seed=seed, workers=1)),
        pipeline_evaluator(problem, 1),
        Budget(time_s=3600.0, evaluations=BUDGETS[-1]),
        simple_bound_s(problem),
        started=started,
    )
    best_s = [
        min(
            (
                point.bottleneck_s
                for point in record.trace
                if point.evaluations <= limit
            ),
            default=np.inf,
        )
        for limit in BUDGETS
    ]
    return best_s, 1e3 * record.seconds / record.evaluations


def in_time(name: str, problem: Problem, time_s: float) -> float:
    """Return the best bottleneck after some seconds, on one thread."""
    started = time.perf_counter()
    record = run_search(
        METHODS[name](Setting(problem, deadline=started + time_s, workers=1)),
        pipeline_evaluator(problem, 1),
        Budget(time_s=time_s),
        simple_bound_s(problem),
        started=started,
    )
    return record.bottleneck_s


def spread(limit: int, best_us: Float64) -> str:
    """Return the median, the best and the worst of the seeds."""
    median, best, worst = np.median(best_us), best_us.min(), best_us.max()
    return f"{limit}: {median:.0f} ({best:.0f}-{worst:.0f})"


def main() -> None:
    """Print the figures of each graph and method."""
    for name in METHODS:
        warm_up(name)
    for graph, problem in problems():
        print(f"{graph}: bound {1e6 * simple_bound_s(problem):.1f} us", flush=True)
        for method in ("random", "anneal"):
            runs = [by_evaluations(method, problem, seed) for seed in SEEDS]
            best_us = 1e6 * np.array([best_s for best_s, _ in runs])
            cells = map(spread, BUDGETS, best_us.T)
            pace = float(np.median([ms for _, ms in runs]))
            print(f"  {method}: us at {', '.join(cells)}; {pace:.2f} ms each")
        for method, time_s in TIMED.items():
            best = 1e6 * in_time(method, problem, time_s)
            print(f"  {method}: {best:.0f} us in {time_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
