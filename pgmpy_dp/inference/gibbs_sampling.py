"""Records from a model that is too large for a junction tree: chains of Gibbs sampling, one for each record."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.inference.cliques import Cliques

_FORBIDDEN = -1e4
"""Stands for log 0: so much below all else that no chain stays there, and finite so that one can leave."""

_AT_ONCE = 1 << 16
"""Chains that advance together: their states and fields then stay in a cache."""


def gibbs_sample(
    cliques: Cliques,
    theta: np.ndarray,
    margins: list[np.ndarray],
    n: int,
    rng: np.random.Generator,
    n_sweeps: int = 100,
) -> np.ndarray:
    """Draw records that are independent, and approximately from the model.

    Parameters
    ----------
    cliques : Cliques
    theta : ndarray of shape (n_cells,)
        Log-potentials; -inf marks a structural zero.
    margins : list of ndarray
        For each variable the probabilities that its first state is drawn with.
    n : int
        Number of records.
    rng : numpy.random.Generator
        Source of randomness; no privacy rests on it.
    n_sweeps : int
        How often each variable is drawn anew given all others.

    Returns
    -------
    ndarray of shape (n, n_variables), int64
        State numbers; columns in the order of the model's variables.

    Notes
    -----
    Each record is the end of a chain of its own, so records are independent of one another. How far their law is from
    the model's depends on how quickly chains forget where they began: quickly where interactions are weak or moderate,
    too slowly where the model has several modes far apart. Structural zeros are obeyed by chains that have found a
    possible record, which they are likely to in a few sweeps, and never leave it for one that is not.

    Examples
    --------
    >>> pair = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> half = [np.array([0.5, 0.5])] * 2
    >>> drawn = gibbs_sample(pair, np.log([0.4, 0.1, 0.1, 0.4]), half, 4000, np.random.default_rng(0))
    >>> bool(abs((drawn[:, 0] == drawn[:, 1]).mean() - 0.8) < 0.03)
    True
    """
    near = _neighbourhoods(cliques, np.maximum(theta, _FORBIDDEN))
    drawn = np.empty((n, len(cliques.variables)), dtype=np.int64)
    for start in range(0, n, _AT_ONCE):
        codes = _chains(near, margins, min(_AT_ONCE, n - start), rng, n_sweeps)
        drawn[start : start + codes.shape[1]] = codes.T
    return drawn


Neighbourhood = list[tuple[list[tuple[int, int]], np.ndarray]]
"""Of one variable: for each table that has it, the others with their strides, and the table as (others, states)."""


def _neighbourhoods(cliques: Cliques, theta: np.ndarray) -> list[Neighbourhood]:
    near: list[Neighbourhood] = [[] for _ in cliques.variables]
    for scope, table in zip(cliques.indices, cliques.split(theta), strict=True):
        for axis, i in enumerate(scope):
            others = [j for j in scope if j != i]
            strides, step = [], 1
            for j in reversed(others):
                strides.append((j, step))
                step *= cliques.cardinalities[j]
            near[i].append((strides, np.ascontiguousarray(np.moveaxis(table, axis, -1).reshape(step, -1))))
    return near


def _chains(
    near: list[Neighbourhood], margins: list[np.ndarray], n: int, rng: np.random.Generator, n_sweeps: int
) -> np.ndarray:
    """States of n chains after so many sweeps, variables as rows."""
    codes = np.stack([_draw(np.broadcast_to(np.log(margin + 1e-300), (n, len(margin))), rng) for margin in margins])
    for _ in range(n_sweeps):
        for i, tables in enumerate(near):
            field = np.zeros((n, len(margins[i])))
            for strides, table in tables:
                index = np.zeros(n, dtype=np.int64)
                for j, stride in strides:
                    index += stride * codes[j]
                field += table[index]
            codes[i] = _draw(field, rng)
    return codes


def _draw(field: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A state of each row, with probability proportional to exp of its field."""
    uniform = rng.random(len(field))
    if field.shape[1] == 2:
        with np.errstate(over="ignore"):
            return (uniform * (1.0 + np.exp(field[:, 0] - field[:, 1])) < 1.0).astype(np.int64)
    cumulative = np.cumsum(np.exp(field - field.max(axis=1, keepdims=True)), axis=1)
    below = (uniform * cumulative[:, -1])[:, None] >= cumulative
    return np.minimum(below.sum(axis=1), field.shape[1] - 1)
