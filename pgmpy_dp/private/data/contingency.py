"""Contingency tables: exact counts of the records by the values of a few variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.pgmpy_config import torch_device
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.joint_tables import covering_scopes, marginal

_ROWS_ON_DEVICE = 1 << 24
_BITS_AT_ONCE = 1 << 26
_WORDS_AT_ONCE = 1 << 17  # of 64 records, in one intermediate array
_LIMIT = 1 << 62
_ROWS_AT_ONCE = 1 << 17

LARGEST = 1 << 16
"""Cells up to which one larger table is cheaper to count than several smaller ones."""

_CELLS_BY_BITS = 16  # up to which that is quicker than one pass over indices
_CELLS_BY_BITS_OF_FEW = 48
_FEW = 1 << 18  # records


def table_sensitivity(adjacency: Adjacency) -> tuple[float, float, float]:
    """Return the l1, l2 and l-infinity sensitivities of one contingency table.

    A record adds 1 to exactly one cell of the table, or to none if it was dropped for being outside the schema.

    * ``add_remove``: one cell moves by 1 (or none does): (1, 1, 1).
    * ``replace_one``: the old record leaves a cell and the new one enters a cell. At worst these are two cells, which
      move by 1 each: l1 = 2, l2 = sqrt(2), and no cell moves by more than 1. If they are the same cell nothing moves;
      if one of the two records is outside the schema a single cell moves by 1.

    The l2 sensitivity is rounded up: its exact square is at least 2.
    """
    if changed_records(adjacency) == 1:
        return 1.0, 1.0, 1.0
    return 2.0, math.nextafter(math.sqrt(2.0), math.inf), 1.0


def match_sensitivity(n_counts: int) -> tuple[float, float, float]:
    """Return the joint l1, l2 and l-infinity sensitivities of counts of records that match, each of its own condition.

    A record adds 0 or 1 to each of the m counts, by its own cells alone. Under ``add_remove`` each count moves by at
    most 1. Under ``replace_one`` one vector of zeros and ones takes the place of another, so each count moves by at
    most 1 again. Hence (m, sqrt(m), 1) under both, which a record that meets all conditions attains: added, or in the
    place of one that meets none. The l2 sensitivity is rounded up.

    Examples
    --------
    >>> match_sensitivity(3)[0], round(match_sensitivity(3)[1], 6)
    (3.0, 1.732051)
    """
    return float(n_counts), math.nextafter(math.sqrt(n_counts), math.inf), 1.0


def count(
    codes: np.ndarray, cardinalities: Sequence[int], columns: Sequence[int], weights: np.ndarray | None = None
) -> np.ndarray:
    """Number of records for each combination of values of the given columns, in one pass over them.

    On pgmpy's torch backend the same is counted on ``pgmpy.config.get_device()``, a GPU for example.

    Parameters
    ----------
    codes : ndarray of integers, shape (n, p)
        Column j in ``0 .. cardinalities[j] - 1``.
    cardinalities : sequence of int, length p
    columns : sequence of int
        Positions in 0 .. p - 1, at least one, no repeats; they become the axes, in this order.
    weights : ndarray of integers, shape (n,), optional
        For how much each record counts; of a sum below 2**53, so that every order of doubles adds them up exactly.

    Returns
    -------
    ndarray of int64, shape ``(cardinalities[j] for j in columns)``

    Examples
    --------
    >>> count(np.array([[0, 1], [1, 1], [0, 1]]), [2, 2], [0, 1]).tolist()
    [[0, 2], [0, 1]]
    """
    shape = tuple(cardinalities[j] for j in columns)
    cells = math.prod(shape)
    if weights is None and torch_device() is not None:
        return _count_on_device([list(codes.T)], shape, columns)
    index = codes[:, columns[0]].astype(np.intp)
    for j in columns[1:]:
        index *= cardinalities[j]
        index += codes[:, j]
    return np.bincount(index, weights, minlength=cells).astype(np.int64, copy=False).reshape(shape)


def weighted_sum(
    total: Callable[[np.ndarray], np.ndarray], codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """A sum over records in which each counts for its weight, from a function that adds up records that count 1.

    Parameters
    ----------
    total : callable
        From codes of some records, shape (k, p), to integers, int64.
    codes : ndarray, shape (n, p)
    weights : ndarray of integers, shape (n,), or None
        Not negative. None: each counts 1.

    Notes
    -----
    It adds up one sum for each binary digit of the weights, of the records whose weight has that digit: exact, and at
    most 21 sums for weights of up to 2**20. Numbers that 64 bits would not hold, as of very many persons, are clamped
    to +-2**62, which moves no two sums further apart; wrapping around would.

    Examples
    --------
    >>> weighted_sum(lambda codes: codes.sum(axis=0), np.array([[1, 0], [1, 1]]), np.array([3, 4])).tolist()
    [7, 4]
    """
    if weights is None:
        return total(codes)
    summed, largest = total(codes[:0]), 0.0
    for digit in range(int(weights.max(initial=0)).bit_length()):
        chosen = (weights >> digit) & 1 == 1
        if chosen.any():
            part = total(codes[chosen])
            largest += math.ldexp(float(np.abs(part).max(initial=0)), digit)
            if largest >= _LIMIT:
                summed, part = summed.astype(object), part.astype(object)
            summed = summed + (part << digit)
    return summed if largest < _LIMIT else np.clip(summed, -_LIMIT, _LIMIT).astype(np.int64)


def count_all(
    codes: np.ndarray | Sequence[Sequence[np.ndarray]],
    cardinalities: Sequence[int],
    scopes: Sequence[Sequence[int]],
    weights: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Count as :func:`count` does, for many sets of columns; small tables together, 64 records at a time.

    Parameters
    ----------
    codes : ndarray of integers, shape (n, p), or sequence of blocks
        A block is a list of p columns, of some of the records.
    cardinalities, weights
        See :func:`count`; no weights for several blocks.
    scopes : sequence of sequence of int

    Returns
    -------
    list of ndarray of int64

    Notes
    -----
    Each (column, state) has a row of bits: which records are in that state. The records of a cell are those of
    which all bits are set, so a cell is the number of bits of a bitwise and, an exact whole number. Every record has
    one state in the last column: the cells of its state 0 are what the others leave of the cells without that column.

    Examples
    --------
    >>> [table.tolist() for table in count_all(np.array([[0, 1], [1, 1], [0, 1]]), [2, 2], [(0, 1), (1,)])]
    [[[0, 2], [0, 1]], [0, 3]]
    """
    blocks: Any = [codes.T] if isinstance(codes, np.ndarray) else codes
    if weights is None and torch_device() is not None:
        return [_count_on_device(blocks, [cardinalities[j] for j in scope], scope) for scope in scopes]
    largest = _CELLS_BY_BITS if sum(len(columns[0]) for columns in blocks) > _FEW else _CELLS_BY_BITS_OF_FEW
    small = [weights is None and _bit_cells([cardinalities[j] for j in scope]) <= largest for scope in scopes]
    involved = {j for scope, by_bits in zip(scopes, small, strict=True) if by_bits for j in scope}
    if sum(small) <= len(involved):  # bits would take longer to make than to use
        return _by_covers(blocks, cardinalities, scopes, weights)
    rest = iter(
        _by_covers(blocks, cardinalities, [s for s, by_bits in zip(scopes, small, strict=True) if not by_bits], weights)
    )
    counted = [
        np.zeros(tuple(cardinalities[j] for j in scope), dtype=np.int64) if by_bits else next(rest)
        for scope, by_bits in zip(scopes, small, strict=True)
    ]
    together: dict[tuple[int, ...], list[int]] = {}
    for place in np.flatnonzero(small).tolist():
        together.setdefault(tuple(scopes[place][:-1]), []).append(place)
    rows = max(1 << 16, _BITS_AT_ONCE // sum(cardinalities[j] for j in involved))
    for columns in _batches(blocks, rows):
        bits = {j: _bits_of(columns[j], cardinalities[j]) for j in involved}
        for first, places in together.items():
            lasts = [bits[scopes[place][-1]] for place in places]
            tables = _tables_of_bits([bits[j] for j in first], lasts, len(columns[0]))
            for place, table in zip(places, tables, strict=True):
                counted[place] += table.reshape(counted[place].shape)
    return counted


def _batches(blocks: Sequence[Sequence[np.ndarray]], rows: int) -> Iterator[list[np.ndarray]]:
    """Columns of at most so many records at a time."""
    for block in blocks:
        for start in range(0, len(block[0]), rows):
            yield [column[start : start + rows] for column in block]


def _bit_cells(shape: Sequence[int]) -> int:
    """Return the number of a table's cells that are counted by their bits."""
    return math.prod(shape[:-1]) * (shape[-1] - 1)


def _bits_of(column: np.ndarray, states: int) -> np.ndarray:
    """Return the records in each state as bits, shape (states, words); bits beyond the last record are 0."""
    words = np.zeros((states, -(-len(column) // 64)), dtype=np.uint64)
    for state in range(states):
        packed = np.packbits(column == state)
        words[state].view(np.uint8)[: len(packed)] = packed
    return words


def _tables_of_bits(first: Sequence[np.ndarray], lasts: Sequence[np.ndarray], n_records: int) -> list[np.ndarray]:
    """Counts by the states of all columns of `first` and of one of `lasts` each, shape (cells, states)."""
    n_words = lasts[0].shape[1]
    cells = np.empty((0, n_words), dtype=np.uint64)
    for place, words in enumerate(first):
        cells = words if place == 0 else (cells[:, None, :] & words).reshape(-1, n_words)
    totals = np.bitwise_count(cells).sum(axis=1, dtype=np.int64) if first else np.array([n_records])
    step = max(1, _WORDS_AT_ONCE // max(1, n_words * max(1, len(cells)) * max(len(words) for words in lasts)))
    tables: list[np.ndarray] = []
    for start in range(0, len(lasts), step):
        some = lasts[start : start + step]
        rest = np.concatenate([words[1:] for words in some])
        both = cells[:, None, :] & rest if first else rest[None]
        counted = np.bitwise_count(both).sum(axis=2, dtype=np.int64)
        ends = np.cumsum([len(words) - 1 for words in some])
        parts = np.split(counted, ends[:-1], axis=1)
        tables += [np.concatenate([(totals - part.sum(axis=1))[:, None], part], axis=1) for part in parts]
    return tables


def _count_on_device(blocks: Sequence[Sequence[np.ndarray]], shape: Sequence[int], scope: Sequence[int]) -> np.ndarray:
    """Count as :func:`count` does; of whole numbers, so the order in which a device adds them up does not matter."""
    import torch  # here, so that the package can be imported without it

    device = torch_device()
    table = torch.zeros(math.prod(shape), dtype=torch.int64, device=device)
    for columns in _batches(blocks, _ROWS_ON_DEVICE):
        index = torch.zeros(len(columns[0]), dtype=torch.int64, device=device)
        for j, size in zip(scope, shape, strict=True):
            # Codes wider than a byte travel in a type that every device has; bytes become wider only there.
            column = columns[j] if columns[j].dtype == np.uint8 else columns[j].astype(np.int64)
            index = index * size + torch.tensor(column, device=device)
        table += torch.bincount(index, minlength=len(table))
    return table.cpu().numpy().reshape(shape)


def _by_covers(
    blocks: Sequence[Sequence[np.ndarray]],
    cardinalities: Sequence[int],
    scopes: Sequence[Sequence[int]],
    weights: np.ndarray | None,
) -> list[np.ndarray]:
    """Tables as sums of a few larger ones, each counted in one pass."""
    covers = covering_scopes([tuple(scope) for scope in scopes], cardinalities, LARGEST) if scopes else []
    tables = [np.zeros(math.prod(cardinalities[j] for j in cover), dtype=np.int64) for cover in covers]
    start = 0
    for columns in _batches(blocks, _ROWS_AT_ONCE):
        batch_weights = None if weights is None else weights[start : start + len(columns[0])]
        start += len(columns[0])
        for cover, table in zip(covers, tables, strict=True):
            table += count_joint(columns, cardinalities, cover, batch_weights)
    shaped = {
        cover: table.reshape([cardinalities[j] for j in cover]) for cover, table in zip(covers, tables, strict=True)
    }
    marginals = []
    for scope in scopes:
        cover = min((each for each in covers if set(scope) <= set(each)), key=lambda each: shaped[each].size)
        marginals.append(marginal(shaped[cover], cover, scope))
    return marginals


def count_joint(
    columns: Sequence[np.ndarray] | np.ndarray,
    cardinalities: Sequence[int],
    cover: Sequence[int],
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Count as :func:`count` does, flat, from columns of codes; in small integers where the table allows it.

    Examples
    --------
    >>> count_joint([np.array([0, 1, 1]), np.array([1, 1, 0])], [2, 2], [0, 1]).tolist()
    [0, 1, 1, 1]
    """
    cells = math.prod(cardinalities[j] for j in cover)
    is_small = cells <= 1 << 16 and all(cardinalities[j] < 1 << 16 for j in cover)
    dtype: Any = np.uint16 if is_small else np.int64
    index = columns[cover[0]].astype(dtype)
    for j in cover[1:]:
        index *= dtype(cardinalities[j])
        index += columns[j].astype(dtype, copy=False)
    return np.bincount(index, weights, minlength=cells).astype(np.int64, copy=False)
