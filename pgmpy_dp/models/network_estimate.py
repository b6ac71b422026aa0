"""The distribution that a growing set of noisy tables speaks for, refitted after each new one.

Learning a structure asks again and again what small sets of variables look like under the tables measured so far. The
answers here are quick and good enough to choose by; what is learned in the end is fitted anew by `collective_map`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.scope_marginals import Scope, ScopeMarginals
from pgmpy_dp.solvers.lbfgs import minimize_lbfgs

__all__ = ["NetworkEstimate", "estimate_network", "pair_marginals"]

Pair = tuple[int, int]
"""Positions of two variables, the smaller one first."""


class Marginals(Protocol):
    """Probabilities of any sets of variables."""

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Of each set, axes in its order."""


_MAX_ITER = 100
_GRADIENT_TOL = 1e-3  # of the preconditioned gradient, where 1 is a standard deviation of what the tables determine


@dataclass(frozen=True, eq=False)
class NetworkEstimate:
    """A fit to noisy tables.

    Attributes
    ----------
    noisy : NoisyMarginals
        The tables, repeated ones merged.
    theta : ndarray of shape (n_cells,)
        Log-potentials of the tables of `noisy`.
    marginals : ScopeMarginals
        Of the fitted model.
    """

    noisy: NoisyMarginals
    theta: np.ndarray
    marginals: Marginals

    def expected_counts(self, scope: Scope) -> np.ndarray:
        """Expected records in each cell of the table of some variables, axes in their order."""
        return self.expected_tables([scope])[0]

    def expected_tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Expected records in each cell of several tables."""
        return [self.noisy.n_records * table for table in self.marginals.tables(scopes)]


def estimate_network(noisy: NoisyMarginals, previous: NetworkEstimate | None = None) -> NetworkEstimate:
    """Penalised maximum entropy from noisy tables, one of each variable among them.

    Parameters
    ----------
    noisy : NoisyMarginals
        Repeated tables are merged.
    previous : NetworkEstimate, optional
        Fit to some of the tables, which is started from.

    Returns
    -------
    NetworkEstimate

    Notes
    -----
    Minimises ``A(theta) - theta . y/N + (1/2) sum_c l_c |theta_c|^2`` with ``l_c = V_c k_c/N^2`` (V_c the variance of
    the noise in a cell of table c, k_c its number of cells). The dual is least squares of the tables, each weighted by
    its precision, with the entropy of the model as penalty: tables that contradict one another are reconciled, and what
    they do not say stays independent. The optimiser is stopped after 100 iterations, which from a fit without the last
    table is nearly always enough to choose by, and need not settle the last contradictions within the noise.

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    >>> noisy = NoisyMarginals(cliques, np.array([30.0, 70.0, 50.0, 50.0]), "gaussian", np.array([0.1, 0.1]))
    >>> estimate_network(noisy).expected_counts((0, 1)).round()
    array([[15., 15.],
           [35., 35.]])
    """
    noisy = noisy.merged()
    cliques, n = noisy.cliques, noisy.n_records
    engine = SumProduct(cliques)
    known = {} if previous is None else dict(_tables(previous))
    zero = [np.zeros(shape) for shape in cliques.shapes]
    start = cliques.join([known.get(scope, empty) for scope, empty in zip(cliques.scopes, zero, strict=True)])
    # The floor keeps the penalty from vanishing beside rounding where there is hardly any noise.
    penalty = cliques.spread(noisy.sum_variance / n**2 + 1e-2 / n)
    mean = noisy.proportions

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mu, log_partition = engine.calibrate(theta)
        pull = penalty * theta
        return log_partition - theta @ mean + 0.5 * (theta @ pull), mu - mean + pull

    # Where a new table says more than the model so far, the curvature is that of the table.
    likely = np.maximum(noisy.projected_proportions(), engine.calibrate(start)[0])
    theta = minimize_lbfgs(
        objective,
        start,
        max_iter=_MAX_ITER,
        gradient_tol=_GRADIENT_TOL,
        scale=(likely * (1 - likely) + penalty) ** -0.5,
    ).x
    return NetworkEstimate(noisy, theta, ScopeMarginals(cliques, theta, engine))


def pair_marginals(engine: SumProduct, theta: np.ndarray) -> dict[Pair, np.ndarray]:
    """Probabilities of all pairs of variables, whether or not they are in a table together.

    Parameters
    ----------
    engine : SumProduct
        Of a model with a table of each single variable.
    theta : ndarray of shape (n_cells,)

    Returns
    -------
    dict of pair to ndarray
        Axes in the order of the pair.

    Notes
    -----
    The derivative of P(x_j = b) along the parameter of x_i = a is the covariance of the two indicators, so one
    derivative for each state of each variable (the last state of each, and the variable with the most states, follow)
    gives all pairs, on the junction tree of the model alone.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a",), ("b",), ("c",), ("a", "b"), ("b", "c")))
    >>> same = np.log([0.9, 0.1, 0.1, 0.9])
    >>> pair_marginals(SumProduct(chain), np.concatenate([np.zeros(6), same, same]))[0, 2].round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """
    cliques = engine.cliques
    sizes = cliques.cardinalities
    own = [cliques.indices.index((i,)) for i in range(len(sizes))]
    margins = cliques.split(engine.calibrate(theta)[0])
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    found: dict[Pair, np.ndarray] = {}
    for place, i in enumerate(order[:-1]):
        others = order[place + 1 :]
        covariance = {j: np.zeros((sizes[i], sizes[j])) for j in others}
        for state in range(sizes[i] - 1):
            direction = np.zeros(cliques.n_cells)
            direction[cliques.slices[own[i]].start + state] = 1.0
            change = cliques.split(engine.derivative(direction))
            for j in others:
                covariance[j][state] = change[own[j]]
        for j in others:
            covariance[j][-1] = -covariance[j].sum(axis=0)
            table = np.maximum(covariance[j] + np.outer(margins[own[i]], margins[own[j]]), 0.0)
            found[min(i, j), max(i, j)] = table if i < j else table.T
    return found


def _tables(estimate: NetworkEstimate) -> Iterable[tuple[tuple, np.ndarray]]:
    cliques = estimate.noisy.cliques
    return zip(cliques.scopes, cliques.split(estimate.theta), strict=True)
