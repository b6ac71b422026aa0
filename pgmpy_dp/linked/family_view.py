"""Views of a model of linked tables: as one of a random child, of a random family, or of two children of a family.

A view answers as models of one table do, from the table of families. Each state of their number of children counts as
often as the view says. Cells of a child outside the schema are left out of answers about them. Intervals take two
differences into account.

*Images.* What was measured of slot a is known of slot b too: a fit has the table, and its image with the slots
exchanged, whose noise is the same. As two tables with noise of variance v they would say twice what was measured. So in
the posterior the m images of a table have noise of variance m v each, drawn independently: their mean, which is what
symmetric quantities depend on, has the variance v. An image within the same table needs nothing: its two cells are the
mean of two, of variance v/2, and are taken for two cells of variance v. An answer's draws are means over arrangements
of the slots; those of the first slots alone, and its interval wider than need be, where the model had no room for an
image of a table that the answer depends on.

*Families.* The sampling error is that of parents with all their children, of whom there are `n_records`; children are
not drawn one by one. A row of the wide table is a random pair of a parent's children, and what is counted of a parent
is the mean over its rows, which varies no more than one of them (Jensen). So the sampling error of N rows is at least
that of N families: exact for two children and no more, too large for larger families.

Intervals are for the population of families that the parents were drawn from, as those of one table are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.models.answer import Answer, Estimate
from pgmpy_dp.models.answers import Answers, require_open
from pgmpy_dp.models.evidence import Evidence, Known, checked_evidence, counted
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.posterior.query_intervals import Axis, Question
from pgmpy_dp.schema import Number, Schema

if TYPE_CHECKING:
    from pgmpy_dp.linked.linked_model import LinkedModel

OF = ("child", "family", "pair", "family pair")
"""Of whom: a child, a family (or a child of it), two children of one family, or two children of a random family."""

STRANGERS = "By this, two of one family can hardly be told from two strangers."


class FamilyView(Answers):
    """The view that `LinkedModel.view` returns.

    Parameters
    ----------
    model : LinkedModel
    of : {"child", "family", "pair", "family pair"}

    Attributes
    ----------
    nodes : list of names
        Columns of parents, counts and the number of children under their names; ``"person.age"`` of a child, and
        ``"other person.age"`` of another one, who is absent where there is none; ``"previous person.age"`` of the child
        before where children have an order. Of a pair ``"first.age"`` and ``"second.age"``, the first one just before
        the second where children have an order.
    states : dict of name to list
        The states that answers have: of children no cells outside their schema.
    """

    inference = "exact"
    schema = None
    beside = "; the number of children is one of them"

    def __init__(self, model: LinkedModel, of: str) -> None:
        wide, child = model._wide, model.linked.names[1]
        self.of, self.privacy, self.edges = of, model.privacy, []
        self.missing_at_random: dict[Hashable, tuple[Hashable, ...]] = {}
        self._linked, pairs = model, "pair" in of
        slots = wide.slots[::-1] if pairs and wide.ordered else wide.slots
        beside = f"{'previous' if wide.ordered else 'other'} {child}."
        before = ("first.", "second.") if pairs else (f"{child}.", beside)
        title: dict[Hashable, Hashable] = {name: name for name in wide.schema.variables}
        self.within, self.states, self._told = {}, {}, {}
        self.children: list[dict[Hashable, Hashable]] = []
        for text, columns in zip(before, slots, strict=True):
            titles: dict[Hashable, Hashable] = {name: f"{text}{name}" for name in wide.child}
            self.children.append(titles)
            title |= dict(zip(columns, titles.values(), strict=True))
        self._wide_name = {new: old for old, new in title.items()}
        self._child_titles = self.children[: 1 + pairs]
        labels = {new: wide.child.states[name] for titles in self._child_titles for name, new in titles.items()}
        for (table, name), values in model._within.items():
            self.within |= {titles[name]: values for titles in self._child_titles} if table == child else {name: values}
        sizes = np.array([n for n, _ in wide.patterns])
        for new, old in self._wide_name.items():
            states = wide.schema.states[old]
            self.states[new] = list(labels.get(new, states))
            self._told[new] = np.eye(len(self.states[new]), len(states))
        self.states[wide.size] = np.unique(sizes).tolist()
        self._told[wide.size] = (np.unique(sizes)[:, None] == sizes).astype(float)
        self.nodes = list(self._wide_name)
        self._model = replace(model._model, cliques=self._titled(model._model.cliques))
        images = self._slots = Slots(wide)
        self.exchanges = list(zip(images.columns, images.states, strict=True))[1:]
        scopes = () if model.posterior is None else model.posterior.draws.cliques.indices
        there = {tuple(sorted(scope)) for scope in scopes}
        self.alone = [set(scope) for scope in scopes if not there.issuperset(images.images(scope))]

    def _titled(self, cliques: Cliques) -> Cliques:
        """The same tables under the names that the view has for columns, which are in the same order."""
        scopes = tuple(tuple(self.nodes[i] for i in scope) for scope in cliques.indices)
        return replace(cliques, variables=tuple(self.nodes), scopes=scopes)

    @cached_property
    def posterior(self) -> ParameterPosterior | None:
        """The model's posterior under the names of the view; of the number of children it says nothing."""
        posterior = self._linked.posterior
        if posterior is None:
            return None
        draws = replace(posterior.draws, cliques=self._titled(posterior.draws.cliques))
        size: dict[str, Any] = {"n_records": math.nan, "n_records_sd": 0.0}
        return replace(posterior, draws=draws, model=self._model, within=self.within, **size)

    @property
    def factors(self) -> list[np.ndarray]:
        """The tables whose product the model of families is, as logarithms."""
        return self._model.cliques.split(self._model.theta)

    @property
    def numbers(self) -> Mapping[Hashable, Number]:
        """The columns whose values are numbers or days."""
        return {name: v.declared for name, v in self.within.items() if isinstance(v.declared, Number)}

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def title(self, name: Hashable) -> str:
        """As of any model, with the table of a column; the number of children says of whose parent.

        Parameters
        ----------
        name : node

        Returns
        -------
        str
        """
        parent, child = self._linked.linked.names
        if any(name in columns.values() for columns in self.children):
            return str(name)
        whose = "" if "family" in self.of else f" in the {parent} of a random {child}"
        return f"{parent}.{name}" + f" (number of {child} rows{whose})" * (name == self._linked._wide.size)

    def to_log_linear(self) -> LogLinearModel:
        """The model of rows of families, which answers are read from."""
        return self._model

    def counted(self, evidence: Mapping[Hashable, Any] | None) -> dict[Hashable, Evidence]:
        """The evidence, as models of one table count it; on the number of children it is a number, a range or a set."""
        wide, known = self._linked._wide, {}
        declared = {new: (wide.child, name) for titles in self._child_titles for name, new in titles.items()}
        declared[wide.size] = (Schema({wide.size: self.states[wide.size]}), wide.size)
        for name, value in checked_evidence(evidence).items():
            (node,) = self._as_names([name])
            schema, column = declared.get(node, (wide.schema, self._wide_name[node]))
            known[node] = counted(schema, column, value, self.within.get(node))
        return known

    def _table(self, variables: Any, evidence: Any) -> tuple[list[Hashable], np.ndarray]:
        names, known = self._as_names(variables), self.counted(evidence)
        require_open(dict.fromkeys(names), known)
        question = self._question(names, known, self.states)
        return names, question.answer(self._model.marginal(list(question.axes)))

    def weights(self, names: Sequence[Hashable] = ()) -> np.ndarray:
        """The weight of each state of the number of children, in a question about some columns."""
        of_children = {new for columns in self.children for new in columns.values()}
        children = 2 if "pair" in self.of else int(self.of == "child" or not of_children.isdisjoint(names))
        return self._linked._weights(children, "family" not in self.of)

    def _answered(
        self,
        facts: Any,
        question: Question,
        names: Any,
        known: Any,
        shares: Any,
        level: float,
        counts: bool,
        quantiles: Any,
        drawn: Any = None,
    ) -> Answer:
        """As of any model; of one column of two children also how often they have the same state."""
        pairs = zip(*(titles.values() for titles in self._child_titles), strict=True)
        if "pair" not in self.of or known or tuple(names) not in pairs:
            return super()._answered(facts, question, names, known, shares, level, counts, quantiles, drawn)
        if self._refusal(names, facts.posterior) is None:
            drawn = facts.posterior.tables([question])[0]
        answer = super()._answered(facts, question, names, known, shares, level, counts, quantiles, drawn)
        tables = [answer.shares, *([] if drawn is None else question.answers(drawn.draws))]
        told = np.array([[np.trace(t), np.trace(t) - t.sum(axis=1) @ t.sum(axis=0)] for t in tables])
        alike, hardly = [Estimate(float(one)) for one in told[0]], not self._pairs_measured(self._model)
        if len(told) * (1.0 - answer.level) > 2.0 - 1e-9:  # as many draws as the level needs
            limits = facts.posterior.draws.interval_of(told[1:], answer.level)
            ends = np.stack([limits.lower, limits.upper]) + told[0] - limits.estimate
            alike = [Estimate(one.value, *map(float, two)) for one, two in zip(alike, ends.T, strict=True)]
            hardly = hardly or ends[0, 1] <= 0.0 <= ends[1, 1]
        strangers = STRANGERS if hardly else None
        return replace(answer, alike=(alike[0], alike[1]), worth=replace(answer.worth, strangers=strangers))

    def _pairs_measured(self, model: LogLinearModel) -> bool:
        """Whether a table of two children says more than what rules forbid."""
        tables = zip(model.cliques.indices, model.cliques.split(model.theta), strict=True)
        return any(self._slots.count(scope) > 1 and (table[np.isfinite(table)] != 0.0).any() for scope, table in tables)

    def _axes(self, names: Sequence[Hashable], known: Known, weights: np.ndarray) -> dict[Hashable, Axis]:
        size = self._linked._wide.size
        axes: dict[Hashable, Axis] = {}
        for name in [*names, *known, *([size] if np.ptp(weights) else [])]:
            told = self._told[name]
            shares = known[name].shares @ told if name in known else np.ones((3, told.shape[1]))
            axes.setdefault(name, Axis(shares * weights if name == size else shares, told if name in names else None))
        return axes

    def _question(self, names: Sequence[Hashable], known: Known, states: Any) -> Question:
        axes = {
            name: Axis(one.shares / max(float(one.shares.max()), np.finfo(float).tiny), one.told)
            for name, one in self._axes(names, known, self.weights([*names, *known])).items()
        }
        size = self._linked._wide.size
        place = {name: k for k, name in enumerate(self.nodes)}
        exchanged = [
            {self.nodes[to[place[name]]]: one.exchanged(states if name == size else None) for name, one in axes.items()}
            for to, states in self.exchanges
            if not any(len({place[name] for name in axes} & scope) > 1 for scope in self.alone)
        ]
        return Question(axes, exchanged, around_model=True)

    def _refusal(self, names: Sequence[Hashable], posterior: Any) -> str | None:
        refusal = super()._refusal(names, posterior)
        of_two = "pair" in self.of or not set(self.children[1].values()).isdisjoint(names)
        if refusal or not of_two or self._pairs_measured(posterior.draws.model(0)):
            return refusal
        return (
            "no table of two children was measured (siblings=0, or a small budget), so the model takes them for "
            "independent given their parent, and nothing says how wrong that is. Learn with siblings=1"
        )

    def _outside(self, question: Question, names: Sequence[Hashable], posterior: Any) -> str | None:
        why, size = posterior.outside(list(question.axes)), self._linked._wide.size
        unasked = posterior.discrepancy is not None and size in question.axes and size not in names
        return f"{why}{self.beside}" if why and unasked else why

    def _share(self, known: Known) -> float:
        if not known:
            return 1.0
        weights, size = self.weights(list(known)), self._linked._wide.size
        part = self._axes([], known, weights)
        whole = self._model.marginal([size]) @ weights
        return float(Question(part).answer(self._model.marginal(list(part)), joint=True) / whole)
