"""verify: the files beside a plan, and the model that it was made from."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcmpart.errors import InputError
from mcmpart.frontends.load import load_graph
from mcmpart.graph.file import write_graph
from mcmpart.graph.synthetic import chain
from mcmpart.hardware import load_package
from mcmpart.partition import Partition
from mcmpart.plan import ImportSettings, write_result
from mcmpart.problem import Problem, UserRules
from mcmpart.solve import make_result, solve
from mcmpart.verify import find_differences

DYNAMIC = Path(__file__).parent / "data/cases/faults/dyn_batch/model.onnx"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def written(make_package):
    """Give a result of six ops on three chips, written to the current folder."""
    graph = chain(6, flops=7, tensor_bytes=3, weight_bytes=5)
    user = UserRules({"op_5": 2})
    problem = Problem(graph, make_package(3), user=user)
    chip_of = Partition(problem.graph, np.array([0, 0, 1, 1, 2, 2]))
    result = make_result(problem, chip_of)
    write_result(result, Path())
    assert find_differences(Path())[1] == []
    return result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("link_limit = true", "link_limit = false"),
        ("op_overhead_s = 0.5", "op_overhead_s = 0.25"),
        ("e_link_j_per_byte = 3.0", "e_link_j_per_byte = 4.0"),
        ("memory_bytes = 1000000000", "memory_bytes = 1000000001"),
    ],
)
def test_another_package(written, old, new):
    """Any number or switch of package.toml that is changed is noticed."""
    path = Path("package.toml")
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    _, found = find_differences(Path())
    assert found == [
        "the package is not the one the plan was made for (its content differs)"
    ]


def test_other_rules_of_the_package(written):
    """Rules switched off in package.toml are shown beside those of the plan."""
    path = Path("package.toml")
    text = path.read_text()
    path.write_text(text.replace('    "memory",\n', ""))
    assert path.read_text() != text
    _, found = find_differences(Path())
    assert any(
        "the package has (['no_skip', 'triangle'], 'forbid'" in line for line in found
    )


def test_names_are_free(written):
    """A package or graph of another name and source is the same."""
    path = Path("package.toml")
    path.write_text(path.read_text().replace('"toy"', '"renamed"'))
    graph = replace(written.problem.graph, name="renamed")
    write_graph(graph, Path("graph.json.gz"))
    assert find_differences(Path())[1] == []


def test_another_graph(written):
    """A graph.json.gz of other numbers is noticed."""
    graph = written.problem.graph
    for column in ("op_flops", "op_bytes", "tensor_bytes", "weight_bytes"):
        changed_graph = replace(graph, **{column: getattr(graph, column) + 1})
        write_graph(changed_graph, Path("graph.json.gz"))
        assert find_differences(Path())[1] == [
            "the graph is not the one the plan was made for (its content differs)"
        ]


@pytest.mark.parametrize("name", ["graph.json.gz", "package.toml", "plan.json"])
def test_missing_files(written, name):
    """A file that is missing beside the plan is an error of input, by name."""
    Path(name).unlink()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        find_differences(Path())


def test_the_same_model(written):
    """--model reads the model again; the same graph is no difference."""
    model = Path("model.graph.json")
    write_graph(written.problem.model, model)
    assert find_differences(Path(), model)[1] == []


def test_another_model(written):
    """Another model is one difference."""
    model = Path("model.graph.json")
    graph = written.problem.model
    write_graph(replace(graph, op_flops=graph.op_flops + 1), model)
    _, found = find_differences(Path(), model)
    assert found == [
        "model.graph.json is not the model the plan was made for (its graph differs)"
    ]


def test_a_model_that_the_rules_do_not_fit(written):
    """A model without the ops that the user's rules name is a difference too."""
    model = Path("model.graph.json")
    write_graph(chain(3), model)
    _, (found,) = find_differences(Path(), model)
    assert found.startswith("model.graph.json is not the model the plan was made for (")
    assert "names op 'op_5', which the graph does not have" in found


@pytest.mark.parametrize(
    ("settings", "holds"),
    [
        ({}, True),
        ({"dims": {"batch": 5}}, False),
        ({"dims": {}}, False),
        ({"precision": "fp32"}, False),
    ],
)
def test_the_model_is_read_as_the_plan_says(settings, holds):
    """Dims and precision of the plan are used, and others give another graph."""
    dims = {"batch": 4}
    graph = load_graph(DYNAMIC, dims=dims)
    package = load_package("ring36").with_chips(2)
    result = solve(Problem(graph, package), method="greedy")
    write_result(result, Path(), ImportSettings(dims=dims))
    document = json.loads(Path("plan.json").read_text())
    document["search"]["settings"].update(settings)
    Path("plan.json").write_text(json.dumps(document))
    _, found = find_differences(Path(), DYNAMIC)
    assert (found == []) == holds
