"""Random positive semidefinite matrices of integers: the Wishart distribution's law on a lattice, exactly.

This module draws a symmetric matrix W of integers with probability proportional to ``exp(-tr W/(2 c))`` if W >= 0
(positive semidefinite), and 0 otherwise. The difference of two such matrices is the noise of
:mod:`pgmpy_dp.private.noise.matrix`, whose proof of privacy is about this law.

1. Let X + (d/2) I be c times a Wishart matrix of d + 1 degrees of freedom, ``N N'`` with N of d rows and d + 1 columns
   of independent standard normal numbers. Its density is proportional to ``exp(-tr X/(2 c))`` on ``X >= -(d/2) I``.
2. Round each entry of X to the nearest integer: W.
3. Take W if W >= 0, else begin again.

*Proof.* The matrices that are rounded to W are W + E, the entries of E within 1/2. A symmetric E has eigenvalues of at
most d/2, so for W >= 0 all of them are in ``X >= -(d/2) I``, where the integral of the density over them is
``exp(-tr W/(2 c))`` times one number, the same for all W. QED. A round is taken with probability ``exp(-d**2/(4 c))``
about, which is near 1 for the c of fine units.

**Real numbers are drawn, not floats.** A normal number is a sign, a cell of length 2**-10 and a uniform number t in [0,
1) that says where in the cell. The cell k has probability proportional to ``exp(-k**2 h**2/2)`` with h = 2**-10
(:mod:`pgmpy_dp.private.noise.bulk`, exact, those below 0 left out) and is taken with probability ``exp(-y)``, ``y =
h**2 (k t + t**2/2)``, else drawn again: the product is the normal density at ``h (k + t)`` (Karney 2016). To decide it,
uniform numbers are compared with y, y/2, y/3, ...: the first j for which ``u_j >= y/j`` is odd with probability exp(-y)
(von Neumann 1951). ``u_1 >= (k + 1) h**2`` settles nearly all of them without a look at t. As many bits of t are drawn
as are needed. What is computed has bounds for all values of the bits to come. If these do not give one integer, 20 bits
more of each t are drawn. So the distribution of W is exact, whatever floats do. Here they multiply whole numbers below
2**53, in which they do not err, and say that a matrix is positive semidefinite only where that is certain.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.noise.bulk import bulk_noise

MOST_COLUMNS = 4096
"""Products of 20-bit parts of so many numbers are sums that float64 holds exactly."""

_STEP = 10  # cells have the length 2**-10
_LIMB = 20  # bits of t that are drawn, and multiplied, at once
_LIMBS = 5
_MASK = (1 << _LIMB) - 1


def integer_wishart(n_columns: int, scale: int, *, limbs: int = _LIMBS) -> np.ndarray:
    """A symmetric matrix W >= 0 of integers with probability proportional to ``exp(-tr W/(2 scale))``.

    Parameters
    ----------
    n_columns : int
        d, from 1 to `MOST_COLUMNS`.
    scale : int
        c, positive. The smaller it is compared with d**2, the longer it takes.
    limbs : int
        Parts of 20 bits of each number that are drawn in advance; they have no effect on the law.

    Returns
    -------
    ndarray of Python integers, shape (d (d + 1)/2,)
        The upper triangle, as :func:`numpy.triu_indices` has it. From the operating system's randomness.

    Examples
    --------
    >>> w = integer_wishart(2, 1 << 20)
    >>> w.shape, bool(w[0] * w[2] >= w[1] ** 2)
    ((3,), True)
    """
    d = n_columns
    if not (1 <= d <= MOST_COLUMNS and scale >= 1):
        raise ValueError(f"n_columns={d!r} must be from 1 to {MOST_COLUMNS} and scale={scale!r} at least 1")
    while True:
        upper = _rounded(_Normals(d * (d + 1), limbs), d, int(scale))
        if positive_semidefinite(upper, d):
            return upper


class _Normals:
    """Standard normal real numbers ``sign h (cell + t)``; `limbs` are the leading bits of t, 20 in each."""

    def __init__(self, size: int, limbs: int) -> None:
        self.signs = np.where(np.frombuffer(os.urandom(size), dtype=np.uint8) & 1, 1.0, -1.0)
        self.cells = np.empty(size, dtype=np.int64)
        self.limbs = [_uniform_limbs(size) for _ in range(limbs)]
        pending = np.arange(size)
        while pending.size:
            self.cells[pending] = _cells(pending.size)
            # u_1 is below (k + 1) h**2: t decides. (Cells that are so far out that this is above 1 do not end here.)
            bound = np.minimum(self.cells[pending] + 1, 1 << (2 * _STEP)).astype(np.uint64)
            first = np.frombuffer(os.urandom(8 * pending.size), dtype="<u8") >> np.uint64(64 - 2 * _STEP)
            close = pending[first < bound]
            pending = np.array([k for k in close.tolist() if not self._taken(k)], dtype=np.int64)
            for limb in self.limbs:
                limb[pending] = _uniform_limbs(pending.size)

    def extend(self) -> None:
        """Draw 20 bits more of each t."""
        self.limbs.append(_uniform_limbs(self.signs.size))

    def _taken(self, place: int) -> bool:
        """Whether cell and t are taken, given that u_1 is below (k + 1) h**2."""
        cell = int(self.cells[place])
        square = Fraction(1, 1 << (2 * _STEP))
        parts = math.ceil((cell + 1) * square)
        if parts > 1:  # exp(-y) is that of y/m, m times; nothing is known of u_1
            return all(self._odd(place, square / parts, 1) for _ in range(parts))
        # u_1 is uniform below (k + 1) h**2, so it is below y where a new uniform number is below that part of it.
        return not self._below(place, Fraction(1, cell + 1)) or not self._odd(place, square, 2)

    def _odd(self, place: int, unit: Fraction, start: int) -> bool:
        """Whether the first j >= `start` with ``u_j >= y/j`` is an odd number of steps away; y in multiples of unit."""
        j = start
        while self._below(place, unit / j):
            j += 1
        return (j - start) % 2 == 0

    def _below(self, place: int, unit: Fraction) -> bool:
        """Whether a uniform number is below ``unit (k t + t**2/2)``."""
        cell, word, bits = int(self.cells[place]), 0, 0
        while True:
            more = _LIMB * len(self.limbs) - bits
            word = word << more | int.from_bytes(os.urandom(-(-more // 8)), "little") >> (-more % 8)
            bits += more
            t = 0
            for limb in self.limbs:
                t = (t << _LIMB) | int(limb[place])
            least, most = (unit * (cell * x + x * x / 2) for x in (Fraction(t, 1 << bits), Fraction(t + 1, 1 << bits)))
            if Fraction(word + 1, 1 << bits) <= least:
                return True
            if Fraction(word, 1 << bits) >= most:
                return False
            self.extend()


def _cells(size: int) -> np.ndarray:
    """Integers k >= 0 with probability proportional to ``exp(-k**2 h**2/2)``."""
    cells = np.empty(0, dtype=np.int64)
    while cells.size < size:
        drawn = bulk_noise("discrete_gaussian", 2.0**_STEP, 2 * (size - cells.size) + 64)
        cells = np.concatenate([cells, drawn[drawn >= 0]])
    return cells[:size]


def _uniform_limbs(size: int) -> np.ndarray:
    return (np.frombuffer(os.urandom(4 * size), dtype="<u4") & _MASK).astype(np.int64)


def _rounded(normals: _Normals, d: int, c: int) -> np.ndarray:
    """The upper triangle of ``c N N' - (d/2) I``, each entry rounded to the nearest integer."""
    rows, columns = np.triu_indices(d)
    on = (rows == columns).astype(object)
    while True:
        # In units of 2**-bits of h times a limb more than there is; the middle of what is known, and how far it is off.
        middle, q = 1 << (_LIMB - 1), len(normals.limbs) + 1
        product = _product(_parts(normals, middle), d, rows, columns)
        largest = (int(normals.cells.max()) + 1) << (_LIMB * q)
        error = (d + 1) * (2 * largest * middle + middle * middle)
        bits = 2 * (_STEP + _LIMB * q)
        # floor(y + 1/2), y = c product/2**bits - d/2 on the diagonal
        offset = (1 - d * on) * (1 << bits)
        low, high = ((2 * c * (product + side) + offset) >> (bits + 1) for side in (-error, error))
        if np.array_equal(low, high):
            return low
        normals.extend()


def _parts(normals: _Normals, middle: int) -> list[np.ndarray]:
    """Numbers below 2**20 in absolute value, the last ones first: number m is their sum, part l times 2**(20 l)."""
    parts = [np.full(normals.cells.size, middle, dtype=np.int64), *reversed(normals.limbs)]
    rest = normals.cells
    while True:
        parts.append(rest & _MASK)
        rest = rest >> _LIMB
        if not rest.any():
            return [normals.signs * part for part in parts]


def _product(parts: list[np.ndarray], d: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The upper triangle of ``M M'`` as Python integers, M of d rows and d + 1 columns."""
    shaped = [part.reshape(d, d + 1) for part in parts]
    total = np.zeros(len(rows), dtype=object)
    for power in range(2 * len(parts) - 1):
        # Each product is a whole number below (d + 1) 2**40 <= 2**53; some tens of them fit 64 bits.
        some = np.zeros((d, d), dtype=np.int64)
        for a in range(max(0, power - len(parts) + 1), power // 2 + 1):
            one = (shaped[a] @ shaped[power - a].T).astype(np.int64)
            some += one if 2 * a == power else one + one.T
        total += some[rows, columns].astype(object) << (_LIMB * power)
    return total


def positive_semidefinite(upper: np.ndarray, d: int) -> bool:
    """Whether a symmetric matrix of integers is positive semidefinite, without error.

    Parameters
    ----------
    upper : ndarray of Python integers, shape (d (d + 1)/2,)
    d : int

    Notes
    -----
    If Cholesky's algorithm in floats comes to an end on ``A - m I``, then ``A >= 0``, where m is more than ``(d + 2)
    2**-53`` times the trace and the norm of A (Higham 2002, Theorem 10.7; Rump 2006). A vector x of integers with x'Ax
    < 0 shows the contrary. Where neither is at hand, as for matrices close to a singular one, elimination in integers
    decides.

    Examples
    --------
    >>> positive_semidefinite(np.array([1, 2, 4], dtype=object), 2), positive_semidefinite(np.array([1, 2, 3]), 2)
    (True, False)
    """
    matrix = np.zeros((d, d), dtype=object)
    matrix[np.triu_indices(d)] = upper
    matrix += np.triu(matrix, 1).T
    floats = matrix.astype(np.float64)
    diagonal = floats.diagonal()
    if (diagonal < 0).any():
        return False
    margin = 8 * (d + 2) * 2.0**-53 * (diagonal.sum() + np.linalg.norm(floats))
    try:
        np.linalg.cholesky(floats - margin * np.eye(d))
    except np.linalg.LinAlgError:
        return _by_elimination(matrix, np.linalg.eigh(floats)[1][:, 0])
    return True


def _by_elimination(matrix: np.ndarray, direction: np.ndarray) -> bool:
    """The same test in integers; `direction` may be one in which the matrix is negative."""
    x = np.rint(2.0**40 * direction).astype(np.int64).astype(object)
    if (x @ matrix @ x) < 0:
        return False
    divisor: int = 1
    while len(matrix):
        pivots = matrix.diagonal()
        if min(pivots) < 0:
            return False
        kept = np.flatnonzero(pivots)
        # A row whose diagonal entry is 0 has to be 0.
        if any(matrix[k].any() for k in np.flatnonzero(pivots == 0)):
            return False
        if not kept.size:
            return True
        matrix = matrix[np.ix_(kept, kept)]
        pivot = matrix[0, 0]
        # Bareiss: minors of the matrix, so that the division is exact; they have the signs of the Schur complement.
        matrix = (pivot * matrix[1:, 1:] - np.outer(matrix[1:, 0], matrix[0, 1:])) // divisor
        divisor = pivot
    return True
