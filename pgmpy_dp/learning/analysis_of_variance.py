"""Between the tables of a log-linear model and its interactions: the analysis of variance of log-potentials."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel


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


def log_linear_of(
    terms: Mapping[tuple[int, ...], np.ndarray],
    cardinalities: Sequence[int],
    variables: Sequence[Hashable] | None = None,
    cliques: Cliques | None = None,
) -> LogLinearModel:
    """The log-linear model whose log-potential is a sum of tables.

    Parameters
    ----------
    terms : mapping of sorted positions to ndarray
        Tables, axes in the order of the positions.
    cardinalities : sequence of int
        Number of states of each position.
    variables : sequence of hashable, optional
        Names of the positions; by default those of `cliques`, else the positions.
    cliques : Cliques, optional
        The tables to write into, over the same variables in the same order. By default one for each variable and
        one for each term.

    Returns
    -------
    LogLinearModel

    Raises
    ------
    ValueError
        If names or cardinalities do not fit, or a term is in no table.

    Examples
    --------
    >>> model = log_linear_of({(0, 1): np.array([[1.0, 0.0], [0.0, 1.0]])}, (2, 2), ("a", "b"))
    >>> model.cliques.scopes
    (('a',), ('b',), ('a', 'b'))
    """
    if variables is None:
        variables = range(len(cardinalities)) if cliques is None else cliques.variables
    names = tuple(variables)
    if len(names) != len(cardinalities):
        raise ValueError(f"variables must name the {len(cardinalities)} positions of the field, got {len(names)} names")
    if cliques is None:
        scopes = list(dict.fromkeys([*((i,) for i in range(len(names))), *terms]))
        cliques = Cliques(names, tuple(cardinalities), tuple(tuple(names[i] for i in scope) for scope in scopes))
    elif cliques.variables != names or cliques.cardinalities != tuple(cardinalities):
        raise ValueError(
            "cliques must have the variables and cardinalities of the field, in its order; got "
            f"{cliques.variables}, {cliques.cardinalities} for {names}, {tuple(cardinalities)}"
        )
    tables = [np.zeros(shape) for shape in cliques.shapes]
    holding: list[set[int]] = [set() for _ in names]
    for c, scope in enumerate(cliques.indices):
        for i in scope:
            holding[i].add(c)
    for subset, term in terms.items():
        hosts = set.intersection(*(holding[i] for i in subset))
        if not hosts:
            if not term.any():
                continue
            raise ValueError(
                f"cliques has no table with the variables {[names[i] for i in subset]} together, which the field "
                "makes interact (or gives a field of their own); add a scope for them"
            )
        host = min(hosts, key=lambda c: (cliques.sizes[c], c))
        scope = cliques.indices[host]
        shared = [i for i in scope if i in subset]
        aligned = term.transpose([subset.index(i) for i in shared])
        tables[host] += aligned.reshape([cardinalities[i] if i in subset else 1 for i in scope])
    return LogLinearModel(cliques, cliques.join(tables))
