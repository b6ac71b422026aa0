"""Split of a log-linear parameter vector into interactions and main effects."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pgmpy_dp.models.cliques import Cliques

__all__ = ["InteractionSplit"]


class InteractionSplit:
    """Linear maps between tables and their variables, as sparse matrices that are made once.

    In the overcomplete parametrisation many theta give the same model. What the model is made
    of is, for each table, its *interaction*: the table less its grand mean and the centred mean
    over each of its axes; and, for each variable, its *main effect*: the sum over the tables
    that hold it of their centred means along its axis.

    Parameters
    ----------
    cliques : Cliques
        The model.

    Attributes
    ----------
    node_of_state : ndarray of shape (n_states,)
        All states of all variables that are in some scope are numbered in the order of the variables; this
        says which of those variables (0 .. n_nodes - 1) a state belongs to.
    nodes : tuple of int
        Indices of the variables that are in some scope, in their order.
    n_nodes : int
        How many they are.
    """

    def __init__(self, cliques: Cliques) -> None:
        used = sorted({i for scope in cliques.indices for i in scope})
        cardinalities = [cliques.cardinalities[i] for i in used]
        first = dict(zip(used, np.cumsum([0, *cardinalities[:-1]]).tolist(), strict=True))
        self.nodes, self.n_nodes = tuple(used), len(used)
        self.node_of_state = np.repeat(np.arange(self.n_nodes), cardinalities)
        self._state_starts = np.array([first[i] for i in used])
        self._cardinality = np.repeat(cardinalities, cardinalities)
        n_states = int(sum(cardinalities))
        degree = np.zeros(len(cliques.variables))
        for scope in cliques.indices:
            degree[list(scope)] += 1

        slots, states, cells, others = [], [], [], []
        n_slots = 0
        for c, (scope, shape) in enumerate(zip(cliques.indices, cliques.shapes, strict=True)):
            grid = np.indices(shape).reshape(len(shape), -1)
            for axis, i in enumerate(scope):
                slots.append(n_slots + grid[axis])
                states.append(first[i] + grid[axis])
                cells.append(np.arange(cliques.slices[c].start, cliques.slices[c].stop))
                others.append(np.full(cliques.sizes[c], cliques.sizes[c] // shape[axis]))
                n_slots += shape[axis]
        slot, state, cell, other = (np.concatenate(parts) for parts in (slots, states, cells, others))
        d = cliques.n_cells
        # rows of slots: (table, axis, state); rows of states: (variable, state)
        self._slot_mean = sparse.csr_array((1.0 / other, (slot, cell)), shape=(n_slots, d))
        self._slot_cells = sparse.csr_array((np.ones(len(cell)), (cell, slot)), shape=(d, n_slots))
        self._state_mean = sparse.csr_array((1.0 / other, (state, cell)), shape=(n_states, d))
        self._state_mean_t = self._state_mean.T.tocsr()
        per_node = np.concatenate([np.full(k, degree[i]) for i, k in zip(used, cardinalities, strict=True)])
        self._node_margin = sparse.csr_array((1.0 / per_node[state], (state, cell)), shape=(n_states, d))
        self._node_margin_t = self._node_margin.T.tocsr()
        self._starts = np.array([part.start for part in cliques.slices])
        self._sizes = np.array(cliques.sizes)
        self._excess_axes = np.array([len(shape) - 1 for shape in cliques.shapes])
        self._state, self._cell, self._other = state, cell, other

    def interaction(self, theta: np.ndarray) -> np.ndarray:
        """Each table less its grand mean and centred main effects; an orthogonal projection, so self-adjoint.

        Shape (n_cells,) to (n_cells,).
        """
        means = np.add.reduceat(theta, self._starts) / self._sizes
        return theta - self._slot_cells @ (self._slot_mean @ theta) + np.repeat(self._excess_axes * means, self._sizes)

    def main_effect(self, theta: np.ndarray) -> np.ndarray:
        """Centred main effects of all variables, shape (n_cells,) to (n_states,)."""
        return self._centred(self._state_mean @ theta)

    def main_effect_adjoint(self, effects: np.ndarray) -> np.ndarray:
        """Adjoint of `main_effect`, shape (n_states,) to (n_cells,)."""
        return self._state_mean_t @ self._centred(effects)

    def node_marginals(self, mu: np.ndarray) -> np.ndarray:
        """Marginals of the variables from consistent marginals of the tables, (n_cells,) to (n_states,)."""
        return self._node_margin @ mu

    def spread_to_cells(self, per_state: np.ndarray) -> np.ndarray:
        """Each cell's sum over its variables of a value per state, divided by the variable's degree."""
        return self._node_margin_t @ per_state

    def combined_margins(self, counts: np.ndarray, cell_variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inverse-variance mean of the tables' margins over each variable, and its variance.

        A margin of a table whose cells have variance V, summed over k other cells, has variance V k.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,)
            Independent noisy counts.
        cell_variance : ndarray of shape (n_cells,)
            Variance of each.

        Returns
        -------
        mean, variance : ndarray of shape (n_states,)
        """
        weight = 1.0 / (self._other * cell_variance[self._cell])
        n_states = len(self.node_of_state)
        # Each (table, state) margin appears once per cell of it: the weight's sum counts it `other` times.
        precision = np.bincount(self._state, weight / self._other, n_states)
        mean = np.bincount(self._state, weight * counts[self._cell], n_states) / precision
        return mean, 1.0 / precision

    def _centred(self, per_state: np.ndarray) -> np.ndarray:
        means = np.add.reduceat(per_state, self._state_starts)
        return per_state - means[self.node_of_state] / self._cardinality
