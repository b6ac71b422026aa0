"""Scales of noise by closed formulas, written down a second time: what replay holds the curator's own ones to.

The table has, for each operator and adjacency, how far its exact statistics can move. It says again what the operators'
docstrings prove; it imports no sensitivity and no scale from the boundary.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from pgmpy_dp.private.curator.base import Request
from pgmpy_dp.private.guarantee import ZCDP

__all__ = ["SENSITIVITIES", "stated_scales"]

SENSITIVITIES = {
    # operator: adjacency: (l1, squared l2) of one table, or (linf,) of scores
    "tables": {"add_remove": (1, 1), "replace_one": (2, 2)},
    "worst_fit": {"add_remove": (1,), "replace_one": (2,)},
    "worst_parity": {"add_remove": (1,), "replace_one": (2,)},
    # a record that is replaced can enter or leave the schema
    "record_count": {"add_remove": (1, 1), "replace_one": (1, 1)},
}

_ROUNDING = 1e-9  # scales are rounded up by less


def stated_scales(request: Request) -> list[str]:
    """What is wrong with a request's noise: nothing, if its scales are those of the table.

    Parameters
    ----------
    request : Request

    Returns
    -------
    list of str
    """
    check = _CHECKS.get(request.operator)
    if check is None:
        return [f"{request.operator}: no formula of its scale is written down in pgmpy_dp.auditing.scales"]
    wanted, got = check(request)
    if len(wanted) == len(got) and np.allclose(wanted, got, rtol=_ROUNDING, atol=0.0):
        return []
    return [f"{request.operator}: noise of scale {got} where the formula has {wanted}"]


def _tables(request: Request) -> tuple[list[float], list[float]]:
    mechanism = request.mechanism
    l1, square = SENSITIVITIES["tables"][str(mechanism.exact[0].adjacency)]
    count = len(request.arguments["scopes"])
    weights = np.ones(count) if request.arguments["weights"] is None else np.array(request.arguments["weights"], float)
    shares = float(request.share) * weights / weights.sum()
    if isinstance(request.cost, ZCDP):
        wanted = np.sqrt(square / (2.0 * shares * request.cost.rho))
    else:
        wanted = l1 / (shares * request.cost.epsilon)
    return np.maximum(wanted, 1e-3).tolist(), [noise.scale for noise in mechanism.noise]


def _selection(request: Request) -> tuple[list[float], list[float]]:
    (linf,) = SENSITIVITIES[request.operator][str(request.mechanism.exact.adjacency)]
    share = float(request.share)
    if isinstance(request.cost, ZCDP):
        return [linf / math.sqrt(2.0 * share * request.cost.rho)], [request.mechanism.scale]
    return [2.0 * linf / (share * request.cost.epsilon)], [request.mechanism.scale]


def _additive(request: Request, norms: list[tuple[float, float]], shares: np.ndarray) -> tuple[list, list]:
    """Of arrays with these l1 and squared l2 norms, each for its part of the share."""
    wanted = []
    for (l1, square), part in zip(norms, float(request.share) * shares / shares.sum(), strict=True):
        rho = part * request.cost.rho if isinstance(request.cost, ZCDP) else None
        wanted.append(l1 / (part * request.cost.epsilon) if rho is None else math.sqrt(square / (2.0 * rho)))
    return np.maximum(wanted, 1e-3).tolist(), [noise.scale for noise in request.mechanism.noise]


def _record_count(request: Request) -> tuple[list[float], list[float]]:
    return _additive(request, [SENSITIVITIES["record_count"][str(request.curator.adjacency)]], np.ones(1))


def _parity_sums(request: Request) -> tuple[list[float], list[float]]:
    """Over all sets of variables that one replacement can change; of many variables, for sums of all parities alone."""
    family, p = request.arguments["family"], len(request.curator.schema)
    if isinstance(family, int):
        # A change of d variables flips the sets that hold an odd number of them: by how many they hold, r of size.
        m = sum(math.comb(p, size) for size in range(1, family + 1))
        odd = [(size, r) for size in range(1, family + 1) for r in range(1, size + 1, 2)]
        flips = [sum(math.comb(d, r) * math.comb(p - d, size - r) for size, r in odd) for d in range(p + 1)]
    elif p <= 16:
        m, masks = len(family), np.array([sum(1 << j for j in subset) for subset in family])
        flips = (np.bitwise_count(np.arange(1 << p)[:, None] & masks) % 2).sum(axis=1)
    else:
        return [math.nan], [request.mechanism.noise[0].scale]
    m += request.arguments["with_count"]
    square, l1 = m, m
    if str(request.curator.adjacency) == "replace_one":
        square, l1 = max(4 * max(flips), m), max(2 * max(flips), m)
    wanted, got = _additive(request, [(l1, square)], np.ones(1))
    return wanted * len(got), got


def _interaction_sums(request: Request) -> tuple[list[float], list[float]]:
    """With A = 1 - 1/k, in units of L; replacements by the number or the set of variables that they change."""
    schema, pairs, with_count = request.curator.schema, request.arguments["pairs"], request.arguments["with_count"]
    sizes = [schema.cardinality(name) for name in schema.variables]
    p, unit = len(sizes), min(math.lcm(*sizes), 4096)
    largest = max(max(1, unit // k) * k for k in sizes)
    a = [1.0 - 1.0 / k for k in sizes]
    every = list(itertools.combinations(range(p), 2))
    products = _products(a, every if pairs is None else pairs)
    norms = [(2.0 * sum(a), sum(a)), (4.0 * products, products), (1.0, 1.0)][: 2 + with_count]
    if str(request.curator.adjacency) == "replace_one":
        able = [i for i in range(p) if sizes[i] > 1]
        # Both change, one changes: squared norms of a pair; the worst set of variables is found by trying all of them.
        square = max(
            sum(
                2.0 * (a[i] + a[j] - 1.0) if {i, j} <= chosen else 2.0 * (a[j] if i in chosen else a[i])
                for i, j in every
                if chosen & {i, j}
            )
            for size in range(len(able) + 1)
            for chosen in map(set, itertools.combinations(able, size))
        )
        values = sorted(a[i] for i in able)
        spread = values[-1] - values[0] if values else 0.0
        l1 = max(
            4 * s * sum(a) + (2 * s - 6) * sum(values[:s] if s < 3 else values[-s:]) - (3 - spread) * s * (s - 1)
            for s in range(len(able) + 1)
        )
        l1, square = max(l1, 4.0 * _products(a, every)), max(square, _products(a, every))
        if pairs is not None:
            both = [(max(a[i], a[j]), min(a[i], a[j])) for i, j in pairs if a[i] and a[j]]
            some = sum(max(4 * x, 8 * x + 4 * y - 6) for x, y in both), sum(2 * x for x, _ in both)
            l1, square = min(l1, max(some[0], 4 * products)), min(square, max(some[1], products))
        norms[:2] = [(2.0 * len(able), 2.0 * len(able)), (l1, square)]
    norms[:2] = [(l1 * f, square * f * f) for (l1, square), f in zip(norms, (largest, largest**2), strict=False)]
    tables = np.array([p, max(1, len(every if pairs is None else pairs)), 1.0][: 2 + with_count])
    return _additive(request, norms, tables)


def _products(a: list[float], pairs: list[tuple[int, int]]) -> float:
    return sum(a[i] * a[j] for i, j in pairs)


_CHECKS = {
    "tables": _tables,
    "worst_fit": _selection,
    "worst_parity": _selection,
    "record_count": _record_count,
    "parity_sums": _parity_sums,
    "interaction_sums": _interaction_sums,
}
