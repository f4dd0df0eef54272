"""The words of an import report."""

from __future__ import annotations

from mcmpart.frontends import ImportReport, UnruledKind
from mcmpart.frontends.report import Sentences, shortened


def test_coverage_is_rounded_down() -> None:
    """999 of 1,000 ops are 99.9 %, 1,999 of 2,000 units of work are not 100 %."""
    report = ImportReport(1000, 1000, ruled_ops=999, work=2000, ruled_work=1999)
    assert "99.9 % of ops, 99.9 % of estimated work have a cost rule" in report.lines()


def test_full_coverage_says_100() -> None:
    """All ops covered reads 100 %."""
    report = ImportReport(2, 2, ruled_ops=2, work=8, ruled_work=8)
    assert "100 % of ops, 100 % of estimated work have a cost rule" in report.lines()


def test_no_ops_is_said_without_a_division() -> None:
    """An empty model has full coverage and a line that says there is nothing."""
    report = ImportReport(0, 0)
    assert report.ops_covered == report.work_covered == 1.0
    assert "the model has no ops: there is nothing to place" in report.lines()


def test_unknown_kinds_notes_and_dims_are_lines() -> None:
    """Each unknown kind, note, assumption and dimension has its line."""
    lines = ImportReport(
        num_nodes=3,
        num_ops=2,
        num_folded=1,
        ops_of_kind=(("d::Foo", 2),),
        unruled=(UnruledKind("d::Foo", 2, ("a", "b")),),
        assumptions=("guess",),
        notes=("fact",),
        dims=(("batch", 8),),
    ).lines()
    assert lines[0] == "3 nodes -> 2 ops (1 node folded to constants)"
    assert "  2 d::Foo" in lines
    assert "  no cost rule: d::Foo, 2 ops: a, b" in lines
    assert {"dimension batch = 8", "note: fact", "assumption: guess"} <= set(lines)


def test_sentences_gather_their_subjects() -> None:
    """A sentence said of three tensors is one line that names them once each."""
    sentences = Sentences()
    for name in ("a", "b", "a"):
        sentences.add("strings counted", name)
    sentences.add("alone")
    assert sentences.lines() == ("strings counted: a, b", "alone")


def test_subjects_are_named_where_the_sentence_does_not() -> None:
    """What the subjects are stands with them in brackets, apart from the remedy."""
    sentences = Sentences()
    for name in ("a", "b"):
        sentences.add("set --op-cost d::Foo=FLOPS", name, "ops")
    assert sentences.lines() == ("set --op-cost d::Foo=FLOPS (ops: a, b)",)


def test_one_thing_is_singular() -> None:
    """One node, op and folded node are said in the singular."""
    lines = ImportReport(
        1, 1, num_folded=1, unruled=(UnruledKind("d::Foo", 1, ("a",)),)
    ).lines()
    assert lines[0] == "1 node -> 1 op (1 node folded to constants)"
    assert "  no cost rule: d::Foo, 1 op: a" in lines


def test_long_lists_are_cut() -> None:
    """Seven names show five and the number of the others."""
    assert shortened(list("abcdefg")) == "a, b, c, d, e and 2 more"
