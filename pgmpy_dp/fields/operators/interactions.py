"""Sums over records of centred interactions of variables with any numbers of states, in exact integers.

A record with state a of variable i has the vector ``u_i = c_i (k_i e_a - 1)``: k_i the number of states, e_a one 1 at
a, c_i a public whole number. Its entries sum to 0 over the states, and so do the rows and columns of ``u_i u_j^T``:
what the single variables say is not in the interactions. With ``L = c_i k_i`` the same for all variables, equal noise
in all cells is equal noise in the centred indicators ``e_a - 1/k_i`` and in their products.

Everything follows from the counts of the single states and of pairs of states. With few states these are counts of bits
of words of 64 records, with many one table per pair.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.checks import exact_integer
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import count, weighted_sum
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import root_up, round_up
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Sensitive

Pairs = tuple[tuple[int, int], ...]

_LARGEST_UNIT = 1 << 12  # of L: beyond it c_i is rounded down, so that sums over 2**38 records fit 64 bits
_WORDS = 1 << 10  # as in parities.py
_SHARED_BITS = 38  # of what a unit adds to a sum of products, so that sums of 2**25 units fit 64 bits
_STATES_AS_BITS = 64  # mean number of cells of a pair from which a table of it is counted faster than its bits


@dataclass(frozen=True)
class InteractionUnits:
    """The whole numbers c_i that bring variables with different numbers of states to one scale.

    Parameters
    ----------
    cardinalities : tuple of int

    Attributes
    ----------
    multipliers : tuple of int
        c_i = L/k_i, where L, the least common multiple of all k_i, is at most 2**12; else the whole number below
        2**12/k_i, and at least 1.
    largest : int
        The largest c_i k_i, which is L in the first case.

    Examples
    --------
    >>> InteractionUnits((3, 3, 3)).multipliers, InteractionUnits((2, 3, 4)).multipliers
    ((1, 1, 1), (6, 4, 3))
    """

    cardinalities: tuple[int, ...]

    @property
    def multipliers(self) -> tuple[int, ...]:
        unit = min(math.lcm(*self.cardinalities), _LARGEST_UNIT)
        return tuple(max(1, unit // k) for k in self.cardinalities)

    @property
    def largest(self) -> int:
        return max(c * k for c, k in zip(self.multipliers, self.cardinalities, strict=True))


def checked_pairs(pairs: Iterable[Sequence[int]], n_variables: int) -> Pairs:
    """A public family of pairs; TypeError, ValueError for any that are not i < j, each once, in lexicographic order."""
    checked = tuple((exact_integer(i), exact_integer(j)) for i, j in pairs)
    ordered = all(map(operator.lt, checked, checked[1:]))
    if not ordered or not all(0 <= i < j < n_variables for i, j in checked):
        raise ValueError(
            f"pairs must be pairs i < j of positions of the {n_variables} variables, each once, in lexicographic order"
        )
    return checked


def field_sensitivity(units: InteractionUnits, adjacency: Adjacency) -> tuple[float, float, float]:
    """Return the joint l1, l2 and l-infinity sensitivities of the sums of all u_i.

    Notes
    -----
    Let ``v_i = e_a - 1/k_i``, of l1 norm 2 A_i and squared l2 norm A_i, where ``A_i = 1 - 1/k_i``; then
    ``u_i = c_i k_i v_i`` is at most L times as long.

    * ``add_remove``: one record's vectors, (2 sum A, sqrt(sum A), max A) times (L, L, L).
    * ``replace_one``, both records inside the schema: each variable with two states or more may change, and then
      ``e_a - e_a'`` has l1 norm 2, squared l2 norm 2 and largest entry 1. One of them outside: as add_remove, which is
      less. So (2 q, sqrt(2 q), 1) times L for q such variables.

    Bounds are exact where all c_i k_i equal L, and rounded up.
    """
    a, _ = _centred(units)
    if changed_records(adjacency) == 1:
        l1, square, linf = 2 * sum(a, Fraction(0)), sum(a, Fraction(0)), max(a)
    else:
        changing = sum(k > 1 for k in units.cardinalities)
        l1, square, linf = Fraction(2 * changing), Fraction(2 * changing), Fraction(changing > 0)
    return _scaled(l1, square, linf, units.largest)


def pair_sensitivity(
    units: InteractionUnits, adjacency: Adjacency, pairs: Pairs | None = None
) -> tuple[float, float, float]:
    """Return the joint l1, l2 and l-infinity sensitivities of the sums of u_i u_j^T over pairs i < j.

    Parameters
    ----------
    units : InteractionUnits
    adjacency : Adjacency
    pairs : tuple of (i, j), i < j, optional
        A public family, fixed before the records are looked at. Default: all pairs.

    Notes
    -----
    With v and A as in :func:`field_sensitivity`, and everything in units of L**2:

    * ``add_remove``: ``v_i v_j^T`` has l1 norm 4 A_i A_j, squared l2 norm A_i A_j and entries of at most A_i A_j (as
      A_i >= 1/k_i for two states or more). Sum over pairs; the largest pair.
    * ``replace_one``, both records inside: let S be the variables that change, s of them, each with two states or
      more. A pair outside S does not move. With only i in S it moves by ``(e_a - e_a') v_j^T``: l1 norm 4 A_j, squared
      l2 norm 2 A_j, entries at most A_j. With both in S, as <v_a, v_a'> = -1/k, the squared l2 norm of
      ``v_a v_b^T - v_a' v_b'^T`` is ``2 A_i A_j - 2/(k_i k_j) = 2 (A_i + A_j - 1)``, its entries are at most
      A_i + A_j - 1, and adding its entries up gives the l1 norm ``6 (A_i + A_j - 1) + 2 abs(A_i - A_j)``. Over all
      pairs the squares add up to ``2 (s sum_j A_j - sum_S A_i - s(s-1)/2)``: of all S of size s, the one with the
      smallest A is the worst, and s takes each value. The l1 norms add up to at most ``4 s sum_j A_j + (2 s - 6) sum_S
      A_i - 3 s(s-1) + d s(s-1)``, d the largest difference of two A: worst with the largest or the smallest A.
    * ``replace_one``, one record outside: as add_remove; the larger bound counts.
    * Some of the pairs, ``add_remove``: the same sums and maximum over these pairs. ``replace_one``: by the above a
      pair of variables of two states or more moves, in squared l2 norm, by at most ``2 max(A_i, A_j)`` (as ``A_i + A_j
      - 1`` is below either), in l1 norm by the larger of ``4 max(A_i, A_j)`` and ``6 (A_i + A_j - 1) + 2 abs(A_i -
      A_j)``, with entries of at most max(A_i, A_j). Their sums over the pairs bound what any replacement does; so does
      the bound of all pairs, of which these are some; the smaller one counts. With equal numbers of states the l2 bound
      is exact for bipartite graphs, where one side changes.

    Exact, for all pairs, where all c_i k_i equal L (the l1 bound of replace_one: where also all k_i are equal), else at
    most a few percent above; rounded up.
    """
    a, spread = _centred(units)
    total = sum(a, Fraction(0))
    cross = (total**2 - sum((x * x for x in a), Fraction(0))) / 2
    second, first = sorted([Fraction(0), *a])[-2:]
    l1, square, linf = 4 * cross, cross, first * second
    if pairs is not None:
        cross = sum((a[i] * a[j] for i, j in pairs), Fraction(0))
        some = (4 * cross, cross, max((a[i] * a[j] for i, j in pairs), default=Fraction(0)))
        if changed_records(adjacency) == 2:
            both = [(max(a[i], a[j]), min(a[i], a[j])) for i, j in pairs if a[i] and a[j]]
            some = (
                max(some[0], sum((max(4 * x, 8 * x + 4 * y - 6) for x, y in both), Fraction(0))),
                max(some[1], sum((2 * x for x, _ in both), Fraction(0))),
                max(some[2], max((x for x, _ in both), default=Fraction(0))),
            )
        least, most = _scaled(*some, units.largest**2), pair_sensitivity(units, adjacency)
        return min(least[0], most[0]), min(least[1], most[1]), min(least[2], most[2])
    if changed_records(adjacency) == 2:
        changing = sorted(x for x in a if x)
        smallest, largest = Fraction(0), Fraction(0)
        for s in range(1, len(changing) + 1):
            smallest += changing[s - 1]
            largest += changing[-s]
            square = max(square, 2 * (s * total - smallest) - s * (s - 1))
            chosen = smallest if s < 3 else largest
            l1 = max(l1, 4 * s * total + (2 * s - 6) * chosen - (3 - spread) * s * (s - 1))
        if len(changing) > 1:
            linf = first
    return _scaled(l1, square, linf, units.largest**2)


def interaction_sums(
    codes: np.ndarray,
    units: InteractionUnits,
    adjacency: Adjacency,
    of: Pairs | None = None,
    weights: np.ndarray | None = None,
    grid: int = 1,
) -> tuple[Sensitive, Sensitive, Sensitive]:
    """Sums of u_i and of u_i u_j^T over records, and their number.

    Parameters
    ----------
    codes : ndarray of integers, shape (n, p)
        Column i in ``0 .. cardinalities[i] - 1``.
    units : InteractionUnits
    adjacency : Adjacency
    of : tuple of (i, j), i < j, optional
        A public family of pairs in lexicographic order. Default: all pairs.
    weights : ndarray of integers, shape (n,), optional
        For how much each record counts, in 1/`grid`, at most `grid` for all records of a unit.
    grid : int, default 1
        Sums are in units of 1/`grid`, with `grid` times the sensitivities of whole records
        (:func:`~pgmpy_dp.private.data.table.share_grid`).

    Returns
    -------
    fields : Sensitive
        The p vectors one after the other, shape (sum k_i,).
    pairs : Sensitive
        The matrices of the pairs i < j in lexicographic order, each in C order, shape (sum k_i k_j,).
    records : Sensitive
        Shape (1,); one record moves it by 1 at most under both adjacencies.

    Examples
    --------
    >>> units = InteractionUnits((2, 2))
    >>> fields, pairs, _ = interaction_sums(np.array([[0, 1], [1, 1], [1, 1]]), units, Adjacency.ADD_REMOVE)
    >>> fields.value.tolist(), pairs.value.tolist(), pairs.l2
    ([-1, 1, -3, 3], [1, -1, -1, 1], 2.0...)
    """
    cells = sum(units.cardinalities)
    flat = weighted_sum(lambda some: _sums(some, units, of), codes, weights)
    norms = field_sensitivity(units, adjacency), pair_sensitivity(units, adjacency, of), (1.0, 1.0, 1.0)
    fields, pairs, records = (
        Sensitive(value, adjacency, *(grid * norm for norm in moves))
        for value, moves in zip((flat[:cells], flat[cells:-1], flat[-1:]), norms, strict=True)
    )
    return fields, pairs, records


def _sums(codes: np.ndarray, units: InteractionUnits, of: Pairs | None) -> np.ndarray:
    """Sums of fields, then of pairs, then the number of the records, in one array."""
    sizes, c = units.cardinalities, units.multipliers
    n = len(codes)
    single = [np.bincount(codes[:, j], minlength=k).astype(np.int64, copy=False) for j, k in enumerate(sizes)]
    centred = [k * table - n for k, table in zip(sizes, single, strict=True)]
    fields = np.concatenate([m * table for m, table in zip(c, centred, strict=True)])
    parts = [np.empty(0, dtype=np.int64)]
    every = itertools.combinations(range(len(sizes)), 2) if of is None else of
    for (i, j), table in zip(every, pair_counts(codes, sizes, of), strict=True):
        # k_i k_j N(a, b) - k_i N(a) - k_j N(b) + n
        expected = (centred[i] + n)[:, None] + centred[j]
        parts.append((c[i] * c[j] * (sizes[i] * sizes[j] * table - expected)).ravel())
    return np.concatenate([fields, *parts, np.array([n], dtype=np.int64)])


def pair_counts(codes: np.ndarray, cardinalities: Sequence[int], of: Pairs | None = None) -> list[np.ndarray]:
    """Tables of counts, int64 of shape (k_i, k_j), of all pairs i < j, or of those given, in lexicographic order."""
    p = len(cardinalities)
    pairs = list(itertools.combinations(range(p), 2)) if of is None else list(of)
    if sum(cardinalities[i] * cardinalities[j] for i, j in pairs) > _STATES_AS_BITS * len(pairs):
        return [count(codes, cardinalities, pair) for pair in pairs]
    start = np.concatenate([[0], np.cumsum(cardinalities)])
    bits = _indicators(codes, cardinalities)
    tables: list[np.ndarray] = []
    for i, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        others_of_i = [j for _, j in group]
        rows = np.concatenate([np.arange(start[j], start[j + 1]) for j in others_of_i])
        later = bits[start[i + 1] :] if len(others_of_i) == p - 1 - i else bits[rows]
        both = np.zeros((cardinalities[i], len(later)), dtype=np.int64)
        for word in range(0, bits.shape[1], _WORDS):
            others = later[:, word : word + _WORDS]
            for a in range(cardinalities[i]):
                chosen = bits[start[i] + a, word : word + _WORDS]
                both[a] += np.bitwise_count(others & chosen).sum(axis=1, dtype=np.uint32)
        tables += np.split(both, np.cumsum([cardinalities[j] for j in others_of_i])[:-1], axis=1)
    return tables


def _indicators(codes: np.ndarray, cardinalities: Sequence[int]) -> np.ndarray:
    """One row of bits per state of each variable, in words of 64 records."""
    n = len(codes)
    packed = np.zeros((sum(cardinalities), 8 * -(-n // 64)), dtype=np.uint8)
    row = 0
    for j, k in enumerate(cardinalities):
        for state in range(k):
            packed[row, : -(-n // 8)] = np.packbits(codes[:, j] == state)
            row += 1
    return packed.view(np.uint64)


def _centred(units: InteractionUnits) -> tuple[list[Fraction], Fraction]:
    """A_i = 1 - 1/k_i of each variable, and the largest difference between those of variables that can change."""
    a = [1 - Fraction(1, k) for k in units.cardinalities]
    changing = [x for x in a if x] or [Fraction(0)]
    return a, max(changing) - min(changing)


def _scaled(l1: Fraction, square: Fraction, linf: Fraction, unit: int) -> tuple[float, float, float]:
    """Norms in units of `unit`, as floats that are not below them."""
    return round_up(l1 * unit), root_up(square * unit**2), round_up(linf * unit)


@dataclass(frozen=True, slots=True)
class InteractionSums(Operator[list[np.ndarray]]):
    """Noisy sums over records of centred indicators u_i = c_i (k_i e_a - 1) of states a, and of their products.

    The p fields, the pairs and the count get parts of the share in proportion to their number.

    Parameters
    ----------
    pairs : sequence of (i, j), optional
        Public: i < j, positions in the schema, in lexicographic order. Default: all pairs.
    with_count : bool
        Whether the number of records comes with them.

    Returns
    -------
    list of ndarray of int64
        The sums of all u_i, flat; of u_i u_j^T of the pairs, each in C order, flat; with the count, that too, shape
        (1,). :class:`InteractionUnits` has the c_i, which bring variables to one scale.

    Raises
    ------
    TypeError, ValueError
        For pairs that are none, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* :func:`~pgmpy_dp.fields.operators.interactions.field_sensitivity` and
        :func:`~pgmpy_dp.fields.operators.interactions.pair_sensitivity` prove it for each adjacency. With A_i = 1 -
        1/k_i and L the largest c_i k_i, ``add_remove``: fields L 2 sum A in l1, L sqrt(sum A) in l2 norm, pairs L^2
        4 sum A_i A_j and L^2 sqrt(sum A_i A_j). ``replace_one``: fields 2 q L and sqrt(2 q) L for q variables with
        two states or more, pairs as there. The count: 1 under both.

        *Guarantee.* The share s of the cost: array c gets the part w_c, in proportion to the number of its tables
        (of no pairs, 1), with Laplace noise of scale ``l1_c/(w_c s epsilon)`` or Gaussian noise of scale
        ``l2_c/sqrt(2 w_c s rho)``.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
    """

    pairs: Sequence[Sequence[int]] | None = None
    with_count: bool = False

    name = "interaction_sums"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> InteractionSums:
        pairs = None if self.pairs is None else checked_pairs(self.pairs, len(facts.schema))
        return InteractionSums(pairs, bool(self.with_count))

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        most = 1 << max(0, min(20, _SHARED_BITS - 2 * InteractionUnits(facts.sizes).largest.bit_length()))
        pairs: Any = self.pairs
        return self.planned(
            facts.sizes, facts.adjacency, pairs, self.with_count, cost, share, partial(facts.parts, most=most)
        )

    def _exact(
        self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> Sequence[Sensitive]:
        codes, parts = shared_codes(data, mechanism.grid)
        units = InteractionUnits(facts.sizes)
        sums = interaction_sums(codes, units, facts.adjacency, self.pairs, parts, mechanism.grid)  # type: ignore[arg-type]
        return sums[: 2 + self.with_count]

    @staticmethod
    def planned(
        cardinalities: Sequence[int],
        adjacency: Adjacency,
        pairs: Pairs | None,
        with_count: bool,
        cost: PureDP | ZCDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> AdditiveNoise:
        """The noise of each array, from public numbers; ValueError if it buries any sum.

        Examples
        --------
        >>> noises = InteractionSums.planned([2, 2], Adjacency.ADD_REMOVE, None, False, PureDP(1.0), Fraction(1)).noise
        >>> [noise.scale for noise in noises]
        [6.0, 12.0]
        """
        norms, weights = _planned(tuple(cardinalities), adjacency, pairs, with_count)
        return AdditiveNoise.planned(norms, cost, share, weights, parts)


def _planned(
    sizes: tuple[int, ...], adjacency: Adjacency, pairs: Sequence[Sequence[int]] | None, with_count: bool
) -> tuple[list[tuple[float, ...]], tuple[float, ...]]:
    """Return how far the arrays move, and how the share is divided. A graph without edges leaves one pair's unspent."""
    units, p = InteractionUnits(sizes), len(sizes)
    n_pairs = math.comb(p, 2) if pairs is None else len(pairs)
    moved = pair_sensitivity(units, adjacency, pairs)  # type: ignore[arg-type]
    norms: list[tuple[float, ...]] = [field_sensitivity(units, adjacency), moved, (1.0, 1.0, 1.0)]
    return norms[: 2 + with_count], (float(p), float(max(1, n_pairs)), 1.0)[: 2 + with_count]
