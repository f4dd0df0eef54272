"""Split a small BERT over the chips of a ring, and look at the result.

Run it from anywhere: ``python examples/quickstart.py``.
"""

from pathlib import Path

import mcmpart
from mcmpart.units import format_rate, format_seconds

MODEL = Path(__file__).parent / "bert-tiny.onnx"


def main() -> None:
    """Solve for 4, 8 and 16 chips and print what each brings."""
    graph = mcmpart.load_graph(MODEL)
    ring = mcmpart.load_package("ring36")
    print(f"{graph.name}: {graph.num_ops} ops, {graph.num_weights} weights")
    for num_chips in (4, 8, 16):
        problem = mcmpart.Problem(graph, ring.with_chips(num_chips))
        result = mcmpart.solve(problem, time_s=1.0, seed=0)
        mcmpart.verify(result)
        metrics = result.metrics
        print(
            f"{num_chips:3} chips: {format_rate(metrics.throughput_per_s)}, "
            f"bottleneck {format_seconds(metrics.bottleneck_s)}, "
            f"latency {format_seconds(metrics.latency_s)}, "
            f"gap {100 * result.gap:.0f} %"
        )


if __name__ == "__main__":
    main()
