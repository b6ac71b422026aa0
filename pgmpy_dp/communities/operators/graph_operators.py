"""The questions to a graph whose edges are private: sums over neighbours, randomised answers, a choice of labels.

Sums, answers and labels are not kept: a plan makes what it releases from them, and they take memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from pgmpy_dp.checks import checked_number
from pgmpy_dp.communities.operators.choice import exponential_below, flip_rate, shortened
from pgmpy_dp.communities.operators.graph import (
    GraphFacts,
    PrivateGraph,
    adjacency_matrix,
    checked_marks,
    edge_count,
    neighbour_sums,
)
from pgmpy_dp.communities.operators.sign_sampling import SignLaw, sample_signs
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import bulk
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.noise.measures import pure_epsilon
from pgmpy_dp.private.noise.subsampling import poisson_sample
from pgmpy_dp.private.operators.operator_base import Operator, SumOperator
from pgmpy_dp.private.sensitive import Noise, Sensitive

_BATCH = 1 << 22  # coins thrown at once
_DIGITS = 21  # of an edge's weight, in binary: epsilon is met to 1e-6
_SUMS_MOVED = (2.0, root_up(Fraction(2)))  # l1 and l2


def community_law(n: int, degree: float, cost: PureDP | ZCDP, share: Fraction | float) -> SignLaw:
    """Weights ``exp(epsilon score/2)`` of labellings in integers, see :class:`CommunityLabels`.

    Notes
    -----
    An edge adds 1 to the score where its ends agree and takes 1 from it where they do not: of the two weights the ratio
    is exp(epsilon), here a number between 1 and that. With c ones, ``sum over pairs x_i x_j = ((n - 2 c)**2 - n)/2``.
    So the score's other term weighs ``exp(epsilon d c (n - c)/n)``, up to a factor that all labellings share. It may be
    rounded at will, as edges have no part in it; it is, by less than ``2**-60`` of it, at any epsilon.

    Examples
    --------
    >>> law = community_law(4, 2.0, PureDP(1.0), 1)
    >>> m, e = law.agree
    >>> 2.71828 < m * 2.0**e < 2.7182819, law.sizes[0] == (2**63, -63), law.sizes[1] == law.sizes[3]
    (True, True, True)
    """
    epsilon = pure_epsilon(cost, Fraction(share), 8)  # the exponential mechanism is epsilon**2/8-zCDP
    rate = Fraction(epsilon) * Fraction(degree) / n
    sizes = [exponential_below(rate * c * (n - c)) for c in range(n // 2 + 1)]
    return SignLaw(shortened(*exponential_below(epsilon), _DIGITS), (*sizes, *sizes[: (n + 1) // 2][::-1]))


@dataclass(frozen=True, eq=False, repr=False)
class ManySums(AdditiveNoise):
    """The same law as its base, drawn for very many cells at once where that is quicker."""

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Noisy arrays, one for each statistic."""
        return [bulk.with_noise(item.value, noise, rng) for item, noise in zip(self.exact, self.noise, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class RandomisedResponse(Mechanism):
    """The bit of each pair of vertices, flipped with probability `rate` by a coin of its own.

    Attributes
    ----------
    exact : csr_array, shape (n, n)
        Adjacency matrix.
    rate : float
        In (0, 1/2], a multiple of 1/RATE_UNIT.

    Notes
    -----
    Privacy: coins are independent and exact (:func:`~pgmpy_dp.private.noise.subsampling.poisson_sample`), so the answer
    of one pair is ``log((1 - rate)/rate)``-DP, and no other answer depends on it.
    """

    exact: sp.csr_array
    rate: float
    noise: tuple[Noise, ...] = ()

    name = "randomised_response"

    def draw(self, rng: np.random.Generator | None) -> np.ndarray:
        """Answers, shape (n, n): symmetric truth values with a zero diagonal."""
        n = self.exact.shape[0]
        answers = np.zeros((n, n), dtype=bool)
        rows = max(1, _BATCH // n)
        for start in range(0, n, rows):
            batch = answers[start : start + rows]
            batch[:] = self.exact[start : start + rows].toarray()
            flat = batch.reshape(-1)
            flipped = poisson_sample(flat.size, self.rate, rng=rng)
            flat[flipped] = ~flat[flipped]
        upper = np.triu(answers, 1)
        return upper | upper.T


@dataclass(frozen=True, eq=False, repr=False)
class CommunityChoice(Mechanism):
    """A labelling of the vertices by two labels, with probability proportional to its weight, exactly.

    Notes
    -----
    Privacy: :class:`CommunityLabels` has the proof; :mod:`pgmpy_dp.communities.operators.sign_sampling`
    says how it is drawn, with integers.
    """

    exact: sp.csr_array
    law: SignLaw
    noise: tuple[Noise, ...] = ()

    name = "exponential"

    def draw(self, rng: np.random.Generator | None) -> np.ndarray:
        """Labels, shape (n,)."""
        upper = sp.triu(self.exact, 1).tocoo()
        return sample_signs(list(zip(upper.row.tolist(), upper.col.tolist(), strict=True)), self.law, rng)


@dataclass(frozen=True, slots=True)
class EdgeCount(SumOperator[int]):
    """A noisy number of edges.

    Returns
    -------
    int
        It may be negative.

    Notes
    -----
    Privacy: under ``edge`` the number moves by 1. Laplace noise of scale ``1/(s epsilon)`` or Gaussian noise of scale
    ``sqrt(1/(2 s rho))`` costs the share s.
    """

    name = "edge_count"
    asks = GraphFacts
    moved = staticmethod(lambda: (1.0, 1.0))

    def checked(self, facts: GraphFacts) -> EdgeCount:
        return EdgeCount()

    def _exact(self, data: PrivateGraph, facts: GraphFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        return [edge_count(adjacency_matrix(data))]

    def answered(self, drawn: list[np.ndarray]) -> int:
        return int(drawn[0][0])


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourSums(SumOperator[np.ndarray]):
    """The noisy sum of the marks of each vertex's neighbours.

    Parameters
    ----------
    marks : ndarray of int, shape (n, columns)
        Public. Each row is one sign with zeros: signs of two communities in one column, or indicators of any number of
        communities in as many.

    Returns
    -------
    ndarray of int64, shape (n, columns)

    Raises
    ------
    ValueError
        For marks of another kind, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* Under ``edge`` the sums move by at most 2 in l1 and sqrt(2) in l2 norm, for any number of
        communities (:func:`~pgmpy_dp.communities.operators.graph.neighbour_sums`).

        *Guarantee.* The share s of the cost: Laplace noise of scale ``2/(s epsilon)`` (Chen et al. 2023, Algorithm
        5.13) or Gaussian noise of variance ``1/(s rho)``.

        *Side channels.* Running time depends on the number of edges.

    Examples
    --------
    >>> NeighbourSums.noise_of(PureDP(1.0), Fraction(1, 4))
    Noise(distribution='discrete_laplace', scale=8.0)
    """

    marks: np.ndarray

    name = "neighbour_sums"
    asks = GraphFacts
    kept = False
    moved = staticmethod(lambda: _SUMS_MOVED)
    law = ManySums

    def checked(self, facts: GraphFacts) -> NeighbourSums:
        return NeighbourSums(checked_marks(self.marks, facts.n))

    def _exact(self, data: PrivateGraph, facts: GraphFacts, mechanism: ManySums, coins: Coins) -> list[Sensitive]:
        return [neighbour_sums(adjacency_matrix(data), self.marks)]


@dataclass(frozen=True, slots=True)
class EdgeAnswers(Operator[np.ndarray]):
    """Answers of all pairs of vertices to the question whether they are joined, each by a coin of its own.

    Returns
    -------
    ndarray of bool, shape (n, n)
        Symmetric, zero on the diagonal; each pair's bit is wrong with probability :meth:`rate`.

    Notes
    -----
    Privacy
        *Sensitivity.* An edge is one bit, and one independent coin decides whether the bit is told as it is.

        *Guarantee.* A bit flipped with probability ``1/(1 + exp(epsilon'))``, rounded up to a multiple of 2**-16, is
        epsilon'-DP: the share of epsilon, or ``epsilon' = sqrt(2 s rho)``, hence the share of rho.

        *Source.* Warner 1965; for graphs: Karwa, Slavković and Krivitsky 2014.

        *Side channels.* Time and memory grow with the square of the number of vertices.
    """

    name = "randomised_response"
    asks = GraphFacts
    kept = False

    def checked(self, facts: GraphFacts) -> EdgeAnswers:
        return EdgeAnswers()

    def mechanism(self, facts: GraphFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> RandomisedResponse:
        return RandomisedResponse(None, self.rate(cost, share))

    def _exact(self, data: PrivateGraph, facts: GraphFacts, mechanism: Mechanism, coins: Coins) -> sp.csr_array:
        return adjacency_matrix(data)

    @staticmethod
    def rate(cost: PureDP | ZCDP, share: Fraction | int) -> float:
        """Probability with which an answer is the wrong one.

        Examples
        --------
        >>> EdgeAnswers.rate(PureDP(2.0), Fraction(1, 2)), EdgeAnswers.rate(ZCDP(0.5), 1)
        (0.268951416015625, 0.268951416015625)
        """
        return flip_rate(pure_epsilon(cost, Fraction(share)))


@dataclass(frozen=True, slots=True)
class CommunityLabels(Operator[np.ndarray]):
    """Labels of two communities; labellings with more edges inside the communities are more likely.

    Parameters
    ----------
    degree : float
        Public, not negative: average degree d, which says how much balance counts.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 or 1.

    Raises
    ------
    TypeError, ValueError
        For what is no such degree.

    Notes
    -----
    Privacy
        *Sensitivity.* The labelling x has the weight ``W(x) = f(c) B**k``, where k edges have ends that agree, c
        vertices have a one, and f is any positive function that the edges have no part in. One edge more multiplies
        W(x) by B, where its ends agree, or by 1; so it multiplies the sum of all weights by a number from 1 to B.

        *Guarantee.* So no probability changes by more than a factor B, in either direction. B is an integer times a
        power of two with ``1 <= B <= exp(epsilon')``
        (:func:`~pgmpy_dp.communities.operators.choice.exponential_below`), at any epsilon': exactly epsilon'-DP. The
        logarithm of the change ranges over an interval of that length, which gives ``epsilon'**2/8``-zCDP (Cesar and
        Rogers 2021). So epsilon' is the share of epsilon, or ``sqrt(8 s rho)``.

        *Source.* McSherry and Talwar 2007; score: Chen et al. 2023, Algorithm 5.19, without its split and vote. Their
        score ``sum over pairs (A_ij - d/n) x_i x_j`` has sensitivity 1 and the weight ``exp(epsilon' score/2)``.

        *Exactness.* Drawn with integers from bits of the operating system: no floating point, no Markov chain, whose
        law after finitely many steps would be another one, with no guarantee.

        *Side channels.* Above 22 vertices the running time depends on the graph, and doubles with each edge that widens
        it; memory does not. A refusal because of the width would be an output that one edge decides, so there is none:
        the public number of vertices decides what is tried.
    """

    degree: float

    name = "community_choice"
    asks = GraphFacts
    kept = False

    def checked(self, facts: GraphFacts) -> CommunityLabels:
        return CommunityLabels(checked_number("degree", self.degree, positive=False))

    def mechanism(self, facts: GraphFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> CommunityChoice:
        law = community_law(facts.n, self.degree, cost, share)
        return CommunityChoice(None, law)

    def _exact(self, data: PrivateGraph, facts: GraphFacts, mechanism: Mechanism, coins: Coins) -> sp.csr_array:
        return adjacency_matrix(data)
