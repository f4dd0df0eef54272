"""Draws and corrections of the constraint solver, one core, 36 chips.

Times are CPU time, since the machines are shared: wall time would count the others.

python benchmarks/solver.py [sample] [fix] [graphs] [rules] [cp-sat] [large]

Without a name all parts run; ``cp-sat`` takes some 20 minutes, the rest some 10. Ends
with exit code 1 if a part misses a target.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _models import LARGE, RULED, branchy_problems

from mcmpart.graph.graph import Float64, Int32
from mcmpart.graph.synthetic import diamond, transformer
from mcmpart.problem import Problem
from mcmpart.solver import Rows, fix_rows, sample_rows
from mcmpart.solver._search import SAMPLE, SOLVED, Wish, search
from mcmpart.solver._trail import reset
from mcmpart.solver.setup import make_rules, room_for

NUM_ROWS = 1_000
NUM_CP_SAT = 3
CP_SAT_S = 300.0
NUM_LARGE = 20
NUM_SEARCHED = 500
ABLATED = (
    "inception_3_4_2",
    "bert_tiny_dynamo",
    "encoder_decoder_6",
    "PipeDream nasnetamobile",
)

# Targets: rows a second, share of draws within 10 ms, times as fast as CP-SAT; and for
# 50,000 ops the time of a draw and the peak memory.
LEAST_PER_S = 2_000
LEAST_QUICK = 0.999
LEAST_OVER_CP_SAT = 1_000
MOST_S = 1.0
MOST_BYTES = 2e9

EVENLY = Wish(SAMPLE, np.empty((0, 0)), 0.0, np.empty(0, dtype=np.int32))
PERCENTILES = (0, 10, 50, 90, 100)


def main() -> None:
    """Run the parts that are named, or all."""
    wanted = sys.argv[1:] or list(PARTS)
    if wanted[0] == "--one-large":
        sys.exit(0 if one_large(wanted[1]) else 1)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"there is no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    warm_up()
    missed = []
    for name in wanted:
        print(f"\n{name}: {PARTS[name].__doc__}")
        if not PARTS[name]():
            missed.append(name)
    if missed:
        sys.exit(f"targets missed by {', '.join(missed)}")


def warm_up() -> None:
    """Compile the kernels, or load them."""
    problem = Problem(diamond(2), RULED)
    rows = sample_rows(problem, None, np.arange(2), workers=1)
    fix_rows(problem, rows.chip_of[:, ::-1], np.arange(2), workers=1)


def draw(problem: Problem, seeds: range) -> Rows:
    """Return one draw per seed, every choice even."""
    return sample_rows(problem, None, np.array(seeds), workers=1)


def cpu_s(function: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the least CPU time of ``repeats`` calls, in seconds."""
    times_s = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times_s.append(time.process_time() - began)
    return min(times_s)


def draws_per_s(problem: Problem) -> tuple[Rows, float]:
    """Return many draws, and how many are solved in a second."""
    rows = draw(problem, range(NUM_ROWS))
    return rows, float(
        rows.solved.sum() / cpu_s(lambda: draw(problem, range(NUM_ROWS)))
    )


def draw_s(problem: Problem, seed: int) -> float:
    """Return the time of one draw called alone."""
    return cpu_s(lambda: draw(problem, range(seed, seed + 1)), repeats=1)


def sample() -> bool:
    """SAMPLE, even chances, random order, transformer of 36 layers."""
    problem = Problem(transformer(36), RULED)
    rows, rate = draws_per_s(problem)
    alone_s = np.array([draw_s(problem, seed) for seed in range(NUM_ROWS)])
    quick = float((rows.solved & (alone_s <= 10e-3)).mean())
    print(f"{problem.blocks.num_blocks:,} blocks, {rate:,.0f} draws/s")
    print(f"solved: {rows.solved.mean():.1%}, within 10 ms each: {quick:.1%}")
    print(f"searches a draw: {spread(rows.num_attempts)}")
    print(f"ms of a draw called alone: {spread(1e3 * alone_s)}")
    print(f"chips used: {spread(num_used(rows))}")
    return rate >= LEAST_PER_S and quick >= LEAST_QUICK


def fix() -> bool:
    """FIX, random order, nearest chips, transformer of 36 layers."""
    problem = Problem(transformer(36), RULED)
    rng = np.random.default_rng(0)
    shape = (NUM_ROWS, problem.graph.num_ops)
    anywhere = rng.integers(0, problem.num_chips, shape).astype(np.int32)
    valid = draw(problem, range(NUM_ROWS)).chip_of
    moved = (rng.random(shape) < 0.05) & (valid >= 0)
    disturbed = np.where(moved, anywhere, valid)
    rates = (
        show_fixed("every op on a random chip", problem, anywhere),
        show_fixed("a draw, 5 % of its ops on random chips", problem, disturbed),
    )
    return min(rates) >= LEAST_PER_S


def show_fixed(name: str, problem: Problem, candidates: Int32) -> float:
    """Print and return how many candidates are corrected a second."""
    seeds = np.arange(candidates.shape[0])
    rows = fix_rows(problem, candidates, seeds, workers=1)
    rate = NUM_ROWS / cpu_s(lambda: fix_rows(problem, candidates, seeds, workers=1))
    placed = ~problem.graph.op_replicable
    kept = (rows.chip_of == candidates)[rows.solved][:, placed]
    print(
        f"{name}: {rate:,.0f} rows/s, solved {rows.solved.mean():.1%}, "
        f"ops kept {kept.mean():.1%}, searches {spread(rows.num_attempts)}"
    )
    return rate


def graphs() -> bool:
    """SAMPLE, even chances, random order, 1,000 draws of each graph."""
    print(
        "graph                        blocks  solved  draws/s  distinct  "
        "chips used 0/10/50/90/100 %  on one chip"
    )
    all_solved = True
    for name, problem in branchy_problems():
        rows, rate = draws_per_s(problem)
        all_solved = all_solved and bool(rows.solved.all())
        used = num_used(rows)
        print(
            f"{name:<28} {problem.blocks.num_blocks:>6} {rows.solved.mean():>7.1%} "
            f"{rate:>8,.0f} "
            f"{len(np.unique(rows.chip_of[rows.solved], axis=0)):>9,} "
            f"{' '.join(f'{p:.0f}' for p in np.percentile(used, PERCENTILES)):>28} "
            f"{(used == 1).mean():>12.1%}"
        )
    return all_solved


def costlier_rules() -> bool:
    """SAMPLE by at most ten searches at one number of chips, drawn or left open."""
    problems = dict(branchy_problems())
    print(
        f"{'graph':<24} {'costlier rules':<14} {'chips':<6} solved  draws/s  searches  "
        f"chips used"
    )
    for name in ABLATED:
        for full, counted in itertools.product((True, False), (True, False)):
            began = time.process_time()
            rows = [
                searched(problems[name], seed, full, counted)
                for seed in range(NUM_SEARCHED)
            ]
            time_s = time.process_time() - began
            used, tried = np.array(rows).T
            solved = used > 0
            print(
                f"{name:<24} {'on' if full else 'off':<14} "
                f"{'drawn' if counted else 'open':<6} {solved.mean():>6.1%} "
                f"{solved.sum() / time_s:>8,.0f} {tried.mean():>9.2f} "
                f"{used[solved].mean() if solved.any() else 0:>11.1f}"
            )
    return True


def searched(problem: Problem, seed: int, full: bool, counted: bool) -> tuple[int, int]:
    """Return the chips that a draw uses, 0 if it fails, and how many searches it took.

    The costlier rules run if ``full``. A search ends after 50 contradictions, and the
    next has another order but the same number of chips.
    """
    rules, domains = make_rules(problem), room_for(make_rules(problem))
    rng = np.random.default_rng(seed)
    state = rng.integers(2**63, size=1).astype(np.uint64)
    possible = np.flatnonzero(rules.possible[1:]) + 1
    count = int(rng.choice(possible)) if counted else 0
    for tried in range(1, 11):
        order = rng.permutation(problem.blocks.num_blocks).astype(np.int32)
        reset(count, rules, domains)
        outcome, _ = search(rules, domains, order, EVENLY, 50, full, False, state)
        if outcome == SOLVED:
            return int(domains.block["chips"].max()).bit_length(), tried
    return 0, tried


def cp_sat() -> bool:
    """One draw against one partition from CP-SAT, one core, with a random hint."""
    from cp_sat import find_partition

    least = math.inf
    for num_layers in (4, 36):
        problem = Problem(transformer(num_layers), RULED)
        our_s = 1 / draws_per_s(problem)[1]
        ours = draw(problem, range(NUM_CP_SAT))
        for seed in range(NUM_CP_SAT):
            rng = np.random.default_rng(seed)
            hint = rng.integers(0, problem.num_chips, problem.graph.num_ops)
            for count in (None, int(num_used(ours)[seed])):
                answer = find_partition(
                    problem,
                    seed,
                    CP_SAT_S,
                    hint.astype(np.int32),
                    num_used=count,
                    helped=True,
                )
                least = min(least, answer.solve_s / our_s)
                at_least = "" if answer.outcome == "solved" else "at least "
                used = 0 if answer.chip_of is None else answer.chip_of.max() + 1
                print(
                    f"{num_layers} layers, {count or 'any number of'} chips: CP-SAT "
                    f"{answer.outcome} in {answer.solve_s:.1f} s ({used} chips; model "
                    f"built in {answer.build_s:.0f} s), a draw {1e3 * our_s:.2f} ms: "
                    f"{at_least}{answer.solve_s / our_s:,.0f} x",
                    flush=True,
                )
    return least >= LEAST_OVER_CP_SAT


def num_used(rows: Rows) -> Int32:
    """Return the number of chips of each solved row."""
    most: Int32 = rows.chip_of[rows.solved].max(axis=1) + 1
    return most


def spread(values: Int32 | Float64) -> str:
    """Return the mean and the percentiles of some values."""
    points = " / ".join(f"{p:.3g}" for p in np.percentile(values, PERCENTILES))
    return f"mean {values.mean():.3g}, least / 10 / 50 / 90 % / most {points}"


def large() -> bool:
    """Draw on some 50,000 ops, each graph in a process of its own."""
    command = [sys.executable, __file__, "--one-large"]
    codes = [subprocess.run([*command, name], check=False).returncode for name in LARGE]
    return not any(codes)


def one_large(name: str) -> bool:
    """Print how long set-up and a draw take, and the peak memory (Linux)."""
    warm_up()
    graph = LARGE[name]()
    before_bytes = peak_bytes()
    times_s = [time.process_time()]
    problem = Problem(graph, RULED)
    times_s.append(time.process_time())
    make_rules(problem)
    times_s.append(time.process_time())
    rows = draw(problem, range(NUM_LARGE))
    times_s.append(time.process_time())
    problem_s, rules_s, draws_s = np.diff(times_s)
    print(
        f"{name}: {graph.num_ops:,} ops, {problem.blocks.num_blocks:,} blocks; problem "
        f"{problem_s:.1f} s, rules {rules_s:.2f} s, a draw "
        f"{1e3 * draws_s / NUM_LARGE:.1f} ms, solved {rows.solved.mean():.0%}, "
        f"on average {num_used(rows).mean():.1f} chips and "
        f"{rows.num_attempts.mean():.1f} searches; peak memory "
        f"{peak_bytes() / 2**20:.0f} MiB, "
        f"{before_bytes / 2**20:.0f} MiB of it before the problem"
    )
    return bool(draws_s / NUM_LARGE <= MOST_S and peak_bytes() <= MOST_BYTES)


def peak_bytes() -> int:
    """Return the peak memory of this process.

    Its resource usage would count that of the process that started it.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


PARTS = {
    "sample": sample,
    "fix": fix,
    "graphs": graphs,
    "rules": costlier_rules,
    "cp-sat": cp_sat,
    "large": large,
}

if __name__ == "__main__":
    main()
