"""``mcmpart bound``: a certificate in a folder, which ``verify`` confirms."""

import importlib
import json
from pathlib import Path

import pytest

from mcmpart import certify
from mcmpart.bounds.certificate import read_certificate
from mcmpart.plan import read_plan

FILES = {"certificate.json", "graph.json.gz", "package.toml"}
QUICK = ("--chips", 4, "--time", 5)
PLAINLY = "confirmed in plain Python, by code that no search uses"


@pytest.fixture
def folder(cli, graph_file):
    """Give the folder of a certificate of 12 ops in a row on four chips."""
    assert cli("bound", graph_file, *QUICK, "-o", "proof").exit_code == 0
    return Path("proof")


def tamper(path, change):
    """Change a document in place."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def raise_by(share):
    """Return a change that raises the bound of a certificate."""

    def change(document):
        document["bound_s"] *= 1 + share

    return change


def test_default(cli, graph_file):
    """A folder of the model's name with three files, and the bound in words."""
    result = cli("bound", graph_file, *QUICK)
    assert result.exit_code == 0
    assert {path.name for path in Path("chain.bound").iterdir()} == FILES
    first, proof, rate, plan, last = result.stdout.splitlines()
    assert first.startswith("proven lower bound ")
    assert first.endswith(" us (exhaustive):")
    assert proof == "  every partition was judged"
    assert rate.startswith("no partition has a throughput above ")
    assert plan.startswith("best plan met on the way: ")
    assert plan.endswith(" us, optimal")
    assert last == "written to chain.bound/"


def test_json(cli, graph_file):
    """--json prints one object, the certificate and its folder, and nothing else."""
    result = cli("bound", graph_file, *QUICK, "-o", "proof", "--json")
    document = json.loads(result.stdout)
    assert document.pop("folder") == "proof"
    assert document.pop("stopped_by") == "done"
    assert document.pop("best_s") == document["bound_s"]
    assert document == read_certificate(Path("proof")).model_dump()
    assert document["format"] == "mcmpart.certificate"


@pytest.mark.parametrize("method", ["chain", "ideals", "exact", "simple"])
def test_verify_accepts_it(cli, graph_file, method):
    """What each method proves is confirmed, in words and as one JSON object."""
    cli("bound", graph_file, *QUICK, "--method", method, "-o", "proof")
    for path in ("proof", "proof/certificate.json"):
        result = cli("verify", path)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith("lower bound ")
        assert result.stdout.endswith(f": {PLAINLY}\n")
        result = cli("verify", path, "--json")
        document = json.loads(result.stdout)
        assert (document["ok"], document["how"]) == (True, PLAINLY)
        assert document["bound_s"] == read_certificate(Path("proof")).bound_s


@pytest.mark.parametrize("method", ["exhaustive", "ideals", "chain", "exact", "simple"])
def test_a_forged_bound(cli, folder, method):
    """A bound 1 % above the optimum is refused, whatever method it claims."""

    def forge(document):
        document["bound_s"] *= 1.01
        document["method"] = method

    tamper(folder / "certificate.json", forge)
    result = cli("verify", folder)
    assert result.exit_code == 1
    assert "does not hold" in result.stdout or "is not confirmed" in result.stdout
    result = cli("verify", folder, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ok"] is False


def test_of_another_graph(cli, folder, model):
    """A certificate beside another graph or package is refused."""
    cli("bound", model, *QUICK, "--method", "simple", "-o", "other")
    Path("other/graph.json.gz").replace(folder / "graph.json.gz")
    result = cli("verify", folder)
    assert result.exit_code == 1
    assert "the certificate is for another graph" in result.stdout


def test_another_package(cli, folder, graph_file):
    """The package counts as well."""
    options = ("--chips", 5, "--method", "simple", "-o", "other")
    cli("bound", graph_file, *options)
    Path("other/package.toml").replace(folder / "package.toml")
    result = cli("verify", folder, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert document["how"] == "the certificate is for another package"


def test_a_rule_for_an_unknown_op(cli, folder):
    """A rule for an op that is not there is refused in a sentence."""

    def change(document):
        document["rules"]["pins"] = {"op_99": 0}

    tamper(folder / "certificate.json", change)
    result = cli("verify", folder)
    assert result.exit_code == 1
    assert "op 'op_99'" in result.stdout


def test_no_model_for_a_certificate(error, folder, graph_file):
    """--model would check nothing here, so it is refused."""
    assert "--model is for plans" in error("verify", folder, "--model", graph_file)


def test_missing_graph(error, folder):
    """Without the graph beside it a certificate cannot be checked."""
    (folder / "graph.json.gz").unlink()
    assert "graph.json.gz does not exist" in error("verify", folder)


def test_rules_of_the_user(cli, graph_file):
    """Demands change the bound, and stand in the certificate."""
    free = json.loads(cli("bound", graph_file, *QUICK, "--json").stdout)
    options = ("--together", "op_0,op_11", "-o", "proof", "--json")
    bound = json.loads(cli("bound", graph_file, *QUICK, *options).stdout)
    assert bound["bound_s"] > 2 * free["bound_s"]
    assert bound["rules"]["together"] == [["op_0", "op_11"]]
    assert cli("verify", "proof").exit_code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--method", "magic"), "there is no bound 'magic': choose one of chain"),
        (("--method", "ideal"), "did you mean 'ideals'?"),
        (("--time", 0), "the time limit is 0.0 s: give more than 0"),
        (("--time", "inf"), "the time limit is inf s"),
        (("-o", ""), "-o is empty"),
        (("-o", "chain.graph.json"), "is a file; choose another folder"),
    ],
)
def test_bad_options(error, graph_file, options, text):
    """A slip is answered in one sentence, and nothing is written."""
    assert text in error("bound", graph_file, *options)
    assert not list(Path().glob("*.bound"))


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_folder_in_the_place_of_a_file(error, graph_file, monkeypatch, name):
    """A folder where a file must go is refused before the proof."""
    Path("out", name).mkdir(parents=True)
    monkeypatch.delattr("mcmpart.certify.lower_bound")
    assert f"out/{name} is a folder; remove it" in (
        error("bound", graph_file, "-o", "out")
    )


def test_infeasible(error, graph_file, package_file):
    """A problem without any plan ends with 1, and the reason."""
    package = package_file('memory_bytes = "32 MiB"', 'memory_bytes = "1 KiB"')
    assert "roomiest" in error("bound", graph_file, "--package", package, code=1)


def test_the_certificate_of_a_plan(cli, graph_file):
    """A plan's folder has one too, and it may be verified by itself."""
    cli("partition", graph_file, "--chips", 4, "-o", "plan")
    plan, document = read_plan(Path("plan")), read_certificate(Path("plan"))
    assert document.bound_s == plan.metrics.lower_bound_s
    assert document.method == plan.metrics.lower_bound_method
    result = cli("verify", "plan/certificate.json")
    assert (result.exit_code, PLAINLY in result.stdout) == (0, True)
    tamper(Path("plan/certificate.json"), raise_by(0.01))
    assert cli("verify", "plan/certificate.json").exit_code == 1


def test_a_certificate_that_differs_from_its_plan(cli, graph_file):
    """A plan is verified with its certificate, if there is one."""
    cli("partition", graph_file, "--chips", 4, "-o", "plan")
    tamper(Path("plan/certificate.json"), raise_by(-0.5))
    result = cli("verify", "plan")
    assert result.exit_code == 1
    assert "certificate.json: bound_s is " in result.stdout
    Path("plan/certificate.json").unlink()
    result = cli("verify", "plan", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"]) == (0, True)
    assert PLAINLY in document["bound"]


def leave_open(monkeypatch):
    """Let no bound be confirmed or refuted; return what is said of it then."""
    # The package's attribute of this name is a function.
    verify = importlib.import_module("mcmpart.verify")
    open_ = verify.Confirmed.OPEN
    monkeypatch.setattr(verify, "confirm_certificate", lambda *arguments: open_)
    return open_


def test_a_certificate_that_stays_open(cli, folder, monkeypatch):
    """Neither confirmed nor refuted is no success; of a plan's bound it is said."""
    open_ = leave_open(monkeypatch)
    result = cli("verify", folder)
    assert (result.exit_code, open_.value in result.stdout) == (3, True)
    result = cli("verify", folder, "--json")
    document = json.loads(result.stdout)
    assert (document["ok"], document["how"]) == (False, open_.value)


def test_a_plan_whose_bound_stays_open(cli, graph_file, monkeypatch):
    """Rules and figures of the plan hold all the same."""
    cli("partition", graph_file, "--chips", 4, "-o", "plan")
    open_ = leave_open(monkeypatch)
    result = cli("verify", "plan")
    assert (result.exit_code, open_.value in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("stopped_by", "words", "code"),
    [("time", "the time limit", 0), ("interrupt", "Ctrl-C", 130)],
)
def test_stopped_early(cli, graph_file, monkeypatch, stopped_by, words, code):
    """A bound that was stopped is written, and what stopped it is said."""
    prove = certify.proven

    def stopped(*arguments):
        return prove(*arguments)._replace(stopped_by=stopped_by)

    monkeypatch.setattr(certify, "proven", stopped)
    result = cli("bound", graph_file, *QUICK, "-o", "proof")
    assert result.exit_code == code
    assert f"stopped by {words}: a longer proof may" in result.stdout
    assert (Path("proof") / "certificate.json").exists()


@pytest.mark.parametrize("method", ["simple", "ideals", "exhaustive"])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("graph_sha256", "00", "for another graph"),
        ("package_sha256", "00", "for another package"),
        ("rules", {"pins": {"op_99": 0}}, "op 'op_99'"),
        ("rules", {"pins": {"op_1": 4}}, "to chip 4"),
        ("rules", {"apart": [["op_1", "op_1"]]}, "nothing can keep to the rules"),
        ("ranges", [[0.0, 0.0]], "has 1 ranges"),
    ],
)
def test_a_low_bound_for_something_else(cli, folder, method, key, value, words):
    """However low a bound is, it is one for this graph, package and rules."""

    def change(document):
        document.update({"method": method, "bound_s": 1e-9, key: value})

    tamper(folder / "certificate.json", change)
    result = cli("verify", folder)
    assert (result.exit_code, words in result.stdout) == (1, True)


def test_what_proved_nothing(cli, graph_file, monkeypatch):
    """A method that came no further than the simple bound says what to try."""
    prove = certify.proven

    def simple(*arguments):
        found = prove(*arguments)
        bound_s = found.certificate.bound_s / 2
        weak = found.certificate.model_copy(
            update={"method": "simple", "bound_s": bound_s}
        )
        return found._replace(certificate=weak, stopped_by="time")

    monkeypatch.setattr(certify, "proven", simple)
    result = cli("bound", graph_file, *QUICK, "--method", "ideals", "-o", "proof")
    assert "gap 50.0 %" in result.stdout
    assert "ideals proved no more than simple: try another --method" in result.stdout
