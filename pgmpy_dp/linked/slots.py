"""Exchangeable slots: tables that differ by a permutation of slots are one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.linked.operators.wide_table import WideTable

Scope = tuple[int, ...]


@dataclass(frozen=True)
class Slots:
    """The slots of a wide table, by positions of its columns.

    Parameters
    ----------
    wide : WideTable
    """

    wide: WideTable

    @cached_property
    def slot_of(self) -> tuple[int, ...]:
        """The slot of each column; -1 for those of parents and the number of children."""
        slots = {name: k for k, names in enumerate(self.wide.slots) for name in names}
        return tuple(slots.get(name, -1) for name in self.wide.schema.variables)

    @cached_property
    def columns(self) -> list[tuple[int, ...]]:
        """The place that each column goes to: as they are, and with both slots exchanged; no order is exchanged."""
        place = {name: k for k, name in enumerate(self.wide.schema.variables)}
        one, other = (list(map(place.__getitem__, slot)) for slot in self.wide.slots)
        to = dict(zip([*one, *other], [*other, *one], strict=True))
        images = [tuple(place.values()), tuple(to.get(k, k) for k in place.values())]
        return images[:1] if self.wide.ordered else images

    @cached_property
    def states(self) -> list[np.ndarray]:
        """The images, alike, of the states of the number of children, which say what slots are filled."""
        patterns = self.wide.patterns
        exchanged = [patterns.index((n, tuple(sorted(1 - slot for slot in present)))) for n, present in patterns]
        return [np.arange(len(patterns)), np.array(exchanged)][: len(self.columns)]

    def images(self, scope: Iterable[int]) -> list[Scope]:
        """The sets that a set of columns becomes, each once, ascending within; itself among them."""
        places = tuple(scope)
        return list(dict.fromkeys(tuple(sorted(to[i] for i in places)) for to in self.columns))

    def first(self, scope: Iterable[int]) -> Scope:
        """The image that stands for all."""
        return min(self.images(scope))

    def count(self, scope: Iterable[int]) -> int:
        """The number of slots that a set has columns of."""
        return len({self.slot_of[i] for i in scope} - {-1})

    def allowed(self, scope: Collection[int], most_slots: int) -> bool:
        """Whether a set stands for its images, and is about so many children at most; with an order every set."""
        ordered = tuple(sorted(scope))
        return self.wide.ordered or (self.count(ordered) <= most_slots and self.first(ordered) == ordered)

    def symmetric(self, noisy: NoisyMarginals, left_out: Collection[Scope] = ()) -> NoisyMarginals:
        """Tables with their images: what was measured of one arrangement of children is known of all.

        Parameters
        ----------
        noisy : NoisyMarginals
        left_out : collection of sets of positions
            Images that are not taken, since a model has no room for them.

        Returns
        -------
        NoisyMarginals
            A set's table is the mean of the images that are of this set, with the noise of one of them: where two of
            its cells are images of each other, both have the mean of what was measured twice. So the noise weighs
            against a set's own entropy, or prior, as it would for the table that was measured.
        """
        if self.wide.ordered:
            return noisy.merged()
        place = noisy.cliques.position
        size = place[self.wide.size]
        names = noisy.cliques.variables
        tables = noisy.cliques.split(noisy.counts)
        merged = noisy.cliques.split(np.ones(len(noisy.counts)) if noisy.merged_cells is None else noisy.merged_cells)
        scopes, counts, cells, scale = [], [], [], []
        for c, (original, table, number) in enumerate(zip(noisy.cliques.indices, tables, merged, strict=True)):
            taken = []
            for to, states in zip(self.columns, self.states, strict=True):
                scope = tuple(to[i] for i in original)
                if scope != original and tuple(sorted(scope)) in left_out:
                    continue
                if size in original:
                    axis, back = original.index(size), np.argsort(states)
                    taken.append((scope, np.take(table, back, axis), np.take(number, back, axis)))
                else:
                    taken.append((scope, table, number))
            alike = Counter(frozenset(scope) for scope, *_ in taken)
            for scope, image, count in taken:
                scopes.append(tuple(names[i] for i in scope))
                counts.append(image)
                cells.append(count)
                scale.append(noisy.scale[c] * alike[frozenset(scope)] ** 0.5)
        cliques = Cliques(names, noisy.cliques.cardinalities, tuple(scopes))
        joined = None if noisy.merged_cells is None else cliques.join(cells)
        return replace(
            noisy, cliques=cliques, counts=cliques.join(counts), scale=np.array(scale), merged_cells=joined
        ).merged()

    def once(self, noisy: NoisyMarginals) -> NoisyMarginals:
        """Tables with their images, which say together what was measured once.

        Parameters
        ----------
        noisy : NoisyMarginals
            As :meth:`symmetric` makes them.

        Returns
        -------
        NoisyMarginals
            The noise of m tables that are images of each other is one and the same, of variance v. Drawn m times with
            variance m v, independently, its mean has the variance v, and a mean over images is what everything that is
            symmetric depends on. Images within one table need nothing: its two cells are the mean of two, of variance
            v/2, and are taken for two cells of variance v.
        """
        there = {tuple(sorted(scope)) for scope in noisy.cliques.indices}
        alike = [sum(image in there for image in self.images(scope)) for scope in noisy.cliques.indices]
        return replace(noisy, scale=noisy.scale * np.sqrt(alike))
