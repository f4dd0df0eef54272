"""beside: a proof in a thread, and a search that tells it and hears from it."""

import threading
import time

import numpy as np
import pytest

from mcmpart.bounds.prove import Bound
from mcmpart.search import (
    METHODS,
    Budget,
    Evaluations,
    Setting,
    beside,
    pipeline_evaluator,
    run_search,
)
from mcmpart.search.beside import Proof, WithProof

GOOD = (0, 0, 1, 1, 2, 2)
"""A partition of the toy with 6.2 s, its optimum."""


def in_a_minute():
    """Return the clock's value in a minute."""
    return time.perf_counter() + 60


def wait_for(condition):
    """Wait until it holds, and fail after a minute."""
    ends = in_a_minute()
    while not condition():
        assert time.perf_counter() < ends
        time.sleep(0.005)


def proof_threads():
    """Return the threads of proofs that are alive."""
    return [thread for thread in threading.enumerate() if thread.name == "bound"]


def test_the_bound_rises_to_the_plan(toy, toy_optimum_s):
    """Told of the optimum, the thread proves it; without a plan it proves nothing."""
    with Proof(toy, in_a_minute(), 0.0) as proof:
        assert proof.bound.method == "simple"
        proof.tell(np.inf)
        time.sleep(0.05)
        assert proof.bound.method == "simple"
        proof.tell(toy_optimum_s)
        wait_for(lambda: proof.bound.method == "ideals")
        assert proof.bound.seconds == pytest.approx(toy_optimum_s)
    assert proof.bound.method == "ideals"
    assert proof_threads() == []


def test_a_worse_plan_is_no_news(toy, toy_optimum_s):
    """The best plan counts, whatever is told later."""
    proof = Proof(toy, in_a_minute(), 0.0)
    proof.tell(toy_optimum_s)
    proof.tell(9.0)
    with proof:
        wait_for(lambda: proof.bound.method == "ideals")
    assert proof.bound.seconds == pytest.approx(toy_optimum_s)
    assert proof.take_found() is None


def test_what_it_finds_is_handed_out_once(toy):
    """Told of a plan of 16.2 s the thread comes upon a better one."""
    with Proof(toy, in_a_minute(), 0.0) as proof:
        proof.tell(16.2)
        wait_for(lambda: proof._found is not None)
        found = proof.take_found()
    assert found.shape == (6,)
    evaluations = pipeline_evaluator(toy, 1)(found[None])
    assert evaluations.valid[0]
    assert evaluations.bottleneck_s[0] < 16.2


class Stand:
    """A prover that does what a test wants."""

    def __init__(self, attempt):
        self.bound = Bound(1.0, "simple")
        self.found, self.done = None, False
        self.found_by = "ideals"
        self._attempt = attempt

    def __call__(self, problem, deadline, is_late):
        """Stand in for the class."""
        self.is_late = is_late
        return self

    def attempt(self, best_s, gap):
        """Do it."""
        self._attempt(self)

    def tell(self, best_s):
        """Take note of nothing."""


def test_one_find_is_handed_out_once(toy, monkeypatch):
    """What was taken is gone, and the prover is free to find the next."""

    def find_once(prover):
        if not prover.done:
            prover.found = np.array(GOOD)
        prover.done = True

    prover = Stand(find_once)
    monkeypatch.setattr(beside, "Prover", prover)
    with Proof(toy, in_a_minute(), 0.0) as proof:
        wait_for(lambda: proof._found is not None)
        assert proof.take_found().tolist() == list(GOOD)
        assert prover.found is None
        assert proof.take_found() is None


def test_an_error_surfaces(toy, monkeypatch):
    """What goes wrong in the thread is raised at the end of ``with``, and not lost."""

    def fail(prover):
        raise ZeroDivisionError("in the thread")

    monkeypatch.setattr(beside, "Prover", Stand(fail))
    with (
        pytest.raises(ZeroDivisionError, match="in the thread"),
        Proof(toy, in_a_minute(), 0.0) as proof,
    ):
        wait_for(lambda: proof._error is not None)
    assert proof_threads() == []


def test_an_error_of_the_search_comes_first(toy, monkeypatch):
    """An error within ``with`` is the one that is raised."""

    def fail(prover):
        raise ZeroDivisionError

    monkeypatch.setattr(beside, "Prover", Stand(fail))
    proof = Proof(toy, in_a_minute(), 0.0)

    def search():
        with proof:
            wait_for(lambda: proof._error is not None)
            raise KeyError("search")

    with pytest.raises(KeyError, match="search"):
        search()
    assert proof_threads() == []


def test_the_end_stops_an_attempt(toy, monkeypatch):
    """An attempt in the middle is told that it is late, and waited for."""
    began = threading.Event()

    def endless(prover):
        began.set()
        wait_for(prover.is_late)
        prover.bound = Bound(2.0, "ideals")

    monkeypatch.setattr(beside, "Prover", Stand(endless))
    with Proof(toy, in_a_minute(), 0.0) as proof:
        assert began.wait(60)
        assert proof.bound.seconds == 1.0
    assert proof.bound.seconds == 2.0
    assert proof_threads() == []


def test_it_idles_when_done(toy, monkeypatch):
    """With nothing to prove the thread sleeps between its looks."""
    looks = []

    def look(prover):
        looks.append(True)
        prover.done = True

    monkeypatch.setattr(beside, "Prover", Stand(look))
    monkeypatch.setattr(beside, "IDLE_S", 3600.0)
    with Proof(toy, in_a_minute(), 0.0):
        wait_for(lambda: looks)
        time.sleep(0.05)
    assert len(looks) == 1


class Fake:
    """A proof that came upon one partition, and rises as it is told of plans."""

    def __init__(self, *found):
        self.found = list(found)
        self.found_by = "ideals"
        self.told = []
        self.bounds = []

    def tell_bound(self, bound):
        """Note it."""
        self.bounds.append(bound)

    def take_found(self):
        """Return the next one."""
        return np.array(self.found.pop(0), np.int32) if self.found else None

    def tell(self, best_s):
        """Note it."""
        self.told.append(best_s)


class Script:
    """A method with a few rows to propose."""

    def __init__(self, *rows):
        self.name, self.done = "script", False
        self.rows, self.seen = list(rows), []

    def propose(self):
        """Return the next row."""
        rows = np.array([self.rows.pop(0)], np.int32)
        self.done = not self.rows
        return rows

    def observe(self, evaluations):
        """Note the rows."""
        self.seen += evaluations.chip_of.tolist()


def run(toy, method, bound_s=0.0, **options):
    """Run a search to its end."""
    return run_search(
        method,
        pipeline_evaluator(toy, 1),
        Budget(60.0),
        bound_s,
        started=time.perf_counter(),
        **options,
    )


def test_what_was_found_is_proposed_once(toy, toy_optimum_s):
    """It comes before the method's own rows, by its own name; both take note of all."""
    method, proof = Script([0] * 6, [0, 0, 0, 1, 1, 1]), Fake(GOOD)
    record = run(toy, WithProof(method, proof))
    assert record.bottleneck_s == pytest.approx(toy_optimum_s)
    assert (record.evaluations, record.stopped_by) == (3, "done")
    assert [point.method for point in record.trace] == ["ideals"]
    assert method.seen == [list(GOOD), [0] * 6, [0, 0, 0, 1, 1, 1]]
    assert proof.told == pytest.approx([toy_optimum_s, 16.2, 9.2])


def test_invalid_rows_are_no_news(toy):
    """A proposal without a valid row tells the proof of nothing: infinity."""
    proof = Fake()
    run(toy, WithProof(Script([2, 0, 0, 0, 0, 0]), proof))
    assert proof.told == [np.inf]


def test_the_name_is_the_methods_own(toy):
    """Without a find the name follows the method, as it may change."""
    method = Script([0] * 6, GOOD)
    both = WithProof(method, Fake())
    method.name = "second"
    both.propose()
    assert (both.name, both.done) == ("second", False)
    both.propose()
    assert both.done


@pytest.mark.parametrize("name", METHODS)
def test_every_method_bears_a_stranger(islands, name):
    """Rows that a method did not propose are judged in its place, and it goes on."""
    strangers = [[0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0]]
    method = METHODS[name](Setting(islands, deadline=in_a_minute()))
    judge = pipeline_evaluator(islands, 1)
    for stranger in strangers:
        both = WithProof(method, Fake(stranger))
        for _ in range(3):
            if both.done:
                break
            rows = both.propose()
            if rows.shape[0]:
                both.observe(judge(rows))


def test_a_bound_from_elsewhere(toy):
    """It counts if it is higher; of no plan at all, it is that of the best."""
    proof = Proof(toy, in_a_minute(), 0.0)
    simple = proof.bound
    proof.tell_bound(Bound(np.inf, "exact"))
    proof.tell_bound(Bound(simple.seconds / 2, "exact"))
    assert proof.bound == simple
    proof.tell(7.0)
    proof.tell_bound(Bound(np.inf, "exact"))
    assert proof.bound == Bound(7.0, "exact")


def test_what_a_method_proves_is_told(islands):
    """The bound of exact's program reaches the proof beside it."""
    proof = Fake()
    method = METHODS["exact"](Setting(islands, deadline=in_a_minute()))
    judge = pipeline_evaluator(islands, 1)
    both = WithProof(method, proof)
    while not both.done:
        rows = both.propose()
        if rows.shape[0]:
            both.observe(judge(rows))
    assert proof.bounds[0].method == "simple"
    assert proof.bounds[-1] == (pytest.approx(3.0, rel=4e-6), "exact", ())


def test_a_rising_bound_is_in_the_trace(toy, toy_optimum_s):
    """Each rise is a point by the name of bound, and ends the search at the gap."""
    bounds = iter([1.0, 1.0, 1.0, 3.0, 3.0, 3.0, toy_optimum_s])
    risen = [0.0]

    def bound_s():
        risen[0] = next(bounds, toy_optimum_s)
        return risen[0]

    told = []
    method = Script(GOOD, *[[0] * 6] * 20)
    record = run(toy, method, bound_s, on_improvement=told.append)
    assert record.stopped_by == "gap"
    assert record.evaluations < 20
    assert told == record.trace
    assert [point.method for point in record.trace] == ["script", "bound", "bound"]
    assert [point.lower_bound_s for point in record.trace] == sorted(
        {point.lower_bound_s for point in record.trace}
    )
    assert {point.bottleneck_s for point in record.trace} == {record.bottleneck_s}


def test_the_tolerance_of_proofs_is_no_gap(toy, toy_optimum_s):
    """A bound 1e-6 below the plan proves it, with a gap of 0 asked for; 1e-4 not."""
    rows = [GOOD, [0] * 6]
    done = run(toy, Script(*rows), toy_optimum_s * (1 - 1e-6))
    assert (done.stopped_by, done.evaluations) == ("gap", 1)
    assert run(toy, Script(*rows), toy_optimum_s * (1 - 1e-4)).stopped_by == "done"


def test_evaluations_may_tell_stage_times():
    """They are left out unless an evaluator gives them."""
    rows = np.zeros((1, 2), np.int32)
    plain = Evaluations(rows, np.ones(1), np.ones(1, bool))
    assert plain.stage_s is None
