"""The fit of maximum entropy in contrasts: a penalty selects interactions, then a refit has these alone.

:mod:`pgmpy_dp.fields.maximum_entropy` calls it with the released moments of a field, and makes the field of it.
Where a junction tree holds it, the support is grown from a tree by what the fit so far leaves unexplained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from pgmpy_dp.fields.contrasts import Contrasts
from pgmpy_dp.fields.mean_features import Enumeration, JunctionTreeMoments, elimination_cells
from pgmpy_dp.fields.persistent_gibbs import make_chains
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import Solution, minimize_lbfgs
from pgmpy_dp.inference.proximal import minimize_proximal

_SUPPORT_SEED = 20200708
"""Of the draws from the fitted model, see `moment_fit`."""

_FEWEST_DRAWS, _MOST_DRAWN = 20_000, 5_000_000
"""Records per round, and state numbers per round where the standard error asks for more records."""

_FREE, _KNEE, _RUNAWAY = 1.0, 0.5, 2.0
"""See `prior`."""

_MOST_ROUNDS = 30
_ROUND_TOL = 0.05


def matched(
    engine: Enumeration | JunctionTreeMoments,
    target: np.ndarray,
    start: np.ndarray,
    bound: float,
    scale: np.ndarray,
    tol: float,
) -> Solution:
    """Minimise A(theta) - theta . target + `prior` over |theta| <= bound: parameters with about these mean features.

    `scale` is the standard error of each entry of `target`.
    """

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mean, log_partition = engine.moments(theta)
        penalty, slope = prior(theta, scale)
        return log_partition - theta @ target + penalty, mean - target + slope

    box = np.full(len(start), bound)
    return minimize_lbfgs(objective, start, max_iter=300, gradient_tol=tol, bounds=(-box, box))


def prior(theta: np.ndarray, scale: np.ndarray) -> tuple[float, np.ndarray]:
    """Penalty on parameters whose mean features are known up to `scale`, and its gradient.

    Up to 1 it is scale^2 theta^2/2, a standard normal prior with as many records as have that standard error, which
    takes less than one standard error from the mean feature. Beyond 1 its slope rises, over a half, by `_RUNAWAY`
    standard errors and stays there: moments on the edge of what a distribution can have (two states that exclude each
    other) lie beyond it as often as not, by about their error, and would draw their parameters without end.
    """
    excess = np.maximum(np.abs(theta) - _FREE, 0.0)
    bend = np.minimum(excess, _KNEE)
    value = 0.5 * scale**2 * theta**2 + _RUNAWAY * scale * (excess - bend + bend**2 / (2.0 * _KNEE))
    return float(value.sum()), scale**2 * theta + _RUNAWAY * scale * np.sign(theta) * bend / _KNEE


def shrunk_by_prior(theta: np.ndarray, scale: np.ndarray, step: float) -> np.ndarray:
    """A proximal step on the prior, without its bend."""
    size = np.abs(theta / (1.0 + step * scale**2))
    beyond = np.maximum(_FREE, size - step * _RUNAWAY * scale)
    return np.sign(theta) * np.where(size > _FREE, beyond, size)


def grow_support(
    effects: Contrasts, target: np.ndarray, scale: np.ndarray, threshold: np.ndarray, bound: float, tree_limit: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Select scopes and fit their parameters, by exact fits on a growing support.

    The first support is the maximum spanning forest of the pairs by the norm of their covariance (Chow and Liu, 1968,
    to second order). Each round fits it, takes out interactions below their threshold, draws from the fitted model, and
    adds scopes whose noisy mean features differ from those of the draws by more than the threshold: the largest
    difference first, and in one round no two with a variable in common, for a missing edge shows up between
    the neighbours of its ends as well.

    Parameters
    ----------
    effects : Contrasts
        With all main effects.
    target : ndarray of shape (n_parameters,)
    scale, threshold : ndarray of shape (n_scopes,)
        Standard error of a feature; threshold that the norm of a block has to exceed.
    bound : float
    tree_limit : int
        Cells that a junction tree may have.

    Returns
    -------
    (keep, theta) or None
        ndarrays of shape (n_scopes,) and (n_parameters,); None once the junction tree exceeds its limit.
    """
    rng = np.random.default_rng(_SUPPORT_SEED)
    # Twice the records behind a standard error, where memory and time allow.
    most = max(_FEWEST_DRAWS, _MOST_DRAWN // len(effects.cardinalities))
    n_draws = int(np.clip(2 / np.median(scale) ** 2, _FEWEST_DRAWS, min(most, 100_000)))
    draws = make_chains(effects, 1, rng)
    keep, theta = ~effects.is_interaction, np.zeros(effects.n_parameters)
    added = _forest(effects, target, threshold)
    for _ in range(_MOST_ROUNDS):
        keep = keep.copy()
        keep[added] = True
        while True:
            chosen, where = effects.restricted(keep)
            if elimination_cells(chosen, tree_limit) > tree_limit:
                return None
            engine = JunctionTreeMoments(chosen, DEFAULT_MEMORY_LIMIT)
            errors = chosen.spread(scale[keep])
            fitted = matched(engine, target[where], theta[where], bound, errors, _ROUND_TOL * float(scale.min())).x
            theta = np.zeros(effects.n_parameters)
            theta[where] = fitted
            weak = keep & effects.is_interaction & (effects.norms(theta) < threshold)
            if not weak.any():
                break
            keep = keep & ~weak
        draws.assign(engine.sample(fitted, n_draws, rng))
        # The Monte Carlo error of the draws widens the threshold as it widens the standard error.
        widened = threshold * np.sqrt(1 + 1 / (n_draws * scale**2))
        misfit = effects.norms(target - draws.means()) * effects.is_interaction * ~keep
        added = _apart(effects.scopes, misfit, widened)
        if not added:
            break
    return keep, theta


def _forest(effects: Contrasts, target: np.ndarray, threshold: np.ndarray) -> list[int]:
    """Scopes of the maximum spanning forest of the pairs whose covariance exceeds its threshold."""
    mean = np.zeros(effects.first_row[-1])
    places, rows = effects.single_entries
    mean[rows] = target[places]
    places, rows, columns = effects.pair_entries
    covariance = np.zeros_like(target)
    covariance[places] = target[places] - mean[rows] * mean[columns]
    strength = effects.norms(covariance)
    graph = nx.Graph()
    for scope in np.flatnonzero(strength > threshold).tolist():
        graph.add_edge(*effects.scopes[scope], weight=strength[scope], scope=scope)
    return [edge["scope"] for _, _, edge in nx.maximum_spanning_edges(graph)] if len(graph) else []


def _apart(scopes: Sequence[tuple[int, ...]], misfit: np.ndarray, threshold: np.ndarray) -> list[int]:
    """Scopes above their threshold, the largest misfit first, without common variables."""
    above = np.flatnonzero(misfit > threshold)
    used: set[int] = set()
    chosen = []
    for scope in above[np.argsort(-misfit[above], kind="stable")].tolist():
        if used.isdisjoint(scopes[scope]):
            used.update(scopes[scope])
            chosen.append(scope)
    return chosen


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
        within one standard error of the noisy ones.
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
    """Fit parameters to noisy mean features, on a support that is selected or passed.

    Minimise A(theta) - theta . target + prior(theta), with A the log-partition function, over |theta| <= bound:
    twice where the support is selected, first plus an l1 penalty on the blocks of the interactions.

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
    decision. Blocks that the refit then shows to be below 0.8 tau go too (where tau is small, the Monte Carlo error of
    the first fit lets some through). Where a junction tree holds the support, `grow_support` takes the place of the
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
        engine = Enumeration(effects) if _can_enumerate(effects) else JunctionTreeMoments(effects, DEFAULT_MEMORY_LIMIT)
        fit = matched(engine, target, start, bound, effects.spread(scale), 0.01 * float(scale.min()))
        return ContrastFit(fit.x, support, fit.converged, fit.status, fit.n_iter, engine.name)

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
