"""Folders that commands write into: their default names, and whether they can be."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mcmpart.errors import InputError

SUFFIXES = (".gz", ".json", ".txt", ".graph", ".onnx")
"""What a model file's name may end with."""


def output_folder(model: Path, typed: str | None, ending: str) -> Path:
    """Return the folder that was typed, or the model's name with ``ending``."""
    if typed is None:
        stem = model.name
        for suffix in SUFFIXES:
            stem = stem.removesuffix(suffix)
        return Path(f"{stem or 'model'}{ending}")
    # As a path, an empty text would be the current folder.
    if not typed:
        raise InputError("-o is empty: name a folder, or leave it out")
    return Path(typed)


def check_folder(folder: Path, files: tuple[str, ...]) -> None:
    """Refuse a folder into which ``files`` cannot be written, before the work."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(
            f"cannot write into {folder}: {there} is a file; choose another "
            "folder with -o"
        )
    for name in files:
        if (folder / name).is_dir():
            raise InputError(
                f"cannot write into {folder}: {folder / name} is a folder; "
                "remove it or choose another folder with -o"
            )
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise InputError(
            f"cannot write into {folder}: {error.strerror}; choose another "
            "folder with -o"
        ) from error
