"""Run the commands that docs/cli.md and the README show and write what they print.

``python scripts/console_blocks.py``: after a change of what the commands print. All run
in one folder, in the order of the page, with ``examples/`` and ``toy3.toml`` in it.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/cli.md"
README = ROOT / "README.md"
COMMAND = "from mcmpart.cli.main import main; main()"
ROWS_SHOWN = 4
"""Rows of the table of chips that the README shows, the last of them the last one."""


def run(arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Return what ``mcmpart ARGUMENTS`` printed in ``folder``."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *shlex.split(arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def refresh(page: str, folder: Path) -> str:
    """Return the page with the output of each console block made anew in ``folder``."""
    block = re.compile(r"^```console\n\$ mcmpart (.*?)\n.*?^```$", re.M | re.S)

    def rerun(match: re.Match[str]) -> str:
        ran = run(match[1], folder)
        log = re.sub(r".* on the first run only .*\n", "", ran.stderr)
        return f"```console\n$ mcmpart {match[1]}\n{log}{ran.stdout}```"

    return block.sub(rerun, page)


def refresh_readme(page: str, folder: Path) -> str:
    """Return the README with the sample below its first command made anew."""
    command = re.search(r"&& mcmpart (partition .*)$", page, re.M)
    assert command is not None, "README.md shows no command"
    shown = shortened(run(command[1], folder).stdout)
    block = re.compile(r"^```text\nchip .*?^```$", re.M | re.S)
    return block.sub(lambda match: f"```text\n{shown}```", page)


def shortened(output: str) -> str:
    """Return the output with the middle of the table of chips left out."""
    head, *lines = output.splitlines(keepends=True)
    rows = [line for line in lines if re.match(r" *\d+ +\d+(\+\d+)? ", line)]
    shown = rows
    if len(rows) > ROWS_SHOWN:
        shown = [*rows[: ROWS_SHOWN - 1], "   ...\n", rows[-1]]
    return "".join([head, *shown, *lines[len(rows) :]])


def prepare(folder: Path) -> None:
    """Put what the commands read into ``folder``."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    concepts = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    toml = re.search(r"^```toml toy3.toml\n(.*?)^```$", concepts, re.M | re.S)
    assert toml is not None, "docs/concepts.md has no block toy3.toml"
    (folder / "toy3.toml").write_text(toml[1], encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for path, made_anew in ((PAGE, refresh), (README, refresh_readme)):
            text = path.read_text(encoding="utf-8")
            path.write_text(made_anew(text, Path(name)), encoding="utf-8")
