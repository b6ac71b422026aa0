"""Tables of coarser levels of a variable (counties and states of tracts) in one log-linear model of the variable.

A level's state is a function of the variable's. So a potential of a county is one of each of its tracts, and the
marginals of counties are sums of tracts'. A model whose tables name levels is therefore an ordinary one of finest
tables; only what is learned, and with it the priors, is told level by level.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import inference_of
from pgmpy_dp.inference.log_linear import LogLinearModel

Levels = Mapping[Hashable, tuple[Hashable, np.ndarray]]
"""Of each level's name: its variable, and for each of the variable's states the level's state, shape (n_states,)."""

NO_LEVELS: Levels = MappingProxyType({})


def leaf_scope(scope: tuple[Hashable, ...], levels: Levels) -> tuple[Hashable, ...]:
    """The variables of a scope, in its order, where it may name levels of them.

    Examples
    --------
    >>> leaf_scope(("sex", "state"), {"state": ("tract", np.array([0, 0, 1]))})
    ('sex', 'tract')
    """
    return tuple(levels[name][0] if name in levels else name for name in scope)


def leaf_tables(cliques: Cliques, levels: Levels) -> Cliques:
    """The tables of the variables themselves that a model over tables of levels needs: none is part of another.

    Parameters
    ----------
    cliques : Cliques
        The tables, whose scopes may name levels.
    levels : mapping of level to (variable, ndarray of int)

    Returns
    -------
    Cliques
        `cliques` itself where there are no levels.

    Examples
    --------
    >>> cliques = Cliques(("tract", "state", "sex"), (3, 2, 2), (("state", "sex"), ("sex",), ("tract",)))
    >>> leaf_tables(cliques, {"state": ("tract", np.array([0, 0, 1]))}).scopes
    (('tract', 'sex'),)
    """
    if not levels:
        return cliques
    cardinality = dict(zip(cliques.variables, cliques.cardinalities, strict=True))
    cardinality |= {levels[name][0]: len(levels[name][1]) for name in cliques.variables if name in levels}
    variables = tuple(dict.fromkeys(leaf_scope(cliques.variables, levels)))
    scopes: list[tuple[Hashable, ...]] = []
    for scope in sorted((leaf_scope(scope, levels) for scope in cliques.scopes), key=len, reverse=True):
        if not any(set(scope) <= set(larger) for larger in scopes):
            scopes.append(scope)
    return Cliques(variables, tuple(cardinality[name] for name in variables), tuple(scopes))


def level_cells(scope: tuple[Hashable, ...], inside: tuple[Hashable, ...], cliques: Cliques, levels: Levels) -> Any:
    """The cell of a table in which each cell of a larger, finer one lies.

    Parameters
    ----------
    scope : tuple of hashable
        Variables and levels.
    inside : tuple of hashable
        The larger table's variables.
    cliques : Cliques
        Of the larger table, with `inside` among its variables.
    levels : mapping of level to (variable, ndarray of int)

    Returns
    -------
    ndarray of int, shape (cells of the larger table,)

    Examples
    --------
    >>> cliques = Cliques(("tract", "sex"), (3, 2), (("tract", "sex"),))
    >>> level_cells(("sex", "state"), ("tract", "sex"), cliques, {"state": ("tract", np.array([0, 0, 1]))})
    array([0, 2, 0, 2, 1, 3])
    """
    shape = tuple(cliques.cardinalities[cliques.position[name]] for name in inside)
    grid, flat = np.indices(shape, sparse=True), np.zeros((1,) * len(shape), dtype=np.int64)
    for name, variable in zip(scope, leaf_scope(scope, levels), strict=True):
        axis = inside.index(variable)
        states = np.asarray(levels[name][1])[grid[axis]] if name in levels else grid[axis]
        flat = flat * (int(np.max(levels[name][1])) + 1 if name in levels else shape[axis]) + states
    return np.broadcast_to(flat, shape).ravel()


def at_levels(tables: Iterable[np.ndarray], scopes: Iterable[tuple], levels: Levels) -> list[np.ndarray]:
    """Tables of variables, added up to scopes that name levels of them.

    Examples
    --------
    >>> at_levels([np.array([1.0, 2.0, 4.0])], [("state",)], {"state": ("tract", np.array([0, 0, 1]))})
    [array([3., 4.])]
    """
    added = []
    for table, scope in zip(tables, scopes, strict=True):
        for axis, name in enumerate(scope):
            if name in levels:
                places = np.asarray(levels[name][1])
                sums = np.zeros((places.max() + 1, *np.delete(table.shape, axis)))
                np.add.at(sums, places, np.moveaxis(table, axis, 0))
                table = np.moveaxis(sums, 0, axis)
        added.append(table)
    return added


class LevelEngine:
    """An inference engine whose tables may be of levels, around one of the variables' finest tables.

    Potentials of a coarse table go down to the finest by indexing, marginals come up by adding.

    Parameters
    ----------
    engine : SumProduct, LoopyBeliefPropagation or ObeyingEngine
        Over ``leaf_tables(cliques, levels)``.
    cliques : Cliques
        The tables, whose scopes may name levels.
    levels : mapping of level to (variable, ndarray of int)

    Examples
    --------
    >>> from pgmpy_dp.inference.belief_propagation import SumProduct
    >>> cliques = Cliques(("tract", "state"), (3, 2), (("state",), ("tract",)))
    >>> levels = {"state": ("tract", np.array([0, 0, 1]))}
    >>> engine = LevelEngine(SumProduct(leaf_tables(cliques, levels)), cliques, levels)
    >>> engine.calibrate(np.zeros(5))[0].round(3)
    array([0.667, 0.333, 0.333, 0.333, 0.333])
    """

    def __init__(self, engine: Any, cliques: Cliques, levels: Levels) -> None:
        from scipy.sparse import csr_array  # here, so that a saved model is asked without it

        self.within, self.engine, self.cliques = engine, getattr(engine, "engine", engine), cliques
        leaves = leaf_tables(cliques, levels)
        rows, columns = [], []
        for scope, part in zip(cliques.scopes, cliques.slices, strict=True):
            variables = set(leaf_scope(scope, levels))
            home = next(c for c, larger in enumerate(leaves.scopes) if variables <= set(larger))
            columns.append(level_cells(scope, leaves.scopes[home], leaves, levels) + part.start)
            rows.append(np.arange(leaves.slices[home].start, leaves.slices[home].stop))
        places = np.concatenate(rows), np.concatenate(columns)
        self._down = csr_array((np.ones(len(places[0])), places), shape=(leaves.n_cells, cliques.n_cells))

    def down(self, theta: np.ndarray) -> np.ndarray:
        """Potentials of the finest tables; of one vector, or of each row of a batch."""
        return (self._down @ theta.T).T

    def up(self, marginals: np.ndarray) -> np.ndarray:
        """Marginals of the tables from those of the finest; of one vector, or of each row of a batch."""
        return (self._down.T @ marginals.T).T

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Marginals of the tables and the log-partition function."""
        marginals, log_partition = self.within.calibrate(self.down(theta))
        return self.up(marginals), log_partition

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Directional derivative of the marginals at the last calibration."""
        return self.up(self.within.derivative(self.down(direction)))

    def sampling_errors(self, rng: np.random.Generator) -> np.ndarray:
        """Of a batch of vectors: draws of the marginals' sampling errors at the last calibration, in rows."""
        return self.up(self.within.sampling_errors(rng)[:, : self._down.shape[0]])

    def model(self, theta: np.ndarray, memory_limit: int) -> LogLinearModel:
        """The model with these parameters, of the finest tables; it obeys what the engine inside obeys."""
        theta = self.down(theta)
        if self.within is not self.engine:
            return self.within.model(theta, memory_limit)
        return LogLinearModel(self.engine.cliques, theta, memory_limit, inference_of(self.engine))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.within, name)
