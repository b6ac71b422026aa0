"""Numbers of records that are nearest to each of some public centres, and sums and second moments about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import fresh_copy, require_choice
from pgmpy_dp.mixtures.operators.block_operators import checked_length, gaussian_rho, require_clusters
from pgmpy_dp.mixtures.operators.vector_sums import (
    clipped_cluster_moments,
    clipped_cluster_sums,
)
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.mechanism import Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.vectors import PrivateVectors, VectorFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.noise.samplers import discrete_gaussian
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Noise

MOMENT_KINDS = ("spherical", "diag", "tied", "full")
"""Second moments of :class:`ClusterMoments`, by scikit-learn's names of covariances."""
_CLIP_BITS = 16  # a clip norm is 2**15 to 2**16 units of its grid
_MOMENT_BITS = 15  # the same of second moments, so that sums of squares of 2**32 records fit 64 bits
_MOST_MOMENTS = 1 << 24  # numbers that one request releases
_HALF_ROOT = Fraction(46341, 65536)  # a little above the root of 1/2
_COUNT_WEIGHT = {1: Fraction(1, 2), 2: Fraction(1)}  # by changed_records; chosen on made-up, public mixtures


def cluster_noise(
    adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float, bound: int = 1 << _CLIP_BITS
) -> tuple[Noise, ...]:
    """The noise of :class:`ClusterSums`, on counts and on sums in units of a grid: from public numbers.

    Parameters
    ----------
    adjacency : Adjacency
    cost : ZCDP
    share : Fraction or float
    bound : int
        The clip norm in units; default: the largest that it can be.

    Examples
    --------
    >>> [noise.scale for noise in cluster_noise(Adjacency.REPLACE_ONE, ZCDP(0.5), 1, bound=40000)]
    [2.0, 80000.0]
    """
    units, square = _step_units(adjacency, bound)
    return WeightedNoise.noise_for(units, square, gaussian_rho(cost, share))


def moment_noise(
    kind: str, n_centres: int, n_columns: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float
) -> tuple[Noise, ...]:
    """The noise of :class:`ClusterMoments` in parts of the squared radius: from public numbers.

    On the diagonal and, for "tied" and "full", on the rest.

    Parameters
    ----------
    kind : str
        One of `MOMENT_KINDS`.
    n_centres, n_columns : int
    adjacency : Adjacency
    cost : ZCDP
    share : Fraction or float

    Returns
    -------
    tuple of Noise
        Scales of sums over records, where a record adds (difference/radius)**2: multiples of 2**-30.

    Examples
    --------
    >>> [noise.scale for noise in moment_noise("spherical", 3, 8, Adjacency.ADD_REMOVE, ZCDP(0.5), 1)]
    [1.0]
    """
    bound = 1 << _MOMENT_BITS
    units, square = _moment_units(kind, n_centres, n_columns, adjacency, bound)
    noises = WeightedNoise.noise_for(units, square, gaussian_rho(cost, share))
    return tuple(replace(noise, scale=noise.scale / bound**2) for noise in noises)


def moment_unit(radius: float) -> float:
    """The length in whose squares :class:`ClusterMoments` counts; a power of two.

    Examples
    --------
    >>> moment_unit(1.0) == 2.0**-14
    True
    """
    return power_of_two(radius) / 2.0**_MOMENT_BITS


def power_of_two(length: float) -> float:
    """The smallest power of two above `length`.

    Examples
    --------
    >>> power_of_two(1.0), power_of_two(0.75)
    (2.0, 1.0)
    """
    return math.ldexp(1.0, math.frexp(length)[1])


@dataclass(frozen=True, eq=False, repr=False)
class WeightedNoise(Mechanism):
    """Integer arrays, each with Gaussian noise in proportion to its unit, for a bound on what all move by together.

    Attributes
    ----------
    exact : tuple of ndarray of int64
    units : tuple of Fraction
        Of each array.
    square : Fraction
        The sum over the arrays of their squared l2 changes over their squared units is never more.

    Notes
    -----
    Privacy: independent discrete Gaussian noise of scale ``sigma_i`` on coordinate i, which moves by ``D_i``, has Renyi
    divergences of at most ``alpha sum_i D_i**2/(2 sigma_i**2)`` (Canonne, Kamath and Steinke 2020, Theorem 4,
    coordinate by coordinate). With scales ``unit sqrt(square/(2 s rho))``, `draw` costs the share s of rho.
    """

    exact: tuple[np.ndarray, ...]
    units: tuple[Fraction, ...]
    square: Fraction
    noise: tuple[Noise, ...]

    name = "discrete_gaussian"

    @staticmethod
    def noise_for(units: Iterable[Fraction], square: Fraction, rho: Fraction) -> tuple[Noise, ...]:
        """The noise of arrays in these units; ValueError where it would bury any count."""
        parts = (rho / (square * unit**2) for unit in units)
        return tuple(Noise("discrete_gaussian", gaussian_scales([1.0], part)[0]) for part in parts)

    @classmethod
    def planned(cls, units: Iterable[Fraction], square: Fraction, rho: Fraction) -> WeightedNoise:
        """The noise of arrays in these units, together for this rho; no arrays are there yet."""
        units = tuple(units)
        return cls((), units, square, cls.noise_for(units, square, rho))

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Noisy arrays."""
        return [
            discrete_gaussian(values, noise.scale, rng=rng)
            for values, noise in zip(self.exact, self.noise, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSums(Operator[tuple[np.ndarray, np.ndarray]]):
    """The noisy number of records that are nearest to each of some centres, and sums of their clipped differences.

    Parameters
    ----------
    centres : ndarray, shape (k, d)
        Public; any numbers.
    radius : float
        Clip norm of a record's difference.

    Returns
    -------
    counts : ndarray of int64, shape (k,)
        They may be negative.
    sums : ndarray of float64, shape (k, d)
        Of differences, in the data's units.

    Raises
    ------
    TypeError, ValueError
        As :class:`~pgmpy_dp.mixtures.operators.block_operators.BlockCells`.

    Notes
    -----
    Privacy
        *Sensitivity.* A record is (1, v) at the centre nearest to it, with integers v of norm at most `bound`, the
        radius in units of a public grid (:func:`pgmpy_dp.mixtures.operators.vector_sums.clipped_cluster_sums`). So with
        counts in units of 1/w and sums in units of the bound, the squared l2 distance of neighbours is at most ``w**2 +
        1`` under ``add_remove``, w = 1/2. Under ``replace_one`` two vectors of one centre are at most two bounds apart,
        and two records of two centres move ``2 (w**2 + 1)``: 4 for w = 1.

        *Guarantee.* The share s of rho, whatever the number of centres: Gaussian noise of scales ``D/(w sqrt(2 s
        rho))`` on counts and ``bound D/sqrt(2 s rho)`` on sums, D**2 being that distance.

        *Source.* Canonne, Kamath and Steinke 2020, Theorem 4.
    """

    centres: np.ndarray
    radius: float

    name = "cluster_sums"
    asks = VectorFacts

    def checked(self, facts: VectorFacts) -> ClusterSums:
        require_clusters(facts)
        radius = checked_length("radius", self.radius)
        return ClusterSums(_checked_centres(self.centres, len(facts.columns)), radius)

    def mechanism(self, facts: VectorFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> WeightedNoise:
        return WeightedNoise.planned(*_step_units(facts.adjacency, self._grid[1]), gaussian_rho(cost, share))

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: WeightedNoise, coins: Coins
    ) -> Sequence[np.ndarray]:
        return clipped_cluster_sums(data, self.centres, *self._grid)

    @property
    def _grid(self) -> tuple[float, int]:
        """The unit of sums, and the clip norm in it."""
        unit = power_of_two(self.radius) / 2.0**_CLIP_BITS
        return unit, math.floor(self.radius / unit)

    def answered(self, drawn: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return drawn[0], self._grid[0] * drawn[1]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMoments(Operator[list[np.ndarray]]):
    """Sums of squares, or of products, of clipped differences of records from the nearest centre, with noise.

    Parameters
    ----------
    centres : ndarray, shape (k, d)
        Public; any numbers.
    radius : float
        The length to which a record's difference z is shortened: in the l4 norm for "diag", else in the l2 norm.
    kind : {"spherical", "diag", "tied", "full"}
        What a record adds: its squared length, the squares of its entries, or z z', for "tied" to one matrix for all
        centres.

    Returns
    -------
    diagonal : ndarray of int64
        Shape (k, 1) for "spherical", (k, d) for "diag" and "full", (1, d) for "tied"; in squares of
        :func:`moment_unit`.
    off_diagonal : ndarray of int64
        For "tied" and "full" alone: upper triangles without their diagonals, row by row, of as many rows.

    Raises
    ------
    TypeError, ValueError
        As :class:`~pgmpy_dp.mixtures.operators.block_operators.BlockCells`; for more than 2**24 numbers.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds to one centre a vector of l2 norm at most B**2, B being the radius in units of a
        public grid, if entries off the diagonal are multiplied by the root of 2
        (:func:`pgmpy_dp.mixtures.operators.vector_sums.clipped_cluster_moments`): B**2 under ``add_remove``. Two such
        vectors, of one centre or of two, have an inner product of at least 0, so ``replace_one`` moves by at most
        sqrt(2) B**2; of one number alone (k = 1 of "spherical", d = 1) by at most B**2.

        *Guarantee.* The share s of rho, whatever the number of centres: Gaussian noise of scale ``B**2 D/sqrt(2 s
        rho)`` on the diagonal, of that over sqrt(2), rounded up by less than 1e-5 of it, off the diagonal; D is 1 or
        sqrt(2).

        *Source.* Dwork, Talwar, Thakurta and Zhang 2014, for single records; Canonne, Kamath and Steinke 2020,
        Theorem 4.
    """

    centres: np.ndarray
    radius: float
    kind: str

    name = "cluster_moments"
    asks = VectorFacts

    def checked(self, facts: VectorFacts) -> ClusterMoments:
        require_clusters(facts)
        radius, kind = checked_length("radius", self.radius), self.kind
        require_choice("kind", kind, MOMENT_KINDS)
        d = len(facts.columns)
        centres = _checked_centres(self.centres, d)
        k = len(centres)
        numbers = (1 if kind == "tied" else k) * (d * (d + 1) // 2 if kind in ("tied", "full") else d)
        if numbers > _MOST_MOMENTS:
            raise ValueError(f"kind={kind!r} of {k} centres in {d} columns is {numbers} numbers; pass kind='diag'")
        return ClusterMoments(centres, radius, kind)

    def mechanism(self, facts: VectorFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> WeightedNoise:
        (k, d), (_, bound) = self.centres.shape, self._grid
        return WeightedNoise.planned(*_moment_units(self.kind, k, d, facts.adjacency, bound), gaussian_rho(cost, share))

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: WeightedNoise, coins: Coins
    ) -> Sequence[np.ndarray]:
        return clipped_cluster_moments(data, self.centres, *self._grid, self.kind)[: len(mechanism.units)]

    @property
    def _grid(self) -> tuple[float, int]:
        """The unit of differences, and the radius in it."""
        unit = moment_unit(self.radius)
        return unit, math.floor(self.radius / unit)


def _step_units(adjacency: Adjacency, bound: int) -> tuple[tuple[Fraction, Fraction], Fraction]:
    """Units of counts and sums, and the squared distance of neighbours in them; see `ClusterSums`."""
    weight = _COUNT_WEIGHT[changed_records(adjacency)]
    single = weight**2 + 1
    square = single if changed_records(adjacency) == 1 else max(Fraction(4), 2 * single)
    return (1 / weight, Fraction(bound)), square


def _moment_units(
    kind: str, n_centres: int, n_columns: int, adjacency: Adjacency, bound: int
) -> tuple[tuple[Fraction, ...], Fraction]:
    """Units of the diagonal and of the rest, and the squared distance in them; see `ClusterMoments`."""
    whole = Fraction(bound) ** 2
    one_column = n_columns == 1 or kind == "spherical"
    alone = one_column and (n_centres == 1 or kind == "tied")
    square = Fraction(1 if alone else changed_records(adjacency))
    return (whole, whole * _HALF_ROOT)[: 2 if kind in ("tied", "full") else 1], square


def _checked_centres(centres: np.ndarray, n_columns: int) -> np.ndarray:
    centres = fresh_copy(centres)
    if centres.ndim != 2 or not len(centres) or centres.shape[1] != n_columns:
        raise ValueError(f"centres have the shape {centres.shape}; pass one or more, of {n_columns} numbers each")
    return centres
