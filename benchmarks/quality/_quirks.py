"""An evaluator whose op times have factors that the analytical model does not know."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from mcmpart.evaluate import evaluate
from mcmpart.graph.graph import Float64, Graph, Int32
from mcmpart.partition import Partition
from mcmpart.problem import Problem
from mcmpart.search import Evaluations

SIGMA = 0.3
"""Standard deviation of the logarithm of each factor."""

NOISE = 0.03
"""Standard deviation of the logarithm of an observed stage time."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one evaluation saw, and what it would have seen without noise."""

    observed_s: float
    true_s: float


class Quirks:
    """A machine with hidden factors per op kind, per shape of a kind, and per chip.

    It sees each stage time with noise of its own. ``log`` keeps all evaluations.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        rng = np.random.default_rng([seed, 0])
        graph = problem.graph
        kind = _factors(graph.op_kind, rng)
        shape = _factors([_shape(graph, op) for op in range(graph.num_ops)], rng)
        chip = np.exp(SIGMA * rng.standard_normal(problem.num_chips))
        op_s = problem.costs.op_s[problem.package_arrays.chip_class]
        self.truth = problem.with_costs(op_s * kind * shape * chip[:, None])
        self.log: list[Judged] = []
        self._rng = np.random.default_rng([seed, 1])

    def true_s(self, chip_of: Int32) -> float:
        """Return the bottleneck of a partition without noise."""
        return evaluate(self.truth, Partition(self.truth.graph, chip_of)).bottleneck_s

    def __call__(self, chip_of: Int32) -> Evaluations:
        """Measure partitions ``[B, V]``."""
        found = [
            evaluate(self.truth, Partition(self.truth.graph, row)) for row in chip_of
        ]
        stage_s = np.array([[chip.stage_s for chip in one.chips] for one in found])
        stage_s *= np.exp(NOISE * self._rng.standard_normal(stage_s.shape))
        bottleneck_s = stage_s.max(axis=1)
        if self.truth.package_arrays.link_limit:
            hop_s = [max((hop.link_s for hop in one.hops), default=0) for one in found]
            bottleneck_s = np.maximum(bottleneck_s, hop_s)
        for one, observed_s in zip(found, bottleneck_s.tolist(), strict=True):
            self.log.append(Judged(observed_s, one.bottleneck_s))
        valid = np.array([one.valid for one in found])
        return Evaluations(chip_of, bottleneck_s, valid, stage_s)


def _factors(keys: Sequence[Hashable], rng: np.random.Generator) -> Float64:
    """Return one log-normal factor per distinct key, for each key."""
    drawn = {key: np.exp(SIGMA * rng.standard_normal()) for key in dict.fromkeys(keys)}
    return np.array([drawn[key] for key in keys])


def _shape(graph: Graph, op: int) -> Hashable:
    """Return kind and the shapes of all that an op reads and writes, or their bytes."""
    tensors = [*graph.reads.row(op).tolist(), *graph.writes.row(op).tolist()]
    shapes = (graph.tensor_shape[t] or int(graph.tensor_bytes[t]) for t in tensors)
    return graph.op_kind[op], *shapes
