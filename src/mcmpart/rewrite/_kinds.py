"""What the name of an op kind says: random, layout only, dequantising."""

from __future__ import annotations

LAYOUT_KINDS = frozenset(
    {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
"""ONNX ops that only rearrange their first input; the others are shapes and axes."""


def kind_of(kind: str) -> str:
    """Return the kind without its domain: ``com.microsoft::Gelu`` is ``Gelu``."""
    return kind.rpartition("::")[2]


def is_random(kind: str) -> bool:
    """Whether two runs of the op on the same inputs may differ."""
    plain = kind_of(kind).lower()
    return plain.startswith("rand") or any(
        word in plain for word in ("random", "bernoulli", "multinomial")
    )
