"""certificates: as files, and confirmed or refused by plain Python."""

import json

import numpy as np
import pytest

from mcmpart.bounds import certificate
from mcmpart.bounds.certificate import (
    Certificate,
    Stages,
    UserDemands,
    check,
    is_refuted,
    make_certificate,
    read_certificate,
    write_certificate,
)
from mcmpart.bounds.exhaustive import best_of_all
from mcmpart.bounds.ideals import proof_blocks, within_limit
from mcmpart.errors import InputError, VerificationError
from mcmpart.graph.synthetic import chain, diamond
from mcmpart.problem import Problem

ABOVE, BELOW = 1 + 1e-9, 1 - 1e-6


def checked(problem, bound_s, method="ideals", **options):
    """Return what the checker says of a bound."""
    document = make_certificate(problem, bound_s, method)
    return check(document, problem.graph, problem.package, **options)


@pytest.mark.parametrize("seed", range(6))
def test_kernels_and_plain_python_agree(seed, make_problem):
    """Of every limit the compiled ideals and the checker say the same."""
    rng = np.random.default_rng(seed)
    said = {True: 0, False: 0}
    for _ in range(50):
        problem = make_problem(rng, int(rng.integers(1, 8)), rules=True)
        blocks = proof_blocks(problem)
        rules = make_certificate(problem, 1.0, "ideals").rules
        stages = Stages(problem.graph, problem.package, rules)
        serial_s = problem.costs.op_s.min(axis=0).sum()
        for factor in (0.3, 0.5, 0.7, 0.9, 1.1, 1.5, 2.5):
            limit_s = max(serial_s, 1e-6) * factor
            fast = within_limit(problem, blocks, limit_s)
            assert is_refuted(stages, limit_s) is fast.refuted
            said[fast.refuted] += 1
    assert min(said.values()) > 50


@pytest.mark.parametrize("seed", range(3))
def test_they_agree_at_the_optimum(seed, make_problem):
    """There too, just below and just above, where rounding would show."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        problem = make_problem(rng, int(rng.integers(1, 7)), rules=True)
        best_s = best_of_all(problem).bottleneck_s
        if not 0 < best_s < np.inf:
            continue
        rules = make_certificate(problem, 1.0, "ideals").rules
        stages = Stages(problem.graph, problem.package, rules)
        assert is_refuted(stages, best_s * ABOVE) is False
        below = within_limit(problem, proof_blocks(problem), best_s * BELOW)
        assert is_refuted(stages, best_s * BELOW) is below.refuted


def test_by_hand(by_hand):
    """The optimum is confirmed as a bound, and 1 % more is refused."""
    problem, optimum_s = by_hand
    assert checked(problem, optimum_s) is True
    with pytest.raises(VerificationError, match="is not confirmed: stages that each"):
        checked(problem, optimum_s * 1.01)


def test_round_trip(toy, demand, tmp_path):
    """What is written is read back equal, by file and by folder."""
    problem = demand(
        toy,
        pins={"op_0": 0},
        together=(("op_0", "op_1"),),
        apart=(("op_0", "op_5"),),
        all_chips=True,
    )
    document = make_certificate(problem, 6.2, "chain", ((0.0, 0.0), (1.0, 2.5)))
    path = tmp_path / "certificate.json"
    write_certificate(document, path)
    assert read_certificate(path) == document
    assert read_certificate(tmp_path) == document
    content = json.loads(path.read_text())
    assert (content["format"], content["version"]) == ("mcmpart.certificate", 1)
    assert content["ranges"] == [[0.0, 0.0], [1.0, 2.5]]
    assert content["rules"] == {
        "pins": {"op_0": 0},
        "together": [["op_0", "op_1"]],
        "apart": [["op_0", "op_5"]],
        "all_chips": True,
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "mcmpart.plan"}, "is not a certificate"),
        ({"bound_s": -1.0}, "'bound_s' is -1.0"),
        ({"bound_s": "1"}, "'bound_s' is '1'"),
        ({"bound": 1.0}, "'bound' is no key of a certificate"),
        ({"ranges": [[0.0]]}, "'ranges.0' is [0.0]"),
        ({"ranges": [[0.0, -1.0]]}, "'ranges.0.1' is -1.0"),
        ({"rules": {"pin": {}}}, "'rules.pin' is no key"),
        ({"rules": {"apart": [["op_0"]]}}, "'rules.apart.0' is ['op_0']"),
    ],
)
def test_what_is_not_read(toy, tmp_path, change, words):
    """A document that is no certificate is refused, with the place and the value."""
    content = make_certificate(toy, 6.2, "ideals").model_dump() | change
    (tmp_path / "certificate.json").write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_certificate(tmp_path)
    assert words in str(caught.value)


def test_nothing_to_read(tmp_path):
    """A folder without one is said with the file that was looked for."""
    with pytest.raises(InputError, match=r"certificate\.json does not exist"):
        read_certificate(tmp_path)


def test_the_toy(toy, toy_optimum_s):
    """Confirmed up to the optimum, refused above it, by whatever method."""
    for method in ("ideals", "chain"):
        assert checked(toy, 5.0, method) is True
        assert checked(toy, toy_optimum_s, method) is True
        with pytest.raises(VerificationError):
            checked(toy, toy_optimum_s * 1.01, method)


def test_of_another_graph_or_package(toy, make_package):
    """A certificate holds for the graph and the package it was made for alone."""
    document = make_certificate(toy, 5.0, "ideals")
    with pytest.raises(VerificationError, match="for another graph"):
        check(document, chain(6), toy.package)
    with pytest.raises(VerificationError, match="for another package"):
        check(document, toy.graph, make_package(4))


def test_rules_of_the_user_count(toy, demand, toy_optimum_s):
    """7.2 s is the optimum of op_0 to op_2 together, and no bound without that."""
    asked = demand(toy, together=(("op_0", "op_2"),))
    assert checked(asked, 7.2) is True
    document = make_certificate(asked, 7.2, "ideals")
    bare = document.model_copy(update={"rules": UserDemands()})
    with pytest.raises(VerificationError):
        check(bare, toy.graph, toy.package)


@pytest.mark.parametrize(
    "rules",
    [
        UserDemands(pins={"op_6": 0}),
        UserDemands(together=[["op_0", "op_6"]]),
        UserDemands(apart=[["op_0", "op_6"]]),
    ],
)
def test_rules_for_unknown_ops(toy, rules):
    """A rule for an op that the graph does not have is refused with its name."""
    document = make_certificate(toy, 5.0, "ideals")
    document = document.model_copy(update={"rules": rules})
    with pytest.raises(VerificationError, match="has a rule for op 'op_6', which is"):
        check(document, toy.graph, toy.package)


@pytest.mark.parametrize("method", ["exhaustive", "exact"])
def test_methods_that_know_more(live_tensors, live_optimum_s, method):
    """What live tensors alone forbid is no reason to refuse a bound, nor to confirm."""
    assert best_of_all(live_tensors).bottleneck_s == pytest.approx(live_optimum_s)
    assert checked(live_tensors, live_optimum_s, method) is False
    # All on chip 0 takes 4.3 s, as far as a stage tells.
    assert checked(live_tensors, 4.3, method) is True
    with pytest.raises(VerificationError):
        checked(live_tensors, live_optimum_s, "ideals")


def test_methods_that_know_no_more(by_hand):
    """Where stages tell all there is, a forged exact bound is refused as well."""
    problem, optimum_s = by_hand
    package = problem.package_arrays
    if not package.memory and not package.triangle:
        with pytest.raises(VerificationError):
            checked(problem, optimum_s * 1.01, "exact")


def test_too_many_stages(toy):
    """With fewer stages than it takes there is no answer; with enough there is."""
    stages = Stages(toy.graph, toy.package, UserDemands())
    assert is_refuted(stages, 6.0, 10_000) is True
    # Seven ideals, and one for each 20 stages are allowed.
    assert is_refuted(stages, 6.0, 7 * 20) is True
    assert is_refuted(stages, 6.0, 7 * 20 - 1) is None
    assert checked(toy, 6.2, max_stages=7 * 20 - 1) is False


def test_too_many_ideals(make_package):
    """A wide graph is given up soon, which is no refusal even of what is forged."""
    problem = Problem(diamond(40), make_package(4))
    assert checked(problem, 1e9) is False


def test_large_graphs(toy, monkeypatch):
    """A graph with more ops than allowed is not looked at."""
    monkeypatch.setattr(certificate, "MAX_OPS", 5)
    monkeypatch.delattr(certificate, "Stages")
    assert checked(toy, 1e9) is False


def test_nothing_is_always_a_bound(toy):
    """No partition is faster than 0 s."""
    assert checked(toy, 0.0) is True


def test_the_proof_in_words(toy):
    """Each method says what stands behind it; of an unknown one there is the name."""
    sentences = {
        make_certificate(toy, 1.0, method).proof for method in certificate.PROOFS
    }
    assert len(sentences) == len(certificate.PROOFS)
    assert "magic" in make_certificate(toy, 1.0, "magic").proof
    assert isinstance(make_certificate(toy, 1.0, "magic"), Certificate)


def test_ranges_of_another_number_of_chips(toy):
    """A range for each number of chips from 0 to all, or none."""
    document = make_certificate(toy, 5.0, "chain", ((0.0, 0.0), (1.0, 2.5)))
    with pytest.raises(VerificationError, match=r"has 2 ranges, and a package of"):
        check(document, toy.graph, toy.package)


def test_a_pin_to_no_chip(toy, demand):
    """A pin beside the package's chips would confirm any bound."""
    document = make_certificate(demand(toy, pins={"op_0": 0}), 1e9, "ideals")
    document.rules.pins["op_0"] = 99
    with pytest.raises(VerificationError, match="pins op 'op_0' to chip 99"):
        check(document, toy.graph, toy.package)


def test_minus_zero(toy, tmp_path):
    """JSON can hold -0.0: it is 0."""
    content = make_certificate(toy, 0.0, "simple").model_dump() | {"bound_s": -0.0}
    (tmp_path / "certificate.json").write_text(json.dumps(content))
    assert str(read_certificate(tmp_path).bound_s) == "0.0"
