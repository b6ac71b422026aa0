"""Blocks that agree as a whole: a test and a mean whose noise does not grow with the number of cells of a grid.

A grid cuts clusters of d-dimensional points into up to 2**d cells. This asks instead how many blocks are within a
distance r of each other in all k centres, which has no cells (after FriendlyCore: Tsfadia, Cohen, Kaplan, Mansour and
Stemmer 2022; and k-tuple clustering: Cohen, Kaplan, Mansour, Stemmer and Tsfadia 2021).

M blocks, each with a tuple of k centres, or none where two of its centres are within 4r. Two blocks are *friends* where
each centre of one is within r of a centre of the other (which is then unique, and a matching); f_i is the number of
friends of block i, itself included. With lo = floor(2M/3) + 1 and H >= 1, block i has the weight w_i = clip(f_i - lo,
0, H), and the *core* are the blocks of positive weight. h is the largest number such that h blocks have h friends or
more.

Privacy
-------
Let X and X' be neighbours: block j alone differs, under any adjacency for which that holds.

*Core blocks have a common frame.* A core block of X or of X' has at least lo friends among the M - 1 blocks other than
j, as 1 of its f_i >= lo + 1 can be j. Three such blocks, of X or of X', have at least 3 lo - 2 (M - 1) > 0 friends in
common. So any two of them are within 2r in all centres by a matching, which is unique
as a block's own centres are more than 4r apart; and for any three of them the matchings agree with each other, because
they all go through the same friend. All core blocks of X and X' can thus be put in one order of centres.

*The test.* Without j, h moves by at most 1: each other block loses at most one friend, so from h blocks with h friends
at least h - 1 remain with at least h - 1. By the same argument the other way, h(X) and h(X') differ by at most 1. The
noisy h + Z is released, and passes where it is at least tau. With h0 = tau - 1 - q and P(Z >= q) <= eta, call a data
set good where h > h0, which is above lo. If X or X' is not good, then both have h <= h0 + 1 = tau - q, and pass with
probability at most P(Z >= q) <= eta; all other outcomes are functions of the noisy h alone.

*The mean.* Let both be good. In a good data set at least h0 blocks have at least h0 friends, so the sum W of weights
is at least ``h0 min(h0 - lo, H) = h0 H`` with H = h0 - lo. Let A be the weighted mean of the tuples, in the common
frame. As sum_i w_i (t_i - A) = 0,

    A' - A = (sum_{i != j} (w'_i - w_i)(t_i - A) + w'_j (t'_j - A) - w_j (t_j - A)) / W'.

Only core blocks occur, each within 2r of all others and so of A in each of k centres: norms are at most 2r sqrt(k).
Friends of the others change by at most 1, and so do their weights: the l2 norm is at most ``2r sqrt(k) ((M - 1) + 2H)
/ (h0 H)``, to which rounding A to a grid adds at most sqrt(k d) units, and errors of floating point less than as much
again. Discrete Gaussian noise on it costs rho. The k noisy rows are put in lexicographic order: independent noises of
one law make this a function of A up to its order of centres, so which block the frame was taken from does not show.

*Together.* If X or X' is not good, an event is split into outcomes that pass, of probability at most eta, and others,
which cost what the test costs. If both are good, costs add up. So delta = delta_0 + eta, and later steps compose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import LARGEST_SCALE, root_up

__all__ = ["Agreement", "FriendTest", "agreeing_mean", "friend_test", "friends"]

_PASS = 0.9  # tau: this part of the blocks has to agree, about
_SLACK = 1.0 + 1e-6  # above the rounding errors of distances


@dataclass(frozen=True)
class FriendTest:
    """Numbers of the test, from public ones.

    Attributes
    ----------
    n_blocks : int
    threshold : int
        tau.
    low, height : int
        lo and H.
    sensitivity : float
        Of the mean, l2, in units of 2r sqrt(k).
    """

    n_blocks: int
    threshold: int
    low: int
    height: int
    sensitivity: float


def friend_test(n_blocks: int, margin: int) -> FriendTest | None:
    """The test for so many blocks and a noise that reaches `margin` (q) rarely; None where they are too few.

    Examples
    --------
    >>> friend_test(600, 80)  # doctest: +ELLIPSIS
    FriendTest(n_blocks=600, threshold=540, low=401, height=58, sensitivity=0.026857...)
    >>> friend_test(200, 80) is None
    True
    """
    threshold = math.ceil(_PASS * n_blocks)
    low = 2 * n_blocks // 3 + 1
    least = threshold - 1 - margin
    height = least - low
    if height < 1:
        return None
    return FriendTest(n_blocks, threshold, low, height, (n_blocks - 1 + 2 * height) / (least * height))


@dataclass(frozen=True)
class Agreement:
    """What the test let out.

    Attributes
    ----------
    noisy : int
        About how many blocks agree.
    centres : ndarray of int64, shape (k, d), or None
        In units, noisy; None where the test did not pass.
    scale : float
        Of the noise of the centres, in units.
    """

    noisy: int
    centres: np.ndarray | None
    scale: float


def agreeing_mean(
    tuples: np.ndarray,
    radius: float,
    test: FriendTest,
    test_scale: float,
    rho: Fraction,
    unit: float,
    seed: np.random.Generator | None = None,
) -> Agreement:
    """The noisy number of agreeing blocks, and the noisy mean of their centres where that passes.

    Parameters
    ----------
    tuples : ndarray, shape (M, k, d)
        Centres of each block; NaN where it has none.
    radius : float
        r.
    test : FriendTest
    test_scale : float
        Of the noise of the test.
    rho : Fraction
        Cost of the mean.
    unit : float
        Of the grid of the means.
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.
    """
    k, d = tuples.shape[1:]
    reach = 2.0 * radius * math.sqrt(k) * test.sensitivity / unit
    scale = root_up(Fraction(reach * _SLACK + 2.0 * math.sqrt(k * d)) ** 2 / (2 * rho))
    if scale > LARGEST_SCALE:  # of public and noisy numbers; an error would come after the charge
        return Agreement(0, None, 1.0)
    agree = friends(tuples, radius)
    counts = agree.sum(axis=1)
    ranked = np.sort(counts)[::-1]
    index = int((ranked >= np.arange(1, len(ranked) + 1)).sum())
    noisy = int(samplers.discrete_gaussian(np.array([index]), test_scale, seed=seed)[0])
    weights = np.clip(counts - test.low, 0, test.height)
    if noisy < test.threshold or not weights.any():  # no weight: not good, its chance to pass is in delta
        return Agreement(noisy, None, scale)
    core = np.flatnonzero(weights)
    reference = tuples[core[0]]
    steps = np.zeros((k, d))
    for i in core:
        squares = ((reference[:, np.newaxis] - tuples[i][np.newaxis]) ** 2).sum(axis=2)
        steps += weights[i] * (tuples[i][squares.argmin(axis=1)] - reference)
    mean = reference + steps / weights[core].sum()
    exact = np.clip(np.rint(mean / unit), -(2.0**60), 2.0**60).astype(np.int64)
    released = samplers.discrete_gaussian(exact, scale, seed=seed)
    return Agreement(noisy, released[np.lexsort(released.T[::-1])], scale)


def friends(tuples: np.ndarray, radius: float) -> np.ndarray:
    """Who is whose friend, shape (M, M), exact: **to be noised**; a block without a tuple is nobody's, not its own."""
    m, k = tuples.shape[:2]
    with np.errstate(all="ignore"):
        finite = np.isfinite(tuples).all(axis=(1, 2))
        own = np.sqrt(((tuples[:, :, np.newaxis] - tuples[:, np.newaxis]) ** 2).sum(axis=3))
        own[:, np.arange(k), np.arange(k)] = np.inf
        valid = finite & (own.min(axis=(1, 2)) > 4.0 * radius * _SLACK)
    agree = np.zeros((m, m), dtype=bool)
    there = np.flatnonzero(valid)
    points = tuples[there]
    for place, i in enumerate(there):
        # Every centre of i has one of each other block within r; the other's are too far apart for two to share it.
        with np.errstate(all="ignore"):
            squares = np.stack([((points - centre) ** 2).sum(axis=2).min(axis=1) for centre in points[place]])
        agree[i, there] = (squares <= radius**2).all(axis=0)
    return agree & agree.T
