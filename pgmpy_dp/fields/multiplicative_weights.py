"""Multiplicative weights on all 2^p records: a distribution that answers parities it was told noisy values of."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.private.mathematics.walsh_hadamard import parities_of_cells


class MultiplicativeWeights:
    """A distribution over {-1, 1}^p, uniform at first, moved towards measured parities.

    Parameters
    ----------
    n_variables : int
    masks : ndarray of int64, shape (m,)
        The parities it can be told, as sets of bits (:mod:`pgmpy_dp.private.mathematics.walsh_hadamard`).

    Notes
    -----
    Memory: a few arrays of 2**p floats, and 2**p bytes for each measurement.

    Examples
    --------
    >>> weights = MultiplicativeWeights(2, np.array([1, 2, 3]))
    >>> weights.measure(2, 0.5)
    >>> weights.update(steps=1)
    >>> np.abs(weights.answers()).round(3).tolist()
    [0.0, 0.0, 0.245]
    """

    def __init__(self, n_variables: int, masks: np.ndarray) -> None:
        self._masks = masks
        self._cells = np.arange(1 << n_variables)
        self._weight = np.full(1 << n_variables, 2.0**-n_variables)
        self._negative: dict[int, np.ndarray] = {}
        self._values: dict[int, list[float]] = {}
        self._answers: np.ndarray | None = None

    def answers(self) -> np.ndarray:
        """Means of all parities under the distribution, shape (m,), in [-1, 1]."""
        if self._answers is None:
            self._answers = parities_of_cells(self._weight, self._masks)
        return self._answers

    def measure(self, position: int, value: float) -> None:
        """Tell a noisy mean of one parity; of several for the same one their mean counts."""
        if position not in self._negative:
            # z = -1 where an odd number of the set's bits are missing.
            self._negative[position] = (np.bitwise_count(~self._cells & self._masks[position]) & 1).astype(bool)
        self._values.setdefault(position, []).append(value)

    def update(self, steps: int) -> None:
        """For the measurements that are answered worst, multiply each weight by ``exp(z (measured - answered)/2)``.

        The step of Hardt, Ligett and McSherry 2012, which cannot overshoot: the second derivative of the logarithm of
        a mean of exp(w z) is at most 1.

        Parameters
        ----------
        steps : int
            How many measurements, each once.
        """
        positions = np.array(list(self._values))
        targets = np.array([min(1.0, max(-1.0, float(np.mean(values)))) for values in self._values.values()])
        worst = np.argsort(-np.abs(targets - self.answers()[positions]), kind="stable")[:steps]
        weight, total = self._weight, 1.0  # weights are brought to a sum of 1 at the end
        for k in worst:
            negative = self._negative[int(positions[k])]
            below = float(weight @ negative)
            step = (targets[k] - (1.0 - 2.0 * below / total)) / 2.0
            # exp(-step) against exp(step)
            weight *= np.where(negative, np.exp(-2.0 * step), 1.0)
            total += below * np.expm1(-2.0 * step)
        weight /= weight.sum()
        self._answers = None
