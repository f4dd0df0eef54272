"""Factors by which an evaluator's op times differ from the analytical model's.

The time of an op of kind k and shape h on chip c is taken to be what the analytical
model says times exp(a + b_k + d_h + e_c). The exponents are fitted to observed stage
times by least squares on their logarithms, each held to 0 by a ridge; so a shape that
was hardly seen follows its kind, and a kind that was hardly seen follows the rest. How
strongly each group is held, and how noisy the observations are, is fitted with them.

Axis letters: P exponents, G classes of ops, N observations, C chips, V ops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from mcmpart._jit import jit
from mcmpart.blocks import replica_readers
from mcmpart.evaluate import evaluate
from mcmpart.graph.graph import Float64, Graph, Int32, Int64
from mcmpart.partition import Partition
from mcmpart.problem import Problem

MOST_CLASSES = 300
"""Costliest classes of kind and shape that have an exponent of their own."""

MOST_OBSERVATIONS = 600
"""Stage times that are fitted, the latest ones."""

STEPS = 3
"""Gauss-Newton steps of a fit, which begins where the last one ended."""

SPREAD = 0.3
"""Standard deviation of each exponent at first; that of the overall one stays 1."""

SPREAD_COUNT = 5
"""Number of exponents that the first spread counts for, beside the fitted ones."""

NOISE, LEAST_NOISE, MOST_NOISE = 0.05, 0.003, 0.3
"""Relative error of an observed stage time: at first, and its limits."""

LARGEST_EXPONENT = 3.0
"""Where an exponent stops, so that a step too far cannot overflow."""

OVERALL, KIND, SHAPE, CHIP = range(4)
"""Groups of exponents."""


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One partition: what the analytical model says, and what the evaluator saw.

    Attributes
    ----------
    class_s
        ``[C, G] float64``: seconds of the ops of each class on each chip.
    transfer_s
        ``[C] float64``.
    hop_s
        Seconds of the busiest hop; 0 where hops set no limit.
    stage_s
        ``[C] float64``: observed, NaN where not known.
    bottleneck_s
        Observed.
    """

    class_s: Float64
    transfer_s: Float64
    hop_s: float
    stage_s: Float64
    bottleneck_s: float


class Factors:
    """Learns the factors of one problem.

    Parameters
    ----------
    problem
        With the costs of the analytical model.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._class_of, kind_of = op_classes(problem.graph, problem.costs.op_s)
        num_kinds, num_classes = int(kind_of.max(initial=-1)) + 1, kind_of.size
        sizes = (1, num_kinds, num_classes, problem.num_chips)
        self._group_of = np.repeat(np.arange(4), sizes)
        self._kind_at = 1 + kind_of
        self._shape_at = 1 + num_kinds + np.arange(num_classes)
        self._chip_at = 1 + num_kinds + num_classes + np.arange(problem.num_chips)
        chip_class = problem.package_arrays.chip_class
        self._chip_op_s = problem.costs.op_s[chip_class]
        each_op = np.arange(problem.graph.num_ops, dtype=np.int32)
        self._readers = {
            op: np.array(sorted(readers), dtype=np.int32)
            for op, readers in replica_readers(problem.graph, each_op).items()
        }
        self._seen: list[Observation] = []
        self._mean = np.zeros(self._group_of.size)
        self._spread = np.array([1.0, SPREAD, SPREAD, SPREAD])
        self._noise = NOISE

    def observe(
        self, chip_of: Int32, bottleneck_s: float, stage_s: Float64 | None
    ) -> None:
        """Take note of a valid partition, ``[V] int32``."""
        problem = self._problem
        found = evaluate(problem, Partition(problem.graph, chip_of))
        limits = problem.package_arrays.link_limit
        unknown = np.full(problem.num_chips, np.nan)
        self._seen.append(
            Observation(
                class_s=self._class_seconds(chip_of),
                transfer_s=np.array([chip.transfer_s for chip in found.chips]),
                hop_s=max((hop.link_s for hop in found.hops), default=0.0) * limits,
                stage_s=unknown if stage_s is None else stage_s,
                bottleneck_s=bottleneck_s,
            )
        )
        self._seen = self._seen[-max(MOST_OBSERVATIONS // problem.num_chips, 1) :]

    def _class_seconds(self, chip_of: Int32) -> Float64:
        """Return the seconds of each class of ops on each chip, ``[C, G]``."""
        num_chips, num_classes = self._chip_at.size, self._shape_at.size
        op = np.flatnonzero(chip_of >= 0)
        at = chip_of[op]
        for replica, readers in self._readers.items():
            chips = np.unique(chip_of[readers])
            op = np.append(op, np.full(chips.size, replica))
            at = np.append(at, chips)
        cell = at * num_classes + self._class_of[op]
        seconds = np.zeros(num_chips * num_classes)
        np.add.at(seconds, cell, self._chip_op_s[at, op])
        return seconds.reshape(num_chips, num_classes)

    def op_seconds(self, exponents: Float64) -> Float64:
        """Return the seconds of each op on each chip, ``[C, V] float64``."""
        factors = self._class_factors(exponents)
        seconds: Float64 = self._chip_op_s * factors[:, self._class_of]
        return seconds

    def _class_factors(self, exponents: Float64) -> Float64:
        """Return the factor of each class of ops on each chip, ``[C, G]``."""
        by_class = exponents[0] + exponents[self._kind_at] + exponents[self._shape_at]
        factors: Float64 = np.exp(exponents[self._chip_at][:, None] + by_class)
        return factors

    def fit(self) -> Float64:
        """Return the likeliest exponents ``[P] float64``."""
        for _ in range(STEPS):
            slope, wanted = self._linearised()
            prior = self._spread[self._group_of] ** 2
            mean, variance = posterior(slope, wanted, prior, self._noise)
            if wanted.size == 0:
                break
            misfit = float(((wanted - slope @ mean) ** 2).sum())
            free = max(wanted.size - float((1 - variance / prior).sum()), 1.0)
            noise = float(np.sqrt(misfit / free))
            self._mean = _clipped(mean)
            self._noise = min(max(noise, LEAST_NOISE), MOST_NOISE)
            self._update_spreads(variance)
        return self._mean

    def _update_spreads(self, variance: Float64) -> None:
        """Set each group's spread to what its exponents show, by one EM step."""
        second = self._mean**2 + variance
        for group in (KIND, SHAPE, CHIP):
            inside = self._group_of == group
            total = second[inside].sum() + SPREAD_COUNT * SPREAD**2
            self._spread[group] = np.sqrt(total / (inside.sum() + SPREAD_COUNT))

    def draw(self, rng: np.random.Generator, width: float = 1.0) -> Float64:
        """Return exponents ``[P] float64`` drawn as likely as they are, after ``fit``.

        ``width`` multiplies their distance from the likeliest ones.
        """
        spread = self._spread[self._group_of]
        drawn = spread * rng.standard_normal(spread.size)
        slope, wanted = self._linearised()
        seen = slope @ drawn + self._noise * rng.standard_normal(wanted.size)
        shift, _ = posterior(slope, wanted - seen, spread**2, self._noise)
        drawn += shift
        return _clipped(self._mean + width * (drawn - self._mean))

    def _linearised(self) -> tuple[Float64, Float64]:
        """Return the slopes ``[N, P]`` and the values ``[N]`` they should add up to.

        One row per stage time: near the exponents so far, its logarithm is linear.
        """
        factors = self._class_factors(self._mean)
        slopes, wanted = [np.empty((0, self._mean.size))], [np.empty(0)]
        for seen in self._seen:
            cost_s = seen.class_s * factors
            chips, stage_s, model_s = self._told_stages(seen, cost_s.sum(axis=1))
            share = cost_s[chips] / model_s[:, None]
            slope = np.zeros((chips.size, self._mean.size))
            slope[:, 0] = share.sum(axis=1)
            np.add.at(slope.T, self._kind_at, share.T)
            slope[:, self._shape_at] = share
            slope[np.arange(chips.size), self._chip_at[chips]] = slope[:, 0]
            slopes.append(slope)
            wanted.append(np.log(stage_s / model_s) + slope @ self._mean)
        return np.concatenate(slopes), np.concatenate(wanted)

    def _told_stages(
        self, seen: Observation, compute_s: Float64
    ) -> tuple[Int64, Float64, Float64]:
        """Return chips that tell of their ops, their times observed and modelled.

        Where chips compute and transfer at once, that is compute time alone, and only
        of stages that took longer than the transfer, or should have.
        """
        if self._problem.package_arrays.serial_io:
            model_s = compute_s + seen.transfer_s
            chips, stage_s = _observed_stages(seen, model_s)
            told = compute_s[chips] > 0
        else:
            model_s = compute_s
            chips, stage_s = _observed_stages(
                seen, np.maximum(compute_s, seen.transfer_s)
            )
            longest_s = np.maximum(stage_s / (1 + 3 * self._noise), compute_s[chips])
            told = (compute_s[chips] > 0) & (longest_s > seen.transfer_s[chips])
        return chips[told], stage_s[told], model_s[chips[told]]


def _observed_stages(seen: Observation, model_s: Float64) -> tuple[Int64, Float64]:
    """Return chips and their stage times; without them, what the bottleneck tells.

    The stage that the model thinks slowest has the bottleneck's time, unless a hop is
    slower; and no stage has more.
    """
    known = seen.stage_s > 0
    if known.any():
        chips = np.flatnonzero(known & (seen.stage_s < np.inf))
        return chips, seen.stage_s[chips]
    told = model_s > seen.bottleneck_s
    told[model_s.argmax()] |= model_s.max() >= seen.hop_s
    chips = np.flatnonzero(told)
    return chips, np.full(chips.size, seen.bottleneck_s)


def _clipped(exponents: Float64) -> Float64:
    return np.clip(exponents, -LARGEST_EXPONENT, LARGEST_EXPONENT)


def posterior(
    slope: Float64, wanted: Float64, prior: Float64, noise: float
) -> tuple[Float64, Float64]:
    """Return the mean ``[P]`` and variance ``[P]`` of a ridge regression.

    Parameters
    ----------
    slope, wanted
        ``[N, P]`` and ``[N]``: ``slope @ exponents`` is ``wanted``, but for noise.
    prior
        ``[P]``: variances around 0 before anything is observed.
    noise
        Standard deviation of each of ``wanted``.
    """
    mean, covariance = np.zeros(prior.size), np.diag(prior)
    absorb(slope, wanted, noise, mean, covariance)
    return mean, np.maximum(covariance.diagonal(), 0.0)


@jit
def absorb(
    slope: Float64, wanted: Float64, noise: float, mean: Float64, covariance: Float64
) -> None:
    """Update ``mean`` ``[P]`` and ``covariance`` ``[P, P]`` by one row after the other.

    On one thread: a library that shares so small a matrix out to all cores waits for
    the slowest one.
    """
    num_exponents = mean.size
    along = np.empty(num_exponents)
    for n in range(wanted.size):
        along[:] = 0.0
        error, total = wanted[n], noise * noise
        for p in range(num_exponents):
            if slope[n, p] != 0.0:
                error -= slope[n, p] * mean[p]
                for q in range(num_exponents):
                    along[q] += slope[n, p] * covariance[p, q]
        for p in range(num_exponents):
            total += slope[n, p] * along[p]
        for p in range(num_exponents):
            gain = along[p] / total
            mean[p] += gain * error
            for q in range(num_exponents):
                covariance[p, q] -= gain * along[q]


def op_classes(graph: Graph, op_s: Float64) -> tuple[Int32, Int32]:
    """Return the class of each op ``[V]`` and the kind of each class ``[G]``, int32.

    A class is a kind and a shape: dtype, work, what is read and written. The cheap
    ones of a kind share a class where there are many.
    """
    shape_of = _shape_of(graph)
    keys: list[tuple[str, Hashable]] = [
        (kind, shape_of(op)) for op, kind in enumerate(graph.op_kind)
    ]
    seconds: Counter[tuple[str, Hashable]] = Counter()
    for key, cost_s in zip(keys, op_s.max(axis=0).tolist(), strict=True):
        seconds[key] += cost_s
    costly = {key for key, _ in seconds.most_common(MOST_CLASSES)}
    kinds: dict[str, int] = {}
    classes: dict[tuple[str, Hashable], int] = {}
    kind_of_class: list[int] = []
    class_of = np.empty(graph.num_ops, dtype=np.int32)
    for op, key in enumerate(keys):
        kind = kinds.setdefault(key[0], len(kinds))
        own = key if key in costly else (key[0], None)
        if own not in classes:
            classes[own] = len(classes)
            kind_of_class.append(kind)
        class_of[op] = classes[own]
    return class_of, np.array(kind_of_class, dtype=np.int32)


def _shape_of(graph: Graph) -> Callable[[int], Hashable]:
    """Return what tells the shape of an op: work, and what it reads and writes."""
    sizes = [
        shape or int(size)
        for shape, size in zip(graph.tensor_shape, graph.tensor_bytes, strict=True)
    ]
    flops, touched = graph.op_flops.tolist(), graph.op_bytes.tolist()
    product = [tuple(row) for row in graph.op_gemm.tolist()]

    def shape(op: int) -> Hashable:
        read = tuple(sizes[t] for t in graph.reads.row(op).tolist())
        written = tuple(sizes[t] for t in graph.writes.row(op).tolist())
        return graph.op_dtype[op], flops[op], touched[op], product[op], read, written

    return shape
