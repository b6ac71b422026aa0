"""The sets of variables that a search for a network chooses from, by public arguments and releases alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.models.posterior.discrepancy import MOST_PROBE_CELLS

N_PROBES = 16

MOST_SETS = 5_000  # of one order
MOST_SET_CELLS = 10**7  # of all tables of one order together, 8 bytes each


@dataclass(frozen=True)
class Candidates:
    """Sets of two variables and more, up to `max_order`, that may be measured.

    Parameters
    ----------
    sizes : tuple of int
        States of each variable, at most.
    max_order : int
        Variables of the largest sets.
    max_cells : int
        Of one table.
    forbidden : collection of frozenset of int
        A set that contains one of these is never measured.
    workload : mapping of frozenset of int to float
        How much each set of variables matters: these and what is inside them is measured. Empty: all sets alike.
    target : int, optional
        A variable that each set must have.
    among : callable, optional
        Whether a set may be measured at all; default: any.

    Examples
    --------
    >>> sets = Candidates((2, 2, 2, 2), 3, 100, (frozenset({0, 1}),), {frozenset({1, 2, 3}): 1.0})
    >>> sets.pairs, sets.larger([], 100.0)
    (((1, 2), (1, 3), (2, 3)), [(1, 2, 3)])
    >>> sets.weight((1, 2)), sets.weight((1, 2, 3))
    (2.0, 3.0)
    """

    sizes: tuple[int, ...]
    max_order: int
    max_cells: int
    forbidden: Collection[frozenset[int]]
    workload: Mapping[frozenset[int], float]
    target: int | None = None
    among: Callable[[Collection[int]], bool] | None = None

    def cells(self, scope: Iterable[int]) -> int:
        """The number of cells in the table of a set."""
        return math.prod(self.sizes[i] for i in scope)

    def weight(self, scope: Collection[int]) -> float:
        """The weight of a table's misfit: 1, or what the table has in common with the sets of the workload.

        Each of these sets that shares two variables or more with the table adds its weight times how many it shares.
        With a target, a table without it counts 0.
        """
        if not self.workload:
            return float(self.target is None or self.target in scope)
        shared = ((len(wanted.intersection(scope)), weight) for wanted, weight in self.workload.items())
        return float(sum(count * weight for count, weight in shared if count > 1))

    def permits(self, scope: Collection[int]) -> bool:
        """Whether a set is neither forbidden nor outside the workload or `among`, and has the target."""
        if self.target is not None and self.target not in scope:
            return False
        if self.among is not None and not self.among(scope):
            return False
        forbidden = bool(self.forbidden) and any(banned.issubset(scope) for banned in self.forbidden)
        return not forbidden and (not self.workload or any(wanted.issuperset(scope) for wanted in self.workload))

    @cached_property
    def allowed(self) -> tuple[Scope, ...]:
        """All pairs that are permitted, however large."""
        return tuple(pair for pair in itertools.combinations(range(len(self.sizes)), 2) if self.permits(pair))

    @cached_property
    def pairs(self) -> tuple[Scope, ...]:
        """The permitted pairs whose tables are small enough."""
        return tuple(pair for pair in self.allowed if self.cells(pair) <= self.max_cells)

    def larger(self, measured: Iterable[Iterable[int]], most_cells: float) -> list[Scope]:
        """Sets of three variables and more that can be chosen now.

        Parameters
        ----------
        measured : iterable of sets
            Tables that were released.
        most_cells : float
            Larger tables would be of no use.
        """
        edges: set[Scope] = {pair for scope in measured for pair in itertools.combinations(sorted(scope), 2)}
        most = min(self.max_cells, most_cells)
        sets: list[Scope] = []
        # Of each order all sets (of the workload, or with the target), if there are at most 5,000; else those that
        # contain a measured pair, if there are at most so many; else those that are connected by measured pairs. The
        # workload's own come first, then the smallest, and no more than 5,000 of them and 10**7 cells.
        for order in range(3, min(self.max_order, len(self.sizes)) + 1):
            listed = {tuple(sorted(wanted)) for wanted in self.workload if len(wanted) == order}
            scopes = self._of_order(order, edges)
            fitting = (scope for scope in (listed.union(scopes) if listed else scopes) if self.cells(scope) <= most)
            chosen = sorted((scope for scope in fitting if self.permits(scope)), key=self.cells)
            chosen = [*(s for s in chosen if s in listed), *(s for s in chosen if s not in listed)][:MOST_SETS]
            ends = itertools.accumulate(map(self.cells, chosen))
            sets += sorted(scope for scope, end in zip(chosen, ends, strict=True) if end <= MOST_SET_CELLS)
        return sets

    def _of_order(self, order: int, edges: set[Scope]) -> Collection[Scope]:
        p = len(self.sizes)
        if self.target is not None and math.comb(p - 1, order - 1) <= MOST_SETS:
            rest = itertools.combinations(set(range(p)) - {self.target}, order - 1)
            return {tuple(sorted({self.target, *scope})) for scope in rest}
        whole = list(self.workload) or [frozenset(range(p))]
        if sum(math.comb(len(names), order) for names in whole) <= MOST_SETS:
            return {scope for names in whole for scope in itertools.combinations(sorted(names), order)}
        others = range(p)
        if len(edges) * math.comb(p - 2, order - 2) <= MOST_SETS:
            more = itertools.product(edges, itertools.combinations(others, order - 2))
            return {tuple(sorted({*edge, *rest})) for edge, rest in more if not set(edge).intersection(rest)}
        beside: list[set[int]] = [set() for _ in others]
        for i, j in edges:
            beside[i].add(j)
            beside[j].add(i)
        grown = set(edges)
        for _ in range(order - 2):
            grown = {
                tuple(sorted({*scope, other}))
                for scope in grown
                for other in set().union(*(beside[i] for i in scope)).difference(scope)
            }
        return grown


_ENUMERATED = 20_000


def draw_probes(sets: Candidates, rng: np.random.Generator) -> list[Scope]:
    """Up to 16 sets of three variables, each as likely as any other; of two where none of three is permitted.

    They are measured last: nothing chose them, so they tell how wrong a model is elsewhere.

    Parameters
    ----------
    sets : Candidates
        Forbidden sets, and sets outside a workload, are not drawn.
    rng : numpy.random.Generator
        No privacy depends on it.

    Examples
    --------
    >>> len(draw_probes(Candidates((2,) * 9, 3, 10**4, (), {}), np.random.default_rng(0)))
    16
    >>> draw_probes(Candidates((2, 2, 2), 3, 10**4, (frozenset({0, 1}),), {}), np.random.default_rng(0))
    [(0, 2), (1, 2)]
    """
    most = min(sets.max_cells, MOST_PROBE_CELLS)

    def fits(scope: Scope) -> bool:
        return sets.cells(scope) <= most and sets.permits(scope)

    for order in (3, 2) if sets.max_order > 2 else (2,):
        if math.comb(len(sets.sizes), order) <= _ENUMERATED:
            fitting = [scope for scope in itertools.combinations(range(len(sets.sizes)), order) if fits(scope)]
            drawn = rng.permutation(len(fitting))[:N_PROBES]
            chosen = sorted(fitting[k] for k in drawn)
        else:
            tries = (tuple(sorted(rng.choice(len(sets.sizes), order, replace=False).tolist())) for _ in range(10_000))
            chosen = sorted(itertools.islice(dict.fromkeys(filter(fits, tries)), N_PROBES))
        if chosen:
            return chosen
    return []
