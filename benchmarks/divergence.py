"""Exact distances between two log-linear models, by junction trees and never over the joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.inference.log_linear import LogLinearModel


def kl_divergence(p: LogLinearModel, q: LogLinearModel) -> float:
    """Kullback-Leibler divergence D(p || q) in nats.

    E_p[log p - log q] needs p's marginals on the scopes of both models alone::

        D = theta_p . mu_p - A_p - (theta_q . mu_p - A_q)

    Parameters
    ----------
    p, q : LogLinearModel
        Models of the same variables, in the same order, with the same states.

    Returns
    -------
    float
        Non-negative; inf where q gives probability 0 to something p does not.

    Raises
    ------
    ValueError
        If the variables or cardinalities differ.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> one = Cliques(("a",), (2,), (("a",),))
    >>> p = LogLinearModel(one, np.log([0.5, 0.5]))
    >>> q = LogLinearModel(one, np.log([0.25, 0.75]))
    >>> round(kl_divergence(p, q), 6)
    0.143841
    """
    _require_same_variables(p, q)
    under_p = p.marginals() if q.cliques == p.cliques else np.concatenate(_flat(p.marginals_of(q.cliques.scopes)))
    divergence = _inner(p.theta, p.marginals()) - p.log_partition - _inner(q.theta, under_p) + q.log_partition
    return max(divergence, 0.0)


def _flat(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [np.empty(0), *(table.ravel() for table in tables)]


def _inner(theta: np.ndarray, weights: np.ndarray) -> float:
    """theta . weights with 0 * -inf = 0."""
    possible = weights > 0
    return float(weights[possible] @ theta[possible])


def _require_same_variables(p: LogLinearModel, q: LogLinearModel) -> None:
    ours = (p.cliques.variables, p.cliques.cardinalities)
    theirs = (q.cliques.variables, q.cliques.cardinalities)
    if ours != theirs:
        raise ValueError(
            "the two models must have the same variables in the same order with the same cardinalities, "
            f"got {ours} and {theirs}"
        )
