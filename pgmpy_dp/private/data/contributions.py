"""Tables to which one user may add many records: how much one user can add, and how it is kept that low.

A user has several *segments* (runs of visited states); a pair is two visits that follow each other in one segment. The
privacy unit is the user with all of it, so what a user adds to a table has to be bounded for every conceivable user.
Two rules do so, user by user, and neither looks at any other user.

``shares``
    A user whose pairs are counted K times in all adds ``floor(G c / K)`` to a cell in which it has c of them, on the
    public grid G = 2**20: a share of one, split over its cells and rounded *down*. What a user adds is non-negative and
    sums to at most ``sum(floor(G c / K)) <= G``, whatever its length. Rounding per cell and not per pair loses at most
    one grid unit for each cell the user occupies: 289/2**20 = 0.03 % of a user at worst on a table of 17 x 17 cells,
    where weights rounded per pair would lose all of a user of more than G pairs.
``at most m segments``
    m of a user's segments are chosen at random and counted in full. With at most L visits in a segment they have at
    most m (L - 1) pairs and m beginnings.

In both, pairs that are not *informative* add nothing and do not count towards K. It is essential that the two agree: if
pairs of two null states added 1/K without being in K, a user with one informative pair among 23 would add 23 times what
is claimed.
"""

from __future__ import annotations

import math
import os

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records

GRID = 1 << 20
"""Integer units in one user's share. Fine enough that rounding down is far below any useful noise (G/epsilon units),
coarse enough that 2**43 users fit in 64 bits and scales stay below the sampler's 2**48 down to epsilon of 1e-8."""


def contribution_sensitivity(adjacency: Adjacency, most: int) -> tuple[float, float, float]:
    """l1, l2 and l-infinity sensitivity of a table to which each user adds non-negative integers of sum at most `most`.

    * ``add_remove``: the tables differ by one user's addition u >= 0 with norm1(u) <= M. Its l2 and l-infinity norms
      are at most its l1 norm, and equal to it where it lies in one cell: (M, M, M).
    * ``replace_one``: they differ by u - v, both of that kind. norm1(u - v) <= 2M. As u and v are non-negative,
      norm2(u - v)**2 <= norm2(u)**2 + norm2(v)**2 <= 2 M**2, and a cell moves by at most max(u, v) <= M:
      (2M, sqrt(2) M, M). All three are attained by users in two different cells.

    The l2 sensitivity is rounded up: its exact square is at least 2 M**2.

    Examples
    --------
    >>> contribution_sensitivity(Adjacency.ADD_REMOVE, 5)
    (5.0, 5.0, 5.0)
    """
    if changed_records(adjacency) == 1:
        return float(most), float(most), float(most)
    # One step up covers the rounding of the product (a quarter of a step) and of the root (half a step).
    return 2.0 * most, math.nextafter(math.sqrt(2.0 * most * most), math.inf), float(most)


def share_table(user: np.ndarray, cell: np.ndarray, informative: np.ndarray, n_cells: int) -> np.ndarray:
    """Sum over users of ``floor(GRID c / K)`` in each cell.

    Parameters
    ----------
    user : ndarray of integers, shape (events,)
        Whose event it is, 0, 1, ... .
    cell : ndarray of integers, shape (events,)
        Where it counts, 0 .. n_cells - 1; not read where the event is not informative.
    informative : ndarray of bool, shape (events,)
        Which events count. K is their number per user; a user without any adds nothing.
    n_cells : int

    Returns
    -------
    ndarray of int64, shape (n_cells,)

    Notes
    -----
    Exact in 64-bit integers, in any order: ``GRID c`` is below 2**63 for users of less than 2**43 events.

    Examples
    --------
    >>> table = share_table(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), np.ones(4, bool), 2)
    >>> (table / GRID).round(4).tolist()
    [0.6667, 1.3333]
    """
    _, occupied, shares = user_shares(user, cell, informative, n_cells, GRID)
    table = np.zeros(n_cells, dtype=np.int64)
    np.add.at(table, occupied, shares)
    return table


def user_shares(
    user: np.ndarray, cell: np.ndarray, informative: np.ndarray, n_cells: int, total: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each user's ``floor(total c / K)`` in each cell it occupies; other arguments as :func:`share_table`.

    Returns
    -------
    user, cell, share : ndarrays of int64
        In the order of users, then cells. A user's shares are not negative and sum to at most `total`.
    """
    place = user[informative].astype(np.int64, copy=False)
    in_all = np.bincount(place) if len(place) else np.zeros(1, dtype=np.int64)
    # In their places, as all of this is the memory that a table takes.
    place *= n_cells
    place += cell[informative]
    place.sort()
    is_new = np.ones(len(place), dtype=bool)
    is_new[1:] = place[1:] != place[:-1]
    starts = np.flatnonzero(is_new)
    share = np.diff(starts, append=len(place))
    place = place[starts]
    del starts
    owner = place // n_cells
    place %= n_cells
    share *= total
    share //= in_all[owner]
    return owner, place, share


def count_table(cell: np.ndarray, informative: np.ndarray, n_cells: int) -> np.ndarray:
    """Number of informative events in each cell; arguments and result as :func:`share_table`."""
    return np.bincount(cell[informative].astype(np.intp), minlength=n_cells).astype(np.int64, copy=False)


def segment_keys(n: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """An independent random number of 64 bits for each of n segments, of the operating system's randomness.

    With `rng` it is **not private**: for tests and benchmarks only.
    """
    if rng is None:
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return rng.integers(0, 1 << 63, size=n, dtype=np.uint64)


def chosen_segments(
    user: np.ndarray, most: int, rng: np.random.Generator | None = None, keys: np.ndarray | None = None
) -> np.ndarray:
    """Choose `most` segments of each user at random, all of them where there are no more.

    Parameters
    ----------
    user : ndarray of integers, shape (segments,)
        Whose segment it is.
    most : int
    rng : numpy.random.Generator, optional
        For tests and benchmarks only.
    keys : ndarray, shape (segments,), optional
        Random numbers, of :func:`segment_keys`; drawn here by default.

    Returns
    -------
    ndarray of bool, shape (segments,)

    Notes
    -----
    Privacy: every segment gets an independent random number of the operating system, and each user keeps the segments
    of its smallest ones. So the choices of different users are independent, and the distribution of one user's choice
    depends on that user alone: given the choices of all others, adding, removing or replacing a user moves what is
    counted by that user's choice only. The choice never depends on position or content, which would couple users.

    Examples
    --------
    >>> chosen_segments(np.array([0, 1, 0, 0]), 1).reshape(-1)[[1]].tolist()
    [True]
    """
    key = segment_keys(len(user), rng) if keys is None else keys
    order = np.lexsort((key, user))
    first = np.searchsorted(user[order], user[order], side="left")
    chosen = np.zeros(len(user), dtype=bool)
    chosen[order] = np.arange(len(user)) - first < most
    return chosen
