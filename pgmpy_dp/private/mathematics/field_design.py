"""Coordinates in which the joint pseudo-likelihood of a random field is a sum of generalised linear models.

Node i of a field has, given the others, ``log Pr(x_i = a | x_-i) = <phi_i(a), m_i(x)> + constant``, with
``m_i(x) = sum over scopes I that hold i of theta_I contracted with the features of the others in I``. The features of
a variable with k states are k - 1 contrasts, orthogonal and with a mean square of 1 over the states, for two states
the spin -1, +1. They are rounded to integers, so that sums of them are exact whatever the order of the additions.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Scope = tuple[int, ...]

_CONTRAST_SCALE = 16  # contrasts of more than two states are rounded to multiples of 1/16, which stay independent


def helmert(k: int) -> np.ndarray:
    """Helmert contrasts H of k states, scaled so that H^T H = k I and H^T 1 = 0; for k = 2 the codes -1, +1.

    Each column has mean 0 and variance 1 under the uniform distribution.

    Returns
    -------
    ndarray of shape (k, k - 1)

    Examples
    --------
    >>> helmert(2).ravel()
    array([-1.,  1.])
    >>> helmert(3).round(3)
    array([[-1.225, -0.707],
           [ 1.225, -0.707],
           [ 0.   ,  1.414]])
    """
    columns = np.zeros((k, k - 1))
    for j in range(1, k):
        columns[:j, j - 1] = -1.0
        columns[j, j - 1] = j
        columns[:, j - 1] *= math.sqrt(k / (j * (j + 1)))
    return columns


def contrasts(cardinality: int) -> np.ndarray:
    """Helmert contrasts of a variable, times `_CONTRAST_SCALE` and rounded: integers of shape (k - 1, k).

    Examples
    --------
    >>> contrasts(2), contrasts(3)
    (array([[-16,  16]]), array([[-20,  20,   0],
           [-11, -11,  23]]))
    """
    return np.rint(_CONTRAST_SCALE * helmert(cardinality).T).astype(np.int64)


@dataclass(frozen=True, eq=False)
class FieldDesign:
    """Which parameters a field has, and where they enter the conditionals of the nodes.

    Parameters
    ----------
    cardinalities : sequence of int
    scopes : sequence of tuples of int
        Increasing positions of variables, each scope once. Scopes of more than two variables need binary variables.

    Attributes
    ----------
    scale : int
        F: an integer feature is F times the feature; 1 where all variables are binary.
    starts : ndarray of int, shape (n_scopes + 1,)
        The parameters of scope c are ``starts[c] : starts[c + 1]``, of shape (k_i - 1, ...) in C order.
    feature_scopes : tuple of tuples
        Of one feature block each: () for the constant.
    entries : tuple of three ndarrays of int
        Parameter, feature and node coordinate of each place where a parameter enters with coefficient 1.
    """

    cardinalities: tuple[int, ...]
    scopes: tuple[Scope, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cardinalities", tuple(int(k) for k in self.cardinalities))
        object.__setattr__(self, "scopes", tuple(tuple(int(i) for i in scope) for scope in self.scopes))
        if not self.binary and max(map(len, self.scopes), default=0) > 2:
            raise ValueError("interactions of more than two variables need binary variables")

    @property
    def n_variables(self) -> int:
        return len(self.cardinalities)

    @cached_property
    def binary(self) -> bool:
        return all(k == 2 for k in self.cardinalities)

    @property
    def scale(self) -> int:
        return 1 if self.binary else _CONTRAST_SCALE

    @cached_property
    def features(self) -> tuple[np.ndarray, ...]:
        """Integer contrasts of each variable, shape (k - 1, k)."""
        if self.binary:
            return (np.array([[-1, 1]]),) * self.n_variables
        made = {k: contrasts(k) for k in set(self.cardinalities)}
        return tuple(made[k] for k in self.cardinalities)

    @cached_property
    def largest_squares(self) -> np.ndarray:
        """Largest squared norm of an integer feature vector of each variable, shape (n_variables,)."""
        return np.array([int((phi**2).sum(axis=0).max()) for phi in self.features], dtype=np.int64)

    @cached_property
    def starts(self) -> np.ndarray:
        sizes = [math.prod(self.cardinalities[i] - 1 for i in scope) for scope in self.scopes]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)

    @property
    def n_parameters(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def node_starts(self) -> np.ndarray:
        """First coordinate of each node; its number of coordinates is k - 1."""
        return np.concatenate([[0], np.cumsum([k - 1 for k in self.cardinalities])]).astype(np.int64)

    @cached_property
    def feature_scopes(self) -> tuple[Scope, ...]:
        used = {scope[:axis] + scope[axis + 1 :] for scope in self.scopes for axis in range(len(scope))}
        return tuple(sorted(used, key=lambda J: (len(J), J)))

    @cached_property
    def feature_starts(self) -> dict[Scope, int]:
        starts, total = {}, 0
        for J in self.feature_scopes:
            starts[J] = total
            total += math.prod(self.cardinalities[j] - 1 for j in J)
        starts[(-1,)] = total
        return starts

    @property
    def n_features(self) -> int:
        return self.feature_starts[(-1,)]

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parameters, rows, columns = [], [], []
        for scope, start, stop in zip(self.scopes, self.starts[:-1], self.starts[1:], strict=True):
            index = np.arange(start, stop).reshape([self.cardinalities[i] - 1 for i in scope])
            for axis, i in enumerate(scope):
                first = self.feature_starts[scope[:axis] + scope[axis + 1 :]]
                own = self.cardinalities[i] - 1
                others = index.size // own
                parameters.append(np.moveaxis(index, axis, 0).ravel())
                rows.append(np.tile(np.arange(first, first + others), own))
                columns.append(np.repeat(np.arange(self.node_starts[i], self.node_starts[i] + own), others))
        return tuple(np.concatenate(part) if part else np.empty(0, np.int64) for part in (parameters, rows, columns))  # type: ignore[return-value]

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """Coefficient of each feature for each node coordinate, shape (n_features, node_starts[-1]), dtype of theta."""
        parameter, row, column = self.entries
        placed = np.zeros((self.n_features, self.node_starts[-1]), dtype=theta.dtype)
        placed[row, column] = theta[parameter]
        return placed

    def gathered(self, matrix: np.ndarray) -> np.ndarray:
        """The adjoint of `coefficients`: the sum over the places of each parameter, shape (n_parameters,)."""
        parameter, row, column = self.entries
        total = np.zeros(self.n_parameters, dtype=matrix.dtype)
        np.add.at(total, parameter, matrix[row, column])
        return total

    @cached_property
    def norm_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Integers N, shape (p, p), and d, shape (p,), that bound squared gradients: ``|G|**2 <= s N s + d a``.

        A record's gradient has the block ``sum over i in I of R_i (x) Phi_(I without i)`` for scope I, with R_i its
        residual and Phi its features. With ``s_i = <R_i, Phi_i>`` and ``a_i = |R_i|**2`` two terms of the sum have the
        product ``s_i s_j`` (times 1, the square of a spin, for each further variable), a term with itself
        ``a_i |Phi_(I without i)|**2``, for which d takes the largest over the states.
        """
        p = self.n_variables
        pairs = np.zeros((p, p), dtype=np.int64)
        own = np.zeros(p, dtype=np.int64)
        squares = self.largest_squares
        for scope in self.scopes:
            for i in scope:
                # The constant is F, and more than two variables are spins.
                own[i] += self.scale**2 if len(scope) == 1 else math.prod(int(squares[j]) for j in scope if j != i)
            for i, j in itertools.permutations(scope, 2):
                pairs[i, j] += 1
        return pairs, own

    @cached_property
    def reference_norm(self) -> float:
        """Norm of a record's gradient at theta = 0, where no record has a larger one by much."""
        pairs, own = self.norm_weights
        squares = self.largest_squares
        return math.sqrt(float(squares @ pairs @ squares + own @ squares)) / self.scale**2
