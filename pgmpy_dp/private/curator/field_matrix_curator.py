"""Questions about a table that a noisy matrix of products answers, under pure differential privacy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.curator_base import Curator, checked_share
from pgmpy_dp.private.curator.mechanism import Mechanism, pure_epsilon
from pgmpy_dp.private.data.feature_matrices import ContrastMatrix, FeatureMatrix, ParityMatrix
from pgmpy_dp.private.data.interactions import Pairs, checked_pairs
from pgmpy_dp.private.data.moments import trace_sensitivity
from pgmpy_dp.private.data.parities import Subsets, checked_family
from pgmpy_dp.private.data.table import PrivateTable, share_grid, shared_codes
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.private.noise.integer_wishart import MOST_COLUMNS
from pgmpy_dp.private.noise.matrix import wishart_noise, wishart_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive

__all__ = [
    *("FieldMatrixCurator", "MatrixSums", "interaction_matrix_noise", "parity_matrix_deviations"),
    "parity_matrix_noise",
]

_MOST_WEIGHT = 1 << 10
_FINE = 1 << 32  # of the scale in lattice units over d**2: few matrices are drawn twice


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
    squared norm. Times `fine` they are still such matrices. With the scale of `of` the noisy matrix costs the share;
    `draw` computes from it and from public numbers.
    """

    exact: Sensitive
    features: FeatureMatrix
    scale: int
    fine: int
    noise: tuple[Noise, ...]
    grid: int = 1

    name = "discrete_wishart"

    @classmethod
    def of(cls, exact: Sensitive, features: FeatureMatrix, cost: PureDP, share: Fraction, grid: int = 1) -> MatrixSums:
        """The mechanism that releases what is read from the matrix for a share of a cost."""
        fine, scale = _fine_scale(features, exact.adjacency, cost, share, grid)
        return cls(exact, features, scale, fine, _noise_of(features, scale, fine * grid), grid)

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """What is read from the noisy matrix."""
        noisy = self.fine * self.exact.value.astype(object) + wishart_noise(self.features.d, self.scale, rng)
        return self.features.read(noisy, self.fine * self.grid)


def _fine_scale(
    features: FeatureMatrix, adjacency: Adjacency, cost: PureDP, share: Fraction, grid: int
) -> tuple[int, int]:
    """How fine the noise is, and its c in these units."""
    moved = Fraction(changed_records(adjacency) * features.trace * grid)
    epsilon = pure_epsilon(cost, share)
    wanted = 2 * epsilon * _FINE * features.d**2 / moved
    fine = 1 << max(0, math.ceil(wanted) - 1).bit_length()
    return fine, wishart_scale(features.d, moved * fine, epsilon)


def _noise_of(features: FeatureMatrix, scale: int, unit: int) -> tuple[Noise, ...]:
    one = math.sqrt(2.0 * (features.d + 1)) * float(Fraction(scale, unit))
    noise = tuple(Noise("discrete_wishart", one * spread) for spread in features.spreads)
    if max(item.scale for item in noise) > LARGEST_SCALE:
        raise ValueError(
            f"noise of scale {max(item.scale for item in noise):.3g} would bury any sum; raise epsilon or the share"
        )
    return noise


def _planned(features: FeatureMatrix, adjacency: Adjacency, cost: PureDP, share: Fraction | float) -> tuple[Noise, ...]:
    if not isinstance(cost, PureDP):
        raise ValueError(f"Wishart noise is for a pure cost, and it is {cost}; open the curator with pure=True")
    if features.d > MOST_COLUMNS:
        raise ValueError(f"the matrix has {features.d} rows, more than {MOST_COLUMNS}; take fewer features")
    fine, scale = _fine_scale(features, adjacency, cost, checked_share(share), 1)
    return _noise_of(features, scale, fine)


def _parity_matrix(
    n_variables: int,
    features: Sequence[Sequence[int]],
    weights: Sequence[int],
    family: int | Sequence[Sequence[int]],
    with_count: bool,
) -> ParityMatrix:
    sets = tuple(tuple(map(operator.index, s)) for s in features)
    if sets.count(()) > 1:
        raise ValueError("features must have no set twice")
    if any(sets):
        checked_family([s for s in sets if s], n_variables)
    sizes = tuple(map(operator.index, weights))
    if len(sizes) != len(sets) or not all(1 <= w <= _MOST_WEIGHT for w in sizes):
        raise ValueError(f"weights must be {len(sets)} whole numbers from 1 to {_MOST_WEIGHT}, one for each feature")
    return ParityMatrix(n_variables, sets, sizes, checked_family(family, n_variables), bool(with_count))


def parity_matrix_noise(
    n_variables: int,
    features: Sequence[Sequence[int]],
    weights: Sequence[int],
    family: int | Subsets,
    adjacency: Adjacency,
    with_count: bool,
    cost: PureDP,
    share: Fraction,
) -> tuple[Noise, ...]:
    """The noise of :meth:`FieldMatrixCurator.parity_matrix`: from public numbers, without records.

    Raises
    ------
    ValueError
        For features and weights that are none, and noise that would bury any sum.

    Examples
    --------
    >>> spins = [(), *((j,) for j in range(20))]
    >>> noise = parity_matrix_noise(20, spins, [1] * 21, 2, Adjacency.ADD_REMOVE, True, PureDP(1.0), Fraction(1))
    >>> [round(one.scale, 1) for one in noise]
    [69.6, 21.5]
    """
    return _planned(_parity_matrix(n_variables, features, weights, family, with_count), adjacency, cost, share)


def parity_matrix_deviations(
    n_variables: int, features: Sequence[Sequence[int]], weights: Sequence[int], family: int | Subsets
) -> np.ndarray:
    """Standard deviation of the noise of each parity over that of the noisiest one.

    Examples
    --------
    >>> parity_matrix_deviations(2, [(), (0,), (1,)], [1, 1, 1], 2).tolist()
    [1.0, 1.0, 1.0]
    """
    found = _parity_matrix(n_variables, features, weights, family, False).deviations
    return found / found.max()


def interaction_matrix_noise(
    cardinalities: Sequence[int],
    adjacency: Adjacency,
    pairs: Pairs | None,
    with_count: bool,
    cost: PureDP,
    share: Fraction | float,
) -> list[Noise]:
    """The noise of :meth:`FieldMatrixCurator.interaction_matrix`: from public numbers, without records.

    Examples
    --------
    >>> noise = interaction_matrix_noise([2, 2], Adjacency.ADD_REMOVE, None, False, PureDP(1.0), 1)
    >>> [round(one.scale, 1) for one in noise]
    [5.8, 9.2]
    """
    return list(_planned(ContrastMatrix(tuple(cardinalities), pairs, with_count), adjacency, cost, share))


class FieldMatrixCurator(Curator):
    """What a table answers through matrices of products; abstract, see the class of tables below it."""

    kind = PrivateTable
    _data: PrivateTable

    def parity_matrix(
        self,
        features: Sequence[Sequence[int]],
        weights: Sequence[int],
        family: int | Sequence[Sequence[int]],
        share: Fraction | float,
        *,
        with_count: bool = False,
    ) -> list[np.ndarray]:
        """Noisy sums of parities, as of `parity_sums`, read from a matrix of products with Wishart noise.

        Parameters
        ----------
        features : sequence of sequences of int
            Public sets of positions in the schema, increasing, none twice; the empty one is the constant. The matrix
            has a row and a column for each.
        weights : sequence of int
            Public, from 1 to 1024: feature S of a record is w_S times the product of its signs in S.
        family : int or sequence of sequences of int
            Which parities are read, as in `parity_sums`. Each is the symmetric difference of two features.
        share : Fraction or float
            Of the curator's cost, which has to be a pure one.
        with_count : bool
            Whether the number of records, which stands in the diagonal, comes with them.

        Returns
        -------
        list of ndarray of int64
            The sums, shape (m,); with the count, that too, shape (1,). `noise` of the answer has the largest standard
            deviation of a sum; :func:`parity_matrix_deviations` has those of all.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For variables that are not binary, sets and weights that are none, a family that the features do not have, a
            cost that is not pure, and noise that would bury any sum; nothing is spent.

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
        schema = self._data.schema
        others = {name: schema.cardinality(name) for name in schema.variables if schema.cardinality(name) != 2}
        if others:
            raise ValueError(f"schema declares {others} states for these variables; parities are of variables with two")
        matrix = _parity_matrix(len(schema), features, weights, family, with_count)
        arguments = {
            **{"features": matrix.features, "weights": matrix.weights, "family": matrix.family},
            "with_count": matrix.with_count,
        }
        share = checked_share(share)
        return self._answer("parity_matrix", arguments, share, self._matrix(matrix, share))

    def interaction_matrix(
        self, share: Fraction | float, pairs: Sequence[Sequence[int]] | None = None, *, with_count: bool = False
    ) -> list[np.ndarray]:
        """Noisy sums of centred indicators and their products, as of `interaction_sums`, by Wishart noise.

        Parameters
        ----------
        share : Fraction or float
            Of the curator's cost, which has to be a pure one.
        pairs : sequence of (i, j), optional
            Public, as in `interaction_sums`: what is read. Default: all pairs.
        with_count : bool

        Returns
        -------
        list of ndarray of int64
            As of `interaction_sums`. `noise` of the answer has the standard deviation of a cell before centring, which
            has been done.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For pairs that are none, a cost that is not pure, and noise that would bury any sum; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* A record's features are a public constant w and contrasts of the state of each variable,
            integers. It adds phi phi', positive semidefinite, of trace at most ``T = w**2 + sum_i max_a |C_i e_a|**2``,
            about ``2**16 (b + sum_i (1 - 1/k_i))``. ``add_remove``: +-P of trace T at most; ``replace_one``: P - Q.
            Units that count by shares: as in `parity_matrix`.

            *Guarantee.* As of `parity_matrix`.

            *Source.* As of `parity_matrix`.
        """
        schema = self._data.schema
        sizes = tuple(schema.cardinality(name) for name in schema.variables)
        chosen = None if pairs is None else checked_pairs(pairs, len(sizes))
        matrix = ContrastMatrix(sizes, chosen, bool(with_count))
        arguments = {"pairs": chosen, "with_count": matrix.with_count}
        share = checked_share(share)
        return self._answer("interaction_matrix", arguments, share, self._matrix(matrix, share))

    def _matrix(self, matrix: FeatureMatrix, share: Fraction) -> Callable[[PureDP, Fraction], MatrixSums]:
        """What counts, after checks of public numbers."""
        noise = _planned(matrix, self.adjacency, self.cost, share)
        grid = share_grid(self._data, max(one.scale for one in noise))

        def mechanism(cost: PureDP, s: Fraction) -> MatrixSums:
            codes, parts = shared_codes(self._data, grid)
            # All of what moves is in its trace; the norms of the triangle are those of any such matrix.
            norms = trace_sensitivity(matrix.d, self.adjacency, grid * matrix.trace)
            exact = Sensitive(matrix.sums(codes, parts), self.adjacency, norms.l1, norms.frobenius, norms.frobenius)
            return MatrixSums.of(exact, matrix, cost, s, grid)

        return mechanism
