"""Discrete models in orthonormal contrasts: parities and centred interactions as one family of features."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgmpy_dp.learning.analysis_of_variance import helmert


def all_states(cardinalities: Iterable[int]) -> np.ndarray:
    """Codes of all joint states, shape (prod k_i, p), the last variable fastest."""
    shape = tuple(cardinalities)
    return np.indices(shape, dtype=np.uint8).reshape(len(shape), -1).T


@dataclass(frozen=True)
class Contrasts:
    """The effects of a model: one block of parameters for each set of variables in `scopes`.

    With the contrasts x_i = H_i[code_i] of shape (k_i - 1,), the features of scope I are the entries of the outer
    product of x_i, i in I, in C order, and Pr(x) is proportional to exp(sum_I theta_I . features_I(x)). With two
    states everywhere the feature of I is the parity prod_{i in I} z_i. Under the uniform distribution all features
    are uncorrelated and of variance 1.

    Parameters
    ----------
    cardinalities : tuple of int
        States of each variable.
    scopes : tuple of tuple of int
        Distinct non-empty sets of positions, each in increasing order, of variables with two states or more.
    """

    cardinalities: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]

    @cached_property
    def bases(self) -> tuple[np.ndarray, ...]:
        """The contrasts of each variable."""
        return tuple(helmert(k) for k in self.cardinalities)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Parameters of each scope."""
        return np.array([math.prod(self.cardinalities[i] - 1 for i in scope) for scope in self.scopes], dtype=np.int64)

    @cached_property
    def starts(self) -> np.ndarray:
        """The place where each scope's block begins in the flat vector."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""
        return int(self.sizes.sum())

    @cached_property
    def is_interaction(self) -> np.ndarray:
        """Whether each scope has two variables or more."""
        return np.array([len(scope) > 1 for scope in self.scopes], dtype=bool)

    @cached_property
    def first_row(self) -> np.ndarray:
        """The first row of each variable's contrasts when those of all variables are stacked, and their number last."""
        return np.concatenate([[0], np.cumsum(np.array(self.cardinalities, dtype=np.int64) - 1)])

    @cached_property
    def single_entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Main effects: places in the flat vector, and rows among the stacked contrasts."""
        order = np.array([len(scope) for scope in self.scopes], dtype=np.int64)
        variable = np.array([scope[0] for scope in self.scopes if len(scope) == 1], dtype=np.int64)
        within = _within(self.sizes[order == 1])
        return np.flatnonzero(self.spread(order == 1)), np.repeat(
            self.first_row[variable], self.sizes[order == 1]
        ) + within

    @cached_property
    def pair_entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Interactions of pairs: places in the flat vector, rows and columns among the stacked contrasts."""
        order = np.array([len(scope) for scope in self.scopes], dtype=np.int64)
        ends = np.array([scope for scope in self.scopes if len(scope) == 2], dtype=np.int64).reshape(-1, 2)
        sizes = self.sizes[order == 2]
        within, width = _within(sizes), np.repeat(np.diff(self.first_row)[ends[:, 1]], sizes)
        rows = np.repeat(self.first_row[ends[:, 0]], sizes) + within // width
        columns = np.repeat(self.first_row[ends[:, 1]], sizes) + within % width
        return np.flatnonzero(self.spread(order == 2)), rows, columns

    def norms(self, flat: np.ndarray) -> np.ndarray:
        """Euclidean norm of each block; it does not depend on the choice of contrasts."""
        if not len(flat):
            return np.zeros(len(self.scopes))
        return np.sqrt(np.add.reduceat(flat * flat, self.starts))

    def spread(self, per_scope: np.ndarray) -> np.ndarray:
        """A flat vector that repeats one number per scope over its block."""
        return np.repeat(per_scope, self.sizes)

    def block(self, flat: np.ndarray, scope: int) -> np.ndarray:
        """The block of one scope as an array with one axis per variable."""
        start = self.starts[scope]
        shape = tuple(self.cardinalities[i] - 1 for i in self.scopes[scope])
        return flat[start : start + self.sizes[scope]].reshape(shape)

    def restricted(self, keep: np.ndarray) -> tuple[Contrasts, np.ndarray]:
        """The effects with the scopes where `keep` is true, and which entries of the flat vector they are."""
        chosen = tuple(itertools.compress(self.scopes, keep))
        return Contrasts(self.cardinalities, chosen), np.flatnonzero(self.spread(np.asarray(keep, dtype=bool)))

    def features(self, scope: tuple[int, ...], codes: np.ndarray) -> np.ndarray:
        """Features of one scope, shape (n, block size), of records of shape (n, p)."""
        result = np.ones((len(codes), 1))
        for i in scope:
            factor = self.bases[i][codes[:, i]]
            result = (result[:, :, None] * factor[:, None, :]).reshape(len(codes), -1)
        return result

    def design(self, codes: np.ndarray) -> np.ndarray:
        """All features of records, shape (n, n_parameters)."""
        columns = [self.features(scope, codes) for scope in self.scopes]
        return np.concatenate(columns, axis=1) if columns else np.empty((len(codes), 0))

    def table(self, flat: np.ndarray, scope: int) -> np.ndarray:
        """A block as a table over the states, H_i theta H_j^T for two variables: its margins are all zero."""
        table = self.block(flat, scope)
        for axis, i in enumerate(self.scopes[scope]):
            table = np.moveaxis(np.tensordot(self.bases[i], table, axes=(1, axis)), 0, axis)
        return table

    def mean_features(self, table: np.ndarray, scope: tuple[int, ...]) -> np.ndarray:
        """Mean features of a scope, flat, from its table of means of the outer product of k_i e_a - 1.

        The contrasts are orthogonal to constants: the margins of the table drop out.
        """
        for axis, i in enumerate(scope):
            table = np.moveaxis(np.tensordot(self.bases[i] / self.cardinalities[i], table, axes=(0, axis)), 0, axis)
        return table.ravel()


def _within(sizes: np.ndarray) -> np.ndarray:
    """0 .. size - 1 for each block, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
