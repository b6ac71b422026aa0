"""`Pairwise`: fields of pairs of variables with any numbers of states; `random_fields` compares the three kinds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgmpy_dp.fields.binary_fields import ROUNDING, Ising, check_codes, check_subset, frozen
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.analysis_of_variance import log_linear_of, pure_effects


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Pr(x) ~ exp(sum_{i<j} W_ij(x_i, x_j) + sum_i theta_i(x_i)), x_i in 0 .. k_i - 1.

    The parametrisation is overcomplete: a function of x_i alone may be moved between theta_i and W_ij. `centred` is
    the one representative whose tables have rows and columns of mean 0 and whose fields have mean 0; `width`,
    `min_edge_weight` and `edges` are those of it, so that they are properties of the distribution.

    Parameters
    ----------
    fields : sequence of p ndarrays of shape (k_i,)
        theta.
    weights : mapping of (i, j) with i < j to ndarray of shape (k_i, k_j)
        W; pairs without a table, or with one of zeros, do not interact.

    Raises
    ------
    ValueError
        If a shape or a position does not fit, or a number is not finite.

    Examples
    --------
    >>> model = Pairwise([np.zeros(2), np.zeros(3)], {(0, 1): np.array([[1.0, 0, 0], [0, 0, 0]])})
    >>> model.centred().weights[0, 1].round(3)
    array([[ 0.333, -0.167, -0.167],
           [-0.333,  0.167,  0.167]])
    >>> model.centred().fields[0].round(3)
    array([ 0.167, -0.167])
    """

    fields: tuple[np.ndarray, ...]
    weights: Mapping[tuple[int, int], np.ndarray]

    def __post_init__(self) -> None:
        fields = tuple(frozen(f"fields[{i}]", field, 1) for i, field in enumerate(self.fields))
        if any(len(field) == 0 for field in fields):
            raise ValueError("each of fields must have at least one state")
        weights = {}
        for pair in sorted(self.weights):
            i, j = check_subset(pair, len(fields), "weights", sizes=(2,))
            table = frozen(f"weights[{i}, {j}]", self.weights[pair], 2)
            if table.shape != (len(fields[i]), len(fields[j])):
                raise ValueError(
                    f"weights[{i}, {j}] must have shape {(len(fields[i]), len(fields[j]))}, got {table.shape}"
                )
            if table.any():
                weights[i, j] = table
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "weights", weights)

    @property
    def n_variables(self) -> int:
        """p."""
        return len(self.fields)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return tuple(len(field) for field in self.fields)

    def centred(self) -> Pairwise:
        """The same distribution with tables of row and column means 0 and fields of mean 0."""
        return self._centred

    @cached_property
    def _centred(self) -> Pairwise:
        fields = [field.copy() for field in self.fields]
        weights = {}
        for (i, j), table in self.weights.items():
            rows, columns = table.mean(axis=1), table.mean(axis=0)
            fields[i] += rows
            fields[j] += columns
            interaction = table - rows[:, None] - columns + table.mean()
            if np.abs(interaction).max() > ROUNDING * np.abs(table).max():
                weights[i, j] = interaction
        return Pairwise(tuple(field - field.mean() for field in fields), weights)

    @property
    def width(self) -> float:
        """lambda = max_{i,a} sum_j max_b |W_ij(a, b)| + |theta_i(a)| of the centred model."""
        centred = self._centred
        rows = [np.abs(field) for field in centred.fields]
        for (i, j), table in centred.weights.items():
            rows[i] = rows[i] + np.abs(table).max(axis=1)
            rows[j] = rows[j] + np.abs(table).max(axis=0)
        return float(max((row.max() for row in rows), default=0.0))

    @property
    def min_edge_weight(self) -> float:
        """eta = min over the edges of max_{a,b} |W_ij(a, b)| of the centred model; inf without edges."""
        return float(min((np.abs(table).max() for table in self._centred.weights.values()), default=math.inf))

    def edges(self) -> list[tuple[int, int]]:
        """Pairs i < j that interact, in order."""
        return list(self._centred.weights)

    def log_potential(self, codes: np.ndarray) -> np.ndarray:
        """log Pr up to a constant, shape (n,), of records `codes` of shape (n, p)."""
        codes = check_codes(codes, self.cardinalities)
        total = np.zeros(len(codes))
        for i, field in enumerate(self.fields):
            total += field[codes[:, i]]
        for (i, j), table in self.weights.items():
            total += table[codes[:, i], codes[:, j]]
        return total

    def to_log_linear(
        self, variables: Sequence[Hashable] | None = None, cliques: Cliques | None = None
    ) -> LogLinearModel:
        """The same distribution as a log-linear model; see `BinaryField.to_log_linear`."""
        # Centred: a pair whose table is no interaction, but for rounding, has no table then, as it has no edge.
        terms = {(i,): field for i, field in enumerate(self._centred.fields)} | dict(self._centred.weights)
        return log_linear_of(terms, self.cardinalities, variables, cliques)

    @classmethod
    def from_log_linear(cls, model: LogLinearModel) -> Pairwise:
        """The centred pairwise model with the distribution of `model`, whose variables become positions in order.

        Raises
        ------
        ValueError
            If a table has structural zeros, or there is an interaction of order 3 or more.
        """
        effects = pure_effects(model, max_order=2, rounding=ROUNDING)
        none = {(i,): np.zeros(k) for i, k in enumerate(model.cliques.cardinalities)}
        fields = [effects.get(i, zero) for i, zero in none.items()]
        return cls(tuple(fields), {(s[0], s[1]): table for s, table in effects.items() if len(s) == 2})

    @classmethod
    def from_ising(cls, model: Ising) -> Pairwise:
        """The centred form of an Ising model: W_ij = A_ij [[1, -1], [-1, 1]], theta_i = (-theta_i, theta_i)."""
        signs = np.array([-1.0, 1.0])
        parity = np.outer(signs, signs)
        weights = {(i, j): model.weights[i, j] * parity for i, j in model.edges()}
        return cls(tuple(value * signs for value in model.fields), weights)

    def to_ising(self) -> Ising:
        """The same model as an Ising model, where all variables are binary."""
        if set(self.cardinalities) - {2}:
            raise ValueError(f"an Ising model needs binary variables, got the cardinalities {self.cardinalities}")
        centred = self._centred
        weights = np.zeros((self.n_variables, self.n_variables))
        for (i, j), table in centred.weights.items():
            weights[i, j] = weights[j, i] = table[1, 1]
        return Ising(weights, np.array([field[1] for field in centred.fields]))
