"""Contingency tables: exact counts of the records by the values of a few variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from pgmpy import config

from pgmpy_dp.private.adjacency import Adjacency, changed_records

__all__ = ["add_counts", "count", "count_all", "match_sensitivity", "table_sensitivity"]

_ROWS_ON_DEVICE = 1 << 24
_CELLS_BY_BITS = 64  # of a table of three variables that is counted on bits: a cell takes a 64th of a pass
_ROWS_AS_BITS = 1 << 20  # at a time
_FEW = 32  # tables, below which making the bits is not worth it


def table_sensitivity(adjacency: Adjacency) -> tuple[float, float, float]:
    """How far one contingency table moves between neighbours: its l1, l2 and l-infinity sensitivities.

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
    """How far counts of records that match, each of its own condition, move together: in l1, l2 and l-infinity.

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
    if config.get_backend() == "torch" and weights is None:
        return _count_on_device(codes, shape, columns)
    index = codes[:, columns[0]].astype(np.intp)
    for j in columns[1:]:
        index *= cardinalities[j]
        index += codes[:, j]
    return np.bincount(index, weights, minlength=cells).astype(np.int64, copy=False).reshape(shape)


def count_all(codes: np.ndarray, cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """As :func:`count` for each of some scopes, quicker where many of them are pairs and triples with few states.

    Of these, each state of each variable is written as bits, one for each record, once; a cell is the number of bits
    that its states have in common. All of it is counted in whole numbers.

    Parameters
    ----------
    codes, cardinalities
        As for :func:`count`.
    scopes : sequence of sequences of int

    Returns
    -------
    list of ndarray of int64

    Examples
    --------
    >>> [table.tolist() for table in count_all(np.array([[0, 1], [1, 1], [0, 1]]), [2, 2], [(0,), (1, 0)])]
    [[2, 1], [[0, 0], [2, 1]]]
    """
    small = {
        tuple(scope)
        for scope in scopes
        if len(scope) in (2, 3) and math.prod(cardinalities[j] for j in scope) <= _CELLS_BY_BITS
    }
    if len(small) < _FEW or config.get_backend() == "torch":
        return [count(codes, cardinalities, scope) for scope in scopes]
    starts = range(0, len(codes), _ROWS_AS_BITS)
    parts = [_by_bits(codes[k : k + _ROWS_AS_BITS], cardinalities, small) for k in starts]
    found = {scope: np.sum([part[scope] for part in parts], axis=0) for scope in small} if parts else {}
    return [found[tuple(scope)] if tuple(scope) in found else count(codes, cardinalities, scope) for scope in scopes]


def _by_bits(
    codes: np.ndarray, cardinalities: Sequence[int], scopes: Collection[tuple[int, ...]]
) -> dict[tuple[int, ...], np.ndarray]:
    """Tables of two and three variables; sets that begin alike are counted together."""
    needed = sorted({j for scope in scopes for j in scope})
    words = -(-len(codes) // 64)
    # Beyond the last record all bits are 0, so that nothing is counted there.
    bits = np.zeros((sum(cardinalities[j] for j in needed), words * 8), dtype=np.uint8)
    first, row = {}, 0
    for j in needed:
        first[j] = row
        for state in range(cardinalities[j]):
            packed = np.packbits(codes[:, j] == state)
            bits[row, : len(packed)] = packed
            row += 1
    states = bits.view(np.uint64)
    last: dict[tuple[int, ...], list[int]] = {}
    for scope in scopes:
        last.setdefault(scope[:-1], []).append(scope[-1])
    found = {}
    for start, ends in last.items():
        rows = np.concatenate([np.arange(first[j], first[j] + cardinalities[j]) for j in ends])
        chosen, heads = states[rows], itertools.product(*(range(first[j], first[j] + cardinalities[j]) for j in start))
        cells = [
            np.bitwise_count(chosen & np.bitwise_and.reduce(states[list(head)])).sum(axis=1, dtype=np.int64)
            for head in heads
        ]
        tables = np.stack(cells).reshape(*(cardinalities[j] for j in start), -1)
        ends_at = np.cumsum([cardinalities[j] for j in ends])
        for j, table in zip(ends, np.split(tables, ends_at[:-1], axis=-1), strict=True):
            found[(*start, j)] = np.ascontiguousarray(table)
    return found


def _count_on_device(codes: np.ndarray, shape: tuple[int, ...], columns: Sequence[int]) -> np.ndarray:
    """As :func:`count`: whole numbers, so the order in which a device adds them up is no matter."""
    import torch  # here, so that the package can be imported without it

    device = config.get_device()
    table = torch.zeros(math.prod(shape), dtype=torch.int64, device=device)
    for start in range(0, len(codes), _ROWS_ON_DEVICE):
        rows = codes[start : start + _ROWS_ON_DEVICE]
        index = torch.zeros(len(rows), dtype=torch.int64, device=device)
        for j, size in zip(columns, shape, strict=True):
            # Codes wider than a byte travel in a type that every device has; bytes become wider only there.
            column = rows[:, j] if rows.dtype == np.uint8 else rows[:, j].astype(np.int64)
            index = index * size + torch.tensor(column, device=device)
        table += torch.bincount(index, minlength=len(table))
    return table.cpu().numpy().reshape(shape)


def add_counts(
    tables: Sequence[np.ndarray],
    batches: Iterable[Sequence[np.ndarray]],
    cardinalities: Sequence[int],
    blocks: Sequence[Sequence[int]],
) -> None:
    """Count batches of records, each a list of columns of codes, into the table of each block, in place.

    Examples
    --------
    >>> table = np.zeros((2, 2), dtype=np.int64)
    >>> add_counts([table], [[np.array([0, 1]), np.array([1, 1])], [np.array([0]), np.array([1])]], [2, 2], [(0, 1)])
    >>> table.tolist()
    [[0, 2], [0, 1]]
    """
    for batch in batches:
        codes = np.column_stack(batch)
        for table, block in zip(tables, blocks, strict=True):
            table += count(codes, cardinalities, block)
