"""chain: how far b chips can get if no stage may take more than a limit.

If C chips cannot get through the whole graph, no partition keeps to the limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from mcmpart._highs import Program, solve_program
from mcmpart.blocks import Blocks
from mcmpart.bounds._ideals import closure_sums
from mcmpart.bounds.ideals import ancestry, members
from mcmpart.graph.graph import Float64
from mcmpart.problem import Problem

MOST_JUMP_ROWS = 5_000
"""Rows for edges that jump over a stage; the others are left out."""

SCALE = 1_000.0
"""The limit in the units of a program."""

SLACK = 1e-3
"""What each row of a program gives away, in its units, for HiGHS's tolerance."""

NO_STEP = 1e-4
"""A chip that adds less work than this share of the limit may be at a standstill."""

MOST_LUMPS = 8
"""Blocks that are tried as the one that decides alone."""

MOST_STAGES = 3
"""Widest window."""

PROGRAM_SHARE = 1 / 3
"""Share of the time left that one program may take."""

Terms = list[tuple[int, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """What every step of the chain reads of a problem.

    Attributes
    ----------
    problem, blocks
        ``blocks`` as :func:`mcmpart.bounds.ideals.proof_blocks` gives them.
    work_s
        ``[N] float64``: what a stage takes for each block at least, on any chip.
    before_s, after_s
        ``[N] float64``: ``work_s`` of the block with its ancestors, descendants.
    ancestors, descendants
        ``[N, L] uint64``: of each block, without itself.
    """

    problem: Problem
    blocks: Blocks
    work_s: Float64
    before_s: Float64
    after_s: Float64
    ancestors: np.ndarray
    descendants: np.ndarray

    @property
    def total_s(self) -> float:
        """Work of all blocks."""
        return float(self.work_s.sum())


def make_chain(problem: Problem, blocks: Blocks) -> Chain:
    """Return the chain of ``problem`` over the blocks of ``proof_blocks``."""
    arrays, package = blocks.arrays, problem.package_arrays
    work_s = arrays.block_s.min(axis=0)
    if package.serial_io:
        fixed_bytes = arrays.host_bytes + arrays.output_bytes
        work_s = work_s + fixed_bytes / package.io_bytes_per_s.max()
    ancestors, descendants = ancestry(blocks)
    return Chain(
        problem,
        blocks,
        work_s,
        work_s + closure_sums(ancestors, work_s),
        work_s + closure_sums(descendants, work_s),
        ancestors,
        descendants,
    )


Range = tuple[float, float]


class Attempt(NamedTuple):
    """What came of an attempt to refute a limit.

    Attributes
    ----------
    refuted
        No bottleneck is the limit or less.
    ranges
        For b = 0 to C the least and the most work in seconds that chips 0 to b - 1 can
        have done if all keep to the limit; one is empty where it is refuted.
    """

    refuted: bool
    ranges: tuple[Range, ...]


def refute(
    chain: Chain,
    limit_s: float,
    left_s: Callable[[], float],
    is_late: Callable[[], bool],
    known: Sequence[Range] = (),
) -> Attempt:
    """Try to prove that no partition has a bottleneck of ``limit_s`` or less.

    Parameters
    ----------
    left_s
        Seconds that are left for all programs.
    known
        Ranges of a higher limit: they hold for this one too.

    Notes
    -----
    The chain bound of docs/algorithm.md, from both ends: most[b + 1] is the largest
    work of an ideal I2 over ideals I1 in I2 with work(I1) in range b and
    stage(I2 - I1) <= limit, and least[b] the smallest of I1 where work(I2) is in range
    b + 1: integer programs over the blocks that can be in the stage at all. The side
    whose programs are the quicker goes on, and when they have met both go on to the
    other end: what one found narrows the programs of the other. A program that is
    stopped early gives a wider range, which is valid too. Where a chip gets no further
    than the one before and all are alike, one program more shows that none ever will:
    what can follow any ideal of at most so much work has no more work itself, and what
    can stand before any of at least so much has no less.
    """
    ends = _Ends(chain, limit_s, left_s, is_late, known)
    refuted = False
    while not (refuted or ends.done or is_late() or left_s() <= 0):
        refuted = ends.advance()
    return Attempt(refuted, tuple(zip(ends.least, ends.most, strict=True)))


def lump(
    chain: Chain,
    limit_s: float,
    left_s: Callable[[], float],
    is_late: Callable[[], bool],
) -> int | None:
    """Return a block that no stage within ``limit_s`` can hold, if one is found.

    Such a block decides alone, however many chips there are. One that costs no more
    than the limit by itself can stand alone; of the others the costliest are tried,
    where chips are alike.
    """
    if not chain.problem.chips_are_alike:
        return None
    everything = (0.0, chain.total_s)
    alone_s = _alone_s(chain)
    for n in np.argsort(-alone_s)[:MOST_LUMPS].tolist():
        if alone_s[n] <= limit_s or is_late() or left_s() <= 0:
            return None
        step = _Window(chain, 0, limit_s, (everything, everything), held=n)
        if step.impossible:
            return int(n)
        time_s = left_s() * PROGRAM_SHARE
        solved = solve_program(step.program, time_s, is_late=is_late)
        if solved.infeasible:
            return int(n)
    return None


def _alone_s(chain: Chain) -> Float64:
    """Return what a stage of each block alone takes, without shared items, ``[N]``."""
    arrays, package = chain.blocks.arrays, chain.problem.package_arrays
    size = arrays.tensor_bytes
    sent = np.bincount(
        arrays.tensor_producer,
        np.where(arrays.tensor_is_output, 0, size),
        chain.blocks.num_blocks,
    )
    readers = np.repeat(size, np.diff(arrays.consumer_ptr))
    received = np.bincount(arrays.consumer, readers, chain.blocks.num_blocks)
    traffic = arrays.host_bytes + arrays.output_bytes + sent + received
    transfer_s = traffic / package.io_bytes_per_s[0]
    compute_s = arrays.block_s.min(axis=0)
    stage_s: Float64 = (
        compute_s + transfer_s
        if package.serial_io
        else np.maximum(compute_s, transfer_s)
    )
    return stage_s


class _Ends:
    """The ranges of a chain, and how far they are known from both ends.

    First by windows of one stage, then, between the ranges that those left, of two and
    of three.
    """

    def __init__(
        self,
        chain: Chain,
        limit_s: float,
        left_s: Callable[[], float],
        is_late: Callable[[], bool],
        known: Sequence[Range],
    ) -> None:
        self._chain, self._limit_s = chain, limit_s
        self._left_s, self._is_late = left_s, is_late
        num_chips, total_s = chain.problem.num_chips, chain.total_s
        steps = range(num_chips + 1)
        self.most = [min(b * limit_s, total_s) for b in steps]
        # What rounds in these sums must not make a range empty.
        rest_s = total_s * (1 - 1e-12)
        self.least = [max(rest_s - (num_chips - b) * limit_s, 0.0) for b in steps]
        self.least[-1] = total_s
        for b, (least, most) in enumerate(known):
            self.least[b] = max(self.least[b], least)
            self.most[b] = min(self.most[b], most)
        self._alike = chain.problem.chips_are_alike
        self._num_chips = num_chips
        self._begin(width=1)

    def _begin(self, width: int) -> None:
        self._width = width
        self._front, self._back = 0, self._num_chips
        self._spent_s = [0.0, 0.0]

    @property
    def done(self) -> bool:
        """Whether nothing more can be learned."""
        # A stage that relays nothing may be empty, which a window does not say.
        widest = min(1 if self._relays else MOST_STAGES, self._num_chips)
        return self._has_met and self._width >= widest

    @property
    def _has_met(self) -> bool:
        return self._front == self._num_chips and self._back == 0

    def advance(self) -> bool:
        """Take one step from one end; return whether the limit is refuted."""
        if self._has_met:
            self._begin(self._width + 1)
        backward = self._front == self._num_chips or (
            self._back > 0 and self._spent_s[1] < self._spent_s[0]
        )
        began = time.perf_counter()
        refuted = self._step_back() if backward else self._step_forward()
        self._spent_s[backward] = time.perf_counter() - began
        return refuted

    def _step_forward(self) -> bool:
        b = self._front
        first = max(b + 1 - self._width, 0)
        most = self._solved(first, b + 1, False)
        if self._relays and (most is None or most < self.most[b]):
            # The chip may also stay empty, and then relays nothing.
            most = self.most[b]
        if most is None or most < self.least[b + 1]:
            self.most[b + 1] = min(self.most[b + 1], self.least[b])
            return True
        if most - self.most[b] < NO_STEP * self._limit_s and self._alike:
            stand = max(most, self.most[b]) + NO_STEP * self._limit_s
            reach = (self.least[b + 1], self._chain.total_s)
            further = self._solved_through(b, ((self.least[b], stand), reach), False)
            if stand < self._chain.total_s and (further is None or further <= stand):
                self.most[b + 1 :] = [stand] * len(self.most[b + 1 :])
                return True
        self.most[b + 1] = min(most, self.most[b + 1])
        self._front = b + 1
        return False

    def _step_back(self) -> bool:
        b = self._back - 1
        last = min(b + self._width, self._num_chips)
        least = self._solved(b, last, True)
        if self._relays and (least is None or least > self.least[b + 1]):
            least = self.least[b + 1]
        if least is None or least > self.most[b]:
            self.least[b] = max(self.least[b], self.most[b + 1])
            return True
        if self.least[b + 1] - least < NO_STEP * self._limit_s and self._alike:
            stand = min(least, self.least[b + 1]) - NO_STEP * self._limit_s
            reach = (0.0, self.most[b])
            further = self._solved_through(b, (reach, (stand, self.most[b + 1])), True)
            if stand > 0 and (further is None or further >= stand):
                self.least[: b + 1] = [stand] * (b + 1)
                return True
        self.least[b] = max(least, self.least[b])
        self._back = b
        return False

    @property
    def _relays(self) -> bool:
        return self._chain.problem.package_arrays.relay

    def _solved(self, first: int, last: int, backward: bool) -> float | None:
        """Return the most work of ideal ``last``, or the least of ``first``."""
        ranges = [(self.least[b], self.most[b]) for b in range(first, last + 1)]
        return self._solved_through(first, ranges, backward)

    def _solved_through(
        self, chip: int, ranges: Sequence[Range], backward: bool
    ) -> float | None:
        """Return the most work of the last ideal, or the least of the first.

        None if no stages from ``chip`` on lead through the ranges.
        """
        stage_s = self._limit_s * (1 + 1e-6)
        least, most = (list(ends) for ends in zip(*ranges, strict=True))
        for j in range(1, len(ranges)):
            most[j] = min(most[j], most[j - 1] + stage_s)
            least[-j - 1] = max(least[-j - 1], least[-j] - stage_s)
        if any(low > high for low, high in zip(least, most, strict=True)):
            return None
        window = _Window(
            self._chain,
            chip,
            self._limit_s,
            tuple(zip(least, most, strict=True)),
            backward,
        )
        if window.impossible:
            return None
        time_s = self._left_s() * PROGRAM_SHARE
        solved = solve_program(window.program, time_s, is_late=self._is_late)
        if solved.infeasible:
            return None
        slack = -SLACK if backward else SLACK
        found = window.inside_s + (solved.bound + slack) * self._limit_s / SCALE
        end: float = max(found, least[0]) if backward else min(found, most[-1])
        return end


class _Window:
    """The integer program of some stages in a row: which blocks may be in which.

    Ideal j is what the chips before ``chip + j`` have done; its work is in range j.
    """

    def __init__(
        self,
        chain: Chain,
        chip: int,
        limit_s: float,
        ranges: Sequence[Range],
        backward: bool = False,
        held: int | None = None,
    ) -> None:
        self._chain = chain
        self._backward = backward
        self._held = held
        self._chip = chip
        self._arrays = chain.blocks.arrays
        self._package = chain.problem.package_arrays
        self._per_s = SCALE / limit_s
        self.program = Program(maximise=not backward)
        self._fix(ranges)
        if self.impossible:
            return
        self._add_blocks()
        for ideal, within in enumerate(ranges):
            self._keep_in_range(ideal, within)
        for stage in range(len(ranges) - 1):
            self._x1, self._x2 = self._x[stage], self._x[stage + 1]
            self._never1, self._always2 = self._never[stage], self._always[stage + 1]
            self._chip = chip + stage
            traffic = self._add_tensors()
            self._add_items(traffic)
            self._add_limits(traffic)
            self._add_user_rules()
            if self._package.triangle:
                self._add_jumps()

    def _fix(self, ranges: Sequence[Range]) -> None:
        """Say which blocks each ideal must have or cannot: by work, and by pins."""
        chain, pin = self._chain, self._arrays.pin
        room = 1e-9 * chain.total_s
        rest_s = chain.total_s - chain.after_s
        self._never, self._always = [], []
        for ideal, (least, most) in enumerate(ranges):
            chip = self._chip + ideal
            self._never.append((chain.before_s > most + room) | (pin >= chip))
            is_before = (pin >= 0) & (pin < chip)
            self._always.append((rest_s < least - room) | is_before)
        if self._held is not None:
            self._never[0][self._held] = self._always[1][self._held] = True
            self._never[0][members(chain.descendants[self._held])] = True
            self._always[1][members(chain.ancestors[self._held])] = True
        # What is in an ideal is in all behind it.
        for ideal in range(1, len(ranges)):
            self._always[ideal] |= self._always[ideal - 1]
            self._never[-ideal - 1] |= self._never[-ideal]
        self.impossible = any(
            bool((always & never).any())
            for always, never in zip(self._always, self._never, strict=True)
        )
        self.inside_s = float(chain.work_s[self._always[0]].sum())
        self._beyond = self._never[-1]

    def _add_blocks(self) -> None:
        """Add a column for each open block and ideal: is it in there."""
        program, chain, arrays = self.program, self._chain, self._arrays
        self._x: list[dict[int, int]] = [{} for _ in self._never]
        # Any stage will do that holds the block.
        aim = None if self._held is not None else 0 if self._backward else -1
        is_open = ~self._always[0] & ~self._beyond
        for n in np.flatnonzero(is_open).tolist():
            work = float(chain.work_s[n]) * self._per_s
            for ideal, x in enumerate(self._x):
                low, high = int(self._always[ideal][n]), 1 - int(self._never[ideal][n])
                gain = work if aim is not None and x is self._x[aim] else 0.0
                x[n] = program.binary(gain, low, high)
            for x1, x2 in pairwise(self._x):
                program.row([(x2[n], 1.0), (x1[n], -1.0)], low=0.0)
            for p in arrays.pred[arrays.pred_ptr[n] : arrays.pred_ptr[n + 1]].tolist():
                if p in self._x[0]:
                    for x in self._x:
                        program.row([(x[p], 1.0), (x[n], -1.0)], low=0.0)

    def _in_stage(self, n: int, sign: float) -> Terms:
        return [(self._x2[n], sign), (self._x1[n], -sign)]

    def _add_tensors(self) -> Terms:
        """Add what the stage receives and sends; return bytes x columns."""
        arrays, traffic = self._arrays, Terms()
        cut1, cut2 = Terms(), Terms()
        # Which hops a stage of any chip has is not known.
        has_hops = self._package.link_limit and self._held is None
        for t in range(arrays.tensor_bytes.size):
            p, size = int(arrays.tensor_producer[t]), float(arrays.tensor_bytes[t])
            if self._beyond[p] or size == 0:
                continue
            first, past = arrays.consumer_ptr[t], arrays.consumer_ptr[t + 1]
            readers = arrays.consumer[first:past]
            inside = [n for n in readers.tolist() if n in self._x1]
            beyond = bool(self._beyond[readers].any())
            sent = not arrays.tensor_is_output[t]
            if self._package.relay:
                traffic += self._relayed(p, size, inside, beyond, sent)
            else:
                traffic += self._exchanged(p, size, inside, beyond, sent)
            if has_hops:
                cut1 += [(self._crossing(self._x1, p, inside, beyond), size)]
                cut2 += [(self._crossing(self._x2, p, inside, beyond), size)]
        if has_hops:
            self._limit_hop(self._chip - 1, cut1)
            self._limit_hop(self._chip, cut2)
        return traffic

    def _exchanged(
        self, p: int, size: float, inside: list[int], beyond: bool, sent: bool
    ) -> Terms:
        """Received: a reader is in the stage and ``p`` is not; sent: the reverse."""
        program, terms = self.program, Terms()
        made_here = self._in_stage(p, 1.0) if p in self._x1 else []
        if inside:
            received = program.real(0.0, 0.0, 1.0)
            terms.append((received, size))
            for n in inside:
                row = [(received, 1.0), *self._in_stage(n, -1.0), *made_here]
                program.row(row, low=0.0)
        if made_here and sent:
            leaves = program.real(0.0, 0.0, 1.0)
            terms.append((leaves, size))
            here = [(leaves, 1.0), *self._in_stage(p, -1.0)]
            for n in inside:
                program.row([*here, *self._in_stage(n, 1.0)], low=0.0)
            if beyond:
                program.row(here, low=0.0)
        return terms

    def _relayed(
        self, p: int, size: float, inside: list[int], beyond: bool, sent: bool
    ) -> Terms:
        """Received: it crosses the front; sent: it crosses the back."""
        crossing1 = self._crossing(self._x1, p, inside, beyond)
        if sent:
            crossing2 = self._crossing(self._x2, p, inside, beyond)
        else:
            # A model output leaves anyway; beside that it may only be passed on.
            crossing2 = self._crossing(self._x1, p, inside, beyond, self._x2)
        return [(crossing1, size), (crossing2, size)]

    def _crossing(
        self,
        x: dict[int, int],
        p: int,
        inside: list[int],
        beyond: bool,
        reader_x: dict[int, int] | None = None,
    ) -> int:
        """Return a column that is 1 where ``p`` is in the ideal and a reader is not."""
        crossing = self.program.real(0.0, 0.0, 1.0)
        made = [(x[p], -1.0)] if p in x else []
        # A block that is in I1 anyway has no column: it counts as 1.
        low = 0.0 if made else 1.0
        for n in inside:
            row = [(crossing, 1.0), *made, ((reader_x or x)[n], 1.0)]
            self.program.row(row, low=low)
        if beyond:
            self.program.row([(crossing, 1.0), *made], low=low)
        return crossing

    def _limit_hop(self, hop: int, cut: Terms) -> None:
        rates = self._package.hop_bytes_per_s
        if 0 <= hop < rates.size and cut:
            per_byte = self._per_s / float(rates[hop])
            terms = [(column, size * per_byte) for column, size in cut]
            self.program.row(terms, high=SCALE + SLACK)

    def _add_items(self, traffic: Terms) -> None:
        """Add what the users of an item pay once; their columns are kept."""
        arrays = self._arrays
        self._item_terms: Terms = []
        self._weight_terms: Terms = []
        k = self._package.chip_class[self._chip]
        for j in range(arrays.item_host_bytes.size):
            users = arrays.user[arrays.user_ptr[j] : arrays.user_ptr[j + 1]].tolist()
            seconds, host = float(arrays.item_s[k, j]), int(arrays.item_host_bytes[j])
            weight = float(arrays.item_weight_bytes[j]) * self._package.memory
            inside = [n for n in users if n in self._x1]
            if not inside or not (seconds or host or weight):
                continue
            used = self.program.real(0.0, 0.0, 1.0)
            for n in inside:
                self.program.row([(used, 1.0), *self._in_stage(n, -1.0)], low=0.0)
            self._item_terms.append((used, seconds))
            self._weight_terms.append((used, weight))
            traffic.append((used, float(host)))

    def _add_limits(self, traffic: Terms) -> None:
        """Limit compute and transfer of the stage, and what it stores."""
        arrays, package = self._arrays, self._package
        seconds = arrays.block_s[package.chip_class[self._chip]]
        compute = list(self._item_terms)
        stored = list(self._weight_terms)
        for n in self._x1:
            fixed = float(arrays.host_bytes[n] + arrays.output_bytes[n])
            compute += self._in_stage(n, float(seconds[n]))
            traffic += self._in_stage(n, fixed)
            stored += self._in_stage(n, float(arrays.weight_bytes[n]))
        rate = 1 / float(package.io_bytes_per_s[self._chip])
        stage = _scaled(compute, self._per_s)
        transfer = _scaled(traffic, self._per_s * rate)
        if package.serial_io:
            stage += transfer
        else:
            self.program.row(transfer, high=SCALE + SLACK)
        self.program.row(stage, high=SCALE + SLACK)
        if package.memory:
            share = SCALE / max(float(package.memory_bytes[self._chip]), 1.0)
            stored = _scaled(stored, share) + _scaled(traffic, 2 * share)
            self.program.row(stored, high=SCALE + SLACK)

    def _keep_in_range(self, ideal: int, within: Range) -> None:
        """Keep the work of an ideal in its range."""
        work_s = self._chain.work_s
        low, high = within
        self.program.row(
            [(x, float(work_s[n]) * self._per_s) for n, x in self._x[ideal].items()],
            (low - self.inside_s) * self._per_s - SLACK,
            (high - self.inside_s) * self._per_s + SLACK,
        )

    def _add_user_rules(self) -> None:
        for a, b in self._arrays.apart.tolist():
            if a in self._x1 and b in self._x1:
                terms = self._in_stage(a, 1.0) + self._in_stage(b, 1.0)
                self.program.row(terms, high=1.0)

    def _add_jumps(self) -> None:
        """Forbid blocks between the ends of an edge in a stage that it jumps over.

        The triangle rule: with u before the stage, w in it and v behind, u ~> w ~> v
        makes a longer path beside the arc of u -> v.
        """
        for u, v, w in islice(self._jumps(), MOST_JUMP_ROWS):
            made = [(self._x1[u], 1.0)] if u in self._x1 else []
            read = [(self._x2[v], -1.0)] if v in self._x2 else []
            terms = [*made, *read, *self._in_stage(w, 1.0)]
            # Without a column u is before the stage, v behind it.
            self.program.row(terms, high=1.0 - (not made))

    def _jumps(self) -> Iterator[tuple[int, int, int]]:
        """Yield edges (u, v) with each open block w on another path u ~> w ~> v."""
        arrays, chain = self._arrays, self._chain
        for u in np.flatnonzero(~self._never1).tolist():
            readers = arrays.succ[arrays.succ_ptr[u] : arrays.succ_ptr[u + 1]].tolist()
            for v in readers:
                if self._always2[v]:
                    continue
                between = chain.descendants[u] & chain.ancestors[v]
                if between.any():
                    for w in members(between).tolist():
                        if w in self._x1:
                            yield u, v, w


def _scaled(terms: Terms, factor: float) -> Terms:
    return [(column, value * factor) for column, value in terms if value]
