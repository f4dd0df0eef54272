"""verify: what a plan states is recomputed, and no statement of fact goes unchecked."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcmpart.errors import InputError, VerificationError
from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.file import content_hash
from mcmpart.partition import Partition
from mcmpart.plan import ImportSettings, make_plan, write_result
from mcmpart.problem import Problem, UserRules
from mcmpart.solve import make_result, solve
from mcmpart.verify import differences, find_differences, verify, verify_plan

FREE = {
    # Names; the contents are compared by hash.
    "graph.name",
    "package.name",
    # How the plan was found, which no recomputation can tell.
    "search.method",
    "search.seed",
    "search.evaluations",
    "search.seconds",
    "search.version",
    "search.settings.time_s",
    "search.settings.evaluations",
    "search.settings.gap",
    "search.settings.workers",
    # How the graph was made from the model, which --model checks.
    "search.settings.precision",
    "search.settings.replica_threshold",
    "search.settings.dims.n",
    "search.settings.op_costs.a::B",
    # Words.
    "assumptions",
    "warnings",
}
"""Leaves of a plan that may say anything, by decision."""


def network(*ops):
    """Return a graph of (name, reads): every op has work, a weight and an output.

    The op ``mask`` is replicable. The last op's tensor is the model output.
    """
    net = GraphBuilder("net")
    net.host_tensor(TensorSpec("x", 3))
    for i, (name, reads) in enumerate(ops):
        net.weight(TensorSpec(f"{name}.w", 7 + i))
        net.op(
            OpSpec(
                name,
                "Op",
                flops=30 + i,
                bytes=200 + 10 * i,
                replicable=name == "mask",
                reads=tuple("x" if read == "x" else f"{read}.t" for read in reads),
                weights=(f"{name}.w",),
                writes=(TensorSpec(f"{name}.t", 2 + i),),
            )
        )
    net.output(f"{ops[-1][0]}.t")
    net.assume("a guess")
    return net.build()


def result_of(problem, *chips):
    """Return the result of the partition with these chips."""
    return make_result(problem, Partition(problem.graph, np.array(chips)))


@pytest.fixture
def replicas(make_package):
    """Give a ring with a replicated mask, user rules, and one chip that is empty."""
    graph = network(
        ("mask", ("x",)),
        ("a", ("x", "mask")),
        ("a2", ("a",)),
        ("b", ("a2", "mask")),
        ("c", ("b", "mask")),
    )
    user = UserRules({"c": 2}, (("a", "a2"),), (("a", "b"),))
    return result_of(Problem(graph, make_package(4), user=user), -1, 0, 0, 1, 2)


@pytest.fixture
def relay(make_package):
    """Give a ring where a tensor is relayed over a chip, and a chip is empty."""
    graph = network(("s", ("x",)), ("a", ("s",)), ("b", ("a",)), ("c", ("a", "b")))
    package = make_package(4, long_edges="relay", io="overlap")
    result = result_of(Problem(graph, package), 0, 0, 1, 2)
    # Both chips read what a writes, so that its 3 bytes count on two hops.
    assert [hop.bytes for hop in result.metrics.hops] == [3, 7, 0]
    return result


@pytest.fixture
def crossbar(make_package):
    """Give a crossbar, where any two chips are one hop apart."""
    graph = network(("a", ("x",)), ("b", ("a",)), ("c", ("a", "b")))
    package = make_package(4, topology="crossbar", long_edges="direct", rules=())
    return result_of(Problem(graph, package), 0, 1, 3)


@pytest.fixture
def exhaustive(make_package):
    """Give a plan that is proven optimal by looking at all partitions."""
    graph = network(("a", ("x",)), ("b", ("a",)), ("c", ("a", "b")))
    result = solve(Problem(graph, make_package(3)))
    assert result.lower_bound_method == "exhaustive"
    return result


@pytest.fixture(params=["replicas", "relay", "crossbar", "exhaustive"])
def result(request):
    """Give each of the plans in turn."""
    return request.getfixturevalue(request.param)


def document_of(result):
    """Return the plan of ``result`` as a document."""
    imported = ImportSettings(dims={"n": 2}, op_costs={"a::B": 5})
    return make_plan(result, imported).model_dump()


def is_caught(document):
    """Return whether a changed document is found to differ, or is no plan at all."""
    path = Path("plan.json")
    path.write_text(json.dumps(document))
    try:
        return bool(find_differences(path)[1])
    except InputError:
        return True


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def leaves(part, *place):
    """Yield the place of every value that holds no others."""
    if isinstance(part, dict | list):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in items:
            yield from leaves(value, *place, key)
    else:
        yield place


def name_of(place):
    """Return what a place is called in ``FREE``: all words of one list are alike."""
    return place[0] if place[0] in FREE else ".".join(map(str, place))


def changes(value):
    """Yield other values of the same kind, the smallest change among them."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        if value:
            yield value - 1
    elif isinstance(value, float):
        yield value * (1 + 1e-8) if value else 1e-11
        yield value * 2 + 1
        yield 0.0 if value else 1.0
    elif isinstance(value, str):
        yield value + "x"
        yield ""
    else:
        yield 1


def changed(document, place, value):
    """Return the document with another value in one place."""
    copy = deepcopy(document)
    part = copy
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return copy


def test_the_plans_hold(result):
    """As they are, the plans below verify."""
    verify(result)
    write_result(result, Path())
    assert not is_caught(document_of(result))


def test_every_fact_is_protected(result):
    """Each value of a plan, changed alone, is found out, but for those listed."""
    write_result(result, Path())
    document = document_of(result)
    unprotected = {
        name_of(place)
        for place in leaves(document)
        for value in changes(value_at(document, place))
        if not is_caught(changed(document, place, value))
    }
    assert unprotected - FREE == set()


def value_at(document, place):
    """Return what stands in one place of the document."""
    for key in place:
        document = document[key]
    return document


def test_what_may_differ(replicas):
    """The list of what may say anything is exact: no more, and no less."""
    write_result(replicas, Path())
    document = document_of(replicas)
    document["search"]["settings"]["evaluations"] = 5
    document["search"]["settings"]["replica_threshold"] = 0.5
    free = {
        name_of(place)
        for place in leaves(document)
        if all(
            not is_caught(changed(document, place, value))
            for value in changes(value_at(document, place))
        )
    }
    assert free == FREE


def test_a_weaker_demand_holds(toy):
    """A plan that uses all chips keeps the demand too, of which its bound knows not."""
    result = result_of(toy, 0, 0, 1, 1, 2, 2)
    assert found_in(result, search__settings__all_chips=False) == []
    (found,) = found_in(result, search__settings__all_chips=True)
    assert found.startswith("certificate.json: rules is ")


def test_small_figures_have_no_slack(make_package):
    """However small a figure is, a change of a millionth of it is found."""
    package = make_package(2, e_flop_j=1e-24, e_mem_j_per_byte=0.0)
    result = result_of(Problem(network(("a", ("x",))), package), 0)
    assert result.metrics.energy_j == pytest.approx(3e-23)
    (found,) = found_in(result, metrics__energy_j=3.00001e-23)
    assert found.startswith("energy_j is 3.00001e-23, recomputed 3e-23")


def test_rows_and_keys_that_are_missing(result):
    """A row of a table, an op or a list of replicas that is left out is found."""
    write_result(result, Path())
    document = document_of(result)
    for table in ("chips", "links", "rules"):
        for i in range(len(document[table])):
            copy = deepcopy(document)
            del copy[table][i]
            assert is_caught(copy), (table, i)
    for table in ("chip_of", "replicas"):
        for key in document[table]:
            copy = deepcopy(document)
            del copy[table][key]
            assert is_caught(copy), (table, key)


def test_rows_in_another_order(relay):
    """Rows stand in the order of the chips."""
    write_result(relay, Path())
    document = document_of(relay)
    document["chips"].reverse()
    assert is_caught(document)


def test_each_move_of_an_op(result):
    """Every op on every other chip, without new figures, is found."""
    write_result(result, Path())
    document = document_of(result)
    for name, chip in document["chip_of"].items():
        for other in range(5):
            if other != chip:
                copy = changed(document, ("chip_of", name), other)
                assert is_caught(copy), (name, other)


def found_in(result, **changes_by_place):
    """Return the differences of the plan with values changed at ``a__b__c``."""
    document = document_of(result)
    for key, value in changes_by_place.items():
        document = changed(document, tuple(key.split("__")), value)
    write_result(result, Path())
    Path("plan.json").write_text(json.dumps(document))
    return find_differences(Path())[1]


def test_a_dropped_op(replicas):
    """An op that is on no chip is named."""
    chip_of = {"a": 0, "a2": 0, "b": 1}
    assert found_in(replicas, chip_of=chip_of) == ["op 'c' is on no chip"]


@pytest.mark.parametrize("name", ["mask", "ghost"])
def test_an_extra_op(replicas, name):
    """A replicable or unknown op on a chip is named."""
    chip_of = {"a": 0, "a2": 0, "b": 1, "c": 2, name: 0}
    assert found_in(replicas, chip_of=chip_of) == [
        f"op {name!r} is no op that needs a chip"
    ]


def test_wrong_replicas(replicas):
    """Replicas on too many, too few or other chips are shown beside the right ones."""
    right = {str(chip): ["mask"] for chip in range(3)}
    for wrong in (
        {**right, "3": ["mask"]},
        {"0": ["mask"], "1": ["mask"]},
        {**right, "2": ["mask", "mask"]},
        {**right, "2": ["a"]},
        {},
    ):
        assert found_in(replicas, replicas=wrong) == [
            f"replicas are {wrong}, recomputed {right}"
        ]


def test_replicas_of_replicas(make_package):
    """A chip that needs a replica needs what that reads as well."""
    ops = (("root", ("x",)), ("mask", ("root",)), ("a", ("mask",)), ("b", ("a",)))
    graph = network(*ops)
    marked = replace(graph, op_replicable=np.array([True, True, False, False]))
    result = result_of(Problem(marked, make_package(2)), -1, -1, 0, 1)
    verify(result)
    assert document_of(result)["replicas"] == {"0": ["root", "mask"]}
    (found,) = found_in(result, replicas={"0": ["mask"]})
    assert "recomputed {'0': ['root', 'mask']}" in found


def test_a_broken_rule(replicas):
    """A moved op is reported as the rule that it breaks."""
    found = found_in(replicas, chip_of={"a": 0, "a2": 0, "b": 3, "c": 2})
    assert found == [
        "rule dataflow: op 'c' on chip 2 reads what 'b' makes on the later chip 3"
    ]
    found = found_in(replicas, chip_of={"a": 0, "a2": 0, "b": 2, "c": 2})
    assert found[0] == "rule no_skip: chip 1 is empty, but chip 2 is used"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"pins": {"c": 1}}, "rule pin: op 'c' is on chip 2, not on 1"),
        ({"pins": {"c": 99}}, "rule pin: op 'c' is on chip 2, not on 99"),
        ({"together": [["a", "b"]]}, "rule together: 'a', 'b' must share a chip"),
        ({"apart": [["a", "a2"]]}, "rule apart: ops 'a' and 'a2' share chip 0"),
        ({"all_chips": True}, "rule all_chips: chip 3 is empty"),
        (
            {"pins": {"ghost": 0}},
            "a rule of the user names op 'ghost', which the graph does not have",
        ),
        ({"together": [["a", "ghost"]]}, "a rule of the user names op 'ghost'"),
        ({"apart": [["a", "ghost"]]}, "a rule of the user names op 'ghost'"),
        ({"pins": {"mask": 0}}, "'mask' is replicable and bound by a rule"),
        ({"together": [["a", "mask"]]}, "'mask' is replicable and bound by a rule"),
        ({"apart": [["a", "mask"]]}, "'mask' is replicable and bound by a rule"),
    ],
)
def test_rules_of_the_user(replicas, settings, sentence):
    """Each demand that stands among the settings must hold."""
    places = {f"search__settings__{key}": value for key, value in settings.items()}
    (found,) = found_in(replicas, **places)
    assert found.startswith(sentence)


def with_graph(result, graph):
    """Return the differences of the plan against another graph, hash included."""
    plan = make_plan(result)
    plan = plan.model_copy(
        update={"graph": plan.graph.model_copy(update={"sha256": content_hash(graph)})}
    )
    return differences(plan, graph, result.problem.package)


def test_illegal_replicas(replicas):
    """Flags that replication does not allow are faults even of a plan that has them."""
    graph = replicas.problem.graph
    names = graph.op_name

    def flagged(*ops):
        flags = graph.op_replicable.copy()
        flags[[names.index(op) for op in ops]] = True
        return replace(graph, op_replicable=flags)

    found = with_graph(replicas, flagged("c"))
    assert "'c' is replicable and writes an output" in found
    assert "'c' is replicable and reads what 'b' makes on one chip" in found
    found = with_graph(replicas, flagged("b"))
    assert "'b' is replicable and reads what 'a2' makes on one chip" in found
    random = replace(graph, op_kind=("RandomUniform", *graph.op_kind[1:]))
    assert "'mask' is replicable and random" in with_graph(replicas, random)
    grouped = replace(graph, together=((0, 1),))
    assert "'mask' is replicable and bound by a rule" in with_graph(replicas, grouped)


def test_bound_above_the_bottleneck(relay):
    """A bound that the plan itself beats is no bound, whatever its gap says."""
    bottleneck_s = relay.metrics.bottleneck_s
    found = found_in(relay, metrics__lower_bound_s=bottleneck_s * 1.5, metrics__gap=0.0)
    assert any("is above the plan's own bottleneck" in line for line in found)
    assert any(line.startswith("lower_bound_s is") for line in found)


def test_a_bound_that_is_too_good(replicas):
    """A bound raised together with its gap is recomputed."""
    bottleneck_s = replicas.metrics.bottleneck_s
    (found,) = found_in(replicas, metrics__lower_bound_s=bottleneck_s, metrics__gap=0.0)
    assert found.startswith(f"lower_bound_s is {bottleneck_s}, recomputed ")


def test_a_bound_of_an_unknown_kind(replicas):
    """A bound that cannot be recomputed proves nothing."""
    bottleneck_s = replicas.metrics.bottleneck_s
    (found,) = found_in(
        replicas,
        metrics__lower_bound_s=bottleneck_s,
        metrics__gap=0.0,
        metrics__lower_bound_method="magic",
    )
    assert found.startswith("the method of the lower bound is 'magic'")


def test_verify_plan(replicas):
    """A plan that holds is returned; one that does not raises with all that differs."""
    write_result(replicas, Path())
    assert verify_plan(Path()) == verify_plan(Path("plan.json"))
    document = document_of(replicas)
    document["metrics"]["latency_s"] = 1.0
    document["chips"][0]["ops"] = 7
    Path("plan.json").write_text(json.dumps(document))
    with pytest.raises(VerificationError) as caught:
        verify_plan(Path())
    assert caught.value.exit_code == 1
    assert "the plan does not hold: latency_s is 1.0, recomputed" in str(caught.value)
    assert "; chip 0: ops is 7, recomputed 2" in str(caught.value)


def test_many_differences_are_counted(replicas):
    """Of more than eight differences the first are shown and the others counted."""
    rows = [replace(load, ops=load.ops + 1) for load in replicas.metrics.chips]
    rows = [replace(row, compute_s=9.0, stage_s=9.0) for row in rows]
    metrics = replace(replicas.metrics, chips=tuple(rows))
    with pytest.raises(VerificationError, match=r"; and 4 more$"):
        verify(replace(replicas, metrics=metrics))
