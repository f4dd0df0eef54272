"""Records of what each chip and hop carries under a partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChipLoad:
    """What one chip carries; see docs/concepts.md for each formula."""

    chip: int
    ops: int
    compute_s: float
    in_bytes: int
    out_bytes: int
    transfer_s: float
    stage_s: float
    weight_bytes: int
    buffer_bytes: int
    peak_live_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class HopLoad:
    """Traffic from chip ``hop`` to chip ``hop + 1``."""

    hop: int
    bytes: int
    link_s: float
