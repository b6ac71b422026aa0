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
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct

SamplingMethod = Literal["stratified", "independent"]

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
    engine: SumProduct, n: int, rng: np.random.Generator, method: SamplingMethod = "independent"
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

    Returns
    -------
    ndarray of shape (n, n_variables), int64
        State numbers; columns in the order of the model's variables.
    """
    check_method(method)
    cardinalities = engine.cliques.cardinalities
    codes = np.zeros((n, len(cardinalities)), dtype=np.int64)
    for residual, separator, conditional in engine.conditionals():
        given = np.zeros(n, dtype=np.int64)
        for i in separator:
            given = given * cardinalities[i] + codes[:, i]
        drawn = inverted(np.cumsum(conditional, axis=0), given, uniforms(given, rng, method))
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
