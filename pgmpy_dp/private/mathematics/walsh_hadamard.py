"""The Walsh-Hadamard transform: all parities of a distribution over {-1, 1}^p.

A point z of {-1, 1}^p is a *cell*, the integer whose bit j is 1 where ``z_j = 1``; a set of variables is a *mask*, the
integer with those bits. The product of z over a set is then ``(-1)^(|set| + number of common bits)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LEAF = 32  # the innermost transforms are one matrix product: shorter strides would be slow


def transform(values: np.ndarray) -> np.ndarray:
    """``sum_c values[..., c] (-1)^popcount(c & m)`` for all m, in n log n operations.

    Parameters
    ----------
    values : ndarray, shape (..., 2**p)

    Returns
    -------
    ndarray of float64, same shape
        Exact for integers whose absolute values sum to less than 2**53.

    Examples
    --------
    >>> transform(np.array([3, 1, 0, 2])).tolist()
    [6.0, 0.0, 2.0, 4.0]
    """
    values = np.asarray(values, dtype=np.float64)
    size = values.shape[-1]
    if size & (size - 1) or not size:
        raise ValueError(f"values has {size} entries along its last axis; pass a power of two")
    leaf = min(size, _LEAF)
    bits = np.arange(leaf)
    signs = 1.0 - 2.0 * (np.bitwise_count(bits[:, None] & bits) & 1)
    result = values.reshape(-1, leaf) @ signs
    stride = leaf
    while stride < size:
        pairs = result.reshape(-1, 2, stride)
        first = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = first
        stride *= 2
    return result.reshape(values.shape)


def masks_of(subsets: Sequence[Sequence[int]]) -> np.ndarray:
    """The masks of sets of positions, int64; positions below 62.

    Examples
    --------
    >>> masks_of([(0,), (0, 2)]).tolist()
    [1, 5]
    """
    return np.fromiter((sum(1 << j for j in subset) for subset in subsets), dtype=np.int64, count=len(subsets))


def sign_of_size(masks: np.ndarray) -> np.ndarray:
    """-1 for masks of an odd number of variables, else 1."""
    return 1.0 - 2.0 * (np.bitwise_count(masks) & 1)


def parities_of_cells(histogram: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """``sum_c histogram[c] prod_{j in mask} z_j(c)`` for each mask: float64, exact as `transform` is.

    Examples
    --------
    >>> parities_of_cells(np.array([0, 1, 0, 2]), np.array([1, 2, 3])).tolist()
    [3.0, 1.0, 1.0]
    """
    return transform(histogram)[masks] * sign_of_size(masks)
