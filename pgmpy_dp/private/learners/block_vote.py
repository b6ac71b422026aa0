"""One noisy majority vote: each vertex hears how many of its neighbours have each label, and may change its own.

After any first stage that is better than chance it repairs most of what is wrong, for one edge changes two of the sums
by 1, whatever the first stage was.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from pgmpy_dp.models.communities import balanced, marks_of
from pgmpy_dp.private.data.graph import neighbour_sums
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.bulk import bulk_release
from pgmpy_dp.private.sensitive import Noise

__all__ = ["noisy_vote"]


def noisy_vote(
    matrix: sp.csr_array,
    labels: np.ndarray,
    k: int,
    degrees: float | np.ndarray,
    cost: PureDP | ZCDP,
    share: Fraction = Fraction(1),
    seed: np.random.Generator | None = None,
) -> tuple[np.ndarray, Noise]:
    """Sums of the neighbours' marks with noise, less what a graph without communities would have.

    Parameters
    ----------
    matrix : csr_array, shape (n, n)
        Adjacency matrix.
    labels : ndarray of int, shape (n,)
        In 0 .. k-1, public: they may be what an earlier release found.
    k : int
    degrees : float or ndarray of shape (n,)
        Public, see :func:`~pgmpy_dp.models.communities.balanced`; 0 counts neighbours only, as published.
    cost : PureDP or ZCDP
        Laplace or Gaussian noise.
    share : Fraction
        Of the cost.
    seed : numpy.random.Generator, optional
        For tests and benchmarks only.

    Returns
    -------
    sums : ndarray, shape (n, columns)
        :func:`~pgmpy_dp.models.communities.labels_of` turns them into labels.
    noise : Noise

    Notes
    -----
    Privacy: given the labels, l1 sensitivity 2 and l2 sensitivity sqrt(2)
    (:func:`~pgmpy_dp.private.data.graph.neighbour_sums`), and so the given share of `cost` with Laplace noise of scale
    2/epsilon (Chen et al. 2023, Algorithm 5.13) or Gaussian noise of variance 1/rho. The labels' own guarantee adds to
    it, unless they come from other edges.
    """
    marks = marks_of(labels, k)
    noisy, noise = bulk_release(neighbour_sums(matrix, marks), cost, share, seed)
    return balanced(noisy, marks, degrees), noise
