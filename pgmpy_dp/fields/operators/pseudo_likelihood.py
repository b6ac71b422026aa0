"""Sums of clipped per-record gradients of a random field's joint pseudo-likelihood, in exact integers.

The log-pseudo-likelihood of a record is the sum over the nodes of ``log Pr(x_i | x_-i)``, and its gradient is made of
products of the nodes' residuals with features of the other variables
(:class:`~pgmpy_dp.private.mathematics.field_design.FieldDesign`). A record's residuals are integers that depend on the
record and on public parameters alone, whatever its place among the others: parameters are rounded to a public grid, so
that the logits are sums of integers below 2**53, which double precision adds exactly in any order; exponentials and
hyperbolic tangents come from a public table of integers; what follows is integer arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.mathematics.field_design import FieldDesign
from pgmpy_dp.private.sensitive import Sensitive

PARAMETER_BITS = 14
"""Gradients are taken at parameters rounded to multiples of 2**-14."""

LARGEST_BOUND = 1 << 31
"""No clip norm has more units: its square fits 64-bit integers."""

_LARGEST_SUM = 1 << 58  # of 64-bit integers that are added up a few times more
_LARGEST_PARAMETER = 1 << 7  # parameters beyond +-128 are clamped
_LARGEST_LOGIT = 20  # beyond it a conditional probability is within exp(-20) of 0 or 1, and taken to be so
_EXPONENTIAL_BITS = 24
_WEIGHT_BITS = 8
_FINEST_BITS = 14
_COARSEST_BITS = 5
_EXACT = 1 << 53  # below it every integer is a float
_CHUNK = 1 << 12  # rows at once: their features and residuals stay in the cache


@dataclass(frozen=True)
class ResidualGrid:
    """The public fixed-point grid of clipped gradients.

    Residuals are multiples of ``2**-bits / F``, features of ``1 / F`` (F the design's scale), clipping weights of
    ``2**-8``, so that every clipped gradient is an integer vector times `unit`.

    Parameters
    ----------
    clip_norm : float
        Positive: the l2 norm that no record's clipped gradient exceeds.
    design : FieldDesign

    Raises
    ------
    ValueError
        If the numbers leave no room for the grid in 64-bit integers, or the norm is below the grid.

    Examples
    --------
    >>> from pgmpy_dp.fields.field_scopes import field_scopes
    >>> grid = ResidualGrid(2.0, FieldDesign((2, 2, 2), field_scopes(3, 2)))
    >>> grid.bound * grid.unit, grid.bits
    (2.0, 14)
    """

    clip_norm: float
    design: FieldDesign

    def __post_init__(self) -> None:
        coarse = self.bits < 1 or self.bits + math.log2(self.design.scale) < _COARSEST_BITS
        if coarse or self._radius < 1 << _COARSEST_BITS or self.rows_at_once < _CHUNK or self._largest_energy >= _EXACT:
            raise ValueError(
                f"clip_norm={self.clip_norm!r} does not fit a field of {self.design.n_variables} variables and "
                f"{self.design.n_parameters} parameters in 64-bit integers; pass a number between a hundredth of and "
                f"ten times {self.design.reference_norm:.3g}, the norm of a gradient at the uniform distribution"
            )

    @cached_property
    def bits(self) -> int:
        """As fine as squared norms and ``bound**2`` below 2**62 allow."""
        pairs, own = self.design.norm_weights
        squares = self.design.largest_squares.astype(float)
        # |R_i| <= 2 |Phi_i| 2**bits + sqrt(k): residuals are differences of features and means of such, rounded.
        largest = 4.0 * (squares @ pairs @ squares + own @ squares) * 1.1
        norm = _WEIGHT_BITS + math.log2(self.clip_norm * self.design.scale**2)
        return min(_FINEST_BITS, math.floor(31.0 - max(0.5 * math.log2(max(largest, 1.0)), norm) - 1e-9))

    @property
    def _radius(self) -> int:
        return math.floor(math.ldexp(self.clip_norm * self.design.scale**2, self.bits))

    @property
    def bound(self) -> int:
        """The clip norm in units, rounded down: the l2 norm of a record's integer vector never exceeds it."""
        return self._radius << _WEIGHT_BITS

    @property
    def unit(self) -> float:
        """What one unit of the integer vectors is, a power of two."""
        return math.ldexp(1.0, -(self.bits + _WEIGHT_BITS)) / self.design.scale**2

    @cached_property
    def rows_at_once(self) -> int:
        """So many records that their sums stay exact in double precision."""
        largest = math.isqrt(int(self.design.largest_squares.max())) + 1
        feature = max((math.prod([largest] * len(J)) for J in self.design.feature_scopes), default=1)
        residual = (2 * largest << self.bits) + 1
        return _EXACT // ((residual << _WEIGHT_BITS) * max(feature, self.design.scale))

    @property
    def _largest_energy(self) -> int:
        """Bound on every integer between features and conditional probabilities."""
        largest = math.isqrt(int(self.design.largest_squares.max())) + 1
        states = max(self.design.cardinalities)
        return (_LARGEST_PARAMETER << PARAMETER_BITS) * self.design.n_features * largest**2 * states

    @property
    def table(self) -> np.ndarray:
        """What logits are looked up in, see `_table`."""
        return _table(self.bits if self.design.binary else None)

    def rounded_parameters(self, theta: np.ndarray) -> np.ndarray:
        """Parameters as integers, as floats: they are public, so rounding costs nothing."""
        clipped = np.clip(np.nan_to_num(theta), -_LARGEST_PARAMETER, _LARGEST_PARAMETER)
        return np.rint(np.ldexp(clipped, PARAMETER_BITS))


@lru_cache(maxsize=4)
def _table(bits: int | None) -> np.ndarray:
    """``2**bits tanh(u)`` for -20 to 20 or, without bits, ``2**24 exp(-u)`` for u from 0 to 20, rounded to integers."""
    reach = _LARGEST_LOGIT << PARAMETER_BITS
    if bits is not None:
        means = np.tanh(np.ldexp(np.arange(-reach, reach + 1.0), -PARAMETER_BITS))
        table = np.rint(np.ldexp(means, bits)).astype(np.float32)  # exact: at most 2**14
    else:
        decay = np.exp(-np.ldexp(np.arange(reach + 1.0), -PARAMETER_BITS))
        table = np.rint(np.ldexp(decay, _EXPONENTIAL_BITS)).astype(np.int64)
    table.flags.writeable = False
    return table


def distinct(codes: np.ndarray, shares: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Records as rows and how often each occurs (at most 2**12 times; a row may repeat), where that may save work.

    Of records that count by shares those are one row that have the same share, which is the third result.
    """
    if codes.shape[1] > 20 or not len(codes):
        return codes, np.ones(len(codes)), shares
    if shares is not None:
        both, counts, _ = distinct(np.column_stack([codes.astype(np.int64), shares]))
        return both[:, :-1].astype(codes.dtype), counts, both[:, -1]
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    parts = -(-counts // _CHUNK)
    rows, left = np.repeat(rows, parts, axis=0), np.repeat(counts, parts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    return rows, np.minimum(left - place * _CHUNK, _CHUNK).astype(np.float64), None


def gradient_sum(
    codes: np.ndarray,
    counts: np.ndarray,
    theta: np.ndarray,
    grid: ResidualGrid,
    adjacency: Adjacency,
    shares: np.ndarray | None = None,
    parts: int = 1,
) -> Sensitive:
    """Sum over records of their clipped gradients, in units of ``grid.unit``, with its sensitivities.

    Parameters
    ----------
    codes : ndarray of int, shape (n, n_variables)
    counts : ndarray of float, shape (n,)
        Whole numbers up to 2**12: how many records each row stands for, see :func:`distinct`.
    theta : ndarray, shape (n_parameters,)
        Public parameters.
    grid : ResidualGrid
    adjacency : Adjacency
    shares : ndarray of int64, shape (n,), optional
        For how much a record of each row counts, in 1/2**20, at most 1 for all records of a unit.
    parts : int, default 1
        A power of two of at most 2**8: with shares the sum is in units of ``grid.unit/parts``, and moves `parts` times
        as far as is said here.

    Returns
    -------
    Sensitive
        ``add_remove``: l2 = bound, one record's vector. ``replace_one``: l2 = 2 bound, one such vector leaves and
        another enters (the two can be opposite). A single cell moves by at most as much, and l1 is at most
        sqrt(n_parameters) l2, rounded up.

    Notes
    -----
    Privacy: a record's integer gradient G depends on it and on public numbers alone (module docstring), and
    ``|G|**2 <= Q = s N s + d a`` (``FieldDesign.norm_weights``), evaluated in integers below 2**62. Its weight is
    the largest integer ``k <= 2**8`` with ``k**2 Q <= bound**2``: ``k = floor(sqrt(min(floor(bound**2 / Q), 4**8)))``,
    the root of an integer below 2**53 and so exact after flooring. Its contribution k G has norm at most `bound`, in
    exact arithmetic: how residuals were rounded does not matter, since Q is made of the rounded ones. Sums of at most
    ``grid.rows_at_once`` records at a time are exact in double precision, in any order; these are added as 64-bit
    integers, or as integers of any length where 64 bits may not hold them (16 million persons by shares can be so
    many), and each cell is clamped to +-2**62, which moves no two sums further apart; one that wraps around would.

    With shares w/2**20 the weight is ``floor(k w parts/2**20)``, so that a record's contribution has norm at most
    ``w/2**20`` of ``parts bound``, and those of a unit together at most that. It is taken in two pieces, multiples of
    `parts` and what is left, each of at most 2**8: sums of either are as exact as before.
    """
    design = grid.design
    placed = design.coefficients(grid.rounded_parameters(theta))
    total, largest = np.zeros(placed.shape, dtype=np.int64), 0.0
    for start, stop in _chunks(counts, grid.rows_at_once):
        features = _features(codes[start:stop], design)
        residuals = _residuals(codes[start:stop], features @ placed, grid)
        weights = _weights(codes[start:stop], residuals, grid)
        pieces = [(1, weights)]
        if shares is not None:
            exact = weights.astype(np.int64) * shares[start:stop] * parts // GRID
            pieces = [(parts, (exact // parts).astype(float)), (1, (exact % parts).astype(float))]
        for unit, piece in pieces:
            weighted = residuals * (piece * counts[start:stop])[:, None]
            added = unit * (features.T @ weighted).astype(np.int64)
            largest += float(np.abs(added).max(initial=0))
            if largest >= _LARGEST_SUM:
                total = total.astype(object)
            total = total + added
    value = design.gathered(total)
    if value.dtype == object:
        value = np.clip(value, -(1 << 62), 1 << 62).astype(np.int64)
    l2 = float(changed_records(adjacency) * parts * grid.bound)
    return Sensitive(value, adjacency, (math.isqrt(max(design.n_parameters, 1)) + 1) * l2, l2, l2)


def _chunks(counts: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Consecutive rows that stand for at most `most` records together; `distinct` keeps any single count below it."""
    step = min(_CHUNK, most)
    if not len(counts) or counts.max() == 1:
        return [(start, min(start + step, len(counts))) for start in range(0, len(counts), step)]
    bounds, cumulated, start = [], np.cumsum(counts), 0
    while start < len(counts):
        before = cumulated[start - 1] if start else 0.0
        stop = min(start + step, max(start + 1, int(np.searchsorted(cumulated, before + most, side="right"))))
        bounds.append((start, min(stop, len(counts))))
        start = bounds[-1][1]
    return bounds


def _features(codes: np.ndarray, design: FieldDesign) -> np.ndarray:
    """Integer features as floats, shape (n, n_features)."""
    made = np.empty((len(codes), design.n_features))
    if design.binary:
        spins = 2.0 * codes - 1.0
        singles = [J[0] for J in design.feature_scopes if len(J) == 1]
        for J, start in design.feature_starts.items():
            if J == ():
                made[:, start] = 1.0
            elif len(J) > 1:
                np.multiply(spins[:, J[0]], spins[:, J[1]], out=made[:, start])
                for j in J[2:]:
                    made[:, start] *= spins[:, j]
        if singles:
            first = design.feature_starts[(singles[0],)]
            made[:, first : first + len(singles)] = spins[:, singles]
        return made
    for J in design.feature_scopes:
        start = design.feature_starts[J]
        if J:
            phi = design.features[J[0]]
            made[:, start : start + len(phi)] = phi.T[codes[:, J[0]]]
        else:
            made[:, start] = design.scale
    return made


def _residuals(codes: np.ndarray, logits: np.ndarray, grid: ResidualGrid) -> np.ndarray:
    """R: features of a node's own state less their mean given the others, integers as floats, shape of `logits`."""
    design = grid.design
    if design.binary:
        reach = _LARGEST_LOGIT << PARAMETER_BITS
        np.clip(logits, -reach, reach, out=logits)
        means = grid.table[(logits + reach).astype(np.int32)]
        return (2.0 * codes - 1.0) * 2.0**grid.bits - means
    residuals = np.empty_like(logits)
    shift = 2 * (design.scale.bit_length() - 1)  # scale**2, a power of two
    for i, phi in enumerate(design.features):
        own = slice(design.node_starts[i], design.node_starts[i + 1])
        # Integers: <phi(a), m> for each state, at scale 2**14 F**2; their distance to the largest, at scale 2**14.
        energies = logits[:, own] @ phi.astype(float)
        below = (energies.max(axis=1, keepdims=True) - energies).astype(np.int64) >> shift
        exponentials = grid.table[np.minimum(below, len(grid.table) - 1)]
        total = exponentials.sum(axis=1)[:, None]
        means = ((exponentials @ phi.T << grid.bits) + total // 2) // total
        residuals[:, own] = (phi.T[codes[:, i]] << grid.bits) - means
    return residuals


def _weights(codes: np.ndarray, residuals: np.ndarray, grid: ResidualGrid) -> np.ndarray:
    """k: the clipping weights, whole numbers from 0 to 2**8 as floats, shape (n,)."""
    design = grid.design
    pairs, own = design.norm_weights
    if design.binary:
        s = residuals * (2.0 * codes - 1.0)
        a = s**2
    else:
        s, a = np.empty(codes.shape), np.empty(codes.shape)
        for i, phi in enumerate(design.features):
            mine = residuals[:, design.node_starts[i] : design.node_starts[i + 1]]
            s[:, i] = (mine * phi.T[codes[:, i]]).sum(axis=1)
            a[:, i] = (mine**2).sum(axis=1)
    # s N and a are integers below 2**53; only their products with others need 64-bit integers.
    whole = s.astype(np.int64)
    common = int(pairs[0, -1])
    if (pairs == common * (1 - np.eye(len(pairs), dtype=np.int64))).all():  # every pair is in as many scopes
        crossed = common * (whole.sum(axis=1) ** 2 - (whole**2).sum(axis=1))
    else:
        crossed = ((s @ pairs.astype(float)).astype(np.int64) * whole).sum(axis=1)
    squared = np.maximum(crossed + a.astype(np.int64) @ own, 1)
    return np.floor(np.sqrt(np.minimum(grid.bound**2 // squared, 1 << 2 * _WEIGHT_BITS)))
