"""Split of a log-linear parameter vector into interactions and main effects."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.inference.cliques import Cliques


class InteractionSplit:
    """Linear maps between tables and their variables, whose index arrays are made once.

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
        degree = np.zeros(len(cliques.variables))
        for scope in cliques.indices:
            degree[list(scope)] += 1

        # A slot is a state of an axis of a table: the margins of all tables, one after the other. Each cell is in one
        # slot per axis of its table; cells of tables with fewer axes than others are in an empty last slot instead.
        n_axes = max(len(shape) for shape in cliques.shapes)
        starts, axes, states = [], [], []
        n_slots, places = 0, np.full((n_axes, cliques.n_cells), -1)
        for part, scope, shape in zip(cliques.slices, cliques.indices, cliques.shapes, strict=True):
            grid = np.indices(shape).reshape(len(shape), -1)
            for axis, (i, size) in enumerate(zip(scope, shape, strict=True)):
                places[axis, part] = n_slots + grid[axis]
                starts.append(n_slots)
                axes += [(size, grid.shape[1] // size, 1 - 1 / len(scope), degree[i])] * size
                states.append(first[i] + np.arange(size))
                n_slots += size
        self._n_slots = n_slots
        self._places = list(np.where(places < 0, n_slots, places))
        self._axis_starts, self._slot_state = np.array(starts), np.concatenate(states)
        self._axis = np.repeat(np.arange(len(starts)), [len(part) for part in states])
        # Of each slot: the size of its axis, the cells in it, the number of tables that hold its variable. A
        # table's grand mean is subtracted once per axis and should be added back: (k - 1)/k of it from each of k axes.
        self._axis_size, self._others, self._excess, self._degree = np.array(axes, dtype=np.float64).T.copy()

    @property
    def n_states(self) -> int:
        """States of all variables that are in some scope."""
        return len(self.node_of_state)

    def interaction(self, theta: np.ndarray) -> np.ndarray:
        """Each table less its grand mean and centred main effects; an orthogonal projection, so self-adjoint.

        Shape (n_cells,) to (n_cells,).
        """
        means, grand = self._means(theta)
        return theta - self._to_cells(means - self._excess * grand)

    def main_effect(self, theta: np.ndarray) -> np.ndarray:
        """Centred main effects of all variables, shape (n_cells,) to (n_states,)."""
        means, grand = self._means(theta)
        return np.bincount(self._slot_state, means - grand, self.n_states)

    def main_effect_adjoint(self, effects: np.ndarray) -> np.ndarray:
        """Adjoint of `main_effect`, shape (n_states,) to (n_cells,)."""
        return self._to_cells(self._centred(effects)[self._slot_state] / self._others)

    def decompose(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute `interaction` and `main_effect` for the price of one."""
        means, grand = self._means(theta)
        main = np.bincount(self._slot_state, means - grand, self.n_states)
        return theta - self._to_cells(means - self._excess * grand), main

    def decompose_adjoint(self, table: np.ndarray, effects: np.ndarray) -> np.ndarray:
        """``interaction(table) + main_effect_adjoint(effects)`` for the price of one, shape (n_cells,)."""
        means, grand = self._means(table)
        spread = self._centred(effects)[self._slot_state] / self._others
        return table + self._to_cells(spread - means + self._excess * grand)

    def node_marginals(self, mu: np.ndarray) -> np.ndarray:
        """Marginals of the variables from consistent marginals of the tables, (n_cells,) to (n_states,)."""
        return np.bincount(self._slot_state, self._slot_sums(mu) / self._degree, self.n_states)

    def spread_to_cells(self, per_state: np.ndarray) -> np.ndarray:
        """Each cell's sum over its variables of a value per state, divided by the variable's degree."""
        return self._to_cells(per_state[self._slot_state] / self._degree)

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
        # All cells of a slot are of one table and have its variance, so the sum of variances is that of the margin.
        weight = 1.0 / self._slot_sums(cell_variance)
        precision = np.bincount(self._slot_state, weight, self.n_states)
        mean = np.bincount(self._slot_state, weight * self._slot_sums(counts), self.n_states) / precision
        return mean, 1.0 / precision

    def _slot_sums(self, per_cell: np.ndarray) -> np.ndarray:
        """Sum over the cells of each slot, shape (n_slots,)."""
        sums = np.bincount(self._places[0], per_cell, self._n_slots + 1)
        for places in self._places[1:]:
            sums += np.bincount(places, per_cell, self._n_slots + 1)
        return sums[:-1]

    def _to_cells(self, per_slot: np.ndarray) -> np.ndarray:
        """Sum over the slots of each cell, shape (n_cells,)."""
        padded = np.append(per_slot, 0.0)
        cells = padded[self._places[0]]
        for places in self._places[1:]:
            cells += padded[places]
        return cells

    def _means(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each slot the mean of its cells, and the grand mean of its table."""
        means = self._slot_sums(theta) / self._others
        return means, np.add.reduceat(means, self._axis_starts)[self._axis] / self._axis_size

    def _centred(self, per_state: np.ndarray) -> np.ndarray:
        means = np.add.reduceat(per_state, self._state_starts)
        return per_state - means[self.node_of_state] / self._cardinality


def free_share(shape: tuple[int, ...]) -> float:
    """Free directions of a table's interaction over its cells; of one variable, those of its main effect."""
    cells, margins = math.prod(shape), sum(size - 1 for size in shape)
    return (cells - 1 - (margins if len(shape) > 1 else 0)) / cells
