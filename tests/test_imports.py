"""The architecture: imports go down the layers, and libraries stay at home."""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import mcmpart

ROOT = Path(mcmpart.__file__).parent

LAYERS = (
    (
        "errors",
        "units",
        "_version",
        "_files",
        "_jit",
        "_bits",
        "_rng",
        "_workers",
        "_highs",
    ),
    ("graph",),
    ("hardware", "frontends", "rewrite"),
    ("cost",),
    ("blocks",),
    ("problem",),
    ("partition", "loads", "reference"),
    ("rules",),
    ("evaluate", "bounds"),
    ("solver",),
    ("search",),
    ("replication", "shortage"),
    ("solve",),
    ("certify", "plan", "summary", "verify"),
    ("cli",),
    ("__main__",),
)
"""What a file may import: its own layer and those before it."""

HOMES = {
    "numpy": "",
    "pydantic": "",
    "numba": ("_jit.py", "_bits.py"),
    "highspy": ("_highs.py",),
    "onnx": "frontends/onnx/",
    "google": "frontends/onnx/",
    "tomli_w": "hardware/",
    "typer": "cli/",
    "rich": "cli/",
}
"""Where each library may be imported, by prefixes; the empty one is everywhere."""


@dataclass(frozen=True)
class Import:
    """One imported module, and the file and line that ask for it."""

    file: str
    line: int
    module: str

    def __str__(self):
        return f"{self.file}:{self.line} imports {self.module}"


def module_of(file):
    """Return the dotted name of a file of the package."""
    parts = ("mcmpart", *Path(file).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name):
    """Whether ``mcmpart.a.b`` is a file or a folder of the package."""
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def imports_of(file, source):
    """Return each import in the text, also those inside functions."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [Import(file, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                longer = f"{base}.{alias.name}"
                inner = base.partition(".")[0] == "mcmpart" and is_module(longer)
                found.append(Import(file, node.lineno, longer if inner else base))
    return found


@pytest.fixture(scope="module")
def imports():
    """Give every import of every file but the package root."""
    files = (path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
    return [
        found
        for path in sorted(files)
        for found in imports_of(path.relative_to(ROOT).as_posix(), path.read_text())
    ]


def layer_of(name):
    """Return the layer of ``mcmpart.x...``; None if it stands in none."""
    part = name.split(".")[1]
    return next((i for i, names in enumerate(LAYERS) if part in names), None)


def upward(imports):
    """Return the imports of a higher layer, and those of no layer."""
    inner = [i for i in imports if i.module.startswith("mcmpart.")]
    unknown = [
        i for i in inner if None in (layer_of(i.module), layer_of(module_of(i.file)))
    ]
    known = [i for i in inner if i not in unknown]
    return unknown + [
        i for i in known if layer_of(i.module) > layer_of(module_of(i.file))
    ]


def circle(edges):
    """Return the nodes on a circle of the edges, and those that lead to one."""
    targets = {}
    for a, b in edges:
        targets.setdefault(a, set()).add(b)
    left = {*targets, *(b for _, b in edges)}
    while True:
        ends = {a for a in left if not targets.get(a, set()) & left}
        if not ends:
            return sorted(left)
        left -= ends


def strays(imports):
    """Return the imports of libraries outside their homes, and of unknown ones."""
    found = []
    for one in imports:
        library = one.module.partition(".")[0]
        if library in ("mcmpart", "__future__") or library in sys.stdlib_module_names:
            continue
        home = HOMES.get(library)
        if home is None or not one.file.startswith(home):
            found.append(one)
    return found


def shown(imports):
    """Return the imports as lines of a failure message."""
    return "\n".join(map(str, imports))


def test_every_file_has_a_layer():
    """Each file and folder of the package stands in the layer list, and the reverse."""
    named = {
        path.stem
        for path in ROOT.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    listed = {name for names in LAYERS for name in names}
    assert named - {"__init__"} == listed


def test_imports_go_down(imports):
    """No file imports from a layer above its own."""
    assert not upward(imports), shown(upward(imports))


def test_no_circle_of_files(imports):
    """No file imports itself over others."""
    edges = [(module_of(i.file), i.module) for i in imports if is_module(i.module)]
    assert not circle([edge for edge in edges if edge[0] != edge[1]])


def test_no_circle_of_folders(imports):
    """No folder of the package imports itself over others."""
    edges = {
        (module_of(i.file).split(".")[1], i.module.split(".")[1])
        for i in imports
        if i.module.startswith("mcmpart.")
    }
    assert not circle([edge for edge in edges if edge[0] != edge[1]])


def test_nobody_imports_the_root(imports):
    """The package root is for users; inside, modules are imported from their home."""
    found = [i for i in imports if i.module == "mcmpart" or i.module.startswith(".")]
    assert not found, shown(found)


def test_libraries_stay_at_home(imports):
    """numba, onnx and the command line's libraries are imported in one place each."""
    assert not strays(imports), shown(strays(imports))


def test_all_imports_are_seen(imports):
    """The search meets imports inside functions and of submodules by name."""
    source = (
        "def f():\n    from mcmpart.rules import user, explain\n    import numba.core"
    )
    found = {i.module for i in imports_of("graph/graph.py", source)}
    assert found == {"mcmpart.rules.user", "mcmpart.rules", "numba.core"}
    assert len(imports) > 200


def test_faults_are_found():
    """An upward edge, an unknown part, a circle and a stray library are all caught."""
    source = "import mcmpart.search.slice\nimport mcmpart.nowhere\nimport torch, numba"
    found = imports_of("graph/graph.py", source)
    assert [i.module for i in upward(found)] == [
        "mcmpart.nowhere",
        "mcmpart.search.slice",
    ]
    assert [i.module for i in strays(found)] == ["torch", "numba"]
    assert circle([("a", "b"), ("b", "c"), ("c", "b"), ("a", "d")]) == ["a", "b", "c"]


def test_public_names_stay_what_they_are():
    """A public name is the same object at each look, also where a module shares it."""
    for name in mcmpart.__all__:
        first = getattr(mcmpart, name)
        assert getattr(mcmpart, name) is first
        assert not isinstance(first, type(sys)), name
