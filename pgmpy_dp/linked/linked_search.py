"""The search for a model of linked tables: that of one table, with slots that are exchangeable.

Of all sets that permutations of slots turn into each other, one is a candidate, whose table counts for all. Which
sets are candidates is a function of public numbers and of the first release, so the proof of
:mod:`pgmpy_dp.tables.networks.adaptive_search` holds as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.learning.fine_grids import (
    densities,
    fine_grained,
    first_tables,
    following,
    largest_sizes,
    likely_states,
    undivided,
)
from pgmpy_dp.learning.merging import Merging, merge_states, useful_bins
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.linked.size_trend import is_hidden, large_families
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.private.operators.tables import GroupedTables, Tables
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema, encode_label
from pgmpy_dp.tables.networks.adaptive_search import Search
from pgmpy_dp.tables.networks.search_policy import Measurement, Spending, is_clear

_PAIRS_FROM = 200.0
"""Records over the noise of a cell with the whole budget, above which two children are learned together."""

_OF_ONE, _OF_TWO = Fraction(3, 5), Fraction(7, 10)
"""Of what rounds have, for pairs of columns of children where these are learned alone, and with a sibling."""

_HALVES = Fraction(1, 10)
"""Of what rounds have, for tables of columns of children with two groups of families."""

_SAME, _WITHIN, _ACROSS = range(3)
_WEIGHT = {_SAME: Fraction(1), _WITHIN: Fraction(8, 5), _ACROSS: Fraction(9, 10)}
"""Weights of shares: the same column of two children, two columns of one, different columns of two. Most questions are
about one child."""


def siblings_at(strength: float) -> int:
    """The default number of siblings that a child is learned with; `strength` as `NetworkShares` has it."""
    return int(strength >= _PAIRS_FROM)


def largest_states(linked: LinkedSchema) -> dict[Hashable, int]:
    """The most states that columns of undivided numbers of children have, once these are merged: alike in all slots."""
    wide, child, most = wide_table(linked), linked.fine_child, largest_sizes(linked.child)
    states = [(name, column) for slot in wide.slots for name, column in zip(child, slot, strict=True)]
    return {
        column: most[name] + len(linked.count_cuts[name]) + wide.schema.cardinality(column) - child.cardinality(name)
        for name, column in states
        if name in undivided(linked.child)
    }


def number_columns(linked: LinkedSchema, wide: WideTable) -> dict[Hashable, tuple[str, Hashable, Number]]:
    """By column of the wide table whose number it is, its name and its fine cells; of children's the first slot's."""
    (parent, child), numbers = linked.names, linked.fine_child.numbers
    parents = {} if linked.parent is None else linked.parent.fine().numbers
    own: dict[Hashable, tuple[str, Hashable, Number]] = {name: (parent, name, one) for name, one in parents.items()}
    columns = dict(zip(wide.child, wide.slots[0], strict=True))
    return own | {columns[name]: (child, name, one) for name, one in numbers.items()}


def fine_columns(linked: LinkedSchema, wide: WideTable, few: bool = False) -> dict[Hashable, Number]:
    """The fine cells, by column, of the numbers that have a second table; with `few` of all that are not divided."""
    chosen = {table: undivided(schema) if few else fine_grained(schema) for table, schema in linked.tables.items()}
    return {at: one for at, (table, name, one) in number_columns(linked, wide).items() if name in chosen[table]}


def strongest(*likely: np.ndarray) -> float:
    """The sum of squares of the covariances of the states of two columns, at most.

    Of x and y, as indicators of their states, with covariances X and Y, the covariance of both is ``X^(1/2) K Y^(1/2)``
    with singular values of K of at most 1; so the sum of its squares is at most ``|X| |Y|`` in Frobenius norms, which
    is attained where x says what y is.

    Parameters
    ----------
    *likely : ndarray
        Of either column how likely its states are, up to a factor.
    """
    norms = []
    for one in likely:
        p = one / max(float(one.sum()), 1e-300)
        norms.append(max(float((p**2).sum() - 2 * (p**3).sum() + (p**2).sum() ** 2), 0.0) ** 0.5)
    return math.prod(norms)


def pairs_of_children(
    slots: Slots, pairs: Sequence[Scope], cells: Callable[[Scope], int], rounds: Fraction
) -> dict[int, dict[Scope, Fraction]]:
    """Pairs of columns of a child, and of two children, that are measured before rounds, by group, with their shares.

    Parameters
    ----------
    slots : Slots
    pairs : sequence of pairs of positions
        Those that may be measured.
    cells : callable
        Of a pair's table.
    rounds : Fraction
        The share of all rounds.

    Returns
    -------
    dict of int to dict of pair to Fraction
        The same column of two children, then of one child, then others, large tables first: they say the most.
    """
    slot_of, width = slots.slot_of, len(slots.wide.child)
    group = {
        pair: _WITHIN if slot_of[pair[1]] == 0 else _SAME if pair[1] - pair[0] == width else _ACROSS
        for pair in pairs
        if min(slot_of[i] for i in pair) >= 0
    }
    chosen = sorted(group, key=lambda pair: (group[pair], -cells(pair)))[: 2 * len(slots.slot_of)]
    if not chosen or rounds <= 0:
        return {}
    share = _OF_ONE if all(group[pair] == _WITHIN for pair in chosen) else _OF_TWO
    one = share * rounds / sum(_WEIGHT[group[pair]] for pair in chosen)
    return {
        k: {pair: one * _WEIGHT[k] for pair in chosen if group[pair] == k}
        for k in sorted({group[pair] for pair in chosen})
    }


class LinkedSearch(Search):
    """The course of a search over the rows of units.

    Parameters
    ----------
    linked : LinkedSchema
    siblings : int or None
        Further children that a table may be about; None: what the first release says.
    *arguments
        Of :class:`~pgmpy_dp.tables.networks.adaptive_search.Search`.
    """

    def __init__(self, linked: LinkedSchema, siblings: int | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.linked, self.siblings = linked, siblings
        self.slots = Slots(wide_table(linked))
        self.parent = None if linked.parent is None else linked.parent.fine()
        self._left_out: set[Scope] = set()

    @property
    def one_way_names(self) -> Sequence[Hashable]:
        """The variables that have a first table: of slots the first one stands for all."""
        slot_of = self.slots.slot_of
        return [name for name, slot in zip(self.names, slot_of, strict=True) if slot <= 0 or self.slots.wide.ordered]

    def _merge(self, merge_rare: bool) -> None:
        columns, numbers = (fine_columns(self.linked, self.slots.wide, few) for few in (False, True))
        if not numbers:
            return
        if columns and self.shares.numbers:
            deviation = self.shares.noise(self.shares.numbers, len(columns)).variance ** 0.5
            told = densities(self.curator.release("marginals", {}), columns, numbers)
            self._count_in(told, lambda schema, told, cuts: following(schema, told, deviation, cuts))
            self.curator.ask(Tables([(column,) for column in columns]), self.shares.numbers)
        release = self.curator.release("marginals", {})
        bins = useful_bins(super()._released().n_records, self.shares.pair_noise)
        likely = likely_states(release, densities(release, numbers, numbers), self.curator.facts.schema.cardinalities)
        self._count_in(likely, lambda schema, likely, cuts: merge_states(schema, likely, bins, 0.0, cuts=cuts))

    def _count_in(self, told: Mapping[Hashable, Any], merge: Callable[[Schema, dict, Mapping], Merging]) -> None:
        """Count in merged states from now on, those of children alike in all slots.

        `merge` takes the schema of children, or of parents, what is told of its numbers, and cuts that stay.
        """
        before, places = self.slots.wide, dict[Hashable, Sequence[int]]()
        first = zip(before.child, before.slots[0], strict=True)
        of_child = merge(before.child, {name: told[at] for name, at in first if at in told}, self.linked.count_cuts)
        if self.parent is not None:
            of_parent = merge(self.parent, {name: told[name] for name in self.parent if name in told}, {})
            self.parent, places = of_parent.schema, dict(of_parent.places)
        wide = wide_table(self.linked, of_child.schema, self.parent)
        for slot in before.slots:
            for name, column in zip(before.child, slot, strict=True):
                if name in of_child.places:
                    to, last = of_child.places[name], max(of_child.places[name])
                    extra = len(before.schema.states[column]) - len(to)
                    places[column] = [*to, *range(last + 1, last + 1 + extra)]
        self.curator.merge(wide.schema, places)
        self.slots = Slots(wide)

    def _narrow(self) -> None:
        if self.siblings is None:
            self.siblings = siblings_at(self.shares.strength(self.n_records))
        self.public_settings["siblings"] = self.siblings
        among = partial(self.slots.allowed, most_slots=1 + self.siblings)
        self.sets = replace(self.sets, among=among)
        kept = [k for k, pair in enumerate(self.pairs) if among(pair)]
        self.pairs, self.last = [self.pairs[k] for k in kept], self.last[kept]
        self.named_pairs, self.places = [self.named_pairs[k] for k in kept], self.places[kept]

    def before_rounds(self, spending: Spending) -> Iterator[Measurement]:
        """Pairs of columns of a child and of two children, all at once, as far as there is room for them.

        Rounds would come to them one by one, when earlier choices may have left no room in the tree. Those whose noise
        would hide any dependence are left to rounds.
        """
        if self.slots.wide.ordered:
            return
        self._measure_halves()
        shares = pairs_of_children(self.slots, self.pairs, self.sets.cells, min(self.shares.rounds, self.left))
        for of_kind in shares.values():
            scopes: list[Scope] = []
            for pair, share in of_kind.items():
                if self._tells(pair, share) and self.tree.admits([pair])[0]:
                    self._join(pair)
                    scopes.append(pair)
            if scopes:
                yield Measurement("tables", share * len(scopes), scopes)

    def _measure_halves(self) -> None:
        """Columns of children in small and in large families, where noise hides how they depend on n.

        Their tables with n say whether it does. Of two halves it hides that where it is more than half of them.
        """
        shares, wide = self.shares, self.slots.wide
        scopes = [(wide.size, name) for name in wide.slots[0]]
        share, likely = min(_HALVES * shares.rounds, self.left), self.fit.one_way[self._place[wide.size]]
        cells = float(np.mean([wide.schema.cardinality(name) for name in wide.slots[0]]))
        hidden = is_hidden(wide, first_tables(self.curator.release("marginals", {})))
        if not hidden or share <= 0 or shares.drowned(share, len(scopes), 2 * cells, self.n_records / 4):
            return
        large = large_families(np.array([m for m, _ in wide.patterns]), likely)
        tables = self.curator.ask(GroupedTables(scopes, large.astype(int).tolist()), share)
        tables = [np.delete(table, k, axis=1).tolist() for k, table in zip(wide.absent, tables, strict=True)]
        deviation = shares.noise(share, len(scopes)).variance ** 0.5
        self.public_settings["halves"] = {"large": large.tolist(), "tables": tables, "deviation": deviation}

    def _tells(self, pair: Scope, share: Fraction) -> bool:
        """Whether the strongest dependence that two columns of children could have would be clear of a table's noise.

        All of it is of public numbers and released tables.
        """
        wide, likely = self.slots.wide, list[np.ndarray]()
        for place in pair:
            name = wide.child.variables[(place - len(self.names)) % len(wide.child)]
            likely.append(self.fit.one_way[place][: wide.child.cardinality(name)])
        slots = {self.slots.slot_of[place] for place in pair}
        filled = [slots <= set(present) for _, present in wide.patterns]
        families = self.n_records * float(self.fit.one_way[self._place[wide.size]][filled].sum())
        free = math.prod(len(one) - 1 for one in likely)
        return is_clear(families**2 * strongest(*likely), free, self.shares.noise(share).variance)

    def _join(self, scope: Scope) -> None:
        """Make room for a table, and for as many of its images as keep cliques small; others are left out."""
        self.tree.join(scope)
        for image in self.slots.images(scope):
            if self.tree.admits([image])[0]:
                self.tree.join(image)
            else:
                self._left_out.add(image)

    def _released(self) -> NoisyMarginals:
        return self.slots.symmetric(super()._released(), self._left_out)

    def release(self) -> Release:
        """Return the release, as of one table, with the images that were left out."""
        self.public_settings["left_out"] = [[encode_label(self.names[i]) for i in s] for s in sorted(self._left_out)]
        return super().release()
