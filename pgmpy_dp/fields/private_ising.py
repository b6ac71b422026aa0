"""PrivateIsing: parameters and graph of an Ising model."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields import noisy_parities
from pgmpy_dp.fields.field_base import BaseFieldEstimator
from pgmpy_dp.fields.random_fields import Ising, RandomField
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


class PrivateIsing(BaseFieldEstimator):
    """Ising model of binary variables, with its graph, under differential privacy.

    Pr(z) is proportional to ``exp(sum_{i<j} A_ij z_i z_j + sum_i theta_i z_i)``, where z_i is -1 for the first state of
    variable i in `state_names` and +1 for the second.

    Parameters
    ----------
    width : float
        Public bound lambda > 0 on the largest ``sum_j |A_ij| + |theta_i|`` of a variable i. It is not learned: see
        ``docs/random-fields.md`` for how to choose it.
    epsilon, delta, rho, state_names, adjacency, n_records
    method : {"auto", "moments", "frank-wolfe"}
        "moments", which "auto" is: noisy means of all z_i and z_i z_j (of a public graph's edges), and the Ising model
        that has them. "frank-wolfe": one private sparse logistic regression for each variable.
    graph, n_iter, sparse, published
    min_edge_weight : float, optional
        Public lower bound eta on the absolute value of the interactions that are not 0: `graph_` then has the edges
        with an estimate of at least eta/2, which is the exact graph where all errors are below eta/2.
    inference, memory_limit, random_state

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        A, symmetric with a diagonal of 0; variables in the order of `state_names`.
    fields_ : ndarray of shape (p,)
        theta.
    field_ : Ising
    graph_, model_
    edge_scores_ : ndarray of shape (p, p)
        ``|A_ij|``.
    release_, privacy_, n_features_in_, feature_names_in_
    disagreement_, n_records_, n_records_sd_, converged_, status_, n_iter_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.noisy_parities` or
    :mod:`~pgmpy_dp.fields.published.frank_wolfe_steps`; the rest is post-processing. One record is protected.
    Method: Zhang, Kamath, Kulkarni and Wu (2020); Algorithm 2, with selections by Gumbel noise, is "frank-wolfe".
    Graph: with `min_edge_weight` this is a structure learner under rho, (epsilon, delta) or a pure epsilon. Theorem 3.8
    with alpha below eta/2 is about "frank-wolfe" under rho; Theorem 7.1 is the lower bound, the root of p under rho and
    p under a pure epsilon. "moments" have no such theorem, and need no more records up to a hundred variables:
    ``docs/stable-structure.md`` has what was measured.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("no", "dry")] * 1600 + [("yes", "wet")] * 1600 + [("no", "wet")] * 400 + [("yes", "dry")] * 400
    >>> data = pd.DataFrame(rows, columns=["rain", "grass"])
    >>> states = {"rain": ["no", "yes"], "grass": ["dry", "wet"]}
    >>> estimator = PrivateIsing(width=2.0, epsilon=2.0, state_names=states).fit(data)
    >>> round(float(estimator.weights_[0, 1]), 1), list(estimator.graph_.edges)
    (0.7, [('rain', 'grass')])
    """

    _family: ClassVar[str] = "ising"
    _release_kinds: ClassVar[tuple[str, ...]] = ("parities", "regressions", "pseudo_likelihood")

    def _run_moments(self, table: PrivateTable, budget: Budget) -> Release:
        return noisy_parities.run(table, self._settings(method="noise"), budget)

    def _parameters(self, field: RandomField, variables: tuple[Hashable, ...]) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(field, Ising)
        return field.weights, field.fields

    def _rows(self, schema: Schema) -> Iterator[dict[str, Any]]:
        for (i, u), (j, v) in itertools.combinations(enumerate(schema.variables), 2):
            yield {"variables": (u, v), "weight": float(self.weights_[i, j])}
