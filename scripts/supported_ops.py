"""Print docs/supported-ops.md: every op kind that has a cost rule.

``python scripts/supported_ops.py > docs/supported-ops.md``
"""

from itertools import groupby

from mcmpart.frontends.op_costs import rule_names

HEAD = """# Supported ops

Made by `scripts/supported_ops.py`; do not edit.

mcmpart has a FLOP and byte rule for the op kinds below, {count} in all. `If`, `Loop`,
`Scan`, `SequenceMap` and each call of a model-local function are one op, costed by its
body. An op of any other kind is taken as one operation per output element, touching
what it reads and writes, which an assumption says: give its FLOPs with
`--op-cost DOMAIN::KIND=FLOPS`, or make it an error with `--strict`.
"""

DEFAULT_DOMAIN = "ai.onnx (the default domain)"


def page() -> str:
    """Return the page as Markdown."""
    names = rule_names()
    parts = [HEAD.format(count=len(names))]
    for domain, kinds in groupby(sorted(names, key=_split), key=lambda n: _split(n)[0]):
        listed = ", ".join(f"`{_split(name)[1]}`" for name in kinds)
        parts.append(f"## {domain or DEFAULT_DOMAIN}\n\n{listed}\n")
    return "\n".join(parts)


def _split(name: str) -> tuple[str, str]:
    """Return the domain, empty for the default one, and the kind."""
    domain, _, kind = name.rpartition("::")
    return domain, kind


if __name__ == "__main__":
    print(page(), end="")
