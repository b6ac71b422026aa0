"""Parities by rounds of private selection: multiplicative weights (PMW).

A public guess of the data is kept, and each round asks the curator for a parity that the guess answers badly. A round
learns the selected position and one noisy sum of the records; everything else is post-processing. Rounds get equal
shares of what is left, whatever they learn; their number depends on public numbers and on the noisy count, which is
paid for before.

The guess is a distribution on all 2^p records, by multiplicative weights.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators.parities import ParitySums, Subsets, WorstParity
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of, parities_of_cells


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
        """Multiply each weight by ``exp(z (measured - answered)/2)``, for the measurements that are answered worst.

        The step of Hardt, Ligett and McSherry 2012, which cannot overshoot: the second derivative of the logarithm of
        a mean of exp(w z) is at most 1.

        Parameters
        ----------
        steps : int
            Measurements to update by, each once.
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


_ROUNDS = {"pmw": (1.0, 100), "sepfem": (4.0, 200)}  # factor and most, see `default_rounds`
_STEPS = 10  # of the update after each round; more, and repeated ones, are no better


def default_rounds(method: str, n_variables: int, n_parities: int, cost: PureDP | ZCDP, records: float) -> int:
    """Rounds that balance the error of stopping early, sqrt(p/T), against that of the noise."""
    # With rho the noise is about sqrt(T/rho) log(m)/N, so `T = N sqrt(rho p log 2)/log(2 m)`; with epsilon it is about
    # T log(m)/(N epsilon), so `T = (N epsilon sqrt(p log 2)/log(2 m))**(2/3)`. At most 100 for pmw. sepfem, whose
    # rounds say less and need no measurement, takes four times as many, at most 200. The constants are measured.
    log_domain, log_parities = n_variables * math.log(2.0), math.log(2.0 * n_parities)
    if isinstance(cost, PureDP):
        rounds = (records * cost.epsilon * math.sqrt(log_domain) / log_parities) ** (2.0 / 3.0)
    else:
        rounds = records * math.sqrt(cost.rho * log_domain) / log_parities
    factor, most = _ROUNDS[method]
    return max(1, min(most, round(factor * rounds)))


def pmw_answers(
    curator: TableCurator, family: int | Subsets, records: float, rounds: int, share: Fraction
) -> Generator[np.ndarray, None, None]:
    """Means of all parities by private multiplicative weights over all 2**p records.

    The offline form of Hardt and Rothblum 2010, MWEM (Hardt, Ligett and McSherry 2012): each round selects the parity
    with the largest error by noisy max, measures it with noise, and updates the weights on all measurements so far.

    Parameters
    ----------
    curator : TableCurator
        Of binary variables.
    family : int or tuple of tuples of int
        All parities of up to so many variables, or the public family of them.
    records : float
        Public or noisy number of records, at least 1.
    share : Fraction
        Of the curator's cost, for all rounds.

    Yields
    ------
    ndarray of float, shape (m,)
        After each round: in [-1, 1], the answers of one distribution.
    """
    step = share / (2 * rounds)
    p = len(curator.facts.schema)
    subsets = field_scopes(p, family) if isinstance(family, int) else family
    weights = MultiplicativeWeights(p, masks_of(subsets))
    answers = weights.answers()
    for _ in range(rounds):
        chosen = curator.ask(WorstParity(family, answers * records), step)
        ((noisy,),) = curator.ask(ParitySums([subsets[chosen]]), step)
        weights.measure(chosen, float(noisy) / records)
        weights.update(_STEPS)
        answers = weights.answers()
        yield answers
