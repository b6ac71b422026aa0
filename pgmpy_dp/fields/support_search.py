"""The support of a sparse field, grown from a tree by what the fit so far leaves unexplained."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np

from pgmpy_dp.fields.contrasts import Contrasts
from pgmpy_dp.fields.mean_features import Enumeration, JunctionTreeMoments, elimination_cells
from pgmpy_dp.fields.persistent_gibbs import make_chains
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import Solution, minimize_lbfgs

_SEED = 20200708
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
    """Which scopes to keep, and their parameters, by exact fits on a growing support.

    The first support is the maximum spanning forest of the pairs by the norm of their covariance (Chow and Liu, 1968,
    to second order). Each round fits it, takes out interactions below their threshold, draws from the fitted model, and
    adds scopes whose given mean features differ from those of the draws by more than the threshold: the largest
    difference first, and in one round no two with a variable in common, for a missing edge shows up between
    the neighbours of its ends as well.

    Parameters
    ----------
    effects : Contrasts
        With all main effects.
    target : ndarray of shape (n_parameters,)
    scale, threshold : ndarray of shape (n_scopes,)
        Standard error of a feature, and what the norm of a block has to exceed.
    bound : float
    tree_limit : int
        Cells that a junction tree may have.

    Returns
    -------
    (keep, theta) or None
        ndarrays of shape (n_scopes,) and (n_parameters,); None once the junction tree exceeds its limit.
    """
    rng = np.random.default_rng(_SEED)
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
            found = matched(engine, target[where], theta[where], bound, errors, _ROUND_TOL * float(scale.min())).x
            theta = np.zeros(effects.n_parameters)
            theta[where] = found
            weak = keep & effects.is_interaction & (effects.norms(theta) < threshold)
            if not weak.any():
                break
            keep = keep & ~weak
        draws.assign(engine.sample(found, n_draws, rng))
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
