"""Exact mean features of a discrete model, by enumeration or on a junction tree; `persistent_gibbs` has estimates."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from pgmpy_dp.fields.contrasts import Contrasts, all_states
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.sampling import forward_sample

_GROUP = 16
"""Joint states of the variables that one matrix product transforms together."""


class Enumeration:
    """Mean features by a sum over all joint states.

    Parameters over the states and back is a product of one small matrix per variable, [1 | H_i], applied along its axis
    (for binary variables the fast Walsh-Hadamard transform): no matrix of states by features is formed.

    Examples
    --------
    >>> mean, log_partition = Enumeration(Contrasts((2,), ((0,),))).moments(np.array([0.5]))
    >>> bool(np.isclose(mean[0], np.tanh(0.5))), bool(np.isclose(log_partition, np.log(2 * np.cosh(0.5))))
    (True, True)
    """

    name = "enumeration"

    def __init__(self, effects: Contrasts) -> None:
        self._n_states = math.prod(effects.cardinalities)
        self._forward: list[np.ndarray] = []
        for basis in effects.bases:
            matrix = np.column_stack([np.ones(len(basis)), basis])
            # A few variables at a time, or each pass over the states would do next to nothing.
            if self._forward and len(self._forward[-1]) * len(matrix) <= _GROUP:
                self._forward[-1] = np.kron(self._forward[-1], matrix)
            else:
                self._forward.append(matrix)
        self._backward = [np.ascontiguousarray(matrix.T) for matrix in self._forward]
        stride = [math.prod(effects.cardinalities[i + 1 :]) for i in range(len(effects.cardinalities))]
        places = []
        for scope in effects.scopes:
            place = np.zeros(1, dtype=np.int64)
            for i in scope:
                place = (place[:, None] + stride[i] * np.arange(1, effects.cardinalities[i])).ravel()
            places.append(place)
        self._places = np.concatenate(places) if places else np.empty(0, dtype=np.int64)

    def moments(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Mean features, shape (n_parameters,), and the log-partition function."""
        coefficients = np.zeros(self._n_states)
        coefficients[self._places] = theta
        potential = _transformed(coefficients, self._forward)
        log_partition = float(logsumexp(potential))
        means = _transformed(np.exp(potential - log_partition), self._backward)
        return means[self._places], log_partition


def _transformed(values: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """Apply a matrix along each axis of a tensor that is stored flat."""
    for matrix in matrices:
        # The first axis comes last; after all axes the order is the old one.
        values = (matrix @ values.reshape(len(matrix), -1)).T.ravel()
    return values


class JunctionTreeMoments:
    """Mean features by sum-product on a junction tree of the effects' graph."""

    name = "junction tree"

    def __init__(self, effects: Contrasts, memory_limit: int) -> None:
        cliques, homes = _tables(effects)
        self._engine = SumProduct(cliques, memory_limit=memory_limit)
        rows, columns, values = [], [], []
        for scope, home, start in zip(effects.scopes, homes, effects.starts, strict=True):
            cells = all_states(cliques.shapes[home])
            places = cliques.indices[home]
            codes = np.zeros((len(cells), len(effects.cardinalities)), dtype=np.uint8)
            codes[:, places] = cells
            block = effects.features(scope, codes)
            row, column = np.indices(block.shape)
            rows.append((row + cliques.slices[home].start).ravel())
            columns.append((column + start).ravel())
            values.append(block.ravel())
        shape = (cliques.n_cells, effects.n_parameters)
        if values:
            index = (np.concatenate(rows), np.concatenate(columns))
            self._to_cells = csr_array((np.concatenate(values), index), shape=shape)
        else:
            self._to_cells = csr_array(shape)
        self._to_features = csr_array(self._to_cells.T)

    def moments(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Mean features, shape (n_parameters,), and the log-partition function."""
        marginals, log_partition = self._engine.calibrate(self._to_cells @ theta)
        return self._to_features @ marginals, log_partition

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """n independent records of state numbers, shape (n, p)."""
        self._engine.calibrate(self._to_cells @ theta)
        return forward_sample(self._engine, n, rng)


def _tables(effects: Contrasts) -> tuple[Cliques, list[int]]:
    """One table for each maximal scope, and the table that each scope lives in."""
    by_variable: dict[int, list[int]] = {}
    tables: list[tuple[int, ...]] = []
    home_of: dict[tuple[int, ...], int] = {}
    for scope in sorted(effects.scopes, key=lambda scope: -len(scope)):
        host = next((t for t in by_variable.get(scope[0], ()) if set(scope) <= set(tables[t])), None)
        if host is None:
            host = len(tables)
            tables.append(scope)
            for i in scope:
                by_variable.setdefault(i, []).append(host)
        home_of[scope] = host
    cliques = Cliques(tuple(range(len(effects.cardinalities))), effects.cardinalities, tuple(tables))
    return cliques, [home_of[scope] for scope in effects.scopes]


def elimination_cells(effects: Contrasts, limit: int) -> int:
    """Cells of the cliques when variables are eliminated by minimum degree; stops once they exceed `limit`.

    Networkx's heuristics, which the junction tree itself uses, take minutes on large graphs that have no small tree;
    this looks no further than the limit.
    """
    neighbours: dict[int, set[int]] = {i: set() for i in range(len(effects.cardinalities))}
    for scope in effects.scopes:
        for i, j in itertools.combinations(scope, 2):
            neighbours[i].add(j)
            neighbours[j].add(i)
    total = 0
    while neighbours and total <= limit:
        node = min(neighbours, key=lambda i: (len(neighbours[i]), i))
        adjacent = neighbours.pop(node)
        total += math.prod(effects.cardinalities[i] for i in adjacent) * effects.cardinalities[node]
        for i in adjacent:
            neighbours[i] |= adjacent
            neighbours[i] -= {i, node}
    return total
