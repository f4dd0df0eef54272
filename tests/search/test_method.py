"""run_search: budget, trace, stops; the method here is a script of proposals."""

import time

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.search import Budget, Evaluations, relative_gap, run_search
from mcmpart.search.method import Setting, no_rows

NUM_OPS = 3


class Script:
    """Proposes given batches of costs, one partition each; 0 or less is invalid.

    A partition is a row of its number; None in place of a batch is an interrupt.
    """

    name = "script"

    def __init__(self, *batches):
        self.done = False
        self.batches = list(batches)
        self.seen = []
        self.costs = []

    def propose(self):
        """Return the next batch."""
        batch = self.batches.pop(0)
        self.done = not self.batches
        if batch is None:
            raise KeyboardInterrupt
        first = len(self.costs)
        self.costs += batch
        numbers = np.arange(first, len(self.costs), dtype=np.int32)
        return np.repeat(numbers[:, None], NUM_OPS, axis=1)

    def observe(self, evaluations):
        """Note the numbers of the partitions that were judged."""
        self.seen.append(evaluations.chip_of[:, 0].tolist())

    def judge(self, chip_of):
        """Return the costs of the script."""
        cost = np.array([self.costs[i] for i in chip_of[:, 0]], dtype=np.float64)
        return Evaluations(chip_of, np.abs(cost), cost > 0)


def run(script, budget=None, *, lower_bound_s=0.0, **options):
    """Run the script to its end, or as far as the budget goes."""
    started = time.perf_counter()
    return run_search(
        script,
        script.judge,
        budget or Budget(time_s=60.0),
        lower_bound_s,
        started=started,
        **options,
    )


def test_the_best_valid_row_is_kept():
    """Of all rows judged, the cheapest valid one is the result."""
    record = run(Script([5, -1], [4, 3, 7], [6]))
    assert record.bottleneck_s == 3
    assert record.best.tolist() == [3, 3, 3]
    assert record.evaluations == 6
    assert record.stopped_by == "done"


def test_nothing_valid():
    """Without a valid row there is no best."""
    record = run(Script([-5, -1], [-2]))
    assert record.best is None
    assert record.bottleneck_s == float("inf")
    assert record.trace == []
    assert record.stopped_by == "done"


def test_the_trace_falls():
    """Each improvement is a point, and each point is reported once."""
    points = []
    script = Script([5], [], [6], [4, 3], [3], [1])
    record = run(script, lower_bound_s=0.5, on_improvement=points.append)
    assert points == record.trace
    assert [point.bottleneck_s for point in points] == [5, 3, 1]
    assert [point.evaluations for point in points] == [1, 4, 6]
    assert {point.lower_bound_s for point in points} == {0.5}
    assert {point.method for point in points} == {"script"}
    seconds = [0.0, *(point.seconds for point in points), record.seconds]
    assert seconds == sorted(seconds)


def test_the_trace_names_the_method_of_the_moment():
    """A method may change its name as it proposes, as auto does with its stages."""
    script = Script([5], [4])
    propose = script.propose

    def rename():
        script.name = f"stage {len(script.seen)}"
        return propose()

    script.propose = rename
    assert [point.method for point in run(script).trace] == ["stage 0", "stage 1"]


def test_a_start_is_judged_first():
    """The start is the first evaluation; the method observes it like its own."""
    script = Script([6, 4])
    script.costs = [5]
    record = run(script, start=np.zeros(NUM_OPS, dtype=np.int32))
    assert script.seen == [[0], [1, 2]]
    assert [point.method for point in record.trace] == ["start", "script"]
    assert [point.evaluations for point in record.trace] == [1, 3]


def test_a_start_counts_as_an_evaluation():
    """With one evaluation to spend, the start is all that is judged."""
    script = Script([6, 4])
    script.costs = [5]
    start = np.zeros(NUM_OPS, dtype=np.int32)
    record = run(script, Budget(time_s=60.0, evaluations=1), start=start)
    assert (record.bottleneck_s, record.evaluations) == (5, 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_evaluations_are_kept_exactly(limit):
    """The last batch is cut so that the limit is met to the row."""
    script = Script([5, 6], [], [4, 3, 2], [1, 1])
    record = run(script, Budget(time_s=60.0, evaluations=limit))
    assert record.evaluations == limit
    assert record.stopped_by == "evaluations"
    assert [row for rows in script.seen for row in rows] == list(range(limit))
    assert record.bottleneck_s == [5, 5, 4, 3, 2][limit - 1]


def test_the_gap_stops():
    """The search ends when the best is near enough to the bound."""
    script = Script([9], [8], [5], [4])
    record = run(script, Budget(time_s=60.0, gap=0.25), lower_bound_s=4.0)
    # (5 - 4) / 5 = 0.2; before, (8 - 4) / 8 = 0.5.
    assert record.bottleneck_s == 5
    assert record.stopped_by == "gap"


def test_a_proof_stops():
    """At gap 0 only the bound itself ends the search."""
    record = run(Script([5], [4.0], [3]), lower_bound_s=4.0)
    assert record.bottleneck_s == 4
    assert record.stopped_by == "gap"


def test_time_stops():
    """The time limit counts from ``started``."""
    script = Script([5], [4])
    record = run_search(
        script,
        script.judge,
        Budget(time_s=1.0),
        0.0,
        started=time.perf_counter() - 2.0,
    )
    assert record.evaluations == 1
    assert record.stopped_by == "time"
    assert record.seconds >= 2.0


def test_an_interrupt_keeps_the_best():
    """Ctrl-C while proposing ends the search with what there is."""
    record = run(Script([5], [4], None, [1]))
    assert record.bottleneck_s == 4
    assert record.evaluations == 2
    assert record.stopped_by == "interrupt"


def test_an_interrupt_before_anything():
    """Ctrl-C before the first proposal leaves no best."""
    record = run(Script(None, [1]))
    assert record.best is None
    assert record.stopped_by == "interrupt"


def test_an_interrupt_while_judging():
    """Ctrl-C in the evaluator leaves the batch out, and the score right."""
    script = Script([5], [4])
    judge = script.judge

    def interrupted(chip_of):
        if script.seen:
            raise KeyboardInterrupt
        return judge(chip_of)

    script.judge = interrupted
    record = run(script)
    assert (record.bottleneck_s, record.evaluations) == (5, 1)
    assert record.stopped_by == "interrupt"


def test_the_best_is_a_copy():
    """What a method does to its rows later does not change the best."""
    script = Script([5], [6])
    rows = []
    propose = script.propose

    def remember():
        rows.append(propose())
        return rows[-1]

    script.propose = remember
    record = run(script)
    rows[0][:] = 9
    assert record.best.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_s": 0.0}, r"the time limit is 0.0 s: give more than 0"),
        ({"time_s": float("inf")}, r"the time limit is inf s"),
        ({"time_s": float("nan")}, r"the time limit is nan s"),
        ({"evaluations": 0}, r"the limit is 0 partitions judged: give at least 1"),
        (
            {"gap": -0.1},
            r"the gap is -0.1: give a share from 0 to below 1, 0.01 is 1 %",
        ),
        ({"gap": float("nan")}, r"the gap is nan"),
    ],
)
def test_budgets_out_of_range(options, message):
    """A budget that means nothing is refused."""
    with pytest.raises(InputError, match=message):
        Budget(**options)


@pytest.mark.parametrize(
    ("bottleneck_s", "bound_s", "gap"),
    [(5, 4, 0.2), (4, 4, 0), (3, 4, 0), (0, 0, 0), (4, 0, 1), (float("inf"), 4, 1)],
)
def test_relative_gap(bottleneck_s, bound_s, gap):
    """(bottleneck - bound) / bottleneck, 0 where the bound is met, 1 at worst."""
    assert relative_gap(bottleneck_s, bound_s) == gap


def test_setting(toy):
    """A deadline in the past is late; none never is; no rows have all columns."""
    assert Setting(toy, deadline=0.0).is_late()
    assert not Setting(toy).is_late()
    assert no_rows(toy).shape == (0, 6)
