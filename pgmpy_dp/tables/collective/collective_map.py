"""CollectiveMAP: maximum a posteriori from noisy tables, the default choice."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import networkx as nx
import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, Progress
from pgmpy_dp.learning.heavy_tailed_prior import PRIOR_TAIL, VARIANCE_SHAPE
from pgmpy_dp.learning.maximum_a_posteriori import collective_map, most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import anything, number, option, whole
from pgmpy_dp.learning.prior import prior_of
from pgmpy_dp.learning.prior_model import MOST_FITS_WITH_PRIOR, collective_map_with_prior
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


class CollectiveMAP(BaseMarginalsEstimator):
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
            prior.check(schema.subset(name for name in schema if name in graph))
        return cliques

    def _learn_from(self, release: Release, noisy: NoisyMarginals, progress: Progress) -> Fit:
        prior = prior_of(self)
        if prior is None:
            return self._learn(noisy, progress)
        return collective_map_with_prior(noisy, prior.tables(noisy.cliques.scopes, release), **self._how(progress))

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
        graph = nx.Graph(self.model_.edges)
        graph.add_nodes_from(self.model_.nodes)
        noisy = self._noisy(self.release_, self.model_)
        draws = sample_posterior(noisy, self._fit, np.random.default_rng(random_state), n_draws=n_draws)
        schema = self._schema(self.release_, graph)
        draws = draws.obeying(schema.subset(graph.nodes).zeros)
        numbers = {"within": self.model_.within, "network": type(self.model_)}
        return ParameterPosterior(draws, schema, graph, self.privacy_, self.n_records_, self.n_records_sd_, **numbers)
