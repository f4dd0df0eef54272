"""Violation: one way in which a partition breaks a static rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: its name, a sentence, and the chips concerned."""

    rule: str
    message: str
    chips: tuple[int, ...] = ()
