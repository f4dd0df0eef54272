"""Domains of ops: the default one has two names."""

from __future__ import annotations

from collections.abc import Mapping


def opset_versions(imports: Mapping[str, int]) -> dict[str, int]:
    """Return ``imports`` with the default domain under its short name ``""``."""
    return {short_domain(domain): version for domain, version in imports.items()}


def short_domain(domain: str) -> str:
    """Return ``domain``, the default one as ``""``."""
    return "" if domain == "ai.onnx" else domain
