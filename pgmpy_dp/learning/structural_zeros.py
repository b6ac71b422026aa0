"""Models in which some combinations of states are impossible, for reasons that are public.

A *box* gives some variables a set of states each, which they cannot have together. A model that obeys boxes is a
distribution conditioned on the records outside of all of them: multiplied by tables of 0 and 1, and normalised. A
relation (:mod:`pgmpy_dp.schema.orders`) among the boxes is such a table, in which other weights may stand beside 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import (
    Inference,
    InferenceEngine,
    inference_of,
    make_engine,
    require_inference,
)
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.level_engine import NO_LEVELS, LevelEngine, Levels, leaf_tables
from pgmpy_dp.schema.orders import Relation

Box = Mapping[Hashable, frozenset[int]]

_BARELY = -1e5
"""Log-potential of a zero of the model where every possible record has one: far below any other potential."""


def with_zeros(cliques: Cliques, boxes: Sequence[Box]) -> Cliques:
    """The layout, with one more table for each box whose variables no table has all of.

    Combinatorial: nothing of the size of a table is allocated.

    Parameters
    ----------
    cliques : Cliques
    boxes : sequence of mapping of variable to set of int
        Numbers of states.

    Examples
    --------
    >>> cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("c",)))
    >>> with_zeros(cliques, [{"b": {0}, "c": {1}}, {"b": {0}}]).scopes
    (('a', 'b'), ('c',), ('b', 'c'))
    """
    held = [set(scope) for scope in cliques.scopes]
    added: list[tuple[Hashable, ...]] = []
    for box in sorted(boxes, key=len, reverse=True):
        if not any(set(box) <= scope for scope in held):
            held.append(set(box))
            added.append(tuple(name for name in cliques.variables if name in box))
    return replace(cliques, scopes=(*cliques.scopes, *added)) if added else cliques


def forbidden_cells(cliques: Cliques, boxes: Sequence[Box]) -> np.ndarray:
    """The cells of the tables of `with_zeros`, as booleans, that lie in a box whose variables their table has all of.

    Returns
    -------
    ndarray of shape (n_cells,), bool
    """
    return np.isneginf(log_weights(cliques, boxes))


def log_weights(cliques: Cliques, boxes: Sequence[Box], theta: np.ndarray | None = None) -> np.ndarray:
    """Log-potentials that condition a model over `with_zeros` on what boxes leave, to be added to its parameters.

    Parameters
    ----------
    cliques : Cliques
    boxes : sequence of mapping of variable to set of int
    theta : ndarray of shape (n_cells,), optional
        The parameters. Where they have the zeros of a relation already, its other weights are among them too.

    Returns
    -------
    ndarray of shape (n_cells,)
        -inf where a cell is impossible. Of a relation, weights are in the first table that has its variables.
    """
    flat, weighed = np.zeros(cliques.n_cells), set[int]()
    theta_tables = cliques.split(flat if theta is None else theta)
    for scope, before, table in zip(cliques.scopes, theta_tables, cliques.split(flat), strict=True):
        for place, box in enumerate(boxes):
            if set(box) <= set(scope) and isinstance(box, Relation):
                weights = np.broadcast_to(box.log_weights_in(scope), table.shape)
                impossible = np.isneginf(weights)
                known = place in weighed or (theta is not None and np.isneginf(before[impossible]).all())
                table += np.where(impossible, -np.inf, 0.0) if known else weights
                weighed.add(place)
            elif set(box) <= set(scope):
                axes = (sorted(box.get(name, range(size))) for name, size in zip(scope, table.shape, strict=True))
                table[np.ix_(*axes)] = -np.inf
    return flat


class ObeyingEngine:
    """An inference engine of the models over some tables that obey boxes: what fits under rules run on.

    Parameters and marginals are of the tables alone, as if there were no rules: those of cells that are impossible have
    no effect, and their marginals are 0. Tables that only the boxes need are none of its callers' business.

    Parameters
    ----------
    engine : SumProduct or LoopyBeliefPropagation
        Over ``with_zeros(cliques, boxes)``.
    cliques : Cliques
        The tables.
    boxes : sequence of mapping of variable to set of int

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    >>> engine = engine_within(cliques, [{"a": {0}, "b": {1}}])
    >>> engine.calibrate(np.zeros(4))[0].round(3)
    array([0.333, 0.667, 0.667, 0.333])
    """

    def __init__(self, engine: Any, cliques: Cliques, boxes: Sequence[Box]) -> None:
        self.engine, self.cliques = engine, cliques
        self._n, self._added = cliques.n_cells, np.zeros(engine.cliques.n_cells - cliques.n_cells)
        self._weights = log_weights(engine.cliques, boxes)

    def potentials(self, theta: np.ndarray) -> np.ndarray:
        """Log-potentials of the tables of the inner engine, -inf where a cell is impossible."""
        return self._weights + self._padded(theta)

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Marginals of the tables and the log-partition function of what is possible."""
        marginals, log_partition = self.engine.calibrate(self.potentials(theta))
        return marginals[..., : self._n], log_partition

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Directional derivative of the marginals at the last calibration."""
        return self.engine.derivative(self._padded(direction))[..., : self._n]

    def _padded(self, per_cell: np.ndarray) -> np.ndarray:
        """With cells of 0 for the added tables; of one vector, or of each row of a batch."""
        added = np.broadcast_to(self._added, (*per_cell.shape[:-1], len(self._added)))
        return np.concatenate([per_cell, added], axis=-1)

    def model(self, theta: np.ndarray, memory_limit: int) -> LogLinearModel:
        """The model with these parameters; it obeys."""
        return LogLinearModel(self.engine.cliques, self.potentials(theta), memory_limit, inference_of(self.engine))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def engine_within(
    cliques: Cliques,
    boxes: Sequence[Box],
    inference: Inference = "exact",
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    make: Callable[[Cliques], Any] | None = None,
    levels: Levels = NO_LEVELS,
) -> InferenceEngine:
    """The engine that a fit of these tables runs on: of models that obey the boxes, where there are any.

    Parameters
    ----------
    cliques : Cliques
        The tables that are learned from.
    boxes : sequence of mapping of variable to set of int
    inference, memory_limit
        See `pgmpy_dp.inference.exact_or_loopy.make_engine`.
    make : callable, optional
        Makes the engine of a layout in another way.
    levels : mapping of level to (variable, ndarray of int), optional
        The levels of variables that the tables name; see `pgmpy_dp.learning.level_engine`.

    Raises
    ------
    InferenceTooLarge
        If inference, with the tables of the boxes, would exceed `memory_limit`.
    """
    leaves = leaf_tables(cliques, levels)
    layout = with_zeros(leaves, boxes) if boxes else leaves
    engine = make_engine(layout, inference, memory_limit) if make is None else make(layout)
    engine = ObeyingEngine(engine, leaves, boxes) if boxes else engine
    return LevelEngine(engine, cliques, levels) if levels else engine


def obeying(model: LogLinearModel, boxes: Sequence[Box]) -> LogLinearModel:
    """The distribution of `model`, given that the record lies outside of all boxes.

    Parameters
    ----------
    model : LogLinearModel
        It may have structural zeros of its own.
    boxes : sequence of mapping of variable to set of int
        Numbers of states that cannot be together. Some record must lie outside of them all.

    Returns
    -------
    LogLinearModel
        Over `with_zeros` of the model's tables. What is impossible has probability 0, not a small number.

    Raises
    ------
    InferenceTooLarge
        If inference with the tables of the boxes would exceed the model's `memory_limit`, before they are allocated.

    Notes
    -----
    Where the model gives all possible records the probability 0, its own zeros are taken as the limit of a small
    number: the result is on the possible records that have the fewest of them. (Loopy inference cannot tell that, so
    there it is done wherever the model has zeros.)

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    >>> model = LogLinearModel(cliques, np.log([0.5, 0.5, 0.8, 0.2]))
    >>> obeying(model, [{"a": {0}, "b": {1}}]).marginal(["a", "b"]).round(3)
    array([[0.444, 0.   ],
           [0.444, 0.111]])
    """
    if not boxes:
        return model
    cliques = with_zeros(model.cliques, boxes)
    require_inference(cliques, model.inference, model.memory_limit)
    theta = np.concatenate([model.theta, np.zeros(cliques.n_cells - model.cliques.n_cells)])
    weights = log_weights(cliques, boxes, theta)
    restricted = replace(model, cliques=cliques, theta=theta + weights)
    if np.isneginf(model.theta).any() and (model.inference != "exact" or not restricted.is_possible):
        restricted = replace(restricted, theta=np.maximum(theta, _BARELY) + weights)
    return restricted
