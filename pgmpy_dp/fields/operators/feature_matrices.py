"""Sums over records of phi phi', phi a public vector of integers that a record's features make, for Wishart noise.

Such a matrix is positive semidefinite and has the trace ``|phi|**2``. *Parities*: the features are products of signs,
``w_S prod_{j in S} z_j`` for public sets S, the empty one among them, with public weights; entry (S, T) is ``w_S w_T``
times the parity of the sets' symmetric difference. *Interactions*: they are a constant and the contrasts of each
variable's state.

A statistic may stand in several places of the matrix, the number of records in each of the diagonal. What is read from
a noisy matrix is the mean over these places, weighted by how precise they are. Reading is a linear function of noisy
entries and public numbers, so it costs nothing, and it is done in exact integers up to one last rounding.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from pgmpy_dp.checks import exact_integer
from pgmpy_dp.fields.operators.interactions import InteractionUnits, Pairs, checked_pairs, pair_counts
from pgmpy_dp.fields.operators.parities import (
    Subsets,
    checked_family,
    checked_parities,
    family_sums,
    parity_count,
    parity_sums,
)
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.mechanism import Mechanism, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import weighted_sum
from pgmpy_dp.private.data.moments import trace_sensitivity
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.private.noise.integer_wishart import MOST_COLUMNS
from pgmpy_dp.private.noise.matrix import wishart_noise, wishart_scale
from pgmpy_dp.private.noise.measures import OfEpsilon, amount_of
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Noise, Sensitive

_MOST_WEIGHT = 1 << 10
_FINE = 1 << 32  # of the scale in lattice units over d**2: few matrices are drawn twice

_UNIT = 1 << 16  # of contrasts: their rounding to whole numbers makes traces larger by next to nothing


class FeatureMatrix(ABC):
    """A matrix of integers to which each record adds phi phi', and how statistics are read from it."""

    d: int
    """Number of features."""

    trace: int
    """The largest ``|phi|**2`` of any record."""

    @abstractmethod
    def sums(self, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The upper triangle of the sum over records of weight times phi phi', as Python integers.

        Parameters
        ----------
        codes : ndarray of integers, shape (n, p)
        weights : ndarray of integers, shape (n,), optional
            Not negative. Default: 1.

        Notes
        -----
        Privacy: a record adds its own phi phi' and nothing else. So a unit whose records have weights of sum at most g
        adds a positive semidefinite matrix of integers with a trace of at most g times `trace`. Counts are 64-bit
        integers, which no number of records that fits in memory leaves; products of them are Python's.
        """

    @abstractmethod
    def read(self, upper: np.ndarray, unit: int) -> list[np.ndarray]:
        """Statistics from a noisy triangle in units of 1/`unit`, in whole records: int64."""

    @property
    @abstractmethod
    def largest_deviations(self) -> tuple[float, ...]:
        """For each array that is read, its largest standard deviation, over that of an entry off the diagonal."""

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the upper triangle."""
        return np.triu_indices(self.d)


@dataclass(frozen=True, eq=False)
class ParityMatrix(FeatureMatrix):
    """Products of signs of binary variables, multiplied with one another.

    Parameters
    ----------
    n_variables : int
    features : tuple of tuple of int
        Public: increasing positions, no set twice.
    weights : tuple of int
        Positive, one for each feature.
    family : int or tuple of tuples of int
        The parities that are read: each is the symmetric difference of two features.
    with_count : bool
        Whether the number of records is read.

    Raises
    ------
    ValueError
        For a family with another set.

    Examples
    --------
    >>> matrix = ParityMatrix(2, ((), (0,), (1,)), (1, 1, 1), 2, True)
    >>> matrix.sums(np.array([[0, 1], [1, 1]])).tolist()
    [2, 0, 2, 2, 0, 2]
    >>> [array.tolist() for array in matrix.read(matrix.sums(np.array([[0, 1], [1, 1]])), 1)]
    [[0, 2, 0], [2]]
    """

    n_variables: int
    features: Subsets
    weights: tuple[int, ...]
    family: int | Subsets
    with_count: bool

    def __post_init__(self) -> None:
        lacking = [s for s in self._wanted if s not in self._index]
        if lacking:
            raise ValueError(f"family has the sets {lacking[:3]}, which no two of the features differ by; add features")

    @property
    def d(self) -> int:  # type: ignore[override]
        return len(self.features)

    @property
    def trace(self) -> int:  # type: ignore[override]
        return sum(w * w for w in self.weights)

    @cached_property
    def _wanted(self) -> Subsets:
        if not isinstance(self.family, int):
            return self.family
        sizes = range(1, self.family + 1)
        return tuple(s for size in sizes for s in itertools.combinations(range(self.n_variables), size))

    @cached_property
    def _differences(self) -> list[tuple[int, ...]]:
        """The set whose parity each place of the triangle has."""
        sets = [frozenset(s) for s in self.features]
        return [tuple(sorted(sets[i] ^ sets[j])) for i, j in zip(*map(np.ndarray.tolist, self.places), strict=True)]

    @cached_property
    def _subsets(self) -> Subsets:
        """All sets but the empty one whose parities the matrix has, by size, each size in lexicographic order."""
        return tuple(sorted(set(self._differences) - {()}, key=lambda s: (len(s), s)))

    @cached_property
    def _index(self) -> dict[tuple[int, ...], int]:
        return {(): 0} | {s: k + 1 for k, s in enumerate(self._subsets)}

    @cached_property
    def _of_place(self) -> np.ndarray:
        return np.array([self._index[s] for s in self._differences], dtype=np.intp)

    @cached_property
    def _factors(self) -> np.ndarray:
        """The product w_S w_T of each place."""
        w = np.array(self.weights, dtype=np.int64)
        return w[self.places[0]] * w[self.places[1]]

    def sums(self, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        order = max(map(len, self._subsets), default=0)
        everything = len(self._subsets) == parity_count(self.n_variables, order)

        def total(some: np.ndarray) -> np.ndarray:
            parities = parity_sums(some, order) if everything and order else family_sums(some, self._subsets)
            return np.append(np.int64(len(some)), parities)

        counted = weighted_sum(total, codes, weights).astype(object)
        return counted[self._of_place] * self._factors.astype(object)

    def read(self, upper: np.ndarray, unit: int) -> list[np.ndarray]:
        total = np.zeros(len(self._index), dtype=object)
        np.add.at(total, self._of_place, upper * self._factors.astype(object))
        means = _nearest(total, self._precision.astype(object) * unit)
        wanted = means[[self._index[s] for s in self._wanted]]
        return [wanted, means[:1]][: 1 + self.with_count]

    @cached_property
    def _precision(self) -> np.ndarray:
        """Sum of the squared factors over the places of each statistic."""
        return np.bincount(self._of_place, self._factors.astype(float) ** 2).astype(np.int64)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviation of each parity of the family, over that of an entry of the matrix off the diagonal."""
        return 1.0 / np.sqrt(self._precision[[self._index[s] for s in self._wanted]])

    @property
    def largest_deviations(self) -> tuple[float, ...]:
        # The diagonal, where the number of records stands, has twice the variance.
        return (float(self.deviations.max()), math.sqrt(2.0 / self._precision[0]))[: 1 + self.with_count]


@dataclass(frozen=True, eq=False)
class ContrastMatrix(FeatureMatrix):
    """A constant and orthonormal contrasts of each variable's states, in units of 2**-16, multiplied with one another.

    Parameters
    ----------
    cardinalities : tuple of int
    pairs : tuple of (i, j), i < j, or None
        The pairs whose interactions are read. None: all.
    with_count : bool

    Notes
    -----
    The contrasts of state a of a variable with k states are the k - 1 coordinates of ``e_a - 1/k`` in an orthonormal
    basis, of squared norm 1 - 1/k. The constant is such that the variances of everything that is read without it and
    with it are the least together (`_constant`). Equal noise in the coordinates is equal noise in ``e_a - 1/k``, and
    what is read has the form of :func:`~pgmpy_dp.fields.operators.interactions.interaction_sums`.

    Single variables stand beside the constant and, where they have three states or more, in their own block too: their
    counts, and the number of records, are the weighted least squares of both.

    Examples
    --------
    >>> matrix = ContrastMatrix((2, 3), None, True)
    >>> codes = np.array([[0, 0], [1, 1], [1, 2]])
    >>> [array.tolist() for array in matrix.read(matrix.sums(codes), 1)]
    [[-3, 3, 0, 0, 0], [24, -12, -12, -24, 12, 12], [3]]
    """

    cardinalities: tuple[int, ...]
    pairs: Pairs | None
    with_count: bool

    @property
    def d(self) -> int:  # type: ignore[override]
        return 1 + sum(k - 1 for k in self.cardinalities)

    @cached_property
    def trace(self) -> int:  # type: ignore[override]
        return self._constant**2 + sum(int((c**2).sum(axis=0).max(initial=0)) for c in self._contrasts)

    @cached_property
    def _contrasts(self) -> list[np.ndarray]:
        """Helmert's contrasts in whole numbers, shape (k - 1, k). Rows add up to 0, so margins are not in them."""
        return [_helmert(k) for k in self.cardinalities]

    @cached_property
    def _constant(self) -> int:
        """The feature of the constant: w with the least ``(w**2 + t)**2 (m/w**2 + M)``, in units of 2**-16.

        t is the trace of the others, m the number of contrasts, M that of the products that are read.
        """
        rest = sum(1.0 - 1.0 / k for k in self.cardinalities)
        m = float(self.d - 1)
        both = sum((self.cardinalities[i] - 1) * (self.cardinalities[j] - 1) for i, j in self._pairs)
        square = (-m + math.sqrt(m * m + 8.0 * both * rest * m)) / (4.0 * both) if both else rest
        return max(1, round(_UNIT * math.sqrt(square)))

    @cached_property
    def _pairs(self) -> Pairs:
        every = tuple(itertools.combinations(range(len(self.cardinalities)), 2))
        return every if self.pairs is None else self.pairs

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([1, *(k - 1 for k in self.cardinalities)])

    def _block(self, i: int) -> slice:
        return slice(int(self._starts[i]), int(self._starts[i + 1]))

    def sums(self, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        sizes = self.cardinalities
        single = np.cumsum([0, *sizes])

        def total(some: np.ndarray) -> np.ndarray:
            ones = [np.bincount(some[:, j], minlength=k).astype(np.int64) for j, k in enumerate(sizes)]
            tables = pair_counts(some, sizes) if len(sizes) > 1 else []
            return np.concatenate([*ones, *(table.ravel() for table in tables), np.array([len(some)], dtype=np.int64)])

        counted = weighted_sum(total, codes, weights).astype(object)
        matrix = np.zeros((self.d, self.d), dtype=object)
        matrix[0, 0] = self._constant**2 * counted[-1]
        contrasts = [c.astype(object) for c in self._contrasts]
        for i, c in enumerate(contrasts):
            counts = counted[single[i] : single[i + 1]]
            matrix[0, self._block(i)] = self._constant * (c @ counts)
            matrix[self._block(i), self._block(i)] = (c * counts) @ c.T
        start = int(single[-1])
        for i, j in itertools.combinations(range(len(sizes)), 2):
            table = counted[start : start + sizes[i] * sizes[j]].reshape(sizes[i], sizes[j])
            matrix[self._block(i), self._block(j)] = contrasts[i] @ table @ contrasts[j].T
            start += table.size
        return matrix[self.places]

    def read(self, upper: np.ndarray, unit: int) -> list[np.ndarray]:
        matrix = np.zeros((self.d, self.d))
        matrix[self.places] = [float(Fraction(int(entry), unit)) for entry in upper]
        seen = [
            np.concatenate([matrix[0, self._block(i)], self._upper(i, matrix)]) for i in range(len(self.cardinalities))
        ]
        counts = [matrix[0, 0] / self._constant**2]
        counts += [float((solve @ one).sum()) for (solve, _), one in zip(self._solutions, seen, strict=True)]
        n = float(self._count_weights @ counts)
        fields = []
        for (length, _), (_, solve), one in zip(self._back, self._solutions, seen, strict=True):
            effects = solve @ np.append(one, n)
            fields.append(length * (effects - effects.mean()))
        tables = []
        for i, j in self._pairs:
            (first, left), (second, right) = self._back[i], self._back[j]
            tables.append(first * second * (left @ matrix[self._block(i), self._block(j)] @ right.T).ravel())
        arrays = [np.concatenate(fields), np.concatenate([np.empty(0), *tables]), np.array([n])]
        return [np.rint(np.clip(one, -(2.0**61), 2.0**61)).astype(np.int64) for one in arrays[: 2 + self.with_count]]

    def _upper(self, i: int, matrix: np.ndarray) -> np.ndarray:
        block = matrix[self._block(i), self._block(i)]
        return block[np.triu_indices(len(block))]

    @cached_property
    def _back(self) -> list[tuple[int, np.ndarray]]:
        """The numbers c_i k_i of each variable, and the map from its contrasts to ``e_a - 1/k``."""
        units = InteractionUnits(self.cardinalities)
        lengths = [c * k for c, k in zip(units.multipliers, self.cardinalities, strict=True)]
        ways = [np.linalg.pinv(c.astype(float)) if c.size else np.zeros((1, 0)) for c in self._contrasts]
        return list(zip(lengths, ways, strict=True))

    def _seen(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how the k counts of a variable enter the places that know of it alone, and the variances of these."""
        c = self._contrasts[i].astype(float)
        a, b = np.triu_indices(len(c))
        return np.concatenate([self._constant * c, c[a] * c[b]]), np.concatenate([np.ones(len(c)), 1.0 + (a == b)])

    @cached_property
    def _solutions(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The maps from what is seen of each variable to its counts, by least squares: alone, and with the total."""
        alone = [_least_squares(*self._seen(i)) for i in range(len(self.cardinalities))]
        variance = 1.0 / sum(1.0 / v for v in self._count_variances(alone))
        both = []
        for i, k in enumerate(self.cardinalities):
            design, variances = self._seen(i)
            both.append(_least_squares(np.vstack([design, np.ones((1, k))]), np.append(variances, variance)))
        return list(zip(alone, both, strict=True))

    def _count_variances(self, alone: list[np.ndarray]) -> list[float]:
        """Variances of the number of records, from the constant and from each variable's counts (none of one state)."""
        variances = [2.0 / self._constant**4]
        for i, solve in enumerate(alone):
            variances.append(float((solve.sum(axis=0) ** 2 * self._seen(i)[1]).sum()) or math.inf)
        return variances

    @cached_property
    def _count_weights(self) -> np.ndarray:
        precision = 1.0 / np.array(self._count_variances([solve for solve, _ in self._solutions]))
        return precision / precision.sum()

    @property
    def largest_deviations(self) -> tuple[float, ...]:
        variances = self._count_variances([solve for solve, _ in self._solutions])
        count = 1.0 / sum(1.0 / v for v in variances)
        fields = 0.0
        for i, ((length, _), (_, solve)) in enumerate(zip(self._back, self._solutions, strict=True)):
            centred = length * (solve - solve.mean(axis=0))
            noise = float((centred**2 * np.append(self._seen(i)[1], count)).sum())
            fields = max(fields, noise / max(1, self.cardinalities[i] - 1))
        longest = sorted(length * float(np.linalg.norm(way, 2)) for length, way in self._back if way.size)[-2:]
        pairs = math.prod(longest) if len(longest) == 2 else 1.0
        return (math.sqrt(fields) or 1.0, pairs, math.sqrt(count))[: 2 + self.with_count]


def _helmert(k: int) -> np.ndarray:
    contrasts = np.zeros((k - 1, k), dtype=np.int64)
    for j in range(1, k):
        length = max(1, round(_UNIT / math.sqrt(j * (j + 1))))
        contrasts[j - 1, :j], contrasts[j - 1, j] = -length, j * length
    return contrasts


def _least_squares(design: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The best linear unbiased estimate, as a matrix."""
    root = 1.0 / np.sqrt(variances)
    return np.linalg.pinv(design * root[:, None]) * root


def _nearest(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    """Quotients of Python integers, rounded to the nearest and clamped to 64 bits."""
    rounded = (2 * numerators + denominators) // (2 * denominators)
    return np.clip(rounded, -(1 << 61), 1 << 61).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class MatrixSums(Mechanism):
    """A matrix to which records add phi phi', with Wishart noise; what leaves is what is read from it.

    Attributes
    ----------
    exact : Sensitive
        The upper triangle, Python integers, in units of 1/`grid`.
    features : FeatureMatrix
    scale : int
        c, in units of 1/(`grid` `fine`).
    fine : int
        A power of two: how many units of the noise there are in one of `exact`.
    noise : tuple of Noise
    grid : int

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.matrix` has the proof. Between neighbours `exact` moves by P, or by P - Q,
    with P, Q positive semidefinite matrices of integers of traces at most T = `grid` times the features' largest
    squared norm. Times `fine` they are still such matrices. With the scale of `planned` the noisy matrix costs the
    share; `draw` computes from it and from public numbers.
    """

    exact: Sensitive
    features: FeatureMatrix
    scale: int
    fine: int
    noise: tuple[Noise, ...]
    grid: int = 1

    name = "discrete_wishart"

    @classmethod
    def planned(
        cls,
        features: FeatureMatrix,
        adjacency: Adjacency,
        cost: PureDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> Self:
        """The noise of what is read from the matrix; no matrix is there yet. `parts` as in `AdditiveNoise`."""
        refusal = f"Wishart noise is for a pure cost, and it is {cost}; open the curator with pure=True"
        epsilon = amount_of(OfEpsilon, cost, share, refusal)
        if features.d > MOST_COLUMNS:
            raise ValueError(f"the matrix has {features.d} rows, more than {MOST_COLUMNS}; take fewer features")
        fine, scale = _fine_scale(features, adjacency, epsilon, 1)
        grid = parts(max(one.scale for one in _noise_of(features, scale, fine)))
        fine, scale = _fine_scale(features, adjacency, epsilon, grid)
        return cls(None, features, scale, fine, _noise_of(features, scale, fine * grid), grid)  # type: ignore[arg-type]

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Return the arrays that are read from the noisy matrix."""
        noisy = self.fine * self.exact.value.astype(object) + wishart_noise(self.features.d, self.scale, rng)
        return self.features.read(noisy, self.fine * self.grid)


def _fine_scale(features: FeatureMatrix, adjacency: Adjacency, epsilon: Fraction, grid: int) -> tuple[int, int]:
    """Return how fine the noise is, and its c in these units."""
    moved = Fraction(changed_records(adjacency) * features.trace * grid)
    wanted = 2 * epsilon * _FINE * features.d**2 / moved
    fine = 1 << max(0, math.ceil(wanted) - 1).bit_length()
    return fine, wishart_scale(features.d, moved * fine, epsilon)


def _noise_of(features: FeatureMatrix, scale: int, unit: int) -> tuple[Noise, ...]:
    one = math.sqrt(2.0 * (features.d + 1)) * float(Fraction(scale, unit))
    noise = tuple(Noise("discrete_wishart", one * deviation) for deviation in features.largest_deviations)
    if max(item.scale for item in noise) > LARGEST_SCALE:
        raise ValueError(
            f"noise of scale {max(item.scale for item in noise):.3g} would bury any sum; raise epsilon or the share"
        )
    return noise


def _parity_matrix(
    n_variables: int,
    features: Sequence[Sequence[int]],
    weights: Sequence[int],
    family: int | Sequence[Sequence[int]],
    with_count: bool,
) -> ParityMatrix:
    sets = tuple(tuple(map(exact_integer, s)) for s in features)
    if sets.count(()) > 1:
        raise ValueError("features must have no set twice")
    if any(sets):
        checked_family([s for s in sets if s], n_variables)
    sizes = tuple(map(exact_integer, weights))
    if len(sizes) != len(sets) or not all(1 <= w <= _MOST_WEIGHT for w in sizes):
        raise ValueError(f"weights must be {len(sets)} whole numbers from 1 to {_MOST_WEIGHT}, one for each feature")
    return ParityMatrix(n_variables, sets, sizes, checked_family(family, n_variables), bool(with_count))


def _exact_matrix(data: PrivateTable, facts: TableFacts, planned: MatrixSums) -> Sensitive:
    """The matrix. All of what moves is in its trace; the norms of the triangle are those of any such matrix."""
    codes, parts = shared_codes(data, planned.grid)
    norms = trace_sensitivity(planned.features.d, facts.adjacency, planned.grid * planned.features.trace)
    sums = planned.features.sums(codes, parts)
    return Sensitive(sums, facts.adjacency, norms.l1, norms.frobenius, norms.frobenius)


@dataclass(frozen=True, slots=True)
class ParityMatrixSums(Operator[list[np.ndarray]]):
    """Noisy sums of parities, as in `ParitySums`, read from a matrix of products with Wishart noise.

    Parameters
    ----------
    features : sequence of sequences of int
        Public sets of positions in the schema, increasing, none twice; the empty one is the constant. The matrix has a
        row and a column for each.
    weights : sequence of int
        Public, from 1 to 1024: feature S of a record is w_S times the product of its signs in S.
    family : int or sequence of sequences of int
        The parities that are read, as in `ParitySums`. Each is the symmetric difference of two features.
    with_count : bool
        Whether the number of records, which stands in the diagonal, comes with them.

    Returns
    -------
    list of ndarray of int64
        The sums, shape (m,); with the count, that too, shape (1,). `noise` of the answer has the largest standard
        deviation of a sum; :meth:`deviations_of` has those of all.

    Raises
    ------
    TypeError, ValueError
        For variables that are not binary, sets and weights that are none, a family that the features do not have, a
        cost that is not pure, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* A record inside the schema adds phi phi', positive semidefinite, of the trace ``T = sum
        w_S**2`` whatever its signs; one outside adds nothing. So the matrix moves by +-P, of trace T, under
        ``add_remove``, by P - Q of traces at most T under ``replace_one``. A unit that counts by shares adds a mean
        of such matrices and of 0, in whole parts: positive semidefinite, of trace at most T.

        *Guarantee.* The share s of epsilon: noise W1 - W2 of independent matrices of integers W >= 0 with
        probability in proportion to ``exp(-tr W/(2 c))``, c = T/(2 s epsilon), or T/(s epsilon) under
        ``replace_one``, rounded up (:mod:`pgmpy_dp.private.noise.matrix`). The sums are read from the noisy matrix.

        *Source.* The noise: Wang, Huai and Xu 2018, corrected; on a lattice: this package.
    """

    features: Sequence[Sequence[int]]
    weights: Sequence[int]
    family: int | Sequence[Sequence[int]]
    with_count: bool = False

    name = "parity_matrix"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> ParityMatrixSums:
        family = checked_parities(self.family, facts)
        matrix = _parity_matrix(len(facts.schema), self.features, self.weights, family, bool(self.with_count))
        return ParityMatrixSums(matrix.features, matrix.weights, matrix.family, matrix.with_count)

    def mechanism(self, facts: TableFacts, cost: PureDP, share: Fraction, eta: Fraction) -> MatrixSums:
        p, family, parts = len(facts.schema), self.family, facts.parts
        arguments = (p, self.features, self.weights, family, facts.adjacency, self.with_count, cost, share, parts)
        return self.planned(*arguments)  # type: ignore[arg-type]

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: MatrixSums, coins: Coins) -> Sensitive:
        return _exact_matrix(data, facts, mechanism)

    @staticmethod
    def planned(
        n_variables: int,
        features: Sequence[Sequence[int]],
        weights: Sequence[int],
        family: int | Subsets,
        adjacency: Adjacency,
        with_count: bool,
        cost: PureDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> MatrixSums:
        """The noise, from public numbers; ValueError for features that are none, and where it would bury any sum.

        Examples
        --------
        >>> spins = [(), *((j,) for j in range(20))]
        >>> asked = (20, spins, [1] * 21, 2, Adjacency.ADD_REMOVE, True)
        >>> [round(one.scale, 1) for one in ParityMatrixSums.planned(*asked, PureDP(1.0), Fraction(1)).noise]
        [69.6, 21.5]
        """
        matrix = _parity_matrix(n_variables, features, weights, family, with_count)
        return MatrixSums.planned(matrix, adjacency, cost, share, parts)

    @staticmethod
    def deviations_of(
        n_variables: int, features: Sequence[Sequence[int]], weights: Sequence[int], family: int | Subsets
    ) -> np.ndarray:
        """Standard deviation of the noise of each parity over that of the noisiest one, shape (m,).

        Examples
        --------
        >>> ParityMatrixSums.deviations_of(2, [(), (0,), (1,)], [1, 1, 1], 2).tolist()
        [1.0, 1.0, 1.0]
        """
        deviations = _parity_matrix(n_variables, features, weights, family, False).deviations
        return deviations / deviations.max()


@dataclass(frozen=True, slots=True)
class InteractionMatrixSums(Operator[list[np.ndarray]]):
    """Noisy sums of centred indicators and their products, as in `InteractionSums`, by Wishart noise.

    Parameters
    ----------
    pairs : sequence of (i, j), optional
        Public: the pairs that are read, as in `InteractionSums`. Default: all pairs.
    with_count : bool

    Returns
    -------
    list of ndarray of int64
        As in `InteractionSums`. `noise` of the answer has the standard deviation of a cell before it was centred.

    Raises
    ------
    TypeError, ValueError
        For pairs that are none, a cost that is not pure, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* A record's features are a public constant w and contrasts of the state of each variable,
        integers. It adds phi phi', positive semidefinite, of trace at most ``T = w**2 + sum_i max_a |C_i e_a|**2``,
        about ``2**16 (b + sum_i (1 - 1/k_i))``. ``add_remove``: +-P of trace T at most; ``replace_one``: P - Q.
        Units that count by shares: as in :class:`ParityMatrixSums`.

        *Guarantee.* As in :class:`ParityMatrixSums`.

        *Source.* As in :class:`ParityMatrixSums`.
    """

    pairs: Sequence[Sequence[int]] | None = None
    with_count: bool = False

    name = "interaction_matrix"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> InteractionMatrixSums:
        pairs = None if self.pairs is None else checked_pairs(self.pairs, len(facts.schema))
        return InteractionMatrixSums(pairs, bool(self.with_count))

    def mechanism(self, facts: TableFacts, cost: PureDP, share: Fraction, eta: Fraction) -> MatrixSums:
        pairs: Any = self.pairs
        return self.planned(facts.sizes, facts.adjacency, pairs, self.with_count, cost, share, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: MatrixSums, coins: Coins) -> Sensitive:
        return _exact_matrix(data, facts, mechanism)

    @staticmethod
    def planned(
        cardinalities: Sequence[int],
        adjacency: Adjacency,
        pairs: Pairs | None,
        with_count: bool,
        cost: PureDP,
        share: Fraction,
        parts: Callable[[float], int] = in_full,
    ) -> MatrixSums:
        """The noise, from public numbers; ValueError where it would bury any sum.

        Examples
        --------
        >>> asked = ([2, 2], Adjacency.ADD_REMOVE, None, False)
        >>> [round(one.scale, 1) for one in InteractionMatrixSums.planned(*asked, PureDP(1.0), Fraction(1)).noise]
        [5.8, 9.2]
        """
        matrix = ContrastMatrix(tuple(cardinalities), pairs, with_count)
        return MatrixSums.planned(matrix, adjacency, cost, share, parts)
