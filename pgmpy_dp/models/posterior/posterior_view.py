"""Intervals and synthetic data sets in the states' own names; a view of `pgmpy_dp.models.posterior.posterior_draws`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_level
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.display import as_table, states_text
from pgmpy_dp.learning.level_plan import within_workload
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import checked_evidence, counted
from pgmpy_dp.models.posterior.discrepancy import MISSES, Discrepancy
from pgmpy_dp.models.posterior.posterior_draws import Interval, Posterior
from pgmpy_dp.models.posterior.query_intervals import (
    Axis,
    Question,
    number_interval,
    query_intervals,
    unmeasured_numbers,
    widened,
)
from pgmpy_dp.models.weighting import Weighting
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from pgmpy_dp.models.markov_network import MarkovNetwork

_DRAWS_OF_PAIRS = 20
"""Draws for the variances of all pairs' tables: a sum over many cells needs no more."""


class Drawn(NamedTuple):
    """The joint tables of a question: the model's own, and those under draws, of it and of each of its exchanges."""

    table: np.ndarray
    draws: list[np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class ParameterPosterior:
    """A posterior of the population behind a release, with the uncertainty from sampling and from privacy noise.

    Made by :meth:`~pgmpy_dp.estimators.CollectiveMAP.posterior` and
    :meth:`~pgmpy_dp.estimators.PrivateNetwork.posterior`; post-processing of one release, so under the same guarantee.

    Attributes
    ----------
    draws : Posterior
        The draws as arrays; see there for what an interval promises.
    schema : Schema
    graph : networkx.Graph or mapping of node to its neighbours
    privacy : Privacy
    n_records, n_records_sd : float
        The number of records, public or estimated, and the standard deviation of the estimate.
    model : LogLinearModel, optional
        The centre of the draws, and of intervals where there is a `discrepancy`.
    discrepancy : Discrepancy, optional
        How far tables that were not measured may be from the model, for reasons other than noise. Without it the graph
        counts as the truth.
    within : mapping of node to Values
        How values are distributed within states, as a model has it.
    network : type, optional
        The class of `models`: `MarkovNetwork`, unless the posterior was read without pgmpy.
    weighting : Weighting, optional
        Of a weighted model: the draws and `model` have the weight as a variable too, and are not weighted yet.
    """

    draws: Posterior
    schema: Schema
    graph: nx.Graph | Mapping[Hashable, Sequence[Hashable]]
    privacy: Privacy
    n_records: float = math.nan
    n_records_sd: float = 0.0
    model: LogLinearModel | None = None
    discrepancy: Discrepancy | None = None
    within: Mapping[Hashable, Values] = field(default_factory=dict)
    network: type[MarkovNetwork] | None = None
    weighting: Weighting | None = None

    def __repr__(self) -> str:
        of = f"{quantity(self.draws.n_draws, 'draw')} of a model of {quantity(self.graph, 'variable')}"
        return f"ParameterPosterior({of}; {self.privacy}; ask .interval, .sample or .models)"

    def _repr_html_(self) -> str:
        rows = [(name, states_text(self.schema.states[name])) for name in self.graph]
        return as_table(repr(self), ("variable", "states"), rows)

    def interval(
        self,
        variables: Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        level: float = 0.9,
        counts: bool = False,
    ) -> dict[str, np.ndarray]:
        """Intervals as arrays; :meth:`~pgmpy_dp.MarkovNetwork.ask` of a model with this `posterior` has labels too.

        Parameters
        ----------
        variables : list of nodes or of levels
        evidence : dict of node to state, value or range, optional
            Evidence about others, as :meth:`~pgmpy_dp.MarkovNetwork.query` takes it.
        level : float in (0, 1)
            Posterior probability of each interval by itself.
        counts : bool, default False
            Whether to say too how many records these are, of as many as the release was made from.

        Returns
        -------
        dict of str to ndarray
            Arrays with an axis for each variable: "estimate", "lower", "upper"; with `counts` also "count",
            "count_lower", "count_upper": under evidence, records that have both. Where a range cuts through a state,
            the interval reaches from none of the state's records in the range to all of them.

        Raises
        ------
        ValueError
            If a variable or a state is unknown, or the level needs more draws.
        """
        if isinstance(variables, str):
            raise ValueError(f"variables={variables!r} must be a list of variables; pass [{variables!r}]")
        checked_level(level)
        if not isinstance(variables, Iterable):
            raise TypeError(f"variables={variables!r} is a {type(variables).__name__}; pass a list of variables")
        names, facts = list(variables), checked_evidence(evidence)
        unknown = [name for name in (*names, *facts) if name not in self.graph and name not in self.schema.levels]
        if unknown or not names:
            raise ValueError(f"variables and evidence name {unknown}, which are not in the model {list(self.graph)}")
        if both := [name for name in names if name in facts]:
            raise ValueError(f"variables and evidence both have {both}; ask about variables of which nothing is known")
        scope = self.schema.leaf_scope([*names, *facts], "variables and evidence")
        told = {
            name: one.told if one else self.schema.cardinality(name) for name, one in [*scope.items()][: len(names)]
        }
        known = {
            name: counted(self.schema, of, one, self.within.get(name)).shares
            for name, (of, one) in zip([*scope][len(names) :], facts.items(), strict=True)
        }
        return self.ends(Question.about(told, known), level, counts)

    def ends(
        self, question: Question, level: float, counts: bool = False, drawn: Drawn | None = None
    ) -> dict[str, np.ndarray]:
        """The intervals of a `Question`; see `interval`, which has the parameters.

        Parameters
        ----------
        question, level, counts
        drawn : Drawn, optional
            The result of `tables` for it.

        Returns
        -------
        dict of str to ndarray
        """
        question = self.weighted(question)
        drawn = self.tables([question])[0] if drawn is None else drawn
        interval = self._interval(question, drawn, level)._asdict()
        if counts:
            whole = self._interval(question, drawn, level, joint=True)
            each = 1.0 if self.weighting is None else self.weighting.means.max()
            half = NormalDist().inv_cdf(0.5 + level / 2) * self.n_records_sd * each * whole.estimate
            size = self.n_records * each
            interval["count"] = size * whole.estimate
            for end, sign in (("lower", -1), ("upper", 1)):
                # The error of the share and that of the number of records are independent.
                error = np.hypot(size * (getattr(whole, end) - whole.estimate), half)
                interval[f"count_{end}"] = np.maximum(size * whole.estimate + sign * error, 0.0)
        return interval

    @property
    def total(self) -> float:
        """The number of records, or the sum of their weights."""
        return self.n_records * (1.0 if self.weighting is None else self.weighting.mean)

    def weighted(self, question: Question) -> Question:
        """The question under the weights, if there are any: as if they were evidence about their variable."""
        if self.weighting is None:
            return question
        likely = np.tile(self.weighting.means / self.weighting.means.max(), (3, 1))
        return replace(question, axes={**question.axes, self.weighting.name: Axis(likely)})

    def tables(self, questions: Sequence[Question]) -> list[Drawn]:
        """The joint tables of questions: the model's, and under each draw those of all exchanges.

        Parameters
        ----------
        questions : sequence of Question
            Several must be about few variables each; a single one may be about any.
        """
        questions = list(map(self.weighted, questions))
        scopes = [[tuple(axes) for axes in (one.axes, *one.exchanged)] for one in questions]
        every = list(dict.fromkeys(itertools.chain.from_iterable(scopes)))
        if len(questions) == 1:
            drawn = {scope: self.draws.query(scope) for scope in every}
        else:
            places = [np.array(self._scope(scope)) for scope in every]
            drawn_tables = self.draws.tables([tuple(np.sort(place).tolist()) for place in places])
            back = [(0, *(1 + np.argsort(np.argsort(place)))) for place in places]
            drawn = {scope: np.transpose(one, to) for scope, one, to in zip(every, drawn_tables, back, strict=True)}
        first = [some[0] for some in scopes]
        if self.model is None or (self.discrepancy is None and not questions[0].around_model):
            estimates = [drawn[scope].mean(axis=0) for scope in first]
        else:
            estimates = self.model.marginals_of(first)
        return [Drawn(table, [drawn[scope] for scope in some]) for table, some in zip(estimates, scopes, strict=True)]

    def _interval(self, question: Question, drawn: Drawn, level: float, joint: bool = False) -> Interval:
        answers = question.answers(drawn.draws, joint=joint)
        if self.discrepancy is not None and self.model is not None:
            scope = self._scope(question.axes)
            limits = query_intervals(drawn.table, answers, question, scope, self.discrepancy, level, joint=joint)
        else:
            limits = self.draws.interval_of(answers, level)
            if question.around_model:
                answer = question.answer(drawn.table, joint=joint)
                limits = Interval(answer, *(np.clip(answer + end - limits.estimate, 0.0, 1.0) for end in limits[1:]))
        return widened(limits, *question.extremes(drawn.table, joint=joint)) if question.is_cut else limits

    def number_ends(
        self, question: Question, drawn: Drawn, values: Values, within: Values, levels: Sequence[float], level: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Intervals of the mean and of quantiles of a number; None where there are too few draws for the level.

        Parameters
        ----------
        question : Question
            About this variable alone.
        drawn : Drawn
        values, within : Values
            How its numbers lie within states: by the model, and under the draws.
        levels : sequence of float in [0, 1]
            The levels of the quantiles.
        level : float

        Notes
        -----
        The intervals are those of the draws (`number_interval`). A mean's is widened for tables that were not measured;
        a quantile's reaches to quantiles of levels as much lower and higher. Where a range cuts a state, both reach as
        far beyond the extremes as beyond the estimate.
        """
        question = self.weighted(question)
        answers = question.answers(drawn.draws)
        if (len(answers) + 1) * (1 - level) < 2 - 1e-9:
            return None
        table, estimate = drawn.table, question.answer(drawn.table)

        def of(shares: np.ndarray) -> np.ndarray:
            return np.array([values.mean(shares), *values.quantiles(shares, levels)])

        wider = np.zeros(1 + len(levels))
        if self.discrepancy is not None and self.model is not None and len(question.axes) > 1:
            scope = self._scope(question.axes)
            wider = unmeasured_numbers(values, table, answers, question, scope, self.discrepancy, levels, level)
        low, high = (np.clip(np.add(levels, sign * wider[1:]), 0.0, 1.0) for sign in (-1, 1))
        ends = number_interval(within, answers, [*low, *high], level)
        lower = np.append(ends[0][0] - wider[0], ends[0][1 : len(wider)])
        upper = np.append(ends[1][0] + wider[0], ends[1][len(wider) :])
        if question.is_cut:
            least, most = (question.answer(table, end, joint=True) for end in (1, 2))
            first = np.tri(len(estimate) + 1, len(estimate), -1, dtype=bool)
            # The least of a ratio, and of a quantile, is where low numbers have the most and high ones the least.
            low, high = (
                np.array([of(one) for one in np.where(first, before, after) if values.share(one) > 0])
                for before, after in ((most, least), (least, most))
            )
            middle = of(estimate)
            lower, upper = low.min(axis=0) - (middle - lower), high.max(axis=0) + (upper - middle)
        first, last = values.quantiles(question.answer(table, 2), [0.0, 1.0])
        return np.maximum(lower, first), np.minimum(upper, last)

    def _scope(self, names: Iterable[Hashable]) -> tuple[int, ...]:
        return tuple(self.draws.cliques.position[name] for name in names)

    @property
    def is_complete(self) -> bool:
        """Whether one measured table has all variables, so that no graph can be wrong; rules and levels add others."""
        every = len(self.draws.cliques.variables)
        whole = max(map(len, self.draws.cliques.scopes)) == every
        return whole and not self.schema.impossible and not self.schema.levels

    def outside(self, variables: Sequence[Hashable]) -> str | None:
        """The reason why probes do not vouch for intervals about a question's variables; None where they do.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgmpy_dp import Budget, learn
        >>> frame = pd.DataFrame(np.random.default_rng(0).integers(2, size=(500, 4)), columns=list("abcd"))
        >>> posterior = learn(frame, Budget(rho=1.0), {name: [0, 1] for name in frame}).posterior(20)
        >>> posterior.outside(["a", "b"]), posterior.outside(["a", "b", "c", "d"])
        (None, 'it is about 4 variables together, and probes have 3')
        """
        if self.discrepancy is None:
            return None if self.is_complete else MISSES["none"]
        scope = self._scope([*variables, *([] if self.weighting is None else [self.weighting.name])])
        why = self.discrepancy.drawn.misses(scope, math.prod(self.draws.cliques.cardinalities[i] for i in scope))
        return why if why is None or self.weighting is None else f"{why}; the weight is one of them"

    def uncertain_pairs(self) -> pd.DataFrame:
        """List pairs of variables by how far their tables may be off, the least known first.

        Returns
        -------
        pandas.DataFrame
            "variable", "other"; "measured", whether the model was fitted to a table that has both (None without a
            `discrepancy`); "error", how far the pair's table is from the population's, in total variation, as the
            first 20 draws and the discrepancy expect.
        """
        import pandas as pd

        return pd.DataFrame(self.pairs_by_error(), columns=["variable", "other", "measured", "error"])

    def pairs_by_error(
        self, some: Iterable[Hashable] | None = None
    ) -> list[tuple[Hashable, Hashable, bool | None, float]]:
        """The rows of `uncertain_pairs`, of all variables, or of some or levels of them."""
        cliques, names = self.draws.cliques, list(self.graph if some is None else some)
        sizes = dict(zip(cliques.variables, cliques.cardinalities, strict=True))
        scope = self.schema.leaf_scope(names)
        told = {name: level.told if level else sizes[name] for name, level in scope.items()}
        label = dict(zip(self._scope(scope), names, strict=True))
        pairs = list(itertools.combinations(sorted(label), 2))
        if not pairs:
            return []
        few = replace(self, draws=replace(self.draws, theta=self.draws.theta[:_DRAWS_OF_PAIRS]))
        leaves = [[cliques.variables[i] for i in pair] for pair in pairs]
        questions = [few.weighted(Question.about({name: told[name] for name in both}, {})) for both in leaves]
        rows: list[tuple[Any, ...]] = []
        for pair, question, drawn in zip(pairs, questions, few.tables(questions), strict=True):
            both = [label[i] for i in pair]
            variance = question.answers(drawn.draws).var(axis=0, ddof=1)
            if self.model is None or self.discrepancy is None:
                rows.append((*both, None, float(np.sqrt(variance).sum() / math.sqrt(2.0 * math.pi))))
                continue
            known = any(set(pair) <= part for part in self.discrepancy.measured)
            known = known or within_workload(both, self.discrepancy.levels, self.schema)
            error = self.discrepancy.expected_variation(pair, question.answer(drawn.table), variance)
            rows.append((*both, known, error))
        return sorted(rows, key=lambda row: -row[3])

    def models(self, n: int) -> list[MarkovNetwork]:
        """The models of the first n draws (draws are independent), each with its own draw of numbers within states."""
        import networkx as nx

        if self.network is None:
            raise ValueError("network=None: there is no class for the models; load the model with MarkovNetwork.load")
        if checked_integer("n", n, 1) > self.draws.n_draws:
            raise ValueError(f"n={n!r} must be from 1 to the number of draws, {self.draws.n_draws}")
        graph, models = nx.Graph(self.graph), []
        for k in range(n):
            rng = np.random.default_rng(k)  # the same model at each call
            within = {name: values.drawn_weights(rng) for name, values in self.within.items()}
            model = self.draws.model(k) if self.weighting is None else self.weighting.applied(self.draws.model(k))
            models.append(self.network.from_log_linear(model, graph, self.schema, self.privacy, within))
        return models

    def sample(
        self, n: int, n_sets: int = 10, random_state: int | np.random.Generator | None = None, labels: bool = False
    ) -> list[pd.DataFrame]:
        """Several synthetic data sets of n records, each from a model of its own.

        The records of each are independent of each other, as the combining rules take them to be. Run the same analysis
        on each and combine with
        :func:`~pgmpy_dp.combine_synthetic`: the combined variance accounts for the
        sampling of the original records and for the privacy noise, which an analysis of one data set cannot.

        Parameters
        ----------
        n : int
            Records in each; any number, the privacy does not depend on it.
        n_sets : int
            Data sets, at most the number of draws.
        random_state : int, numpy.random.Generator or None
        labels : bool, default False
            States instead of numbers and days.
        """
        if checked_integer("n_sets", n_sets, 1) > self.draws.n_draws:
            raise ValueError(f"n_sets={n_sets!r} must be from 1 to the number of draws, {self.draws.n_draws}")
        rng = np.random.default_rng(random_state)
        return [model.sample(n, rng, labels, method="independent") for model in self.models(n_sets)]
