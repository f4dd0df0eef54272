"""Domains of ops: the default one has two names."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import defs

from mcmpart.errors import InputError

_LAST_VERSION = (1 << 31) - 1
"""onnx holds versions in 32 bits."""


def opset_versions(imports: Mapping[str, int]) -> dict[str, int]:
    """Return ``imports`` with the default domain under its short name ``""``.

    Raises
    ------
    InputError
        A version is none that a domain can have.
    """
    for domain, version in imports.items():
        # Some exporters give their own domains version 0.
        first = 0 if short_domain(domain) else 1
        if not first <= version <= _LAST_VERSION:
            raise InputError(
                f"the model imports version {version} of the domain "
                f"{domain or 'ai.onnx'!r}, which is no opset version (the installed "
                f"onnx knows ai.onnx 1 to {defs.onnx_opset_version()}): export the "
                "model again"
            )
    return {short_domain(domain): version for domain, version in imports.items()}


def short_domain(domain: str) -> str:
    """Return ``domain``, the default one as ``""``."""
    return "" if domain == "ai.onnx" else domain
