"""Report noisy max: which of several integer scores is about the largest, and how much noise that takes.

Let no score move by more than D between neighbours, in either direction. One selection with noise of scale s then costs

* ``(2 D/s)**2 / 8`` of rho with Gumbel noise, and so ``s = D / sqrt(2 rho)``;
* ``2 D/s`` of epsilon with exponential noise, and so ``s = 2 D / epsilon``.

The factor 2 is there because one score may rise while another falls. Noise of scale D/epsilon (Zhang, Kamath, Kulkarni
and Wu 2020, Lemma 3.3, with Laplace noise) gives up to twice the epsilon that it claims. Scales are computed in exact
rational arithmetic and rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import exact_fraction
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.private.noise.measures import noise_budget


def selection_scale(linf: float, cost: PureDP | ZCDP, share: Fraction) -> float:
    """Scale of the noise of one selection that may spend the given share of `cost`.

    Parameters
    ----------
    linf : float
        Positive: how far no score moves between neighbours.
    cost : PureDP or ZCDP
        Its type decides the noise: exponential, or Gumbel.
    share : Fraction
        In (0, 1].

    Raises
    ------
    ValueError
        If the scale would bury any score of 64 bits.

    Examples
    --------
    >>> selection_scale(1.0, ZCDP(0.5), Fraction(1, 100)), selection_scale(1.0, PureDP(1.0), Fraction(1, 100))
    (10.0, 200.0)
    """
    moved, share = exact_fraction(linf), exact_fraction(share)
    scale = noise_budget(cost, share).selection_scale(moved)
    if scale > LARGEST_SCALE:
        raise ValueError(
            f"a budget of {cost} leaves each selection 1/{float(1 / share):.3g} of it, which needs noise of scale "
            f"{scale:.3g}, beyond {LARGEST_SCALE:.3g}: raise the budget, or make fewer selections (n_iter, n_rounds)"
        )
    return scale


def noisy_argmax(
    rows: Sequence[np.ndarray], scale: float, cost: PureDP | ZCDP, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Position of the noisily largest score of each row, shape (len(rows),); Gumbel noise for `ZCDP`, else exponential.

    Parameters
    ----------
    rows : sequence of ndarray of int64
        Scores, one row per selection.
    scale : float
        Of :func:`selection_scale`, for the same type of `cost`.
    cost : PureDP or ZCDP
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Notes
    -----
    Privacy: rows are selected from with independent noise, so their costs add up. A row whose scores are the same under
    both neighbours costs nothing.
    """
    return noise_budget(cost).argmax(rows, scale, rng)
