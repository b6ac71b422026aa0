"""The three kinds of random fields under one roof: Ising, pairwise over any alphabets, and binary of any order.

Their classes are in `binary_fields` and `pairwise_fields`; what holds of all three is here.

All three are log-linear models in a parametrisation of their own, over positions 0 .. p-1::

    Ising         log Pr(z) = sum_{i<j} A_ij z_i z_j + sum_i theta_i z_i           z in {-1, +1}^p
    Pairwise      log Pr(x) = sum_{i<j} W_ij(x_i, x_j) + sum_i theta_i(x_i)        x_i in 0 .. k_i - 1
    BinaryField   log Pr(z) = h(z) = sum_I c_I prod_{i in I} z_i                   z in {-1, +1}^p

each up to a constant. Records are state numbers, as everywhere in this package: z = 2 x - 1, so that the first state
of a binary variable is -1 and the second +1.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
   Section 2: the models and their widths.
.. [2] Klivans, A. and Meka, R. (2017). Learning graphical models using multiplicative weights. FOCS.
.. [3] Wu, S., Sanghavi, S. and Dimakis, A. G. (2019). Sparse logistic regression learns all discrete pairwise
   graphical models. NeurIPS.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from pgmpy_dp.fields.binary_fields import BinaryField, Ising
from pgmpy_dp.fields.pairwise_fields import Pairwise

RandomField = Ising | Pairwise | BinaryField


def edge_scores(field: RandomField) -> np.ndarray:
    """Largest absolute interaction of each pair of variables, shape (p, p), symmetric.

    Of an Ising model |A_ij|, of a pairwise one the largest entry of the centred |W_ij|, of a binary field the largest
    coefficient of a product that holds both.

    Examples
    --------
    >>> edge_scores(BinaryField(3, {(0,): 5.0, (0, 1): 0.2, (0, 1, 2): -0.5}))
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    if isinstance(field, Ising):
        return np.abs(field.weights)
    scores = np.zeros((field.n_variables, field.n_variables))
    if isinstance(field, Pairwise):
        for (i, j), table in field.centred().weights.items():
            scores[i, j] = scores[j, i] = np.abs(table).max()
        return scores
    return by_pair(field.n_variables, {scope: abs(value) for scope, value in field.coefficients.items()})


def by_pair(p: int, values: Mapping[tuple[int, ...], float]) -> np.ndarray:
    """Largest of the non-negative values of the sets that hold both of a pair of positions, shape (p, p)."""
    largest = np.zeros((p, p))
    for scope, value in values.items():
        for i, j in itertools.permutations(scope, 2):
            largest[i, j] = max(largest[i, j], value)
    return largest
