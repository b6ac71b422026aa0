"""Counts of blocks per cell of an unbounded grid, released where a threshold says that they are stable.

Each block of records marks at most k cells; between neighbours at most one block changes its marks. There are
infinitely many cells, so noise cannot be added to all of them. It is added to the cells that some block marked. A cell
is released only if its noisy count reaches the threshold T (Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim
and Stemmer 2016). Noise Z is discrete Gaussian of scale sigma.

Why this is (epsilon, delta)-DP
-------------------------------
Let X and X' be neighbours, under any adjacency for which one block changes. That block can lose up to k cells and mark
up to k others. So at most 2k counts move, each by 1, and the l2 sensitivity is sqrt(2k).

*Padding.* Let V be the cells that only X' has, W those that only X has: at most k each, all marked by the changed block
alone. Let M~ add noise to the counts of **all** cells that X or X' has, those with count 0 included, before it applies
the threshold. M~ is the Gaussian mechanism on vectors at l2 distance at most sqrt(2k), then post-processing:
k/sigma**2-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4), also together with whatever later steps compute from its
output and the records at costs of their own. Let M~ with these be (epsilon, delta_0)-DP.

*Cells that the neighbour lacks.* Let E be an event for M(X) and what follows, and G the part of it in which no cell of
V or W was released. M(X) cannot release a cell of V. It releases one of W, whose counts are 1, with probability at most
``k P(Z >= T - 1)``. On G, M(X) is M~(X), unless M~(X) releases a cell of V, which has probability at most
``k P(Z >= T)``. And M(X') is at least as likely to be in G as M~(X'), which can lose by releasing a cell of W. So

    P(M(X) in E) <= k P(Z >= T - 1) + P(M(X) in G)
                 <= k P(Z >= T - 1) + k P(Z >= T) + P(M~(X) in G)
                 <= k P(Z >= T - 1) + k P(Z >= T) + delta_0 + e^epsilon P(M~(X') in G)
                 <= eta + delta_0 + e^epsilon P(M(X') in E),      where  2 k P(Z >= T - 1) <= eta.

Both directions are in it: a record can open a cell (V), and it can empty one (W). Without a threshold, a cell of W
tells X from X' for certain. There is no pure epsilon and no rho with this: thresholds have a delta.

*The tail of discrete noise.* P(Z >= T) is ``sum_{z >= T} exp(-z**2/(2 sigma**2))`` over the same sum over all integers.
Where sigma is small both are summed; above, ``P(Z >= T) <= P(N(0, sigma**2) >= T - 1)`` (Canonne, Kamath and Steinke
2020, Proposition 25). Continuous noise's quantile, rounded up, would be too small by up to 1.

*Marks that only one of the two has.* Where neighbours differ by one record more, and records mark cells themselves, X'
has the marks of X and up to k others. So at most k counts move, the l2 sensitivity is sqrt(k), and one of V and W is
empty. From X to X' the bound is ``k P(Z >= T)``, from X' to X it is ``k P(Z >= T - 1)``, without the factors of 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import exact_fraction
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.sensitive import Noise

_SUMMED = 1000.0  # scales up to which tails are summed term by term


@dataclass(frozen=True)
class StabilityHistogram:
    """Noise and threshold, from public numbers.

    Attributes
    ----------
    scale : float
        sigma of the discrete Gaussian noise in each marked cell.
    threshold : int
        T: cells with noisy counts below it are not released.
    """

    scale: float
    threshold: int

    @property
    def noise(self) -> Noise:
        """The noise of the released counts."""
        return Noise("discrete_gaussian", self.scale)


def stability_histogram(n_marks: int, rho: float | Fraction, eta: float, changes: int = 2) -> StabilityHistogram:
    """Noise that costs `rho` and a threshold that costs `eta`; see the module.

    Parameters
    ----------
    n_marks : int
        k: a block marks at most so many cells.
    rho : float or Fraction
        Positive.
    eta : float
        In (0, 1): what the threshold adds to delta.
    changes : {2, 1}
        Whether k marks take the place of k others between neighbours, or one of the two has k marks more.

    Raises
    ------
    ValueError
        If the noise would bury any number of blocks.

    Examples
    --------
    >>> stability_histogram(1, 0.5, 1e-6)
    StabilityHistogram(scale=1.4142135623730951, threshold=9)
    """
    # sqrt(2k) is not a float, its square is: sigma for sensitivity 1 and rho/(2k) is the same.
    moved = int(changes) * int(n_marks)  # NumPy's would go round
    (scale,) = gaussian_scales([1.0], exact_fraction(rho) / moved)
    return StabilityHistogram(scale, 1 + tail_quantile(scale, eta / moved))


def tail_quantile(scale: float, probability: float) -> int:
    """A small t >= 1 with ``P(Z >= t) <= probability`` for discrete Gaussian noise Z.

    Parameters
    ----------
    scale : float
        Positive.
    probability : float
        In (0, 1).

    Examples
    --------
    >>> tail_quantile(14.0, 1e-8), tail_quantile(1e6, 1e-8)
    (80, 5612003)
    """
    # Lowered by more than the rounding errors below. Larger quantiles are private too.
    most = math.log(probability) - 1e-9
    if scale > _SUMMED:
        from scipy.stats import norm  # half a second, which a plan need not take

        return max(1, math.ceil(scale * float(norm.isf(math.exp(most))) * (1.0 + 1e-12)) + 1)
    # P(Z >= t) <= exp(-t**2/(2 scale**2)) (ibid., Corollary 17) says where to end; what is beyond is nothing beside it.
    end = math.ceil(scale * (math.sqrt(-2.0 * most) + 9.0)) + 9
    log_terms = -0.5 * (np.arange(end, dtype=np.float64) / scale) ** 2
    tails = np.logaddexp.accumulate(log_terms[::-1])[::-1]
    return max(1, int(np.argmax(tails - np.logaddexp(tails[0], tails[1]) <= most)))


def marked_cells(keys: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The marked cells in lexicographic order, and by how many blocks each is marked: exact, **to be noised**.

    Parameters
    ----------
    keys : ndarray of int64, shape (marks, q)
    blocks : ndarray of int, shape (marks,)
        Whose mark each is. Marks of one block in one cell count once.

    Returns
    -------
    cells : ndarray of int64, shape (m, q)
    counts : ndarray of int64, shape (m,)

    Examples
    --------
    >>> marked_cells(np.array([[7], [7], [7], [-2]]), np.array([0, 0, 1, 1]))
    (array([[-2],
           [ 7]]), array([1, 2]))
    """
    once = np.unique(np.column_stack([keys, blocks]), axis=0)
    cells, counts = np.unique(once[:, :-1], axis=0, return_counts=True)
    return cells, counts.astype(np.int64)


def released_cells(
    cells: np.ndarray, counts: np.ndarray, histogram: StabilityHistogram, rng: np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Cells whose noisy numbers of blocks reach the threshold, in lexicographic order, and these numbers.

    Parameters
    ----------
    cells, counts
        Of :func:`marked_cells`, from at most `n_marks` marks for each block.
    histogram : StabilityHistogram
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Notes
    -----
    Privacy: see the module. The order is that of the keys, and so says nothing about counts.
    """
    noisy = samplers.discrete_gaussian(counts, histogram.scale, rng=rng)
    kept = noisy >= histogram.threshold
    return cells[kept], noisy[kept]
