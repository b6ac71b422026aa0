"""Random public models to try things on before there are records, and tables of records drawn from a model."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel

LARGEST_SAMPLE = 1_000_000
_BATCH = 200_000  # records drawn at a time: sampling holds a few int64 columns for each


def random_log_linear(
    cliques: Cliques, rng: np.random.Generator, *, memory_limit: int = DEFAULT_MEMORY_LIMIT
) -> LogLinearModel:
    """A model with uneven variables and interactions from weak to strong, as survey data have them.

    The log-potential of a table is normal, independent over its cells, with a standard deviation that is uniform on
    [0, 1] for each table, over the root of the mean number of other variables that a variable is in tables with (if
    that is above 1), so that variables in many tables do not freeze. Each variable adds the logarithm of a
    Dirichlet(1) draw over its states.

    Parameters
    ----------
    cliques : Cliques
        The model's tables.
    rng : numpy.random.Generator
    memory_limit : int
        Of the model's inference.

    Examples
    --------
    >>> model = random_log_linear(Cliques(("a", "b"), (2, 3), (("a", "b"),)), np.random.default_rng(0))
    >>> model.marginals().shape
    (6,)
    """
    neighbours = {frozenset((i, j)) for scope in cliques.indices for i in scope for j in scope if i != j}
    degree = max(2.0 * len(neighbours) / max(len(cliques.variables), 1), 1.0)
    tables = [rng.normal(size=shape) * rng.uniform(0.0, 1.0) / np.sqrt(degree) for shape in cliques.shapes]
    for i, size in enumerate(cliques.cardinalities):
        effect = np.log(np.maximum(rng.dirichlet(np.ones(size)), 1e-12))
        home = next((c for c, scope in enumerate(cliques.indices) if i in scope), None)
        if home is not None:
            shape = [1] * tables[home].ndim
            shape[cliques.indices[home].index(i)] = size
            tables[home] = tables[home] + effect.reshape(shape)
    return LogLinearModel(cliques, cliques.join(tables), memory_limit)


def drawn_tables(model: LogLinearModel, cliques: Cliques, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Contingency tables of n records drawn from a model; above `LARGEST_SAMPLE`, of the expected counts, rounded.

    With so many records the spread of a drawn count, at most the root of the count, is one thousandth of n or less.

    Parameters
    ----------
    model : LogLinearModel
        Has all variables of `cliques`, with their numbers of states.
    cliques : Cliques
        The tables.
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    list of ndarray of int64
        Up to `LARGEST_SAMPLE` each sums to n and all are of the same records.

    Examples
    --------
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> drawn_tables(LogLinearModel(cliques, np.zeros(2)), cliques, 2_000_000, np.random.default_rng(0))
    [array([1000000, 1000000])]
    """
    if n > LARGEST_SAMPLE:
        return [np.rint(n * table).astype(np.int64) for table in model.marginals_of(cliques.scopes)]
    flat = [np.zeros(size, dtype=np.int64) for size in cliques.sizes]
    columns = [[model.cliques.position[name] for name in scope] for scope in cliques.scopes]
    for start in range(0, n, _BATCH):
        codes = model.sample(min(_BATCH, n - start), rng)
        for table, scope, shape in zip(flat, columns, cliques.shapes, strict=True):
            table += np.bincount(np.ravel_multi_index([codes[:, i] for i in scope], shape), minlength=len(table))
    return [table.reshape(shape) for table, shape in zip(flat, cliques.shapes, strict=True)]
