"""What an importer found: notes, assumptions, and how far its cost rules reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_SHOWN = 5


def shortened(names: Sequence[str], shown: int = _SHOWN) -> str:
    """Return the first names as a list in prose: ``a, b and 3 more``.

    Examples
    --------
    >>> shortened(["a", "b", "c"], shown=2)
    'a, b and 1 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return a number of things: ``1 op``, ``2 ops``.

    Examples
    --------
    >>> counted(1, "op"), counted(0, "op")
    ('1 op', '0 ops')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(slots=True)
class Sentences:
    """Sentences in the order met; one said of several subjects is kept once."""

    _subjects: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def add(self, sentence: str, subject: str = "", what: str = "") -> None:
        """Say ``sentence`` of ``subject`` (of nothing in particular when empty).

        ``what`` names what the subjects are, where the sentence does not.
        """
        subjects = self._subjects.setdefault((sentence, what), {})
        if subject:
            subjects[subject] = None

    def lines(self) -> tuple[str, ...]:
        """Return each sentence once, with its subjects behind it."""
        return tuple(
            _said_of(sentence, what, list(subjects))
            for (sentence, what), subjects in self._subjects.items()
        )


def _said_of(sentence: str, what: str, subjects: list[str]) -> str:
    if not subjects:
        return sentence
    if what:
        return f"{sentence} ({what}: {shortened(subjects)})"
    return f"{sentence}: {shortened(subjects)}"


@dataclass(frozen=True, slots=True)
class UnruledKind:
    """An op kind without a cost rule: how many ops, and the names of the first."""

    kind: str
    num_ops: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an importer did with a model.

    Attributes
    ----------
    num_nodes, num_ops, num_folded
        Nodes in the file, ops in the graph, nodes folded to constants.
    ops_of_kind
        (kind, number of ops), most frequent first.
    ruled_ops
        Ops whose whole cost comes from a rule (or from the user).
    work, ruled_work
        Estimated FLOPs plus bytes touched, and the part of it that has a rule.
    unruled
        The op kinds without a rule.
    assumptions, notes
        Guesses that the plan must show, and facts worth knowing.
    dims
        (name, size) of each symbolic dimension that was set, by the user or by
        assumption.
    """

    num_nodes: int
    num_ops: int
    num_folded: int = 0
    ops_of_kind: tuple[tuple[str, int], ...] = ()
    ruled_ops: int = 0
    work: int = 0
    ruled_work: int = 0
    unruled: tuple[UnruledKind, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dims: tuple[tuple[str, int], ...] = ()

    @property
    def ops_covered(self) -> float:
        """Share of ops with a cost rule, 0 to 1; 1 when there are no ops."""
        return self.ruled_ops / self.num_ops if self.num_ops else 1.0

    @property
    def work_covered(self) -> float:
        """Share of estimated work with a cost rule, 0 to 1; 1 when there is none."""
        return self.ruled_work / self.work if self.work else 1.0

    def lines(self) -> list[str]:
        """Return the report as lines for a person."""
        lines = [
            f"{counted(self.num_nodes, 'node')} -> {counted(self.num_ops, 'op')} "
            f"({counted(self.num_folded, 'node')} folded to constants)"
        ]
        lines += [f"  {count} {kind}" for kind, count in self.ops_of_kind]
        lines.append(self._coverage())
        lines += [
            f"  no cost rule: {kind.kind}, {counted(kind.num_ops, 'op')}: "
            f"{shortened(kind.first, 3)}"
            for kind in self.unruled
        ]
        lines += [f"dimension {name} = {size}" for name, size in self.dims]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"assumption: {sentence}" for sentence in self.assumptions]
        return lines

    def _coverage(self) -> str:
        if not self.num_ops:
            return "the model has no ops: there is nothing to place"
        return (
            f"{_percent(self.ops_covered)} % of ops, {_percent(self.work_covered)} % "
            "of estimated work have a cost rule"
        )


def _percent(share: float) -> str:
    # Rounded down, so that "100" always means all of them.
    return f"{int(share * 1000) / 10:g}"
