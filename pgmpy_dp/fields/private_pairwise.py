"""PrivatePairwise: parameters and graph of a pairwise Markov random field over any alphabets."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields import noisy_interactions
from pgmpy_dp.fields.field_base import BaseFieldEstimator
from pgmpy_dp.fields.random_fields import Pairwise, RandomField
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


class PrivatePairwise(BaseFieldEstimator):
    """Pairwise Markov random field over variables of any numbers of states, with its graph, under differential privacy.

    Pr(x) is proportional to ``exp(sum_{i<j} W_ij(x_i, x_j) + sum_i theta_i(x_i))``, with tables W_ij of row and column
    means 0 and fields theta_i of mean 0.

    Parameters
    ----------
    width : float
        Public bound lambda > 0 on the largest ``sum_j max_b |W_ij(a, b)| + |theta_i(a)|`` of a state a of a variable i.
        It is not learned: see ``docs/random-fields.md`` for how to choose it.
    epsilon, delta, rho, state_names, adjacency, n_records
    method : {"auto", "moments", "frank-wolfe"}
        "moments", which "auto" is: noisy centred tables of all pairs (or of a public graph's edges), and the field that
        has them. "frank-wolfe": one private sparse logistic regression for each variable and each pair of its states.
    graph, n_iter, sparse, published
    min_edge_weight : float, optional
        Public lower bound eta on the largest absolute value in each table W_ij that is not 0: `graph_` then has the
        edges whose estimated table has one of at least eta/2, the exact graph where all errors are below eta/2.
    inference, memory_limit, random_state

    Attributes
    ----------
    weights_ : dict of (variable, variable) to ndarray of shape (k_i, k_j)
        W_ij of the pairs that interact, named in the order of `state_names`; states in their order there.
    fields_ : dict of variable to ndarray of shape (k_i,)
        theta_i.
    field_ : Pairwise
    graph_, model_
    edge_scores_ : ndarray of shape (p, p)
        Largest ``|W_ij(a, b)|``.
    release_, privacy_, n_features_in_, feature_names_in_
    disagreement_, n_records_, n_records_sd_, converged_, status_, n_iter_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.noisy_interactions` or
    :mod:`~pgmpy_dp.fields.published.frank_wolfe_steps`; the rest is post-processing. One record is protected.
    Method: Zhang, Kamath, Kulkarni and Wu (2020); Algorithm 3, with selections by Gumbel noise, is "frank-wolfe".
    Graph: with `min_edge_weight` this is a structure learner under rho, (epsilon, delta) or a pure epsilon; for
    "frank-wolfe" under rho by Theorem 3.11 with alpha below eta/2. Theorem 7.4 is the lower bound.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("red", "low")] * 500 + [("green", "mid")] * 500 + [("blue", "high")] * 500 + [("red", "high")] * 300
    >>> data = pd.DataFrame(rows, columns=["colour", "level"])
    >>> states = {"colour": ["red", "green", "blue"], "level": ["low", "mid", "high"]}
    >>> estimator = PrivatePairwise(width=8.0, epsilon=2.0, state_names=states).fit(data)
    >>> table = estimator.weights_["colour", "level"]
    >>> table.shape, bool(table[1, 1] > 1)
    ((3, 3), True)
    """

    _family: ClassVar[str] = "pairwise"
    _examples = (
        {"width": 2.0, **TABLE_EXAMPLES[0], "state_names": {"rain": ["no", "yes"], "wet": [0, 1, 2]}},
        {"width": 1.0, **TABLE_EXAMPLES[1]},
    )
    _release_kinds: ClassVar[tuple[str, ...]] = ("interactions", "regressions", "pseudo_likelihood")

    def _run_moments(self, table: PrivateTable, budget: Budget) -> Release:
        return noisy_interactions.run(table, self._settings(), budget)

    def _parameters(self, field: RandomField, variables: tuple[Hashable, ...]) -> tuple[dict, dict]:
        assert isinstance(field, Pairwise)
        centred = field.centred()
        weights = {(variables[i], variables[j]): table for (i, j), table in centred.weights.items()}
        return weights, dict(zip(variables, centred.fields, strict=True))

    def _rows(self, schema: Schema) -> Iterator[dict[str, Any]]:
        for (u, v), table in self.weights_.items():
            for (a, b), weight in np.ndenumerate(table):
                states = (schema.states[u][a], schema.states[v][b])
                yield {"variables": (u, v), "states": states, "weight": float(weight)}
