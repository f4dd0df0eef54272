"""How near the optimum `auto` comes, and what it can prove, graph by graph.

python benchmarks/quality/gap.py SETTING [--chips 4,8] [--time 60] [--only TEXT]
    [--rows FILE.csv]

SETTING is a package's name, or ``mtpp``: stages alone count, traffic at one rate, no
rules. Known optima (known.tsv) are compared where there are some.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import geometric_mean

import mcmpart
from mcmpart.bounds.ideals import proof_blocks, within_limit
from mcmpart.errors import McmpartError
from mcmpart.graph import branchy, paired
from mcmpart.graph.graph import Graph
from mcmpart.graph.synthetic import chain, residual, transformer
from mcmpart.hardware import Package
from mcmpart.problem import Problem

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "tests" / "data"


@dataclass(frozen=True, slots=True)
class Row:
    """What one run gave; ``known`` is the proven optimum of others, or NaN."""

    graph: str
    setting: str
    chips: int
    blocks: int
    best_ms: float
    bound_ms: float
    method: str
    hard: bool
    seconds: float
    to_best_s: float
    known_ms: float

    @property
    def ratio(self) -> float:
        """Bound over best, 1 where the best is proven optimal."""
        return self.bound_ms / self.best_ms if self.best_ms else 1.0


def published() -> Iterator[tuple[str, Graph]]:
    """Give the published graphs, which have times of their own, by file."""
    public = DATA / "public"
    for path in sorted([*public.rglob("*.json"), *public.rglob("*.graph.txt")]):
        yield str(path.relative_to(public)), mcmpart.load_graph(path)


def modelled() -> Iterator[tuple[str, Graph]]:
    """Give real models and generated ones, whose times a package decides."""
    real = DATA / "cases" / "real"
    for case in json.loads((real / "INDEX.json").read_text())["cases"]:
        if case["expect"] == "ok":
            yield case["id"], mcmpart.load_graph(real / case["file"])
    made = [branchy.inception(), branchy.resnet(), branchy.shufflenet()]
    made += [paired.encoder_decoder(), paired.two_tower()]
    made += [transformer(12), transformer(36), residual(50), chain(40)]
    for graph in made:
        yield graph.name, graph


def problems(setting: str, chips: int) -> Iterator[tuple[str, Problem]]:
    """Give every graph on ``chips`` chips of the setting's package."""
    if setting == "mtpp":
        package = mcmpart.load_package("mtpp").with_chips(chips)
        for name, graph in published():
            yield name, Problem(graph, package, replica_threshold=0.0)
        for name, graph in modelled():
            yield name, Problem(graph, stages_alone(chips), replica_threshold=0.0)
        return
    package = mcmpart.load_package(setting).with_chips(chips)
    for name, graph in modelled():
        yield name, Problem(graph, package)


def stages_alone(chips: int) -> Package:
    """Return the chips of ``ring36`` in the setting of ``mtpp``."""
    ring = mcmpart.load_package("ring36").with_chips(chips)
    return replace(ring, rules=(), long_edges="direct", link_limit=False)


def known_optima() -> dict[tuple[str, int], float]:
    """Return the published optima in ms by file and number of chips."""
    with (HERE / "known.tsv").open() as file:
        return {
            (row["file"], int(row["chips"])): float(row["ms"])
            for row in csv.DictReader(file, delimiter="\t")
            if row["what"] == "optimum"
        }


def measure(name: str, setting: str, problem: Problem, time_s: float) -> Row:
    """Search and prove for ``time_s`` at most, to the end of the gap."""
    began = time.perf_counter()
    result = mcmpart.solve(problem, time_s=time_s, gap=0.0)
    spent_s = time.perf_counter() - began
    problem = result.problem
    blocks = proof_blocks(problem)
    limit_s = result.metrics.bottleneck_s
    few = limit_s > 0 and within_limit(problem, blocks, limit_s, is_late=lambda: True)
    better = [point for point in result.trace if point.method != "bound"]
    return Row(
        graph=name,
        setting=setting,
        chips=problem.num_chips,
        blocks=problem.blocks.num_blocks,
        best_ms=1e3 * result.metrics.bottleneck_s,
        bound_ms=1e3 * min(result.lower_bound_s, result.metrics.bottleneck_s),
        method=result.lower_bound_method,
        hard=bool(few and few.gave_up),
        seconds=spent_s,
        to_best_s=better[-1].seconds if better else 0.0,
        known_ms=known_optima().get((name, problem.num_chips), math.nan),
    )


def mean(rows: list[Row]) -> float:
    """Return the geometric mean of bound / best."""
    return geometric_mean(max(row.ratio, 1e-9) for row in rows) if rows else math.nan


def show(row: Row) -> None:
    """Print one run."""
    known = row.best_ms / row.known_ms if row.known_ms == row.known_ms else math.nan
    print(
        f"{row.graph[-44:]:44} {row.chips:3} chips  best {row.best_ms:12.6f} ms  "
        f"bound/best {row.ratio:.5f} {row.method:10} {row.seconds:6.1f} s  "
        f"best/known {known:.7f}",
        flush=True,
    )


def main() -> None:
    """Run what the command line asks for, print rows and means, keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("setting")
    parser.add_argument("--chips", default="4,8,16,36")
    parser.add_argument("--time", type=float, default=60.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for chips in map(int, options.chips.split(",")):
        for name, problem in problems(options.setting, chips):
            if options.only not in name:
                continue
            try:
                rows.append(measure(name, options.setting, problem, options.time))
            except McmpartError as error:
                print(f"{name}, {chips} chips: {error}", flush=True)
            else:
                show(rows[-1])
    for chips in sorted({row.chips for row in rows}):
        those = [row for row in rows if row.chips == chips]
        hard = [row for row in those if row.hard]
        print(
            f"{options.setting}, {chips} chips: bound / best {mean(those):.5f} over "
            f"{len(those)} graphs, {mean(hard):.5f} over the {len(hard)} with too many "
            "ideals to list"
        )
    if options.rows is not None:
        with options.rows.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Row)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)


if __name__ == "__main__":
    main()
