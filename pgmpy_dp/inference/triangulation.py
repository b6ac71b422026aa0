"""Cliques of a small graph by the min-fill heuristic, on bit masks: quick enough to ask hundreds of times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def min_fill_cliques(
    neighbours: Mapping[int, int], sizes: Sequence[int], max_cells: float = math.inf
) -> list[tuple[int, int]] | None:
    """Eliminate the variable that needs the fewest new edges, again and again.

    Parameters
    ----------
    neighbours : mapping of int to int
        For each variable the bit mask of those that it has an edge to, all of them keys.
    sizes : sequence of int
        States of each variable.
    max_cells : float
        Give up once a clique has more cells.

    Returns
    -------
    list of (variables, parent), or None
        Bit mask of each clique and the number of the one that it hangs on (-1: none), which comes after it; cliques may
        lie within others. None where one is too large.

    Examples
    --------
    >>> square = {0: 0b1010, 1: 0b0101, 2: 0b1010, 3: 0b0101}
    >>> [bin(clique) for clique, _ in min_fill_cliques(square, [2] * 4)]
    ['0b1011', '0b1110', '0b1100', '0b1000']
    """
    around = dict(neighbours)
    logs = {v: math.log(sizes[v]) for v in around}
    limit = math.log(max_cells) + 1e-9 if max_cells < math.inf else math.inf
    known: dict[int, tuple[int, float]] = {}
    order: dict[int, int] = {}
    found: list[tuple[int, int]] = []  # clique and its other variables
    while around:
        for v, near in around.items():
            if v not in known:
                missing = 0
                for u in _bits(near):
                    missing += (near & ~around[u] & ~(1 << u)).bit_count()
                known[v] = (missing, logs[v] + sum(logs[u] for u in _bits(near)))
        v = min(around, key=known.__getitem__)
        near = around.pop(v)
        if known.pop(v)[1] > limit:
            return None
        order[v] = len(found)
        found.append((near | 1 << v, near))
        touched = near
        for u in _bits(near):
            old = around[u]
            around[u] = (old | near) & ~(1 << u) & ~(1 << v)
            touched |= old
        # What a variable would need changes where edges among its neighbours were made: at distance two at most.
        for u in _bits(near):
            touched |= around[u]
        for u in _bits(touched):
            known.pop(u, None)
    return [(clique, min((order[u] for u in _bits(rest)), default=-1)) for clique, rest in found]


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
