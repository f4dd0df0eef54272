"""``mcmpart partition``: plans, options, bad input, interrupts."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcmpart.cli import partition
from mcmpart.cli._folder import output_folder
from mcmpart.errors import NoPlanFoundError
from mcmpart.hardware import preset_names
from mcmpart.hardware.loader import DEFAULT_PACKAGE
from mcmpart.plan import read_plan
from mcmpart.search import METHODS
from mcmpart.search.warm import warm_up
from mcmpart.verify import verify_plan

FILES = {
    "plan.json",
    "graph.json.gz",
    "package.toml",
    "certificate.json",
    "trace.jsonl",
}
QUICK = ("--chips", 4, "--time", 0.3)
UNPROVEN = ("--gap", 0, "--evaluations", 10**9)
"""A limit of evaluations leaves out the proof beside the search."""
LINE = re.compile(
    r"#\d+  \d+\.\ds  best [\d.]+ [num]?s  bound [\d.]+ [num]?s  gap \d+\.\d %  \w+"
)


def plan_of(cli, *arguments):
    """Return the plan that the command prints as JSON."""
    result = cli("partition", *arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_default(cli, bert, work):
    """A real model gives a verified plan in a folder of its name, and a summary."""
    result = cli("partition", bert, "--time", 0.5)
    assert result.exit_code == 0
    plan = verify_plan(Path("model.plan"))
    assert {path.name for path in Path("model.plan").iterdir()} == FILES
    assert (plan.package.name, plan.search.method) == (DEFAULT_PACKAGE, "auto")
    shown = result.stdout
    assert shown.splitlines()[0].split()[:3] == ["chip", "ops", "compute"]
    assert "proven lower bound" in shown
    assert re.search(
        r"^latency \d+ us per inference, energy [\d.]+ uJ$", shown, re.MULTILINE
    )
    assert "limits the throughput" in shown
    assert "2 assumptions:\n  the package gives no fp32 peak" in shown
    assert "stopped after 0." in shown
    assert "verified: 4 rules and 436 figures recomputed\n" in shown
    assert shown.endswith("written to model.plan/\n")


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("gnmt.graph.txt", "gnmt.plan"),
        ("graph.txt.gz", "graph.plan"),
        ("bert.json", "bert.plan"),
        ("toy.graph.json.gz", "toy.plan"),
        ("toy.onnx", "toy.plan"),
        ("v1.5", "v1.5.plan"),
        (".onnx", "model.plan"),
    ],
)
def test_name_of_the_folder(model, folder):
    """The folder has the model's name without the endings of models."""
    assert output_folder(Path("models") / model, None, ".plan") == Path(folder)


def test_progress_is_on_stderr(cli, model):
    """The import report in short, then a line for each improvement."""
    lines = cli("partition", model, *QUICK).stderr.splitlines()
    assert lines[:3] == [
        "6 nodes -> 6 ops (0 nodes folded to constants)",
        "100 % of ops, 100 % of estimated work have a cost rule",
        "dimension batch = 1",
    ]
    assert len(lines) > 3
    for line in lines[3:]:
        assert LINE.fullmatch(line), line


def test_json_is_the_plan(cli, model):
    """--json prints plan.json and the folder, and nothing else."""
    document = plan_of(cli, model, *QUICK, "-o", "some/where")
    assert document.pop("folder") == "some/where"
    written = json.loads(Path("some/where/plan.json").read_text())
    assert document == written


def test_every_option_is_kept(cli, model):
    """The plan records what was asked for."""
    document = plan_of(
        *(cli, model, "--package", "mtpp", "--chips", 3, "--method", "slice"),
        *("--time", 3, "--evaluations", 7, "--gap", 0.2, "--seed", 5, "--workers", 1),
        *("--dim", "batch=8", "--precision", "bf16", "--op-cost", "Relu=77"),
        *("--replica-threshold", 0.05),
        *("--pin", "mm_0=0", "--together", "mm_0,relu_0", "--apart", "mm_0,mm_2"),
        "--all-chips",
    )
    assert document["package"]["name"] == "mtpp"
    assert len(document["chips"]) == 3
    search = document["search"]
    assert (search["method"], search["seed"]) == ("slice", 5)
    assert search["settings"] == {
        "time_s": 3.0,
        "evaluations": 7,
        "gap": 0.2,
        "workers": 1,
        "precision": "bf16",
        "replica_threshold": 0.05,
        "pins": {"mm_0": 0},
        "together": [["mm_0", "relu_0"]],
        "apart": [["mm_0", "mm_2"]],
        "all_chips": True,
        "dims": {"batch": 8},
        "op_costs": {"Relu": 77},
    }


def test_replica_threshold(cli, bert):
    """--replica-threshold decides whether cheap ops are replicated, and it is shown."""
    some = cli("partition", bert, *QUICK, "--replica-threshold", 0.1).stdout
    assert "\nreplicated on every chip that needs them: " in some
    assert re.search(r"^ +\d+ +\d+\+\d+ ", some, re.MULTILINE)
    none = cli("partition", bert, *QUICK, "--replica-threshold", 0).stdout
    assert "replicated" not in none
    assert read_plan(Path("model.plan")).replicas == {}


def test_start_with_another_replica_threshold(cli, bert):
    """The threshold that is typed goes before that of the plan to start from."""
    assert cli("partition", bert, *QUICK, "--replica-threshold", 0.1).exit_code == 0
    options = ("--start", "model.plan", "--replica-threshold", 0, "-o", "again")
    plan = plan_of(cli, bert, *QUICK, *options)
    assert plan["search"]["settings"]["replica_threshold"] == 0
    assert plan["replicas"] == {}


def test_user_rules_hold(cli, model):
    """Ops are pinned, together and apart as asked; names may hold = and commas."""
    document = plan_of(
        *(cli, model, *QUICK, "--pin", "mm=1=1"),
        *("--together", 'mm=1,"relu, 1"', "--apart", 'mm_2,"relu, 1"'),
    )
    chip_of = document["chip_of"]
    assert chip_of["mm=1"] == chip_of["relu, 1"] == 1
    assert chip_of["mm_2"] == 2


def test_package_file(cli, model, package_file):
    """--package takes a file."""
    file = package_file("count = 36 ", "count = 2 ")
    assert len(plan_of(cli, model, "--package", file, "--time", 0.3)["chips"]) == 2


def test_one_chip(cli, model):
    """On one chip everything is on it, which is proven optimal."""
    result = cli("partition", model, "--chips", 1, "--gap", 0.5)
    assert result.exit_code == 0
    assert set(read_plan(Path("toy.plan")).chip_of.values()) == {0}


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(cli, graph_file, method):
    """Each method gives a plan that holds, named after the graph file."""
    options = ("--chips", 3, "--method", method, "--evaluations", 3, "--time", 2)
    assert cli("partition", graph_file, *options).exit_code == 0
    assert verify_plan(Path("chain.plan")).search.method == method


def test_time_is_kept(cli, graph_file):
    """The search ends within half a second of its limit."""
    # A limit of evaluations leaves out the proof, which would end it sooner.
    options = ("--time", 1, "--gap", 0, "--chips", 5, "--evaluations", 10**9)
    document = plan_of(cli, graph_file, "--method", "local", *options)
    assert document["search"]["stopped_by"] == "time"
    assert 1 <= document["search"]["seconds"] < 1.5


def test_start(cli, graph_file):
    """A search that starts from a plan is never worse than it."""
    options = ("--chips", 5, "--time", 1, "--gap", 0)
    first = plan_of(cli, graph_file, *options, "--evaluations", 4, "-o", "first")
    again = plan_of(
        *(cli, graph_file, *options, "--evaluations", 1, "--start", "first", "-o", "b")
    )
    assert again["metrics"]["bottleneck_s"] == first["metrics"]["bottleneck_s"]


def test_start_from_another_model(error, cli, model, graph_file):
    """A plan of another model is refused, with an op that tells them apart."""
    assert cli("partition", model, *QUICK).exit_code == 0
    assert "does not place op 'op_0'" in error(
        "partition", graph_file, "--start", "toy.plan"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--method", "slice", "--gap", 0.99), "within the gap of 99 %"),
        (("--method", "slice", "--evaluations", 1), "the limit of 1 partition"),
        ((), "proven optimal"),
        (("--method", "local", "--gap", 0), "proven optimal"),
        ((*UNPROVEN, "--method", "greedy"), "the method has nothing more to try"),
        ((*UNPROVEN, "--method", "local", "--time", 0.2), "the time limit of 0.2 s"),
    ],
)
def test_stop_reason(cli, graph_file, options, reason):
    """What ended the search is said in words."""
    shown = cli("partition", graph_file, "--chips", 5, *options).stdout
    assert re.search(
        rf"^stopped after .* partitions? judged: {reason}$", shown, re.MULTILINE
    )


def empty(path):
    """Write nothing."""
    path.write_bytes(b"")


def truncated(path):
    """Cut the model short."""
    path.write_bytes(path.read_bytes()[:2000])


def a_folder(path):
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def a_text(path):
    """Write a text."""
    path.write_text("not a model\n")


def unreadable(path):
    """Leave a link that leads to itself: nobody can read it, root neither."""
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (Path.unlink, "does not exist"),
        (empty, "is empty"),
        (truncated, "is not a whole ONNX model"),
        (a_folder, "is a folder, not a model"),
        (a_text, "is a text file, not a model"),
        (unreadable, "cannot read toy.onnx"),
    ],
)
def test_bad_model(error, model, work, spoil, text):
    """A model that cannot be used is refused in one sentence; nothing is left."""
    spoil(model)
    assert text in error("partition", model)
    assert not list(work.glob("*.plan"))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("count = 36 ", "count = 0 ", "chip.count is 0: choose from 1 to 64"),
        ("count = 36 ", "count = 1.5 ", "chip.count"),
        ('= "4 GB/s"', "= 0", "link.bandwidth_bytes_per_s is 0"),
        ('= "4 GB/s"', "= nan", "link.bandwidth_bytes_per_s is nan"),
        ("latency_s", "latencys", "did you mean 'latency_s'?"),
        ('["no_skip", ', '["noskip", ', "did you mean 'no_skip'?"),
        ("[chip]", "[chip", "package.toml"),
    ],
)
def test_bad_package(error, model, work, package_file, old, new, text):
    """A package file with a fault is refused with the key, the value and the remedy."""
    file = package_file(old, new)
    assert text in error("partition", model, "--package", file)
    assert not list(work.glob("*.plan"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--package", "ring35"), "did you mean 'ring36'?"),
        (("--package", "none.toml"), "none.toml does not exist"),
        (("--chips", 0), "choose from 1 to 64"),
        (("--method", "slce"), "did you mean 'slice'?"),
        (("--from", "tf"), "choose onnx, graph"),
        (("--time", 0), "the time limit is 0.0 s: give more than 0"),
        (("--time", "nan"), "the time limit is nan s"),
        (("--evaluations", 0), "give at least 1"),
        (("--gap", -1), "the gap is -1.0"),
        (("--gap", 5), "--gap is 5, and a gap is a share below 1: 0.05 is 5 %"),
        (("--gap", 1), "a gap is a share below 1"),
        (("--seed", -1), "--seed is -1: give 0 or more"),
        (("--workers", 0), "--workers is 0: give 1 to 1024"),
        (("--workers", 9999), "--workers is 9999: give 1 to 1024"),
        (("--replica-threshold", 2), "--replica-threshold is 2: give a share from 0"),
        (("--replica-threshold", "nan"), "--replica-threshold is nan"),
        (("--precision", "int9"), "the precision 'int9'"),
        (("--dim", "batch"), "NAME=N"),
        (("--op-cost", "Foo=3"), "--op-cost names Foo"),
        (("--pin", "mm_0=99"), "chips 0 to 35"),
        (("--pin", "mm_00=0"), "did you mean 'mm_0'?"),
        (("--together", "mm_0,relu_00"), "did you mean 'relu_0'?"),
        (("--apart", "mm_0,nothing like it"), "which the graph does not have"),
        (("--start", "nowhere"), "nowhere does not exist"),
        (("-o", ""), "-o is empty: name a folder"),
        (("-o", "toy.onnx"), "toy.onnx is a file"),
        (("-o", "toy.onnx/plan"), "toy.onnx is a file"),
    ],
)
def test_bad_option(error, model, work, options, text):
    """A value that cannot be used is refused in one sentence; nothing is left."""
    assert text in error("partition", model, *options)
    assert [path.name for path in work.iterdir()] == ["toy.onnx"]


def test_a_folder_that_refuses(error, model, monkeypatch):
    """A folder that cannot be written is refused before the search."""

    def refuse(**options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.delattr("mcmpart.cli.partition.run")
    assert "cannot write into out/x: No space left on device" in error(
        "partition", model, "-o", "out/x"
    )


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_folder_in_the_place_of_a_file(error, model, monkeypatch, name):
    """A folder where a file must go is refused before the search."""
    Path("out", name).mkdir(parents=True)
    monkeypatch.delattr("mcmpart.cli.partition.run")
    assert f"cannot write into out: out/{name} is a folder; remove it" in (
        error("partition", model, "-o", "out")
    )


def test_the_folder_is_locked_until_the_plan_is_verified(cli, model, monkeypatch):
    """No other run can write into the folder between writing and verifying."""
    fcntl = pytest.importorskip("fcntl")
    held = []

    def look(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(folder)
        finally:
            os.close(handle)
        return verify_plan(folder)

    monkeypatch.setattr(sys.modules["mcmpart.verify"], "verify_plan", look)
    assert cli("partition", model, *QUICK, "-o", "out").exit_code == 0
    assert held == [Path("out")]


def test_an_assumption_cannot_pass_for_a_line(cli, graph_file):
    """A line break in an assumption of the model's file is shown as its escape."""
    document = json.loads(graph_file.read_text())
    document["assumptions"] = ["so\nverified: 9 rules"]
    graph_file.write_text(json.dumps(document))
    shown = cli("partition", graph_file, *QUICK).stdout
    assert "  so\\nverified: 9 rules\n" in shown
    assert "\nverified: 9" not in shown


def test_an_option_is_answered_before_the_model_is_read(error, work):
    """A slip in an option does not wait for a large model to be read."""
    slips = (("--method", "no"), ("--package", "no"), ("--gap", "nan"))
    for slip in (*slips, ("--workers", 0), ("--replica-threshold", -1)):
        assert "huge.onnx" not in error("partition", "huge.onnx", *slip)


def test_does_not_fit(error, model, package_file, work):
    """A model that fits no chip ends with 1: the rule, the demand and the bound."""
    file = package_file('memory_bytes = "32 MiB"', 'memory_bytes = "1 KiB"')
    message = error("partition", model, "--package", file, code=1)
    assert re.search(r"needs [\d.]+ KiB and the roomiest chip has 1\.0 KiB", message)
    assert "give chips more memory" in message
    assert not list(work.glob("*.plan"))


def test_rules_that_contradict(error, model):
    """Rules of the user that no plan can meet end with 1, and say which."""
    options = ("--together", "mm_0,mm_2", "--apart", "mm_0,mm_2")
    message = error("partition", model, *options, code=1)
    assert "no plan exists: 'mm_0' and 'mm_2' must be apart" in message


class Impatient:
    """A method whose user presses Ctrl-C at once."""

    name = "impatient"
    done = False

    def __init__(self, setting):
        self.setting = setting

    def propose(self):
        """Raise what Ctrl-C raises."""
        raise KeyboardInterrupt


def test_no_plan_in_time(error, model, work, monkeypatch):
    """A search that met no valid plan ends with 3, and nothing is left."""

    def give_up(*arguments):
        raise NoPlanFoundError("no valid plan was found: give it more --time")

    monkeypatch.setattr("mcmpart.cli.partition.run", give_up)
    message = error("partition", model, code=3)
    assert message == "no valid plan was found: give it more --time"
    assert not list(work.glob("*.plan"))


def test_interrupted_before_a_plan(error, model, work, monkeypatch):
    """Ctrl-C before there is a plan ends with 130, and nothing is left."""
    warm_up()
    monkeypatch.setitem(METHODS, "greedy", Impatient)
    message = error("partition", model, "--method", "greedy", code=130)
    assert message == "interrupted before a plan was found: nothing was written"
    assert not list(work.glob("*.plan"))


def test_interrupted_search(graph_file):
    """Ctrl-C during the search keeps the best plan, which holds, and ends with 130."""
    options = ("--method", "local", "--gap", "0", "--time", "50", "--chips", "5")
    command = [sys.executable, "-m", "mcmpart", "partition", graph_file, *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.startswith("#"):
                break
        process.send_signal(signal.SIGINT)
        shown, log = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in log
    assert re.search(r"^stopped after .*: interrupted$", shown, re.MULTILINE)
    plan = verify_plan(Path("chain.plan"))
    assert plan.search.stopped_by == "interrupt"
    assert plan.search.seconds < 30


def test_a_second_interrupt_does_not_disturb():
    """While the plan is written Ctrl-C is ignored, and not afterwards."""
    before = signal.getsignal(signal.SIGINT)
    with partition._undisturbed():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_default_package_is_the_presets_default(cli):
    """Help shows the default package, which is one that ships."""
    assert DEFAULT_PACKAGE in preset_names()
    assert f"[default: {DEFAULT_PACKAGE}]" in cli("partition", "--help").stdout
