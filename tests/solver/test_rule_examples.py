"""The drawn examples of docs/algorithm.md: what each rule removes, by the solver."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mcmpart.graph import GraphBuilder, OpSpec, TensorSpec
from mcmpart.graph.synthetic import chain
from mcmpart.problem import Problem, UserRules
from mcmpart.solver import Solver, sample_many
from mcmpart.solver._propagate import propagate
from mcmpart.solver._rows import CONFLICTS, luby
from mcmpart.solver._search import decide
from mcmpart.solver._trail import reset
from mcmpart.solver.modes import ATTEMPTS, UNIFORM_SHARE, WORK_PER_BLOCK
from mcmpart.solver.setup import make_rules, room_for

PAGE = (Path(__file__).parents[2] / "docs/algorithm.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```text ([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PACKAGE = re.compile(r"(\d) chips(?: of (\d+) bytes)?")
ON_PATHS = {"paths", "bypass", "antichain"}
"""The rules that the cheap first attempt goes without."""


@dataclass(frozen=True, slots=True)
class Example:
    """One block: what is asked, the drawing, and rows of domains below it.

    ``rows`` holds, for each row, its label and one word per op: a digit for a chip
    still possible, a dot for one that the decisions and dataflow alone exclude, an x
    for one that the block's rule excludes beyond that.
    """

    name: str
    num_chips: int
    memory_bytes: int
    rules: tuple[str, ...]
    user: UserRules
    edges: tuple[tuple[str, str], ...]
    ops: tuple[str, ...]
    weight_bytes: tuple[int, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def parse(name, text):
    """Return the example of a block."""
    paragraphs = [part.splitlines() for part in text.split("\n\n")]
    package, *demands = paragraphs[0][0].split("; ")
    num_chips, memory_bytes = PACKAGE.fullmatch(package).groups()
    ops = tuple(paragraphs[2][0].split())
    table = [line.split() for line in paragraphs[2][1:]]
    words = {" ".join(row[: -len(ops)]): tuple(row[-len(ops) :]) for row in table}
    weights = words.pop("bytes", ("0",) * len(ops))
    user, rules = parse_demands(demands)
    return Example(
        name=name,
        num_chips=int(num_chips),
        memory_bytes=int(memory_bytes or 10**9),
        rules=rules,
        user=user,
        edges=tuple(edge for line in paragraphs[1] for edge in drawn_edges(line)),
        ops=ops,
        weight_bytes=tuple(int(size) for size in weights),
        rows=tuple(words.items()),
    )


def parse_demands(demands):
    """Return the user's and the package's rules of a block's first line."""
    rules, user = (), {}
    for demand in demands:
        head, *ops = demand.replace(" = ", " ").split()
        if head == "pin":
            user["pins"] = {ops[0]: int(ops[1])}
        elif head in ("together", "apart"):
            user[head] = (tuple(ops),)
        elif demand != "dataflow":
            rules = tuple(demand.split(", "))
    return UserRules(**user), rules


def drawn_edges(line):
    """Return the edges of ``a ---> b ----> c``; ops without an arrow have none."""
    words = line.split()
    assert all(re.fullmatch(r"-+>|[a-z]", word) for word in words), line
    return [
        (words[i - 1], words[i + 1])
        for i, word in enumerate(words)
        if word.endswith(">")
    ]


EXAMPLES = [parse(name, text) for name, text in BLOCK.findall(PAGE)]
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)


def build_graph(example):
    """Return the drawn graph; every tensor has one byte."""
    net = GraphBuilder("drawn")
    net.host_tensor(TensorSpec("in", 0))
    for op, size in zip(example.ops, example.weight_bytes, strict=True):
        net.weight(TensorSpec(f"w_{op}", size))
        reads = tuple(f"t_{u}" for u, v in example.edges if v == op)
        net.op(
            OpSpec(
                op,
                "Op",
                "int8",
                flops=1,
                bytes=1,
                reads=reads or ("in",),
                weights=(f"w_{op}",),
                writes=(TensorSpec(f"t_{op}", 1),),
            )
        )
        if all(u != op for u, _ in example.edges):
            net.output(f"t_{op}")
    return net.build()


@pytest.fixture
def make_example_problem(make_package):
    """Give a function: an example's problem, or the same with dataflow alone."""

    def make(example, *, dataflow_only=False):
        rules = () if dataflow_only else example.rules
        package = make_package(
            example.num_chips,
            rules=rules,
            long_edges="forbid" if "triangle" in rules else "direct",
            memory_bytes=example.memory_bytes,
        )
        user = UserRules() if dataflow_only else example.user
        return Problem(build_graph(example), package, user=user, replica_threshold=0)

    return make


def step(label):
    """Return (op, chip, whether that is refuted) of a row's label.

    The op is ``m`` where the row begins anew with ``chip`` used chips, 0 for any.
    """
    if label == "at first":
        return "m", 0, False
    op, chip, *fate = label.replace(" = ", " ").split()
    assert fate in ([], ["refuted"]), label
    return op, int(chip), bool(fate)


def solver_domains(problem, example):
    """Return the domains, ``{op: chips}``, that the solver has at each row."""
    op_of = {name: i for i, name in enumerate(problem.graph.op_name)}
    dataflow_only = not problem.package.rules and problem.user == UserRules()
    found = []
    for label, _ in example.rows:
        op, chip, refuted = step(label)
        if op == "m":
            solver = Solver(problem, None if dataflow_only else chip or None)
        elif not (refuted and dataflow_only):
            standing = solver.num_decisions + (not refuted)
            assert solver.assign(op_of[op], chip) == standing, label
        found.append({name: solver.domain(op_of[name]) for name in example.ops})
    return found


def word(chips, by_dataflow, num_chips):
    """Return how a domain is written in a row."""
    return "".join(
        str(c) if c in chips else "x" if c in by_dataflow else "."
        for c in range(num_chips)
    )


@each_example
def test_rows_are_the_domains_of_the_solver(example, make_example_problem):
    """Digits are the solver's domain; x is what dataflow alone would have left."""
    found = solver_domains(make_example_problem(example), example)
    alone = solver_domains(make_example_problem(example, dataflow_only=True), example)
    written = [
        (
            label,
            tuple(word(ours[op], rest[op], example.num_chips) for op in example.ops),
        )
        for (label, _), ours, rest in zip(example.rows, found, alone, strict=True)
    ]
    assert written == list(example.rows)


@pytest.mark.parametrize(("name", "text"), BLOCK.findall(PAGE))
def test_ops_are_drawn_above_their_domains(name, text):
    """Each op of a drawing stands in its column of the table below it."""
    _, drawing, table = text.split("\n\n")
    head = table.splitlines()[0]
    for line in drawing.splitlines():
        drawn = [(match[0], match.start()) for match in re.finditer(r"\w", line)]
        assert drawn == [(op, head.index(op)) for op, _ in drawn], name


@each_example
def test_example_shows_its_rule(example):
    """Five ops; each rule but dataflow, whose marks are dots, removes some chip."""
    assert len(example.ops) == 5
    marked = any("x" in word for _, words in example.rows for word in words)
    assert marked == (example.name != "dataflow")


@each_example
def test_no_valid_partition_is_lost(
    example, make_example_problem, make_all_rows, broken
):
    """Each chip on which some valid partition has an op is in the row's domain."""
    problem = make_example_problem(example)
    column = {name: i for i, name in enumerate(problem.graph.op_name)}
    valid = [row for row in make_all_rows(problem) if not broken(problem, row)]
    for label, words in example.rows:
        op, chip, refuted = step(label)
        if op == "m":
            valid = [row for row in valid if chip in (0, len(set(row)))]
        elif refuted:
            assert all(row[column[op]] != chip for row in valid)
        else:
            valid = [row for row in valid if row[column[op]] == chip]
        assert valid
        for name, domain in zip(example.ops, words, strict=True):
            used = {str(row[column[name]]) for row in valid}
            assert used <= set(domain), (label, name)


@each_example
def test_cheap_attempt_leaves_out_the_rules_on_paths(example, make_example_problem):
    """Without the full rules, exactly those on paths remove less than is drawn."""
    problem = make_example_problem(example)
    rules = make_rules(problem)
    domains = room_for(rules)
    names = problem.graph.op_name
    block_of = dict(zip(names, problem.blocks.block_of.tolist(), strict=True))
    as_drawn = True
    for label, words in example.rows:
        op, chip, _ = step(label)
        if op == "m":
            reset(chip, rules, domains)
            assert propagate(rules, domains, False)
        else:
            assert decide(block_of[op], np.uint64(1 << chip), rules, domains, False)
        for name, drawn in zip(example.ops, words, strict=True):
            chips = int(domains.block["chips"][block_of[name]])
            as_drawn &= chips == sum(1 << int(c) for c in drawn if c.isdigit())
    assert as_drawn == (example.name not in ON_PATHS)


def test_every_rule_of_the_table_is_drawn():
    """The table of rules names each drawn one, in the same order."""
    listed = re.findall(r"^\| \[([a-z_ ]+)\]\(#", PAGE, re.MULTILINE)
    assert listed == list(dict.fromkeys(example.name for example in EXAMPLES))


@pytest.fixture
def three_in_a_row(make_package):
    """Give a chain of three ops on three chips."""
    package = make_package(3, rules=("no_skip",), long_edges="direct")
    return Problem(chain(3), package, replica_threshold=0)


def test_draws_are_not_uniform(three_in_a_row):
    """000, 001, 011, 012 come up with chances 1/3, 1/6, 1/6, 1/3."""
    rows, solved = sample_many(three_in_a_row, None, np.arange(6000))
    assert solved.all()
    found, count = np.unique(rows, axis=0, return_counts=True)
    assert found.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 2]]
    # The standard deviation of a count of 2,000 in 6,000 is 37.
    assert np.abs(count - [2000, 1000, 1000, 2000]).max() < 5 * 37


def test_a_row_depends_on_its_seed_only(three_in_a_row):
    """Drawn alone, in a batch or on several threads, a seed gives the same row."""
    together, _ = sample_many(three_in_a_row, None, np.arange(100), workers=3)
    alone = [sample_many(three_in_a_row, None, [seed])[0][0] for seed in range(100)]
    assert together.tolist() == np.array(alone).tolist()


def test_limits_are_those_of_the_code():
    """The page states the limits of a row and the restarts as the code has them."""
    text = " ".join(PAGE.split())
    sequence = " ".join(str(luby(i)) for i in range(1, 16))
    for stated in (
        f"{CONFLICTS} x luby(k)",
        f"luby = {sequence}",
        f"{ATTEMPTS} attempts",
        f"{WORK_PER_BLOCK} (N + 100) looks",
        f"{100 * UNIFORM_SHARE:g} % of the draws",
    ):
        assert stated in text, stated
