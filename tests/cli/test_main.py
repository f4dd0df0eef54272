"""``mcmpart`` itself: versions, wrong use, streams, and what loads when."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcmpart import __version__
from mcmpart.cli import main

COMMAND = [sys.executable, "-m", "mcmpart"]


def test_version(cli):
    """--version prints the package's version and nothing else."""
    result = cli("--version")
    assert (result.exit_code, result.stdout) == (0, f"mcmpart {__version__}\n")


def test_help_lists_the_commands(cli):
    """--help names each command of this release, and no other."""
    shown = cli("--help").stdout
    listed = shown.split("Commands:\n")[1].split("\n\n")[0]
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == ["partition", "bound", "import", "inspect", "verify", "package"]


@pytest.mark.parametrize(
    "name", ["partition", "bound", "import", "inspect", "verify", "package"]
)
def test_every_command_has_help(cli, name):
    """Each command answers --help with its usage."""
    result = cli(name, "--help")
    assert result.exit_code == 0
    assert f"Usage: mcmpart {name}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "Usage: mcmpart"),
        (("partitoin",), "Did you mean 'partition'?"),
        (("partition", "m.onnx", "--tiem", "3"), "--time"),
        (("partition",), "Missing argument 'MODEL'"),
        (("partition", "m.onnx", "--chips", "many"), "--chips"),
        (("import", "m.onnx"), "--output"),
    ],
)
def test_wrong_use(cli, arguments, text):
    """Wrong use exits with 2 and says on stderr what was meant."""
    result = cli(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert text in result.stderr


@pytest.mark.parametrize(
    ("raised", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "memory does not hold"),
        (PermissionError(13, "Permission denied", "a/b"), 2, "a/b: Permission denied"),
    ],
)
def test_what_the_machine_refuses(error, monkeypatch, raised, code, text):
    """An interrupt, too little memory or a refused path end in one sentence."""

    def refuse(*arguments):
        raise raised

    monkeypatch.setattr(sys.modules["mcmpart.verify"], "find_differences", refuse)
    assert text in error("verify", "plan.json", code=code)


def test_a_bug_is_not_dressed_up(cli, monkeypatch):
    """An exception that no input explains is left as it is."""

    def fail(*arguments):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(sys.modules["mcmpart.verify"], "find_differences", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        cli("verify", "plan.json")


def test_python_m():
    """``python -m mcmpart`` is the command, and its exit code is the process's."""
    done = subprocess.run(
        [*COMMAND, "inspect", "nothing.onnx"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error: nothing.onnx does not exist: check the model's name\n"
    )


def test_a_reader_that_leaves(graph_file):
    """When nobody reads stdout the command ends without a word, as SIGPIPE would."""
    with subprocess.Popen(
        [*COMMAND, "inspect", graph_file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == main.READER_GONE


def run_in_shell(redirection, *arguments):
    """Return what the command did with its streams redirected by a shell."""
    shell = ["sh", "-c", f'"$@" {redirection}', "sh"]
    return subprocess.run(
        [*shell, *COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


needs_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a device that is always full"
)


@needs_full
@pytest.mark.parametrize("option", [(), ("--json",), ("--help",)])
def test_a_full_output(graph_file, option):
    """Output that no space is left for is said in one sentence, with exit code 2."""
    done = run_in_shell(">/dev/full", "inspect", graph_file, *option)
    assert (done.returncode, done.stderr) == (
        2,
        "error: cannot write the output: no space left on device\n",
    )


@needs_full
@pytest.mark.parametrize(("file", "code"), [("chain.graph.json", 0), ("nothing", 2)])
def test_a_full_log(graph_file, file, code):
    """A log that no space is left for does not change the exit code."""
    done = run_in_shell("2>/dev/full", "inspect", file)
    assert done.returncode == code
    assert done.stdout.startswith("chain_12: 12 ops") == (code == 0)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_closed_output(graph_file, option):
    """With stdout closed the command does its work and prints nothing."""
    done = run_in_shell(">&-", "inspect", graph_file, *option)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_closed_log(graph_file):
    """With stderr closed an error still has its exit code."""
    assert run_in_shell("2>&-", "inspect", "nothing").returncode == 2
    assert run_in_shell(">&- 2>&-", "inspect", graph_file).returncode == 0


def test_a_name_that_is_no_text(graph_file):
    """A file name that is not UTF-8 is shown escaped, and breaks nothing."""
    name = b"od\xffd.graph.json"
    with open(graph_file, "rb") as source, open(name, "wb") as copy:
        copy.write(source.read().replace(b"chain_12", b"od\xed\xb3\xbfd"))
    done = subprocess.run(
        [*COMMAND, "import", name, "-o", b"\xff.graph.json"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"written to \\udcff.graph.json\n")


def test_help_loads_no_heavy_library():
    """The command line itself imports nothing that takes long to load."""
    code = (
        "import sys, mcmpart.cli.main\n"
        "print({'numpy', 'numba', 'onnx', 'pydantic', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
