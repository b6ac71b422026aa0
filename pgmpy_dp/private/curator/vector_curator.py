"""Questions about records of numbers: how many, how large, a clipped sum, second moments, products of signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_number, exact_fraction, own_copy
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import checked_share
from pgmpy_dp.private.curator.mechanism import SeveralNoisyMax, SymmetricNoise, additive_scales
from pgmpy_dp.private.curator.solutions import SolutionCurator, part_of
from pgmpy_dp.private.data.boxes import MAGNITUDES, Box, magnitude_sensitivity, magnitudes, sign_products
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.moments import GRID, centered_sums, mean_sensitivity, second_moments, unit_count
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.noise.matrix import MECHANISMS, WITH_ETA, MatrixNoise, plan_matrix_noise
from pgmpy_dp.private.noise.selection import selection_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive

__all__ = [
    "GRID",
    "MAGNITUDES",
    "MECHANISMS",
    "Box",
    "MatrixNoise",
    "VectorCurator",
    "checked_box",
    "checked_norm",
    "checked_point",
    "clipped_sum_noise",
    "magnitudes_noise",
    "moments_noise",
    "pair_signs_noise",
    "unit_count_noise",
]


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


def _boxed(box: Box | None) -> Mapping[str, Any]:
    return {} if box is None else {"box": box}


def magnitudes_noise(n_columns: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float) -> Noise:
    """The noise that :meth:`VectorCurator.magnitudes` adds to each count: from public numbers, without records."""
    l1, l2, _ = magnitude_sensitivity(n_columns, adjacency)
    return additive_scales([(l1, l2)], cost, checked_share(share))[0]


def pair_signs_noise(n_pairs: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float) -> Noise:
    """The noise that :meth:`VectorCurator.pair_signs` adds to each sum: from public numbers, without records."""
    l1, l2, _ = _pairs_moved(n_pairs, adjacency)
    return additive_scales([(l1, l2)], cost, checked_share(share))[0]


def _pairs_moved(n_pairs: int, adjacency: Adjacency) -> tuple[float, float, float]:
    changed = changed_records(adjacency)
    return float(changed * n_pairs), root_up(Fraction(changed**2 * n_pairs)), float(changed)


def unit_count_noise(cost: PureDP | ZCDP, share: Fraction | float) -> Noise:
    """The noise of :meth:`VectorCurator.unit_count`: from public numbers, without records."""
    return additive_scales([(1.0, 1.0)], cost, checked_share(share))[0]


def clipped_sum_noise(n_columns: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float) -> Noise:
    """The noise that :meth:`VectorCurator.clipped_sum` adds to each number: from public numbers, without records.

    Examples
    --------
    >>> clipped_sum_noise(4, Adjacency.ADD_REMOVE, PureDP(1.0), 1).scale / GRID
    2.0
    """
    l1, l2, _ = mean_sensitivity(n_columns, adjacency)
    return additive_scales([(l1, l2)], cost, checked_share(share))[0]


def moments_noise(
    mechanism: str, n_columns: int, adjacency: Adjacency, budget: Budget, share: Fraction, *, single_records: bool
) -> MatrixNoise:
    """The noise of :meth:`VectorCurator.second_moments` and its cost: from public numbers, without records.

    See :func:`~pgmpy_dp.private.noise.matrix.plan_matrix_noise`: "auto" takes the smaller one where a budget leaves the
    choice.

    Examples
    --------
    >>> noise = moments_noise("auto", 3, Adjacency.ADD_REMOVE, Budget(epsilon=1.0), Fraction(1), single_records=True)
    >>> noise.mechanism, noise.cost
    ('double-wishart', PureDP(epsilon=1.0))
    """
    return plan_matrix_noise(mechanism, n_columns, adjacency, budget, share=share, single_records=single_records)


class VectorCurator(SolutionCurator):
    """Private records of numbers, and a budget of their own."""

    kind = PrivateVectors
    _data: PrivateVectors

    def __init__(self, data: PrivateVectors, budget: Budget, **facts: Any) -> None:
        require_data_and_budget(data, PrivateVectors, budget)
        super().__init__(data, budget, **facts)

    def unit_count(self, share: Fraction | float) -> int:
        """A noisy number of kept records, or of persons with one, where no public one is known.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        ValueError
            For a share that is not positive, and where the number is public.

        Notes
        -----
        Privacy: one record or person more or fewer moves it by at most 1 (``add_remove``; under ``replace_one`` it is
        public). Discrete Laplace noise of scale ``1/(s epsilon)``, or Gaussian of ``sqrt(1/(2 s rho))``.
        """
        if self._data.n_records is not None:
            raise ValueError(f"n_records={self._data.n_records!r} is public; nothing has to be counted")
        (noisy,) = self._additive("unit_count", {}, share, [(1.0, 1.0)], lambda: [unit_count(self._data)])
        return int(noisy[0])

    def clipped_sum(
        self,
        start: Sequence[float] | np.ndarray,
        radius: float,
        share: Fraction | float,
        box: Box | None = None,
    ) -> np.ndarray:
        """The sum over records (over persons, of their means) of what is left of a public start, clipped, with noise.

        Parameters
        ----------
        start : sequence of d numbers
        radius : float
            To which the difference from `start` is shortened.
        share : Fraction or float
        box : Box, optional
            To which records are clipped first; the difference is then in units of its scales.

        Returns
        -------
        ndarray of int64, shape (d,)
            In units of radius/GRID.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For public arguments that are wrong; nothing is spent.

        Notes
        -----
        Privacy: a record or person adds an integer vector of l2 norm at most G = 2**15, so the sum moves by (sqrt(d) G,
        G) in l1 and l2 under ``add_remove``, twice as much under ``replace_one``
        (:func:`~pgmpy_dp.private.data.moments.mean_sensitivity`). Discrete Laplace noise of scale l1/(s epsilon), or
        Gaussian of l2/sqrt(2 s rho).
        """
        d = len(self._data.columns)
        point, norm = checked_point("start", start, d), checked_norm("radius", radius)
        box = None if box is None else checked_box(box, d)
        arguments = {"start": point, "radius": norm, **_boxed(box)}
        norms = [mean_sensitivity(d, self.adjacency)]
        return self._additive(
            "clipped_sum", arguments, share, norms, lambda: [centered_sums(self._data, np.array(point), norm, box)]
        )[0]

    def magnitudes(self, center: Sequence[float] | np.ndarray, box: Box, share: Fraction | float) -> np.ndarray:
        """Noisy numbers of records by the size of their distance from a centre, column by column.

        Parameters
        ----------
        center : sequence of d numbers
        box : Box
            To which records are clipped first, with the units of the distances.
        share : Fraction or float

        Returns
        -------
        ndarray of int64, shape (d * (MAGNITUDES + 1),)
            For each column the number of distances up to 2**-19.5, in each half octave up to 1, and above 1.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For public arguments that are wrong; nothing is spent.

        Notes
        -----
        Privacy: a record, or person, is in one cell of each of d columns: (d, sqrt(d)) in l1 and l2 under
        ``add_remove``, (2 d, sqrt(2 d)) under ``replace_one``
        (:func:`~pgmpy_dp.private.data.boxes.magnitude_sensitivity`), whatever the box. Discrete Laplace noise of scale
        l1/(s epsilon), or Gaussian of l2/sqrt(2 s rho).
        """
        d = len(self._data.columns)
        point, box = checked_point("center", center, d), checked_box(box, d)
        norms = [magnitude_sensitivity(d, self.adjacency)]
        return self._additive(
            "magnitudes",
            {"center": point, "box": box},
            share,
            norms,
            lambda: [magnitudes(self._data, box, np.array(point))],
        )[0]

    def strongest_pairs(
        self,
        center: Sequence[float] | np.ndarray,
        expected: np.ndarray,
        allowed: np.ndarray,
        share: Fraction | float,
    ) -> np.ndarray:
        """For each column one other column with which its signs agree about the least as expected.

        Parameters
        ----------
        center : sequence of d numbers
        expected : ndarray of int64, shape (d, d)
            What a model expects of the sums of products of signs.
        allowed : ndarray of bool, shape (d, d)
            Which others each column may get; never itself.
        share : Fraction or float

        Returns
        -------
        ndarray of int64, shape (d,)
            -1 for a column that may get none.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For public arguments that are wrong, and where no column may get any; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* The score of a pair is ``|sum sign(x_i - c_i) sign(x_j - c_j) - expected_ij|``: it moves by
            at most D = 1 under ``add_remove``, 2 under ``replace_one``, whatever a record holds.

            *Guarantee.* m selections with independent noise, m the number of columns that may get one: Gumbel noise of
            scale ``D sqrt(m/(2 s rho))``, or exponential noise of scale ``2 D m/(s epsilon)``
            (:class:`~pgmpy_dp.private.curator.mechanism.SeveralNoisyMax`).

            *Source.* McSherry and Talwar 2007; Cesar and Rogers 2021.
        """
        d, data = len(self._data.columns), self._data
        point = checked_point("center", center, d)
        expected, allowed = own_copy(expected, None), own_copy(allowed, None)
        for name, value, kind in (("expected", expected, np.integer), ("allowed", allowed, np.bool_)):
            if value.shape != (d, d) or not np.issubdtype(value.dtype, kind):
                raise ValueError(f"{name} has shape {value.shape} and type {value.dtype}; pass {kind.__name__}, {d, d}")
        if not ((expected >= -(2**50)) & (expected <= 2**50)).all():
            raise ValueError(
                "expected has entries beyond 2**50, which no sum of signs reaches; pass what a model expects"
            )
        expected, allowed = expected.astype(np.int64), allowed & ~np.eye(d, dtype=bool)
        candidates = [np.flatnonzero(row) for row in allowed]
        asked = [r for r, chosen in enumerate(candidates) if len(chosen)]
        if not asked:
            raise ValueError("allowed has no pair of two columns; pass True where a column may be chosen")
        changed = float(changed_records(self.adjacency))
        selection_scale(changed, self.cost, checked_share(share) / len(asked))  # refuses before anything is spent

        def mechanism(cost: PureDP | ZCDP, s: Fraction) -> SeveralNoisyMax:
            scores = np.abs(sign_products(data, np.array(point)) - expected)
            rows = [scores[r, candidates[r]] for r in asked]
            return SeveralNoisyMax.of(rows, changed, len(asked), cost, s)

        best = self._answer(
            "strongest_pairs",
            {"center": point, "expected": expected, "allowed": allowed},
            share,
            mechanism,
            noted={"n_columns": len(asked)},
        )
        found = np.full(d, -1, dtype=np.int64)
        found[asked] = [candidates[r][b] for r, b in zip(asked, best, strict=True)]
        return found

    def pair_signs(
        self, center: Sequence[float] | np.ndarray, pairs: Sequence[tuple[int, int]], share: Fraction | float
    ) -> np.ndarray:
        """Noisy sums of the products of the signs of some pairs of columns.

        Parameters
        ----------
        center : sequence of d numbers
        pairs : sequence of (int, int)
            Positions i < j of columns, each pair once.
        share : Fraction or float

        Returns
        -------
        ndarray of int64, one for each pair

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For public arguments that are wrong; nothing is spent.

        Notes
        -----
        Privacy: a record or person adds -1, 0 or 1 to each of m sums: (m, sqrt(m)) in l1 and l2 under ``add_remove``,
        twice as much under ``replace_one``. Discrete Laplace noise of scale l1/(s epsilon), or Gaussian of
        l2/sqrt(2 s rho).
        """
        d, data = len(self._data.columns), self._data
        point = checked_point("center", center, d)
        chosen = tuple((int(i), int(j)) for i, j in pairs)
        if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= i < j < d for i, j in chosen):
            raise ValueError(
                f"pairs={chosen[:9]!r} must be positions (i, j), 0 <= i < j < {d}, each once, at least one"
            )
        norms = [_pairs_moved(len(chosen), self.adjacency)]
        rows, columns = np.array(chosen).T

        def exact() -> list[Sensitive]:
            sums = sign_products(data, np.array(point))[rows, columns]
            return [Sensitive(sums, data.adjacency, *_pairs_moved(len(sums), data.adjacency))]

        return self._additive("pair_signs", {"center": point, "pairs": chosen}, share, norms, exact)[0]

    def second_moments(
        self,
        center: Sequence[float] | np.ndarray,
        row_norm: float,
        mechanism: str,
        share: Fraction | float,
        eta: Fraction | float = 0,
        box: Box | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The sum of ``(x - center)(x - center)'`` over clipped records, with matrix noise.

        Parameters
        ----------
        center : sequence of d numbers
        row_norm : float
            B, to which ``x - center`` is shortened.
        mechanism : str
            One of `MECHANISMS`, not "auto".
        share : Fraction or float
        eta : Fraction or float
            What it takes of the reserve: for "one-sided-wishart" and "analytic-goe" alone.
        box : Box, optional
            To which records are clipped first; ``x - center`` is then in units of its scales.

        Returns
        -------
        diagonal, off_diagonal : ndarray of int64
            Shapes (d,) and (d (d - 1)/2,), in units of (row_norm/GRID)**2 (times two scales of the box).

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For public arguments that are wrong, and noise that the curator's cost cannot pay; nothing is spent.

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
        d, data = len(self._data.columns), self._data
        point, norm = checked_point("center", center, d), checked_norm("row_norm", row_norm)
        box = None if box is None else checked_box(box, d)
        share, eta = checked_share(share), exact_fraction(eta)  # of which the noise is made, and which are debited
        if mechanism == "auto" or bool(eta) != (mechanism in WITH_ETA):
            raise ValueError(f"mechanism={mechanism!r} with eta={float(eta)!r}: name one; {WITH_ETA} alone need an eta")
        single = data.unit is None
        plan = moments_noise(mechanism, d, self.adjacency, part_of(self.cost, 1, eta), share, single_records=single)
        diagonal, off_diagonal = self._answer(
            "second_moments",
            {"center": point, "row_norm": norm, "mechanism": mechanism, **_boxed(box)},
            share,
            lambda _c, _s: SymmetricNoise(second_moments(data, np.array(point), norm, box), plan),
            eta,
        )
        return diagonal, off_diagonal


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
