"""The models on which the lower bounds of Zhang et al. (2020) are proved: perfect matchings, of nodes 2i and 2i + 1.

A learner that does well on other models may still need the stated number of records on these; `theory.lower_bounds`
has the bounds. Pairs are independent of each other, so that marginals and divergences have closed forms.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
   The proofs of Theorems 5.1, 7.1 and 7.4.
"""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.fields.random_fields import Ising, Pairwise

__all__ = [
    "coded_blocks",
    "coded_matching",
    "hard_pairwise",
    "hard_parameters",
    "hard_structure",
    "matching",
]


def matching(weights: np.ndarray) -> Ising:
    """Ising model without fields, in which nodes 2i and 2i + 1 interact with weight eta_i, and nothing else does.

    E[Z_2i Z_2i+1] = tanh(eta_i). (The proof of Theorem 5.1 has (e^eta_i - 1)/(e^eta_i + 1) = tanh(eta_i/2), which
    belongs to a density with half of these weights; the order of the bound is the same.)

    Parameters
    ----------
    weights : array of shape (p/2,)
        eta.

    Returns
    -------
    Ising

    Examples
    --------
    >>> matching([0.5, 0.0, -0.2]).edges()
    [(0, 1), (4, 5)]
    """
    eta = np.asarray(weights, dtype=np.float64)
    if eta.ndim != 1 or not eta.size:
        raise ValueError(f"weights must have shape (p/2,) with one weight or more, got shape {eta.shape}")
    array = np.zeros((2 * len(eta), 2 * len(eta)))
    first = 2 * np.arange(len(eta))
    array[first, first + 1] = array[first + 1, first] = eta
    return Ising(array, np.zeros(2 * len(eta)))


def coded_matching(code: np.ndarray, weight: float) -> Ising:
    """Matching with weight eta where the code has a 1, and no edge where it has a 0 (Theorem 7.1).

    The 2^(p/2) codes have as many different graphs, and the total variation distance of any two of the models is at
    most min(2 eta sqrt(p), 1).

    Parameters
    ----------
    code : array of 0 and 1 of shape (p/2,)
    weight : float
        eta.

    Returns
    -------
    Ising

    Examples
    --------
    >>> coded_matching([1, 0, 1], 0.3).edges()
    [(0, 1), (4, 5)]
    """
    return matching(_check_weight(weight) * _check_bits("code", code))


def coded_blocks(codes: np.ndarray, weight: float) -> Pairwise:
    """Pairwise model in which nodes 2i and 2i + 1 have the table eta * codes[i] (Theorem 7.4).

    Each table is one of 2^(k(k+1)/2), which are different distributions, except that the constant tables, all 0 and all
    1, both mean no interaction. All the others put an edge there. The tables are not centred, and `min_edge_weight`,
    which is that of the centred model, is below eta.

    Parameters
    ----------
    codes : array of 0 and 1 of shape (p/2, k, k)
        Symmetric.
    weight : float
        eta.

    Returns
    -------
    Pairwise

    Examples
    --------
    >>> coded_blocks([[[1, 0], [0, 0]], [[1, 1], [1, 1]]], 0.4).edges()
    [(0, 1)]
    """
    bits = _check_bits("codes", codes)
    if bits.ndim != 3 or bits.shape[1] != bits.shape[2] or not np.array_equal(bits, bits.transpose(0, 2, 1)):
        raise ValueError(f"codes must be symmetric matrices, of shape (p/2, k, k), got shape {bits.shape}")
    pairs, k, _ = bits.shape
    tables = {(2 * i, 2 * i + 1): _check_weight(weight) * bits[i] for i in range(pairs)}
    return Pairwise(tuple(np.zeros(k) for _ in range(2 * pairs)), tables)


def hard_parameters(p: int, rng: np.random.Generator, *, limit: float = math.log(2)) -> Ising:
    """Matching with weights uniform on [-limit, limit] (Theorem 5.1, where limit is ln 2).

    Parameters
    ----------
    p : int
        Variables; even.
    rng : numpy.random.Generator
    limit : float

    Returns
    -------
    Ising

    Examples
    --------
    >>> hard_parameters(10, np.random.default_rng(0)).width <= math.log(2)
    True
    """
    return matching(_check_weight(limit, "limit") * rng.uniform(-1, 1, _pairs(p)))


def hard_structure(p: int, weight: float, rng: np.random.Generator) -> Ising:
    """`coded_matching` of a code drawn uniformly.

    Parameters
    ----------
    p : int
        Variables; even.
    weight : float
        eta.
    rng : numpy.random.Generator

    Returns
    -------
    Ising

    Examples
    --------
    >>> hard_structure(1000, 0.3, np.random.default_rng(0)).width
    0.3
    """
    return coded_matching(rng.integers(2, size=_pairs(p)), weight)


def hard_pairwise(p: int, k: int, weight: float, rng: np.random.Generator) -> Pairwise:
    """`coded_blocks` of symmetric tables drawn uniformly.

    Parameters
    ----------
    p, k : int
        Variables, even, and states, 2 or more.
    weight : float
        eta.
    rng : numpy.random.Generator

    Returns
    -------
    Pairwise

    Examples
    --------
    >>> hard_pairwise(6, 3, 0.3, np.random.default_rng(0)).cardinalities
    (3, 3, 3, 3, 3, 3)
    """
    if k < 2:
        raise ValueError(f"k={k!r} must be 2 states or more")
    upper = np.triu(rng.integers(2, size=(_pairs(p), k, k)))
    return coded_blocks(upper | upper.transpose(0, 2, 1), weight)


def _pairs(p: int) -> int:
    if p < 2 or p % 2:
        raise ValueError(f"p={p!r} must be even and at least 2: the nodes are matched")
    return p // 2


def _check_weight(weight: float, name: str = "weight") -> float:
    if not 0 < weight < math.inf:
        raise ValueError(f"{name}={weight!r} must be positive and finite")
    return weight


def _check_bits(name: str, bits: np.ndarray) -> np.ndarray:
    array = np.asarray(bits)
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must consist of 0 and 1")
    return array.astype(np.int64)
