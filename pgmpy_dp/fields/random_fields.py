"""The three kinds of random fields under one roof: Ising, pairwise over any alphabets, and binary of any order.

All three are log-linear models in a parametrisation of their own, over positions 0 .. p-1::

    Ising         log Pr(z) = sum_{i<j} A_ij z_i z_j + sum_i theta_i z_i           z in {-1, +1}^p
    Pairwise      log Pr(x) = sum_{i<j} W_ij(x_i, x_j) + sum_i theta_i(x_i)        x_i in 0 .. k_i - 1
    BinaryField   log Pr(z) = h(z) = sum_I c_I prod_{i in I} z_i                   z in {-1, +1}^p

each up to a constant. Records are state numbers, as everywhere in this package: z = 2 x - 1, so that the first state
of a binary variable is -1 and the second +1.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
   Section 2: the models and their widths.
.. [2] Klivans, A. and Meka, R. (2017). Learning graphical models using multiplicative weights. FOCS.
.. [3] Wu, S., Sanghavi, S. and Dimakis, A. G. (2019). Sparse logistic regression learns all discrete pairwise
   graphical models. NeurIPS.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.analysis_of_variance import log_linear_of


@dataclass(frozen=True, eq=False)
class Ising:
    """Pr(z) ~ exp(sum_{i<j} A_ij z_i z_j + sum_i theta_i z_i) on {-1, +1}^p.

    Parameters
    ----------
    weights : ndarray of shape (p, p)
        A: symmetric with a zero diagonal; A_ij != 0 are the edges.
    fields : ndarray of shape (p,)
        theta.

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite, or the weights are not symmetric with a zero diagonal.

    Examples
    --------
    >>> model = Ising(np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([0.2, 0.0]))
    >>> model.width, model.min_edge_weight, model.edges()
    (0.7, 0.5, [(0, 1)])
    >>> model.to_log_linear(["a", "b"]).marginal(["a"]).round(3)
    array([0.401, 0.599])
    """

    weights: np.ndarray
    fields: np.ndarray

    def __post_init__(self) -> None:
        fields = frozen("fields", self.fields, 1)
        weights = frozen("weights", self.weights, 2)
        if weights.shape != (len(fields), len(fields)):
            raise ValueError(f"weights must have shape (p, p) and fields (p,), got {weights.shape} and {fields.shape}")
        if not np.array_equal(weights, weights.T) or np.diagonal(weights).any():
            raise ValueError("weights must be symmetric with a zero diagonal; use (W + W.T) / 2 and np.fill_diagonal")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "fields", fields)

    @property
    def n_variables(self) -> int:
        """p."""
        return len(self.fields)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable: 2."""
        return (2,) * self.n_variables

    @property
    def width(self) -> float:
        """lambda = max_i sum_j |A_ij| + |theta_i|."""
        return float((np.abs(self.weights).sum(axis=1) + np.abs(self.fields)).max(initial=0.0))

    @property
    def min_edge_weight(self) -> float:
        """eta = min |A_ij| over the edges; inf without edges."""
        return float(np.abs(self.weights[self.weights != 0]).min(initial=math.inf))

    def edges(self) -> list[tuple[int, int]]:
        """Pairs i < j with A_ij != 0, in order."""
        return [(int(i), int(j)) for i, j in np.argwhere(np.triu(self.weights))]

    def to_log_linear(
        self, variables: Sequence[Hashable] | None = None, cliques: Cliques | None = None
    ) -> LogLinearModel:
        """The same distribution as a log-linear model; see `BinaryField.to_log_linear`."""
        return self.to_binary_field().to_log_linear(variables, cliques)

    def to_binary_field(self) -> BinaryField:
        """The same model as a polynomial of degree 2."""
        linear = {(i,): float(value) for i, value in enumerate(self.fields)}
        return BinaryField(self.n_variables, linear | {(i, j): float(self.weights[i, j]) for i, j in self.edges()})


@dataclass(frozen=True, eq=False)
class BinaryField:
    """Pr(z) ~ exp(h(z)), h(z) = sum_I c_I prod_{i in I} z_i, on {-1, +1}^p: a binary t-wise Markov random field.

    Parameters
    ----------
    n_variables : int
        p.
    coefficients : mapping of tuple of int to float
        c_I of the monomials of the factorisation polynomial h; I not empty (a constant does not change the
        distribution). Zeros are dropped, and the positions of each I sorted.

    Raises
    ------
    ValueError
        If a monomial is empty, repeats a position, is outside 0 .. p-1 or comes twice, or a number is not finite.

    Examples
    --------
    >>> model = BinaryField(4, {(0, 1, 2): 0.5, (0, 1): 0.25, (3,): -0.3})
    >>> model.order, model.width, model.maximal(), model.edges()
    (3, 0.75, [(3,), (0, 1, 2)], [(0, 1), (0, 2), (1, 2)])
    """

    n_variables: int
    coefficients: Mapping[tuple[int, ...], float]

    def __post_init__(self) -> None:
        if self.n_variables < 0:
            raise ValueError(f"n_variables={self.n_variables!r} must not be negative")
        coefficients: dict[tuple[int, ...], float] = {}
        for positions, value in self.coefficients.items():
            subset = check_subset(positions, self.n_variables, "coefficients")
            if subset in coefficients:
                raise ValueError(f"coefficients has the monomial {subset} twice")
            if not math.isfinite(value):
                raise ValueError(f"coefficients[{subset}] must be finite, got {value!r}")
            coefficients[subset] = float(value)
        ordered = sorted(coefficients, key=lambda subset: (len(subset), subset))
        object.__setattr__(self, "coefficients", {s: coefficients[s] for s in ordered if coefficients[s] != 0})

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of states of each variable: 2."""
        return (2,) * self.n_variables

    @property
    def order(self) -> int:
        """t, the size of the largest monomial; 0 of the uniform distribution."""
        return max((len(subset) for subset in self.coefficients), default=0)

    @property
    def width(self) -> float:
        """lambda = max_i sum_{I with i} |c_I|, the largest l1 norm of a partial derivative of h."""
        norms = np.zeros(self.n_variables)
        for subset, value in self.coefficients.items():
            norms[list(subset)] += abs(value)
        return float(norms.max(initial=0.0))

    def maximal(self) -> list[tuple[int, ...]]:
        """Monomials no superset of which has a coefficient."""
        inside = {
            part
            for subset in self.coefficients
            for size in range(1, len(subset))
            for part in itertools.combinations(subset, size)
        }
        return [subset for subset in self.coefficients if subset not in inside]

    @property
    def min_edge_weight(self) -> float:
        """eta = min |c_I| over the maximal monomials of two or more variables; inf without any."""
        return min((abs(self.coefficients[s]) for s in self.maximal() if len(s) > 1), default=math.inf)

    def edges(self) -> list[tuple[int, int]]:
        """Pairs i < j that are in a monomial together, in order: the dependency graph."""
        return sorted({pair for subset in self.coefficients for pair in itertools.combinations(subset, 2)})

    def to_log_linear(
        self, variables: Sequence[Hashable] | None = None, cliques: Cliques | None = None
    ) -> LogLinearModel:
        """The same distribution as a log-linear model, on which exact inference and pgmpy work.

        Parameters
        ----------
        variables : sequence of p hashables, optional
            Names; by default those of `cliques`, else the positions.
        cliques : Cliques, optional
            The tables to write into, as of ``Cliques.from_graph``; each term of the field goes into the smallest
            table that has its variables. By default one table for each variable and each interaction.

        Returns
        -------
        LogLinearModel

        Raises
        ------
        ValueError
            If names or tables do not fit, or a term is in no table.
        """
        terms = {s: value * _parity_table(len(s)) for s, value in self.coefficients.items()}
        return log_linear_of(terms, self.cardinalities, variables, cliques)

    def to_ising(self) -> Ising:
        """The same model as an Ising model, where no monomial has more than two variables."""
        if self.order > 2:
            raise ValueError(
                f"an Ising model has monomials of at most 2 variables, and this field has order {self.order}"
            )
        weights, fields = np.zeros((self.n_variables, self.n_variables)), np.zeros(self.n_variables)
        for subset, value in self.coefficients.items():
            if len(subset) == 1:
                fields[subset[0]] = value
            else:
                weights[subset[0], subset[1]] = weights[subset[1], subset[0]] = value
        return Ising(weights, fields)


def _parity_table(order: int) -> np.ndarray:
    """prod_i z_i as a table of shape (2,) * order."""
    table = np.ones(())
    for _ in range(order):
        table = np.multiply.outer(table, np.array([-1.0, 1.0]))
    return table


def frozen(name: str, values: np.ndarray, ndim: int) -> np.ndarray:
    """Read-only float64 copy."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != ndim or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {ndim}-dimensional and finite, got shape {array.shape}")
    array.flags.writeable = False
    return array


def check_subset(positions: Iterable[int], p: int, name: str, sizes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Sorted distinct positions of a monomial or pair; a pair must come sorted, for its table has an orientation."""
    subset = tuple(int(i) for i in positions)
    inside = len(set(subset)) == len(subset) > 0 and all(0 <= i < p for i in subset)
    if not inside or (sizes is not None and (len(subset) not in sizes or list(subset) != sorted(subset))):
        rule = "distinct positions" if sizes is None else "pairs i < j of positions"
        raise ValueError(f"{name} must be given for {rule} from 0 to {p - 1}, got {positions!r}")
    return tuple(sorted(subset))


_ROUNDING = 1e-10  # of a table: interactions below this are errors of rounding


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
            if np.abs(interaction).max() > _ROUNDING * np.abs(table).max():
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

    def to_log_linear(
        self, variables: Sequence[Hashable] | None = None, cliques: Cliques | None = None
    ) -> LogLinearModel:
        """The same distribution as a log-linear model; see `BinaryField.to_log_linear`."""
        # Centred: a pair whose table is no interaction, but for rounding, has no table then, as it has no edge.
        terms = {(i,): field for i, field in enumerate(self._centred.fields)} | dict(self._centred.weights)
        return log_linear_of(terms, self.cardinalities, variables, cliques)

    def to_ising(self) -> Ising:
        """The same model as an Ising model, where all variables are binary."""
        if set(self.cardinalities) - {2}:
            raise ValueError(f"an Ising model needs binary variables, got the cardinalities {self.cardinalities}")
        centred = self._centred
        weights = np.zeros((self.n_variables, self.n_variables))
        for (i, j), table in centred.weights.items():
            weights[i, j] = weights[j, i] = table[1, 1]
        return Ising(weights, np.array([field[1] for field in centred.fields]))


RandomField = Ising | Pairwise | BinaryField


def edge_scores(field: RandomField) -> np.ndarray:
    """Largest absolute interaction of each pair of variables, shape (p, p), symmetric.

    Of an Ising model |A_ij|, of a pairwise one the largest entry of the centred |W_ij|, of a binary field the largest
    coefficient of a product that holds both.

    Examples
    --------
    >>> edge_scores(BinaryField(3, {(0,): 5.0, (0, 1): 0.2, (0, 1, 2): -0.5}))
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    if isinstance(field, Ising):
        return np.abs(field.weights)
    scores = np.zeros((field.n_variables, field.n_variables))
    if isinstance(field, Pairwise):
        for (i, j), table in field.centred().weights.items():
            scores[i, j] = scores[j, i] = np.abs(table).max()
        return scores
    return by_pair(field.n_variables, {scope: abs(value) for scope, value in field.coefficients.items()})


def by_pair(p: int, values: Mapping[tuple[int, ...], float]) -> np.ndarray:
    """Largest of the non-negative values of the sets that hold both of a pair of positions, shape (p, p)."""
    largest = np.zeros((p, p))
    for scope, value in values.items():
        for i, j in itertools.permutations(scope, 2):
            largest[i, j] = max(largest[i, j], value)
    return largest
