"""A plan for a graph of 100,000 ops: seconds, memory, distance from the bound.

python benchmarks/quality/large.py [--time 40]
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace

import mcmpart
from mcmpart.graph.synthetic import transformer
from mcmpart.hardware import Package
from mcmpart.problem import Problem
from mcmpart.search.warm import warm_up

LAYERS = 1_724
"""Of some 58 ops each."""

NEAR = 1 / 0.9
"""A plan within 10 % of the bound costs at most this many times the bound."""


def packages() -> list[tuple[str, Package]]:
    """Return the modules: stages alone, and the rules of the ring."""
    ring = mcmpart.load_package("ring36")
    alone = replace(ring, rules=(), long_edges="direct", link_limit=False)
    ruled = replace(ring, rules=("no_skip", "triangle"))
    return [
        ("stages alone, 8 chips", alone.with_chips(8)),
        ("stages alone, 36 chips", alone),
        ("no_skip and triangle, 36 chips", ruled),
    ]


def main() -> None:
    """Print one row per module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", type=float, default=40.0)
    time_s = parser.parse_args().time
    warm_up("auto")
    graph = transformer(LAYERS)
    for name, package in packages():
        began = time.perf_counter()
        problem = Problem(graph, package)
        set_up_s = time.perf_counter() - began
        result = mcmpart.solve(problem, time_s=time_s, gap=0.001)
        near = [
            point.seconds
            for point in result.trace
            if point.bottleneck_s <= NEAR * result.lower_bound_s
        ]
        reached = f"{set_up_s + near[0]:.1f} s" if near else "never"
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{graph.num_ops} ops, {name}: problem {set_up_s:.1f} s, within 10 % of "
            f"the bound after {reached}, in the end {100 * result.gap:.2f} % "
            f"({result.lower_bound_method}) after {result.seconds:.1f} s, peak "
            f"{peak_mib:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
