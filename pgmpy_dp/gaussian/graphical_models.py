"""Gaussian graphical models from a released moment matrix: all of it is post-processing.

Sparse inverse covariance: `project_psd` and `unclipped_moments`, then the graphical lasso
(`pgmpy_dp.gaussian.graphical_lasso`) at `lasso_penalty`, then `refit_on_support`. `gaussian_distribution` has
draws from the model and its likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache

import networkx as nx
import numpy as np
from pgmpy.base import UndirectedGraph
from pgmpy.factors.continuous import LinearGaussianCPD
from pgmpy.models import LinearGaussianBayesianNetwork

from pgmpy_dp.gaussian.graphical_lasso import GraphicalLassoSolution, graphical_lasso, square


def project_psd(matrix: np.ndarray, floor: float = 1e-9) -> np.ndarray:
    """Nearest symmetric matrix, in Frobenius norm, with no eigenvalue below a floor.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Its symmetric part is taken.
    floor : float
        At least 0.

    Returns
    -------
    ndarray of shape (d, d)

    Raises
    ------
    ValueError
        If the matrix is not square and finite, or the floor is below 0.

    Examples
    --------
    >>> project_psd(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    matrix = square(matrix, "matrix")
    if not floor >= 0:
        raise ValueError(f"floor={floor!r} must be at least 0")
    w, v = np.linalg.eigh((matrix + matrix.T) / 2)
    clipped = (v * np.maximum(w, floor)) @ v.T
    return (clipped + clipped.T) / 2


def unclipped_moments(moments: np.ndarray, row_norm: float) -> np.ndarray:
    """Covariance of the Gaussian of mean zero whose records, shortened to a norm, have these second moments.

    Shortening keeps the eigenvectors, as the law of x is the same with any of its coordinates along them turned round.
    It takes each eigenvalue l_k to ``E[min(1, B**2/r**2) l_k u_k**2]``, with independent standard normal u and
    ``r**2 = sum_j l_j u_j**2``; the inverse of that map is found by iterating, with the same draws of u each time.

    Parameters
    ----------
    moments : ndarray of shape (d, d)
        Positive semidefinite, about the mean.
    row_norm : float
        B, the norm to which records were shortened.

    Returns
    -------
    ndarray of shape (d, d)
        With a trace at most twice as large: where nearly all records are shortened, the moments do not tell the scale.

    Raises
    ------
    ValueError
        If the matrix is not square and finite, or B is not positive.

    Examples
    --------
    >>> rows = np.random.default_rng(1).normal(size=(100_000, 3)) * [2.0, 1.0, 1.0]
    >>> rows *= np.minimum(1.0, 2.0 / np.linalg.norm(rows, axis=1, keepdims=True))
    >>> clipped = rows.T @ rows / len(rows)
    >>> clipped.diagonal().round(), unclipped_moments(clipped, 2.0).diagonal().round()
    (array([2., 1., 1.]), array([4., 1., 1.]))
    """
    moments = square(moments, "moments")
    if not row_norm > 0:
        raise ValueError(f"row_norm={row_norm!r} must be above 0")
    values, vectors = np.linalg.eigh((moments + moments.T) / 2)
    values = np.maximum(values, 0.0)
    total = float(values.sum())
    if not total:
        return np.zeros_like(moments)
    d = len(values)
    squares = squared_draws(d)
    variances = values.copy()
    for _ in range(100):
        kept = np.minimum(1.0, row_norm**2 / np.maximum(squares @ variances, 1e-300))
        ratio = values / np.maximum(variances * (kept @ squares) / len(squares), 1e-300)
        variances = variances * np.where(values > 0, ratio, 1.0)
        variances *= min(1.0, 2.0 * total / float(variances.sum()))
        if np.abs(ratio - 1.0)[values > 0].max() < 1e-4:
            break
    result = (vectors * variances) @ vectors.T
    return (result + result.T) / 2


@lru_cache(maxsize=2)
def squared_draws(d: int) -> np.ndarray:
    """Squares of some 2**20 normal numbers, d in a row; of few columns no more rows than a percent takes."""
    squares = np.random.default_rng(0).standard_normal((min(max(1000, (1 << 20) // d), 10_000), d)) ** 2
    return squares / squares.mean(axis=0)


def lasso_penalty(diagonal_mean: float, n: float, noise_sd: float, d: int, c0: float = 1.5) -> float:
    """Penalty of the graphical lasso for moments with sampling error and privacy noise.

    ::

        lambda = c0 sqrt((diagonal_mean^2 / n + noise_sd^2) log d)

    An entry of the moment matrix off its diagonal has a sampling error of standard deviation about diagonal_mean /
    sqrt(n), and noise of noise_sd; sqrt(log d) is the order of the largest of d^2 such errors, which the penalty must
    exceed for the zeros to be found (Ravikumar et al., 2011, have it without the noise).

    Parameters
    ----------
    diagonal_mean : float
        Mean of the diagonal of the released moments, at least 0.
    n : float
        Number of records, public or noisy, above 0.
    noise_sd : float
        Standard deviation of the noise of an entry off the diagonal of the moments (divided by n as they are).
    d : int
        Number of variables.
    c0 : float

    Returns
    -------
    float
        0 for d = 1, which has no entry to penalise.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    .. [1] Ravikumar, P., Wainwright, M., Raskutti, G. and Yu, B. (2011). High-dimensional covariance estimation by
       minimizing l1-penalized log-determinant divergence. Electron. J. Stat. 5.

    Examples
    --------
    >>> round(lasso_penalty(1.0, 10_000, 0.0, 30), 4), round(lasso_penalty(1.0, 10_000, 0.02, 30), 4)
    (0.0277, 0.0619)
    """
    for name, value, low in (("diagonal_mean", diagonal_mean, 0.0), ("noise_sd", noise_sd, 0.0), ("c0", c0, 0.0)):
        if not low <= value < math.inf:
            raise ValueError(f"{name}={value!r} must be finite and at least 0")
    if not n > 0:
        raise ValueError(f"n={n!r} must be above 0")
    if d < 1:
        raise ValueError(f"d={d!r} must be at least 1")
    return c0 * math.sqrt((diagonal_mean**2 / n + noise_sd**2) * math.log(d))


def refit_on_support(
    S: np.ndarray,
    support: np.ndarray,
    *,
    max_eigenvalue: float | None = None,
    tolerance: float = 1e-9,
    max_iter: int = 2000,
    start: np.ndarray | None = None,
) -> GraphicalLassoSolution:
    """Maximum likelihood for Gaussians whose precision is 0 outside a support (covariance selection).

    Minimises -log det Theta + <S, Theta> over positive definite Theta with Theta_ij = 0 off the support: the graphical
    lasso with penalty 0 on it and infinity elsewhere. Its inverse has S's entries on the support and diagonal [1]_.

    Parameters
    ----------
    S : ndarray of shape (d, d)
        Moments, symmetric; positive definite unless `max_eigenvalue` is set.
    support : ndarray of shape (d, d)
        Symmetric; nonzero (or True) where Theta may be nonzero. The diagonal always may.
    max_eigenvalue : float, optional
        Keeps the eigenvalues of Theta at most this. With it the fit exists for any S; without it a noisy S, clipped to
        be positive definite by `project_psd`, can give eigenvalues as large as one over the floor, and a solve that
        ends by `max_iter` (its Theta is positive definite all the same).
    tolerance, max_iter, start
        As for `graphical_lasso`.

    Returns
    -------
    GraphicalLassoSolution

    Raises
    ------
    ValueError
        If a shape does not fit, the support is not symmetric, or S is not positive definite and there is no cap.

    References
    ----------
    .. [1] Dempster, A. P. (1972). Covariance selection. Biometrics 28(1).

    Examples
    --------
    >>> S = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.5], [0.4, 0.5, 1.0]])
    >>> path = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> solution = refit_on_support(S, path)
    >>> solution.covariance.round(4)  # as S, but for the pair that is not an edge: 0.5 times 0.5
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    allowed = np.asarray(support) != 0
    if allowed.shape != np.shape(S) or not np.array_equal(allowed, allowed.T):
        raise ValueError(f"support must be a symmetric matrix of shape {np.shape(S)}, got shape {allowed.shape}")
    return graphical_lasso(
        S,
        np.where(allowed, 0.0, np.inf),
        max_eigenvalue=max_eigenvalue,
        tolerance=tolerance,
        max_iter=max_iter,
        start=start,
    )


def partial_correlations(precision: np.ndarray) -> np.ndarray:
    """Correlations of each pair given all other variables: -Theta_ij / sqrt(Theta_ii Theta_jj), 1 on the diagonal.

    Examples
    --------
    >>> partial_correlations(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    precision = _positive_definite(precision)
    size = np.sqrt(np.diagonal(precision))
    result = -precision / np.outer(size, size) + 0.0  # no zeros with a sign
    np.fill_diagonal(result, 1.0)
    return result


def precision_graph(precision: np.ndarray, names: Sequence[Hashable] | None = None) -> UndirectedGraph:
    """Graph of the nonzero entries of a precision matrix: pairs without an edge are independent given the rest.

    Parameters
    ----------
    precision : ndarray of shape (d, d)
    names : sequence of d names, optional
        Default 0 .. d-1.

    Returns
    -------
    pgmpy.base.UndirectedGraph
        The weight of an edge is the partial correlation.

    Examples
    --------
    >>> graph = precision_graph(np.array([[4.0, -2.0, 0], [-2.0, 4.0, 0], [0, 0, 1.0]]), ["a", "b", "c"])
    >>> list(graph.edges(data="weight")), list(graph.nodes)
    ([('a', 'b', 0.5)], ['a', 'b', 'c'])
    """
    partial = partial_correlations(precision)
    names = _names(names, len(partial))
    graph = UndirectedGraph()
    graph.add_nodes_from(names)
    for i, j in np.argwhere(np.triu(partial, 1)).tolist():
        graph.add_edge(names[i], names[j], weight=float(partial[i, j]))
    return graph


def linear_gaussian_network(
    mean: np.ndarray, precision: np.ndarray, names: Sequence[Hashable] | None = None
) -> LinearGaussianBayesianNetwork:
    """The same Gaussian as a pgmpy model, which has no undirected Gaussian one.

    Variables are eliminated one at a time: the distribution of one given the rest is a linear regression with
    coefficients -Theta_ij / Theta_ii and variance 1 / Theta_ii, and the rest have the Schur complement for a precision.
    Each time the variable is taken whose neighbours lack the fewest edges. In a chordal graph it lacks none, and the
    arcs of the network are the edges of `precision_graph`, directed; in others the network has more arcs, for a
    directed graph cannot say all the independences. The distribution is the same in either case.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
        Positive definite.
    names : sequence of d names, optional
        Default 0 .. d-1.

    Returns
    -------
    pgmpy.models.LinearGaussianBayesianNetwork

    Notes
    -----
    pgmpy 1.1.2 rounds the joint mean and covariance of such a model (`to_joint_gaussian`) to 8 decimals.

    Examples
    --------
    >>> model = linear_gaussian_network(np.zeros(2), np.array([[2.0, -1.0], [-1.0, 2.0]]), ["a", "b"])
    >>> model.to_joint_gaussian()[1].round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """
    left = _positive_definite(precision).copy()
    d = len(left)
    mean = np.asarray(mean, dtype=float)
    if mean.shape != (d,) or not np.isfinite(mean).all():
        raise ValueError(f"mean must be {d} finite numbers, got shape {mean.shape}")
    names = _names(names, d)
    graph = nx.Graph(precision_graph(left))
    fill = {v: _missing(graph, v) for v in graph}
    network, cpds = LinearGaussianBayesianNetwork(), []
    network.add_nodes_from(names)
    while fill:
        v = min(fill, key=lambda u: (fill[u], u))
        parents = sorted(graph[v])
        adjacent = set(parents).union(*(graph[u] for u in parents)) - {v}
        variance = 1 / left[v, v]
        weights = -left[v, parents] * variance
        left[np.ix_(parents, parents)] -= np.outer(weights, weights) / variance
        network.add_edges_from((names[u], names[v]) for u in parents)
        constant = mean[v] - float(weights @ mean[parents])
        beta = [float(b) for b in (constant, *weights)]
        cpds.append(LinearGaussianCPD(names[v], beta, math.sqrt(variance), [names[u] for u in parents]))
        graph.add_edges_from((a, b) for a in parents for b in parents if a < b)
        graph.remove_node(v)
        del fill[v]
        fill |= {u: _missing(graph, u) for u in adjacent}
    network.add_cpds(*cpds)
    return network


def _missing(graph: nx.Graph, v: int) -> int:
    """Number of pairs of neighbours of v without an edge."""
    adjacent = set(graph[v])
    return sum(len(adjacent) - 1 - len(adjacent & set(graph[u])) for u in adjacent) // 2


def _names(names: Sequence[Hashable] | None, d: int) -> list[Hashable]:
    result: list[Hashable] = [*range(d)] if names is None else list(names)
    if len(result) != d or len(set(result)) != d:
        raise ValueError(f"names must be {d} different names, got {names!r}")
    return result


def _positive_definite(matrix: np.ndarray) -> np.ndarray:
    matrix = square(matrix, "precision")
    if not np.allclose(matrix, matrix.T) or not np.linalg.eigvalsh(matrix).min(initial=1.0) > 0:
        raise ValueError("precision must be symmetric and positive definite")
    return matrix
