"""``mcmpart verify``: plans that hold, and plans that do not."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcmpart.bounds.prove import Bound
from mcmpart.partition import Partition
from mcmpart.plan import write_result
from mcmpart.solve import make_result


@pytest.fixture
def plan(cli, model):
    """Give the folder of a plan of the toy model on four chips."""
    options = ("--chips", 4, "--time", 0.3, "--all-chips", "-o", "plan")
    assert cli("partition", model, *options).exit_code == 0
    return Path("plan")


@pytest.fixture
def make_forged(work, toy):
    """Give a function that writes a plan of 7.2 s with a bound 1 % above 6.2 s."""

    def write(method):
        partition = Partition(toy.graph, np.array([0, 0, 0, 1, 1, 2]))
        result = make_result(toy, partition)
        bound = Bound(6.2 * 1.01, method)
        write_result(replace(result, bound=bound), work / method)
        return work / method

    return write


def tamper(plan, change):
    """Change the plan's document in place."""
    path = plan / "plan.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_holds(cli, plan):
    """A plan that holds is said to, with how much was recomputed."""
    result = cli("verify", plan)
    assert (result.exit_code, result.stderr) == (0, "")
    # dataflow, no_skip, triangle, memory and all_chips; 6 + 4 * 10 + 3 * 2 figures.
    assert re.fullmatch(
        r"verified: 5 rules and 52 figures recomputed\n"
        r"lower bound [\d.]+ us \(exhaustive\): confirmed in plain Python, by code "
        r"that no search uses\n",
        result.stdout,
    )


def test_json(cli, plan):
    """--json says so as an object; plan.json may be named itself."""
    result = cli("verify", plan / "plan.json", "--json")
    document = json.loads(result.stdout)
    assert document.pop("bound").startswith("lower bound ")
    assert document == {"ok": True, "differences": []}


def test_a_bound_that_does_not_hold(cli, make_forged):
    """A plan whose bound is above another plan is refused, in words and as JSON."""
    for method in ("ideals", "chain", "exact", "exhaustive"):
        folder = make_forged(method)
        result = cli("verify", folder)
        assert result.exit_code == 1
        assert "the plan does not hold: 1 difference" in result.stdout
        result = cli("verify", folder, "--json")
        assert (result.exit_code, json.loads(result.stdout)["ok"]) == (1, False)


def test_model(cli, plan, model):
    """--model reads the model again and finds the same graph."""
    result = cli("verify", plan, "--model", model)
    assert result.exit_code == 0
    assert "toy.onnx is the model that the plan was made for" in result.stdout


def test_another_model(cli, plan, graph_file):
    """--model with another model is a difference."""
    result = cli("verify", plan, "--model", graph_file)
    assert result.exit_code == 1
    assert result.stdout == (
        "the plan does not hold: 1 difference\n"
        "  chain.graph.json is not the model the plan was made for (its graph "
        "differs)\n"
    )


def test_differences(cli, plan):
    """A figure that is off is named with both values, and the exit code is 1."""
    tamper(plan, lambda document: document["metrics"].update(latency_s=1.0))
    result = cli("verify", plan)
    assert result.exit_code == 1
    head, line = result.stdout.splitlines()
    assert head == "the plan does not hold: 1 difference"
    assert line.startswith("  latency_s is 1.0, recomputed ")


def test_broken_rule_as_json(cli, plan):
    """A plan that breaks a rule lists it among the differences."""

    def move(document):
        document["chip_of"]["mm_0"] = 3

    tamper(plan, move)
    result = cli("verify", plan, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert any(line.startswith("rule dataflow") for line in document["differences"])


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda path: path.unlink(), "does not exist"),
        (lambda path: path.write_text(""), "is not a plan"),
        (lambda path: path.write_text("[1]"), "is not a plan"),
        (lambda path: path.write_text('{"format": "mcmpart.plan", "version": 9}'), "9"),
        (lambda path: path.write_text('{"format": "mcmpart.plan", "x": NaN}'), "NaN"),
    ],
)
def test_no_plan(error, plan, write, text):
    """What is no plan is refused in one sentence."""
    write(plan / "plan.json")
    assert text in error("verify", plan)


def test_unknown_key(error, plan):
    """An unknown key in a plan is answered with the nearest known one."""
    tamper(plan, lambda document: document.update(chip_off={}))
    assert "did you mean 'chip_of'?" in error("verify", plan)


def test_missing_graph(error, plan):
    """Without the graph beside it a plan cannot be checked."""
    (plan / "graph.json.gz").unlink()
    assert "graph.json.gz does not exist" in error("verify", plan)
