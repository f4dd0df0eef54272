"""Files on disk: atomic writes, gzip by name, strict JSON."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from mcmpart.errors import InputError


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the new one.

    A name that ends in ``.gz`` is compressed (with a fixed time stamp, so that the
    same content gives the same bytes).

    Raises
    ------
    InputError
        The folder cannot be made or written.
    """
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=6, mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; choose a folder you may write to"
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InputError(
            f"cannot write {path}: {error.strerror}; free some space or choose "
            "another folder"
        ) from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of ``path``, decompressed when its name ends in ``.gz``.

    Raises
    ------
    InputError
        The file is missing, is a folder, cannot be read or is broken gzip.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a {what}: name the file inside it")
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the name of the {what}") from (
            error
        )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise InputError(
            f"{path} is not a whole gzip file ({error}): write or copy it again"
        ) from error


def parse_json(data: bytes, path: Path, what: str) -> Any:
    """Return the JSON value in ``data``; NaN, infinities and twin keys are refused.

    Raises
    ------
    InputError
        ``data`` is not JSON, or holds a non-finite number or a repeated key.
    """

    def refuse(text: str) -> NoReturn:
        raise InputError(
            f"{path} holds the number {text}: a {what} may hold finite numbers only"
        )

    def finite(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            refuse(text)
        return value

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [key for key, _ in pairs]
            twin = next(key for key in names if names.count(key) > 1)
            raise InputError(f"{path} holds the key {twin!r} twice: keep one of them")
        return found

    try:
        return json.loads(
            data,
            parse_constant=refuse,
            parse_float=finite,
            object_pairs_hook=unique,
        )
    except RecursionError as error:
        raise InputError(f"{path} is not a {what}: it nests too deeply") from error
    except ValueError as error:
        raise InputError(f"{path} is not a {what}: {error}") from error


def dump_json(value: Any, *, indent: int | None = None) -> bytes:
    """Return ``value`` as strict UTF-8 JSON, floats at full precision."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        value,
        allow_nan=False,
        ensure_ascii=False,
        indent=indent,
        separators=separators,
    )
    return (text + "\n").encode("utf-8", errors="surrogatepass")


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def validation_sentence(error: ValidationError, path: Path, what: str) -> str:
    """Return pydantic's first complaint as one sentence: file, place, remedy."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top"
    if first["type"] == "extra_forbidden":
        return f"{path}: {place!r} is no key of a {what}: remove or rename it"
    if first["type"] == "missing":
        return f"{path}: the key {place!r} is missing: add it"
    return f"{path}: {place!r} is {first['input']!r:.60}: {first['msg'].lower()}"
