"""Files on disk: atomic writes, gzip by name, strict JSON."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from mcmpart.errors import InputError

ModelT = TypeVar("ModelT", bound=BaseModel)


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
    """Return the content of ``path``, decompressed when it is gzip.

    Raises
    ------
    InputError
        The file is missing, is a folder, cannot be read or is broken gzip.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise InputError(
            f"{path} is a folder, not a {what}: name the file inside it"
        ) from error
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist: check the name of the {what}"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}; check the name and the permissions "
            f"of the {what}"
        ) from error
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path} is not a whole gzip file ({error}): write or copy it again"
        ) from error


def parse_json(data: bytes, path: Path, what: str) -> Any:  # noqa: ANN401 (JSON)
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
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not a {what}: it holds binary data, not JSON text"
        ) from error
    except ValueError as error:
        raise InputError(f"{path} is not a {what}: {error}") from error


def read_document(
    path: Path, what: str, form: str, version: int, model: type[ModelT]
) -> ModelT:
    """Return the JSON file ``path`` as a ``model``: of this format, of this version.

    Raises
    ------
    InputError
        It cannot be read, is of another format or version, or is not what ``model``
        says: an unknown key, a missing one, a number that is not finite.
    """
    document = parse_json(read_bytes(path, what), path, what)
    if not isinstance(document, dict) or document.get("format") != form:
        raise InputError(f'{path} is not a {what}: its "format" must be "{form}"')
    found = document.get("version")
    # To Python true and 1.0 are equal to 1; to a reader of the format they are not.
    if type(found) is not int or found != version:
        raise InputError(
            f"{path} is a {what} of version {found!r:.60}, and this mcmpart reads "
            f"version {version}: make it again with this version"
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InputError(validation_sentence(error, path, what, model)) from error


def dump_json(value: object, *, indent: int | None = None) -> bytes:
    """Return ``value`` as strict UTF-8 JSON, floats at full precision."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        value,
        allow_nan=False,
        ensure_ascii=False,
        indent=indent,
        separators=separators,
    )
    try:
        return (text + "\n").encode()
    except UnicodeEncodeError:
        # A lone surrogate, from a name that was no text: only an escape can hold it.
        escaped = json.dumps(
            value, allow_nan=False, indent=indent, separators=separators
        )
        return (escaped + "\n").encode()


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def validation_sentence(
    error: ValidationError, path: Path, what: str, model: type[BaseModel] | None = None
) -> str:
    """Return pydantic's first complaint as one sentence: file, place, remedy.

    With ``model`` an unknown key is answered with the nearest one that the model, or a
    model in it, knows.
    """
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top"
    if first["type"] == "extra_forbidden":
        known = set() if model is None else set(_keys_of(model))
        hint = did_you_mean(str(first["loc"][-1]), known)
        return f"{path}: {place!r} is no key of a {what}{hint}: remove or rename it"
    if first["type"] == "missing":
        return f"{path}: the key {place!r} is missing: add it"
    return f"{path}: {place!r} is {first['input']!r:.60}: {first['msg'].lower()}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` with the nearest known word, or ``""``.

    Examples
    --------
    >>> did_you_mean("ring35", ["ring36", "mtpp"])
    " (did you mean 'ring36'?)"
    """
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _keys_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys_of(inner)
