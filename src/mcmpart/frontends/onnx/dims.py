"""Symbolic dimensions: what the user set, and what had to be assumed."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.values import PartialShape
from mcmpart.frontends.report import Sentences

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
}


@dataclass(slots=True)
class Dims:
    """Sizes of named dimensions.

    A name is a symbol of the model (``batch``) or ``TENSOR.AXIS`` (``x.0``), which
    reaches a dimension that has no symbol.
    """

    given: Mapping[str, int]
    assumptions: Sentences
    _assumed: dict[str, int] = field(default_factory=dict)
    _used: dict[str, None] = field(default_factory=dict)
    _known: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, size in self.given.items():
            if size < 0:
                raise InputError(
                    f"a dimension is 0 or more, and {name!r} is {size}: "
                    f"give --dim {name}=N"
                )

    def input_shape(self, tensor: str, shape: PartialShape | None) -> tuple[int, ...]:
        """Return the static shape of a model input; unknown sizes become 1.

        Raises
        ------
        InputError
            The input has no shape at all, and the user gave none.
        """
        if shape is None:
            found = self._by_axis(tensor)
            if found is None:
                raise InputError(
                    f"the input {tensor!r} has no shape in the model: give each of "
                    f"its dimensions, --dim {tensor}.0=N --dim {tensor}.1=N and so on"
                )
            return found
        return tuple(
            size if isinstance(size, int) else self._assume(size, f"{tensor}.{axis}")
            for axis, size in enumerate(shape)
        )

    def complete(
        self, tensor: str, shape: PartialShape | None
    ) -> tuple[int, ...] | None:
        """Return the static shape of an inner tensor, or None; assumes nothing new."""
        if shape is None:
            return self._by_axis(tensor)
        sizes = []
        for axis, size in enumerate(shape):
            known = size if isinstance(size, int) else None
            if known is None:
                known = self._given(f"{tensor}.{axis}")
            if known is None and isinstance(size, str):
                known = self._symbol(size)
            if known is None:
                return None
            sizes.append(known)
        return tuple(sizes)

    def check_all_used(self) -> None:
        """Refuse a size that the user gave for a name the model does not have."""
        for name in self.given:
            if name in self._used:
                continue
            known = list(self._known)
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else _choices(known)
            raise InputError(
                f"--dim {name}={self.given[name]} names no open dimension of the "
                f"model: {hint}"
            )

    def settings(self) -> tuple[tuple[str, int], ...]:
        """Return (name, size) of every dimension that was set."""
        given = {name: self.given[name] for name in self._used}
        return tuple((given | self._assumed).items())

    def _given(self, name: str) -> int | None:
        self._known[name] = None
        if name not in self.given:
            return None
        self._used[name] = None
        return self.given[name]

    def _symbol(self, name: str) -> int | None:
        size = self._given(name)
        if size is None:
            size = self._assumed.get(name)
        if size is None and not name.isidentifier():
            size = _evaluate(name, self._symbol)
        return size

    def _assume(self, symbol: str | None, place: str) -> int:
        size = self._given(place) if place in self.given else None
        if size is None and symbol:
            size = self._symbol(symbol)
            if size is None and not symbol.isidentifier():
                size = _evaluate(symbol, lambda name: self._assume(name, name))
        if size is None:
            name = symbol or place
            size = self._assumed.setdefault(name, 1)
            self._known[name] = None
            self.assumptions.add(
                f"dimension {name!r} set to 1; choose with --dim {name}=N"
            )
        return size

    def _by_axis(self, tensor: str) -> tuple[int, ...] | None:
        sizes: list[int] = []
        while (size := self._given(f"{tensor}.{len(sizes)}")) is not None:
            sizes.append(size)
        return tuple(sizes) or None


def _choices(known: list[str]) -> str:
    names = [name for name in known if "." not in name] or known
    return f"it has {', '.join(names[:8])}" if names else "all its sizes are fixed"


def _evaluate(text: str, size_of: Callable[[str], int | None]) -> int | None:
    """Return the value of a dimension written as a sum or product of others.

    Exporters write ``past + 1`` or ``2*batch``; anything else gives None.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

    def visit(node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return size_of(node.id)
        if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
            return None
        left, right = visit(node.left), visit(node.right)
        if left is None or right is None:
            return None
        try:
            return _OPERATORS[type(node.op)](left, right)
        except ZeroDivisionError:
            return None

    size = visit(tree)
    return size if size is not None and size >= 0 else None
