"""Sums of clipped per-record gradients of a log-linear model's log-likelihood, in exact integers.

The gradient of one record's log-likelihood is ``g(x) = e(x) - mu``: one 1 per table at the record's cell, less the
model's marginals. All records share mu, so the squared norm of a gradient follows from the |C| marginals at its own
cells, and the clipped sum follows from weighted counts. No gradient is ever made::

    |g(x)|**2 = |C| - 2 sum_C mu_C(x_C) + |mu|**2
    sum_x c(x) g(x) = sum_x c(x) e(x) - (sum_x c(x)) mu,      c(x) = min(1, B / |g(x)|)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables, shared_codes
from pgmpy_dp.private.sensitive import Sensitive

_WEIGHT_BITS = 10
_FINEST_BITS = 24
_COARSEST_BITS = 8
_LIMIT = 1 << 62


@dataclass(frozen=True)
class ClippingGrid:
    """The public fixed-point grid of clipped gradients.

    Marginals are multiples of ``2**-marginal_bits``, clipping weights c multiples of ``2**-10``, so that every clipped
    gradient is an integer vector times ``unit``.

    Parameters
    ----------
    clip_norm : float
        Positive: B, the l2 norm that no record's clipped gradient exceeds.
    n_tables, n_cells : int
        Of the model.

    Raises
    ------
    ValueError
        If the numbers leave no room for the grid in 64-bit integers, or the norm is below the grid.

    Examples
    --------
    >>> grid = ClippingGrid(2.0, n_tables=4, n_cells=400)
    >>> grid.bound * grid.unit, grid.marginal_bits
    (2.0, 19)
    """

    clip_norm: float
    n_tables: int
    n_cells: int

    def __post_init__(self) -> None:
        if self.marginal_bits < _COARSEST_BITS or self._radius < 1 << _COARSEST_BITS:
            raise ValueError(
                f"clip_norm={self.clip_norm!r} does not fit a model of {self.n_tables} tables and {self.n_cells} cells "
                f"in 64-bit integers; pass a number between 0.1 and 1000, such as the default sqrt({self.n_tables})"
            )

    @cached_property
    def marginal_bits(self) -> int:
        """r: as fine as squared norms, at most ``(n_tables + n_cells) 4**r``, and ``bound**2`` allow in 62 bits."""
        cells = math.log2(self.n_tables + self.n_cells) / 2.0
        norm = _WEIGHT_BITS + math.log2(self.clip_norm)
        return min(_FINEST_BITS, math.floor(31.0 - max(cells, norm) - 1e-9))

    @property
    def _radius(self) -> int:
        return math.floor(math.ldexp(self.clip_norm, self.marginal_bits))

    @property
    def bound(self) -> int:
        """The clip norm in units, rounded down: the l2 norm of a record's integer vector never exceeds it."""
        return self._radius << _WEIGHT_BITS

    @property
    def unit(self) -> float:
        """The size of one unit of the integer vectors, a power of two."""
        return math.ldexp(1.0, -(self.marginal_bits + _WEIGHT_BITS))

    def rounded_marginals(self, marginals: np.ndarray) -> np.ndarray:
        """M: the marginals as integers in ``0 .. 2**marginal_bits``; they are public, so rounding costs nothing."""
        top = 1 << self.marginal_bits
        return np.rint(np.clip(np.nan_to_num(marginals), 0.0, 1.0) * top).astype(np.int64)


def clipped_sum(
    cells: np.ndarray, marginals: np.ndarray, grid: ClippingGrid, shares: np.ndarray | None = None, parts: int = 1
) -> np.ndarray:
    """Sum over records of their clipped gradients, in units of ``grid.unit``.

    Parameters
    ----------
    cells : ndarray of int, shape (n, n_tables)
        Position of each record's cell of each table in the flat vector of all cells.
    marginals : ndarray of int64, shape (n_cells,)
        As :meth:`ClippingGrid.rounded_marginals` returns them.
    grid : ClippingGrid
    shares : ndarray of int64, shape (n,), optional
        For how much each record counts, in 1/2**20, at most 1 for all records of a unit.
    parts : int, default 1
        The sum is in units of ``grid.unit/parts``. At most 2**10.

    Returns
    -------
    ndarray of int64, shape (n_cells,)

    Notes
    -----
    Privacy: with r the marginals' bits, a record's gradient in units of 2**-r is the integer vector
    ``G(x) = 2**r e(x) - M`` with squared norm ``Q = |C| 4**r - 2 2**r sum_C M(x_C) + sum_j M_j**2``. Its weight is the
    largest integer ``k <= 2**10`` with ``k**2 Q <= bound**2``, found in integers: ``k = floor(sqrt(min(floor(bound**2 /
    Q), 4**10)))``, whose square root is of an integer below 2**53 and so exact after flooring. Its contribution ``k
    G(x)`` is the clipped gradient on the grid with c(x) rounded toward zero, a multiple of the gradient of norm at most
    ``bound``. The weight depends on the record and on public numbers alone, so adding or removing a record moves the
    exact sum by one such vector. With shares w/2**20 a record's weight is ``floor(k w parts/2**20)``, so that its
    vector has norm at most ``w/2**20`` of ``parts bound``, and those of a unit together at most that. The last step
    clamps each cell to +-2**62, which moves no two sums further apart.
    """
    top = 1 << grid.marginal_bits
    at_record = marginals[cells].sum(axis=1)
    squared = np.maximum(grid.n_tables * top * top - 2 * top * at_record + int(marginals @ marginals), 1)
    weights = np.floor(np.sqrt(np.minimum(grid.bound**2 // squared, 1 << 2 * _WEIGHT_BITS)))
    if shares is not None:
        weights = (weights.astype(np.int64) * shares * parts // GRID).astype(np.float64)
    # Sums of integers up to 2**20: exact in double precision up to 2**33 records.
    repeated = np.repeat(weights, cells.shape[1])
    counts = np.bincount(cells.ravel(), weights=repeated, minlength=marginals.size).astype(np.int64)
    total = int(weights.sum())
    return exact_difference(counts, total, marginals, top, total * top)


def exact_difference(
    counts: np.ndarray, totals: np.ndarray | int, assumed: np.ndarray, top: int, most: int
) -> np.ndarray:
    """``counts top - totals assumed`` in int64: no cell exceeds `most`; clamped to +-2**62 where that is more."""
    if most < _LIMIT:
        return counts * top - totals * assumed
    exact = counts.astype(object) * top - totals * assumed.astype(object)
    return np.clip(exact, -_LIMIT, _LIMIT).astype(np.int64)


def sampled_gradient_sum(
    table: PrivateTable,
    scopes: Sequence[Sequence[Hashable]],
    marginals: np.ndarray,
    grid: ClippingGrid,
    sample: Callable[[np.ndarray], np.ndarray],
    rows: int = 1,
    parts: int = 1,
) -> Sensitive:
    """Clipped gradient sum over a Poisson sample of the records, with its sensitivities given the other coins.

    Parameters
    ----------
    table : PrivateTable
    scopes : sequence of sequence of variable names
        The model's tables, in the order of `marginals`.
    marginals : ndarray, shape (n_cells,)
        Of the model at its current, public parameters.
    grid : ClippingGrid
    sample : callable
        From codes of all records, shape (n, p), to the positions of those that take part, by a coin of each unit's own
        (:func:`~pgmpy_dp.private.noise.subsampling.poisson_sample`): of each record's where it is a unit.
    rows : int, default 1
        m: a unit has at most so many records. 1 where they count by shares, which together are a record.
    parts : int, default 1
        Of units that count by shares: the sum is in units of ``grid.unit/parts``, and moves `parts` times as far.

    Returns
    -------
    Sensitive
        For fixed coins of the other units. ``add_remove``: l2 = m bound, the vectors of one unit's records, which can
        be equal, or, where they are dropped or not sampled, nothing. ``replace_one``: l2 = 2 m bound, such vectors
        leave and others enter (which can be opposite). A single cell moves by at most as much, and l1 is at most
        sqrt(n_cells) l2, rounded up.
    """
    schema = table.schema
    position = {name: j for j, name in enumerate(schema.variables)}
    n_cells = sum(math.prod(schema.cardinality(name) for name in scope) for scope in scopes)
    if (len(scopes), n_cells) != (grid.n_tables, grid.n_cells) or np.shape(marginals) != (n_cells,):
        # A grid of other numbers would bound other gradients.
        raise ValueError(
            f"the grid is for {grid.n_tables} tables of {grid.n_cells} cells, marginals have the shape "
            f"{np.shape(marginals)}, and the scopes give {len(scopes)} tables of {n_cells} cells"
        )
    codes, shares = shared_codes(table)
    chosen = sample(codes)
    codes, shares = codes[chosen], None if shares is None else shares[chosen]
    cells = np.zeros((len(codes), len(scopes)), dtype=np.int64)
    start = 0
    for c, scope in enumerate(scopes):
        for name in scope:
            cells[:, c] *= schema.cardinality(name)
            cells[:, c] += codes[:, position[name]]
        cells[:, c] += start
        start += math.prod(schema.cardinality(name) for name in scope)
    value = clipped_sum(cells, grid.rounded_marginals(marginals), grid, shares, parts)
    return bounded_sum(value, table.adjacency, rows * parts * grid.bound)


def bounded_sum(value: np.ndarray, adjacency: Adjacency, bound: int) -> Sensitive:
    """A sum to which each unit adds an integer vector of l2 norm at most `bound`, with its sensitivities.

    They are those of :func:`sampled_gradient_sum`.
    """
    l2 = float(changed_records(adjacency) * bound)
    return Sensitive(value, adjacency, (math.isqrt(value.size) + 1) * l2, l2, l2)


def record_count(table: PrivateTable, rows: int = 1, grid: int = 1) -> Sensitive:
    """The number of records inside the schema; a replaced record can enter or leave it, so it moves by at most 1.

    It moves by `rows` between tables that differ in a unit of so many records. Where units count by shares, it is in
    1/`grid`.
    """
    first = next(iter(table.schema.variables))  # counted where the data are: codes need not be fetched
    number = contingency_tables(table, [(first,)], grid)[0].value.sum()
    return Sensitive(np.array([number], dtype=np.int64), table.adjacency, *[float(rows * grid)] * 3)
