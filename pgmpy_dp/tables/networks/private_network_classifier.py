"""PrivateNetworkClassifier: a learned network that predicts one of its variables, as scikit-learn's classifiers do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pgmpy_dp.learning.joined_target import joined
from pgmpy_dp.learning.private_base import features_in
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Schema
from pgmpy_dp.tables.networks.private_network import PrivateNetwork

_OWN = ("epsilon", "delta", "rho", "state_names", "adjacency", "n_records", "target")


class PrivateNetworkClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by a private network: `PrivateNetwork` with a target, then its conditional probabilities.

    Each fit is charged to a ledger, so that the costs of all fits add up in sight. A ledger cannot be copied, so this
    classifier cannot be cloned: `cross_val_score` and `GridSearchCV`, which clone it for each fit, are refused.
    Pickled, it leaves its ledger behind: what is read back predicts, and fits no more until it is given a ledger.

    Parameters
    ----------
    target : variable
        The variable that is predicted; the schema declares its states.
    ledger : Ledger
        The ledger that all fits are charged to.
    budget : Budget, optional
        The budget of one fit. Default: all that the ledger has left.
    state_names : Schema or dict of variable to list of states
        Public description of the variables, the target among them.
    adjacency : {"add_remove", "replace_one"}
        Which records are neighbours: one more or fewer, or another in its place.
    n_records : int, optional
        How many records there are, where that is public; "replace_one" needs it.
    options : dict, optional
        Further arguments of `PrivateNetwork`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        States of the target, in the order of the schema.
    network_ : PrivateNetwork
        Fitted: ``network_.release_``, ``network_.privacy_``, ``network_.report_``.
    model_ : MarkovNetwork
        To save, to ask and to draw from.
    n_features_in_ : int
        How many other variables the schema has.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these variables, where all are text.

    Notes
    -----
    Privacy: a fit is one of :class:`~pgmpy_dp.estimators.PrivateNetwork`, which has the guarantee and its proof.
    Predictions are post-processing of the model; they cost nothing, and read nothing but what is passed to them.

    The guarantee is for the records as they are passed to this class. An earlier step of a pipeline that
    learns from records (a scaler, an encoder, a selection of features, an imputer) is outside the guarantee, as are
    scores on records that nobody may see: `score` computes without noise.

    Method: McKenna, Mullins, Sheldon and Miklau (2022); fit, candidates and shares of the budget are this package's.

    Examples
    --------
    >>> from pgmpy_dp import Budget, Ledger
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(5000) < 0.3
    >>> data = pd.DataFrame({"wet": rng.random(5000) < np.where(rain, 0.9, 0.1), "coin": rng.random(5000) < 0.5})
    >>> states = {"wet": [False, True], "coin": [False, True], "rain": [False, True]}
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> classifier = PrivateNetworkClassifier("rain", ledger, state_names=states).fit(data, rain)
    >>> classifier.predict(pd.DataFrame({"wet": [False, True], "coin": [True, True]}))
    array([False,  True])
    """

    def __init__(
        self,
        target: Hashable = None,
        ledger: Ledger | None = None,
        budget: Budget | None = None,
        state_names: Schema | dict | None = None,
        adjacency: str = "add_remove",
        n_records: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.target, self.ledger, self.budget = target, ledger, budget
        self.state_names, self.adjacency, self.n_records = state_names, adjacency, n_records
        self.options = options

    def __sklearn_clone__(self) -> NoReturn:
        raise TypeError(
            "a PrivateNetworkClassifier cannot be cloned, since its ledger cannot be copied: each clone would be "
            "fitted and charged, and 5 folds would spend 5 budgets without a word. Fit it once and test it on records "
            "that were kept out, or make a classifier for each fold, all with one ledger, each with its part as budget="
        )

    def fit(self, X: Any, y: Any = None, *, unit: Hashable = None, rows_per_unit: int | str | None = None) -> Self:
        """Release noisy tables under the budget, then learn from them.

        Parameters
        ----------
        X : dataframe, array of shape (n, n_features_in_), or path
            Records. Columns that the schema does not name are not read; those of an array are the other variables, in
            the order of the schema.
        y : array-like or dataframe of shape (n,) or (n, 1), optional
            The target of each record, in the order of the rows of `X`, an array or a pandas dataframe. Default: `X` has
            it as a column, and may then be anything that `PrivateTable` reads.
        unit, rows_per_unit
            Of persons with several records, as :meth:`~pgmpy_dp.estimators.PrivateNetwork.fit` takes them.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, and for an `X` and a `y` of shapes that do not fit, before
            anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger does not allow the budget; nothing is spent.
        """
        schema, budget, network = self._checked()
        others = [name for name in schema.variables if name != self.target]
        with_target = X if y is None else joined(_as_frame(X, others), y, self.target)
        whose = {} if rows_per_unit is None else {"rows_per_unit": rows_per_unit}
        assert self.ledger is not None
        table = PrivateTable(
            with_target,
            schema,
            adjacency=self.adjacency,
            ledger=self.ledger,
            n_records=self.n_records,
            unit=unit,
            **whose,  # type: ignore[arg-type]
        )
        network.set_params(epsilon=budget.epsilon, delta=budget.delta, rho=budget.rho)
        network.fit(table)
        self.network_, self.model_ = network, network.model_
        self.classes_ = pd.Index(self.model_.states[self.target], tupleize_cols=False).to_numpy()
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(features_in(others))
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "ledger": None}

    def _checked(self) -> tuple[Schema, Budget, PrivateNetwork]:
        """Check public arguments; return the schema, the budget of this fit, and the learner."""
        if not isinstance(self.ledger, Ledger):
            raise TypeError(
                f"ledger={self.ledger!r} is a {type(self.ledger).__name__}; pass Ledger(Budget(...)), which all fits "
                "to these records share"
            )
        schema = Schema.coerce(self.state_names, argument="state_names")
        if self.target not in schema.variables or self.target in schema.numbers:
            what = "is a number" if self.target in schema.variables else "is not a variable"
            raise ValueError(
                f"target={self.target!r} {what} of the schema; pass one of the variables with states: "
                f"{[name for name in schema.variables if name not in schema.numbers]}"
            )
        options = {} if self.options is None else dict(self.options)
        if taken := sorted(set(options).intersection(_OWN)):
            raise ValueError(
                f"options has {taken}, which are arguments of the classifier (budget= for the first three)"
            )
        if self.budget is not None:
            require_budget(self.budget)
            budget = self.budget
        else:
            left = self.ledger.left
            try:
                budget = Budget.of(left)
            except ValueError:  # no budget is 0
                said = "the ledger has nothing left; nothing was spent"
                raise BudgetExceeded(said, spent=self.ledger.spent, asked=left, left=left) from None
        arguments: dict[str, Any] = {"state_names": schema, "adjacency": self.adjacency, "n_records": self.n_records}
        return schema, budget, PrivateNetwork(target=self.target, **arguments, **options)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(target | the columns of X), of *public* records, or such as the model's user may see.

        Parameters
        ----------
        X : dataframe, or array of shape (n, n_features_in_)
            As :meth:`~pgmpy_dp.MarkovNetwork.predict_proba` reads it: columns that it lacks and empty cells are summed
            over, others are ignored. Columns of an array are as `fit` takes them.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns in the order of `classes_`. Of a record that is impossible by the schema's rules, the target's own
            distribution.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If a cell is no state of its variable, and for an array of another shape.
        """
        check_is_fitted(self, "model_")
        X = _as_frame(X, [name for name in self.model_.nodes if name != self.target])
        told = self.model_.predict_proba(X, self.target).to_numpy(copy=True)
        unknown = np.isnan(told).any(axis=1)
        if unknown.any():
            told[unknown] = self.model_.marginal([self.target]).values
        return told

    def predict(self, X: Any) -> np.ndarray:
        """The most probable state of each record's target.

        Parameters
        ----------
        X : dataframe, or array of shape (n, n_features_in_)
            As `predict_proba` takes it.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        NotFittedError, ValueError
            As `predict_proba`.
        """
        told = self.predict_proba(X)
        return self.classes_[told.argmax(axis=1)]


def _as_frame(X: Any, names: list[Hashable]) -> Any:
    """An array with the names of its columns; anything else as it is."""
    if not isinstance(X, np.ndarray):
        return X
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(f"X is an array whose records have the shape {X.shape[1:]}; pass a column for each of {names}")
    return pd.DataFrame(X, columns=pd.Index(names, tupleize_cols=False))
