"""Run the commands in the console blocks of docs/cli.md and write what they print.

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
COMMAND = "from mcmpart.cli.main import main; main()"


def refresh(page: str, folder: Path) -> str:
    """Return the page with the output of each console block made anew in ``folder``."""
    block = re.compile(r"^```console\n\$ mcmpart (.*?)\n.*?^```$", re.M | re.S)

    def rerun(match: re.Match[str]) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", COMMAND, *shlex.split(match[1])],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return f"```console\n$ mcmpart {match[1]}\n{ran.stderr}{ran.stdout}```"

    return block.sub(rerun, page)


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
        PAGE.write_text(
            refresh(PAGE.read_text(encoding="utf-8"), Path(name)), encoding="utf-8"
        )
