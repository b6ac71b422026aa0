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
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.collective_prior import with_unmeasured
from pgmpy_dp.models.growing_tree import GrowingTree
from pgmpy_dp.models.log_linear import LogLinearModel
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.scope_marginals import Scope, ScopeMarginals
from pgmpy_dp.models.tilted import TiltedEngine
from pgmpy_dp.solvers.lbfgs import minimize_lbfgs

__all__ = ["NetworkEstimate", "estimate_network"]


class Marginals(Protocol):
    """Probabilities of any sets of variables."""

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Of each set, axes in its order."""

    def flat(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The same in one vector, each table in C order, and the cells of each."""


_MAX_ITER = 100
_MEMORY_LIMIT = 2**33  # cliques are bounded by their number of cells; this only stops what no machine could do
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
    tree : GrowingTree
        The junction tree that it was fitted on.
    """

    noisy: NoisyMarginals
    theta: np.ndarray
    marginals: Marginals
    tree: GrowingTree

    def expected_counts(self, scope: Scope) -> np.ndarray:
        """Expected records in each cell of the table of some variables, axes in their order."""
        return self.expected_tables([scope])[0]

    def expected_tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Expected records in each cell of several tables."""
        return [self.noisy.n_records * table for table in self.marginals.tables(scopes)]

    def expected_cells(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The same in one vector, each table in C order, and the cells of each."""
        flat, sizes = self.marginals.flat(scopes)
        flat *= self.noisy.n_records
        return flat, sizes


def estimate_network(
    noisy: NoisyMarginals,
    previous: NetworkEstimate | None = None,
    tree: GrowingTree | None = None,
    base: LogLinearModel | None = None,
) -> NetworkEstimate:
    """Penalised maximum entropy from noisy tables, one of each variable among them.

    Parameters
    ----------
    noisy : NoisyMarginals
        Repeated tables are merged.
    previous : NetworkEstimate, optional
        Fit to some of the tables, which is started from.
    tree : GrowingTree, optional
        Takes in what it does not have yet, and is what is computed on. Default: that of the previous fit.
    base : LogLinearModel, optional
        A prior, of the same variables, that takes the place of the uniform model. The fit has its tables too, and what
        the noisy ones do not say follows it.

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
    if base is not None:
        noisy = _grown(noisy, base)
    cliques, n = noisy.cliques, noisy.n_records
    if tree is None:
        tree = GrowingTree(cliques) if previous is None else previous.tree
    own = SumProduct(cliques, memory_limit=_MEMORY_LIMIT, tree=tree.grow(cliques))
    offset = np.zeros(cliques.n_cells) if base is None else _potentials(base, cliques)
    engine = TiltedEngine(own, offset)
    # A prior is itself the first guess.
    start = np.zeros(cliques.n_cells) if base is not None and previous is None else _start(noisy, previous)
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
    return NetworkEstimate(noisy, theta, ScopeMarginals(cliques, theta + offset, own), tree)


def _grown(noisy: NoisyMarginals, base: LogLinearModel) -> NoisyMarginals:
    """With the tables of a prior that were not measured."""
    measured = set(map(frozenset, noisy.cliques.scopes))
    tables = zip(base.cliques.scopes, base.cliques.split(base.marginals()), strict=True)
    return with_unmeasured(noisy, {scope: table for scope, table in tables if frozenset(scope) not in measured})[0]


def _potentials(base: LogLinearModel, cliques: Cliques) -> np.ndarray:
    """The log-potentials of a prior in a layout that has all of its tables, with axes in any order."""
    held = {
        frozenset(scope): (scope, table)
        for scope, table in zip(base.cliques.scopes, base.cliques.split(base.theta), strict=True)
    }
    tables = [np.zeros(shape) for shape in cliques.shapes]
    for k, scope in enumerate(cliques.scopes):
        if frozenset(scope) in held:
            order, table = held.pop(frozenset(scope))
            tables[k] = table.transpose([order.index(name) for name in scope])
    return cliques.join(tables)


def _start(noisy: NoisyMarginals, previous: NetworkEstimate | None) -> np.ndarray:
    """The parameters of the fit before; of a table that it lacks, what one step of proportional fitting gives."""
    cliques = noisy.cliques
    known: dict[tuple, np.ndarray] = {} if previous is None else dict(_tables(previous))
    new = [c for c, scope in enumerate(cliques.scopes) if scope not in known]
    if previous is None:
        expected = [np.full(cliques.shapes[c], 1.0 / cliques.sizes[c]) for c in new]
    else:
        expected = previous.marginals.tables([cliques.indices[c] for c in new])
    said = cliques.split(noisy.projected_proportions())
    for c, model in zip(new, expected, strict=True):
        # What is below the noise says nothing about a ratio.
        least = np.sqrt(noisy.table_variance[c]) / noisy.n_records + 1e-9
        known[cliques.scopes[c]] = np.log((said[c] + least) / (model + least))
    return cliques.join(known[scope] for scope in cliques.scopes)


def _tables(estimate: NetworkEstimate) -> Iterable[tuple[tuple, np.ndarray]]:
    cliques = estimate.noisy.cliques
    return zip(cliques.scopes, cliques.split(estimate.theta), strict=True)
