"""Sums over binary records of all parities of up to t variables, or of some of them, in exact integers.

A record's code 0 or 1 of variable j is ``z_j = 2 code - 1``, so the first state of the schema is -1 and the second +1.
The parity of a set I of variables is ``prod_{j in I} z_j``, again -1 or 1; that of the empty set is 1 and its sum is
the number of records.

A product of signs is the parity of a number of bits, so 64 records are multiplied by one exclusive or of words, and a
sum is a count of bits: integers throughout, three to five times faster than float32 matrix products. Where that would
take longer than counting all 2**p records, as for high orders of few variables, the sums come from these counts by a
Walsh-Hadamard transform.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import networkx as nx
import numpy as np

from pgmpy_dp.checks import checked_integer, exact_integer
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism, NoisyMax, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import weighted_sum
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of, parities_of_cells, transform
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.operators.operator_base import Operator, fresh_array
from pgmpy_dp.private.sensitive import Noise, Sensitive

Subsets = tuple[tuple[int, ...], ...]
"""A public family of sets of positions, non-empty, distinct and increasing, each size in lexicographic order."""

_TRANSFORM_LIMIT = 20  # variables; 2**20 counts take 8 MB and their transform .1 s
_FAMILY_LIMIT = 16  # variables of a component whose replacements are all looked at, in milliseconds
_LARGEST_SUM = 2.0**60  # differences of sums of so many records fit 64 bits
_WORDS = 1 << 10  # words of 64 records that are worked on at once, so that they stay in the cache


def parity_count(n_variables: int, order: int) -> int:
    """Number of sets of 1 to `order` of the variables.

    Examples
    --------
    >>> parity_count(20, 2)
    210
    """
    return sum(math.comb(n_variables, size) for size in range(1, order + 1))


@lru_cache(maxsize=256)
def flipped_parities(n_variables: int, order: int) -> int:
    """Largest number of parities that one replaced record can flip.

    A replacement that changes the values of d variables flips the parity of I exactly when I contains an odd number of
    them: ``sum_{r <= t} sum_{odd s} C(d, s) C(p - d, r - s)`` parities. It is at least half of all parities for some d,
    because a fair coin for each variable flips each parity with probability 1/2.

    Examples
    --------
    >>> flipped_parities(20, 2)
    110
    """
    p = n_variables
    return max(
        sum(
            math.comb(d, odd) * math.comb(p - d, size - odd)
            for size in range(1, order + 1)
            for odd in range(1, min(size, d) + 1, 2)
        )
        for d in range(p + 1)
    )


@lru_cache(maxsize=256)
def flipped_in_family(subsets: Subsets) -> int:
    """Largest number of parities of a family that one replaced record can flip, or an upper bound of it.

    A replacement that changes the variables D flips the parity of I if |I n D| is odd, so
    ``(m - sum_I (-1)^|I n D|)/2`` of m parities. Sets in different connected components of the family share no
    variables, so the largest numbers of the components add up. In a component of at most 16 variables it is found over
    all D by one Walsh-Hadamard transform. In a larger one the bound is the number of its parities, or what can flip of
    all sets of its variables up to its largest size, if that is less: it has no other sets than those.

    Examples
    --------
    >>> flipped_in_family(((0,), (1,), (2,), (0, 1)))  # two of the first component's three, and (2,)
    3
    """
    graph = nx.Graph()
    for subset in subsets:
        nx.add_path(graph, subset)  # connected is all that matters; a path of one node is that node
    component = {j: c for c, nodes in enumerate(nx.connected_components(graph)) for j in nodes}
    parts: dict[int, list[tuple[int, ...]]] = {}
    for subset in subsets:
        parts.setdefault(component[subset[0]], []).append(subset)
    flipped = 0
    for part in parts.values():
        place = {j: k for k, j in enumerate(sorted({j for subset in part for j in subset}))}
        if len(place) <= _FAMILY_LIMIT:
            family = np.zeros(1 << len(place))
            family[masks_of([[place[j] for j in subset] for subset in part])] = 1.0
            flipped += round((len(part) - transform(family).min()) / 2)  # whole numbers, exact in float64
        else:
            flipped += min(len(part), flipped_parities(len(place), max(map(len, part))))
    return flipped


def family_size(family: int | Subsets, n_variables: int) -> int:
    """Number of parities of a family, see :func:`checked_family`.

    Examples
    --------
    >>> family_size(2, 20), family_size(((0,), (1,), (0, 1)), 20)
    (210, 3)
    """
    return parity_count(n_variables, family) if isinstance(family, int) else len(family)


def parity_sensitivity(
    n_variables: int, family: int | Subsets, adjacency: Adjacency, with_count: bool
) -> tuple[float, float, float]:
    """Return the joint l1, l2 and l-infinity sensitivities of parity sums.

    Parameters
    ----------
    n_variables : int
    family : int or tuple of tuples of int
        Public, fixed before the records are looked at, as :func:`checked_family` says.
    adjacency : Adjacency
    with_count : bool
        Whether the parity of the empty set, the number of records, is one of the sums.

    Notes
    -----
    Let m be the number of sums. A record inside the schema adds -1 or 1 to each of them, one outside adds nothing.

    * ``add_remove``: each sum moves by at most 1, so (m, sqrt(m), 1).
    * ``replace_one``: if both records are inside, the sums of the parities that the replacement flips move by 2 and no
      others: at most F of them (:func:`flipped_parities`; :func:`flipped_in_family`, which may be above the exact
      number, for a family: never more than all m), so at most (2 F, 2 sqrt(F), 2). If one of the two is outside, each
      sum moves by 1: (m, sqrt(m), 1). The larger one counts.

    The l2 sensitivity is rounded up.

    Examples
    --------
    >>> parity_sensitivity(20, 2, Adjacency.REPLACE_ONE, with_count=False)
    (220.0, 20.976..., 2.0)
    """
    m = family_size(family, n_variables) + with_count
    if changed_records(adjacency) == 1:
        return float(m), root_up(Fraction(m)), 1.0
    flipped = flipped_parities(n_variables, family) if isinstance(family, int) else flipped_in_family(family)
    return float(max(2 * flipped, m)), root_up(Fraction(max(4 * flipped, m))), 2.0 if flipped else 1.0


def checked_family(family: int | Iterable[Sequence[int]], n_variables: int) -> int | Subsets:
    """A public family of parities: the largest number t of variables, for all sets of up to t, or the sets themselves.

    Raises
    ------
    TypeError, ValueError
        For t outside 1 to `n_variables`; for no set, sets that repeat, and sets that are not increasing positions of
        the variables: their sensitivity would be another one.

    Examples
    --------
    >>> checked_family([[0], [0, 2]], 3)
    ((0,), (0, 2))
    """
    if isinstance(family, int | np.integer):
        order = checked_integer("family", family, 1)
        if order > n_variables:
            raise ValueError(f"family={order!r} is more than the {n_variables} variables")
        return order
    subsets = tuple(tuple(map(exact_integer, subset)) for subset in family)
    increasing = all(s and s[0] >= 0 and s[-1] < n_variables and all(map(operator.lt, s, s[1:])) for s in subsets)
    if not subsets or not increasing or len(set(subsets)) != len(subsets):
        raise ValueError(
            f"family must have at least one set, each of increasing positions of the {n_variables} variables, and none "
            "twice"
        )
    return subsets


def parity_sums_and_count(
    codes: np.ndarray,
    family: int | Subsets,
    adjacency: Adjacency,
    with_count: bool = False,
    weights: np.ndarray | None = None,
    grid: int = 1,
) -> Sensitive:
    """Parity sums as one statistic, the number of records last if `with_count`.

    Parameters
    ----------
    codes : ndarray of 0 and 1, shape (n, p)
    family, adjacency, with_count
        As in :func:`parity_sensitivity`.
    weights : ndarray of integers, shape (n,), optional
        For how much each record counts, in 1/`grid`, at most `grid` for all records of a unit.
    grid : int, default 1

    Returns
    -------
    Sensitive
        ``value`` of shape (m,), in the order of :func:`~pgmpy_dp.fields.field_scopes.field_scopes`, or of
        the family; in units of 1/`grid`, with `grid` times the sensitivities of whole records
        (:func:`~pgmpy_dp.private.data.table.share_grid`).
    """

    def sums(some: np.ndarray) -> np.ndarray:
        parities = parity_sums(some, family) if isinstance(family, int) else family_sums(some, family)
        return np.append(parities, np.int64(len(some))) if with_count else parities

    norms = parity_sensitivity(codes.shape[1], family, adjacency, with_count)
    return Sensitive(weighted_sum(sums, codes, weights), adjacency, *(grid * norm for norm in norms))


def parity_misfits(exact: Sensitive, expected: np.ndarray, *, signed: bool) -> Sensitive:
    """Score how far parity sums S are from public ones m: ``abs(S - round(m))``, or ``S - round(m)`` and its negative.

    Parameters
    ----------
    exact : Sensitive
        Of :func:`parity_sums_and_count`, without the count.
    expected : ndarray, shape (m,)
        Public. NaN counts as 0; what 64 bits do not hold is clipped.
    signed : bool
        Whether there are two scores for each parity: all differences, then all their negatives.

    Returns
    -------
    Sensitive
        Shape (m,) or (2 m,). No score moves by more than the largest that a sum does: 1 under ``add_remove``, 2 under
        ``replace_one``.

    Raises
    ------
    ValueError
        For public sums of another shape.

    Notes
    -----
    Privacy: the public sums are rounded before any record comes in, so a difference moves as far as the sum itself, in
    exact integers, and an absolute value or a negative no further. The number of records is in no score.
    """
    if np.shape(expected) != exact.value.shape:  # else one sum would be compared with several
        raise ValueError(f"expected has the shape {np.shape(expected)}, the sums have {exact.value.shape}")
    assumed = np.nan_to_num(np.asarray(expected, dtype=np.float64), nan=0.0)
    gap = exact.value - np.rint(np.clip(assumed, -_LARGEST_SUM, _LARGEST_SUM)).astype(np.int64)
    scores = np.concatenate([gap, -gap]) if signed else np.abs(gap)
    # Both scores of a parity move as far as it does.
    return Sensitive(scores, exact.adjacency, 2.0 * exact.l1, 2.0 * exact.l2, exact.linf)


def parity_sums(codes: np.ndarray, order: int) -> np.ndarray:
    """Sum over records of the product of z over each set of 1 to `order` variables.

    Parameters
    ----------
    codes : ndarray of 0 and 1, shape (n, p)
    order : int
        From 1 to p.

    Returns
    -------
    ndarray of int64, shape (m,)
        In the order of :func:`~pgmpy_dp.fields.field_scopes.field_scopes`.

    Examples
    --------
    >>> parity_sums(np.array([[0, 1], [1, 1], [1, 1]]), 2).tolist()
    [1, 3, 1]
    """
    n, p = codes.shape
    subsets = tuple(s for size in range(1, order + 1) for s in itertools.combinations(range(p), size))
    if p <= _TRANSFORM_LIMIT and len(subsets) * -(-n // 64) > 4 * p << p:
        return _by_transform(codes, subsets)
    return family_sums(codes, subsets)


def family_sums(codes: np.ndarray, subsets: Subsets) -> np.ndarray:
    """Sum over records of the product of z over each set of a family; the others are not looked at.

    Returns
    -------
    ndarray of int64, shape (len(subsets),)

    Examples
    --------
    >>> family_sums(np.array([[0, 1, 1], [1, 1, 0]]), ((1,), (0, 2))).tolist()
    [2, -2]
    """
    bits = _packed(codes)
    odd = np.zeros(len(subsets), dtype=np.int64)
    # Sets that differ in their last element alone are counted together.
    groups: list[tuple[list[int], Any, slice]] = []
    done = 0
    for prefix, group in itertools.groupby(subsets, key=lambda subset: subset[:-1]):
        last = [subset[-1] for subset in group]
        inner = slice(last[0], last[-1] + 1)
        rows = inner if last == list(range(inner.start, inner.stop)) else last  # a view is quicker than a copy
        groups.append((list(prefix), rows, slice(done, done + len(last))))
        done += len(last)
    for first_word in range(0, bits.shape[1], _WORDS):
        words = np.ascontiguousarray(bits[:, first_word : first_word + _WORDS])
        for start, rows, places in groups:
            counts = np.bitwise_count(words[rows] ^ np.bitwise_xor.reduce(words[start], axis=0))
            odd[places] += counts.sum(axis=1, dtype=np.uint32)
    # The product over I is (-1)^|I| where an even number of its variables are 1.
    sizes = np.fromiter(map(len, subsets), dtype=np.int64, count=len(subsets))
    return (len(codes) - 2 * odd) * np.where(sizes % 2, -1, 1)


def _packed(codes: np.ndarray) -> np.ndarray:
    """One row of words of 64 records for each variable."""
    n, p = codes.shape
    packed = np.zeros((p, 8 * -(-n // 64)), dtype=np.uint8)
    packed[:, : -(-n // 8)] = np.packbits(codes.T, axis=1)  # unused bits are 0 and count nowhere
    return packed.view(np.uint64)


def _by_transform(codes: np.ndarray, subsets: Subsets) -> np.ndarray:
    p = codes.shape[1]
    cells = np.zeros(len(codes), dtype=np.int64)
    for j in range(p):
        cells |= codes[:, j].astype(np.int64) << j
    histogram = np.bincount(cells, minlength=1 << p)
    return np.rint(parities_of_cells(histogram, masks_of(subsets))).astype(np.int64)


def checked_parities(family: int | Sequence[Sequence[int]], facts: TableFacts) -> int | Subsets:
    """A family of parities of a table; ValueError where its variables are not binary too."""
    others = {name: k for name, k in facts.schema.cardinalities.items() if k != 2}
    if others:
        raise ValueError(f"schema declares {others} states for these variables; parities are of variables with two")
    return checked_family(family, len(facts.schema))


@dataclass(frozen=True, eq=False, repr=False)
class JointNoise(Mechanism):
    """One integer vector with independent noise of one scale in every cell, which leaves in several pieces.

    It is for statistics whose joint sensitivity is less than the sum of their sensitivities.

    Notes
    -----
    Privacy: that of :class:`~pgmpy_dp.private.curator.mechanism.AdditiveNoise` with one array; where it is cut is
    public.
    """

    exact: Sensitive
    sizes: tuple[int, ...]
    noise: tuple[Noise, ...]
    grid: int = 1
    """G: in how many parts of a count the statistics are."""
    norms: tuple[tuple[float, float], ...] = ()
    """In l1 and l2: what the noise was made for."""

    @classmethod
    def planned(
        cls,
        norms: tuple[float, ...],
        sizes: Sequence[int],
        cost: PureDP | ZCDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> Self:
        """The noise of a vector that moves by these norms, for pieces of these sizes; `parts` as in `AdditiveNoise`."""
        whole = AdditiveNoise.planned([norms], cost, share, parts=parts)
        return cls(None, tuple(sizes), whole.noise * len(sizes), whole.grid, whole.norms)  # type: ignore[arg-type]

    def over(self, exact: Sensitive) -> Self:
        """The same with the exact vector, which moves no further than the noise was made for."""
        AdditiveNoise((), self.noise[:1], self.grid, self.norms).over([exact])
        return replace(self, exact=exact)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise."""
        return self.noise[0].distribution

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The pieces."""
        whole = AdditiveNoise((self.exact,), self.noise[:1], self.grid)
        return np.split(whole.draw(rng)[0], np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, slots=True)
class ParitySums(Operator[list[np.ndarray]]):
    """Noisy sums over records of products of z = 2 code - 1, which is -1 or 1, of sets of binary variables.

    Parameters
    ----------
    family : int or sequence of sequences of int
        t: all sets of 1 to t variables, by size, each size in lexicographic order. Or the public sets: increasing
        positions in the schema, none twice.
    with_count : bool
        Whether the number of records, which is the parity of no variable, comes with them.

    Returns
    -------
    list of ndarray of int64
        The sums, shape (m,); with the count, that too, shape (1,).

    Raises
    ------
    TypeError, ValueError
        For variables that are not binary, sets that are none, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* Of M sums, the count included. ``add_remove``: a record inside the schema adds -1 or 1 to
        each, so M in l1 and sqrt(M) in l2 norm. ``replace_one``: at most F of them flip and move by 2, or, if one
        of the two records is outside, all move by 1: max(2 F, M) and sqrt(max(4 F, M)). F is the largest number of
        sets that hold an odd number of the variables that change
        (:func:`~pgmpy_dp.fields.operators.parities.parity_sensitivity` and what it calls have the proofs).

        *Guarantee.* The share s of the cost: in all sums, Laplace noise of scale ``l1/(s epsilon)`` or Gaussian
        noise of scale ``l2/sqrt(2 s rho)``.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
    """

    family: int | Sequence[Sequence[int]]
    with_count: bool = False

    name = "parity_sums"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> ParitySums:
        return ParitySums(checked_parities(self.family, facts), bool(self.with_count))

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> JointNoise:
        family: Any = self.family
        return self.planned(family, len(facts.schema), facts.adjacency, self.with_count, cost, share, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: JointNoise, coins: Coins) -> Sensitive:
        codes, weights = shared_codes(data, mechanism.grid)
        family: Any = self.family
        return parity_sums_and_count(codes, family, facts.adjacency, self.with_count, weights, mechanism.grid)

    @staticmethod
    def planned(
        family: int | Subsets,
        n_variables: int,
        adjacency: Adjacency,
        with_count: bool,
        cost: PureDP | ZCDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> JointNoise:
        """The noise, the same in each sum, from public numbers; ValueError where it would bury any sum.

        Examples
        --------
        >>> ParitySums.planned(2, 2, Adjacency.ADD_REMOVE, True, PureDP(1.0), Fraction(1, 2)).noise[0]
        Noise(distribution='discrete_laplace', scale=8.0)
        """
        norms = parity_sensitivity(n_variables, family, adjacency, with_count)
        sizes = [family_size(family, n_variables), 1][: 1 + with_count]
        return JointNoise.planned(norms, sizes, cost, share, parts)


@dataclass(frozen=True, slots=True, eq=False)
class WorstParity(Operator[int]):
    """Position of the parity whose sum is about the furthest from what a model expects.

    Parameters
    ----------
    family : int or sequence of sequences of int
        As in :class:`ParitySums`. The exact sums are kept, so that asking again about one family is quick.
    expected : ndarray, shape (m,)
        Sums that the model expects: functions of what was released. They are rounded to integers; NaN counts as 0.
    signed : bool
        Whether the m parities that are the furthest above what is expected are told from those below.

    Returns
    -------
    int
        Below m; if `signed`, position k + m is parity k below what is expected.

    Raises
    ------
    TypeError, ValueError
        For variables that are not binary, sets that are none, sums of another shape, and noise that would bury any
        score.

    Notes
    -----
    Privacy
        *Sensitivity.* The score ``abs(S(I) - round(m(I)))``, or the difference and its negative, moves by at most 1
        under ``add_remove``, 2 under ``replace_one``, as S(I) does; the number of records is nowhere in it
        (:func:`~pgmpy_dp.fields.operators.parities.parity_misfits`).

        *Guarantee.* The share s of the cost: Gumbel noise of scale ``D/sqrt(2 s rho)``, or exponential noise of
        scale ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

        *Source.* Hardt, Ligett and McSherry 2012; Cesar and Rogers 2021 for the cost of a selection.
    """

    family: int | Sequence[Sequence[int]]
    expected: np.ndarray
    signed: bool = False

    name = "worst_parity"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> WorstParity:
        family = checked_parities(self.family, facts)
        expected = fresh_array("expected", self.expected, (family_size(family, len(facts.schema)),))
        return WorstParity(family, expected, bool(self.signed))

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> NoisyMax:
        return self.planned(facts.adjacency, cost, share, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: NoisyMax, coins: Coins) -> Sensitive:
        key, family = (self.family, mechanism.grid), self.family
        if data._memory.get("parities", (None,))[0] != key:
            codes, weights = shared_codes(data, mechanism.grid)
            sums = parity_sums_and_count(codes, family, facts.adjacency, False, weights, mechanism.grid)  # type: ignore[arg-type]
            data._memory["parities"] = key, sums
        return parity_misfits(data._memory["parities"][1], mechanism.grid * self.expected, signed=self.signed)

    @staticmethod
    def planned(
        adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction, parts: Callable[[float], int] = in_full
    ) -> NoisyMax:
        """The noise, whatever is asked, from public numbers; ValueError where it buries any score.

        Examples
        --------
        >>> WorstParity.planned(Adjacency.REPLACE_ONE, PureDP(1.0), Fraction(1, 2)).scale
        8.0
        """
        return NoisyMax.planned(float(changed_records(adjacency)), cost, share, parts)
