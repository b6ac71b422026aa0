"""How many sweeps of Gibbs sampling forget where they started: proved where possible, else measured.

References
----------
.. [1] Dobrushin, R. L. (1970). Prescribing a system of random variables by conditional distributions. Theory of
   Probability and its Applications 15.
.. [2] Dyer, M., Goldberg, L. A. and Jerrum, M. (2008). Dobrushin conditions and systematic scan. Combinatorics,
   Probability and Computing 17.
.. [3] Johnson, V. E. (1996). Studying convergence of Markov chain Monte Carlo algorithms using coupled sample paths.
   Journal of the American Statistical Association 91.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from benchmarks.glauber import BinaryGlauber, PairwiseGlauber, as_polynomial, half_logistic
from pgmpy_dp.fields.random_fields import Pairwise, RandomField

__all__ = ["dobrushin_burn_in", "gibbs_burn_in", "influences"]

DISTANCE = 1e-4
"""Total variation distance, of one record, that a proved burn-in guarantees."""
PAIRS = 512
"""Coupled pairs of chains that a measured burn-in rests on."""
AHEAD = 100
"""Sweeps by which one chain of a pair is ahead."""
LONGEST = 1000
"""Sweeps within which they must meet."""


def gibbs_burn_in(field: RandomField) -> int:
    """Default number of sweeps before a record is taken; a fixed number for each field.

    `dobrushin_burn_in` where it is at most 1000 sweeps: that is proved. Otherwise it is measured: twice the number of
    sweeps T in which 512 pairs of chains have all met [3]_. The chains of a pair start independently, the second one
    100 sweeps ahead of the first, and are driven by the same random numbers, so that by the coupling inequality the
    distributions after T and after T + 100 sweeps are no further apart than the probability that a pair has not met.
    This is evidence, no proof: where 100 sweeps more change nothing yet, it is not seen that 10,000 would.

    Parameters
    ----------
    field : Ising, Pairwise or BinaryField

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If nothing is proved, and some pair has not met in 1000 sweeps.

    Examples
    --------
    >>> from pgmpy_dp.fields.random_fields import Ising
    >>> gibbs_burn_in(Ising(np.zeros((2, 2)), np.ones(2)))
    1
    """
    proved = dobrushin_burn_in(field)
    if proved is not None and proved <= LONGEST:
        return proved
    met = _meeting_time(field)
    if met is not None:
        return 2 * met
    raise ValueError(
        f"this field has no default burn_in: of {PAIRS} pairs of chains some had not met after {LONGEST} sweeps, so "
        'they mix slowly or not at all. Use method="exact" with a larger memory_limit, or pass burn_in and compare '
        "moments with those of twice as many sweeps"
    )


def dobrushin_burn_in(field: RandomField, distance: float = DISTANCE) -> int | None:
    """Sweeps after which a record is within `distance` of the model in total variation; None where none is known.

    Couple a chain with one that starts in the model, each update optimally, and let C be `influences`. If the
    probability that variable j differs is at most D w_j for all j, that of i is at most sum_j C_ij D w_j once i is
    updated. So if C w <= s w for some w > 0 and s < 1, a sweep, in any order, multiplies D by s, and after T sweeps
    the distance is at most s^T sum_i w_i / min_i w_i. For each s between the spectral radius of C and 1 there is such
    a w, (s - C)^{-1} 1 [1]_ [2]_: a few are tried.

    Parameters
    ----------
    field : Ising, Pairwise or BinaryField
    distance : float

    Returns
    -------
    int or None
        None where the spectral radius of C is 1 or more.

    Examples
    --------
    >>> from pgmpy_dp.fields.random_fields import Ising
    >>> dobrushin_burn_in(Ising(np.array([[0.0, 0.5], [0.5, 0.0]]), np.zeros(2)))
    13
    """
    influence = influences(field)
    if not influence.any():
        return 1  # independent variables: one sweep is exact
    radius = float(np.abs(np.linalg.eigvals(influence)).max())
    if radius >= 1 - 1e-6:
        return None
    needed = []
    for rate in radius + (1 - radius) * np.array([1e-3, 0.01, 0.03, 0.1, 0.3]):
        w = np.linalg.solve(rate * np.eye(len(influence)) - influence, np.ones(len(influence)))
        needed.append(math.log(w.sum() / w.min() / distance) / -math.log(rate))
    return max(1, math.ceil(min(needed)))


def influences(field: RandomField) -> np.ndarray:
    """How much variable j can move the conditional distribution of i: C_ij, shape (p, p).

    C_ij bounds the total variation distance between the conditional distributions of i given two states of the others
    that differ in j alone. Adding d_a to log-probabilities moves a distribution by at most tanh((max d - min d) / 4)::

        C_ij = tanh(sum_{I with i, j} |c_I|)                               binary; tanh |A_ij| for Ising
        C_ij = tanh(max_{b, b'} range_a(W_ij(a, b) - W_ij(a, b')) / 4)     pairwise
    """
    polynomial = as_polynomial(field)
    influence = np.zeros((field.n_variables, field.n_variables))
    if polynomial is not None:
        for subset, value in polynomial.coefficients.items():
            for i, j in itertools.permutations(subset, 2):
                influence[i, j] += abs(value)
        return np.tanh(influence)
    assert isinstance(field, Pairwise)
    for (i, j), table in field.weights.items():
        for here, there, values in ((i, j, table), (j, i, table.T)):
            contrasts = values[:, :, None] - values[:, None, :]
            influence[here, there] = math.tanh(float(np.ptp(contrasts, axis=0).max()) / 4)
    return influence


def _meeting_time(field: RandomField) -> int | None:
    """Sweeps after which all pairs of chains have met; None if not within `LONGEST`."""
    rng = np.random.default_rng(0)  # a property of the field, not of the caller's random numbers
    polynomial = as_polynomial(field)
    shape = (field.n_variables, PAIRS)
    if polynomial is not None:
        binary = BinaryGlauber(polynomial)
        first, second = binary.start(PAIRS, rng), binary.start(PAIRS, rng)

        def sweep(*states: np.ndarray) -> None:
            threshold = half_logistic(shape, rng)
            for state in states:
                binary.sweep(state, threshold, bounded=False)
    else:
        assert isinstance(field, Pairwise)
        general = PairwiseGlauber(field)
        first, second = general.start(PAIRS, rng), general.start(PAIRS, rng)

        def sweep(*states: np.ndarray) -> None:
            uniform = rng.random(shape, dtype=np.float32)
            for state in states:
                general.sweep(state, uniform)

    for _ in range(AHEAD):
        sweep(second)
    for sweeps in range(1, LONGEST + 1):
        sweep(first, second)
        if np.array_equal(first, second):
            return sweeps
    return None
