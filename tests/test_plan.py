"""plan.json: written whole or not at all, and read strictly."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from mcmpart import plan as plan_module
from mcmpart._version import __version__
from mcmpart.errors import InputError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.file import content_hash, read_graph
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import package as hardware
from mcmpart.hardware.loader import load_package
from mcmpart.partition import Partition
from mcmpart.plan import ImportSettings, make_plan, read_plan, write_result
from mcmpart.problem import Problem, UserRules
from mcmpart.solve import make_result, solve
from mcmpart.verify import verify_plan

FILES = {
    "plan.json",
    "graph.json.gz",
    "package.toml",
    "certificate.json",
    "trace.jsonl",
}


def result_of(problem, *chips):
    """Return the result of the partition with these chips."""
    return make_result(problem, Partition(problem.graph, np.array(chips)))


@pytest.fixture
def result(toy):
    """Give a result of the toy: stages of 6.2, 4.2 and 6.2 s."""
    return result_of(toy, 0, 0, 1, 1, 2, 2)


@pytest.fixture
def document(result, tmp_path):
    """Give the plan of that result as JSON, written in ``tmp_path``."""
    return json.loads(write_result(result, tmp_path).read_text())


def files_in(folder):
    """Return the names of the files in ``folder``, hidden ones too."""
    return {path.name for path in folder.iterdir()}


def test_round_trip(toy, tmp_path):
    """What is written is read back equal, by file and by folder."""
    user = UserRules({"op_0": 0}, (("op_0", "op_1"),), (("op_0", "op_5"),), True)
    problem = Problem(toy.model, toy.package, user=user)
    result = solve(problem, seed=3, workers=2)
    imported = ImportSettings(dims={"batch": 8}, op_costs={"a::B": 5})
    path = write_result(result, tmp_path / "new" / "folder", imported)
    plan = read_plan(path)
    assert plan == make_plan(result, imported)
    assert read_plan(path.parent) == plan
    assert files_in(path.parent) == FILES


def test_what_a_plan_says(toy, tmp_path):
    """Identity, placement, figures and settings, by hand."""
    user = UserRules({"op_0": 0}, (("op_0", "op_1"),), (("op_0", "op_5"),), True)
    problem = Problem(toy.model, toy.package, user=user)
    result = result_of(problem, 0, 0, 1, 1, 2, 2)
    plan = make_plan(result, ImportSettings(dims={"n": 2}))
    assert (plan.format, plan.version) == ("mcmpart.plan", 1)
    assert (plan.graph.name, plan.graph.sha256) == (
        "chain_6",
        content_hash(problem.graph),
    )
    assert asdict_of(plan.package) == {
        "name": "toy",
        "sha256": hardware.content_hash(toy.package),
        "chips": 3,
    }
    assert plan.rules == ["no_skip", "triangle", "memory"]
    assert (plan.long_edges, plan.io) == ("forbid", "serial")
    assert list(plan.chip_of.values()) == [0, 0, 1, 1, 2, 2]
    assert plan.replicas == {}
    assert plan.metrics.bottleneck_s == pytest.approx(6.2)
    assert plan.metrics.throughput_per_s == pytest.approx(1 / 6.2)
    assert plan.metrics.lower_bound_s == pytest.approx(16 / 3)
    assert plan.metrics.gap == pytest.approx(1 - 16 / 3 / 6.2)
    assert [row.stage_s for row in plan.chips] == pytest.approx([6.2, 4.2, 6.2])
    assert [(row.hop, row.bytes) for row in plan.links] == [(0, 1), (1, 1)]
    assert (plan.search.method, plan.search.version) == ("given", __version__)
    assert asdict_of(plan.search.settings) == {
        "time_s": 10.0,
        "evaluations": None,
        "gap": 0.0,
        "workers": 1,
        "precision": "auto",
        "replica_threshold": None,
        "pins": {"op_0": 0},
        "together": [["op_0", "op_1"]],
        "apart": [["op_0", "op_5"]],
        "all_chips": True,
        "dims": {"n": 2},
        "op_costs": {},
    }


def asdict_of(model):
    """Return a part of a plan as a dict."""
    return model.model_dump()


def test_replicas_are_listed_by_chip(make_package):
    """Each chip that needs a replicable op lists it; the op itself is on none."""
    net = GraphBuilder("masked")
    net.host_tensor(TensorSpec("x", 1))
    for name, reads in (("mask", ("x",)), ("a", ("mask.t",)), ("b", ("a.t", "mask.t"))):
        out = (TensorSpec(f"{name}.t", 1),)
        copied = name == "mask"
        spec = OpSpec(
            name, "Op", seconds=1.0, replicable=copied, reads=reads, writes=out
        )
        net.op(spec)
    net.output("b.t")
    plan = make_plan(result_of(Problem(net.build(), make_package(2)), -1, 0, 1))
    assert plan.chip_of == {"a": 0, "b": 1}
    assert plan.replicas == {"0": ["mask"], "1": ["mask"]}


def test_the_files_beside_it(result, tmp_path):
    """Graph, package and trace are those of the result; the graph is gzip."""
    write_result(result, tmp_path)
    graph = read_graph(tmp_path / "graph.json.gz")
    assert content_hash(graph) == content_hash(result.problem.graph)
    assert (tmp_path / "graph.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert load_package(tmp_path / "package.toml") == result.problem.package
    assert (tmp_path / "trace.jsonl").read_bytes() == b""


def test_the_trace_is_one_object_a_line(toy, tmp_path):
    """Each improvement is a line of JSON, in order."""
    result = solve(toy, method="slice", time_s=0.1, workers=1)
    write_result(result, tmp_path)
    lines = (tmp_path / "trace.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [asdict(p) for p in result.trace]
    assert len(lines) >= 1


@pytest.mark.parametrize(
    "broken", ["write_graph", "to_toml", "write_certificate", "write_atomic"]
)
def test_a_failure_in_the_middle(result, tmp_path, monkeypatch, broken):
    """No plan.json stands beside files of another plan, wherever writing ends."""
    write_result(result, tmp_path)

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plan_module, broken, fail)
    with pytest.raises(OSError, match="No space left"):
        write_result(result, tmp_path)
    assert not (tmp_path / "plan.json").exists()
    assert files_in(tmp_path) == FILES - {"plan.json"}


def test_a_failure_before_the_first_file(result, tmp_path, monkeypatch):
    """A result that cannot be said leaves the old plan whole."""
    write_result(result, tmp_path)
    monkeypatch.setattr(plan_module, "make_plan", None)
    with pytest.raises(TypeError):
        write_result(result, tmp_path)
    assert verify_plan(tmp_path)


def test_written_last(result, tmp_path, monkeypatch):
    """plan.json is removed before any other file is written, and written after all."""
    write_result(result, tmp_path)
    seen = []
    write = plan_module.write_atomic

    def spy(path, data):
        seen.append((path.name, (tmp_path / "plan.json").exists()))
        write(path, data)

    monkeypatch.setattr(plan_module, "write_atomic", spy)
    write_result(result, tmp_path)
    assert seen == [
        ("package.toml", False),
        ("trace.jsonl", False),
        ("plan.json", False),
    ]
    assert verify_plan(tmp_path)


def test_written_again(toy, tmp_path):
    """A plan for another partition replaces the one before, with its files."""
    write_result(result_of(toy, 0, 0, 1, 1, 2, 2), tmp_path)
    write_result(result_of(toy, 0, 0, 0, 1, 1, 1), tmp_path)
    assert list(verify_plan(tmp_path).chip_of.values()) == [0, 0, 0, 1, 1, 1]
    assert files_in(tmp_path) == FILES


def test_same_result_same_bytes(result, tmp_path):
    """Two writes of one result give the same bytes in every file."""
    write_result(result, tmp_path / "a")
    write_result(result, tmp_path / "b")
    for name in FILES:
        first, second = (tmp_path / folder / name for folder in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_the_folder_is_a_file(result, tmp_path):
    """A name that is taken by a file is refused in one sentence."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="cannot make the folder"):
        write_result(result, tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_plan_json_is_a_folder(result, tmp_path):
    """A folder in the place of plan.json is refused, and left alone."""
    (tmp_path / "plan.json" / "inner").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot replace"):
        write_result(result, tmp_path)
    assert files_in(tmp_path) == {"plan.json"}


def test_a_graph_that_costs_nothing(make_package, tmp_path):
    """Its throughput has no limit, which JSON says as null."""
    views = chain(2, flops=0, tensor_bytes=0)
    result = result_of(Problem(views, make_package(2)), 0, 0)
    assert math.isinf(result.metrics.throughput_per_s)
    path = write_result(result, tmp_path)
    assert json.loads(path.read_text())["metrics"]["throughput_per_s"] is None
    plan = verify_plan(tmp_path)
    assert plan.metrics.throughput_per_s is None
    assert (plan.metrics.gap, plan.metrics.bottleneck_s) == (0, 0)


def test_a_graph_without_ops(make_package, tmp_path):
    """Nothing to place is a plan too."""
    empty = Problem(GraphBuilder("empty").build(), make_package(2))
    write_result(solve(empty), tmp_path)
    assert verify_plan(tmp_path).chip_of == {}


@pytest.mark.parametrize(
    "name",
    ["", "a b", "añ/层:0", "line\nbreak", '"quoted"\\', "\x00", "lone \ud800 half"],
)
def test_names_survive(make_package, tmp_path, name):
    """Op names of any kind come back as they were, in plan and graph."""
    net = GraphBuilder("named")
    net.host_tensor(TensorSpec("x", 1))
    for op, reads in ((name, "x"), ("next", "t")):
        out = (TensorSpec("t" if op == name else "y", 1),)
        net.op(OpSpec(op, "Op", seconds=1.0, reads=(reads,), writes=out))
    net.output("y")
    user = UserRules({name: 0}, apart=((name, "next"),))
    problem = Problem(net.build(), make_package(2), user=user)
    write_result(result_of(problem, 0, 1), tmp_path)
    plan = verify_plan(tmp_path)
    assert plan.chip_of == {name: 0, "next": 1}
    assert plan.search.settings.pins == {name: 0}
    assert read_graph(tmp_path / "graph.json.gz").op_name == (name, "next")


def refusal(tmp_path, document):
    """Return the sentence with which the reader refuses ``document``."""
    path = tmp_path / "plan.json"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_whole_document_is_read(document, tmp_path):
    """The document that the refusals below start from is a plan."""
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert read_plan(tmp_path).chip_of == document["chip_of"]


def test_unknown_key(document, tmp_path):
    """An unknown key is named with its place and the nearest known one."""
    document["metrics"]["latency"] = 1.0
    assert "'metrics.latency' is no key of a plan (did you mean 'latency_s'?)" in (
        refusal(tmp_path, document)
    )


def test_unknown_key_at_the_top(document, tmp_path):
    """At the top as well, and with nothing near there is no guess."""
    document["zzz"] = 1
    assert "'zzz' is no key of a plan: remove or rename it" in (
        refusal(tmp_path, document)
    )


@pytest.mark.parametrize(
    "place",
    [
        ("metrics",),
        ("metrics", "gap"),
        ("chips", 1, "stage_s"),
        ("links", 0, "bytes"),
        ("search", "settings", "pins"),
        ("warnings",),
        ("package", "chips"),
    ],
)
def test_missing_key(document, tmp_path, place):
    """Every key is needed; the one that is missing is named with its place."""
    *path, last = place
    part = document
    for key in path:
        part = part[key]
    del part[last]
    place = ".".join(map(str, place))
    assert f"the key {place!r} is missing: add it" in refusal(tmp_path, document)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("chips", 0, "ops"), True, "'chips.0.ops' is True"),
        (("chips", 0, "ops"), 2.0, "'chips.0.ops' is 2.0"),
        (("chips", 0, "ops"), "2", "'chips.0.ops' is '2'"),
        (("chips", 0, "ops"), -1, "'chips.0.ops' is -1"),
        (("chip_of", "op_0"), True, "'chip_of.op_0' is True"),
        (("chip_of", "op_0"), None, "'chip_of.op_0' is None"),
        (("metrics", "latency_s"), "1", "'metrics.latency_s' is '1'"),
        (("metrics", "latency_s"), True, "'metrics.latency_s' is True"),
        (("metrics", "latency_s"), -1.0, "'metrics.latency_s' is -1.0"),
        (("metrics", "latency_s"), None, "'metrics.latency_s' is None"),
        (("metrics", "gap"), 10**400, "'metrics.gap' is 1000"),
        (("search", "settings", "all_chips"), 1, "'search.settings.all_chips' is 1"),
        (
            ("search", "settings", "apart"),
            [["op_0"]],
            "'search.settings.apart.0' is ['op_0']",
        ),
        (("rules",), "no_skip", "'rules' is 'no_skip'"),
        (("graph", "name"), 5, "'graph.name' is 5"),
    ],
)
def test_wrong_value(document, tmp_path, place, value, words):
    """A value of the wrong kind is refused with its place; nothing is converted."""
    *path, last = place
    part = document
    for key in path:
        part = part[key]
    assert last in part or isinstance(part, list)
    part[last] = value
    assert words in refusal(tmp_path, document)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_not_finite(document, tmp_path, number):
    """Numbers that are not finite are refused."""
    text = json.dumps(document).replace(
        f'"latency_s": {document["metrics"]["latency_s"]}', f'"latency_s": {number}'
    )
    assert f"holds the number {number}: a plan may hold finite" in (
        refusal(tmp_path, text)
    )


@pytest.mark.parametrize("version", [0, 2, "1", True, 1.0, None, [1]])
def test_other_version(document, tmp_path, version):
    """Only version 1, a whole number, is read."""
    document["version"] = version
    assert (
        f"is a plan of version {version!r}, and this mcmpart reads version 1: make it "
        "again with this version"
    ) in refusal(tmp_path, document)


@pytest.mark.parametrize("content", [{"format": "mcmpart.graph"}, {}, [1], "plan", 5])
def test_other_format(tmp_path, content):
    """What is JSON but no plan is refused as such."""
    assert 'is not a plan: its "format" must be "mcmpart.plan"' in (
        refusal(tmp_path, json.dumps(content))
    )


@pytest.mark.parametrize("text", ["", "{", "plan", "[" * 100_000])
def test_not_json(tmp_path, text):
    """What is no JSON is refused as such."""
    assert "is not a plan" in refusal(tmp_path, text)


def test_twin_keys(document, tmp_path):
    """A key that stands twice is refused: only one of them could be read."""
    text = json.dumps(document).replace('"op_0":', '"op_1":')
    assert "holds the key 'op_1' twice" in refusal(tmp_path, text)


def test_no_plan_there(tmp_path):
    """A missing plan is said with the file that was looked for."""
    with pytest.raises(InputError, match=r"plan\.json does not exist: check the name"):
        read_plan(tmp_path)


def test_notes_are_kept_as_warnings(result, tmp_path):
    """What the search notes stands in the plan."""
    write_result(replace(result, notes=("a note",)), tmp_path)
    assert read_plan(tmp_path).warnings == ["a note"]
