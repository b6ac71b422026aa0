"""NaiveMLE: maximum likelihood that takes the noisy tables for exact ones."""

from __future__ import annotations

from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, Progress
from pgmpy_dp.learning.maximum_likelihood import MOST_TO_CHOOSE_L2, Fit, naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import number, option, whole
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES


class NaiveMLE(BaseMarginalsEstimator):
    """Private parameters by maximum likelihood from noisy tables taken as if they were exact.

    The quick baseline: each noisy table is projected on the simplex, then the penalised likelihood is
    maximised. :class:`CollectiveMAP` models the noise instead and is more accurate.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records, cliques, noise, weights
    l2 : float, optional
        Penalty (l2/2)|theta|^2 on the mean log-likelihood. Default: chosen from the release, see
        `pgmpy_dp.learning.maximum_likelihood.least_risk_penalty`.
    max_iter : int
    tol : float
        Largest difference between fitted and noisy probabilities, up to the penalty, each over its standard deviation
        in one record; with hardly a penalty the largest difference itself.
    memory_limit, inference, random_state

    Attributes
    ----------
    parameters_, model_, release_, privacy_, n_features_in_, feature_names_in_, n_records_, n_records_sd_
    converged_, status_, n_iter_, objective_
    inference_, inference_status_

    Notes
    -----
    Privacy: the only access to the records is the release of
    :mod:`pgmpy_dp.learning.noisy_tables`; the rest is post-processing.
    Method: Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), section 3.1.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import MarkovNetwork
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> estimator = NaiveMLE(epsilon=1.0, state_names=states).fit(MarkovNetwork([("rain", "wet")]), data)
    >>> round(float(estimator.model_.marginal(["rain"]).values[0]), 1)
    0.7
    """

    _examples = (TABLE_EXAMPLES[0], {**TABLE_EXAMPLES[1], "l2": 0.01, "max_iter": 50})

    l2: float | None = option(None, number(positive=False))
    max_iter: int = option(1000, whole(1))
    tol: float = option(1e-5, number(positive=False, below_one=True))

    def _most_iterations(self) -> int:
        return MOST_TO_CHOOSE_L2 + self.max_iter

    def _learn(self, noisy: NoisyMarginals, progress: Progress) -> Fit:
        how = self._pick("l2", "max_iter", "tol", "memory_limit", "inference")
        return naive_mle(noisy, **how, callback=progress)
