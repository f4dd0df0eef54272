"""to_toml: a package as TOML that loads back to an equal one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import tomli_w

from mcmpart.hardware.package import ANY_DTYPE, Chip, Link, Package

Value = str | float | list[int] | dict[str, float]


def to_toml(package: Package) -> str:
    """Return the package as canonical TOML, overrides where a part is not the base.

    ``parse_package(to_toml(package)) == package``: numbers are written without units,
    at full precision.
    """
    document: dict[str, object] = {
        "name": package.name,
        "source": package.source,
        "topology": package.topology,
        "long_edges": package.long_edges,
        "io": package.io,
        "link_limit": package.link_limit,
        "rules": list(package.rules),
    }
    if package.base_chip is not None:
        document["chip"] = {
            "count": package.num_chips,
            **_table("chips", package.base_chip, package.chips),
        }
    if package.base_link is not None:
        document["link"] = _table("hops", package.base_link, package.links)
    return tomli_w.dumps(document)


def _table(
    index_key: str, base: Chip | Link, parts: Sequence[Chip | Link]
) -> dict[str, object]:
    overrides: list[dict[str, Value]] = []
    for part in dict.fromkeys(parts):
        if part != base:
            indices = [i for i, other in enumerate(parts) if other == part]
            # Compared on the parts: as dicts, peaks in another order would be equal.
            changed = {
                key: value
                for key, value in _values(part).items()
                if getattr(part, key) != getattr(base, key)
            }
            overrides.append({index_key: indices, **changed})
    return {**_values(base), **({"override": overrides} if overrides else {})}


def _values(part: Chip | Link) -> Mapping[str, Value]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, Chip):
        peaks = dict(part.peak_ops_per_s)
        values["peak_ops_per_s"] = peaks.get(ANY_DTYPE, peaks)
    return values
