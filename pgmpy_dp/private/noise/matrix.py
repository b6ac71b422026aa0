"""Symmetric noise for second moments: how much of it a budget needs, planned from public numbers, and adding it.

What is protected adds a positive semidefinite matrix of trace at most T to G, see
:func:`~pgmpy_dp.private.data.moments.trace_sensitivity` for the l1 (D1), Frobenius (DF) and nuclear (DN) sensitivities.
With d columns and H the noise:

``"double-wishart"``, pure
    ``H = W1 - W2``, independent positive semidefinite matrices of integers with the law ``f(W) = const exp(-tr
    W/(2c))``, c a whole number of at least ``DN/(2 epsilon)``: Wishart matrices ``W_d(d + 1, c I)`` on a lattice.
    *Proof.* Let P >= 0 be a matrix of integers. ``f(W + P) = exp(-tr P/(2c)) f(W)`` for W >= 0. The probability of H =
    M is ``g(M) = sum f(M + B) f(B)`` over integer B >= 0, M + B >= 0. Keeping of ``g(M - P)`` only B >= P, that is B =
    B' + P, leaves ``sum f(M + B') f(B' + P) = exp(-tr P/(2c)) g(M)``; keeping of ``g(M)`` only M - P + B >= 0 leaves
    ``sum f(M - P + B + P) f(B) = exp(-tr P/(2c)) g(M - P)``. Both parts are smaller than the wholes, so log g moves by
    at most tr P/(2c) under a shift by P, and by at most (tr P + tr Q)/(2c) under one by P - Q. QED. The constants of f
    play no part, and neither does how f falls off the cone: with d degrees of freedom or fewer f would grow at its
    border, and the proof fails. For d = 1 it is the discrete Laplace distribution of scale 2c. So DN is a trace: T,
    or twice T for what is replaced (of numbers, d = 1, T). :mod:`pgmpy_dp.private.noise.integer_wishart` draws W.
``"laplace"``, pure
    Independent on the upper triangle, scale D1/epsilon. ``"published-laplace"`` has the scale 2 d T/epsilon of Wang,
    Huai and Xu (2018), which is larger than needed under either adjacency (d >= 2: ``sqrt(d (d + 3)/2) <= 2 d``).
``"frobenius"``, pure
    Density proportional to ``exp(-epsilon norm_F(H)/DF)``, the K-norm mechanism of Hardt and Talwar (2010): a radius of
    law Gamma(D, DF/epsilon), D = d (d + 1)/2, in a uniform direction. Private by the triangle inequality.
``"goe"``, zCDP
    Independent Gaussian, sigma on and sigma/sqrt(2) off the diagonal. A shift by S costs ``sum_i S_ii**2/(2 sigma**2) +
    sum_{i<j} S_ij**2/(2 (sigma**2/2)) = norm_F(S)**2/(2 sigma**2)``, so ``sigma = DF/sqrt(2 rho)``; with integer shifts
    the same holds for the discrete Gaussian, cell by cell (Canonne, Kamath and Steinke 2020, Theorem 4).
``"analytic-goe"``, (epsilon, delta)
    The GOE again, with the sigma of one release by the exact formula of Balle and Wang (2018). The continuous GOE on
    the triangle is spherical after the entries are divided by their scales, and S moves it by ``norm_F(S)/sigma`` then,
    so the formula at ``sigma/DF`` holds for it, and for its entries rounded to integers: shifting by integers and
    rounding commute. The discrete Gaussian of scale s is within total variation ``1/(24 s**2 - 1)`` of the rounded one
    (:mod:`pgmpy_dp.private.noise.fine_grid` has the proof), so all D cells are within ``tau = D/(12 sigma**2 - 1)``,
    and
    ``(1 + exp(epsilon)) tau`` of delta pays for that; at most a thousandth of it, or the noise is refused. No zCDP is
    claimed: it is for a release that takes the epsilon and the delta of its curator whole.
``"gaussian"``, zCDP
    Independent Gaussian of one sigma on the upper triangle, as Wang, Huai and Xu (2018) add it, calibrated for the
    declared adjacency. Same guarantee as ``"goe"``, sqrt(2) times its error: for comparison.
``"one-sided-wishart"``, (epsilon, delta)
    ``W_d(k, T I) - k T I``, with the proof and the smallest k of :mod:`pgmpy_dp.private.noise.wishart`. For add_remove
    and single records only. It never beats ``"goe"``.

Laplace and Gaussian noise is OpenDP's, on integers, exactly distributed, and so is the double Wishart. The other two
need real matrices. They are made in **double precision** from the operating system's random bits, with normal variables
by Box and Muller's formula, which end at 8.6 standard deviations. They are rounded to whole units of G, of which the
noise has about 2**30/epsilon. Rounding is post-processing. What remains is the difference between floats and reals, as
in any such sampler.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import exact_fraction
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.moments import TRACE, TraceSensitivity, trace_sensitivity
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import LARGEST_SCALE, gaussian_scales, laplace_scales, root_up, round_up
from pgmpy_dp.private.noise.integer_wishart import integer_wishart
from pgmpy_dp.private.noise.wishart import smallest_degrees
from pgmpy_dp.private.sensitive import Noise, Sensitive

_MEASURE = {
    "double-wishart": "pure",
    "laplace": "pure",
    "published-laplace": "pure",
    "frobenius": "pure",
    "goe": "zcdp",
    "gaussian": "zcdp",
    "one-sided-wishart": "approximate",
    "analytic-goe": "approximate",
}
MECHANISMS = ("auto", *_MEASURE)
WITH_ETA = tuple(name for name, measure in _MEASURE.items() if measure == "approximate")
"""Those whose guarantee has a delta of its own."""

_TAU_SHARE = 2.0**-10  # of delta, at most, for the distance between discrete and continuous noise

_LIMIT = 1 << 61


@dataclass(frozen=True)
class MatrixNoise:
    """Noise fixed before the records are looked at, in units of the second moments.

    Parameters
    ----------
    mechanism : str
        One of `MECHANISMS`, not "auto".
    n_columns : int
        d.
    scale : float
        c, b, DF/epsilon, sigma or T, as the mechanism has it.
    diagonal, off_diagonal : Noise
        Of one cell.
    cost : PureDP, ZCDP or ApproxDP
        Of everything that is released with it, of which the matrix has `share`.
    degrees : int, optional
        k, of the one-sided Wishart.
    """

    mechanism: str
    n_columns: int
    scale: float
    diagonal: Noise
    off_diagonal: Noise
    cost: PureDP | ZCDP | ApproxDP
    degrees: int | None = None

    @property
    def name(self) -> str:
        """The name in a release: the law; of Wishart noise another one than when it was made in floating point."""
        return "discrete_wishart" if self.mechanism == "double-wishart" else self.mechanism.replace("-", "_")

    @property
    def frobenius(self) -> float:
        """Root of the expected squared Frobenius norm of the noise."""
        d = self.n_columns
        return math.sqrt(d * self.diagonal.variance + d * (d - 1) * self.off_diagonal.variance)


def plan_matrix_noise(
    mechanism: str,
    n_columns: int,
    adjacency: Adjacency,
    budget: Budget,
    *,
    share: Fraction = Fraction(1),
    single_records: bool = True,
    trace: int = TRACE,
    sensitivity: TraceSensitivity | None = None,
) -> MatrixNoise:
    """The noise that a share of a budget needs; refuses what has no proof.

    Parameters
    ----------
    mechanism : str
        "auto": double Wishart for a pure budget, GOE for rho, and for (epsilon, delta) whichever of the two has the
        smaller Frobenius norm, which depends on public numbers alone.
    n_columns : int
    adjacency : Adjacency
    budget : Budget
    share : Fraction
        In (0, 1], of epsilon or rho.
    single_records : bool
        False where a person's several records are protected together.
    trace : int
        T.
    sensitivity : TraceSensitivity, optional
        Of a matrix that is no sum of such matrices, instead of T; not for Wishart noise.

    Raises
    ------
    ValueError
        For an unknown mechanism, one that cannot give the budget's measure, or has no proof for the adjacency or for
        persons; for noise beyond 64-bit integers.

    Examples
    --------
    >>> noise = plan_matrix_noise("auto", 3, Adjacency.ADD_REMOVE, Budget(epsilon=0.5), trace=1000)
    >>> noise.mechanism, noise.scale, noise.cost
    ('double-wishart', 1000.0, PureDP(epsilon=0.5))
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism={mechanism!r} is not supported; use one of {MECHANISMS}")
    if sensitivity is None:
        sensitivity = trace_sensitivity(n_columns, adjacency, trace)
    elif "wishart" in mechanism:
        raise ValueError(f"mechanism={mechanism!r} is for sums of positive semidefinite matrices; use mechanism='goe'")
    plan = (n_columns, sensitivity, budget, share, trace)
    if mechanism == "auto":
        names = [] if budget.epsilon is None else ["double-wishart"]
        names += ["goe"] if budget.rho is not None or budget.delta else []
        return min((_planned(name, *plan) for name in names), key=lambda noise: noise.frobenius)
    measure = _MEASURE[mechanism]
    if measure == "pure" and budget.rho is not None:
        raise ValueError(f"mechanism={mechanism!r} is for an epsilon, but the budget is {budget}; use mechanism='goe'")
    if measure == "zcdp" and budget.rho is None and not budget.delta:
        raise ValueError(
            f"mechanism={mechanism!r} cannot give {budget}: Gaussian noise has no pure guarantee; pass rho, or a delta "
            "above 0, or mechanism='double-wishart'"
        )
    if measure == "approximate":
        if not budget.delta:
            raise ValueError(
                f"mechanism={mechanism!r} cannot give {budget}: such noise is private only with a delta (the pure "
                "guarantee published for one-sided noise is false); pass epsilon and delta, or "
                "mechanism='double-wishart'"
            )
        if mechanism == "analytic-goe":
            return _planned(mechanism, *plan)
        if adjacency != Adjacency.ADD_REMOVE or not single_records:
            raise ValueError(
                f"mechanism={mechanism!r} has a proof for single records under adjacency='add_remove' only; "
                "use mechanism='goe', which is more accurate too"
            )
    return _planned(mechanism, *plan)


def _planned(
    mechanism: str, d: int, sensitivity: TraceSensitivity, budget: Budget, share: Fraction, trace: int
) -> MatrixNoise:
    cost: PureDP | ZCDP | ApproxDP
    if _MEASURE[mechanism] == "zcdp":
        rho = budget.rho
        if rho is None:
            assert budget.epsilon is not None
            rho = accounting.approx_to_zcdp(budget.epsilon, budget.delta)
        cost = ZCDP(rho)
        (sigma,) = gaussian_scales([sensitivity.frobenius], exact_fraction(share) * Fraction(rho))
        off = sigma if mechanism == "gaussian" else root_up(Fraction(sigma) ** 2 / 2)
        return MatrixNoise(mechanism, d, sigma, _gaussian(sigma), _gaussian(off), cost)
    assert budget.epsilon is not None
    epsilon = exact_fraction(share) * Fraction(budget.epsilon)
    if mechanism == "analytic-goe":
        return _analytic(d, sensitivity.frobenius, epsilon, budget)
    if mechanism == "one-sided-wishart":
        cost = ApproxDP(budget.epsilon, budget.delta)
        k = smallest_degrees(d, math.nextafter(float(epsilon), 0.0), budget.delta)
        sd = math.sqrt(k) * trace
        diagonal, off_diagonal = (Noise("one_sided_wishart", sd * root) for root in (math.sqrt(2.0), 1.0))
        return MatrixNoise(mechanism, d, float(trace), diagonal, off_diagonal, cost, k)
    cost = PureDP(budget.epsilon)
    if mechanism in ("laplace", "published-laplace"):
        l1 = sensitivity.l1 if mechanism == "laplace" else max(2.0 * d * trace, sensitivity.l1)
        (scale,) = laplace_scales([l1], epsilon)
        noise = Noise("discrete_laplace", scale)
        return MatrixNoise(mechanism, d, scale, noise, noise, cost)
    if mechanism == "double-wishart":
        scale = float(wishart_scale(d, Fraction(sensitivity.nuclear), epsilon))
        sd = scale * math.sqrt(2.0 * (d + 1))
    else:
        scale = round_up(Fraction(sensitivity.frobenius) / epsilon)
        sd = scale * math.sqrt((d * (d + 1) / 2 + 1) / 2.0)  # E r**2 = D (D + 1) scale**2, over D axes, halved
    if not sd * d <= LARGEST_SCALE:
        raise ValueError(
            f"epsilon={budget.epsilon!r} needs noise of scale {sd:.3g}, which does not fit 64-bit integers; raise it"
        )
    name = "discrete_wishart" if mechanism == "double-wishart" else mechanism.replace("-", "_")
    return MatrixNoise(mechanism, d, scale, Noise(name, sd * math.sqrt(2.0)), Noise(name, sd), cost)


def _analytic(d: int, frobenius: float, epsilon: Fraction, budget: Budget) -> MatrixNoise:
    assert budget.epsilon is not None
    below = math.nextafter(float(epsilon), 0.0)
    sigma = frobenius * accounting.gaussian_multiplier(below, budget.delta * (1.0 - _TAU_SHARE)) * (1.0 + 2.0**-50)
    off = root_up(Fraction(sigma) ** 2 / 2)
    tau = d * (d + 1) / 2 / (12.0 * sigma**2 - 1.0) if sigma > 1.0 else math.inf
    if sigma > LARGEST_SCALE or not (1.0 + math.exp(min(below, 700.0))) * tau <= 0.999 * _TAU_SHARE * budget.delta:
        raise ValueError(
            f"mechanism='analytic-goe' cannot give {budget}: on integers of this size its delta is too close to "
            "that of the noise's own grid, or its noise beyond 64-bit integers; use mechanism='goe'"
        )
    return MatrixNoise(
        "analytic-goe", d, sigma, _gaussian(sigma), _gaussian(off), ApproxDP(budget.epsilon, budget.delta)
    )


def wishart_scale(n_columns: int, trace: Fraction, epsilon: Fraction) -> int:
    """The whole number c of double Wishart noise for sums that move by matrices of this trace in all; at least d**2.

    More than is asked for is private too, and below d**2 it would take long to draw.

    Examples
    --------
    >>> wishart_scale(3, Fraction(2**10), Fraction(1)), wishart_scale(100, Fraction(3), Fraction(1))
    (512, 10000)
    """
    return max(math.ceil(trace / (2 * epsilon)), n_columns**2)


def wishart_noise(n_columns: int, scale: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """The upper triangle of W1 - W2 as Python integers, exactly distributed; **not privately** from a seed."""
    if rng is None:
        return integer_wishart(n_columns, scale) - integer_wishart(n_columns, scale)
    d = n_columns
    first, second = rng.standard_normal((2, d, d + 1))
    drawn = np.rint(scale * (first @ first.T - second @ second.T))[np.triu_indices(d)]
    return np.array([int(entry) for entry in drawn.tolist()], dtype=object)


def clipped(values: np.ndarray) -> np.ndarray:
    """Python integers as 64-bit ones, the nearest where they do not fit."""
    return np.clip(values, -_LIMIT, _LIMIT).astype(np.int64)


def _gaussian(sigma: float) -> Noise:
    return Noise("discrete_gaussian", sigma)


def add_matrix_noise(
    moments: Sensitive, noise: MatrixNoise, rng: np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Second moments with planned noise: the diagonal, and the rest of the upper triangle.

    Parameters
    ----------
    moments : Sensitive
        Upper triangle, shape (d (d + 1)/2,), with the sensitivities that the noise was planned for.
    noise : MatrixNoise
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Returns
    -------
    diagonal, off_diagonal : ndarray of int64
        Shapes (d,) and (d (d - 1)/2,).
    """
    d = noise.n_columns
    rows, columns = np.triu_indices(d)
    on = rows == columns
    if noise.mechanism in _MATRICES:
        drawn = _MATRICES[noise.mechanism](noise, rng)
        if drawn.dtype != object:
            drawn = np.rint(np.clip(drawn, -_LIMIT, _LIMIT))[rows, columns].astype(np.int64)
        noisy = clipped(moments.value.astype(object) + drawn)
        return noisy[on], noisy[~on]
    pure = noise.diagonal.distribution == "discrete_laplace"
    draw = samplers.discrete_laplace if pure else samplers.discrete_gaussian
    return (
        draw(moments.value[on], noise.diagonal.scale, rng=rng),
        draw(moments.value[~on], noise.off_diagonal.scale, rng=rng),
    )


def _double_wishart(noise: MatrixNoise, rng: np.random.Generator | None) -> np.ndarray:
    """The upper triangle, as Python integers; the other kinds are whole matrices of floats."""
    return wishart_noise(noise.n_columns, int(noise.scale), rng)


def _one_sided_wishart(noise: MatrixNoise, rng: np.random.Generator | None) -> np.ndarray:
    assert noise.degrees is not None
    factor = standard_normals(noise.n_columns * noise.degrees, rng).reshape(noise.n_columns, -1)
    return noise.scale * (factor @ factor.T - noise.degrees * np.eye(noise.n_columns))


def _frobenius(noise: MatrixNoise, rng: np.random.Generator | None) -> np.ndarray:
    d = noise.n_columns
    size = d * (d + 1) // 2
    direction = np.zeros((d, d))
    direction[np.triu_indices(d)] = standard_normals(size, rng)
    direction = direction + direction.T  # diagonal of sd 2, the rest 1: rescaled to the GOE's sqrt(2) to 1
    direction[np.diag_indices(d)] /= math.sqrt(2.0)
    radius = noise.scale * 0.5 * float((standard_normals(2 * size, rng) ** 2).sum())  # Gamma(size)
    return direction * (radius / math.sqrt(float((direction**2).sum())))


_MATRICES: dict[str, Callable[[MatrixNoise, np.random.Generator | None], np.ndarray]] = {
    "double-wishart": _double_wishart,
    "one-sided-wishart": _one_sided_wishart,
    "frobenius": _frobenius,
}


def standard_normals(size: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Normal variables in double precision from the operating system's random bits; not an exact sampler.

    Box and Muller's formula on pairs of 53-bit uniform numbers, the first in (0, 1], so that the largest value is
    ``sqrt(2 log 2**53) = 8.57``.
    """
    if rng is not None:
        return rng.standard_normal(size)
    half = (size + 1) // 2
    bits = np.frombuffer(os.urandom(16 * half), dtype=np.uint64) >> np.uint64(11)
    radius = np.sqrt(-2.0 * np.log((bits[:half] + np.uint64(1)) * 2.0**-53))
    angle = bits[half:] * (2.0 * math.pi * 2.0**-53)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]
