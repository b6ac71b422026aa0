"""The interactions that a random field has: all sets of some variables, or the cliques of a graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

Scope = tuple[int, ...]


def field_scopes(
    n_variables: int, order: int, edges: Iterable[tuple[int, int]] | None = None, most: int | None = None
) -> tuple[Scope, ...]:
    """Positions of the variables of each interaction: all sets of 1 to `order` variables, or all cliques of a graph.

    Sorted by size, each size in lexicographic order. Of more than `most`, the first `most` + 1: very many cliques are
    told from few without listing them.

    Examples
    --------
    >>> field_scopes(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    >>> field_scopes(3, 2, edges=[(2, 1)])
    ((0,), (1,), (2,), (1, 2))
    """
    stop = None if most is None else most + 1
    if edges is None:
        every = (s for size in range(1, order + 1) for s in itertools.combinations(range(n_variables), size))
        return tuple(itertools.islice(every, stop))
    later: list[set[int]] = [set() for _ in range(n_variables)]
    for u, v in edges:
        later[min(u, v)].add(max(u, v))
    level: list[Scope] = [(i,) for i in range(n_variables)]
    scopes = list(level)
    for _ in range(order - 1):
        larger = ((*s, j) for s in level for j in sorted(set.intersection(*(later[i] for i in s))))
        level = list(itertools.islice(larger, None if stop is None else max(0, stop - len(scopes))))
        scopes += level
    return tuple(scopes[:stop])
