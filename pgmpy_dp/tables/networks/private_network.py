"""PrivateNetwork: graph and parameters of a table under one budget, and its short form `learn`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import cache, partial
from itertools import chain, combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.collective_base import Progress, budget_bar
from pgmpy_dp.learning.few_records import NoEdgeWarning, no_edge
from pgmpy_dp.learning.fine_grids import undivided
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.level_engine import at_levels, leaf_scope
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import anything, by, column, flag, number, one_of, option, whole
from pgmpy_dp.learning.prior import prior_of
from pgmpy_dp.learning.prior_model import MOST_FITS_WITH_PRIOR, collective_map_with_prior, with_unmeasured
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.probe_tables import chosen_tables, joined_probes, probe_tables, search_course
from pgmpy_dp.learning.public_tables import TakesPublicTables
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.models.missing_at_random import (
    checked_drivers,
    complete_model,
    complete_posterior,
    complete_schema,
    driven_pairs,
)
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, decode_label
from pgmpy_dp.tables.networks import adaptive_search
from pgmpy_dp.tables.networks.budget_shares import (
    MOST_IN_A_SET,
    OPTIMISE,
    checked_means,
    checked_sets,
    checked_workload,
    workload_weights,
)
from pgmpy_dp.tables.networks.network_posterior import network_posterior
from pgmpy_dp.tables.networks.structure_base import (
    BaseStructureEstimator,
    edge_strengths,
    edges_of,
    network_of_tables,
)


class PrivateNetwork(TakesPublicTables, BaseStructureEstimator):
    """Graph and parameters of an undirected model of a discrete table, learned together under one budget.

    Tables of single variables are released first. Then each round selects the pair or triple of variables, or of their
    levels (:class:`~pgmpy_dp.Levels`), that the model so far gets most wrong, and releases its table. Of a table with
    levels a part of its share is kept for the same variables at coarser levels, measured after the rounds: what the
    finest says, added up, is noise. Rounds end when single variables would gain more by the rest of the budget; they
    get it. The final model is learned from all tables as `CollectiveMAP` does; records drawn from it are synthetic
    data.

    Parameters
    ----------
    epsilon, delta, rho : float
        The budget of one fit: ``epsilon``, ``epsilon`` with ``delta``, or ``rho`` alone. A delta, however small, is
        worth a lot here: the cost of many rounds adds up more slowly.
    state_names, adjacency, n_records
    required_edges : list of pairs of variables, or of sets of several, optional
        Edges that the graph has in any case, tables that are measured in any case: public knowledge, which costs
        nothing. Of a set of several variables the graph has all edges.
    forbidden_edges : list of pairs of variables, or of sets of several, optional
        No table that has all variables of one of these is measured; so the graph has none of the pairs among them.
    max_clique_cells : int
        No clique of the junction tree has more cells: bounds time and memory.
    n_rounds : int, optional
        How many tables the budget would buy if none got more than the first. Default: a number that follows from the
        budget, the number of variables and the estimated number of records. Shares grow once measurements say
        nothing new. (A round selects a table for each 16 variables, and more above 512, before it refits.)
    one_way_share : float in (0, 1), optional
        Share of the budget for single variables. Default: a tenth at first, and last what the tables of several leave
        (:class:`~pgmpy_dp.tables.networks.search_policy.Spending`); with a workload a tenth.
    selection_share : float in (0, 1), optional
        Share of each round for choosing the table. Default: more where there is more to choose from and less budget.
    merge_rare : bool
        Whether the rare states of a categorical variable become one state in tables of pairs. Neighbouring cells of
        numbers that the schema does not divide do so in any case.
    random_state
    max_order : int
        Variables of the largest tables that are measured; 2 for pairs only.
    workload : mapping of sets of variables to positive numbers, or list of such sets, optional
        The questions that the model will answer, with weights. Only tables within these sets are measured, where sets
        name levels at these and coarser ones; probes are tables of the variables themselves. Each set that shares two
        variables or more with a table adds its weight, times how many it shares, to the weight of the table's misfit.
        No set has more than `max_order` variables or `max_clique_cells` cells, these of its variables themselves; one
        whose noise would exceed the number of records is learned from its parts. Default: all tables of up to
        `max_order` variables, alike.
    prior : MarkovNetwork, DiscreteMarkovNetwork, DiscreteBayesianNetwork, LogLinearModel, Release or path, optional
        Model that the search starts from, so that what it gets right need not be measured. If the release speaks for
        it, the final fit learns deviations from it; see `CollectiveMAP` and docs/priors.md.
    probe_share : float in [0, 1)
        Share for the probes, of what the first one-way tables leave: 16 tables of three variables (of two with
        ``max_order=2``), drawn at random and measured last. They tell how wrong the model is where nothing was chosen;
        the intervals of `posterior` depend on that. Probes that would drown in noise get a quarter of the share. At
        last the model is learned from them too, but for those whose noise is expected to exceed the number of records.
        0: none.
    target : variable, optional
        The variable that will be predicted from the others. All pairs with it, the star, are measured first, unless
        noise would hide them. The star gets the share that makes single variables wrong by 10 % more, and more while it
        pays, up to what predictions need. Rounds choose among sets with the target, and may choose its pairs again.
        Other pairs are measured inside these sets alone. Not together with `workload`.
    number_share : float in [0, 1)
        Share of the budget for second tables of numbers that the schema does not divide, in cells that follow what
        their first tables on a fine grid say. 0: none.
    means : list of variables, optional
        Numbers that the schema does not divide, whose means matter. Each gets a sum of its own, of numbers that are
        clipped where the first table says that few are larger: tables alone know a mean badly where a tail is long.
    mean_share : float in (0, 1)
        Share of the budget for the sums of `means`; without these nothing is taken.
    optimise : {"likelihood", "pairs"}
        The aim of a weak budget's division: "likelihood" for what new records will look like, and so for
        dependence and predictions; "pairs" for tables of one and two variables as near as can be, with fewer edges.
    missing_at_random : mapping of variable to list of variables, optional
        Variables whose state None (missing) the model shall not have, each with its drivers: what decides whether its
        value is missing. Tables of each with its drivers are required, and the model is completed from them
        (:meth:`~pgmpy_dp.MarkovNetwork.complete`). Not together with `merge_rare`.
    public, public_from

    Attributes
    ----------
    graph_ : UndirectedGraph
        All variables; an edge for each pair that is in a table that was chosen or required, and for those of a prior
        that was used. The weight of an edge is its score.
    model_ : MarkovNetwork
        The graph with its parameters, with the edges of probes and with those that rules about what is impossible
        need. It is fitted under these rules.
    observed_model_ : MarkovNetwork
        The model before it was completed, which has missing as a state; `model_` where nothing is missing at random.
        `edge_scores_` and `errors_` are of it.
    edge_scores_ : dict of pair to float
        The distance of the two variables from independence under the model, in total variation.
    report_ : pandas.DataFrame
        The course of the search: one row for each release of a table of several variables, with these, the round that
        selected it (0: none did, it was required or is at a coarser level of what was), its share of the budget, the
        scale of its noise, and how wrong the model was about it before, in total variation.
    errors_ : pandas.DataFrame
        For each pair of variables, whether it was measured (alone or in a larger table), and an estimated bound on
        the error (total variation) of its table, largest first. Pairs of which nothing is known come before all
        others, with nan: those not measured, and forbidden, outside the workload or too large (`max_clique_cells`) to
        be selected in any round, or all pairs if the budget went to single variables.
    release_ : Release
        The noisy tables: save them to learn again without the records and without further cost. Given-graph estimators
        take it too: ``CollectiveMAP().fit_release(graph_, release_)``.
    privacy_, n_features_in_, feature_names_in_
    n_records_, n_records_sd_

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.tables.networks.adaptive_search`, which has
    the proof; the rest is post-processing. The budget is charged whole, as one entry, before anything is counted.

    `errors_` estimates bounds, and guarantees none. Of a measured pair: the noise in its tables (in the table's sums,
    where it has more variables), or the misfit of the model if that is larger. Of a pair passed over in the last round
    that could choose it: the noisy choice is at most ``s log K`` below the best of K scores in expectation (s the scale
    of its noise), and what it chose was measured, so the pair is wrong by little more than the chosen one plus what
    measuring it would have added in noise; for large tables that is far too much. docs/where-it-loses.md has how often
    they hold.

    Method: McKenna, Mullins, Sheldon and Miklau (2022); fit, candidates and shares of the budget are this package's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(5000) < 0.3
    >>> wet = rng.random(5000) < np.where(rain, 0.9, 0.1)
    >>> data = pd.DataFrame({"rain": rain, "wet": wet, "coin": rng.random(5000) < 0.5})
    >>> states = {name: [False, True] for name in data}
    >>> estimator = PrivateNetwork(epsilon=1.0, delta=1e-6, state_names=states).fit(data)
    >>> estimator.graph_.has_edge("rain", "wet"), bool(estimator.edge_scores_["rain", "wet"] > 0.2)
    (True, True)
    >>> list(estimator.sample(2).columns)
    ['rain', 'wet', 'coin']
    """

    required_edges: list[tuple] | None = option(None, by(checked_sets, chain.from_iterable))
    forbidden_edges: list[tuple] | None = option(None, by(checked_sets, chain.from_iterable))
    max_clique_cells: int = option(50_000, whole(4))
    n_rounds: int | None = option(None, whole(1))
    one_way_share: float | None = option(None, number(below_one=True))
    selection_share: float | None = option(None, number(below_one=True))
    merge_rare: bool = option(False, flag())
    max_order: int = option(3, whole(2, MOST_IN_A_SET))
    workload: Any = option(None, by(checked_workload))
    prior: Any = option(None, anything())
    probe_share: float = option(0.08, number(positive=False, below_one=True))
    target: Hashable = option(None, by(column))
    number_share: float = option(0.2, number(positive=False, below_one=True))
    optimise: str = option(OPTIMISE[0], one_of(OPTIMISE))
    means: list | None = option(None, by(checked_means, lambda names: names))
    mean_share: float = option(0.05, number(below_one=True))
    missing_at_random: Any = option(None, by(checked_drivers, lambda drivers: chain(*driven_pairs(drivers))))

    _most_in_a_table: ClassVar[int] = MOST_IN_A_SET

    def _check(self) -> None:
        forbidden = [set(banned) for banned in self.forbidden_edges or ()]
        both = [wanted for wanted in self.required_edges or () if any(banned <= set(wanted) for banned in forbidden)]
        if both:
            raise ValueError(f"required_edges and forbidden_edges both have {sorted(both, key=repr)}")
        if self.workload and self.target is not None:
            raise ValueError(
                f"target={self.target!r} and a workload were both passed; pass one of them, for a target stands for "
                "all sets that contain it"
            )

        if self.public is not None and (self.merge_rare or self.missing_at_random):
            raise ValueError("merge_rare and missing_at_random change states that public tables count; leave them out")
        drivers = self._drivers()
        if drivers and self.merge_rare:
            raise ValueError(
                "merge_rare=True may make one state of rare ones and of what is missing; leave it out, or leave "
                "missing_at_random out"
            )
        pairs = [] if drivers is None else driven_pairs(drivers)
        if banned := [pair for pair in pairs if any(some <= set(pair) for some in forbidden)]:
            raise ValueError(
                f"missing_at_random needs tables of {banned}, which forbidden_edges forbids; take them out"
            )

    def _drivers(self) -> dict[Hashable, tuple[Hashable, ...]] | None:
        drivers = self.missing_at_random
        return None if drivers is None else checked_drivers("missing_at_random", drivers)

    def _check_schema(self, schema: Schema) -> None:
        if (drivers := self._drivers()) is not None:
            complete_schema(schema, drivers)
        divided = [name for name in self._options.means or () if name not in undivided(schema)]
        if divided:
            raise ValueError(
                f"means={self.means!r} has {divided}, which the schema does not declare as undivided numbers; pass "
                "columns that are Number(lower, upper) without cuts and bins, or leave them out"
            )
        prior = prior_of(self)
        if prior is not None:
            prior.check(schema)
        self._public_tables(schema)

    def _prior_privacy(self) -> Privacy | None:
        prior = prior_of(self)
        return None if prior is None else prior.privacy

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        prior, limits = prior_of(self), (self.forbidden_edges or (), self.max_clique_cells)
        base_of = None if prior is None else lambda release: prior.base(release, *limits)
        prior_privacy = None if prior is None or prior.privacy is None else prior.privacy.to_dict()
        table, options = self._noted(table, self._options)
        if drivers := options.missing_at_random:
            required = options.required_edges or ()
            pairs = [pair for pair in driven_pairs(drivers) if not any(set(pair) <= set(wanted) for wanted in required)]
            options = options.but(required_edges=(*required, *pairs))
        with budget_bar(type(self).__name__) as progress:
            return adaptive_search.run(table, options, budget, progress, base_of=base_of, prior_privacy=prior_privacy)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        if "rounds" not in release.public:
            raise ValueError("release has no rounds: it is not one of PrivateNetwork; learn from it with CollectiveMAP")

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        chosen, schema = probe_tables(release).start, release.schema
        measured = [scope for scope in release.scopes[:chosen] if len(scope) > 1]
        sizes = tuple(schema.cardinality(name) for name in schema.variables)
        scopes = tuple(tuple(schema.leaf_scope(scope)) for scope in release.scopes[:chosen])
        cliques = with_zeros(Cliques(schema.variables, sizes, scopes), schema.zeros)
        tables = [*range(chosen), *_above_noise(release, joined_probes(release, cliques))]
        drivers = self._drivers()
        n_fits = 1 if self.prior is None else MOST_FITS_WITH_PRIOR
        model, fit, noisy = network_of_tables(type(self).__name__, release, tables, privacy, self._fitted, n_fits)
        model, contradicted = self._agreeing(model, release)
        complete = model if drivers is None else complete_model(model, drivers, fit.model)
        prior = prior_of(self) if "base" in fit.details else None  # one that was used has edges of its own
        limits = self.forbidden_edges or (), self.max_clique_cells
        further = [] if prior is None else prior.further_tables(release, measured, *limits)
        # Beside probes not all of the prior's tables may have fitted into small cliques.
        held = set(edges_of(noisy.cliques.scopes, schema))
        edges = [edge for edge in edges_of([*measured, *further], schema) if edge in held]
        scores = edge_strengths(fit.model, edges)
        return {
            "graph_": graph_on(schema.variables, scores),
            "model_": complete,
            "edge_scores_": scores,
            "report_": search_course(release, noisy.n_records),
            "errors_": _errors(release, noisy, fit.model),
            "n_records_": noisy.n_records,
            "n_records_sd_": noisy.n_records_sd,
            "_last_fit": fit,
            "_noisy": noisy,
            "observed_model_": model,
            "_contradicted": contradicted,
        }

    def _doubts(
        self, release: Release, privacy: Privacy, learned: Mapping[str, Any]
    ) -> dict[type[Warning], str | None]:
        graph = learned["graph_"]
        doubts = super()._doubts(release, privacy, learned)
        share = sum(record["share"] for record in release.public["rounds"])
        return doubts | {NoEdgeWarning: no_edge(len(graph), graph.number_of_edges(), share)}

    def _fitted(self, release: Release, noisy: NoisyMarginals, progress: Progress = None) -> tuple[Fit, NoisyMarginals]:
        """Fit some tables of a release, with the tables of a prior beside them where they speak for it."""
        prior = prior_of(self)
        if prior is None:
            noisy = self._beside_public(release, noisy)
            return collective_map(noisy, callback=progress), noisy
        scopes = list(noisy.cliques.scopes)
        beside = prior.further_tables(
            release, [scope for scope in scopes if len(scope) > 1], self.forbidden_edges or (), self.max_clique_cells
        )
        fit = collective_map_with_prior(noisy, prior.tables(scopes, release), unmeasured=beside, callback=progress)
        return fit, with_unmeasured(noisy, beside)[0] if "base" in fit.details else noisy

    def posterior(self, n_draws: int = 50, random_state: int | None = None) -> ParameterPosterior:
        """Draws from the posterior of the parameters, and intervals that count how wrong the graph may be.

        Post-processing of the release: needs no records and costs nothing.

        Parameters
        ----------
        n_draws : int
            Independent draws, computed together.
        random_state : int, optional
            For repeatable draws; it has no part in privacy.

        Returns
        -------
        ParameterPosterior

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            If `n_draws` is below 2.

        Notes
        -----
        The draws are of the model given its graph, as those of :class:`~pgmpy_dp.estimators.CollectiveMAP`. What the
        graph leaves out is learned from the probes, against a model that was learned without them
        (:mod:`pgmpy_dp.models.posterior.discrepancy`). Without probes the graph counts as the truth, and intervals are
        too narrow where it is not. docs/intervals.md has how often they hold.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame(rng.integers(0, 2, (5000, 4)), columns=list("abcd"))
        >>> estimator = PrivateNetwork(epsilon=1.0, delta=1e-6, state_names={name: [0, 1] for name in "abcd"}).fit(data)
        >>> estimator.model_.posterior = estimator.posterior(20)
        >>> interval = estimator.model_.ask("a", {"b": 1, "c": 0}).interval
        >>> bool((interval["lower"] < 0.5).all() and (interval["upper"] > 0.5).all())
        True
        """
        self.check_is_fitted()
        posterior = network_posterior(
            self.release_, self._last_fit, self._noisy, self.observed_model_, self._fitted, n_draws, random_state
        )
        drivers, posterior = self._drivers(), self._agreeing_draws(posterior)
        return posterior if drivers is None else complete_posterior(posterior, drivers, self.model_)


def _above_noise(release: Release, probes: list[int]) -> list[int]:
    """The probes whose noise is not expected to exceed the number of records; others would only disturb."""
    noisy = noisy_marginals(release, release.schema.variables, merge=False)
    size = np.array(noisy.cliques.sizes) * np.sqrt(2 / math.pi * noisy.table_variance)
    return [c for c in probes if size[c] <= noisy.n_records]


def _errors(release: Release, noisy: NoisyMarginals, fitted: LogLinearModel) -> pd.DataFrame:
    """A bound on the error of each pair, from its tables, or because the last round that had it passed it over."""
    schema, n = release.schema, noisy.n_records
    measured, settings = _errors_of_measured(noisy, fitted), release.public["settings"]
    weight = workload_weights(schema, settings)
    rounds: dict[int, int] = {}  # 0 is none: required tables
    for k, record in enumerate(release.public["rounds"]):
        rounds.setdefault(record["round"], k)  # the first selection of a round had all candidates
    last = dict.fromkeys(map(frozenset, combinations(schema.variables, 2)), max(rounds, default=0))
    last |= {frozenset(map(decode_label, names)): 0 for names in settings["forbidden"]}
    last |= {frozenset(map(decode_label, pair)): k for *pair, k in release.public["unavailable"]}
    passed_over = cache(partial(_error_when_passed_over, release))  # pairs of as many cells have the same bound
    rows = []
    for pair in combinations(schema.variables, 2):
        cells = schema.cardinality(pair[0]) * schema.cardinality(pair[1])
        bounds = [measured[frozenset(pair)]] if frozenset(pair) in measured else []
        if last[frozenset(pair)] and weight(pair) > 0:
            passed = rounds[last[frozenset(pair)]]
            bounds.append(passed_over(passed, cells, weight(pair)))
        bound = min(min(bounds) / (2.0 * n), 1.0) if bounds else math.nan
        rows.append((*pair, cells, frozenset(pair) in measured, bound))
    frame = pd.DataFrame(rows, columns=["first", "second", "cells", "measured", "error_bound"])
    return frame.sort_values("error_bound", ascending=False, kind="stable", ignore_index=True, na_position="first")


def _errors_of_measured(noisy: NoisyMarginals, fitted: LogLinearModel) -> dict[frozenset, float]:
    """l1 error, in records, of the model's tables of measured pairs; the least, of pairs in several tables."""
    per_scale = math.sqrt(2 / math.pi) if noisy.noise == "gaussian" else 1.0
    scopes, levels = noisy.cliques.scopes, noisy.levels
    expected = fitted.marginals()[: noisy.cliques.n_cells]
    if levels:
        leaves = fitted.marginals_of([leaf_scope(scope, levels) for scope in scopes])
        expected = noisy.cliques.join(at_levels(leaves, scopes, levels))
    misfit = noisy.cliques.split(noisy.counts - noisy.n_records * expected)
    errors: dict[frozenset, float] = {}
    for scope, table, scale in zip(noisy.cliques.scopes, misfit, noisy.scale, strict=True):
        for kept in combinations(range(len(scope)), 2):
            others = tuple(axis for axis in range(len(scope)) if axis not in kept)
            cells = np.abs(table.sum(axis=others))
            # A cell of the sum has the noise of as many cells as were added up.
            noise = cells.size * per_scale * float(scale) * math.sqrt(table.size / cells.size)
            pair = frozenset(scope[axis] for axis in kept)
            # If the model follows the noise, its error is the noise; if it does not fit, it is the misfit; if it is
            # right, both are the noise.
            errors[pair] = min(max(float(cells.sum()), noise), errors.get(pair, math.inf))
    return errors


def _error_when_passed_over(release: Release, measurement: int, cells: int, weight: float) -> float:
    """Bound the l1 error, in records, that a table of so many cells had just before another was chosen."""
    rounds, tables = release.public["rounds"], chosen_tables(release)
    here = rounds[measurement]
    bounds = []
    # Where each selection of a round has a part of the candidates, which had this one is not told.
    for k, record in enumerate(rounds):
        if k == measurement or ("parts" in here and record["round"] == here["round"]):
            heaviest = record.get("heaviest", 1.0)
            chosen = record["misfit"] * record.get("weight", 1.0) - record["offset"] * heaviest
            chosen += record["selection_scale"] * math.log(record["candidates"]) * heaviest
            noise = cells * record["offset"] / release[release.names[tables[k]]].array.size
            bounds.append((max(chosen, 0.0) + noise * heaviest) / weight)
    return max(bounds)
