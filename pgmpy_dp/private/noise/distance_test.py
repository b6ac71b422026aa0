"""The mode of votes, released only where it is far from changing: propose-test-release by distance to instability.

M voters vote, or have a null vote, which counts for no option; between neighbours at most one vote changes, null
included. With c1 >= c2 the two highest counts (0 for an option that nobody voted for),

    d = ceil((c1 - c2) / 2) - 1,        the mode is released iff  d + Z >= k,

with Z discrete Laplace noise and k the smallest integer above ln(1/delta)/epsilon. The noisy distance is released in
any case. The argument is that of Dwork and Lei (2009) in the form of Vadhan (2017, Proposition 3.4).

Why this is (epsilon, delta)-DP
-------------------------------
*d moves by at most 1.* Changing a vote moves each of c1 and c2 by at most 1, hence c1 - c2 by at most 2, and
ceil((x + 2)/2) = ceil(x/2) + 1. So the noisy distance alone is epsilon-DP for noise of scale 1/epsilon.

*The mode changes only where d <= 0.* If c1 - c2 >= 3, then after one change the mode still has at least one vote more
than any other option. So if neighbours have different modes (ties are broken by a fixed order; all votes null is a
mode of its own, with c1 = c2 = 0), both have c1 - c2 <= 2, that is d <= 0.

*Noise exceeds the threshold with probability at most delta.* Discrete Laplace noise of scale b has
P(Z = z) = (1 - a)/(1 + a) a^abs(z) with a = exp(-1/b), so for an integer k >= 1

    P(Z >= k) = a^k / (1 + a) < a^k <= delta        for k >= b ln(1/delta),

and this is the probability of a release where d = 0; it is smaller for d < 0. For continuous noise the tail is
exp(-t/b)/2, so that ln(1/(2 delta)) would do; for discrete noise it does not: with a^k just below 2 delta the tail is
2 delta/(1 + a) > delta.

*Together.* Neighbours with the same mode: the outcome is a function of the noisy distance and of that mode. Neighbours
with different modes: an event E is split into outcomes with a mode, of probability at most delta, and outcomes without,
which are functions of the noisy distance, so P(E) <= exp(epsilon) P'(E) + delta.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import laplace_scales
from pgmpy_dp.private.sensitive import Noise


@dataclass(frozen=True)
class DistanceTest:
    """Noise and threshold of a test, from public numbers.

    Attributes
    ----------
    scale : float
        Of the discrete Laplace noise: 1/epsilon, rounded up.
    threshold : int
        k: the mode is released iff the noisy distance is at least this.
    """

    scale: float
    threshold: int

    @property
    def noise(self) -> Noise:
        """The noise of the released distance."""
        return Noise("discrete_laplace", self.scale)


def distance_test(epsilon: float | Fraction, delta: float) -> DistanceTest:
    """The test that is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float or Fraction
        Positive.
    delta : float
        In (0, 1).

    Raises
    ------
    ValueError
        If the noise would bury any number of votes.

    Examples
    --------
    >>> distance_test(1.0, 1e-6)
    DistanceTest(scale=1.0, threshold=14)
    """
    (scale,) = laplace_scales([1.0], epsilon)
    # The bound is raised by more than its rounding error. Larger thresholds are private too.
    return DistanceTest(scale, math.floor(scale * math.log(1.0 / delta) * (1.0 + 1e-12)) + 1)


def mode_and_distance(votes: Sequence[Hashable]) -> tuple[Any, int]:
    """The option with the most votes (the smallest of several) and d, both exact: **to be noised**.

    Parameters
    ----------
    votes : sequence
        Of one type with an order; None is a null vote. Where all are null, so is the mode.

    Examples
    --------
    >>> mode_and_distance(["a", "b", "b", "b"]), mode_and_distance(["b", "a"]), mode_and_distance([None])
    (('b', 0), ('a', -1), (None, -1))
    """
    counted = Counter(vote for vote in votes if vote is not None)
    ranked = [*sorted(counted.items(), key=lambda item: (-item[1], item[0])), (None, 0), (None, 0)]
    return ranked[0][0], -(-(ranked[0][1] - ranked[1][1]) // 2) - 1


def released_mode(mode: Any, distance: int, test: DistanceTest, rng: np.random.Generator | None) -> tuple[int, Any]:
    """The noisy distance, and the mode where that passes the test, else None; from exact ones.

    Notes
    -----
    Privacy: of :func:`mode_and_distance`, (epsilon, delta)-DP with respect to one vote, for the test of
    :func:`distance_test`; see the module. A seed is for tests and benchmarks only: the result is then not private.
    """
    noisy = int(samplers.discrete_laplace(np.array([distance]), test.scale, rng=rng)[0])
    return noisy, mode if noisy >= test.threshold else None
