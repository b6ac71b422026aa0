"""The privacy of a matrix plus Wishart noise: an exact reduction of (epsilon, delta) to one dimension.

Wang, Huai and Xu (2018) add ``W ~ W_d(k, c I)`` to the second moments of rows of norm at most B. It is one-sided, so
for no k is it pure: ``M - G >= 0`` is certain with G and not with its neighbours. With a delta it is private.

Proof. Let a neighbour have one row x more, ``G' = G + x x'``, and write ``W = c L L'`` in coordinates whose first axis
is x/|x|. Bartlett's decomposition makes the Schur complement of the other coordinates, ``w = W_11 - W_12 W_22^-1
W_21``, independent of (W_12, W_22) and distributed as ``c chi2`` with ``k' = k - d + 1`` degrees of freedom. Given
(W_12, W_22), which have one law under both, adding x x' moves the matrix's Schur complement by |x|**2 and nothing else.
So the two outputs differ exactly as the numbers ``P = chi2`` and ``Q = s + chi2`` with ``s = |x|**2/c``.

Their hockey-stick divergences have a closed form, because for k' >= 2 the density f of chi2 is log-concave and
``f(y - s)/f(y)`` increases: the best events are half-lines. With ``a = (k' - 2)/2`` the ratio is exp(-epsilon), or
exp(epsilon), where ``y = s/(1 - exp(-(epsilon + s/2)/a))``, or ``y = s/(1 - exp((epsilon - s/2)/a))`` if s/2 >
epsilon::

    delta(P||Q) = F(y) - exp(epsilon) F(y - s)        delta(Q||P) = S(y - s) - exp(epsilon) S(y)

with F, S the distribution function of chi2 and its complement. Both increase in s, each being a largest value over
half-lines of what increases in s, so the largest row counts. QED.

A person's several rows add a matrix of higher rank, and a replacement moves both ways; no proof is known for either.
"""

from __future__ import annotations

import math
from functools import lru_cache


def shifted_chi2_delta(degrees: int, shift: float, epsilon: float) -> float:
    """Smallest delta for which chi2 and ``shift`` + chi2 are (epsilon, delta)-close, in both directions.

    Parameters
    ----------
    degrees : int
        k' = k - d + 1, at least 3.
    shift : float
        s = B**2/c, positive.
    epsilon : float

    Examples
    --------
    >>> 5e-7 < shifted_chi2_delta(43, 1.0, 1.0) <= 1e-6 < shifted_chi2_delta(42, 1.0, 1.0)
    True
    """
    from scipy.stats import chi2  # half a second, which a plan need not take

    epsilon = min(epsilon, 500.0)  # exp of it is a float; a smaller epsilon asks for more
    a, factor = (degrees - 2) / 2.0, math.exp(epsilon)
    y = -shift / math.expm1(-(epsilon + shift / 2.0) / a)
    delta = chi2.cdf(y, degrees) - factor * chi2.cdf(y - shift, degrees)
    if shift / 2.0 > epsilon:
        y = -shift / math.expm1((epsilon - shift / 2.0) / a)
        delta = max(delta, chi2.sf(y - shift, degrees) - factor * chi2.sf(y, degrees))
    return float(delta)


@lru_cache(maxsize=256)
def smallest_degrees(n_columns: int, epsilon: float, delta: float, shift: float = 1.0) -> int:
    """Smallest k for which ``W_d(k, c I)`` is (epsilon, delta)-private under add_remove of single rows, c = B**2/shift.

    Parameters
    ----------
    n_columns : int
        d.
    epsilon, delta : float
        Positive.
    shift : float

    Raises
    ------
    ValueError
        If more than 10**7 would be needed.

    Notes
    -----
    The published ``k = d + (14/epsilon**2) ln(4/delta)`` is five times as many at epsilon = 1, delta = 1e-6, and too
    few at epsilon = 5. Found by bisection; the k returned was checked itself, with one part in 10**9 to spare for
    rounding.

    Examples
    --------
    >>> smallest_degrees(30, 1.0, 1e-6)
    72
    """

    def fits(degrees: int) -> bool:
        return shifted_chi2_delta(degrees, shift, epsilon) <= delta * (1.0 - 1e-9)

    high = 3
    while not fits(high):
        high *= 2
        if high > 10**7:
            raise ValueError(
                f"epsilon={epsilon!r} with delta={delta!r} needs Wishart noise of more than 10**7 degrees of freedom; "
                "use mechanism='goe'"
            )
    low = max(2, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high + n_columns - 1
