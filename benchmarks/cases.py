"""Verify a plan of every shipped model: examples and cases, on two packages.

python benchmarks/cases.py
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import mcmpart
from mcmpart.errors import McmpartError

ROOT = Path(__file__).parents[1]
PRESETS = ("ring36", "inferentia2-x12")


def models() -> list[Path]:
    """Return the models that must import."""
    found = sorted((ROOT / "examples").glob("*.onnx"))
    for kind in ("faults", "real"):
        folder = ROOT / "tests" / "data" / "cases" / kind
        index = json.loads((folder / "INDEX.json").read_text())
        found += [folder / c["file"] for c in index["cases"] if c["expect"] == "ok"]
    return found


def main() -> None:
    """Print one line per model, and how many plans hold."""
    held = total = refused = 0
    for path in models():
        for preset in PRESETS:
            began = time.perf_counter()
            try:
                graph = mcmpart.load_graph(path)
            except McmpartError as error:
                refused += 1
                print(f"{path.parent.name:<28} {preset:<16} refused: {error}")
                continue
            problem = mcmpart.Problem(graph, mcmpart.load_package(preset))
            result = mcmpart.solve(problem, time_s=0.2)
            total += 1
            try:
                mcmpart.verify(result)
                held += 1
                verdict = "verified"
            except McmpartError as error:
                verdict = str(error)
            print(
                f"{path.parent.name:<28} {preset:<16} {graph.num_ops:>5} ops "
                f"{result.partition.num_used_chips:>2} chips "
                f"gap {100 * result.gap:5.1f} % "
                f"{time.perf_counter() - began:5.2f} s  {verdict}"
            )
    print(f"{held} of {total} plans verified, {refused} imports refused by design")
    if held < total:
        sys.exit(1)


if __name__ == "__main__":
    main()
