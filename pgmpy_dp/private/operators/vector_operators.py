"""The questions to records of numbers: how many, how large, a clipped sum, second moments, products of signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_number, fresh_copy, require_choice
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, SeveralNoisyMax
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.boxes import MAGNITUDES as MAGNITUDES
from pgmpy_dp.private.data.boxes import Box, magnitude_sensitivity, magnitudes, sign_products
from pgmpy_dp.private.data.moments import GRID as GRID
from pgmpy_dp.private.data.moments import centered_sums, mean_sensitivity, second_moments, unit_count
from pgmpy_dp.private.data.vectors import PrivateVectors, VectorFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.noise.matrix import MECHANISMS, WITH_ETA, MatrixNoise, plan_matrix_noise
from pgmpy_dp.private.operators.operator_base import Operator, SumOperator
from pgmpy_dp.private.operators.solutions import SymmetricNoise, part_of
from pgmpy_dp.private.sensitive import Sensitive


def checked_norm(name: str, value: Any) -> float:
    """A public norm to which records are clipped, of which powers are floats; TypeError or ValueError otherwise."""
    if value is None:
        raise ValueError(
            f"{name}=None: pass the public bound on the l2 norm of a record (less the centre) to which records are "
            "clipped, such as the root of the sum of the variances you expect; never a bound computed from "
            "the records, which would not be private"
        )
    norm = checked_number(name, value, positive=True)
    if not 1e-50 <= norm <= 1e50:
        raise ValueError(f"{name}={norm!r} leaves no room for its powers among the floats; change the records' units")
    return norm


def checked_point(name: str, value: Any, d: int | None = None) -> tuple[float, ...]:
    """A public vector as a tuple of finite floats, of `d` where it is known; TypeError or ValueError otherwise."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass one number per column")
    value = tuple(value)
    sizes = [abs(entry) if _is_real(entry) else entry for entry in value]
    checked = [checked_number(f"{name}[{k}]", size, positive=False) for k, size in enumerate(sizes)]
    if d is not None and len(checked) != d:
        raise ValueError(f"{name} has {len(checked)} entries for {d} columns; pass one number per column")
    return tuple(-size if entry < 0 else size for entry, size in zip(value, checked, strict=True))


def checked_box(value: Any, d: int) -> Box:
    """A box of `d` sides and scales whose numbers and quotients are floats; TypeError or ValueError otherwise."""
    if not isinstance(value, Box):
        raise TypeError(f"box={value!r} is a {type(value).__name__}; pass a Box of sides and scales, or None")
    lower, upper, scales = (checked_point(name, getattr(value, name), d) for name in ("lower", "upper", "scales"))
    for k, (low, high, scale) in enumerate(zip(lower, upper, scales, strict=True)):
        if not (-1e50 <= low < high <= 1e50 and 1e-50 <= scale <= 1e50):
            raise ValueError(
                f"side {k} of the box is from {low!r} to {high!r}, in units of {scale!r}; pass a lower side below an "
                "upper one, both within 1e50, and a scale between 1e-50 and 1e50"
            )
    return Box(lower, upper, scales)


def _pairs_moved(n_pairs: int, adjacency: Adjacency) -> tuple[float, float, float]:
    changed = changed_records(adjacency)
    return float(changed * n_pairs), root_up(Fraction(changed**2 * n_pairs)), float(changed)


@dataclass(frozen=True, slots=True)
class UnitCount(SumOperator[int]):
    """A noisy number of kept records, or of persons with one, where no public one is known.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        Where the number is public.

    Notes
    -----
    Privacy: one record or person more or fewer moves it by at most 1 (``add_remove``; under ``replace_one`` it is
    public). Discrete Laplace noise of scale ``1/(s epsilon)``, or Gaussian of ``sqrt(1/(2 s rho))``.
    """

    name = "unit_count"
    asks = VectorFacts
    moved = staticmethod(lambda: (1.0, 1.0))

    def checked(self, facts: VectorFacts) -> UnitCount:
        if facts.n_records is not None:
            raise ValueError(f"n_records={facts.n_records!r} is public; nothing has to be counted")
        return UnitCount()

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        return [unit_count(data)]

    def answered(self, drawn: list[np.ndarray]) -> int:
        return int(drawn[0][0])


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum(SumOperator[np.ndarray]):
    """The sum over records (over persons, of their means) of what is left of a public start, clipped, with noise.

    Parameters
    ----------
    start : sequence of d numbers
    radius : float
        The norm to which the difference from `start` is shortened.
    box : Box, optional
        The box to which records are clipped first; the difference is then in units of its scales.

    Returns
    -------
    ndarray of int64, shape (d,)
        In units of radius/GRID.

    Notes
    -----
    Privacy: a record or person adds an integer vector of l2 norm at most G = 2**15, so the sum moves by (sqrt(d) G, G)
    in l1 and l2 under ``add_remove``, twice as much under ``replace_one``
    (:func:`~pgmpy_dp.private.data.moments.mean_sensitivity`). Discrete Laplace noise of scale l1/(s epsilon), or
    Gaussian of l2/sqrt(2 s rho).

    Examples
    --------
    >>> ClippedSum.noise_of(4, Adjacency.ADD_REMOVE, PureDP(1.0), Fraction(1)).scale / GRID
    2.0
    """

    start: Sequence[float] | np.ndarray
    radius: float
    box: Box | None = None

    name = "clipped_sum"
    asks = VectorFacts
    moved = staticmethod(mean_sensitivity)

    def checked(self, facts: VectorFacts) -> ClippedSum:
        d = len(facts.columns)
        box = None if self.box is None else checked_box(self.box, d)
        return ClippedSum(checked_point("start", self.start, d), checked_norm("radius", self.radius), box)

    def _numbers(self, facts: Any) -> tuple[Any, ...]:
        return len(facts.columns), facts.adjacency

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        return [centered_sums(data, np.array(self.start), self.radius, self.box)]


@dataclass(frozen=True, slots=True, eq=False)
class Magnitudes(SumOperator[np.ndarray]):
    """Noisy numbers of records by the size of their distance from a centre, column by column.

    Parameters
    ----------
    center : sequence of d numbers
    box : Box
        The box to which records are clipped first, with the units of the distances.

    Returns
    -------
    ndarray of int64, shape (d * (MAGNITUDES + 1),)
        For each column the number of distances up to 2**-19.5, in each half octave up to 1, and above 1.

    Notes
    -----
    Privacy: a record, or person, is in one cell of each of d columns: (d, sqrt(d)) in l1 and l2 under ``add_remove``,
    (2 d, sqrt(2 d)) under ``replace_one`` (:func:`~pgmpy_dp.private.data.boxes.magnitude_sensitivity`), whatever the
    box. Discrete Laplace noise of scale l1/(s epsilon), or Gaussian of l2/sqrt(2 s rho).
    """

    center: Sequence[float] | np.ndarray
    box: Box

    name = "magnitudes"
    asks = VectorFacts
    moved = staticmethod(magnitude_sensitivity)

    def checked(self, facts: VectorFacts) -> Magnitudes:
        d = len(facts.columns)
        return Magnitudes(checked_point("center", self.center, d), checked_box(self.box, d))

    def _numbers(self, facts: Any) -> tuple[Any, ...]:
        return len(facts.columns), facts.adjacency

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        return [magnitudes(data, self.box, np.array(self.center))]


@dataclass(frozen=True, slots=True, eq=False)
class StrongestPairs(Operator[np.ndarray]):
    """The partner of each column: another one with which its signs agree about the least as expected.

    Parameters
    ----------
    center : sequence of d numbers
    expected : ndarray of int64, shape (d, d)
        What a model expects of the sums of products of signs.
    allowed : ndarray of bool, shape (d, d)
        Which others each column may get; never itself.

    Returns
    -------
    ndarray of int64, shape (d,)
        -1 for a column that may get none.

    Raises
    ------
    TypeError, ValueError
        For public arguments that are wrong, and where no column may get any.

    Notes
    -----
    Privacy
        *Sensitivity.* The score of a pair is ``|sum sign(x_i - c_i) sign(x_j - c_j) - expected_ij|``: it moves by at
        most D = 1 under ``add_remove``, 2 under ``replace_one``, whatever a record holds.

        *Guarantee.* m selections with independent noise, m the number of columns that may get one: Gumbel noise of
        scale ``D sqrt(m/(2 s rho))``, or exponential noise of scale ``2 D m/(s epsilon)``
        (:class:`~pgmpy_dp.private.curator.mechanism.SeveralNoisyMax`).

        *Source.* McSherry and Talwar 2007; Cesar and Rogers 2021.
    """

    center: Sequence[float] | np.ndarray
    expected: np.ndarray
    allowed: np.ndarray

    name = "strongest_pairs"
    asks = VectorFacts

    def checked(self, facts: VectorFacts) -> StrongestPairs:
        d = len(facts.columns)
        expected, allowed = fresh_copy(self.expected, None), fresh_copy(self.allowed, None)
        for name, value, base in (("expected", expected, np.integer), ("allowed", allowed, np.bool_)):
            if value.shape != (d, d) or not np.issubdtype(value.dtype, base):
                raise ValueError(f"{name} has shape {value.shape} and type {value.dtype}; pass {base.__name__}, {d, d}")
        if not ((expected >= -(2**50)) & (expected <= 2**50)).all():
            raise ValueError(
                "expected has entries beyond 2**50, which no sum of signs reaches; pass what a model expects"
            )
        allowed = allowed & ~np.eye(d, dtype=bool)
        if not allowed.any():
            raise ValueError("allowed has no pair of two columns; pass True where a column may be chosen")
        return StrongestPairs(checked_point("center", self.center, d), expected.astype(np.int64), allowed)

    def mechanism(self, facts: VectorFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> SeveralNoisyMax:
        return SeveralNoisyMax.planned(float(changed_records(facts.adjacency)), len(self._columns), cost, share)

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: SeveralNoisyMax, coins: Coins
    ) -> list[np.ndarray]:
        scores = np.abs(sign_products(data, np.array(self.center)) - self.expected)
        return [scores[row, self.allowed[row]] for row in self._columns]

    @property
    def _columns(self) -> list[int]:
        """The columns that may get another."""
        return np.flatnonzero(self.allowed.any(axis=1)).tolist()

    def noted(self, facts: VectorFacts, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"n_columns": len(self._columns)}

    def answered(self, drawn: np.ndarray) -> np.ndarray:
        partner = np.full(len(self.allowed), -1, dtype=np.int64)
        partner[self._columns] = [np.flatnonzero(self.allowed[r])[b] for r, b in zip(self._columns, drawn, strict=True)]
        return partner


@dataclass(frozen=True, slots=True, eq=False)
class PairSigns(SumOperator[np.ndarray]):
    """Noisy sums of the products of the signs of some pairs of columns.

    Parameters
    ----------
    center : sequence of d numbers
    pairs : sequence of (int, int)
        Positions i < j of columns, each pair once.

    Returns
    -------
    ndarray of int64, one for each pair

    Notes
    -----
    Privacy: a record or person adds -1, 0 or 1 to each of m sums: (m, sqrt(m)) in l1 and l2 under ``add_remove``, twice
    as much under ``replace_one``. Discrete Laplace noise of scale l1/(s epsilon), or Gaussian of l2/sqrt(2 s rho).
    """

    center: Sequence[float] | np.ndarray
    pairs: Sequence[tuple[int, int]]

    name = "pair_signs"
    asks = VectorFacts
    moved = staticmethod(_pairs_moved)

    def checked(self, facts: VectorFacts) -> PairSigns:
        d = len(facts.columns)
        chosen = tuple([(int(i), int(j)) for i, j in self.pairs])
        if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= i < j < d for i, j in chosen):
            raise ValueError(
                f"pairs={chosen[:9]!r} must be positions (i, j), 0 <= i < j < {d}, each once, at least one"
            )
        return PairSigns(checked_point("center", self.center, d), chosen)

    def _numbers(self, facts: Any) -> tuple[Any, ...]:
        return len(self.pairs), facts.adjacency

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        rows, columns = np.array(self.pairs).T
        sums = sign_products(data, np.array(self.center))[rows, columns]
        return [Sensitive(sums, facts.adjacency, *_pairs_moved(len(sums), facts.adjacency))]


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments(Operator[list[np.ndarray]]):
    """The sum of ``(x - center)(x - center)'`` over clipped records, with matrix noise.

    Parameters
    ----------
    center : sequence of d numbers
    row_norm : float
        B, to which ``x - center`` is shortened.
    noise : str
        One of `MECHANISMS`, not "auto". "one-sided-wishart" and "analytic-goe", and they alone, take an eta.
    box : Box, optional
        To which records are clipped first; ``x - center`` is then in units of its scales.

    Returns
    -------
    diagonal, off_diagonal : ndarray of int64
        Shapes (d,) and (d (d - 1)/2,), in units of (row_norm/GRID)**2 (times two scales of the box).

    Raises
    ------
    TypeError, ValueError
        For public arguments that are wrong, and noise that the curator's cost cannot pay.

    Notes
    -----
    Privacy
        *Sensitivity.* A record or person adds a positive semidefinite matrix of trace at most T = 2**30, around any
        centre and in any box: nuclear and Frobenius norm T under ``add_remove``; 2 T and sqrt(2) T under
        ``replace_one`` (:func:`~pgmpy_dp.private.data.moments.trace_sensitivity`).

        *Guarantee.* The share, by the noise's own proof (:mod:`pgmpy_dp.private.noise.matrix`); of the one-sided
        Wishart and of "analytic-goe" (s epsilon, eta)-DP. One-sided Wishart and Frobenius noise are made of floats.

        *Source.* Wang, Huai and Xu 2018, corrected; Dwork, Talwar, Thakurta and Zhang 2014.
    """

    center: Sequence[float] | np.ndarray
    row_norm: float
    noise: str
    box: Box | None = None

    name = "second_moments"
    asks = VectorFacts
    can_fail = True

    def checked(self, facts: VectorFacts) -> SecondMoments:
        d = len(facts.columns)
        box = None if self.box is None else checked_box(self.box, d)
        point, norm = checked_point("center", self.center, d), checked_norm("row_norm", self.row_norm)
        require_choice("noise", self.noise, MECHANISMS)
        return SecondMoments(point, norm, self.noise, box)

    def mechanism(self, facts: VectorFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> SymmetricNoise:
        if self.noise == "auto" or bool(eta) != (self.noise in WITH_ETA):
            raise ValueError(f"noise={self.noise!r} with eta={float(eta)!r}: name one; {WITH_ETA} alone need an eta")
        whole, single = part_of(cost, 1, eta), facts.unit is None
        plan = self.noise_of(self.noise, len(facts.columns), facts.adjacency, whole, share, single_records=single)
        return SymmetricNoise(None, plan)  # type: ignore[arg-type]

    def _exact(self, data: PrivateVectors, facts: VectorFacts, mechanism: SymmetricNoise, coins: Coins) -> Sensitive:
        return second_moments(data, np.array(self.center), self.row_norm, self.box)

    @staticmethod
    def noise_of(
        noise: str, n_columns: int, adjacency: Adjacency, budget: Budget, share: Fraction, *, single_records: bool
    ) -> MatrixNoise:
        """The noise and its cost: from public numbers, without records.

        See :func:`~pgmpy_dp.private.noise.matrix.plan_matrix_noise`: "auto" takes the smaller one where a budget leaves
        the choice.

        Examples
        --------
        >>> pure = Budget(epsilon=1.0)
        >>> noise = SecondMoments.noise_of("auto", 3, Adjacency.ADD_REMOVE, pure, Fraction(1), single_records=True)
        >>> noise.mechanism, noise.cost
        ('double-wishart', PureDP(epsilon=1.0))
        """
        return plan_matrix_noise(noise, n_columns, adjacency, budget, share=share, single_records=single_records)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
