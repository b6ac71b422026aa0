"""`Ising` and `BinaryField`: fields of binary variables, of pairs and of any order; `random_fields` compares them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.analysis_of_variance import log_linear_of, pure_effects

ROUNDING = 1e-10
"""Interactions below this fraction of the largest log-potential are taken for rounding errors of zero."""


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

    def log_potential(self, codes: np.ndarray) -> np.ndarray:
        """log Pr up to a constant, shape (n,), of records `codes` of shape (n, p)."""
        z = 2.0 * check_codes(codes, self.cardinalities) - 1.0
        return 0.5 * np.einsum("ni,ni->n", z @ self.weights, z) + z @ self.fields

    def to_log_linear(
        self, variables: Sequence[Hashable] | None = None, cliques: Cliques | None = None
    ) -> LogLinearModel:
        """The same distribution as a log-linear model; see `BinaryField.to_log_linear`."""
        return self.to_binary_field().to_log_linear(variables, cliques)

    @classmethod
    def from_log_linear(cls, model: LogLinearModel) -> Ising:
        """The Ising model with the distribution of `model`; see `BinaryField.from_log_linear`.

        Raises
        ------
        ValueError
            If a variable is not binary, a table has structural zeros, or there is an interaction of order 3 or more.
        """
        return BinaryField.from_log_linear(model, max_order=2).to_ising()

    def to_binary_field(self) -> BinaryField:
        """As a polynomial of degree 2."""
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
        If a monomial is empty, repeats a position, is outside 0 .. p-1 or given twice, or a number is not finite.

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
        for given, value in self.coefficients.items():
            subset = check_subset(given, self.n_variables, "coefficients")
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

    def log_potential(self, codes: np.ndarray) -> np.ndarray:
        """log Pr up to a constant, shape (n,), of records `codes` of shape (n, p)."""
        z = 2.0 * check_codes(codes, self.cardinalities) - 1.0
        total = np.zeros(len(z))
        for subset, value in self.coefficients.items():
            total += value * z[:, list(subset)].prod(axis=1)
        return total

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

    @classmethod
    def from_log_linear(cls, model: LogLinearModel, max_order: int | None = None) -> BinaryField:
        """The polynomial of `model`, whose variables become positions in their order.

        Its coefficients are the Fourier coefficients of the log-potentials, c_I = mean_z theta(z) prod_{i in I} z_i;
        those below 1e-10 of the largest log-potential are taken for rounding errors of zero.

        Parameters
        ----------
        model : LogLinearModel
            Of binary variables.
        max_order : int, optional
            Refuse interactions of more variables than this.

        Raises
        ------
        ValueError
            If a variable is not binary, a table has structural zeros, or `max_order` is exceeded.
        """
        names = [v for v, k in zip(model.cliques.variables, model.cliques.cardinalities, strict=True) if k != 2]
        if names:
            raise ValueError(f"model must have binary variables only; these have other numbers of states: {names}")
        effects = pure_effects(model, max_order=max_order, rounding=ROUNDING)
        # Of a binary table without margins each cell is plus or minus one number; that of all +1 is plus.
        return cls(len(model.cliques.variables), {s: float(table.flat[-1]) for s, table in effects.items()})

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


def check_subset(given: Iterable[int], p: int, name: str, sizes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Sorted distinct positions of a monomial or pair; a pair must come sorted, for its table has an orientation."""
    subset = tuple(int(i) for i in given)
    inside = len(set(subset)) == len(subset) > 0 and all(0 <= i < p for i in subset)
    if not inside or (sizes is not None and (len(subset) not in sizes or list(subset) != sorted(subset))):
        rule = "distinct positions" if sizes is None else "pairs i < j of positions"
        raise ValueError(f"{name} must be given for {rule} from 0 to {p - 1}, got {given!r}")
    return tuple(sorted(subset))


def check_codes(codes: np.ndarray, cardinalities: tuple[int, ...]) -> np.ndarray:
    """Codes of records as integers; ValueError where they do not have a column for each variable."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(cardinalities):
        raise ValueError(f"codes must have shape (n, {len(cardinalities)}), got {codes.shape}")
    return codes.astype(np.int64)
