"""Mean features of a discrete model from Gibbs chains that are kept while its parameters move.

Persistent chains (Younes, 1988; Tieleman, 2008) make stochastic approximation of a maximum-likelihood fit cheap: each
step moves the chains by one sweep and the parameters by little, so the chains stay close to the model.

All chains advance together, variables as rows, in single precision: features are sums of a few thousand products of
small numbers, and the Monte Carlo error is far above the rounding.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from pgmpy_dp.fields.contrasts import Contrasts

_BLOCK = 32
"""Variables whose fields are computed by one matrix product; within a block they are corrected one after the other."""

_SPARSE_BELOW = 0.1
"""Share of non-zero interactions below which sparse products are quicker than dense ones."""


class Chains(Protocol):
    """Chains of a model with some effects."""

    def moments(self, theta: np.ndarray) -> np.ndarray:
        """Advance all chains by one sweep at `theta`; mean features over the chains, shape (n_parameters,)."""

    def means(self) -> np.ndarray:
        """Mean features over the chains as they stand."""

    def assign(self, codes: np.ndarray) -> None:
        """Put the chains into states of shape (n, p); there may be more or fewer of them than before."""

    def response(self, direction: np.ndarray) -> np.ndarray:
        """Covariance of the features over the chains, as they stand, times `direction`."""


def make_chains(effects: Contrasts, n_chains: int, rng: np.random.Generator) -> Chains:
    """The chains for effects of at most two variables, or for parities of any order.

    Raises
    ------
    ValueError
        For an interaction of three variables or more of which one has more than two states.
    """
    if all(len(scope) <= 2 for scope in effects.scopes):
        return PairwiseChains(effects, n_chains, rng)
    if any(k != 2 for k in effects.cardinalities):
        raise ValueError("Gibbs chains take interactions of three variables or more between binary variables only")
    return ParityChains(effects, n_chains, rng)


class PairwiseChains:
    """Chains of a model with main effects and interactions of pairs.

    Parameters
    ----------
    effects : Contrasts
        Scopes of one or two variables.
    n_chains : int
    rng : numpy.random.Generator
    """

    def __init__(self, effects: Contrasts, n_chains: int, rng: np.random.Generator) -> None:
        self._rng = rng
        first = effects.first_row
        self._first = first
        self._bases = [basis.astype(np.float32) for basis in effects.bases]
        self._single, self._single_row = effects.single_entries
        self._pair, self._row, self._column = effects.pair_entries
        n_rows = int(first[-1])
        self._sparse = 2 * len(self._row) < _SPARSE_BELOW * n_rows * n_rows
        self._state = np.empty((n_rows, n_chains), dtype=np.float32)
        for i, basis in enumerate(self._bases):
            self._state[first[i] : first[i + 1]] = basis[rng.integers(len(basis), size=n_chains)].T

    def moments(self, theta: np.ndarray) -> np.ndarray:
        self._sweep(*self._unpack(theta))
        return self.means()

    def means(self) -> np.ndarray:
        return self._means(self._state)

    def assign(self, codes: np.ndarray) -> None:
        rows = [basis[codes[:, i]].T for i, basis in enumerate(self._bases)]
        self._state = np.ascontiguousarray(np.concatenate(rows))

    def response(self, direction: np.ndarray) -> np.ndarray:
        fields, weights = self._unpack(direction)
        inner = (self._state * (0.5 * (weights @ self._state) + fields[:, None])).sum(axis=0)
        return self._means(self._state * (inner - inner.mean()))

    def _means(self, left: np.ndarray) -> np.ndarray:
        """Means over the chains of left_r and of left_r state_s, in the places of the flat vector."""
        n_chains = left.shape[1]
        result = np.empty(len(self._single) + len(self._pair))
        result[self._single] = left.mean(axis=1, dtype=np.float64)[self._single_row]
        if self._sparse:
            for part in range(0, len(self._pair), 256):  # a few megabytes at a time
                rows, columns = self._row[part : part + 256], self._column[part : part + 256]
                result[self._pair[part : part + 256]] = np.einsum("rc,rc->r", left[rows], self._state[columns])
            result[self._pair] /= n_chains
        else:
            result[self._pair] = (left @ self._state.T)[self._row, self._column] / n_chains
        return result

    def _unpack(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | csr_array]:
        """Fields per row and the symmetric matrix of interactions."""
        n_rows = len(self._state)
        fields = np.zeros(n_rows, dtype=np.float32)
        fields[self._single_row] = theta[self._single]
        values = theta[self._pair].astype(np.float32)
        if self._sparse:
            rows, columns = np.concatenate([self._row, self._column]), np.concatenate([self._column, self._row])
            return fields, csr_array((np.concatenate([values, values]), (rows, columns)), shape=(n_rows, n_rows))
        weights = np.zeros((n_rows, n_rows), dtype=np.float32)
        weights[self._row, self._column] = values
        weights[self._column, self._row] = values
        return fields, weights

    def _sweep(self, fields: np.ndarray, weights: np.ndarray | csr_array) -> None:
        """Draw each variable in turn given all others."""
        state, first = self._state, self._first
        for begin in range(0, len(self._bases), _BLOCK):
            end = min(begin + _BLOCK, len(self._bases))
            rows = slice(int(first[begin]), int(first[end]))
            strip = weights[rows]
            field = strip @ state
            field += fields[rows, None]
            within = strip[:, rows]
            within = within.toarray() if isinstance(within, csr_array) else within
            change = np.zeros_like(field)
            for i in range(begin, end):
                at = slice(int(first[i] - first[begin]), int(first[i + 1] - first[begin]))
                here = field[at]
                if within[at, : at.start].any():
                    here = here + within[at, : at.start] @ change[: at.start]
                if len(self._bases[i]) == 2:
                    draw = _draw_sign(here, self._rng.random(here.shape, dtype=np.float32))
                else:
                    draw = self._draw_state(i, here)
                old = state[first[i] : first[i + 1]]
                np.subtract(draw, old, out=change[at])
                old[:] = draw

    def _draw_state(self, i: int, field: np.ndarray) -> np.ndarray:
        """Contrasts of a state drawn from the distribution with potential H_i field, by the Gumbel-max trick."""
        basis = self._bases[i]
        uniform = self._rng.random((len(basis), field.shape[1]), dtype=np.float32)
        np.maximum(uniform, np.float32(2.0**-24), out=uniform)  # a multiple of 2^-24 below 1, and now above 0
        return basis[np.argmax(basis @ field - np.log(-np.log(uniform)), axis=0)].T


def _draw_sign(field: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """+1 with probability 1/(1 + exp(-2 field)), else -1."""
    return np.copysign(np.float32(1.0), np.tanh(field) + (1 - 2 * uniform))


class ParityChains:
    """Chains of a binary model with interactions of any order.

    Only interactions that are not 0 take part in the fields, so a sweep is cheap once the model is sparse.

    Parameters
    ----------
    effects : Contrasts
        Two states each.
    n_chains : int
    rng : numpy.random.Generator
    """

    def __init__(self, effects: Contrasts, n_chains: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._n_variables = len(effects.cardinalities)
        self._state = np.where(rng.random((self._n_variables, n_chains)) < 0.5, np.float32(-1), np.float32(1))
        orders = np.array([len(scope) for scope in effects.scopes])
        self._by_order = []
        for order in np.unique(orders):
            places = np.flatnonzero(orders == order)
            self._by_order.append((places, np.array([effects.scopes[s] for s in places])))

    def moments(self, theta: np.ndarray) -> np.ndarray:
        self._sweep(theta)
        return self.means()

    def means(self) -> np.ndarray:
        return self._means(None)

    def assign(self, codes: np.ndarray) -> None:
        self._state = np.ascontiguousarray((2.0 * codes.T - 1.0).astype(np.float32))

    def response(self, direction: np.ndarray) -> np.ndarray:
        inner = np.zeros(self._state.shape[1], dtype=np.float32)
        for places, scopes in self._by_order:
            for part in range(0, len(places), 256):
                values = direction[places[part : part + 256]].astype(np.float32)
                inner += values @ self._products(scopes[part : part + 256])
        return self._means(inner - inner.mean())

    def _products(self, scopes: np.ndarray) -> np.ndarray:
        product = self._state[scopes[:, 0]]
        for column in range(1, scopes.shape[1]):
            product = product * self._state[scopes[:, column]]
        return product

    def _means(self, weight: np.ndarray | None) -> np.ndarray:
        """Means over the chains of the parities, each chain times its weight."""
        result = np.empty(sum(len(places) for places, _ in self._by_order))
        for places, scopes in self._by_order:
            for part in range(0, len(places), 256):
                product = self._products(scopes[part : part + 256])
                total = product.sum(axis=1) if weight is None else product @ weight
                result[places[part : part + 256]] = total / self._state.shape[1]
        return result

    def _sweep(self, theta: np.ndarray) -> None:
        state = self._state
        terms: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(self._n_variables)]
        fields = np.zeros(self._n_variables, dtype=np.float32)
        for places, scopes in self._by_order:
            active = theta[places] != 0
            values, scopes = theta[places][active].astype(np.float32), scopes[active]
            if scopes.shape[1] == 1:
                fields[scopes[:, 0]] = values
                continue
            for i in range(self._n_variables):
                mine = scopes == i
                hit = mine.any(axis=1)
                if hit.any():
                    others = scopes[hit][~mine[hit]].reshape(-1, scopes.shape[1] - 1)
                    terms[i].append((values[hit], others))
        uniform = self._rng.random(state.shape, dtype=np.float32)
        for i in range(self._n_variables):
            field = np.full(state.shape[1], fields[i])
            for values, others in terms[i]:
                field += values @ self._products(others)
            state[i] = _draw_sign(field, uniform[i])
