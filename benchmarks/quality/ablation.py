"""What each method finds in equal time, over the best of them all.

python benchmarks/quality/ablation.py [--time 5] [--seeds 2]
"""

from __future__ import annotations

import argparse
from statistics import geometric_mean

from gap import published, stages_alone

import mcmpart
from mcmpart.graph import branchy, paired
from mcmpart.problem import Problem

METHODS = ("greedy", "slice", "evolve", "local", "auto")

HARD = ("pipedream/nasnetamobile.graph.txt", "pipedream/inception_v3.graph.txt")


def problems() -> list[tuple[str, Problem]]:
    """Return graphs on which methods differ, in the setting of ``mtpp`` and others."""
    found = []
    for name, graph in published():
        if name in HARD:
            for chips in (4, 8, 16):
                package = mcmpart.load_package("mtpp").with_chips(chips)
                problem = Problem(graph, package, replica_threshold=0.0)
                found.append((f"{name}, {chips} chips", problem))
    for graph in (paired.two_tower(), paired.encoder_decoder(), branchy.inception()):
        problem = Problem(graph, stages_alone(8), replica_threshold=0.0)
        found.append((f"{graph.name}, stages alone, 8 chips", problem))
        ring = mcmpart.load_package("ring36").with_chips(16)
        found.append((f"{graph.name}, ring36, 16 chips", Problem(graph, ring)))
    return found


def main() -> None:
    """Print a row per graph and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    print(f"{'':52}" + "".join(f"{method:>9}" for method in METHODS))
    for name, problem in problems():
        cost_s = {
            method: _mean_s(problem, method, options.time, options.seeds)
            for method in METHODS
        }
        least_s = min(cost_s.values())
        for method in METHODS:
            found[method].append(cost_s[method] / least_s)
        ratios = "".join(f"{found[method][-1]:9.4f}" for method in METHODS)
        print(f"{name:52}{ratios}", flush=True)
    means = "".join(f"{geometric_mean(found[method]):9.4f}" for method in METHODS)
    print(f"{'geometric mean':52}{means}")


def _mean_s(problem: Problem, method: str, time_s: float, seeds: int) -> float:
    """Return the geometric mean of the bottleneck over the seeds, in seconds."""
    runs = (
        mcmpart.solve(problem, method=method, time_s=time_s, gap=0.0, seed=seed)
        for seed in range(seeds)
    )
    return geometric_mean(run.metrics.bottleneck_s for run in runs)


if __name__ == "__main__":
    main()
