"""Exact forward sampling from a calibrated junction tree."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct

__all__ = ["forward_sample"]


def forward_sample(engine: SumProduct, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw independent records from the model at the last calibrated parameters.

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

    Returns
    -------
    ndarray of shape (n, n_variables), int64
        State numbers; columns in the order of the model's variables.
    """
    cardinalities = engine.cliques.cardinalities
    codes = np.zeros((n, len(cardinalities)), dtype=np.int64)
    for residual, separator, conditional in engine.conditionals():
        given = np.zeros(n, dtype=np.int64)
        for i in separator:
            given = given * cardinalities[i] + codes[:, i]
        drawn = _invert(np.cumsum(conditional, axis=0), given, rng.random(n))
        for i in reversed(residual):
            drawn, codes[:, i] = np.divmod(drawn, cardinalities[i])
    return codes


def _invert(cumulative: np.ndarray, columns: np.ndarray, uniform: np.ndarray) -> np.ndarray:
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
