"""Estimates of a search's time and memory, from public numbers, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgmpy_dp.private.reading.records import MOST_KEPT
from pgmpy_dp.shown import quantity
from pgmpy_dp.tables.networks.budget_shares import NetworkShares
from pgmpy_dp.tables.networks.candidates import MOST_SETS

_PER_TABLE = 400
"""Bytes for each candidate, besides its cells: names, positions, where its counts are kept."""

_PER_CELL = 8 * 8
"""Bytes for each cell of a candidate: exact and expected counts, their differences, and copies of these on the way."""

_PROGRAM = 450 * 2**20
"""Bytes of Python with all that is imported."""

_READING, _READ = 18, 3
"""Bytes for each cell of the records: of rows that count together while they are read from a frame; of files."""

_PER_ENTRY, _MOST_ENTRIES = 8, 3 * 2**24
"""Bytes of a number of a late fit's conditional matrices, and how many are held at once."""

_SECONDS_PER_SQUARE = 1e-8
"""Of one core, for each fit and each two states of a variable: a late fit has a square matrix of them."""

_WIDE = 80
"""Cells of the largest clique that is allowed, over those of the mean separator when a search ends."""

_SECONDS_PER_CELL_ALLOWED = 7e-8
"""For each fit, variable and cell of the largest clique that is allowed: from searches of 16 to 500 columns, in which
a last fit has a twentieth of so many cells, and most fits fewer."""

_SECONDS_PER_CANDIDATE, _SECONDS_PER_VARIABLE = 1.2e-5, 1.8e-3
"""Of one core, for each fit: what is expected of a candidate and its score; 100 steps of the fit, on small cliques."""

_SECONDS_PER_COUNT, _MOST_PER_COUNT, _SECONDS_PER_CELL = 1.5e-10, 1e-9, 6e-8
"""For each record and cell of a candidate, where each record counts 1 at most for each record and candidate, as one
table of many cells counts several at once; for each record and variable, once, or in each round if codes are not kept.
"""


@dataclass(frozen=True)
class NetworkSize:
    """The size of a search: its rounds at most, and its time as an order of magnitude.

    Attributes
    ----------
    candidates : int
        Tables to choose from, at most.
    rounds, fits : int
        Tables that are selected, and fits between them, if no round gets a larger share than the first.
    memory_bytes : int
        Of the process: the program, records, exact tables, expected tables, conditional matrices.
    seconds : float
        Of one core.
    """

    candidates: int
    rounds: int
    fits: int
    memory_bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"about {self.memory_bytes / 2**20:,.0f} MiB of memory and {_duration(self.seconds)} of processor time: "
            f"up to {quantity(self.candidates, 'candidate')}, {quantity(self.rounds, 'table')}, "
            f"{quantity(self.fits, 'fit')}"
        )


def network_size(shares: NetworkShares, n_records: float, rows: float | None = None) -> NetworkSize:
    """Time and memory of :func:`pgmpy_dp.tables.networks.adaptive_search.run`.

    Parameters
    ----------
    shares : NetworkShares
        Of public arguments.
    n_records : float
        About how many records there are.
    rows : float, optional
        About how many are read from a frame and counted, where several rows count 1 together. Default: the records are
        in files, and each counts 1.

    Examples
    --------
    >>> from pgmpy_dp.estimators import PrivateNetwork
    >>> from pgmpy_dp.learning.options import settings_of
    >>> from pgmpy_dp.tables.networks.budget_shares import network_shares
    >>> from pgmpy_dp.private.adjacency import Adjacency
    >>> from pgmpy_dp.private.budget import Budget
    >>> from pgmpy_dp.schema import Schema
    >>> schema = Schema({f"v{i}": [0, 1] for i in range(100)})
    >>> settings = settings_of(PrivateNetwork(n_rounds=400))
    >>> shares = network_shares(schema, Adjacency.ADD_REMOVE, settings, Budget(rho=0.1))
    >>> size = network_size(shares, 100_000)
    >>> size.candidates, size.rounds, size.fits
    (9950, 400, 67)
    """
    p, sets, is_file = len(shares.sizes), shares.sets, rows is None
    rows = n_records if rows is None else rows
    read, per_count = rows * p, math.inf
    reading = read * _READING
    if is_file:
        reading, per_count = min(read, MOST_KEPT) * _READ, _MOST_PER_COUNT
    fixed = 0 if sets.target is None else 1  # of the variables of each set
    larger = [min(math.comb(p - fixed, order - fixed), MOST_SETS) for order in range(3, min(sets.max_order, p) + 1)]
    candidates = len(shares.candidates) + sum(larger) if shares.candidates else 0
    if not candidates:
        return NetworkSize(0, 0, 1, int(_PROGRAM + reading), p * _SECONDS_PER_VARIABLE + read * _SECONDS_PER_CELL)
    pairs = sum(map(sets.cells, shares.candidates))
    mean = pairs / len(shares.candidates)
    # A set of one variable more has as many cells again as the variable has states, about.
    cells = pairs + sum(count * mean ** (order / 2) for order, count in enumerate(larger, start=3))
    star = shares.first_star(n_records, list(map(sets.cells, shares.candidates)), shares.rounds)
    rounds = max(1, int((shares.rounds - star) / shares.start(n_records)))
    fits = -(-rounds // shares.in_a_round(n_records)) + (1 if star else 0)
    entries = sum(shares.sizes) * p * sets.max_cells / _WIDE
    searching = min(read, MOST_KEPT) * _READ + candidates * _PER_TABLE + cells * _PER_CELL
    searching += min(entries, _MOST_ENTRIES) * _PER_ENTRY + 32 * sets.max_cells
    searching += max(shares.sizes) ** 2 * _PER_ENTRY
    memory = _PROGRAM + max(reading, searching)
    per_variable = _SECONDS_PER_VARIABLE + sets.max_cells * _SECONDS_PER_CELL_ALLOWED
    per_fit = candidates * _SECONDS_PER_CANDIDATE + p * per_variable
    per_fit += sum(k * k for k in shares.sizes) * _SECONDS_PER_SQUARE
    seconds = fits * per_fit + rows * min(cells * _SECONDS_PER_COUNT, candidates * per_count)
    seconds += read * _SECONDS_PER_CELL * (fits if is_file and read > MOST_KEPT else 1)
    return NetworkSize(candidates, rounds, fits, int(memory), seconds)


def _duration(seconds: float) -> str:
    for unit, size in (("hours", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1.0):.0f} s"
