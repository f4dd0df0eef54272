"""Every shipped case from file to verified plan, at each chip count it asks for."""

import json
from pathlib import Path

import numpy as np
import pytest

import mcmpart

CASES = Path(__file__).parent / "data" / "cases"


def load_cases(kind):
    """Return the entries of one INDEX.json that must import."""
    index = json.loads((CASES / kind / "INDEX.json").read_text())
    return [case for case in index["cases"] if case["expect"] == "ok"]


def is_refused(case):
    """Return whether an error is a second acceptable result, and is ours."""
    return case["id"] == "no_shapes_at_all"


FAULTS = [case for case in load_cases("faults") if not is_refused(case)]
REAL = load_cases("real")


def solved(model, package, time_s=0.1):
    """Return the verified result of a short search."""
    problem = mcmpart.Problem(mcmpart.load_graph(model), package)
    result = mcmpart.solve(problem, time_s=time_s, workers=1)
    mcmpart.verify(result)
    return result


def folder_of(kind, case):
    """Return the path of a case's model."""
    return CASES / kind / case["file"]


@pytest.mark.parametrize("preset", ["ring36", "inferentia2-x12"])
@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case["id"])
def test_fault_case(case, preset):
    """Each small model gets a verified plan on as many chips as it asks for."""
    for chips in case["try_chips"]:
        package = mcmpart.load_package(preset).with_chips(chips)
        result = solved(folder_of("faults", case), package)
        assert 0 <= result.partition.num_used_chips <= chips
        reachable = case.get("checks", {}).get("min_chips_reachable", 0)
        assert result.partition.num_used_chips >= min(reachable, chips)


@pytest.mark.parametrize("chips", [2, 4, 8])
@pytest.mark.parametrize("case", REAL, ids=lambda case: case["id"])
def test_real_case(case, chips, tmp_path):
    """Each exported architecture gets a plan that its folder alone verifies."""
    model = folder_of("real", case)
    result = solved(model, mcmpart.load_package("ring36").with_chips(chips))
    mcmpart.write_result(result, tmp_path)
    plan = mcmpart.verify_plan(tmp_path, model)
    assert plan.metrics.lower_bound_s <= plan.metrics.bottleneck_s


@pytest.mark.parametrize("chips", [1, 2, 3, 5])
def test_constants_do_not_bridge(chips):
    """A chain with shared constants can use every number of chips."""
    model = CASES / "faults" / "const_sandwich" / "model.onnx"
    package = mcmpart.load_package("ring36").with_chips(chips)
    user = mcmpart.UserRules(all_chips=True)
    problem = mcmpart.Problem(mcmpart.load_graph(model), package, user=user)
    result = mcmpart.solve(problem, time_s=0.1)
    assert result.partition.num_used_chips == chips


def test_quantised_tensors_cross_the_cuts():
    """In a QDQ model every tensor between chips has one byte an element."""
    model = CASES / "faults" / "qdq_groups" / "model.onnx"
    result = solved(model, mcmpart.load_package("ring36").with_chips(3))
    graph, chip_of = result.problem.graph, result.partition.chip_of
    crossing = [
        graph.tensor_dtype[t]
        for t in range(graph.num_tensors)
        if graph.tensor_producer[t] >= 0
        and any(
            chip_of[v] != chip_of[graph.tensor_producer[t]]
            for v in graph.consumers.row(t)
        )
    ]
    assert crossing
    assert set(crossing) <= {"uint8", "int8"}


def test_equal_ops_are_shared_evenly():
    """Five equal ops on four chips: at most two on one, and no chip left out."""
    model = CASES / "faults" / "five_equal_on_four" / "model.onnx"
    result = solved(model, mcmpart.load_package("ring36").with_chips(4))
    counts = np.bincount(result.partition.chip_of)
    assert counts.max() == 2
    assert counts.min() >= 1


def test_a_large_layer_stands_alone():
    """The first layer, far larger than the ten others, has a chip of its own."""
    model = CASES / "faults" / "huge_first_layer" / "model.onnx"
    result = solved(model, mcmpart.load_package("cpu-x2").with_chips(4))
    chip_of = result.partition.chip_of
    assert (chip_of == chip_of[0]).sum() == 1


def test_tied_weight_counts_once_per_chip():
    """A weight that the first and the last op share is stored on both their chips."""
    model = CASES / "faults" / "tied_both_ends" / "model.onnx"
    result = solved(model, mcmpart.load_package("ring36").with_chips(4))
    graph, chip_of = result.problem.graph, result.partition.chip_of
    tied = int(np.argmax(np.diff(graph.users_of.indptr)))
    users = graph.users_of.row(tied)
    assert users.size == 2
    holders = {int(chip_of[op]) for op in users}
    stored = sum(load.weight_bytes for load in result.metrics.chips)
    copies = int(graph.weight_bytes[tied]) * (len(holders) - 1)
    assert stored == graph.weight_bytes.sum() + copies


@pytest.mark.parametrize(
    ("preset", "fewest"), [("ring36", 1), ("inferentia2-x12", 3), ("ipu-pod16", 3)]
)
def test_skips(preset, fewest):
    """A U-Net's skips keep few chips under forbid; relay and direct use more."""
    model = CASES / "faults" / "unet_skips" / "model.onnx"
    package = mcmpart.load_package(preset).with_chips(6)
    user = mcmpart.UserRules(all_chips=preset != "ring36")
    problem = mcmpart.Problem(mcmpart.load_graph(model), package, user=user)
    result = mcmpart.solve(problem, time_s=0.2)
    mcmpart.verify(result)
    assert result.partition.num_used_chips >= fewest
