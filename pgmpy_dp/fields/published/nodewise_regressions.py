"""From nodewise logistic regressions to a random field: the steps after the regressions in Algorithms 2 to 5 of [1]_.

In each field the log-odds of a variable given the others are linear in features of the others, with coefficients that
are twice (binary variables), or differences of, the parameters of the field. Each parameter so appears in the
regressions of several nodes. The estimates are averaged, and their distance is returned as a diagnostic: where it is
far above the error that is expected of one regression, some of them are bad (radius too small, too few iterations, too
much noise). All of it is post-processing.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
   Algorithms 2 (Ising), 3 (pairwise), 4 and 5 (binary t-wise); Lemmas 3.7, 3.10 and 4.1.
.. [2] Klivans, A. and Meka, R. (2017). Learning graphical models using multiplicative weights. FOCS. Section 7.
.. [3] Wu, S., Sanghavi, S. and Dimakis, A. G. (2019). Sparse logistic regression learns all discrete pairwise
   graphical models. NeurIPS. Algorithm 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from pgmpy_dp.fields.frank_wolfe import RegressionLayout
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise, RandomField, by_pair


def field_from_regressions(
    layout: RegressionLayout,
    weights: np.ndarray,
    order: int = 2,
    parity_means: Mapping[tuple[int, ...], float] | None = None,
) -> tuple[RandomField, np.ndarray]:
    """Field from the regressions of a layout (Algorithms 2 to 5); those that a graph has none of count as zeros.

    Parameters
    ----------
    layout : RegressionLayout
    weights : ndarray of shape (n_regressions, n_columns)
    order : int
        Of a "binary" layout.
    parity_means : mapping, optional
        For "binary" layouts, see :func:`binary_field_from_regressions`.

    Returns
    -------
    field : Ising, Pairwise or BinaryField
    disagreement : ndarray of shape (p, p)
    """
    sizes, p = layout.cardinalities, len(layout.cardinalities)
    if layout.family == "ising":
        square = np.zeros((p, p))
        square[layout.nodes] = weights
        return ising_from_regressions(square)
    if layout.family == "pairwise":
        row = {label: r for r, label in enumerate(state_pairs(sizes))}
        labels = zip(layout.nodes.tolist(), *layout.pairs.T.tolist(), strict=True)
        whole = np.zeros((len(row), weights.shape[1]))
        whole[[row[label] for label in labels]] = weights
        return pairwise_from_regressions(sizes, whole[:, :-1], whole[:, -1])
    column = {monomial: c for c, monomial in enumerate(layout.features)}
    whole = np.zeros((p, len(node_monomials(p, order, 0))))
    for r, i in enumerate(layout.nodes.tolist()):
        whole[i] = weights[r, [column[monomial] for monomial in node_monomials(p, order, i)]]
    field, apart = binary_field_from_regressions(whole, order, parity_means)
    return field, by_pair(p, apart)


def ising_from_regressions(weights: np.ndarray) -> tuple[Ising, np.ndarray]:
    """Ising model from one regression for each node (Algorithm 2).

    By Lemma 3.7 Pr(z_i = 1 | the others) = sigma(2 sum_j A_ij z_j + 2 theta_i), so A_ij is half of the coefficient of
    z_j in the regression of z_i, and of that of z_i in the regression of z_j: their mean is taken.

    Parameters
    ----------
    weights : ndarray of shape (p, p)
        Row i holds the coefficients of the regression of z_i: column j that of z_j, column i the constant.

    Returns
    -------
    model : Ising
    disagreement : ndarray of shape (p, p)
        Distance between the two estimates of A_ij; symmetric, 0 on the diagonal.

    Raises
    ------
    ValueError
        If the shape is not square, or a coefficient is not finite.

    Examples
    --------
    >>> model, disagreement = ising_from_regressions(np.array([[0.2, 1.0], [0.6, 0.0]]))
    >>> model.weights[0, 1], model.fields, disagreement[0, 1]
    (np.float64(0.4), array([0.1, 0. ]), np.float64(0.2))
    """
    weights = _finite(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"weights must have shape (p, p), one regression for each node, got {weights.shape}")
    half = weights / 2
    fields = np.diagonal(half).copy()
    np.fill_diagonal(half, 0.0)
    return Ising((half + half.T) / 2, fields), np.abs(half - half.T)


def state_pairs(cardinalities: Sequence[int]) -> list[tuple[int, int, int]]:
    """The regressions of a pairwise model: (node, u, v) for each node and each u < v of its states, in this order.

    Examples
    --------
    >>> state_pairs((2, 3))
    [(0, 0, 1), (1, 0, 1), (1, 0, 2), (1, 1, 2)]
    """
    return [(i, u, v) for i, k in enumerate(cardinalities) for u, v in itertools.combinations(range(k), 2)]


def pairwise_from_regressions(
    cardinalities: Sequence[int], weights: np.ndarray, constants: np.ndarray
) -> tuple[Pairwise, np.ndarray]:
    """Pairwise model from one regression for each node and each pair of its states (Algorithm 3).

    By Lemma 3.10, given that x_i is u or v,

        Pr(x_i = u | the others) = sigma(sum_j W_ij(u, x_j) - W_ij(v, x_j) + theta_i(u) - theta_i(v)).

    The coefficients of the one-hot features of x_j are determined up to a shift, which is moved into the constant:
    this gives U_uv(j, .), and U_vu = -U_uv. As W_ij is centred, W_ij(u, .) = (1 / k_i) sum_v U_uv(j, .), and likewise
    for theta_i; the mean of W_ij and the transpose of W_ji is taken.

    Parameters
    ----------
    cardinalities : sequence of p ints
        Numbers of states k_i.
    weights : ndarray of shape (n_regressions, sum of k_i)
        One row for each of ``state_pairs(cardinalities)``, with label +1 for u and -1 for v; columns are the one-hot
        features of all variables in order. Those of the node itself are ignored.
    constants : ndarray of shape (n_regressions,)
        Coefficient of the feature that is always 1.

    Returns
    -------
    model : Pairwise
        Centred.
    disagreement : ndarray of shape (p, p)
        Largest distance between an entry of W_ij and of the transpose of W_ji; symmetric, 0 on the diagonal.

    Raises
    ------
    ValueError
        If a shape does not fit, or a coefficient is not finite.

    Examples
    --------
    >>> weights = np.array([[0, 0, 1.0, -1.0], [0.5, -0.5, 0, 0]])  # two binary variables: see Ising
    >>> model, disagreement = pairwise_from_regressions((2, 2), weights, np.zeros(2))
    >>> model.weights[0, 1]
    array([[ 0.375, -0.375],
           [-0.375,  0.375]])
    """
    sizes = [int(k) for k in cardinalities]
    p, regressions = len(sizes), state_pairs(sizes)
    weights, constants = _finite(weights), _finite(constants, "constants")
    if weights.shape != (len(regressions), sum(sizes)) or constants.shape != (len(regressions),):
        raise ValueError(
            f"weights must have shape {(len(regressions), sum(sizes))} and constants {(len(regressions),)}, one row "
            f"for each of state_pairs(cardinalities); got {weights.shape} and {constants.shape}"
        )
    ends = np.cumsum([0, *sizes])
    block = [slice(int(ends[j]), int(ends[j + 1])) for j in range(p)]
    tables = np.zeros((p, max(sizes, default=0), sum(sizes)))  # W_ij(u, .) at [i, u, block[j]]
    fields = [np.zeros(k) for k in sizes]
    for (i, u, v), row, constant in zip(regressions, weights, constants, strict=True):
        centred = row.copy()
        for j in range(p):
            shift = 0.0 if i == j else row[block[j]].mean()
            centred[block[j]] = 0.0 if i == j else row[block[j]] - shift
            constant = constant + shift
        for state, sign in ((u, 1.0), (v, -1.0)):
            tables[i, state] += sign * centred / sizes[i]
            fields[i][state] += sign * constant / sizes[i]
    means, disagreement = {}, np.zeros((p, p))
    for i, j in itertools.combinations(range(p), 2):
        here, there = tables[i, : sizes[i], block[j]], tables[j, : sizes[j], block[i]].T
        means[i, j] = (here + there) / 2
        disagreement[i, j] = disagreement[j, i] = np.abs(here - there).max()
    return Pairwise(tuple(fields), means), disagreement


def node_monomials(p: int, order: int, node: int) -> list[tuple[int, ...]]:
    """Features of the regression of a node in a field of this order: () for the constant, then monomials of the others.

    Sets of at most ``order - 1`` of the positions other than `node`, by size, each size in lexicographic order.

    Examples
    --------
    >>> node_monomials(4, 3, 1)
    [(), (0,), (2,), (3,), (0, 2), (0, 3), (2, 3)]
    """
    others = [j for j in range(p) if j != node]
    return [subset for size in range(order) for subset in itertools.combinations(others, size)]


def binary_field_from_regressions(
    weights: np.ndarray,
    order: int,
    parity_means: Mapping[tuple[int, ...], float] | None = None,
) -> tuple[BinaryField, dict[tuple[int, ...], float]]:
    """Binary t-wise field from one regression for each node (Algorithms 4 and 5).

    By Lemma 4.1 Pr(z_i = 1 | the others) = sigma(2 d_i h(z)), so the polynomial v_i with half of the coefficients of
    the regression of z_i is an estimate of d_i h, whose coefficient of I is c_{I + i}. Two ways lead from there to h:

    * l1 objective (Algorithm 4, `parity_means` None): c_{I + i} is the coefficient v_i(I);
    * l-infinity objective (Algorithm 5): it is the mean of the derivative d_I v_i over the distribution,

          u(I + i) = sum_{J containing I} v_i(J) Q(J - I),        Q(I) the mean of prod_{j in I} z_j, Q(empty) = 1,

      which is less sensitive to errors of single coefficients. It estimates c of the *maximal* monomials of h; of a
      monomial inside another one it is the mean of a derivative that still depends on z, not its coefficient.

    Parameters
    ----------
    weights : ndarray of shape (p, q)
        Row i holds the coefficients of the regression of z_i on ``node_monomials(p, order, i)``.
    order : int
        t, the largest number of variables in a monomial of the field.
    parity_means : mapping of sorted positions to float, optional
        Estimates of Q for all sets of 1 to ``order - 1`` positions (more are ignored).

    Returns
    -------
    field : BinaryField
    disagreement : dict of sorted positions to float
        For each I of two or more positions, the largest less the smallest of its estimates.

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite, or the parity mean that a coefficient other than 0 needs is
        missing.

    Examples
    --------
    >>> field, disagreement = binary_field_from_regressions(np.array([[0.2, 1.0], [0.0, 0.6]]), order=2)
    >>> field.coefficients
    {(0,): 0.1, (0, 1): 0.4}
    """
    weights = _finite(weights)
    if order < 1:
        raise ValueError(f"order={order!r} must be at least 1")
    p = len(weights)
    q = len(node_monomials(p, order, 0)) if p else 0
    if weights.ndim != 2 or weights.shape[1] != q:
        raise ValueError(
            f"weights must have shape ({p}, {q}) for {p} nodes and order={order}, a column for each of node_monomials; "
            f"got {weights.shape}"
        )
    estimates: dict[tuple[int, ...], list[float]] = {}
    for i in range(p):
        derivative = dict(zip(node_monomials(p, order, i), (weights[i] / 2).tolist(), strict=True))
        if parity_means is not None:
            derivative = _mean_derivatives(derivative, parity_means)
        for rest, value in derivative.items():
            estimates.setdefault(tuple(sorted((i, *rest))), []).append(value)
    coefficients = {s: float(np.mean(values)) for s, values in estimates.items()}
    disagreement = {s: max(values) - min(values) for s, values in estimates.items() if len(s) > 1}
    return BinaryField(p, coefficients), disagreement


def _mean_derivatives(
    polynomial: Mapping[tuple[int, ...], float], parity_means: Mapping[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
    """sum_{J containing I} v(J) Q(J - I) for each monomial I of v."""
    total = dict.fromkeys(polynomial, 0.0)
    for subset, value in polynomial.items():
        if not value:  # its means, which a public graph may have left out, do not matter
            continue
        for size in range(len(subset) + 1):
            for inside in itertools.combinations(subset, size):
                outside = tuple(j for j in subset if j not in inside)
                if outside and outside not in parity_means:
                    raise ValueError(f"parity_means lacks the mean of the parity of positions {outside}")
                total[inside] += value * (parity_means[outside] if outside else 1.0)
    return total


def _finite(values: np.ndarray, name: str = "weights") -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array
