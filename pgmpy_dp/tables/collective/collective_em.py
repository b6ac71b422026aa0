"""CollectiveEM: expectation-maximisation over the latent exact tables."""

from __future__ import annotations

from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, Progress
from pgmpy_dp.learning.expectation_maximisation import MAX_ITER, collective_em
from pgmpy_dp.learning.maximum_a_posteriori import most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import flag, number, one_of, option, whole
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES

_PUBLISHED = ("e_step", "step", "stop", "damping", "n_propagations")
"""Options of the paper's EM alone."""


class CollectiveEM(BaseMarginalsEstimator):
    """Private parameters by expectation-maximisation of collective graphical models; ``published=True`` is the paper's.

    The model of the tables is the paper's: all come from the same records, which are not known. The E-step takes the
    mean of the exact tables given the release, the M-step has the prior that :class:`CollectiveMAP` learns.
    ``published=True`` is the paper's own: the E-step takes the mode, the M-step has no prior, and stopping early is
    what keeps it from fitting the noise. It is there for comparison; :class:`CollectiveMAP` has about the accuracy of
    the default, in less time, and has intervals.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records, cliques, noise, weights
    e_step : {"dual", "nlbp"}
        "dual" solves the E- and M-step exactly as one convex problem; "nlbp" is the published damped
        non-linear belief propagation, which ends at about the same model and takes far longer.
    n_iter : int, optional
        Iterations at most. The default is 100; of the published EM 40 for "dual", and for "nlbp" six times the scale of
        the noise.
    step : float, optional
        How many published E-steps one "dual" iteration takes together. By default the iterations lengthen.
    stop : {"risk", None}
        With "risk" the model is the iterate with the smallest estimated divergence from the truth; with None the last.
    damping : float in (0, 1], optional
        For "nlbp": weight of the new tables. The default is small enough for the iterations to converge under
        Laplace noise.
    n_propagations : int, optional
        For "nlbp": propagations in each E-step at most. The default is 4 / `damping`, at most 2000.
    published : bool
        The paper's EM. `e_step`, `step`, `stop`, `damping` and `n_propagations` go with it alone.
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
    Model: Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017). Method:
    :func:`pgmpy_dp.learning.expectation_maximisation.collective_em`, this package's;
    :func:`pgmpy_dp.tables.collective.published.published_em.published_em`, the paper's algorithms 1 and 2 with a
    stopping rule of ours. ``tables/collective/published/published_em.md`` says what the two differ by.
    Limits: the exact tables are taken as normal given the release, with variances that do not depend on how far it is
    from them. On page visits at epsilon .003 it loses 1.102 times what :class:`NaiveMLE` does
    (``benchmarks/results/mobility.md``). It has no intervals. The limit of ``published=True`` fits the noise. Its
    stopping rule neglects that the fitted tables depend on the release, so it stops early where interactions are weak
    and the release is strong: up to three times the divergence of the best stop. On weak releases it is cautious.
    "nlbp" takes seconds to minutes on many records, and may not converge if Gaussian noise is far below the counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import MarkovNetwork
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> estimator = CollectiveEM(epsilon=1.0, state_names=states).fit(MarkovNetwork([("rain", "wet")]), data)
    >>> round(float(estimator.model_.marginal(["rain"]).values[0]), 1)
    0.7
    """

    _examples = (
        {**TABLE_EXAMPLES[0], "n_iter": 20},
        {**TABLE_EXAMPLES[1], "published": True, "e_step": "nlbp", "n_iter": 2, "n_propagations": 3},
    )

    e_step: str = option("dual", one_of(("dual", "nlbp")))
    n_iter: int | None = option(None, whole(1))
    step: float | None = option(None, number())
    stop: str | None = option("risk", one_of(("risk", None)))
    damping: float | None = option(None, number(most=1))
    n_propagations: int | None = option(None, whole(1))
    published: bool = option(False, flag())

    def _most_iterations(self) -> int | None:
        most = MAX_ITER if self.n_iter is None else self.n_iter
        return self.n_iter if self.published else most_iterations(max_iter=most) + most

    def _learn(self, noisy: NoisyMarginals, progress: Progress) -> Fit:
        how = {**self._pick("n_iter", "memory_limit", "inference"), "callback": progress}
        if self.published:
            from pgmpy_dp.tables.collective.published.published_em import published_em

            return published_em(noisy, **self._pick(*_PUBLISHED), **how)
        for name in _PUBLISHED:
            value = getattr(self, name)
            if value != getattr(CollectiveEM, name):
                raise ValueError(
                    f"{name}={value!r} is an option of the paper's EM; pass published=True too, or leave {name} out"
                )
        return collective_em(noisy, **how)
