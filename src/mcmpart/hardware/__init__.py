"""The multi-chip module: chips, links, rules; presets and package files."""

from mcmpart.hardware.loader import (
    DEFAULT_PACKAGE,
    load_package,
    parse_package,
    preset_names,
    preset_text,
)
from mcmpart.hardware.package import (
    ANY_DTYPE,
    DTYPES,
    MAX_CHIPS,
    RULES,
    Chip,
    Link,
    Package,
    content_hash,
)
from mcmpart.hardware.writer import to_toml

__all__ = [
    "ANY_DTYPE",
    "DEFAULT_PACKAGE",
    "DTYPES",
    "MAX_CHIPS",
    "RULES",
    "Chip",
    "Link",
    "Package",
    "content_hash",
    "load_package",
    "parse_package",
    "preset_names",
    "preset_text",
    "to_toml",
]
