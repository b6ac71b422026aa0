"""PrivateBinaryMRF: parameters and graph of a binary Markov random field with interactions of any order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pgmpy_dp.fields import noisy_parities
from pgmpy_dp.fields.field_base import BaseFieldEstimator, BoundedWidth
from pgmpy_dp.fields.random_fields import BinaryField, RandomField
from pgmpy_dp.learning.options import one_of, option, whole
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

_QUERIES = ("auto", "gaussian", "pmw", "sepfem")


@dataclass(init=False)
class _OfOrder(BoundedWidth):
    """The first options."""

    order: int = option(3, whole(2))


class PrivateBinaryMRF(BaseFieldEstimator, _OfOrder):
    """Binary Markov random field with interactions of up to t variables, with its graph, under differential privacy.

    Pr(z) is proportional to ``exp(sum_I c_I prod_{i in I} z_i)`` over sets I of at most t variables, where z_i is -1
    for the first state of variable i in `state_names` and +1 for the second. Order 2 is :class:`PrivateIsing`.

    Parameters
    ----------
    width : float
        Public bound lambda > 0 on the largest sum of ``|c_I|`` over the sets I that hold a variable i. It is not
        learned: see ``docs/random-fields.md`` for how to choose it.
    order : int, default 3
        t, at least 2: the largest number of variables of an interaction.
    epsilon, delta, rho, state_names, adjacency, n_records
    method : {"auto", "moments", "frank-wolfe"}
        "moments", which "auto" is: noisy means of all products of up to t variables (or of a public graph's cliques),
        and the field that has them. "frank-wolfe": one private sparse logistic regression for each variable.
    queries : {"auto", "gaussian", "pmw", "sepfem"}
        How products are released, with "moments": with noise on all sums ("gaussian", Laplace for a pure
        epsilon), by private multiplicative weights, by the perturbed leader (both up to 20 variables); "auto" takes the
        multiplicative weights where noise on all sums would be large.
    graph : networkx.Graph or list of pairs of variables, optional
        A public graph: only its cliques interact, and only what it needs is released. Default: all sets of up to t
        variables may.
    n_iter, sparse, published
    min_edge_weight : float, optional
        Public lower bound eta on the absolute value of the interactions that are not 0: `graph_` then has the pairs in
        an interaction with an estimate of at least eta/2, the exact graph where all errors are below eta/2.
    inference, memory_limit, random_state

    Attributes
    ----------
    weights_ : dict of tuple of variables to float
        c_I of the sets of two or more variables that interact, named in the order of `state_names`.
    fields_ : dict of variable to float
        c_I of the single variables.
    field_ : BinaryField
    graph_ : pgmpy.base.UndirectedGraph
        The pairs of variables that are in an interaction together; the weight of an edge is its score.
    model_
    edge_scores_ : ndarray of shape (p, p)
        Largest ``|c_I|`` of the sets that hold both variables.
    disagreement_ : ndarray of shape (p, p), or None
        With "frank-wolfe", how far the estimates of an interaction lie apart, the largest for each pair.
    release_, privacy_, n_features_in_, feature_names_in_, n_records_, n_records_sd_, converged_, status_, n_iter_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.noisy_parities` or
    :mod:`~pgmpy_dp.fields.published.frank_wolfe_steps`; the rest is post-processing. One record is protected.
    Method: Zhang, Kamath, Kulkarni and Wu (2020); Algorithm 4, with selections by Gumbel noise, is "frank-wolfe".

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)] * 4000 + [(0, 0, 0), (1, 1, 0), (0, 1, 1), (1, 0, 1)] * 1000
    >>> data = pd.DataFrame(rows, columns=["a", "b", "c"])  # c says, mostly, whether a and b are equal
    >>> estimator = PrivateBinaryMRF(2.0, order=3, epsilon=2.0, state_names={name: [0, 1] for name in "abc"}).fit(data)
    >>> round(estimator.weights_["a", "b", "c"], 1)
    0.7
    """

    _family: ClassVar[str] = "binary"
    _release_kinds: ClassVar[tuple[str, ...]] = ("parities", "regressions", "pseudo_likelihood", "halves")
    _examples = ({"width": 2.0, "order": 2, **TABLE_EXAMPLES[0]}, {"width": 1.0, "order": 2, **TABLE_EXAMPLES[1]})

    queries: str = option("auto", one_of(_QUERIES))

    @property
    def _order(self) -> int:
        return self.order

    def _run_moments(self, table: PrivateTable, budget: Budget) -> Release:
        # Noise on all sums is Laplace for a pure budget.
        pure = budget.rho is None and not budget.delta
        method = "noise" if self.queries == "gaussian" and pure else self.queries
        return noisy_parities.run(table, self._settings(method=method), budget)

    def _parameters(self, field: RandomField, variables: tuple[Hashable, ...]) -> tuple[dict, dict]:
        assert isinstance(field, BinaryField)
        named = {tuple(variables[i] for i in scope): value for scope, value in field.coefficients.items()}
        fields = {name: named.get((name,), 0.0) for name in variables}
        return {scope: value for scope, value in named.items() if len(scope) > 1}, fields

    def _rows(self, schema: Schema) -> Iterator[dict[str, Any]]:
        for scope, weight in self.weights_.items():
            yield {"variables": scope, "weight": float(weight)}
