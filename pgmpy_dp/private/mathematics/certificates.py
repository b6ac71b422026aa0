"""The distance of an approximate projection from the exact one, proved from the numbers at hand, not from the solver.

X* is the projection of a symmetric Y on K = {X >= 0 (semidefinite), X_ii = 1/n}. From **any** y in R^n and **any**
matrix P of n rows and k columns, whatever made them, let

    X_y = P P',    N = X_y - Y - Diag(y),    X_f = P P' with row and column i scaled by (n X_y,ii)^(-1/2),

    a = ||X_f - X_y||_F,    b = <N, X_f>,    r = max(0, -lambda_min(N)).

Then X_f is in K, and ``||X_f - X*||_F <= eta = (a + sqrt(a^2 + 4 max(0, b + r)))/2``.

Proof
-----
X_f >= 0 with diagonal 1/n by construction. X* is the point of the convex set K closest to Y, so
<Y - X*, X_f - X*> <= 0. With t = ||X_f - X*||_F,

    t^2 = <X_f - Y, X_f - X*> + <Y - X*, X_f - X*>  <=  <X_f - Y, X_f - X*>
        = <X_f - X_y, X_f - X*> + <N, X_f - X*> + <Diag(y), X_f - X*>.

The first term is at most a t; the last is 0, since X_f and X* have the same diagonal; in the middle <N, X_f> = b, and
-<N, X*> <= r tr(X*) = r, since X* >= 0 has trace 1. So t^2 <= a t + b + r, whose larger root is eta. (At the exact y
with P P' = (Y + Diag(y))_+, all of a, b and r are 0.)

Rounding
--------
Y, y and P are taken for what they are, exactly: floats. u = 2^-53, g(m) = m u/(1 - m u) bounds m roundings in a row,
and holds for sums of m products in any order (Higham 2002, section 3.1). What floating point adds:

* Products of two rows of k numbers are sums of blocks of 32, so no number passes through more than
  ``K = min(k, 32) + k/32 + 2`` roundings.
* *X*, the matrix that is released, is the computed F F', F the rows of P scaled. A row's scale is wrong by a relative
  g(K/2 + 6) at most and a product of two rows, of length 1/sqrt(n) each, by g(K)/n, so ``||X - X_f||_F <= dX =
  g(2K + 20)``. It is added to eta, so the bound is for X itself.
* *N* computed differs by ``dN = g(K) ||P||_F^2 + 2u ||N||_F``, from P P' and the subtraction, in Frobenius norm and
  thus in every eigenvalue and, since ||X_f||_F <= 1, in b.
* *a* and *b* are computed from X instead of X_f, which costs dX in a and ||N||_F dX in b; *a* is a root of n^2 squares
  (relative g(n^2)); *b* sums blocks of 16 products and adds those exactly, which costs ``g(18) ||N||_F ||X||_F``.
* *r* is not read off computed eigenvalues. A Cholesky factorisation of N + shift I that runs to its end proves
  N + shift I + E >= 0 for a perturbation E bounded below, in :func:`eigenvalue_floor`. It assumes that matrix
  products are sums of products in some order (BLAS; no Strassen).

Together they are proportional to ||N||, which a complete graph makes n times as large as one with communities:
:func:`rounding_floor` says how small eta can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from pgmpy_dp.checks import fresh_copy

_U = 2.0**-53
_BLOCK = 64  # columns of a step of the factorisation
_LARGEST = 1e140  # of a solver's number: sums of squares stay finite
_COLUMNS = 32  # of a factor, multiplied at once
_SUMMED = 16  # entries of a row; products added in floating point


@dataclass(frozen=True, eq=False)
class CertifiedPoint:
    """An approximation of an optimum, and a bound on its distance from it that holds whatever made it.

    Both are functions of private records.

    Attributes
    ----------
    value : ndarray
    distance : float
        The l2 norm of `value` minus the exact optimum is at most this; infinity where nothing is known.
    """

    value: np.ndarray
    distance: float

    def __repr__(self) -> str:
        return f"CertifiedPoint(hidden, shape={self.value.shape})"


def certified_projection(target: np.ndarray, y: np.ndarray, factor: np.ndarray) -> CertifiedPoint:
    """A matrix near the projection of `target` on ``{X >= 0, X_ii = 1/n}``, and how near.

    Parameters
    ----------
    target : ndarray, shape (n, n)
        Y, symmetric; its diagonal is taken as 0, which changes nothing (see y).
    y : ndarray, shape (n,)
        Any dual point.
    factor : ndarray, shape (n, k), optional
        P. The bound holds for any; it is small for the positive eigenvectors of ``Y + Diag(y)`` times the roots of
        their eigenvalues, which is what is computed by default.

    Returns
    -------
    CertifiedPoint
        `value` is X, symmetric with a diagonal of 1/n. A y or P that is not finite has the distance infinity.

    Notes
    -----
    Proof and account of rounding: the module. Cost: two products of n x k matrices and n^3/3 for the factorisation.

    Examples
    --------
    >>> target = np.array([[0.0, 2.0, -2.0], [2.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    >>> factor = np.array([[1.0], [1.0], [-1.0]]) / math.sqrt(3)
    >>> poor, good = (certified_projection(target, np.full(3, y), factor) for y in (0.0, -3.0))
    >>> np.round(3 * good.value).tolist(), good.distance < 1e-6 < poor.distance
    ([[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]], True)
    """
    n = len(target)
    y_copy, factor_copy = _copied(y, (n,)), _copied(factor, (n, -1))
    if y_copy is None or factor_copy is None:
        return CertifiedPoint(np.eye(n) / n, math.inf)
    y, factor = y_copy, factor_copy
    k = factor.shape[1]
    lengths = _row_squares(factor)
    x = _symmetric_product(_unit_rows(factor, lengths) / math.sqrt(n))
    np.fill_diagonal(x, 1.0 / n)
    rest = _symmetric_product(factor)
    a = float(np.linalg.norm(x - rest)) * (1.0 + _g(n * n + 4))
    rest -= target
    np.fill_diagonal(rest, lengths - y)
    size_n, size_x = (float(np.linalg.norm(m)) * (1.0 + _g(n * n + 4)) for m in (rest, x))
    trace = float(np.sum(factor * factor)) * (1.0 + _g(n * k + 4))
    count = min(k, _COLUMNS) + -(-k // _COLUMNS) + 2
    error_x, error_n = _g(2 * count + 20), _g(count) * trace + 2 * _U * size_n
    a += error_x + _g(count) * trace
    b = math.fsum(np.add.reduceat(rest * x, np.arange(0, n, _SUMMED), axis=1).ravel())
    b += _g(_SUMMED + 2) * size_n * size_x + error_n + size_n * error_x
    r = error_n - eigenvalue_floor(rest)
    eta = 0.5 * (a + math.sqrt(a * a + 4.0 * max(b + r, 0.0)))  # in this order NaN stays NaN, which no distance allows
    return CertifiedPoint(x, (eta + error_x) * (1.0 + 16 * _U))


def certified_pair(target: np.ndarray, factor: np.ndarray, dual_factor: np.ndarray) -> CertifiedPoint:
    """Certify from factors of X and of N, where a solver has both: without a factorisation, and far below its floor.

    Parameters
    ----------
    target : ndarray, shape (n, n)
        Y, symmetric; its diagonal plays no part.
    factor : ndarray, shape (n, k)
        P. X_f is P P' with its rows and columns scaled to a diagonal of 1/n.
    dual_factor : ndarray, shape (n, m)
        G. The bound holds for any; it is small where ``P P' - Y - G G'`` is nearly diagonal and ``G' P`` nearly 0.

    Returns
    -------
    CertifiedPoint
        `value` is X, symmetric with a diagonal of 1/n. Factors that are not finite have the distance infinity.

    Notes
    -----
    *Proof.* As in the module, with t = ||X_f - X*||_F, ``t^2 <= <X_f - Y, X_f - X*>``. X_f - X* is 0 on the diagonal,
    so only the rest of X_f - Y = (X_f - Y - G G') + G G' counts: h is the Frobenius norm of what is in brackets, off
    the diagonal. And ``<G G', X_f - X*> <= <G G', X_f> = ||G' F||_F^2 = b``, as X* and G G' are semidefinite. So
    t^2 <= h t + b, and ``t <= (h + sqrt(h^2 + 4 b))/2``.

    *Rounding.* Constants as in the module. The entries of G G' add ``g(K) ||G||_F^2`` to h, two subtractions u times
    their results, X for X_f dX. In the root of b the product of G' with the computed F adds ``g(n) ||G||_F ||F||_F``,
    and F, whose rows are wrong by a relative g(K/2 + 8), as much times ||G||_F. None of these stands under a root,
    unlike those of :func:`certified_projection`.

    Examples
    --------
    >>> target = np.array([[0.0, 2.0, -2.0], [2.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    >>> labels = np.array([[1.0], [1.0], [-1.0]]) / np.sqrt(3)  # X = labels labels', which N has to be orthogonal to
    >>> dual = np.sqrt(5) * (np.eye(3) - labels @ labels.T)  # a projection is its own square
    >>> certified_pair(target, labels, dual).distance < 1e-6 < certified_pair(target, labels, 2 * dual).distance
    True
    """
    n = len(target)
    factor_copy, dual_copy = _copied(factor, (n, -1)), _copied(dual_factor, (n, -1))
    if factor_copy is None or dual_copy is None:
        return CertifiedPoint(np.eye(n) / n, math.inf)
    factor, dual_factor = factor_copy, dual_copy
    k, m = factor.shape[1], dual_factor.shape[1]
    rows = _unit_rows(factor, _row_squares(factor)) / math.sqrt(n)
    x = _symmetric_product(rows)
    np.fill_diagonal(x, 1.0 / n)
    count, dual_count = (min(c, _COLUMNS) + -(-c // _COLUMNS) + 2 for c in (k, m))
    error_x = _g(2 * count + 20)
    dual_square = float(np.sum(dual_factor * dual_factor)) * (1.0 + _g(n * m + 4))
    rest = x - target
    np.fill_diagonal(rest, 0.0)
    h = _U * float(np.linalg.norm(rest))
    rest -= _symmetric_product(dual_factor)
    np.fill_diagonal(rest, 0.0)
    h += (1.0 + _U) * float(np.linalg.norm(rest))
    h = h * (1.0 + _g(n * n + 8)) + _g(dual_count) * dual_square + error_x
    root = float(np.linalg.norm(dual_factor.T @ rows)) * (1.0 + _g(m * k + 8))
    root += (_g(n + 8) + _g(count + 16)) * math.sqrt(dual_square) * (1.0 + 2.0**-20)
    eta = 0.5 * (h + math.sqrt(h * h + 4.0 * root * root))
    return CertifiedPoint(x, (eta + error_x) * (1.0 + 16 * _U))


def rounding_floor(n: int, norm: float) -> float:
    """About the eta of :func:`certified_projection` at the exact optimum, where rounding is all there is.

    Parameters
    ----------
    n : int
        Rows.
    norm : float
        Largest eigenvalue of N.

    Notes
    -----
    An estimate, from the terms of the module's account with `norm` for diag(N) and for ||N||_F/sqrt(n), which a clique
    of nearly all vertices comes near. Nothing relies on it: it is for choosing, before records are seen, a distance
    that certificates can reach.

    Examples
    --------
    >>> rounding_floor(1000, 1.0) < 1e-6
    True
    """
    return math.sqrt(norm * (12.0 * _g(_depth(n)) + _g(_SUMMED + 3 * _COLUMNS + 10) * math.sqrt(n)))


def eigenvalue_floor(matrix: np.ndarray) -> float:
    """A number, at most 0, that no eigenvalue of a symmetric matrix is below: proved, rounding included.

    Notes
    -----
    A right-looking Cholesky factorisation of A in blocks of 64 that runs to its end has a computed L with
    ``L L' = A + E``, ``abs(E) <= g(D) abs(L) abs(L)'``: each product l_ik l_jk passes through at most 64 roundings
    within its block's sum, one subtraction per block of columns before it, and those of the last triangular solve
    (Higham 2002, Theorem 10.3, with the count D = n/64 + 64 + 6 in place of n + 1, which is for one long sum). So
    ``lambda_min(A) >= -||E||_2 >= -g(D) max_i (B x)_i/x_i`` with B = abs(L) abs(L)' and any positive x (Collatz and
    Wielandt): x is near B's leading vector. A is `matrix` plus a shift, tried from the size of that bound upwards. What
    no shift proves is left to Gershgorin's circles.

    Examples
    --------
    >>> floor = eigenvalue_floor(np.array([[1.0, 2.0], [2.0, 1.0]]))
    >>> -1.5 < floor <= -1.0, eigenvalue_floor(np.ones((3, 3))) > -1e-12
    (True, True)
    """
    n = len(matrix)
    depth = _depth(n)
    diagonal = np.abs(np.diag(matrix))
    circles = 2.0 * float(np.abs(matrix).sum(axis=1).max(initial=0.0))  # twice: more than its rounding
    if circles == 0.0 or not math.isfinite(circles):
        return -circles
    shift = 8.0 * _g(depth) * float(diagonal.max())
    lowest: float | None = None
    while shift < circles:
        lower = _blocked_cholesky(matrix, shift)
        if lower is not None:
            np.abs(lower, out=lower)
            x = np.ones(n)
            for _ in range(5):
                image = lower @ (lower.T @ x)
                ratio = float((image / x).max())
                # Bounded below: a coordinate that shrinks away would lose its digits.
                x = np.maximum(image / image.max(), 1e-3)
            # One rounding of each diagonal entry where the shift is added; sums of 2n positive terms.
            error = _g(depth) * ratio * (1.0 + _g(2 * n + 8)) + 2 * _U * (float(diagonal.max()) + shift)
            return -(shift + error) * (1.0 + 4 * _U)
        if lowest is None:
            try:
                lowest = float(np.linalg.eigvalsh(matrix)[0])  # says where to try, nothing more
            except np.linalg.LinAlgError:
                lowest = 0.0
        shift = max(8.0 * shift, -1.01 * lowest if shift < -lowest else 0.0)
    return -circles


def _depth(n: int) -> int:
    """The number D of roundings that a product can pass through in :func:`_blocked_cholesky`."""
    return -(-n // _BLOCK) + _BLOCK + 6


def _blocked_cholesky(matrix: np.ndarray, shift: float) -> np.ndarray | None:
    """Lower factor of ``matrix + shift I``; None where a pivot is not positive."""
    n = len(matrix)
    work = np.array(matrix, dtype=float)
    work[np.diag_indices(n)] += shift
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        try:
            corner = cholesky(work[start:end, start:end], lower=True, check_finite=False)
        except LinAlgError:
            return None
        work[start:end, start:end] = corner
        work[start:end, end:] = 0.0
        if end < n:
            panel = solve_triangular(corner, work[end:, start:end].T, lower=True, check_finite=False).T
            work[end:, start:end] = panel
            work[end:, end:] -= panel @ panel.T
    return work if np.all(np.isfinite(work)) else None


def _copied(numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """A solver's numbers as a copy in double precision; None where they are not of the shape (-1: any), or too large.

    The account of rounding is that of doubles, and of squares that are finite: an array of int8 wraps around, one of
    half precision rounds at 1e-3, and squares of 1e155 are infinite. A copy is nobody else's to change.
    """
    if np.iscomplexobj(numbers):
        return None
    try:
        copy = fresh_copy(numbers)
    except (TypeError, ValueError, OverflowError):
        return None
    fits = copy.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, copy.shape, strict=True))
    return copy if fits and bool(np.all(np.abs(copy) <= _LARGEST)) else None


def _unit_rows(factor: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros (or too small to divide by) becomes the first unit vector."""
    n, k = factor.shape
    if k == 0:
        return np.ones((n, 1))
    lengths = np.sqrt(squares)
    usable = lengths > 1e-140
    rows = factor / np.where(usable, lengths, 1.0)[:, None]
    rows[~usable] = np.eye(1, k)
    return rows


def _row_squares(rows: np.ndarray) -> np.ndarray:
    """Squared length of each row, by the same blocks."""
    total = np.zeros(len(rows))
    for start in range(0, rows.shape[1], _COLUMNS):
        block = rows[:, start : start + _COLUMNS]
        total += np.einsum("ij,ij->i", block, block)
    return total


def _symmetric_product(rows: np.ndarray) -> np.ndarray:
    """``rows rows'`` by blocks of columns, with the upper triangle mirrored: symmetric to the last bit."""
    product = np.zeros((len(rows), len(rows)))
    for start in range(0, rows.shape[1], _COLUMNS):
        block = rows[:, start : start + _COLUMNS]
        product += block @ block.T
    lower = np.tril_indices(len(rows), -1)
    product[lower] = product.T[lower]
    return product


def _g(count: float) -> float:
    """Bound on the relative error of `count` roundings in a row (Higham 2002, Lemma 3.1), itself rounded up."""
    return 1.0000001 * count * _U / (1.0 - count * _U)
