"""Where a fit of many small tables that overlap begins."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.tables.networks.network_estimate import estimate_network


def first_guess(noisy: NoisyMarginals, base: np.ndarray | None = None) -> np.ndarray:
    """Log-potentials near those that `collective_map` will find, from tables that include one of each variable.

    `collective_map` has parameters of each table's own. Where many noisy tables share variables, it moves slowly along
    what all of them say together, and learns its prior variances before it is there. The estimate that structure
    learning works with has one parameter for each such thing, and is quickly done.

    Parameters
    ----------
    noisy : NoisyMarginals
        No table twice.
    base : ndarray of shape (n_cells,), optional
        Log-potentials of a prior, which the guess is a deviation from.

    Examples
    --------
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    >>> noisy = NoisyMarginals(cliques, np.array([30.0, 70.0, 50.0, 50.0]), "gaussian", np.array([0.1, 0.1]))
    >>> np.exp(np.diff(first_guess(noisy)[:2])).round(2)
    array([2.33])
    """
    return estimate_network(noisy, base=None if base is None else LogLinearModel(noisy.cliques, base)).theta
