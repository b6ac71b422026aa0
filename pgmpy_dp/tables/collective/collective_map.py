"""Maximum a posteriori from noisy tables: CollectiveMAP, the default choice, and tables that others released."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import KW_ONLY, replace
from typing import Any

import networkx as nx
import numpy as np

from pgmpy_dp.checks import ArgumentError, checked_integer, checked_number, require_choice
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import choose_inference, require_inference
from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, Progress
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.heavy_tailed_prior import PRIOR_TAIL, VARIANCE_SHAPE
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.maximum_a_posteriori import collective_map, most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import agreed_total
from pgmpy_dp.learning.options import Settings, anything, number, option, whole
from pgmpy_dp.learning.prior import prior_of
from pgmpy_dp.learning.prior_model import MOST_FITS_WITH_PRIOR, collective_map_with_prior
from pgmpy_dp.learning.privacy_record import Privacy, StatedByOthers
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.learning.public_tables import TakesPublicTables
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.prediction import public_numbers, state_codes
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.reading.frames import column_names
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


class CollectiveMAP(TakesPublicTables, BaseMarginalsEstimator):
    """Private parameters by penalised, smoothed marginal likelihood of the noisy tables.

    The default choice. It models the noise (the exact tables are latent), learns from the release itself
    how strong each interaction may be, and falls back to simple models where the release says little.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records, cliques, noise, weights
    entropy_share : float in [0, 1)
        How much of the prior on interactions is an entropy term.
    margin_share : float in [0, 1]
        With 1 that term pulls to the product of the margins, with 0 to the uniform model.
    n_rounds : int
        Alternations between learning the prior's variances and the parameters.
    max_iter : int
        Iterations of L-BFGS in each round at most.
    tol : float
        A round ends when an iteration lowers the objective by less than this share of it.
    memory_limit, inference, random_state
    prior_tail : float
        Where the prior of an effect turns from a normal to a Laplace one, in squared standard deviations. At a given
        variance larger shrinks strong effects more (``inf``: a normal prior), smaller less. Main effects have a tenth.
    variance_shape : float
        Shape of the Gamma prior of those variances. Larger expects stronger effects, smaller stays nearer the uniform
        model where the release says little.
    prior : MarkovNetwork, DiscreteMarkovNetwork, DiscreteBayesianNetwork, LogLinearModel, Release or path, optional
        Model that deviations are learned from, instead of the uniform one: a public model or guess, last year's model,
        or its release, or the file of either. It may have another graph, other variables and other cuts of numbers.
        It is used only if the release speaks for it; see docs/priors.md.
    public, public_from

    Attributes
    ----------
    parameters_, model_, release_, privacy_, n_features_in_, feature_names_in_, n_records_, n_records_sd_
    converged_, status_, n_iter_, objective_
    inference_, inference_status_

    Notes
    -----
    Privacy: the only access to the records is the release of
    :mod:`pgmpy_dp.learning.noisy_tables`; the rest is post-processing.
    A `prior` that was learned from private records has its own guarantee: ``privacy_.prior``. For a person whose
    records are in both, the two add up (``privacy_.total``).
    `entropy_share`, `margin_share`, `prior_tail` and `variance_shape` are the prior (docs/priors.md says how much the
    last two matter); `n_rounds`, `max_iter` and `tol` say when to stop.
    Method: :func:`pgmpy_dp.learning.maximum_a_posteriori.collective_map`; the model of the tables is that of
    Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), the estimator is this package's.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import MarkovNetwork
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> estimator = CollectiveMAP(epsilon=1.0, state_names=states).fit(MarkovNetwork([("rain", "wet")]), data)
    >>> round(float(estimator.model_.marginal(["rain"]).values[0]), 1)
    0.7
    """

    _examples = (TABLE_EXAMPLES[0], {**TABLE_EXAMPLES[1], "n_rounds": 1, "max_iter": 10})

    entropy_share: float = option(0.3, number(positive=False, below_one=True))
    margin_share: float = option(0.5, number(positive=False, most=1))
    n_rounds: int = option(3, whole(1))
    max_iter: int = option(100, whole(1))
    tol: float = option(1e-5, number(positive=False, below_one=True))
    _: KW_ONLY
    prior_tail: float = option(PRIOR_TAIL, number(infinite=True))
    variance_shape: float = option(VARIANCE_SHAPE, number())
    prior: Any = option(None, anything())

    def _prior_privacy(self) -> Privacy | None:
        prior = prior_of(self)
        return None if prior is None else prior.privacy

    def _checked_cliques(self, graph: nx.Graph, schema: Schema, scopes: Any) -> Cliques:
        cliques, prior = super()._checked_cliques(graph, schema, scopes), prior_of(self)
        if prior is not None:
            if levels := levels_in(schema, cliques.scopes):
                raise ValueError(f"prior cannot be used with tables of the levels {list(levels)}; pass prior=None")
            prior.check(schema.subset(name for name in schema if name in graph))
        if (tables := self._public_tables(schema.subset(name for name in schema if name in graph))) is not None:
            if choose_inference(cliques, self.inference, self.memory_limit) != "exact":
                raise ValueError(f"inference={self.inference!r} is approximate, and public tables need exact inference")
            boxes = [*schema.subset(graph.nodes).fine().zeros, *tables.boxes]
            require_inference(with_zeros(cliques, boxes), "exact", self.memory_limit)
        return cliques

    def _noisy(self, release: Release, graph: nx.Graph) -> NoisyMarginals:
        noisy = super()._noisy(release, graph)
        return noisy if self.prior is not None else self._beside_public(release, noisy)

    def _learn_from(self, release: Release, noisy: NoisyMarginals, progress: Progress) -> Fit:
        prior = prior_of(self)
        if prior is None:
            return self._learn(noisy, progress)
        return collective_map_with_prior(noisy, prior.tables(noisy.cliques.scopes, release), **self._how(progress))

    def _run(self, table: PrivateTable, settings: Settings, budget: Budget) -> Release:
        return super()._run(*self._noted(table, settings), budget)

    def _most_iterations(self) -> int:
        return most_iterations(self.n_rounds, self.max_iter, 1 if self.prior is None else MOST_FITS_WITH_PRIOR)

    def _learn(self, noisy: NoisyMarginals, progress: Progress) -> Fit:
        return collective_map(noisy, **self._how(progress))

    def _how(self, progress: Progress) -> dict[str, Any]:
        how = self._pick("entropy_share", "margin_share", "n_rounds", "max_iter", "tol", "memory_limit", "inference")
        return {**how, **self._pick("prior_tail", "variance_shape"), "callback": progress}

    def posterior(self, n_draws: int = 200, random_state: int | None = None) -> ParameterPosterior:
        """Draws from the posterior of the parameters given the release; needs no records and costs nothing.

        Intervals are for the population that the records were drawn from, so they account for the sampling of the
        records and for the privacy noise. See :func:`pgmpy_dp.models.posterior.posterior_sampling.sample_posterior`.

        Parameters
        ----------
        n_draws : int
            Independent draws, computed together.
        random_state : int, optional
            For repeatable draws; unlike the estimator's own it has no part in privacy.

        Returns
        -------
        ParameterPosterior
            Draws, with intervals of marginals and of conditional queries.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            If an argument is out of range.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgmpy_dp import MarkovNetwork
        >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
        >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        >>> estimator = CollectiveMAP(epsilon=1.0, state_names=states).fit(MarkovNetwork([("rain", "wet")]), data)
        >>> estimator.model_.posterior = estimator.posterior(n_draws=50)
        >>> list(estimator.model_.ask("rain", {"wet": "yes"}).to_frame().columns)
        ['rain', 'probability', 'lower', 'upper']
        """
        self.check_is_fitted()
        checked_integer("n_draws", n_draws, 1)
        noisy = self._noisy(self.release_, self.model_)
        made = replace(_posterior(self.model_, noisy, self._fit, n_draws, random_state), privacy=self.privacy_)
        return self._agreeing_draws(made)


def _posterior(model: Any, noisy: NoisyMarginals, fit: Fit, n_draws: int, seed: Any = None) -> ParameterPosterior:
    """The posterior of a model as it was learned, in its own states and under its rules."""
    draws = sample_posterior(noisy, fit, np.random.default_rng(seed), n_draws=n_draws).obeying(model.schema.zeros)
    of, counted = (model.schema, nx.Graph(model), model.privacy), (noisy.n_records, noisy.n_records_sd)
    return ParameterPosterior(draws, *of, *counted, within=model.within, network=type(model))


def from_noisy_tables(
    tables: Iterable, schema: Any, *, noise: str, stated: str, total: float | None = None, draws: int | None = None
) -> MarkovNetwork:
    """Learn a model from noisy tables that others released, without the records, a budget or a ledger.

    Parameters
    ----------
    tables : iterable
        One table of counts each: a tuple ``(scope, counts, variance)`` of variables, an array with an axis for each of
        them in the order of its states, and the variance of the noise, a number or an array of the same shape. Or a
        dataframe or a file in the long form: a line for each cell, with a column for each variable of the table and
        the columns "count" and "variance". The same table may come several times.
    schema : Schema or dict of variable to list of states
        Public, as `learn` takes it. Variables that no table has are left out of the model.
    noise : {"laplace", "gaussian"}
        The law of the noise, independent between cells. "laplace" is for the two-sided geometric law too, "gaussian"
        for the discrete one, and for tables with different laws.
    stated : str
        What is known of the guarantee of these tables, in the words of whoever released them. It is printed as stated
        by others.
    total : float, optional
        The number of records that the tables count, if it is public. Default: estimated from the tables.
    draws : int, optional
        Posterior draws that the model keeps, for intervals; for example 30.

    Returns
    -------
    MarkovNetwork
        With an edge between any two variables of a table, and those that rules about what is impossible need. Its
        `privacy` is a :class:`~pgmpy_dp.learning.privacy_record.StatedByOthers`.
        Tables that join too many variables for exact inference are fitted by loopy inference.

    Raises
    ------
    ArgumentError, TypeError, ValueError
        For a table with cells that are missing, doubled, no numbers or without noise, or of other states than the
        schema's; for a `total` that the tables contradict; for a schema that was discovered, whose cost `stated` has to
        tell; and for other arguments that cannot be used.
    InferenceTooLarge
        For `draws` where exact inference is too large.

    Notes
    -----
    Privacy: this is post-processing of what was published, so that whatever guarantee the tables have, the model has.
    Which one that is, this package cannot know: it charges nothing and promises nothing.

    Method: :func:`~pgmpy_dp.learning.maximum_a_posteriori.collective_map`. Repeated tables are joined by inverse
    variance first. Counts may be negative, and need not agree between tables. Noise is taken to be independent, which
    tables that were made to agree with each other (a census' tabulations after its "top-down" step) do not have.

    Examples
    --------
    >>> states = {"age": ["<40", ">=40"], "ill": ["no", "yes"]}
    >>> counts = [[403.1, 96.4], [291.0, 210.9]]  # with Laplace noise of scale 2: variance 2 * 2**2
    >>> said = "0.5-DP (note of the clinic, 2025)"
    >>> model = from_noisy_tables([(("age", "ill"), counts, 8.0)], states, noise="laplace", stated=said, draws=50)
    >>> print(model.privacy)
    noisy tables, stated by others: 0.5-DP (note of the clinic, 2025)
    >>> float(model.query("ill", {"age": ">=40"}).values[1].round(2))
    0.42
    """
    schema = Schema.coerce(schema, "schema")
    require_choice("noise", noise, ("laplace", "gaussian"))
    if not isinstance(stated, str) or not stated.strip():
        raise ArgumentError("stated", stated, "pass what is known of the tables' guarantee, and from where, as a text")
    if schema.discovered:
        raise ArgumentError("schema", schema, "it was found in records; pass schema.as_public(), and say so in stated")
    sums: dict[tuple, Any] = {}  # precisions, and counts that these weigh
    for k, table in enumerate(tables):
        scope, counts, variance = _checked_table(table, schema, f"tables[{k}]")
        sums[scope] = sums.get(scope, 0.0) + np.array([1.0 / variance, counts / variance])
    if not sums:
        raise ValueError("tables is empty; pass one table of counts at least")
    known = schema.subset(name for name in schema if any(name in scope for scope in sums))
    cliques = Cliques(known.variables, tuple(known.cardinalities.values()), tuple(sums))
    counts = cliques.join(weighted / precision for precision, weighted in sums.values())
    scale = [(precision.max() * (2.0 if noise == "laplace" else 1.0)) ** -0.5 for precision, _ in sums.values()]
    # A cell of a larger variance than the table's least is as one that several were added up to.
    merged = cliques.join(precision.max() / precision for precision, _ in sums.values())
    noisy = NoisyMarginals(cliques, counts, noise, np.array(scale), None, merged, tuple(known.zeros))  # type: ignore
    total = None if total is None else checked_number("total", total, positive=True)
    if total and agreed_total(total, noisy.n_records, noisy.n_records_sd) is None:
        raise ValueError(f"total={total!r} is not what the tables sum to, about {noisy.n_records:,.0f}; correct it")
    noisy = replace(noisy, total=total)
    fit, record = collective_map(noisy, inference="auto"), StatedByOthers(statement=stated)
    graph = graph_on(known.variables, itertools.chain.from_iterable(itertools.combinations(s, 2) for s in sums))
    model = MarkovNetwork.from_log_linear(fit.model, graph, known, record)
    if draws:
        model.posterior = _posterior(model, noisy, fit, draws)
    return model


def _checked_table(table: Any, schema: Schema, what: str) -> tuple[tuple, np.ndarray, np.ndarray]:
    """Scope, counts and variances of a table, in the schema's order of variables."""
    in_parts, measured = isinstance(table, tuple | list) and len(table) == 3, ("count", "variance")
    scope = list(table[0]) if in_parts else [name for name in column_names(table) if name not in measured]
    if not scope or len(set(scope)) < len(scope) or not set(scope) <= set(schema):
        raise ValueError(f"{what} is of the variables {scope}; pass some of {schema.variables}, each once")
    shape = tuple(schema.cardinality(name) for name in scope)
    counts, variance = map(np.asarray, table[1:]) if in_parts else np.full((2, *shape), np.nan)
    if not in_parts:
        codes = state_codes(schema, table, scope, what)
        if (codes < 0).any() or len(np.unique(codes, axis=0)) < len(codes):
            raise ValueError(f"{what} has a line without a state, or several of one cell; pass one line for each cell")
        counts[*codes.T], variance[*codes.T] = public_numbers(table, measured)
    if counts.shape != shape or variance.shape not in ((), shape) or np.result_type(counts, variance).kind not in "iuf":
        passed = f"counts ({counts.dtype}) of shape {counts.shape}, variances ({variance.dtype}) of {variance.shape}"
        raise ValueError(f"{what} has {passed}; pass numbers of shape {shape}, for the states of {scope}")
    variance = np.broadcast_to(variance, shape)
    for cell in map(tuple, np.argwhere(~(np.isfinite(counts) & np.isfinite(variance) & (variance > 0)))):
        states = [schema.states[name][k] for name, k in zip(scope, cell, strict=True)]
        numbers = f"count {counts[cell]} with variance {variance[cell]} for the cell {states}"
        raise ValueError(f"{what} has {numbers}; pass both, the variance above 0: a table without noise is public")
    order = np.argsort([schema.variables.index(name) for name in scope])
    return tuple(scope[axis] for axis in order), counts.transpose(order), variance.transpose(order)
