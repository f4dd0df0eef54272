"""The command ``mcmpart package``: what it prints, and what it imports."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mcmpart.cli.package import _print_table, app
from mcmpart.errors import InputError
from mcmpart.hardware import (
    content_hash,
    load_package,
    preset_names,
    preset_text,
    to_toml,
)

HEADER = [
    *("name", "chips", "topology", "rules", "long edges", "memory", "peak op/s"),
    "source",
]


def run(*arguments: str) -> str:
    """Return what the command prints on stdout; an error propagates."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_list_is_one_line_per_package():
    """Plain text has a header and a line for each preset, columns two spaces apart."""
    lines = run("list").splitlines()
    columns = [lines[0].index(title) for title in HEADER]
    cells = [
        [line[a:b].strip() for a, b in zip(columns, [*columns[1:], None], strict=True)]
        for line in lines
    ]
    assert cells[0] == HEADER
    assert [row[0] for row in cells[1:]] == list(preset_names())
    by_name = {row[0]: row for row in cells}
    source = load_package("ring36").source
    assert by_name["ring36"] == [
        *("ring36", "36", "ring", "no_skip, triangle, memory", "forbid", "32.0 MiB"),
        *("int8 4.00 T", source),
    ]
    assert by_name["mtpp"][6] == "any dtype 1.00 E"
    assert [by_name[name][3] for name in ("simba36", "mtpp")] == [
        "no_skip",
        "dataflow only",
    ]


def test_list_on_a_terminal_is_cut_to_its_width(monkeypatch, capsys):
    """On a terminal a source is cut to what is left, so a row stays one line."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    row = (
        *("toy", "4", "ring", "memory", "relay", "8.0 MiB", "int8 1 k"),
        "[bold] source " * 9,
    )
    _print_table([row])
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    header, line = shown.splitlines()
    assert header.split() == " ".join(HEADER).split()
    assert line.startswith(
        "toy   4      ring      memory  relay       8.0 MiB  int8 1 k   [bold]"
    )
    assert line.rstrip().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert len(line) <= 100


@pytest.mark.parametrize("name", preset_names())
def test_show_prints_the_file_as_shipped(name):
    """The text is the preset's file, comments and all."""
    assert run("show", name) == preset_text(name)


def test_check_says_what_the_file_says(tmp_path):
    """A good file gives one line: its chips, memory, peak, io, links and rules."""
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("ring36"))
    assert run("check", str(path)) == (
        "ok: ring36: 36 chips, ring; memory 32.0 MiB a chip; peak int8 4.00 Top/s; "
        "io 8.00 GB/s serial; links 4.00 GB/s; "
        "rules dataflow, no_skip, triangle, memory; long edges forbid\n"
    )


def test_check_of_a_mixed_package_counts_kinds(tmp_path):
    """Unequal chips are counted and their memory is given as a range."""
    override = "[[chip.override]]\nchips = [1]\nmemory_bytes = 1024\n"
    path = tmp_path / "mixed.toml"
    path.write_text(preset_text("cpu-x2") + override)
    assert run("check", str(path)).startswith(
        "ok: cpu-x2: 2 chips of 2 kinds, ring; memory 1.0 KiB to 4.0 GiB a chip; "
    )


def test_check_of_a_mixed_package_gives_ranges(tmp_path):
    """Peaks per dtype, io and links are given from the least to the largest."""
    path = tmp_path / "mixed.toml"
    path.write_text(
        preset_text("ring36").replace("count = 36 ", "count = 4 ")
        + "[[chip.override]]\nchips = [1, 2]\n"
        'io_bandwidth_bytes_per_s = "2 GB/s"\n'
        "peak_ops_per_s = {int8 = 1e12, bf16 = 5e11}\n"
        '[[link.override]]\nhops = [0]\nbandwidth_bytes_per_s = "9 GB/s"\n'
    )
    assert run("check", str(path)) == (
        "ok: ring36: 4 chips of 2 kinds, ring; memory 32.0 MiB a chip; "
        "peak int8 1.00 T to 4.00 Top/s, bf16 500 Gop/s on 2 of them; "
        "io 2.00 GB/s to 8.00 GB/s serial; links 4.00 GB/s to 9.00 GB/s; "
        "rules dataflow, no_skip, triangle, memory; long edges forbid\n"
    )


def test_check_says_that_memory_is_not_enforced(tmp_path):
    """Where the memory rule is off, that stands beside the memory."""
    path = tmp_path / "simba.toml"
    path.write_text(preset_text("simba36"))
    line = run("check", str(path))
    assert "; memory 752.0 KiB a chip, not enforced; " in line
    assert "; rules dataflow, no_skip; " in line


def test_check_of_one_chip_names_no_links(tmp_path):
    """A single chip has no link to speak of."""
    path = tmp_path / "one.toml"
    path.write_text(to_toml(load_package("ring36").with_chips(1)))
    line = run("check", str(path))
    assert line.startswith("ok: ring36: 1 chip, ring; ")
    assert "links" not in line


def test_json_is_one_object_and_nothing_else(tmp_path):
    """Each command's --json output parses whole and carries the content hash."""
    package = load_package("mtpp")
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("mtpp"))
    listed = json.loads(run("list", "--json"))
    shown = json.loads(run("show", "mtpp", "--json"))
    checked = json.loads(run("check", str(path), "--json"))
    assert listed["default"] == "ring36"
    assert [record["name"] for record in listed["packages"]] == list(preset_names())
    assert shown["toml"] == preset_text("mtpp")
    assert checked["ok"] is True
    assert checked["file"] == str(path)
    for record in (shown, checked):
        assert record["sha256"] == content_hash(package)
        assert record["num_chips"] == len(record["chips"]) == 16
        assert len(record["links"]) == 15
        assert record["chips"][0]["peak_ops_per_s"] == {"*": 1e18}
        assert record["rules"] == []


def test_errors_propagate_to_the_main_command(tmp_path):
    """The commands raise InputError; the main module prints it."""
    path = tmp_path / "bad.toml"
    path.write_text("name = 1\n")
    with pytest.raises(
        InputError, match=r"bad\.toml: the top of the file lacks source"
    ):
        run("check", str(path))
    with pytest.raises(InputError, match="does not exist"):
        run("check", str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"'ring35' .*did you mean 'ring36'"):
        run("show", "ring35")


def test_the_module_imports_nothing_heavy():
    """Only typer is loaded by mounting the command, so --help stays fast."""
    code = (
        "import sys, mcmpart.cli.package; "
        "print(*{'numpy', 'numba', 'pydantic', 'rich.table', 'mcmpart.hardware'}"
        ".intersection(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
