"""What follows before any decision, for each number of used chips."""

from __future__ import annotations

from mcmpart._bits import NO_CHIPS, at_most, lowest, run_end
from mcmpart._jit import jit, leaf
from mcmpart.solver._arrays import HIGHEST, LOWEST, Domains, Rules
from mcmpart.solver._propagate import propagate
from mcmpart.solver._trail import notify, reset


@jit
def propagate_root(rules: Rules, domains: Domains, full: bool) -> None:
    """Propagate every possible row of ``rules.root``; write it and ``root_cover``.

    A row that contradicts itself is struck from ``rules.possible``.
    """
    for row in range(rules.possible.size):
        if not rules.possible[row]:
            continue
        if not _count_root(row, rules):
            rules.possible[row] = False
            continue
        reset(row, rules, domains)
        for n in range(domains.block.size):
            notify(n, LOWEST | HIGHEST, domains)
        rules.possible[row] = propagate(rules, domains, full)
        if rules.possible[row]:
            for n in range(domains.block.size):
                rules.root[row, n] = domains.block[n].chips
            _count_root(row, rules)


@leaf
def _count_root(row: int, rules: Rules) -> bool:
    """Write ``root_cover`` of a row; False if some block has no chip at all."""
    for c in range(rules.root_cover.shape[1]):
        rules.root_cover[row, c] = 0
    for n in range(rules.root.shape[1]):
        rest = rules.root[row, n]
        if rest == NO_CHIPS:
            return False
        while rest:
            first = lowest(rest)
            past = run_end(first, rest)
            rules.root_cover[row, first] += 1
            rules.root_cover[row, past] -= 1
            rest &= ~at_most(past - 1)
    return True
