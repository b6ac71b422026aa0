"""Markov random fields over {-1, +1}^p: the sets of variables of their parities."""

from __future__ import annotations

import itertools

__all__ = ["parity_subsets"]


def parity_subsets(p: int, order: int) -> list[tuple[int, ...]]:
    """All sets of 1 to `order` of the positions 0 .. p-1: by size, and each size in lexicographic order.

    Examples
    --------
    >>> parity_subsets(3, 2)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [subset for size in range(1, order + 1) for subset in itertools.combinations(range(p), size)]
