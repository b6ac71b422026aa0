"""Whether a chain of second order would say more than one of first order, before its table is paid for.

A first-order chain leaves j with the probabilities P_jk, whatever was before j. What is asked of the records is how far
their triples are from that: the distance D of :func:`~pgmpy_dp.sequences.operators.sequences.order_departure`. Chance
makes it positive for a first-order chain too, in two ways: triples are few, and P was learned from a noisy table. Noisy
numbers tell how much, and so give the threshold. What a second order would gain depends on what the noise leaves of the
table of triples, and is compared with what the same budget does for the pairs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

_CERTAIN = 3.0
"""Standard deviations of the distance that it has to be above what chance makes."""


@dataclass(frozen=True)
class OrderTest:
    """What was found, in users.

    Attributes
    ----------
    order : int
        1 or 2.
    distance : float
        Noisy: users' shares of triples in other cells than a first-order chain has them.
    expected : float
        What chance makes of it, if the chain is of first order.
    deviation : float
        Standard deviation of the distance, with its noise.
    gain, cost : float
        Nats in all that the table of triples is expected to give, and that a second table of pairs would.
    """

    order: int
    distance: float
    expected: float
    deviation: float
    gain: float
    cost: float

    def to_dict(self) -> dict[str, float]:
        """The attributes as a dict."""
        return asdict(self)


def order_test(
    transition: np.ndarray,
    pairs: np.ndarray,
    pair_variance: float,
    rest_variance: float,
    distance: float,
    total: float,
    effective: float,
    distance_variance: float,
) -> OrderTest:
    """Compare a measured departure from the first order with what chance makes of it.

    Parameters
    ----------
    transition : ndarray of shape (K, K)
        P, the learned transition probabilities.
    pairs : ndarray of shape (K, K)
        Expected numbers of pairs by the learned model, in users, positive.
    pair_variance, rest_variance : float
        Of the noise in a cell of the table of pairs, and in one of what would be measured next.
    distance, total, effective : float
        D, the number of triples, and how many independent ones have their chance, in users, noisy.
    distance_variance : float
        Of the noise in D.

    Returns
    -------
    OrderTest

    Notes
    -----
    *Expected.* With m_ijk = N q_ij P_jk, N the total and q the share of the pairs (i, j), a cell's deviation has the
    variance of ``effective q_ij P_jk (1 - P_jk)`` independent triples and that of the error of P_jk, times the row's
    total squared. The latter is of a table of pairs with noise of variance v, whose cells are shrunk to a model that is
    wrong by as much as they are large: ``m**2 (v + m)/(m**2 + v + m)``. D is half the sum of absolute deviations, and
    normal ones have mean sqrt(2/pi) deviations.

    *Deviation.* One of the effective triples moves D by at most 1, hence the variance is at most a quarter of their
    number (Efron and Stein 1981), and that of the noise. Laplace noise alone is above three of its deviations in .7 %
    of tests, Gaussian noise in .13 %: so often at most is a first-order chain taken for one of second order where the
    expected distance is right.

    *Gain.* What of D is above chance is spread over the cells as they are large, so that a cell deviates by ``r m`` for
    a known r. A measured table of triples, shrunk by that, explains ``(r m)**4/((r m)**2 + noise)/(2 m)`` nats.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> pairs = np.array([[6000.0, 700.0], [600.0, 2700.0]])
    >>> order_test(P, pairs, 50.0, 50.0, 100.0, 8000.0, 4000.0, 900.0).order
    1
    >>> order_test(P, pairs, 50.0, 50.0, 900.0, 8000.0, 4000.0, 900.0).order
    2
    """
    total = max(total, 1.0)
    effective = min(max(effective, 1.0), total)
    row = pairs.sum(axis=1, keepdims=True)
    shares = pairs / pairs.sum()
    error = _shrunk(pairs, pair_variance + pairs) / row**2
    chance = effective * shares[:, :, None] * (transition * (1.0 - transition))[None]
    wrong = (total * shares[:, :, None]) ** 2 * error[None]
    expected = 0.5 * math.sqrt(2.0 / math.pi) * float(np.sqrt(chance + wrong).sum())
    deviation = math.sqrt(effective / 4.0 + distance_variance)
    expected_triples = total * shares[:, :, None] * transition[None]
    above = math.sqrt(max(distance**2 - expected**2, 0.0)) if distance > 0 else 0.0
    spread = (2.0 * above / total * expected_triples) ** 2 * (math.pi / 2.0)
    noise = rest_variance + effective / total * expected_triples
    gain = 0.5 * float((spread / expected_triples * (spread / (spread + noise))).sum())
    both = 1.0 / (1.0 / pair_variance + 1.0 / rest_variance)
    cost = 0.5 * float(((_shrunk(pairs, pair_variance) - _shrunk(pairs, both)) / pairs).sum())
    second = distance - _CERTAIN * deviation > expected and gain > cost
    return OrderTest(2 if second else 1, float(distance), expected, deviation, gain, cost)


def _shrunk(size: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """Error variance of cells that are shrunk to what may be wrong by their size."""
    return size**2 * variance / (size**2 + variance)
