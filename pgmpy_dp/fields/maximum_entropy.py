"""Random fields of maximum entropy from noisy mean moments, by which private learners of Markov random fields end.

Parities or interactions come in, and an Ising, a pairwise or a binary field goes out. The fit between is in
:mod:`pgmpy_dp.fields.sparse_moment_fit`, whose parameters are contrasts.

A field with the features f of its family (parities up to an order, or centred interactions of pairs) is the
maximum-entropy distribution with its mean features; they determine it. Given noisy means m of n records::

    minimise  A(theta) - theta . m + sum_I lambda_I |theta_I|        A: log-partition function, I: interactions

and again without penalty on the interactions that stayed. s_I = sqrt(noise_sd^2 + 1/n) sets the penalty, so nothing is
tuned to the records. A and its gradient are exact, by enumeration or on a junction tree, where that is small; elsewhere
the gradient comes from persistent Gibbs chains, with a fixed seed: a fit is a function of the released numbers.

Everything here is post-processing of a release. Any finite numbers have a fit: moments that no distribution has end
on the bound of the parameters.

References
----------
.. [1] Dudík, M., Phillips, S. J. and Schapire, R. E. (2004). Performance guarantees for regularized maximum entropy
   density estimation. COLT.
.. [2] Younes, L. (1988). Estimation and annealing for Gibbsian fields. Annales de l'IHP 24(2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import networkx as nx
import numpy as np

from pgmpy_dp.fields.contrasts import Contrasts
from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.fields.sparse_moment_fit import ContrastFit, fit_contrasts

_LARGEST = 8.0
"""Bound of each parameter where no width is passed: odds of e^16, which no count of records tells from certainty."""

Field = TypeVar("Field", Ising, Pairwise, BinaryField)


@dataclass(frozen=True)
class MomentFit(Generic[Field]):
    """A random field fitted to noisy moments, and how the fit ended.

    Attributes
    ----------
    model : Ising, Pairwise or BinaryField
    converged : bool
        Whether the last fit reproduced the moments of its support: to the tolerance of L-BFGS with exact inference,
        to one standard error in root mean square with Gibbs chains.
    status : str
        How it ended, in words, with the inference it depends on.
    n_iter : int
        Iterations of L-BFGS, or sweeps of the chains, in the last fit.
    method : {"enumeration", "junction tree", "gibbs"}
    bounded : bool
        Whether effects were scaled down to the public width.
    """

    model: Field
    converged: bool
    status: str
    n_iter: int
    method: str
    bounded: bool


def match_parities(
    moments: np.ndarray,
    n_variables: int,
    order: int,
    *,
    noise_sd: float | np.ndarray,
    n: float,
    graph: nx.Graph | Iterable[tuple[int, int]] | None = None,
    sparse: bool = True,
    width: float | None = None,
    subsets: Sequence[tuple[int, ...]] | None = None,
) -> MomentFit[BinaryField]:
    """The binary field of this order whose mean parities are the noisy ones.

    Parameters
    ----------
    moments : ndarray of shape (n_parities,)
        Noisy means of prod_{i in I} z_i, z in {-1, +1}, in the order of `field_scopes(n_variables, order)`. Numbers
        outside [-1, 1] are taken for the nearest end.
    n_variables : int
        p.
    order : int
        t, the size of the largest interactions.
    noise_sd : float or ndarray of shape (n_parities,)
        Standard deviation of the privacy noise of each mean: that of a noisy sum divided by n.
    n : float
        Number of records, public or noisy; below 1 it is taken as 1.
    graph : networkx.Graph over 0 .. p-1, or pairs, optional
        Public graph: only sets of variables that are cliques of it interact, and all of them stay, without penalty.
    sparse : bool
        Whether to look for the interactions that are not 0 (without a public graph); otherwise all stay.
    width : float, optional
        Public bound on max_i sum_{I with i} |c_I|.
    subsets : sequence of tuples of int, optional
        The sets, increasing and distinct, of 1 to `order` positions each, that `moments` are of, in their order; others
        do not interact. Default: `field_scopes(n_variables, order)`.

    Returns
    -------
    MomentFit
        ``model`` is a `BinaryField`.

    Raises
    ------
    ValueError
        If a shape or a public number does not fit.

    Examples
    --------
    >>> independent = match_parities(np.array([0.5, 0.0, 0.001]), 2, 2, noise_sd=0.001, n=10**6)
    >>> {subset: round(value, 3) for subset, value in independent.model.coefficients.items()}
    {(0,): 0.549}
    """
    if n_variables < 1 or order < 1:
        raise ValueError(f"n_variables and order must be positive, got {n_variables!r} and {order!r}")
    p, order = int(n_variables), min(int(order), int(n_variables))
    family = list(field_scopes(p, order) if subsets is None else subsets)
    for subset in family if subsets is not None else ():
        if not 1 <= len(subset) <= order or list(subset) != sorted(set(subset)) or not 0 <= subset[0] <= subset[-1] < p:
            raise ValueError(f"subsets must hold increasing positions below {p}, 1 to {order} each, got {subset!r}")
    if len(set(family)) != len(family):
        raise ValueError("subsets must be distinct; drop the repeated ones")
    moments = _checked("moments", moments, (len(family),))
    sds = np.broadcast_to(np.asarray(noise_sd, dtype=np.float64), (len(family),))
    for sd in set(sds.tolist()):
        _check_numbers(sd, width)
    effects = Contrasts((2,) * p, tuple(family))
    target = np.clip(moments, -1.0, 1.0)
    keep = _allowed(effects, graph)
    scale = np.array([_standard_error(sd, n) for sd in sds.tolist()])
    theta, fit, bounded = _fit(effects, target, scale, keep, sparse and graph is None, width)
    coefficients = {effects.scopes[i]: float(theta[i]) for i in np.flatnonzero(theta)}
    return _result(BinaryField(p, coefficients), fit, bounded)


def match_interactions(
    fields: Sequence[np.ndarray],
    pairs: Mapping[tuple[int, int], np.ndarray],
    *,
    field_noise_sd: Sequence[float] | float,
    pair_noise_sd: Mapping[tuple[int, int], float] | float,
    n: float,
    graph: nx.Graph | Iterable[tuple[int, int]] | None = None,
    sparse: bool = True,
    width: float | None = None,
) -> MomentFit[Pairwise]:
    """The pairwise field, over any alphabets, that has these noisy means of centred interactions.

    Parameters
    ----------
    fields : sequence of p ndarrays of shape (k_i,)
        Noisy means of k_i e_a - 1, with e_a the indicator of the state. What they have in the direction of the
        constant is noise, and is dropped.
    pairs : mapping of (i, j), i < j, to ndarray of shape (k_i, k_j)
        Noisy means of (k_i e_a - 1)(k_j e_b - 1)^T; what they have in their margins is dropped (so they need not be
        doubly centred). Pairs that are missing do not interact.
    field_noise_sd : float or sequence of p floats
        Standard deviation of the privacy noise of one entry of each of `fields`, before any centring.
    pair_noise_sd : float or mapping of (i, j) to float
        That of one entry of each of `pairs`.
    n, graph, sparse, width
        As for `match_parities`; the penalty is on the Frobenius norm of each interaction, and the width is
        max_{i,a} sum_j max_b |W_ij(a, b)| + |theta_i(a)|.

    Returns
    -------
    MomentFit
        ``model`` is a centred `Pairwise`.

    Raises
    ------
    ValueError
        If a shape or a public number does not fit.

    Examples
    --------
    >>> joint = np.array([[0.4, 0.1, 0.1], [0.1, 0.2, 0.1]])  # independent but for the first cell
    >>> fields = [2 * joint.sum(axis=1) - 1, 3 * joint.sum(axis=0) - 1]
    >>> centred = 6 * joint - 3 * joint.sum(axis=0) - 2 * joint.sum(axis=1)[:, None] + 1
    >>> fit = match_interactions(fields, {(0, 1): centred}, field_noise_sd=0, pair_noise_sd=0, n=10**9)
    >>> table = fit.model.to_log_linear().marginal([0, 1])
    >>> bool(np.abs(table - joint).max() < 1e-4)
    True
    """
    cardinalities = tuple(len(field) for field in fields)
    if 0 in cardinalities:
        raise ValueError(f"fields must have one state or more each, got the lengths {cardinalities}")
    for i, j in pairs:
        if not 0 <= i < j < len(cardinalities):
            raise ValueError(f"pairs must be given for i < j below {len(cardinalities)}, got {(i, j)!r}")
    p = len(cardinalities)
    field_sds = np.broadcast_to(np.asarray(field_noise_sd, dtype=np.float64), (p,))
    # Name, table and noise of each scope; a variable of one state has no effects.
    moments: dict[tuple[int, ...], tuple[str, np.ndarray, float]] = {}
    for i in range(p):
        moments[(i,)] = f"fields[{i}]", fields[i], float(field_sds[i])
    for i, j in sorted(pairs):
        sd = pair_noise_sd[i, j] if isinstance(pair_noise_sd, Mapping) else pair_noise_sd
        moments[i, j] = f"pairs[{i}, {j}]", pairs[i, j], sd
    effects = Contrasts(cardinalities, tuple(s for s in moments if all(cardinalities[i] > 1 for i in s)))
    target, scale = [], []
    for scope in effects.scopes:
        name, table, sd = moments[scope]
        _check_numbers(sd, width)
        shape = tuple(cardinalities[i] for i in scope)
        target.append(effects.mean_features(_checked(name, table, shape), scope))
        # A column of the contrasts has squared norm k; divided by k it takes noise of variance v to v/k.
        scale.append(_standard_error(sd / math.sqrt(math.prod(shape)), n))
    largest = effects.spread(_largest_features(effects))
    theta, fit, bounded = _fit(
        effects,
        np.clip(np.concatenate(target), -largest, largest) if target else np.empty(0),
        np.array(scale),
        _allowed(effects, graph),
        sparse and graph is None,
        width,
    )
    tables = {effects.scopes[i]: effects.table(theta, i) for i in np.flatnonzero(effects.norms(theta)).tolist()}
    model = Pairwise(
        tuple(tables.get((i,), np.zeros(k)) for i, k in enumerate(cardinalities)),
        {(scope[0], scope[1]): table for scope, table in tables.items() if len(scope) == 2},
    )
    return _result(model, fit, bounded)


def _fit(
    effects: Contrasts, target: np.ndarray, scale: np.ndarray, keep: np.ndarray, sparse: bool, width: float | None
) -> tuple[np.ndarray, ContrastFit, bool]:
    chosen, where = effects.restricted(keep)
    # No entry of an interaction in contrasts exceeds the largest entry of its table, nor that the width.
    bound = _LARGEST if width is None else min(_LARGEST, width)
    fit = fit_contrasts(chosen, target[where], scale[keep], sparse=sparse, bound=bound)
    theta = np.zeros(effects.n_parameters)
    theta[where] = fit.theta
    if width is None:
        return theta, fit, False
    factor = _factors_to_width(effects, theta, width)
    return theta * effects.spread(factor), fit, bool((factor < 1).any())


def _factors_to_width(effects: Contrasts, theta: np.ndarray, width: float) -> np.ndarray:
    """The factor in [0, 1] of each scope with which no variable exceeds the width.

    The tables on a variable that exceeds it lose the same amount of their largest entries, at most all: of binary
    variables this is the projection on the l1 ball. So weak interactions, which are noise more often, go first. A table
    on several such variables loses the most that one of them asks for.
    """
    on: list[list[tuple[int, np.ndarray]]] = [[] for _ in effects.cardinalities]
    for s in np.flatnonzero(effects.norms(theta)).tolist():
        scope = effects.scopes[s]
        if all(effects.cardinalities[i] == 2 for i in scope):  # then all entries are as large
            for i in scope:
                on[i].append((s, np.full(2, abs(float(theta[effects.starts[s]])))))
            continue
        table = np.abs(effects.table(theta, s))
        for axis, i in enumerate(scope):
            on[i].append((s, np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1).max(axis=1)))
    factor = np.ones(len(effects.scopes))
    for scopes in (scopes for scopes in on if scopes):
        places = [s for s, _ in scopes]
        at_state = np.array([entries for _, entries in scopes])
        factor[places] = np.minimum(factor[places], _shortened(at_state, width * (1 - 1e-12)))  # also after rounding
    return factor


def _shortened(at_state: np.ndarray, width: float) -> np.ndarray:
    """Factors for tables, by their largest entries at each state, shape (tables, states), that sum to the width."""
    largest = at_state.max(axis=1)
    low, high = 0.0, float(largest.max())

    def factors(amount: float) -> np.ndarray:
        return np.maximum(0.0, 1.0 - amount / largest)

    if float(at_state.sum(axis=0).max()) <= width:
        return np.ones(len(largest))
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = float((factors(middle) @ at_state).max()) <= width
        low, high = (low, middle) if fits else (middle, high)
    return factors(high)


def _largest_features(effects: Contrasts) -> np.ndarray:
    """Largest absolute value of a feature of each scope."""
    each = [float(np.abs(basis).max(initial=0.0)) for basis in effects.bases]
    return np.array([math.prod(each[i] for i in scope) for scope in effects.scopes])


def _allowed(effects: Contrasts, graph: nx.Graph | Iterable[tuple[int, int]] | None) -> np.ndarray:
    """A mask of the scopes that are cliques of the graph."""
    if graph is None:
        return np.ones(len(effects.scopes), dtype=bool)
    pairs: Iterable[tuple[Hashable, Hashable]] = graph.edges() if isinstance(graph, nx.Graph) else graph
    known = range(len(effects.cardinalities))
    edges = set()
    for u, v in pairs:
        if u not in known or v not in known or u == v:
            raise ValueError(f"graph must have edges between distinct positions 0 to {len(known) - 1}, got {(u, v)!r}")
        edges |= {(u, v), (v, u)}
    return np.array([all(pair in edges for pair in itertools.combinations(s, 2)) for s in effects.scopes], dtype=bool)


def _standard_error(noise_sd: float, n: float) -> float:
    return math.sqrt(noise_sd**2 + 1.0 / max(1.0, float(n)))


def _checked(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def _check_numbers(noise_sd: float, width: float | None) -> None:
    if not (math.isfinite(noise_sd) and noise_sd >= 0):
        raise ValueError(f"noise_sd must be a finite number, 0 or more, got {noise_sd!r}")
    if width is not None and not (math.isfinite(width) and width > 0):
        raise ValueError(f"width must be positive and finite, or None, got {width!r}")


def _result(model: Field, fit: ContrastFit, bounded: bool) -> MomentFit[Field]:
    status = f"{fit.method}: {fit.status}" + ("; scaled down to the public width" if bounded else "")
    return MomentFit(model, fit.converged, status, fit.n_iter, fit.method, bounded)
