"""The fit of maximum entropy in contrasts: which interactions there are, by a penalty, then a refit of these alone.

:mod:`pgmpy_dp.fields.maximum_entropy` calls it with the released moments of a field, and makes the field of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.fields.contrasts import Contrasts
from pgmpy_dp.fields.mean_features import Enumeration, JunctionTreeMoments, elimination_cells
from pgmpy_dp.fields.persistent_gibbs import make_chains
from pgmpy_dp.fields.support_search import grow_support, matched, shrunk_by_prior
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.proximal import minimize_proximal

_ENUMERATION_LIMIT = 2**16
"""Joint states, of 16 binary or 10 ternary variables; a pass takes a few milliseconds."""

_TREE_LIMIT = 2**21
"""Cells of a junction tree; a calibration takes a tenth of a second."""

_SEED = 20200707
"""Of the Gibbs chains. They see released numbers only, so a fixed seed weakens nothing, and fits can be repeated."""

_L1_SHARE = 0.4
"""Share of the threshold that is the l1 penalty; the rest decides, on the penalised fit, what stays."""

_PRUNE_SHARE = 0.8
"""Share of the threshold below which an interaction goes after a refit, where no penalty shortens it."""

_MOST_PRUNINGS = 2

_GROW_LIMIT = 200
"""Variables above which the junction trees of a growing support take longer to find than the chains to run."""

_DEVIATIONS = 4.0
"""Standard deviations by which the norm of an interaction has to exceed what is expected of noise."""

_SEARCH_STEPS, _REFIT_STEPS, _MOST_STEPS = 240, 160, 640
_RATE = 0.5


@dataclass(frozen=True)
class ContrastFit:
    """Parameters in contrasts and how the fit ended.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,)
        With zeros outside the support.
    support : ndarray of bool, shape (n_scopes,)
        Scopes that were fitted.
    converged : bool
        Exact inference: L-BFGS met its tolerance. Gibbs chains: the fitted mean features are, in root mean square,
        within one standard error of the given ones.
    status : str
    n_iter : int
        Of the refit.
    method : {"enumeration", "junction tree", "gibbs"}
        Inference of the refit.
    """

    theta: np.ndarray
    support: np.ndarray
    converged: bool
    status: str
    n_iter: int
    method: str


def fit_contrasts(
    effects: Contrasts, target: np.ndarray, scale: np.ndarray, *, sparse: bool, bound: float
) -> ContrastFit:
    """Parameters whose mean features are the given noisy ones, on a support that is found or given.

    Minimise A(theta) - theta . target + prior(theta), with A the log-partition function, over |theta| <= bound:
    twice where the support is to be found, first plus an l1 penalty on the blocks of the interactions.

    Parameters
    ----------
    effects : Contrasts
        The effects that may be present.
    target : ndarray of shape (n_parameters,)
        Noisy mean features; any finite numbers.
    scale : ndarray of shape (n_scopes,)
        Standard error of one feature of each block, of noise and sampling together; positive.
    sparse : bool
        Whether to look for the support; otherwise all effects stay.
    bound : float
        Largest absolute value of a parameter.

    Notes
    -----
    The last term is `support.prior`: next to nothing for parameters below 1, it keeps moments that only noise tells
    from impossible ones from drawing their parameters without end.

    A block of d features that is absent has an estimate of norm about scale sqrt(d), above tau = scale (sqrt(d) + 4)
    once in ten thousand (Laurent and Massart, 2000). The l1 penalty is 0.4 tau and a block stays if its penalised
    estimate exceeds 0.6 tau: a light penalty bends the estimates of other edges little, and the second cut makes the
    decision. What the refit then shows to be below 0.8 tau (the Monte Carlo error of the first fit lets some through
    where tau is small) goes too. Where a junction tree holds what is found, `grow_support` takes the place of the
    penalty: it is quicker, and does not mind couplings so strong that chains and gradient steps crawl.
    """
    keep = np.ones(len(effects.scopes), dtype=bool)
    start = np.zeros(effects.n_parameters)
    threshold = scale * (np.sqrt(effects.sizes) + _DEVIATIONS)
    n_prunings = _MOST_PRUNINGS
    if sparse and effects.is_interaction.any():
        penalty = np.where(effects.is_interaction, _L1_SHARE * threshold, 0.0)
        grown = None
        if not _can_enumerate(effects) and len(effects.cardinalities) <= _GROW_LIMIT:
            grown = grow_support(effects, target, scale, threshold, bound, _TREE_LIMIT)
        if grown is not None:
            keep, start = grown
        else:
            start = _penalised(effects, target, scale, penalty, bound)
            keep = ~effects.is_interaction | (effects.norms(start) > (1 - _L1_SHARE) * threshold)
    elif not _has_exact(effects):
        start = np.clip(_mean_field_start(effects, target, scale), -bound, bound)
    while True:
        chosen, where = effects.restricted(keep)
        last = not sparse or n_prunings == 0 or not chosen.is_interaction.any()
        fit = _refit(chosen, target[where], scale[keep], start[where], bound, _MOST_STEPS if last else _REFIT_STEPS)
        theta = np.zeros(effects.n_parameters)
        theta[where] = fit.theta
        result = ContrastFit(theta, keep, fit.converged, fit.status, fit.n_iter, fit.method)
        if last:
            return result
        weak = keep & effects.is_interaction & (effects.norms(theta) < _PRUNE_SHARE * threshold)
        if not weak.any() and fit.method != "gibbs":
            return result
        # Without weak interactions the chains run once more, for longer.
        n_prunings = n_prunings - 1 if weak.any() else 0
        keep, start = keep & ~weak, theta


def _can_enumerate(effects: Contrasts) -> bool:
    return math.prod(effects.cardinalities) <= _ENUMERATION_LIMIT


def _has_exact(effects: Contrasts) -> bool:
    return _can_enumerate(effects) or elimination_cells(effects, _TREE_LIMIT) <= _TREE_LIMIT


def _penalised(
    effects: Contrasts, target: np.ndarray, scale: np.ndarray, penalty: np.ndarray, bound: float
) -> np.ndarray:
    errors = effects.spread(scale)

    def proximal(theta: np.ndarray, step: float) -> np.ndarray:
        return np.clip(_shrunk(effects, shrunk_by_prior(theta, errors, step), step * penalty), -bound, bound)

    start = np.zeros(effects.n_parameters)
    if not _can_enumerate(effects):
        return _approximate(effects, target, proximal, start, _SEARCH_STEPS)[0]
    engine = Enumeration(effects)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mean, log_partition = engine.moments(theta)
        return log_partition - theta @ target, mean - target

    # A hundredth of a standard error decides no edge.
    return minimize_proximal(objective, proximal, start, max_iter=300, step_tol=0.01 * float(scale.min())).x


def _shrunk(effects: Contrasts, theta: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Each block shortened by an amount, at most to 0: the proximal map of the group l1 norm."""
    norms = effects.norms(theta)
    share = np.divide(amounts, norms, out=np.ones_like(norms), where=norms > amounts)
    return theta * effects.spread(1.0 - share)


def _refit(
    effects: Contrasts, target: np.ndarray, scale: np.ndarray, start: np.ndarray, bound: float, most_steps: int
) -> ContrastFit:
    support = np.ones(len(effects.scopes), dtype=bool)
    if _has_exact(effects):
        engine: Enumeration | JunctionTreeMoments
        if _can_enumerate(effects):
            engine = Enumeration(effects)
        else:
            engine = JunctionTreeMoments(effects, DEFAULT_MEMORY_LIMIT)

        found = matched(engine, target, start, bound, effects.spread(scale), 0.01 * float(scale.min()))
        return ContrastFit(found.x, support, found.converged, found.status, found.n_iter, engine.name)

    # The Monte Carlo error falls with the square root of the steps; it should not show beside that of the target.
    n_steps = int(np.clip(_REFIT_STEPS * (0.01 / np.median(scale)) ** 2, _REFIT_STEPS, most_steps))
    errors = effects.spread(scale)
    theta, mean = _approximate(
        effects,
        target,
        lambda theta, step: np.clip(shrunk_by_prior(theta, errors, step), -bound, bound),
        start,
        n_steps,
    )
    inside = np.abs(theta) < 0.99 * bound
    misfit = ((mean - target) / errors)[inside]
    error = float(np.sqrt(np.mean(misfit**2))) if misfit.size else 0.0
    status = f"mean features within {error:.2g} standard errors (root mean square) after {n_steps} sweeps"
    return ContrastFit(theta, support, error <= 1.0, status, n_steps, "gibbs")


def _approximate(
    effects: Contrasts,
    target: np.ndarray,
    proximal: Callable[[np.ndarray, float], np.ndarray],
    start: np.ndarray,
    n_steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Stochastic approximation on persistent chains: the mean of theta and of its mean features over the second half.

    theta moves along target - mean features by a rate of at most 1/2, and less where the features vary together so
    strongly that such a step would overshoot: their largest covariance is followed by power iterations.
    """
    n_chains = int(np.clip(400_000 // max(1, len(effects.cardinalities)), 1000, 4000))
    chains = make_chains(effects, n_chains, np.random.default_rng(_SEED))
    theta = start
    mean_theta, mean_features = np.zeros_like(theta), np.zeros_like(theta)
    direction, largest = target / max(1e-300, float(np.linalg.norm(target))), 1.0
    n_averaged = n_steps - n_steps // 2
    for t in range(n_steps):
        features = chains.moments(theta)
        if t % 8 == 0:
            response = chains.response(direction)
            largest = max(1.0, float(np.linalg.norm(response)))
            direction = response / largest
        rate = min(_RATE, 1.5 / largest) / (1 + 6 * t / n_steps)
        theta = proximal(theta + rate * (target - features), rate)
        if t >= n_steps - n_averaged:
            mean_theta += theta / n_averaged
            mean_features += features / n_averaged
    return mean_theta, mean_features


def _mean_field_start(effects: Contrasts, target: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Interactions of pairs by naive mean field, theta_ij = -(C^-1)_ij (Kappen and Rodriguez, 1998).

    C is the covariance that the target implies, its eigenvalues raised to what noise leaves of them.
    """
    n_rows = int(effects.first_row[-1])
    mean, second = np.zeros(n_rows), np.eye(n_rows)
    places, rows = effects.single_entries
    mean[rows] = target[places]
    places, rows, columns = effects.pair_entries
    second[rows, columns] = second[columns, rows] = target[places]
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    values = np.maximum(values, max(0.1, float(np.median(scale)) * math.sqrt(n_rows)))
    inverse = (vectors / values) @ vectors.T
    theta = np.zeros(effects.n_parameters)
    theta[places] = -inverse[rows, columns]
    return theta
