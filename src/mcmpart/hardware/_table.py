"""Table: typed access to a TOML table; each error names the file and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mcmpart._files import did_you_mean
from mcmpart.errors import InputError
from mcmpart.units import parse_quantity


@dataclass(frozen=True, slots=True)
class Table:
    """A TOML table.

    Attributes
    ----------
    values
        As :mod:`tomllib` reads them.
    file
        What the file is called in errors.
    path
        Where the table stands in the file: ``""`` (the top), ``"chip"``, ...
    """

    values: Mapping[str, object]
    file: str
    path: str = ""

    def check_keys(self, required: Iterable[str], optional: Iterable[str]) -> None:
        """Refuse the table when it has an unknown key or lacks a required one."""
        required = tuple(required)
        known = (*required, *optional)
        where = f"[{self.path}]" if self.path else "the top of the file"
        for key in self.values:
            if key not in known:
                hint = did_you_mean(key, known)
                raise InputError(
                    f"{self.file}: {where} has the unknown key {key!r}{hint}: remove "
                    "or rename it"
                )
        missing = [key for key in required if key not in self.values]
        if missing:
            it = "it" if len(missing) == 1 else "them"
            raise InputError(
                f"{self.file}: {where} lacks {', '.join(missing)}: add {it}"
            )

    def over(self, base: Table) -> Table:
        """Return this table with what it leaves out taken from ``base``."""
        return Table({**base.values, **self.values}, self.file, self.path)

    def place(self, key: str) -> str:
        """Return the file and the full name of ``key``."""
        return f"{self.file}: {self.path}.{key}" if self.path else f"{self.file}: {key}"

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.values[key]
        if not isinstance(value, str):
            raise self._wrong(key, "a text in quotes")
        return value

    def flag(self, key: str) -> bool:
        """Return a truth value."""
        value = self.values[key]
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def whole(self, key: str) -> int:
        """Return an integer."""
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number")
        return value

    def number(self, key: str) -> float:
        """Return a number without a unit."""
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number without quotes or unit")
        return value

    def size(self, key: str) -> int:
        """Return bytes, from a number or from text with a unit."""
        return parse_quantity(self._quantity(key), "bytes", self.place(key))

    def quantity(self, key: str, unit: Literal["bytes_per_s", "s"]) -> float:
        """Return a rate or a time, from a number or from text with a unit."""
        return parse_quantity(self._quantity(key), unit, self.place(key))

    def wholes(self, key: str) -> list[int]:
        """Return a list of integers, at least one."""
        found = [
            item
            for item in self._list(key)
            if isinstance(item, int) and not isinstance(item, bool)
        ]
        if not found or len(found) < len(self._list(key)):
            raise self._wrong(key, "a list of whole numbers, such as [2, 3]")
        return found

    def texts(self, key: str) -> list[str]:
        """Return a list of strings."""
        found = [item for item in self._list(key) if isinstance(item, str)]
        if len(found) < len(self._list(key)):
            raise self._wrong(key, 'a list of texts, such as ["no_skip"]')
        return found

    def table(self, key: str) -> Table:
        """Return the table ``key`` in this one."""
        value = self.values[key]
        if not isinstance(value, dict):
            raise self._wrong(key, f"a table: write [{self._name(key)}]")
        return Table(value, self.file, self._name(key))

    def tables(self, key: str) -> list[Table]:
        """Return the tables ``[[key]]`` in this one; none is an empty list."""
        if key not in self.values:
            return []
        tables = [item for item in self._list(key) if isinstance(item, dict)]
        if len(tables) < len(self._list(key)):
            raise self._wrong(key, f"a list of tables: write [[{self._name(key)}]]")
        return [
            Table(item, self.file, f"{self._name(key)}[{i}]")
            for i, item in enumerate(tables)
        ]

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _list(self, key: str) -> list[object]:
        value = self.values[key]
        return value if isinstance(value, list) else [None]

    def _quantity(self, key: str) -> str | float:
        value = self.values[key]
        if not isinstance(value, str | int | float):
            raise self._wrong(key, 'a number, or text with a unit such as "8 MiB"')
        return value

    def _wrong(self, key: str, wanted: str) -> InputError:
        return InputError(
            f"{self.place(key)} is {self.values[key]!r:.60}: give {wanted}"
        )


def parse_toml(text: str, file: str) -> Table:
    """Return the top table of a TOML text.

    Raises
    ------
    InputError
        The text is not TOML; the sentence says in which line.
    """
    try:
        return Table(tomllib.loads(text), file)
    except RecursionError as error:
        raise InputError(f"{file} is not a TOML file: it nests too deeply") from error
    except ValueError as error:
        # The parser names no line for faults that it meets at the very end.
        last = text.count("\n") + (not text.endswith("\n"))
        fault = str(error).replace("end of document", f"line {last}, the end")
        raise InputError(f"{file} is not a TOML file: {fault}") from error
