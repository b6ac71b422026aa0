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
from typing import Any

import numpy as np

from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.learning.fine_grids import undivided
from pgmpy_dp.learning.merging import MOST_BINS, Merging, merge_states, useful_bins
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.models.number_density import Counts, NumberDensity, number_density
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema, encode_label
from pgmpy_dp.tables.networks.adaptive_search import Search
from pgmpy_dp.tables.networks.search_policy import Measurement, Spending, is_clear

_PAIRS_FROM = 200.0
"""Records over the noise of a cell with the whole budget, above which two children are learned together."""

_OF_ONE, _OF_TWO = Fraction(3, 5), Fraction(7, 10)
"""Of what rounds have, for pairs of columns of children where these are learned alone, and with a sibling."""

_DEPENDENCE = 0.5  # of the strongest that two columns can have, which a pair's table has to tell from noise

_SAME, _WITHIN, _ACROSS = range(3)
_WEIGHT = {_SAME: Fraction(1), _WITHIN: Fraction(8, 5), _ACROSS: Fraction(9, 10)}
"""Weights of shares: the same column of two children, two columns of one, different columns of two. Most questions are
about one child."""


def siblings_at(strength: float) -> int:
    """The default number of siblings that a child is learned with; `strength` as `NetworkShares` has it."""
    return int(strength >= _PAIRS_FROM)


def largest_states(linked: LinkedSchema) -> dict[Hashable, int]:
    """The most states that columns of undivided numbers of children have, once these are merged: alike in all slots."""
    wide, child = wide_table(linked), linked.fine_child
    most: dict[Hashable, int] = {}
    for name in undivided(linked.child):
        cuts = {*child.rule_cuts(name), *linked.count_cuts[name]}
        for slot in wide.slots:
            column = slot[child.variables.index(name)]
            states = wide.schema.cardinality(column)
            most[column] = min(states, MOST_BINS + len(cuts) + states - len(child.numbers[name].cells))
    return most


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
        self._images: dict[Scope, list[Scope]] = {}
        self._left_out: set[Scope] = set()

    @property
    def one_way_names(self) -> Sequence[Hashable]:
        """The variables that have a first table: of slots the first one stands for all."""
        slot_of = self.slots.slot_of
        return [name for name, slot in zip(self.names, slot_of, strict=True) if slot <= 0 or self.slots.wide.ordered]

    def _merge(self, merge_rare: bool) -> None:
        if not undivided(self.linked.child) and not (self.linked.parent and undivided(self.linked.parent)):
            return
        released = super()._released()
        n, scopes = released.n_records, released.cliques.scopes
        counts, variances = released.cliques.split(released.counts), released.table_variance
        tables = {scope[0]: (table, float(v) ** 0.5) for scope, table, v in zip(scopes, counts, variances, strict=True)}
        parts = merged_parts(self.linked, self.slots.wide, tables, useful_bins(n, self.shares.pair_noise))
        wide, places = _of_slots(self.linked, self.slots.wide, *parts)
        self.curator.merge(wide.schema, places)
        self.slots = Slots(wide)

    def _narrow(self) -> None:
        if self.siblings is None:
            self.siblings = siblings_at(self.shares.strength(self.n_records))
        self.public_settings["siblings"] = self.siblings
        slots, most = self.slots, 1 + self.siblings

        def among(scope: Any) -> bool:
            return slots.wide.ordered or slots.allowed(scope, most)

        self.sets = replace(self.sets, among=among)
        kept = [k for k, pair in enumerate(self.pairs) if among(pair)]
        self.pairs, self.last = [self.pairs[k] for k in kept], self.last[kept]
        self.named_pairs, self.places = [self.named_pairs[k] for k in kept], self.places[kept]

    def before_rounds(self, spending: Spending) -> Iterator[Measurement]:
        """Pairs of columns of a child and of two children, all at once, as far as there is room for them.

        Rounds would come to them one by one, when earlier choices may have left no room in the tree.
        """
        if self.slots.wide.ordered:
            return
        shares = pairs_of_children(self.slots, self.pairs, self.sets.cells, min(self.shares.rounds, self.left))
        for of_kind in shares.values():
            scopes: list[Scope] = []
            for pair, share in of_kind.items():
                if self._tells(pair, share) and self.tree.admits([pair])[0]:
                    self._join(pair)
                    scopes.append(pair)
            if scopes:
                yield Measurement("tables", share * len(scopes), scopes)

    def _tells(self, pair: Scope, share: Fraction) -> bool:
        """Whether a table of columns of children would tell a dependence of theirs from its noise, as far as is known.

        Of x and y, as indicators of their states, with covariances X and Y, the covariance of both is ``X^(1/2) K
        Y^(1/2)`` with singular values of K of at most 1; so the sum of its squares is at most ``|X| |Y|`` in Frobenius
        norms, which is attained where x says what y is. All of it is of released tables.
        """
        wide, norms, free = self.slots.wide, [], 1
        for place in pair:
            name = self.names[place]
            column = next(slot.index(name) for slot in wide.slots if name in slot)
            likely = self.fit.one_way[place][: len(wide.child.states[wide.child.variables[column]])]
            likely = likely / max(float(likely.sum()), 1e-300)
            squares = float((likely**2).sum())
            norms.append(math.sqrt(max(squares - 2 * float((likely**3).sum()) + squares**2, 0.0)))
            free *= len(likely) - 1
        slots = {self.slots.slot_of[place] for place in pair}
        filled = [slots <= set(present) for _, present in wide.patterns]
        families = self.n_records * float(self.fit.one_way[self._place[wide.size]][filled].sum())
        return is_clear((_DEPENDENCE * families) ** 2 * math.prod(norms), free, self.shares.noise(share).variance)

    def _of(self, scope: Scope) -> list[Scope]:
        if scope not in self._images:
            self._images[scope] = self.slots.images(scope)
        return self._images[scope]

    def _join(self, scope: Scope) -> None:
        """Make room for a table, and for as many of its images as keep cliques small; others are left out."""
        self.tree.join(scope)
        for image in self._of(scope):
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


Tables = Mapping[Hashable, tuple[np.ndarray, float]]


def merged_parts(linked: LinkedSchema, wide: WideTable, tables: Tables, bins: int) -> tuple[Merging, Merging | None]:
    """Merge the undivided numbers of children and of parents, by the first tables and the deviations of their noise."""
    child, first = wide.child, dict(zip(wide.child, wide.slots[0], strict=True))
    whole = {name: tables[first[name]] for name in undivided(linked.child)}
    of_child = merge_states(child, _likely(child, whole), bins, 0.0, cuts=linked.count_cuts)
    if linked.parent is None:
        return of_child, None
    parent = linked.parent.fine()
    return of_child, merge_states(parent, _likely(parent, {n: tables[n] for n in undivided(linked.parent)}), bins, 0.0)


def _likely(schema: Schema, tables: Tables) -> Tables:
    """The proportions of the states of some numbers by their densities, which have no noise that is known."""
    likely = {}
    for name, (table, deviation) in tables.items():
        _, density = density_of(schema.numbers[name], table, deviation)
        cells = np.bincount(density.cell, density.likely)
        likely[name] = np.pad(cells, (0, schema.cardinality(name) - len(cells))), 0.0
    return likely


def density_of(number: Number, table: np.ndarray, deviation: float) -> tuple[Number, NumberDensity]:
    """The number in parts of its cells, which are a table's first, and its density over them."""
    n = len(number.cells)
    return number_density(number, Counts(np.arange(n), table[:n].astype(float), deviation))


def _of_slots(
    linked: LinkedSchema, before: WideTable, of_child: Merging, of_parent: Merging | None
) -> tuple[WideTable, dict[Hashable, list[int]]]:
    """The merged wide table, and which of its states each state became: alike in all slots."""
    wide = wide_table(linked, of_child.schema, None if of_parent is None else of_parent.schema)
    places: dict[Hashable, list[int]] = {} if of_parent is None else {n: list(p) for n, p in of_parent.places.items()}
    for slot in before.slots:
        for name, column in zip(before.child, slot, strict=True):
            if name in of_child.places:
                to = list(of_child.places[name])
                extra = len(before.schema.states[column]) - len(to)
                places[column] = [*to, *range(max(to) + 1, max(to) + 1 + extra)]
    return wide, places
