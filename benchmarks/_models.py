"""The graphs that the benchmarks share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import mcmpart
from mcmpart.graph import branchy, paired
from mcmpart.graph.synthetic import random_dag, residual, transformer
from mcmpart.problem import Problem

ROOT = Path(__file__).parents[1]
REAL = ROOT / "tests" / "data" / "cases" / "real"
PIPEDREAM = ROOT / "tests" / "data" / "public" / "pipedream"

PUBLIC = ("inception_v3", "resnet50", "nasnetamobile")

RULED = replace(mcmpart.load_package("ring36"), rules=("no_skip", "triangle"))
"""36 chips with the rules of the paper and without a limit of memory."""


def branchy_problems() -> Iterator[tuple[str, Problem]]:
    """Give the generated, the public and the real networks on ``RULED``, by name."""
    for graph in (branchy.inception(), branchy.resnet(), branchy.shufflenet()):
        yield graph.name, Problem(graph, RULED)
    for graph in (paired.encoder_decoder(), paired.two_tower()):
        yield graph.name, Problem(graph, RULED)
    for name in PUBLIC:
        graph = mcmpart.load_graph(PIPEDREAM / f"{name}.graph.txt")
        yield f"PipeDream {name}", Problem(graph, RULED, replica_threshold=0.0)
    index = json.loads((REAL / "INDEX.json").read_text())
    for case in index["cases"]:
        if case["expect"] == "ok":
            yield case["id"], Problem(mcmpart.load_graph(REAL / case["file"]), RULED)


LARGE = {
    "transformer, 862 layers": lambda: transformer(862),
    "residual, 12,500 blocks": lambda: residual(12_500),
    "random DAG": lambda: random_dag(50_000, np.random.default_rng(0), 0.05),
}
"""Graphs of some 50,000 ops."""
