"""The pages say what the code does: numbers, names, snippets and outputs."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import typer

from mcmpart import GraphBuilder, Partition, Problem, evaluate, evaluate_many, solve
from mcmpart.bounds import simple_bound_s
from mcmpart.bounds.exhaustive import TINY_OPS, TINY_PARTITIONS
from mcmpart.graph import OpSpec, TensorSpec, read_graph
from mcmpart.hardware import parse_package
from mcmpart.plan import Plan
from mcmpart.reference import recompute
from mcmpart.search import relative_gap

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")]
)
CALL = "from mcmpart.cli.main import main; main()"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Return (words after the fence, text) of each code block of a page in docs/."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [(info.split(), body) for info, body in BLOCK.findall(text)]


def named_block(page, name):
    """Return the text of the block whose fence names a file."""
    return next(body for info, body in blocks(page) if name in info)


def tables(text):
    """Return each table of Markdown text as rows of cells, the head first."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            rows.append([cell.strip() for cell in cells])
        elif rows:
            found.append([rows[0], *rows[2:]])
            rows = []
    return found


def table(page, *head):
    """Return the rows below the head of the table that begins with these heads."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return next(t[1:] for t in tables(text) if t[0][: len(head)] == list(head))


def us(text):
    """Return the seconds of ``12.35 us``."""
    return float(text.removesuffix(" us")) / 1e6


@pytest.fixture(scope="module")
def playground(tmp_path_factory):
    """Give a folder with examples/ and the files that the pages name."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for page in ("concepts.md", "formats.md"):
        for info, body in blocks(page):
            if len(info) == 2:
                (folder / info[1]).write_text(body, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def worked():
    """Give the problem of the worked example, read from its tables."""
    net = GraphBuilder("toy")
    net.host_tensor(TensorSpec("x", 10_000))
    reads = {"stem": ("x",), "conv": ("s",), "add": ("s", "c"), "pool": ("a",)}
    for name, flops, touched, weight, writes, _ in table("concepts.md", "op", "FLOPs"):
        tensor, size = writes.removesuffix(" bytes").split(", ")
        if int(weight):
            net.weight(TensorSpec(f"w_{name}", int(weight)))
        net.op(
            OpSpec(
                name,
                "Op",
                "int8",
                flops=int(flops),
                bytes=int(touched),
                reads=reads.get(name, ("p",)),
                weights=(f"w_{name}",) if int(weight) else (),
                writes=(TensorSpec(tensor, int(size)),),
            )
        )
    net.output("y")
    return Problem(net.build(), parse_package(named_block("concepts.md", "toy3.toml")))


def worked_rows():
    """Return the op names of each chip in the worked example's table of chips."""
    return [row[1].split() for row in table("concepts.md", "chip", "ops")]


def worked_partition(problem):
    """Return the partition of the worked example's table of chips."""
    rows = worked_rows()
    chip_of = [
        next(c for c, names in enumerate(rows) if name in names)
        for name in problem.graph.op_name
    ]
    return Partition(problem.graph, np.array(chip_of, dtype=np.int32))


def test_worked_op_times(worked):
    """The worked example's op times are those of the cost table."""
    stated = [us(row[5]) for row in table("concepts.md", "op", "FLOPs")]
    assert worked.costs.op_s[0] == pytest.approx(stated)


def test_worked_chips(worked):
    """Each figure of the chip table is that of the plain and the compiled model."""
    partition = worked_partition(worked)
    compiled = evaluate(worked, partition).chips
    plain = recompute(worked.graph, worked.package, partition.chip_of.tolist()).chips
    rows = table("concepts.md", "chip", "ops")
    for row, *loads in zip(rows, compiled, plain, strict=True):
        for load in loads:
            seconds = [us(row[2]), us(row[5])]
            assert [load.compute_s, load.stage_s] == pytest.approx(seconds)
            assert [
                load.in_bytes,
                load.out_bytes,
                load.weight_bytes,
                load.buffer_bytes,
                load.peak_live_bytes,
                load.memory_bytes,
            ] == [int(row[i]) for i in (3, 4, 6, 7, 8, 9)]


def test_worked_figures(worked):
    """Throughput, latency, energy, bound and gap are those in the text."""
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    metrics = evaluate(worked, worked_partition(worked))
    bound_s = simple_bound_s(worked)
    gap = relative_gap(metrics.bottleneck_s, bound_s)
    for stated in (
        f"{metrics.bottleneck_s * 1e6:.2f} us",
        f"{metrics.throughput_per_s / 1e3:.1f} k/s",
        f"{metrics.latency_s * 1e6:.2f} us",
        f"{metrics.energy_j * 1e6:.3f} uJ",
        f"max(7, 17.91 / 3) us = {bound_s * 1e6:.0f} us",
        f"the gap to it is {100 * gap:.1f} %",
    ):
        assert stated in text


def test_worked_proof(worked):
    """All placements of the worked example are judged, which proves the optimum."""
    result = solve(worked, time_s=5)
    assert (result.lower_bound_method, result.gap) == ("exhaustive", 0)
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    assert f"(at most {TINY_OPS} ops and {TINY_PARTITIONS:,} placements" in text
    best = worked_partition(worked)
    assert result.partition.chip_of.tolist() == best.chip_of.tolist()


def test_a_jump_beside_no_path():
    """Under ``forbid`` a -> c may jump over an m on chip 1 that neither feeds."""
    net = GraphBuilder("jump")
    net.host_tensor(TensorSpec("x", 8))
    for name, read in (("a", "x"), ("m", "x"), ("c", "a.t")):
        writes = (TensorSpec(f"{name}.t", 8),)
        net.op(OpSpec(name, "Op", "int8", flops=8, reads=(read,), writes=writes))
    net.output("m.t")
    net.output("c.t")
    text = named_block("concepts.md", "toy3.toml")
    assert 'long_edges = "forbid"' in text
    problem = Problem(net.build(), parse_package(text))
    chips = {"a": 0, "m": 1, "c": 2}
    chip_of = [chips[name] for name in problem.graph.op_name]
    metrics = evaluate(problem, Partition(problem.graph, np.array(chip_of)))
    assert metrics.valid
    # m reads and writes its own 8 bytes; what jumps over its chip adds nothing.
    assert (metrics.chips[1].in_bytes, metrics.chips[1].out_bytes) == (8, 8)
    assert [hop.bytes for hop in metrics.hops] == [8, 8]


def test_worked_optimum(worked):
    """No other of the 243 placements is valid and better than the one in the table."""
    rows = np.array(list(itertools.product(range(3), repeat=5)))
    bottleneck_s, valid = evaluate_many(worked, rows)
    best_s = bottleneck_s[valid].min()
    assert len(rows) == 243
    metrics = evaluate(worked, worked_partition(worked))
    assert metrics.valid
    assert metrics.bottleneck_s == pytest.approx(best_s)


@pytest.mark.parametrize("row", table("concepts.md", "long_edges"), ids=lambda r: r[0])
def test_worked_long_edges(worked, row):
    """The table of long edges says what the jump costs, and whether it is allowed."""
    package = named_block("concepts.md", "toy3.toml").replace("forbid", row[0])
    if row[0] != "forbid":
        package = package.replace('"triangle", ', "")
    problem = Problem(worked.model, parse_package(package))
    metrics = evaluate(problem, Partition(problem.graph, np.array([0, 1, 2, 2, 2])))
    assert metrics.valid == (row[0] != "forbid")
    if metrics.valid:
        assert metrics.bottleneck_s == pytest.approx(us(row[1]))
    rows = np.array(list(itertools.product(range(3), repeat=5)))
    bottleneck_s, valid = evaluate_many(problem, rows)
    is_optimum = metrics.bottleneck_s <= bottleneck_s[valid].min() * (1 + 1e-12)
    assert (metrics.valid and is_optimum) == ("this is the optimum" in row[2])


def test_worked_memory(worked):
    """All ops on one chip need the 332000 bytes of the text, more than it has."""
    metrics = evaluate(worked, Partition(worked.graph, np.zeros(5, dtype=np.int32)))
    load = metrics.chips[0]
    assert (load.weight_bytes, load.buffer_bytes, load.peak_live_bytes) == (
        250_000,
        22_000,
        60_000,
    )
    assert worked.package.chips[0].memory_bytes == 327_680
    assert not metrics.valid


def test_graph_example(playground):
    """The graph file of the formats page is one, with the costs it states."""
    graph = read_graph(playground / "tiny.graph.json")
    assert graph.op_name == ("mul", "relu")
    assert graph.op_flops.tolist() == [2048, 32]


def test_plan_keys():
    """The formats page lists exactly the keys of plan.json."""
    listed = set(
        re.findall(r"`([a-z_0-9.]+)(?:\[\])?`", _section("formats.md", "Plan"))
    )
    schema = Plan.model_json_schema()
    keys = set(schema["properties"])
    keys |= _nested(schema, "metrics", "Metrics")
    keys |= _nested(schema, "graph", "GraphRef") | _nested(
        schema, "package", "PackageRef"
    )
    keys |= _nested(schema, "search", "SearchInfo")
    keys |= _nested(schema, "search.settings", "Settings")
    keys |= set(schema["$defs"]["ChipRow"]["properties"])
    keys |= set(schema["$defs"]["LinkRow"]["properties"])
    keys -= {"graph", "package", "metrics", "search", "search.settings"}
    keys -= {"format", "version"}
    files = {"plan.json", "package.toml", "trace.jsonl", "graph.json.gz"}
    files.add("certificate.json")
    words = {"gap", "time", "evaluations", "done", "interrupt", "mcmpart.plan"}
    assert keys <= listed
    assert listed <= keys | files | words


def test_graph_keys():
    """The formats page lists exactly the keys of a graph file."""
    from mcmpart.graph.file import _GraphModel

    listed = {
        key
        for row in table("formats.md", "key", "content")
        for key in re.findall(r"`([a-z_0-9.]+)`", row[0])
    }
    schema = _GraphModel.model_json_schema()
    keys = set(schema["properties"])
    for part, model in (
        ("source", "_SourceModel"),
        ("ops", "_Ops"),
        ("tensors", "_Tensors"),
        ("uses", "_Uses"),
        ("weights", "_Weights"),
        ("weight_uses", "_WeightUses"),
    ):
        keys = keys - {part} | _nested(schema, part, model)
    assert listed == keys


def test_package_keys():
    """The formats page lists exactly the keys of a package file."""
    from mcmpart.hardware.package import Chip, Link, Package

    rows = next(
        t
        for t in tables(_section("formats.md", "Package"))
        if t[0] == ["key", "content"]
    )[1:]
    listed = {key for row in rows for key in re.findall(r"`([a-z_.]+)`", row[0])}
    top = {"name", "source", "topology", "long_edges", "io", "link_limit", "rules"}
    assert top < set(Package.__dataclass_fields__)
    chip = {f"chip.{key}" for key in (*Chip.__dataclass_fields__, "count")}
    assert listed == top | chip | {f"link.{key}" for key in Link.__dataclass_fields__}


def test_exit_codes():
    """The table of exit codes agrees with the errors."""
    from mcmpart import errors
    from mcmpart.cli.main import BAD_INPUT, INTERRUPTED

    stated = {int(row[0]) for row in table("formats.md", "code")}
    raised = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.McmpartError)
    }
    assert stated == raised | {0, BAD_INPUT, INTERRUPTED}


def test_every_dependency_has_a_reason():
    """Each library of pyproject.toml has its line in dependencies.md, and no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    for extra in project["project"].get("optional-dependencies", {}).values():
        wanted += extra
    names = {re.split(r"[\[<>=~! ]", line)[0] for line in wanted} - {"mcmpart"}
    text = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    stated = {row[0] for t in tables(text) for row in t[1:]}
    assert stated == names


def test_supported_ops_is_up_to_date():
    """The list of supported ops is what its script prints."""
    script = ROOT / "scripts/supported_ops.py"
    made = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs/supported-ops.md").read_text(encoding="utf-8")
    assert made.stdout == page, "run scripts/supported_ops.py"


def _commands():
    """Return (name, command) of every command and subcommand."""
    from mcmpart.cli.main import app

    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        nested = getattr(command, "commands", None) or {"": command}
        found |= {f"{name} {sub}".strip(): leaf for sub, leaf in nested.items()}
    return found


def test_every_command_has_a_section():
    """The command line page has one section per command, and no other."""
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## mcmpart (.*?)(?: [A-Z]+)?$", text, re.MULTILINE)
    assert sections == list(_commands())


@pytest.mark.parametrize("name", list(_commands()))
def test_every_option_is_listed(name):
    """The command's section lists exactly its options."""
    rows = tables(_section("cli.md", f"mcmpart {name}"))[0][1:]
    listed = {flag for row in rows for flag in re.findall(r"--?[a-z][a-z-]*", row[0])}
    options = {
        flag
        for parameter in _commands()[name].params
        for flag in parameter.opts
        if flag.startswith("-")
    }
    assert listed == options - {"--help", "-h"}


@pytest.mark.parametrize("name", list(_commands()))
def test_defaults_are_stated(name):
    """The defaults of numbers and names are those of the command."""
    rows = tables(_section("cli.md", f"mcmpart {name}"))[0][1:]
    stated = {re.findall(r"--[a-z-]+", row[0])[-1]: row[1].strip("`") for row in rows}
    for parameter in _commands()[name].params:
        default = parameter.default
        if isinstance(default, int | float | str) and not isinstance(default, bool):
            text = f"{default:g}" if isinstance(default, float) else str(default)
            assert stated[parameter.opts[0]] == text


def test_console_blocks(playground):
    """Each command prints what the page shows; a search, as far as it is the same."""
    shown = [body for info, body in blocks("cli.md") if info == ["console"]]
    for body in shown:
        command, _, expected = body.removeprefix("$ ").partition("\n")
        program, *arguments = shlex.split(command.replace("--time 5", "--time 1"))
        assert program == "mcmpart"
        ran = subprocess.run(
            [sys.executable, "-c", CALL, *arguments],
            cwd=playground,
            capture_output=True,
            text=True,
            check=False,
        )
        assert _fixed_part(ran.stderr + ran.stdout) == _fixed_part(expected), command


_CHANGES = re.compile(r"#|chip | +(\d|\.\.\.)|\d|stopped|latency|replicated")
"""How the lines begin that depend on the plan that was found."""


def _fixed_part(output):
    """Return the lines without what depends on the clock and on the kernels' cache."""
    lines = [line for line in output.splitlines() if "first run only" not in line]
    if not any(line.startswith("stopped after") for line in lines):
        return lines
    return [line for line in lines if not _CHANGES.match(line)]


def test_python_page(playground, monkeypatch):
    """Each Python block runs, and prints the text block behind it."""
    monkeypatch.chdir(playground)
    scope = {"__name__": "docs"}
    code = blocks("python.md")
    printed = 0
    for (info, body), (next_info, expected) in zip(
        code, [*code[1:], ([], "")], strict=True
    ):
        if info != ["python"]:
            continue
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(body, "docs/python.md", "exec"), scope)
        if next_info == ["text"]:
            assert out.getvalue() == expected
            printed += 1
    assert printed == sum(info == ["text"] for info, _ in code)


def test_readme_python(playground, monkeypatch):
    """The README's Python example runs."""
    monkeypatch.chdir(playground)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = next(body for info, body in BLOCK.findall(text) if info == "python")
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code.replace("time_s=5", "time_s=0.5"), "README.md", "exec"), {})
    assert "'node_embedding': 0" in out.getvalue()


def test_readme_sample(playground):
    """The README shows what its first command prints, as far as it is the same."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"&& mcmpart (partition .*)$", text, re.MULTILINE)[1]
    arguments = shlex.split(command.replace("--time 5", "--time 1"))
    ran = subprocess.run(
        [sys.executable, "-c", CALL, *arguments],
        cwd=playground,
        capture_output=True,
        text=True,
        check=True,
    )
    sample = next(body for info, body in BLOCK.findall(text) if info == "text")
    assert _fixed_part(ran.stdout) == _fixed_part(sample)
    # Those that begin with the number of figures, assumptions and warnings.
    for line in ran.stdout.splitlines():
        if line.startswith(("verified", "2 assumptions", "1 warning", "written")):
            assert line in sample.splitlines()


def test_ci_runs_the_readme_command():
    """What continuous integration runs is the README's test command."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if "[test]" in line)
    last = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1]
    assert last.replace("--quiet ", "") == command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page):
    """Each relative link leads to a file, and to a heading that it has."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        url = urlsplit(target)
        if url.scheme:
            continue
        path = (page.parent / url.path).resolve() if url.path else page
        assert path.exists(), target
        if url.fragment:
            assert url.fragment in _anchors(path), target


def _anchors(path):
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def _section(page, head):
    """Return the text of the section whose heading begins with ``head``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return next(part for part in text.split("\n## ") if part.startswith(head))


def _nested(schema, prefix, model):
    return {f"{prefix}.{key}" for key in schema["$defs"][model]["properties"]}
