"""The one table of cost rules, by domain and kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcmpart.frontends.op_costs import (
    attention,
    cached_attention,
    classic_ml,
    conv,
    elementwise,
    matmul,
    microsoft,
    movement,
    recurrent,
    reduction,
    signal,
    text,
    views,
    vision,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView


def _merged(families: Iterable[Mapping[str, CostRule]]) -> dict[str, CostRule]:
    """Return one dict of all rules; a kind in two families is a bug of ours."""
    merged: dict[str, CostRule] = {}
    for family in families:
        assert not merged.keys() & family.keys(), merged.keys() & family.keys()
        merged.update(family)
    return merged


_FAMILIES = (
    views,
    movement,
    elementwise,
    matmul,
    conv,
    recurrent,
    reduction,
    attention,
    cached_attention,
    signal,
    vision,
    text,
    microsoft,
)

# If, Loop, Scan and SequenceMap have no rule: the importer costs their bodies.
_RULES: Mapping[str, Mapping[str, CostRule]] = {
    "": _merged(family.RULES for family in _FAMILIES),
    "ai.onnx.ml": classic_ml.RULES,
    "ai.onnx.preview": attention.PREVIEW_RULES,
    "ai.onnx.preview.training": elementwise.TRAINING_RULES,
    "com.microsoft": _merged(family.MICROSOFT_RULES for family in _FAMILIES),
    "com.microsoft.nchwc": _merged(
        (movement.NCHWC_RULES, conv.NCHWC_RULES, reduction.NCHWC_RULES)
    ),
}

_RANDOM_KINDS = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def _rule_of(domain: str, kind: str) -> CostRule | None:
    """Return the rule; "ai.onnx" is the default domain's other name."""
    return _RULES.get("" if domain == "ai.onnx" else domain, {}).get(kind)


def cost_of(op: OpView) -> OpCost | None:
    """Return the op's FLOPs, bytes and matrix product; None without a rule."""
    rule = _rule_of(op.domain, op.kind)
    return None if rule is None else rule(op)


def has_rule(domain: str, kind: str) -> bool:
    """Return whether an op of this domain and kind has a cost rule."""
    return _rule_of(domain, kind) is not None


def rule_names() -> list[str]:
    """Return every kind with a rule, sorted; "domain::Kind" outside the default."""
    return sorted(
        f"{domain}::{kind}" if domain else kind
        for domain, rules in _RULES.items()
        for kind in rules
    )


def is_random(domain: str, kind: str) -> bool:
    """Return whether two runs of the op differ: such an op must not be folded."""
    return domain in ("", "ai.onnx") and kind in _RANDOM_KINDS
