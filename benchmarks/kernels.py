"""Speed of evaluation, slicing and local moves on 2,105 ops x 36 chips.

python benchmarks/kernels.py
"""

from __future__ import annotations

import time

import numpy as np
from _timing import Row, best_of, show

from mcmpart._rng import new_state
from mcmpart.evaluate import evaluate_many
from mcmpart.graph.graph import Int32
from mcmpart.graph.synthetic import transformer
from mcmpart.hardware.loader import load_package
from mcmpart.problem import Problem
from mcmpart.reference import recompute
from mcmpart.search import Setting
from mcmpart.search._moves import anneal_moves
from mcmpart.search._placement import new_placement
from mcmpart.search.slice import Slice
from mcmpart.search.warm import warm_up

NUM_PARTITIONS = 20_000
NUM_BLOCKS = 1_000_000


def make_partitions(problem: Problem, count: int) -> Int32:
    """Return partitions at random cuts of the graph's order, ``[count, V] int32``."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.random((count, problem.num_chips - 1)), axis=1)
    position = (np.arange(problem.graph.num_ops) + 0.5) / problem.graph.num_ops
    return np.stack([np.searchsorted(row, position) for row in cuts]).astype(np.int32)


def evaluation_rows(problem: Problem) -> list[Row]:
    """Measure evaluate_many against its plain twin, and compare their results."""
    chip_of = make_partitions(problem, NUM_PARTITIONS)
    bottleneck_s, _ = evaluate_many(problem, chip_of)
    rate = NUM_PARTITIONS / best_of(lambda: evaluate_many(problem, chip_of))
    few = [row.tolist() for row in chip_of[:20]]
    twin = [recompute(problem.graph, problem.package, row) for row in few]
    worst = max(
        abs(bottleneck_s[i] / load.bottleneck_s - 1) for i, load in enumerate(twin)
    )
    twin_rate = len(few) / best_of(
        lambda: [recompute(problem.graph, problem.package, row) for row in few],
        repeats=3,
    )
    twin_name = f"the plain Python twin ({twin_rate:,.0f} /s)"
    ratio = rate / twin_rate
    valid = np.repeat(Slice(Setting(problem)).propose(), NUM_PARTITIONS, axis=0)
    valid_rate = NUM_PARTITIONS / best_of(lambda: evaluate_many(problem, valid))
    return [
        Row("evaluate_many, random cuts", rate, "/s", ">=", 50e3, twin_name, ratio),
        Row(
            "evaluate_many, valid (all rules checked)",
            valid_rate,
            "/s",
            ">=",
            50e3,
            twin_name,
            valid_rate / twin_rate,
        ),
        Row(
            "evaluate_many over its twin",
            ratio,
            "x",
            ">=",
            100,
            "itself",
            1.0,
        ),
        Row("largest relative difference", worst, "", "<=", 1e-12, "itself", 1.0),
    ]


def slice_row(problem: Problem) -> Row:
    """Measure one cut of the graph's own order against a cut without a cut-off."""

    def cut() -> None:
        assert Slice(Setting(problem), max_orders=1).propose().shape[0] == 1

    quick_s = best_of(cut)
    full = Slice(Setting(problem), max_orders=1)
    full._best_s = 1e9
    began = time.perf_counter()
    full.propose()
    full_s = time.perf_counter() - began
    reference = f"the time of the same DP without a cut-off ({full_s:.2f} s)"
    return Row("slice, one order", quick_s, "s", "<=", 1.0, reference, quick_s / full_s)


def local_row(problem: Problem) -> Row:
    """Measure legal moves, each costed, on one core against full evaluations."""
    start = Slice(Setting(problem), max_orders=1).propose()
    best_s = float(evaluate_many(problem, start)[0][0])
    found = start[0].copy()

    def anneal() -> int:
        _, num_costed = anneal_moves(
            new_placement(start[0], problem.blocks.arrays, problem.package_arrays),
            NUM_BLOCKS,
            0.95 * best_s,
            3e-2,
            1e-5,
            False,
            new_state(0),
            problem.blocks.arrays,
            problem.live,
            problem.package_arrays,
            found,
        )
        return num_costed

    rate = anneal() / best_of(anneal, repeats=3)
    rows = np.repeat(start, 2_000, axis=0)
    full_rate = rows.shape[0] / best_of(lambda: evaluate_many(problem, rows, workers=1))
    reference = f"a full evaluation each ({full_rate:,.0f} /s)"
    return Row(
        "local, moves of a block costed, 1 core",
        rate,
        "/s",
        ">=",
        500e3,
        reference,
        rate / full_rate,
    )


def main() -> None:
    """Print the table."""
    warm_up()
    ring = load_package("ring36")
    problem = Problem(transformer(36), ring)
    show([*evaluation_rows(problem), slice_row(problem), local_row(problem)])


if __name__ == "__main__":
    main()
