"""A posterior of a model's parameters given noisy tables: draws, intervals, several synthetic data sets.

The target is the *population*: the marginals mu(theta) of the distribution that the N records were drawn from,
not the tables of those records. Two errors lie between it and the release y, both known up to theta:

    n = N mu(theta) + sampling error,   covariance A = N Cov(T), exact, also between tables (`SumProduct.derivative`)
    y = n + privacy noise,              covariance W, 2 b^2 (Laplace) or sigma^2 (Gaussian) in each cell

so that to second order y given theta is Normal(N mu(theta), C), C = A + W, with A taken at the fit. The interactions
and main effects of theta (`InteractionSplit`) are normal with the variances c t_g, t_g drawn from its own posterior
(`draw_variances`) and c = 3.6 for the default prior (`posterior_target` says why). One draw minimises the perturbed
objective

    F_k(theta) = 1/2 |y + e_k - N mu(theta)|^2_{1/C} + 1/2 |I(theta) - x_k|^2 / (c t_k)
                 + 1/2 |phi(theta) - f_k|^2 / (c t_k)

with e_k ~ Normal(0, C) and (x_k, f_k) from the prior: randomised maximum likelihood, or perturb and MAP. Were mu linear
these would be exact draws from the posterior. mu is not linear, which is why the Laplace approximation is far too
wide: Gauss-Newton curvature says nothing about cells that the noise hides, log-probabilities drawn there from a
symmetric distribution raise the cells' expected probability, and all well-known cells shift to make room. A perturbed
optimum, in contrast, still has to fit its perturbed tables. benchmarks/results/coverage.md has the measurements. (On
Adult at 4,000 records tables drawn by the Laplace approximation have ninety times the variance.)

All draws share the curvature at the fit, factorised once or its diagonal, and are minimised side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pgmpy_dp.inference.lbfgs import minimize_lbfgs_batch
from pgmpy_dp.learning.collective_base import progress_bar
from pgmpy_dp.learning.level_engine import LevelEngine, leaf_tables
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.models.posterior.posterior_target import Case, DenseMetric, DiagonalMetric, Metric, Target

DENSE_LIMIT = 2500
"""Cells up to which the covariance of the tables is held as a dense matrix (50 MB each, four of them)."""

_MAX_EVALUATIONS = 40
"""Evaluations of the draws' objectives. Where noise hides most cells not all draws have ended by then: on Adult's 4,000
records and 951 cells their deviations are 1.5 % less than at the minima."""

_DONE: dict[str, Any] = {"gradient_tol": 1e-2, "decrease_tol": 1e-5}
"""When a draw has ended: by a step's relative decrease, or where next to nothing is left to gain."""


def sample_posterior(
    noisy: NoisyMarginals,
    fit: Fit,
    rng: np.random.Generator,
    *,
    n_draws: int = 200,
    dense_limit: int = DENSE_LIMIT,
) -> Posterior:
    """Draw parameters from their posterior given noisy tables.

    Parameters
    ----------
    noisy : NoisyMarginals
        The release.
    fit : Fit
        `collective_map` of the same release: where the covariance and the prior are taken.
    rng : numpy.random.Generator
        Post-processing: no privacy depends on it.
    n_draws : int
        Number of independent draws.
    dense_limit : int
        Up to this number of cells A and the curvature are dense, exact matrices. Above it sampling errors come down the
        junction tree, with the same covariance, and 1/C and the preconditioner are diagonal.

    Returns
    -------
    Posterior

    Raises
    ------
    ValueError
        If an argument is out of range, the tables carry no noise, or the fit is of other tables.

    Notes
    -----
    Where the total is not public, each draw uses the total of its own perturbed tables.
    Laplace noise enters with its variance, as normal noise: nothing is gained from cells beyond what the best linear
    estimate gains, which is a little conservative.

    References
    ----------
    Oliver, He, Reynolds (1996), Conditioning permeability fields to pressure data, ECMOR V (randomised maximum
    likelihood); Papandreou, Yuille (2010), Gaussian sampling by local perturbations, NeurIPS 23.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> from pgmpy_dp.learning.maximum_a_posteriori import collective_map
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> noisy = NoisyMarginals(cliques, np.array([400.0, 110.0, 95.0, 405.0]), "laplace", np.array([5.0]), total=1000)
    >>> posterior = sample_posterior(noisy, collective_map(noisy), np.random.default_rng(0))
    >>> estimate, lower, upper = posterior.interval_of(posterior.query(["a", "b"]), level=0.9)
    >>> bool(lower[0, 0] < 0.4 < upper[0, 0]), bool(upper[0, 0] - lower[0, 0] < 0.1)
    (True, True)
    """
    _require_posterior(noisy, fit)
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws!r}")
    dense = noisy.cliques.n_cells <= dense_limit
    target = Target(noisy, fit, n_draws, rng)
    metric = (DenseMetric if dense else DiagonalMetric)(target)
    cases = [target.perturbed(metric, k, rng) for k in range(n_draws)]
    theta = np.empty((n_draws, noisy.cliques.n_cells))
    converged = np.empty(n_draws, dtype=bool)
    with progress_bar("posterior", n_draws, "draws") as progress:
        for batch in target.batch.batches():
            theta[batch], converged[batch] = _optima(target, metric, [cases[k] for k in batch])
            if progress is not None:
                for _ in set(batch):
                    progress()
    status = f"{n_draws} draws, {'dense' if dense else 'diagonal'} covariance"
    status += f", {n_draws - np.count_nonzero(converged)} of the optimisations stopped at {_MAX_EVALUATIONS} steps"
    if noisy.levels:
        theta = cast(LevelEngine, target.batch).down(theta)
    theta.flags.writeable = False
    return Posterior(leaf_tables(noisy.cliques, noisy.levels), theta, "perturb", status, fit.model.memory_limit)


def _require_posterior(noisy: NoisyMarginals, fit: Fit) -> None:
    """Refuse a fit of other tables, and tables without noise."""
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": a posterior given exact tables needs none of this')
    if fit.model.cliques != with_zeros(leaf_tables(noisy.cliques, noisy.levels), noisy.impossible):
        raise ValueError("fit must be of the same tables as noisy: pass collective_map(noisy)")
    if not np.isfinite(fit.details.get("theta", fit.model.theta)).all():
        raise ValueError(
            "fit must have finite parameters, got a model with structural zeros of its own: pass collective_map(noisy)"
        )


def _optima(target: Target, metric: Metric, cases: Sequence[Case]) -> tuple[np.ndarray, np.ndarray]:
    """Parameters at the minima of perturbed objectives, and which of them were reached."""
    case = Case(*map(np.array, zip(*cases, strict=True)))
    z, converged = minimize_lbfgs_batch(
        lambda z: target.whitened(metric, case, z),
        np.zeros((len(cases), len(target.centre))),
        max_evaluations=_MAX_EVALUATIONS,
        **_DONE,
    )
    return np.array([target.identified(theta) for theta in target.centre + metric.whiten(z)]), converged
