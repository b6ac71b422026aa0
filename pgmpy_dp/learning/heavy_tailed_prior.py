"""The pseudo-Huber prior of CollectiveMAP: normal near 0, Laplace far away, with a parameter for where it turns.

Its variances are empirical-Bayes ones for groups of parameters, averaged over their posterior.
"""

from __future__ import annotations

import numpy as np
from scipy.special import kve, logsumexp

from pgmpy_dp.learning.interaction_split import free_share
from pgmpy_dp.learning.noise_likelihood import log_density
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

PRIOR_TAIL = 1.0
"""Default tail parameter a."""


def pseudo_huber(x: np.ndarray, variance: np.ndarray, tail: float = PRIOR_TAIL) -> tuple[float, np.ndarray]:
    """a sum(sqrt(1 + x^2/(a s)) - 1) and its gradient; x^2/(2 s) near 0, sqrt(a/s) |x| far away.

    Parameters
    ----------
    x : ndarray
    variance : ndarray, broadcastable
        s, positive.
    tail : float
        a > 0: it turns where x^2 is about a s. ``inf`` is the normal prior, towards 0 it has ever heavier tails.

    Returns
    -------
    value : float
    gradient : ndarray of the shape of x

    Examples
    --------
    >>> value, gradient = pseudo_huber(np.array([0.0, 3.0]), np.array([1.0, 1.0]), tail=4.5)
    >>> round(value, 4), gradient.round(4)
    (3.2942, array([0.    , 1.7321]))
    """
    scaled = x / variance
    root = np.sqrt(1 + x * scaled / tail)
    # a (root - 1) without the cancellation of large a.
    return float(np.sum(x * scaled / (1 + root))), scaled / root


def pseudo_huber_curvature(x: np.ndarray, variance: np.ndarray, tail: float = PRIOR_TAIL) -> np.ndarray:
    """Gradient over x: the curvature of the parabola that touches the penalty at x from above."""
    return 1.0 / (variance * np.sqrt(1 + x**2 / (tail * variance)))


def pseudo_huber_variance(tail: float = PRIOR_TAIL) -> float:
    """Variance of a variable with density proportional to exp(-`pseudo_huber`), as a multiple of s: K_2(a)/K_1(a).

    Examples
    --------
    >>> round(pseudo_huber_variance(1.0), 4), pseudo_huber_variance(np.inf)
    (2.6995, 1.0)
    """
    if tail > 1e6:  # scipy's Bessel functions give up somewhere; the next term of the expansion is below 1e-12
        return 1 + 1.5 / tail
    return float(kve(2, tail) / kve(1, tail))


VARIANCE_GRID = np.geomspace(1e-5, 9.0, 28)
"""Candidate prior variances of the groups; the smallest is that of an interaction which is not there, or as the prior
says, as far as a million records tell."""

VARIANCE_SHAPE = 0.5
"""Shape of the Gamma(shape, rate 1) prior of a variance. Towards 0 (flat in log s below 1) little is learned from
weak releases; with 1, models of weak interactions come out worse than the uniform one more often."""

_LOG_GRID = np.log(VARIANCE_GRID)
_CENTRES = np.log(np.geomspace(1e-5, 9.0, 55))
_SPREADS = np.array([0.25, 0.5, 1.0, 2.0])


def _grouped_prior() -> np.ndarray:
    """log p(log s | m, tau) on the grids; axes m, tau, s."""
    log_prior = -0.5 * ((_LOG_GRID - _CENTRES[:, None, None]) / _SPREADS[:, None]) ** 2
    return log_prior - logsumexp(log_prior, axis=2, keepdims=True)


_LOG_PRIOR = _grouped_prior()
_PRIOR = np.exp(_LOG_PRIOR).reshape(-1, len(VARIANCE_GRID)).T.copy()  # s by (m, tau)


def _log_hyperprior(shape: float) -> np.ndarray:
    """log p(m, tau) up to a constant, axes m, tau."""
    return np.repeat(shape * _CENTRES - np.exp(_CENTRES), len(_SPREADS)).reshape(-1, len(_SPREADS))


def table_evidence(noisy: NoisyMarginals, mu: np.ndarray, effect: np.ndarray) -> np.ndarray:
    """log p(y_C | s) of each table, linearised in the effects of its cells at a fit, for each s on the grid.

    Parameters
    ----------
    noisy : NoisyMarginals
        With noise.
    mu, effect : ndarray of shape (n_cells,)
        Marginals of the fit, and the part of its log-potentials whose prior variance is in question.

    Returns
    -------
    ndarray of shape (n_cliques, 28)
    """
    n, cliques, noise = noisy.n_records, noisy.cliques, noisy.cell_scale
    free = np.array([free_share(shape) for shape in cliques.shapes])
    information = n * mu * (1 - mu)
    residual = noisy.counts - n * mu + information * effect
    variance = information + 1e-4 * noise**2 + information**2 * cliques.spread(free) * VARIANCE_GRID[:, None]
    log_p = log_density(residual, variance, noisy.noise, noise)
    return free[:, None] * np.add.reduceat(log_p, [part.start for part in cliques.slices], axis=1).T


def posterior_variances(log_evidence: np.ndarray, shape: float = VARIANCE_SHAPE) -> np.ndarray:
    """Geometric posterior mean of each group's prior variance in a two-level model.

    log s_g ~ Normal(m, tau^2) on the grid, with tau uniform on {1/4, 1/2, 1, 2} and p(m)
    proportional to exp(shape m - e^m), so that e^m has a Gamma(shape) prior, on a grid of 55 points: groups
    share strength, and the variance is averaged over its posterior, never maximised (a maximum runs
    away when the signal is weak).

    Parameters
    ----------
    log_evidence : ndarray of shape (n_groups, 28)
        log p(data of the group | s) on `VARIANCE_GRID`.
    shape : float
        Shape of the variances' Gamma prior, positive.

    Returns
    -------
    ndarray of shape (n_groups,)
        exp(E[log s_g | data]).
    """
    likelihood = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    # axes: group, (m, tau)
    weighted = likelihood @ _PRIOR
    moment = (likelihood * _LOG_GRID) @ _PRIOR
    # A group's likelihood may be 0 far from its own optimum: it then rules that (m, tau) out.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_posterior = np.log(weighted).sum(axis=0) + _log_hyperprior(shape).ravel()
        conditional_mean = np.where(weighted > 0, moment / weighted, 0.0)
    posterior = np.exp(log_posterior - log_posterior.max())
    return np.exp(conditional_mean @ (posterior / posterior.sum()))


def pooled_variance(log_evidence: np.ndarray, shape: float = VARIANCE_SHAPE) -> float:
    """exp(E[log s | data]) of one variance for all groups, with the Gamma(shape) prior.

    Parameters
    ----------
    log_evidence : ndarray of shape (n_groups, 28)
        As for `posterior_variances`; groups are independent.
    shape : float
        Shape of the variances' Gamma prior, positive.
    """
    log_posterior = log_evidence.sum(axis=0) + shape * _LOG_GRID - VARIANCE_GRID
    weights = np.exp(log_posterior - log_posterior.max())
    return float(np.exp(weights @ _LOG_GRID / weights.sum()))


def draw_variances(
    log_evidence: np.ndarray, n_draws: int, rng: np.random.Generator, shape: float = VARIANCE_SHAPE
) -> np.ndarray:
    """Independent draws from the posterior that `posterior_variances` averages over.

    First (m, tau) given all data, then each log s_g given (m, tau) and the group's data, all on their grids.

    Parameters
    ----------
    log_evidence : ndarray of shape (n_groups, 28)
        As for `posterior_variances`.
    n_draws : int
    rng : numpy.random.Generator
    shape : float
        Shape of the variances' Gamma prior, positive.

    Returns
    -------
    ndarray of shape (n_draws, n_groups)
    """
    # axes: group, m, tau, s
    log_joint = logsumexp(log_evidence[:, None, None, :] + _LOG_PRIOR, axis=3).sum(axis=0) + _log_hyperprior(shape)
    weights = np.exp(log_joint - log_joint.max()).ravel()
    chosen = rng.choice(weights.size, size=n_draws, p=weights / weights.sum())
    draws = np.empty((n_draws, len(log_evidence)))
    for k, (m, tau) in enumerate(zip(*np.unravel_index(chosen, log_joint.shape), strict=True)):
        # The largest of Gumbel-perturbed logarithms is a draw from the normalised distribution.
        perturbed = log_evidence + _LOG_PRIOR[m, tau] + rng.gumbel(size=log_evidence.shape)
        draws[k] = VARIANCE_GRID[perturbed.argmax(axis=1)]
    return draws
