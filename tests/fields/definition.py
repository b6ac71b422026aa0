"""Random fields by their definitions, term by term."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pgmpy_dp.fields.random_fields import Ising, Pairwise, RandomField


def naive_log_potential(field, record) -> float:
    """The sums of the classes' docstrings, term by term."""
    z = [2 * x - 1 for x in record]
    pairs = list(itertools.combinations(range(len(record)), 2))
    if isinstance(field, Ising):
        return sum(field.weights[i, j] * z[i] * z[j] for i, j in pairs) + sum(np.multiply(field.fields, z))
    if isinstance(field, Pairwise):
        own = sum(theta[x] for theta, x in zip(field.fields, record, strict=True))
        return own + sum(field.weights[i, j][record[i], record[j]] for i, j in pairs if (i, j) in field.weights)
    return sum(value * math.prod(z[i] for i in subset) for subset, value in field.coefficients.items())


def log_potentials(field: RandomField, codes: np.ndarray) -> np.ndarray:
    """log Pr of records up to a constant."""
    return np.array([naive_log_potential(field, record) for record in np.asarray(codes).tolist()], dtype=float)


def pairwise_of(model: Ising) -> Pairwise:
    """The centred form of an Ising model: W_ij = A_ij [[1, -1], [-1, 1]], theta_i = (-theta_i, theta_i)."""
    signs = np.array([-1.0, 1.0])
    weights = {(i, j): model.weights[i, j] * np.outer(signs, signs) for i, j in model.edges()}
    return Pairwise(tuple(value * signs for value in model.fields), weights)
