"""Intervals of a model of linked tables: for a random child, for two children of one parent, and for counts.

The posterior is that of :mod:`pgmpy_dp.models.posterior.posterior_sampling` over the wide table, whose rows
are drawn, as many as there are parents. Two things differ from one table.

*Images.* What was measured of slot a is known of slot b too: a fit has the table, and its image with the slots
exchanged, whose noise is the same. As two tables with noise of variance v they would say twice what was measured. So
here the m images of a table have noise of variance m v each, drawn independently: their mean, which is what symmetric
quantities depend on, has the variance v. An image within the same table needs nothing: its two cells are the mean of
two, of variance v/2, and are taken for two cells of variance v. An answer is the mean over arrangements of the slots;
that of the first slots alone, and its interval wider than need be, where the model had no room for an image of a table
that the answer rests on.

*Families.* The sampling error is that of parents with all their children, of whom there are `n_records`; children are
not drawn one by one. A row of the wide table is a random pair of a parent's children, and what is counted of a parent
is the mean over its rows, which varies no more than one of them (Jensen). So the sampling error of N rows is at least
that of N families: exact for two children and no more, too large for larger families.

Intervals are for the population of families that the parents were drawn from, as those of one table are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.models.posterior.posterior_draws import Interval
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.posterior.query_intervals import between, widened

if TYPE_CHECKING:
    import pandas as pd

    from pgmpy_dp.linked.linked_model import LinkedModel


@dataclass(frozen=True)
class Question:
    """What is asked of the wide table: see ``LinkedModel.answered``.

    Attributes
    ----------
    titles : sequence
        What the answer's axes are called.
    kinds : sequence of (int, name)
        For each the table that its column is of, 0 for parents and 1 for children, and the column.
    scope : sequence of str
        Their columns of the wide table.
    known : sequence of (str, ndarray of shape (3, states))
        Columns of which something is known, and how likely that is in each of their states, at least and at most.
    weights : ndarray
        For how much each state of the number of children counts.
    children : int
        How many children of one parent it is about.
    """

    titles: Sequence[Hashable]
    kinds: Sequence[tuple[int, Hashable]]
    scope: Sequence[Hashable]
    known: Sequence[tuple[Hashable, np.ndarray]]
    weights: np.ndarray
    children: int


@dataclass(frozen=True, eq=False, repr=False)
class LinkedPosterior:
    """What a release of linked tables says about the population of families, with its uncertainty.

    Made by :meth:`~pgmpy_dp.linked.PrivateLinkedNetwork.posterior`; post-processing of one release, so under the same
    guarantee. Assigned to the model's `posterior`, it goes into its file.

    Attributes
    ----------
    model : LinkedModel
        What intervals are around.
    wide : ParameterPosterior
        Draws of the model of the wide table, and what probes say.
    """

    model: LinkedModel
    wide: ParameterPosterior

    def __repr__(self) -> str:
        return f"LinkedPosterior({self.wide.draws.n_draws} draws; {self.wide.privacy}; ask .interval, .interval_pairs)"

    def interval(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        weight: str | None = None,
        level: float = 0.9,
    ) -> pd.DataFrame:
        """What :meth:`~pgmpy_dp.LinkedModel.query` answers, with intervals.

        Parameters
        ----------
        variables, evidence, weight
            As of :meth:`~pgmpy_dp.LinkedModel.query`.
        level : float in (0, 1)
            Posterior probability of each interval by itself.

        Returns
        -------
        pandas.DataFrame
            One row for each joint state, C order: a column for each variable, then "estimate", "lower", "upper".
            ``attrs["outside"]`` says why probes do not vouch for these intervals, or is None.

        Raises
        ------
        ValueError
            For what the model does not answer.
        """
        return self.interval_of(self.model.about_one(variables, evidence, weight), level)

    def interval_pairs(
        self,
        variables: Hashable | Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        weight: str = "pair",
        level: float = 0.9,
    ) -> pd.DataFrame:
        """What :meth:`~pgmpy_dp.LinkedModel.query_pairs` answers, with intervals.

        Parameters
        ----------
        variables, evidence, weight
            As of :meth:`~pgmpy_dp.LinkedModel.query_pairs`.
        level : float in (0, 1)

        Returns
        -------
        pandas.DataFrame
            As of :meth:`interval`.

        Raises
        ------
        ValueError
            For what the model does not answer, and where no table of two children was measured (``siblings=0``): it
            takes them for independent given their parent, and nothing says how wrong that is.
        """
        return self.interval_of(self.model.about_two(variables, evidence, weight), level)

    def interval_counts(
        self,
        condition: str,
        by: Sequence[Hashable] = (),
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        level: float = 0.9,
    ) -> pd.DataFrame:
        """What :meth:`~pgmpy_dp.LinkedModel.counts` answers, with intervals.

        Parameters
        ----------
        condition, by, evidence
            As of :meth:`~pgmpy_dp.LinkedModel.counts`.
        level : float in (0, 1)

        Returns
        -------
        pandas.DataFrame
            As of :meth:`interval`.
        """
        return self.interval_of(self.model.about_counts(condition, by, evidence), level)

    def refusal(self, question: Question) -> str | None:
        """Why there are no intervals for a question; None where there are."""
        slots = Slots(self.model._wide)
        if question.children < 2 or any(slots.count(scope) > 1 for scope in self.wide.draws.cliques.indices):
            return None
        return (
            "no table of two children was measured (siblings=0, or a small budget), so the model takes them for "
            "independent given their parent, and nothing says how wrong that is. Learn with siblings=1"
        )

    def outside(self, question: Question) -> str | None:
        """Why probes do not vouch for intervals of a question; None where they do."""
        if self.wide.discrepancy is None:
            return "there were no probes, so the graph is taken for the truth"
        columns = self._columns(question)
        sizes = self.wide.draws.cliques.cardinalities
        scope = tuple(self.wide.draws.cliques.position[name] for name in columns)
        why = self.wide.discrepancy.drawn.misses(scope, math.prod(sizes[i] for i in scope))
        size = self.model._wide.size
        unasked = size in columns and size not in question.scope and all(name != size for name, _ in question.known)
        return f"{why}; the number of children is one of them" if why and unasked else why

    def interval_of(self, question: Question, level: float) -> pd.DataFrame:
        """Intervals of a question; ValueError where there are none."""
        import pandas as pd

        checked_level(level)
        if why := self.refusal(question):
            raise ValueError(f"there is no interval for two children of one parent: {why}")
        labels = self.model.labels_asked(question)
        cells = np.indices([len(own) for own in labels]).reshape(len(labels), -1)
        columns = [pd.Series([own[k] for k in row]) for own, row in zip(labels, cells, strict=True)]
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index(list(question.titles), tupleize_cols=False)
        for part, values in zip(("estimate", "lower", "upper"), self._intervals(question, level), strict=True):
            frame[part] = values
        frame.attrs["outside"] = self.outside(question)
        return frame

    def _columns(self, question: Question) -> list[Hashable]:
        """Columns of the wide table that an answer depends on, those asked about first."""
        size = [self.model._wide.size] if np.ptp(question.weights) else []
        return list(dict.fromkeys([*question.scope, *(name for name, _ in question.known), *size]))

    def _intervals(self, question: Question, level: float) -> Interval:
        """Estimate and both ends for each cell of an answer, flat."""
        model, columns = self.model, self._columns(question)
        told: list[np.ndarray | None] = [*model.states_asked(question), *[None] * len(columns)]
        factors = self._factors(question, columns)
        parts, *ends = ([_Part(*both) for both in zip(told, rows, strict=False)] for rows in zip(*factors, strict=True))
        table = model._model.marginal(columns)
        estimate, extremes = _answer(table, parts), []
        if any((least < most).any() for _, least, most in factors):
            extremes = [end.ravel() for end in between(*(_answer(table, end, joint=True) for end in ends))]
        if not np.isfinite(estimate).all():
            raise ValueError("evidence has the probability 0 in the model; ask with other evidence")
        drawn = [
            _answer(
                self.wide.draws.query(names), [part.permuted(to) for part, to in zip(parts, states, strict=True)], 1
            )
            for names, states in self._arrangements(columns)
        ]
        draws = np.nanmean(drawn, axis=0).reshape(self.wide.draws.n_draws, -1)
        flat, discrepancy = estimate.ravel(), self.wide.discrepancy
        if discrepancy is None:
            spread = self.wide.draws.interval_of(draws, level)
            found = Interval(flat, *(np.clip(flat + end - spread.estimate, 0.0, 1.0) for end in spread[1:]))
            return widened(found, *extremes) if extremes else found
        shares, slopes = [], []
        for cell, share in zip(np.ndindex(estimate.shape), flat, strict=True):
            known = table
            for axis, part in enumerate(parts):
                known = np.moveaxis(
                    np.tensordot(part.of(cell[axis] if axis < len(cell) else None), known, (1, axis)), 0, axis
                )
            inside: Any = tuple([slice(0, 2)] * len(cell) + [0] * (known.ndim - len(cell)))
            slope = np.zeros(known.shape)
            slope[(0,) * known.ndim] = 1.0
            slope[inside] -= share
            shares.append(known)
            slopes.append(slope / known[inside].sum())
        place = tuple(self.wide.draws.cliques.position[name] for name in columns)
        half = discrepancy.half_widths(place, shares, slopes, draws.var(axis=0, ddof=1), level)
        found = Interval(flat, np.maximum(flat - half, 0.0), np.minimum(flat + half, 1.0))
        return widened(found, *extremes) if extremes else found

    def _factors(self, question: Question, columns: Sequence[Hashable]) -> list[np.ndarray]:
        """For each column how much of each state what is known, and the weight of families, takes in: at most 1.

        Three rows each: likely, at least and at most.
        """
        sizes = self.wide.draws.cliques.cardinalities
        found = {name: np.ones((3, sizes[self.wide.draws.cliques.position[name]])) for name in columns}
        for name, factor in [*question.known, (self.model._wide.size, question.weights)]:
            if name in found:
                found[name] = found[name] * factor
        return [factor / max(float(factor.max()), np.finfo(float).tiny) for factor in found.values()]

    def _arrangements(self, columns: Sequence[Hashable]) -> list[tuple[list[Hashable], list[np.ndarray | None]]]:
        """The columns with slots exchanged in each way, as far as tables have their images, and where states go."""
        slots, wide = Slots(self.model._wide), self.model._wide
        names, there = wide.schema.variables, {tuple(sorted(scope)) for scope in self.wide.draws.cliques.indices}
        asked = {names.index(name) for name in columns}
        missing = any(
            len(asked & set(scope)) > 1 and not there.issuperset(slots.images(scope))
            for scope in self.wide.draws.cliques.indices
        )
        return [
            (
                [names[to[names.index(name)]] for name in columns],
                [states if name == wide.size else None for name in columns],
            )
            for to, states in list(zip(slots.columns, slots.states, strict=True))[: 1 if missing else None]
        ]


@dataclass(frozen=True)
class _Part:
    """One axis of a table: states that are told, shape (told, states), None where it is not; and what is taken in."""

    told: np.ndarray | None
    factor: np.ndarray

    def permuted(self, to: np.ndarray | None) -> _Part:
        """The same where states have gone elsewhere."""
        if to is None:
            return self
        back = np.argsort(to)
        return _Part(None if self.told is None else self.told[:, back], self.factor[back])

    def of(self, cell: int | None) -> np.ndarray:
        """Which part of each state is the cell, another one that is told, and left out; or is known, and is not."""
        if self.told is None or cell is None:
            return np.stack([self.factor, 1.0 - self.factor])
        own, every = self.told[cell] * self.factor, self.told.sum(axis=0) * self.factor
        return np.stack([own, every - own, 1.0 - every])


def _answer(table: np.ndarray, parts: Sequence[_Part], batch: int = 0, joint: bool = False) -> np.ndarray:
    """The distribution of what is told, given what is known, or with it; nan where that has the probability 0."""
    for axis, part in reversed(list(enumerate(parts, batch))):
        if part.told is None:
            table = np.tensordot(table, part.factor, axes=(axis, 0))
        else:
            table = np.moveaxis(np.tensordot(part.told * part.factor, table, axes=(1, axis)), 0, axis)
    total = table.sum(axis=tuple(range(batch, table.ndim)), keepdims=True)
    with np.errstate(invalid="ignore"):
        return table if joint else table / total
