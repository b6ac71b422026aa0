"""PrivateLogisticRegression: a sparse logistic regression of one variable on all others, by private Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.special import expit

from pgmpy_dp.checks import require_value
from pgmpy_dp.fields import frank_wolfe
from pgmpy_dp.fields.frank_wolfe import FrankWolfePlan, RegressionLayout
from pgmpy_dp.learning.collective_base import progress_bar
from pgmpy_dp.learning.joined_target import joined
from pgmpy_dp.learning.options import by, column, flag, number, option, whole
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.learning.table_base import BaseTableEstimator
from pgmpy_dp.models.prediction import state_codes
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.operators.regressions import FEATURE_UNIT, feature_rows
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

_RADIUS = "the public bound on the sum of the absolute weights, the intercept's among them (a larger one is noisier)"
_BINARY = "a variable of two states in the schema"


class PrivateLogisticRegression(BaseTableEstimator):
    """Logistic regression of a variable of two states on all others, with weights in an l1 ball.

    ``P(second state) = 1/(1 + exp(-(coef_ . x + intercept_)))``. A number gives one feature, -1 at its lower and 1 at
    its upper bound; a variable of two states one, -1 and 1; a variable of more states an indicator of each, 0 or 1. A
    number that is missing or outside, where these have a state, counts as 0, the middle, with an indicator of its own.

    Parameters
    ----------
    target : variable
        What is predicted, of two states. One of more is refused: a regression for each of its
        states would each take a part of the budget.
    radius : float
        Public bound on the sum of the absolute values of all weights, the intercept's among them. It is not learned.
    epsilon, delta, rho, state_names, adjacency, n_records
    n_iter : int, optional
        Steps, with one more: T - 1 vertices are selected. Default: from public or noisy numbers.
    published : bool
        Steps, and their default number, as the paper has them (with rho, or epsilon and delta). The noise is never the
        paper's, which has a smaller scale than its guarantee needs.
    random_state

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        States of the target, in the order of the schema.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Weight of the constant 1. It is in the ball, as in the paper.
    terms_ : list of tuple
        What each feature is: ``(variable,)``, or ``(variable, state)`` of an indicator.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        All other variables of the schema.
    n_features_in_ : int
    release_, privacy_
    n_records_, n_records_sd_ : float
        The public number of records, or its noisy count with the noise's standard deviation; NaN where none was needed.
    n_iter_ : int

    Notes
    -----
    Privacy: the only access to the records is one release of :func:`pgmpy_dp.fields.frank_wolfe.released_descent`; the
    proof is in ``private/operators/frank_wolfe.md``. Protected is one record, or a unit. Bounds of numbers are the
    schema's, and so is what becomes of a number outside: clipped unless it says otherwise. A record outside the schema
    is left out in silence.
    Method: Zhang, Kamath, Kulkarni and Wu (2020), Algorithm 1; Theorem 1.3 bounds the excess risk
    (:func:`~pgmpy_dp.theory.sample_complexity.sparse_logistic_regression`). A number is counted in a fine cell of the
    schema, and stands for its middle: rounded to 1/64 where it is between -1 and 1, in records and in predictions.

    Examples
    --------
    >>> from pgmpy_dp import Number
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(0, 10, 20_000)
    >>> data = pd.DataFrame({"dose": dose, "ill": rng.random(20_000) < expit(5 - dose)})
    >>> states = {"dose": Number(0, 10, missing="drop"), "ill": [False, True]}
    >>> model = PrivateLogisticRegression(target="ill", radius=6.0, epsilon=1.0, state_names=states).fit(data)
    >>> model.predict(pd.DataFrame({"dose": [1.0, 9.0]}))
    array([ True, False])
    """

    _tags: ClassVar[dict[str, Any]] = {"task": "classes"}
    _release_kinds = ("logistic_regression",)
    _made_for = ("target", "radius")
    _examples = tuple({"target": "wet", "radius": 2.0, **example} for example in TABLE_EXAMPLES)

    target: Hashable = option(None, by(column))
    radius: float | None = option(None, number())
    n_iter: int | None = option(None, whole(2))
    published: bool = option(False, flag())

    def fit(self, X: Any, y: Any = None, *, unit: Hashable = None, rows_per_unit: int | str | None = None) -> Self:
        """Release vertices under the budget, then add them up.

        Parameters
        ----------
        X : dataframe, path or PrivateTable
            Records. A `PrivateTable` is charged to its own ledger; anything else gets one with the budget of this fit.
        y : array-like of shape (n,), optional
            The target of each record, in the order of the rows of a pandas dataframe `X`. Default: `X` has it.
        unit, rows_per_unit
            Of persons with several records, as `PrivateTable` takes them.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger of private data does not allow the budget; nothing is spent.
        """
        return self._fit(X if y is None else joined(X, y, self.target), unit=unit, rows_per_unit=rows_per_unit)

    def _check_schema(self, schema: Schema) -> None:
        require_value("target", self.target, _BINARY)
        require_value("radius", self.radius, _RADIUS)
        states = schema.states[self.target] if self.target not in schema.numbers else ()
        if len(states) != 2:
            what = f"has {len(states)} states" if states else "is a number"
            if len(states) == 3 and (other := schema.other.get(self.target)) is not None:
                listed = [state for state in states if state != other]
                what += (
                    f", one of which takes all other cells: schema.replaced({{{self.target!r}: {listed!r}}}) has two"
                )
            raise ValueError(
                f"target={self.target!r} {what}; pass {_BINARY}, or merge states, or fit one regression for each "
                "state against the others, with a part of the budget"
            )

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        budget = require_table_and_budget(table, budget)
        settings = frank_wolfe.completed(self._options)
        layout, _ = logistic_layout(table.schema, self.target)
        assert self.radius is not None  # checked
        plan = FrankWolfePlan.of(layout, self.radius, (table.adjacency, table.n_records), settings, budget)
        said = {
            "kind": self._release_kinds[0],
            "what": "Frank-Wolfe steps of a logistic regression",
            "columns": table.schema.variables,
            "public": {"target": self.target, "settings": settings.public(budget, "n_iter", "count_share")},
        }
        with progress_bar(type(self).__name__) as progress:
            return frank_wolfe.released_descent(table, plan, settings, budget, progress, **said)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        self._check_schema(release.schema)

    def _columns(self, release: Release) -> list[Hashable]:
        return [name for name in release.schema.variables if name != self.target]

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        layout, terms = logistic_layout(release.schema, self.target)
        weights = frank_wolfe.weights_in(release, layout.n_columns)
        return {
            "classes_": pd.Index(release.schema.states[self.target], tupleize_cols=False).to_numpy(),
            "coef_": weights[:, :-1],
            "intercept_": weights[:, -1],
            "terms_": terms,
            **dict(zip(("n_records_", "n_records_sd_"), frank_wolfe.released_count(release), strict=True)),
            "n_iter_": int(release.public["n_iter"]),
        }

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class, of *public* records, or such as the model's user may see.

        Parameters
        ----------
        X : dataframe
            With a column for each other variable of the schema; further ones are ignored.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            If a cell is no state of its variable, or is empty and its variable has no state for that.
        """
        self.check_is_fitted()
        schema = self.release_.schema.fine()
        names = self._columns(self.release_)
        codes = state_codes(schema, X, names, "X")
        if (codes < 0).any():
            lacking = names[int(np.argmax((codes < 0).any(axis=0)))]
            raise ValueError(f"X has an empty cell in the column {lacking!r}, which has no state for that; fill it")
        layout, _ = logistic_layout(schema, self.target)
        rows = feature_rows(np.insert(codes, layout.nodes, 0, axis=1), layout)  # the target is no feature
        return np.append(self.coef_[0], self.intercept_) @ rows / FEATURE_UNIT

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes, of records as :meth:`decision_function` takes them.

        Parameters
        ----------
        X : dataframe

        Returns
        -------
        ndarray of shape (n, 2)
            Columns in the order of `classes_`.
        """
        second = expit(self.decision_function(X))
        return np.column_stack([1.0 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of records, as :meth:`decision_function` takes them.

        Parameters
        ----------
        X : dataframe

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def score(self, X: Any, y: Any) -> float:
        """Part of some public records whose class is predicted; of private ones it would not be protected.

        Parameters
        ----------
        X : dataframe
        y : array-like of shape (n,)

        Returns
        -------
        float
        """
        return float(np.mean(self.predict(X) == np.asarray(y)))


def logistic_layout(schema: Schema, target: Hashable) -> tuple[RegressionLayout, list[tuple[Hashable, ...]]]:
    """The regression of a target on all other variables, and what each of its features but the constant is.

    Parameters
    ----------
    schema : Schema
        Numbers that are not divided have their fine cells.
    target : hashable

    Returns
    -------
    layout : RegressionLayout
    terms : list of tuple

    Examples
    --------
    >>> from pgmpy_dp import Number
    >>> schema = Schema({"x": Number(0, 4, bins=4), "k": ["a", "b", "c"], "ill": [False, True]})
    >>> layout, terms = logistic_layout(schema, "ill")
    >>> terms
    [('x',), ('x', None), ('k', 'a'), ('k', 'b'), ('k', 'c')]
    >>> layout.features[:3]
    ((0, -48, -16, 16, 48, 0), (0, 0, 0, 0, 0, 64), (1, 64, 0, 0))
    """
    fine = schema.fine()
    features: list[tuple[int, ...]] = []
    terms: list[tuple[Hashable, ...]] = []
    for j, name in enumerate(fine.variables):
        for term, values in () if name == target else _columns(fine, name):
            terms.append(term)
            features.append((j, *values))
    features.append(())
    node, columns = np.array([list(fine.variables).index(target)]), np.arange(len(features))[np.newaxis]
    sizes = tuple(fine.cardinalities.values())
    return RegressionLayout("logistic", sizes, tuple(features), node, np.array([[1, 0]]), columns), terms


def _columns(fine: Schema, name: Hashable) -> list[tuple[tuple[Hashable, ...], list[int]]]:
    """The features of a variable, each with its values at all states, in units of 1/FEATURE_UNIT."""
    states, bounds = fine.states[name], fine.numbers.get(name)
    if bounds is None and len(states) == 2:
        return [((name,), [-FEATURE_UNIT, FEATURE_UNIT])]
    features: list[tuple[tuple[Hashable, ...], list[int]]] = []
    marked = range(len(states) if len(states) > 1 else 0)
    if bounds is not None:
        width, spans = bounds.upper - bounds.lower, bounds.spans()
        middles = [(low - bounds.lower) / width + (high - bounds.lower) / width - 1.0 for low, high, _ in spans]
        marked = range(len(middles), len(states))
        features.append(((name,), [*(round(FEATURE_UNIT * x) for x in middles), *(0 for _ in marked)]))
    return features + [((name, states[a]), [FEATURE_UNIT * (a == b) for b in range(len(states))]) for a in marked]
