"""Files on disk: atomic writes, gzip, strict JSON, sentences about faults."""

import gzip
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from mcmpart._files import (
    did_you_mean,
    dump_json,
    parse_json,
    read_bytes,
    sha256_of,
    validation_sentence,
    write_atomic,
)
from mcmpart.errors import InputError


def test_a_write_makes_folders_and_leaves_no_other_file(tmp_path):
    """The content arrives, in a new folder, and no temporary file stays behind."""
    path = tmp_path / "a" / "b.json"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_a_written_file_has_ordinary_permissions(tmp_path):
    """The file is as readable as one that open() makes, not private to the user."""
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_bytes(b"")
    write_atomic(ours, b"")
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    """When the rename fails, the old content stands and the temporary file is gone."""
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mcmpart._files.os.replace", refuse)
    with pytest.raises(InputError, match=r"cannot write .*x: No space left .* free"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_folder_is_one_sentence(tmp_path):
    """A parent that is a file cannot be written below."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"cannot write .*: .*; choose a folder"):
        write_atomic(tmp_path / "file" / "x", b"")


def test_gz_names_compress_to_the_same_bytes_each_time(tmp_path):
    """A .gz file is gzip without a time stamp and is read back decompressed."""
    one, two = tmp_path / "one.gz", tmp_path / "two.gz"
    write_atomic(one, b"hello" * 100)
    write_atomic(two, b"hello" * 100)
    assert one.read_bytes() == two.read_bytes()
    assert gzip.decompress(one.read_bytes()) == b"hello" * 100
    assert read_bytes(one, "test file") == b"hello" * 100


def test_gzip_is_told_by_content(tmp_path):
    """A compressed file without .gz is decompressed, a plain one with .gz is not."""
    hidden, false = tmp_path / "hidden.json", tmp_path / "false.gz"
    hidden.write_bytes(gzip.compress(b"x"))
    false.write_bytes(b"plain")
    assert read_bytes(hidden, "test file") == b"x"
    assert read_bytes(false, "test file") == b"plain"


def test_missing_files_and_folders_are_one_sentence_each(tmp_path):
    """The sentence says what the path is and what to do."""
    with pytest.raises(InputError, match=r"nope does not exist: check the name of the"):
        read_bytes(tmp_path / "nope", "plan file")
    with pytest.raises(InputError, match=r"is a folder, not a plan file: name the fil"):
        read_bytes(tmp_path, "plan file")
    with pytest.raises(InputError, match=r"cannot read .*: File name too long; check"):
        read_bytes(tmp_path / ("x" * 300), "plan file")


@pytest.mark.parametrize("damage", ["cut", "flip", "header"])
def test_broken_gzip_is_one_sentence(tmp_path, damage):
    """A truncated, a corrupted and a headless gzip file are all refused alike."""
    data = gzip.compress(bytes(range(256)) * 8)
    broken = {
        "cut": data[: len(data) // 2],
        "flip": data[:10] + b"\xff\xff\xff\xff" + data[14:],
        "header": b"\x1f\x8b\x00",
    }[damage]
    path = tmp_path / "x.gz"
    path.write_bytes(broken)
    with pytest.raises(InputError, match=r"x\.gz is not a whole gzip file"):
        read_bytes(path, "graph file")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": NaN}', "holds the number NaN: a plan file may hold finite numbers"),
        ('{"a": -Infinity}', "holds the number -Infinity"),
        ('{"a": 1e999}', "holds the number 1e999"),
        ('{"a": 1, "b": {"c": 2, "c": 3}}', "holds the key 'c' twice: keep one"),
        ("", "is not a plan file: Expecting value"),
        ('{"a": 1', "is not a plan file: "),
        ("[" * 100_000, "is not a plan file: it nests too deeply"),
        ("9" * 5000, "is not a plan file: Exceeds the limit"),
    ],
)
def test_loose_json_is_refused(tmp_path, text, sentence):
    """Non-finite numbers, twin keys and broken JSON are refused with the file named."""
    path = tmp_path / "p.json"
    with pytest.raises(InputError) as caught:
        parse_json(text.encode(), path, "plan file")
    assert str(caught.value).startswith(f"{path} ")
    assert sentence in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """A binary file is refused as a whole, not with a decoding traceback."""
    with pytest.raises(InputError, match="is not a plan file"):
        parse_json(b"\x08\xff\xfe\xfd{}", tmp_path / "p.json", "plan file")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_round_trips_exactly(value):
    """What dump_json writes, parse_json reads back equal, lone surrogates included."""
    assert parse_json(dump_json(value), "x", "test file") == value


def test_dump_json_refuses_nan():
    """A non-finite number in our own output is a bug that must not reach a file."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json([float("nan")])


def test_sha256_of_nothing_is_the_known_one():
    """The hash is plain SHA-256: the empty text has the published value."""
    assert sha256_of(b"").startswith("e3b0c44298fc1c149afbf4c8996fb924")


class Inner(BaseModel):
    """A model inside another."""

    model_config = ConfigDict(extra="forbid", strict=True)
    producer: int = 0


class Outer(BaseModel):
    """A strict model."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    inner: Inner = Inner()


def _sentence(document, model=None):
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(document)
    return validation_sentence(caught.value, "f.json", "plan file", model)


def test_each_kind_of_fault_has_its_sentence():
    """Unknown key, missing key and wrong type: file, place and what was met."""
    assert _sentence({}) == "f.json: the key 'name' is missing: add it"
    assert _sentence({"name": 3}) == (
        "f.json: 'name' is 3: input should be a valid string"
    )
    assert _sentence({"name": "x", "zz": 1}) == (
        "f.json: 'zz' is no key of a plan file: remove or rename it"
    )


def test_an_unknown_key_is_answered_with_the_nearest_known_one():
    """With the model at hand, a key of an inner model is suggested too."""
    assert _sentence({"name": "x", "inner": {"producr": 1}}, Outer) == (
        "f.json: 'inner.producr' is no key of a plan file (did you mean 'producer'?): "
        "remove or rename it"
    )


def test_did_you_mean_is_silent_without_a_near_word():
    """No suggestion is better than a wrong one."""
    assert did_you_mean("memory_byte", ["memory_bytes", "count"]) == (
        " (did you mean 'memory_bytes'?)"
    )
    assert did_you_mean("xyz", ["memory_bytes", "count"]) == ""
