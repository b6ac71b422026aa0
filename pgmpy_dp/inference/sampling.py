"""Records drawn from a calibrated junction tree: independent, or stratified, so that they represent the model better.

A record is drawn by inverting cumulative distributions at uniform numbers, from the root of the tree down. How the
uniform numbers of all records are drawn together is the method:

* *independent*: each by itself. Counts of cells spread as in a random sample.
* *stratified*: the m records that agree about a clique's separator get the numbers (v + k)/m mod 1, k = 0 .. m - 1, in
  random order, v uniform. So each cell of the clique gets m p(residual | separator) records, rounded up or down, and
  which way is left to v. The v of different groups are spread over [0, 1) by the golden ratio, from one uniform start,
  so that roundings of many small groups do not add up.

Given all that was drawn before, each record's number is uniform in both: the law of every record is the model's
exactly, and so the expectation of every count. Stratified records are not independent of each other: estimates
made of them vary less than the usual formulas say. Order says nothing: the law of all records together is that of any
permutation of them.

References
----------
C.-E. Särndal, B. Swensson, J. Wretman (1992), Model assisted survey sampling, section 3.4 (systematic sampling).

*agreeing* records are stratified within cells whose whole counts are those of public tables
(:mod:`pgmpy_dp.inference.whole_margins`).

Records from a model that is too large for a junction tree: chains of Gibbs sampling, one for each record.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques

SamplingMethod = Literal["stratified", "independent", "agreeing"]

_GOLDEN = (5**0.5 - 1) / 2


def check_method(method: str) -> None:
    """Raise a ValueError if this is not a method of drawing records."""
    if method not in get_args(SamplingMethod):
        raise ValueError(f"method={method!r}; pass one of {', '.join(map(repr, get_args(SamplingMethod)))}")


def uniforms(groups: np.ndarray, rng: np.random.Generator, method: SamplingMethod) -> np.ndarray:
    """A number for each record at which a cumulative distribution is inverted; uniform on [0, 1) for each of them.

    Parameters
    ----------
    groups : ndarray of int, shape (n,)
        Records of the same group have the same distribution.
    rng : numpy.random.Generator
    method : {"stratified", "independent"}
        See the module's text.

    Examples
    --------
    >>> drawn = uniforms(np.array([0, 0, 1, 0, 0]), np.random.default_rng(0), "stratified")
    >>> sorted((4 * drawn[[0, 1, 3, 4]]).astype(int).tolist())
    [0, 1, 2, 3]
    """
    n = len(groups)
    if method == "independent":
        return rng.random(n)
    shuffled = rng.permutation(n)
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if n else np.zeros(0, dtype=int)
    sizes = np.diff(np.append(starts, n))
    group = np.repeat(np.arange(len(starts)), sizes)
    start = (rng.random() + _GOLDEN * np.arange(len(starts))) % 1
    drawn = np.empty(n)
    drawn[order] = (start[group] + (np.arange(n) - starts[group]) / sizes[group]) % 1
    return drawn


def forward_sample(
    engine: SumProduct,
    n: int,
    rng: np.random.Generator,
    method: SamplingMethod = "independent",
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Draw records from the model at the last calibrated parameters.

    From the root down, each clique's residual variables are drawn from p(residual | separator)
    by inverting its cumulative distribution, for all records at once.

    Parameters
    ----------
    engine : SumProduct
        Calibrated at the parameters to sample from.
    n : int
        Number of records.
    rng : numpy.random.Generator
        Source of randomness; no privacy rests on it.
    method : {"independent", "stratified"}
        See the module's text.
    known : ndarray of int, shape (n, n_known), optional
        States of the first variables, which the root has all of: the others are drawn given these.

    Returns
    -------
    ndarray of shape (n, n_variables), int64
        State numbers; columns in the order of the model's variables.
    """
    check_method(method)
    cardinalities = engine.cliques.cardinalities
    codes, conditionals = np.zeros((n, len(cardinalities)), dtype=np.int64), engine.conditionals()
    if known is not None:
        (axes, _, joint), first = conditionals[0], known.shape[1]
        codes[:, :first] = known
        conditionals[0] = axes[first:], axes[:first], joint.reshape(math.prod(cardinalities[:first]), -1).T
    for residual, separator, conditional in conditionals:
        separator_codes = np.zeros(n, dtype=np.int64)
        for i in separator:
            separator_codes = separator_codes * cardinalities[i] + codes[:, i]
        drawn = inverted(np.cumsum(conditional, axis=0), separator_codes, uniforms(separator_codes, rng, method))
        for i in reversed(residual):
            drawn, codes[:, i] = np.divmod(drawn, cardinalities[i])
    return codes


def inverted(cumulative: np.ndarray, columns: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """For each draw the first row whose cumulative probability in its column exceeds `uniform`.

    A bisection over rows for all draws together: log2(rows) gathers, no table of draws by rows.
    Rows of probability 0 are never chosen, since their cumulative value does not rise.
    """
    # The last sum may miss 1 by rounding: scale the draw to it rather than run past the end.
    uniform = uniform * cumulative[-1, columns]
    low = np.zeros(len(columns), dtype=np.int64)
    high = np.full(len(columns), len(cumulative) - 1, dtype=np.int64)
    for _ in range(int(len(cumulative) - 1).bit_length()):
        middle = (low + high) // 2
        above = cumulative[middle, columns] > uniform
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low


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
"""The tables that have one variable: the others in each with their strides, and an array (others, states)."""


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
