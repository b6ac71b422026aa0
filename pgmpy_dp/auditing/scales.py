"""Scales of noise by closed formulas, written down a second time: what replay holds the curator's own ones to.

The table has, for each operator and adjacency, how far its exact statistics can move. It says again what the operators'
docstrings prove; it imports no sensitivity and no scale from the boundary.
:mod:`pgmpy_dp.auditing.matrix_scales` has the rest of it, matrices and optima.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from pgmpy_dp.auditing import matrix_scales
from pgmpy_dp.auditing.matrix_scales import GRID
from pgmpy_dp.private import accounting
from pgmpy_dp.private.curator.observer import Request
from pgmpy_dp.private.guarantee import ZCDP, PureDP

SENSITIVITIES: dict[str, dict[str, Any]] = {
    # operator: adjacency: (l1, squared l2) of one table, or (linf,) of scores
    "tables": {"add_remove": (1, 1), "replace_one": (2, 2)},
    "grouped_tables": {"add_remove": (1, 1), "replace_one": (2, 2)},
    "worst_fit": {"add_remove": (1,), "replace_one": (2,)},
    # of one count of records that match, l1 and squared l2
    "matched_counts": {"add_remove": (1, 1), "replace_one": (1, 1)},
    # of one mean of distances of tables from a model's, l1 and squared l2
    "distances": {"add_remove": (1, 1), "replace_one": (1, 1)},
    # of one measure of how far tables are from a model's, l1 and squared l2
    "model_errors": {"add_remove": (1, 1), "replace_one": (1, 1)},
    # of one vote of each block: what counts move by for each edge of the two graphs, and the distance of the mode
    "edge_votes": {"add_remove": (1, 1), "replace_one": (1, 1)},
    "agreed_graph": {"add_remove": (1,), "replace_one": (1,)},
    # of one table of beginnings or n-grams, over the most that one user adds
    "ngram_tables": {"add_remove": (1, 1), "replace_one": (2, 2)},
    # l1 and squared l2 of a distance, a total and an effective number together, over the share of a user
    "order_departure": {"add_remove": (3, 3), "replace_one": (3, 5)},
    "count": {"add_remove": (1, 1)},
    # l2 over the clip norm
    "step": {"add_remove": (1,), "replace_one": (2,)},
    "worst_parity": {"add_remove": (1,), "replace_one": (2,)},
    # counts that one block moves, each by 1, over its marks
    "stable_cells": {"add_remove": (2,), "replace_one": (2,)},
    "stable_scales": {"add_remove": (2,), "replace_one": (2,)},
    # counts that one record moves, each by 1, over its marks
    "stable_categories": {"add_remove": (1,), "replace_one": (2,)},
    # l1 and squared l2 of one table, and of the number of records, which replace_one makes public
    "number_tables": {"add_remove": (1, 1), "replace_one": (2, 2)},
    # in octaves
    "mean_log_scale": {"add_remove": (2, 4), "replace_one": (2, 4)},
    # w, and the squared distance in counts / (1/w) and sums / clip norm
    "cluster_sums": {"add_remove": (0.5, 1.25), "replace_one": (1, 4)},
    # squared l2 of second moments over the squared clip norm
    "cluster_moments": {"add_remove": (1,), "replace_one": (2,)},
    "edge_count": {"edge": (1, 1)},
    "neighbour_sums": {"edge": (2, 2)},
    # a record that is replaced can enter or leave the schema
    "record_count": {"add_remove": (1, 1), "replace_one": (1, 1)},
    "unit_count": {"add_remove": (1, 1)},
    # vectors of l2 norm at most 2**15: how many of them change
    "clipped_sum": {"add_remove": (1,), "replace_one": (2,)},
    # vectors of l1 norm at most a bound of the question, and l2 norm at most 2**15: how many of them change
    "score_sums": {"add_remove": (1,), "replace_one": (2,)},
    # l1 and squared l2 of one column's numbers of records by size
    "magnitudes": {"add_remove": (1, 1), "replace_one": (2, 2)},
    # of a score of a pair; l1 and squared l2 of one sum of products of signs
    "strongest_pairs": {"add_remove": (1,), "replace_one": (2,)},
    "pair_signs": {"add_remove": (1, 1), "replace_one": (2, 4)},
}

_SHARE_GRID = 2**20  # integers in one user's share of a table of pairs

_ROUNDING = 1e-9  # scales are rounded up by less


def stated_scales(request: Request) -> list[str]:
    """Return what is wrong with a request's noise: nothing, if its scales are those of the table.

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
    wanted, got = check(replace(request, cost=_of_a_record(request)))
    if len(wanted) == len(got) and np.allclose(wanted, got, rtol=_ROUNDING, atol=0.0):
        return []
    return [f"{request.operator}: noise of scale {got} where the formula has {wanted}"]


def _of_a_record(request: Request) -> Any:
    """Scales for units of m records: these move sums and scores m times as far, for which rho costs the square."""
    cost, m = request.cost, request.rows
    if m == 1:
        return cost
    return ZCDP(cost.rho / m**2) if isinstance(cost, ZCDP) else PureDP(cost.epsilon / m)


def _parts(request: Request, scale: float) -> int:
    """Return into how many parts records are divided in scores if they count by shares, with noise up to 2**48."""
    parts = _SHARE_GRID if getattr(request.curator._data, "rows_per_unit", 1) == "shares" else 1
    while parts > 1 and parts * scale > 2.0**48:
        parts //= 2
    return parts


def _tables(request: Request) -> tuple[list[float], list[float]]:
    mechanism = request.mechanism
    l1, square = SENSITIVITIES[request.operator][str(request.curator.adjacency)]
    count, weights = len(request.arguments["scopes"]), request.arguments.get("weights")
    weights = np.ones(count) if weights is None else np.array(weights, float)
    shares = float(request.share) * weights / weights.sum()
    if isinstance(request.cost, ZCDP):
        wanted = np.sqrt(square / (2.0 * shares * request.cost.rho))
    else:
        wanted = l1 / (shares * request.cost.epsilon)
    return np.maximum(wanted, 1e-3).tolist(), [noise.scale for noise in mechanism.noise]


def _selection(request: Request) -> tuple[list[float], list[float]]:
    (linf,) = SENSITIVITIES[request.operator][str(request.curator.adjacency)]
    share = float(request.share)
    if isinstance(request.cost, ZCDP):
        scale = linf / math.sqrt(2.0 * share * request.cost.rho)
    else:
        scale = 2.0 * linf / (share * request.cost.epsilon)
    return [_parts(request, scale) * scale], [request.mechanism.scale]


def _edge_votes(request: Request) -> tuple[list[float], list[float]]:
    mechanism: Any = request.mechanism
    curator: Any = request.curator
    l1, square = SENSITIVITIES["edge_votes"][str(curator.adjacency)]
    p = len(curator.facts.schema)
    changed = min(2 * request.arguments["max_edges"], p * (p - 1) // 2)
    if isinstance(request.cost, ZCDP):
        wanted = math.sqrt(changed * square / (2.0 * float(request.share) * request.cost.rho))
    else:
        wanted = changed * l1 / (float(request.share) * request.cost.epsilon)
    return [max(wanted, 1e-3)], [noise.scale for noise in mechanism.noise]


def _agreed_graph(request: Request) -> tuple[list[float], list[float]]:
    """Scale of the distance's noise, and threshold."""
    (distance,) = SENSITIVITIES["agreed_graph"][str(request.curator.adjacency)]
    mechanism: Any = request.mechanism
    share, cost, test = float(request.share), request.cost, mechanism.test
    epsilon = math.sqrt(2.0 * share * cost.rho) if isinstance(cost, ZCDP) else share * cost.epsilon
    threshold = math.floor(distance * math.log(1.0 / float(request.eta)) / epsilon) + 1
    return [max(distance / epsilon, 1e-3), threshold], [test.scale, test.threshold]


def _ngram_tables(request: Request) -> tuple[list[float], list[float]]:
    l1, square = SENSITIVITIES["ngram_tables"][str(request.curator.adjacency)]
    length, segments = request.arguments["segment_length"], request.arguments["max_segments"]
    norms = []
    for n in request.arguments["lengths"]:
        most = _SHARE_GRID if segments is None else segments * (1 if n == 1 else length - (n - 1))
        norms.append((l1 * most, square * most**2))
    weights = request.arguments["weights"]
    return _additive(request, norms, np.ones(len(norms)) if weights is None else np.array(weights, float))


def _order_departure(request: Request) -> tuple[list[float], list[float]]:
    l1, square = SENSITIVITIES["order_departure"][str(request.curator.adjacency)]
    return _additive(request, [(l1 * _SHARE_GRID, square * _SHARE_GRID**2)], np.ones(1))


def _additive(request: Request, norms: list[tuple[float, float]], shares: np.ndarray) -> tuple[list, list]:
    """Scales for arrays with these l1 and squared l2 norms, each for its part of the share."""
    wanted = []
    for (l1, square), part in zip(norms, float(request.share) * shares / shares.sum(), strict=True):
        rho = part * request.cost.rho if isinstance(request.cost, ZCDP) else None
        wanted.append(l1 / (part * request.cost.epsilon) if rho is None else math.sqrt(square / (2.0 * rho)))
    return np.maximum(wanted, 1e-3).tolist(), [noise.scale for noise in request.mechanism.noise]


def _one_array(request: Request) -> tuple[list[float], list[float]]:
    return _additive(request, [SENSITIVITIES[request.operator][str(request.curator.adjacency)]], np.ones(1))


def _matched_counts(request: Request) -> tuple[list[float], list[float]]:
    """A record that matches changes the counts of all and of each column; in the place of a blank one, both of each."""
    curator: Any = request.curator
    replaces = str(curator.adjacency) == "replace_one"
    m = 1 + len(curator.facts.schema) * (1 + replaces) + (curator.facts.n_records is None)
    l1, square = SENSITIVITIES["matched_counts"][str(curator.adjacency)]
    return _additive(request, [(m * l1, m * square)], np.ones(1))


def _distances(request: Request) -> tuple[list[float], list[float]]:
    """A record in a cell that the model thinks impossible, in every table, changes all means."""
    weights = request.arguments["weights"]
    m = len(request.arguments["scopes"] if weights is None else weights)
    l1, square = SENSITIVITIES["distances"][str(request.curator.adjacency)]
    return _additive(request, [(m * l1, m * square)], np.ones(1))


def _model_errors(request: Request) -> tuple[list[float], list[float]]:
    """A record in a cell that the model thinks impossible, of value 1, changes all measures."""
    m = len(request.arguments["measures"])
    l1, square = SENSITIVITIES["model_errors"][str(request.curator.adjacency)]
    return _additive(request, [(m * l1, m * square)], np.ones(1))


def _randomised_response(request: Request) -> tuple[list[float], list[float]]:
    """The rate of flips, which is rounded up to a multiple of 2**-16."""
    share, cost = float(request.share), request.cost
    epsilon = math.sqrt(2.0 * share * cost.rho) if isinstance(cost, ZCDP) else share * cost.epsilon
    return [min(0.5, math.ceil(2.0**16 / (1.0 + math.exp(min(epsilon, 700.0)))) / 2.0**16)], [request.mechanism.rate]


def _community_choice(request: Request) -> tuple[list[float], list[float]]:
    """Return what the ratio of an edge's two weights spends of epsilon: it is rounded down to 21 binary digits."""
    share, cost, law = float(request.share), request.cost, request.mechanism.law
    epsilon = math.sqrt(8.0 * share * cost.rho) if isinstance(cost, ZCDP) else share * cost.epsilon
    spent = math.log(law.agree[0]) + math.log(2.0) * law.agree[1]
    return [spent if epsilon - 2.0**-20 <= spent <= epsilon else epsilon], [spent]


def _parity_sums(request: Request) -> tuple[list[float], list[float]]:
    """Return scales over all sets of variables that one replacement can change; of many variables, for all parities."""
    curator: Any = request.curator
    family, p = request.arguments["family"], len(curator.facts.schema)
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
    """Return scales with A = 1 - 1/k, in units of L; replacements by the number or set of variables they change."""
    curator: Any = request.curator
    schema, pairs, with_count = curator.facts.schema, request.arguments["pairs"], request.arguments["with_count"]
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


def _count(request: Request) -> tuple[list[float], list[float]]:
    schedule, cost = request.curator.schedule, request.cost  # type: ignore[attr-defined]
    rho = cost.rho if isinstance(cost, ZCDP) else accounting.approx_to_zcdp(cost.epsilon, cost.delta)
    m = request.curator._data._rows_of_unit
    return [m * math.sqrt(1.0 / (2.0 * schedule.count_share * rho))], [noise.scale for noise in request.mechanism.noise]


def _step(request: Request) -> tuple[list[float], list[float]]:
    """A rho budget: the multiplier; (epsilon, delta): what it spends of epsilon, by the moments accountant."""
    (exact,), (noise,) = request.mechanism.exact, request.mechanism.noise
    (changed,) = SENSITIVITIES["step"][str(exact.adjacency)]
    schedule, cost = request.curator.schedule, request.cost  # type: ignore[attr-defined]
    # A unit's records move it by their number times the clip norm.
    multiplier = changed * request.mechanism.grid * noise.scale / exact.l2
    counted = schedule.count_share if "count" in schedule.requests else 0.0
    if isinstance(cost, ZCDP):
        return [changed * math.sqrt(schedule.n_steps / (2.0 * (1.0 - counted) * cost.rho))], [multiplier]
    epsilon, delta = cost.epsilon, cost.delta
    rho = counted * accounting.approx_to_zcdp(epsilon, delta)
    if changed == 2:  # a removal and an addition
        epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))
    spent = accounting.subsampled_gaussian_epsilon(multiplier, schedule.rate, schedule.n_steps, delta, rho=rho)
    # The multiplier is found by bisection, and epsilon is read off a coarse list of orders.
    return ([spent] if 0.97 * epsilon <= spent <= epsilon else [epsilon]), [spent]


def _vertices(request: Request) -> tuple[list[float], list[float]]:
    layout, share = request.arguments["layout"], float(request.share)
    squared, replaced = isinstance(request.cost, ZCDP), str(request.curator.adjacency) == "replace_one"
    weight = 0
    for node in set(layout.nodes.tolist()):
        k = layout.cardinalities[node]
        used = {layout.features[f] for row in layout.columns[layout.nodes == node] for f in row if f >= 0}
        if not replaced:
            weight += k - 1
        elif used == {()}:  # it knows no more of a record than its label
            weight += 2 * k - 3
        elif layout.family == "pairwise":
            weight += 2 * k if squared else 2 * (k - 1)
        else:
            weight += 4 if squared else 2
    # A path keeps the parts of its first request; how far scores move is compared with the unit that it says.
    unit, most = request.mechanism.unit, min(_parts(request, 1.0), 2**16)
    if unit not in [4096.0 * 2**k for k in range(most.bit_length())]:
        unit = 4096.0 * most
    if squared:
        return [unit * math.sqrt(weight / (2.0 * share * request.cost.rho))], [request.mechanism.scale]
    return [2.0 * unit * weight / (share * request.cost.epsilon)], [request.mechanism.scale]


def _stable(request: Request) -> tuple[list[float], list[float]]:
    """Scale of the noise on counts, and the smallest threshold that eta pays for."""
    (each,) = SENSITIVITIES[request.operator][str(request.curator.adjacency)]
    marks = 1
    if request.operator == "stable_categories":
        marks = len(request.arguments["columns"])
    elif request.operator == "stable_cells":
        marks = request.arguments["blocks"].n_components
    scale = max(math.sqrt(each * marks / (2.0 * float(request.share) * request.cost.rho)), 1e-3)
    # P(Z >= t), from weights that are summed once more; Z beyond 50 scales is nothing.
    weights = np.exp(-0.5 * (np.arange(int(50.0 * scale) + 50) / scale) ** 2)
    tails = np.cumsum(weights[::-1])[::-1] / (2.0 * weights.sum() - 1.0)
    least = 1 + max(1, int(np.argmax(each * marks * tails <= float(request.eta))))
    histogram = request.mechanism.histogram
    return [scale, least], [histogram.scale, histogram.threshold]


def _number_tables(request: Request) -> tuple[list[float], list[float]]:
    l1, square = SENSITIVITIES["number_tables"][str(request.curator.adjacency)]
    norms = [(1, 1)] * request.arguments["with_count"] + [(l1, square)] * len(request.arguments["tables"])
    return _additive(request, norms, np.ones(len(norms)))


def _mean_log_scale(request: Request) -> tuple[list[float], list[float]]:
    l1, square = SENSITIVITIES["mean_log_scale"][str(request.curator.adjacency)]
    return _additive(request, [(2**16 * l1, 2**32 * square)], np.ones(1))


def _cluster_sums(request: Request) -> tuple[list[float], list[float]]:
    weight, square = SENSITIVITIES["cluster_sums"][str(request.curator.adjacency)]
    bound = math.floor(2**16 * math.frexp(request.arguments["radius"])[0])
    wanted, got = _additive(request, [(0.0, square)] * 2, np.ones(2))
    return [wanted[0] / weight / math.sqrt(2.0), wanted[1] * bound / math.sqrt(2.0)], got


def _cluster_moments(request: Request) -> tuple[list[float], list[float]]:
    """Return scales of the diagonal and, over sqrt(2), of the rest; of one number from 0 to the bound, as if added."""
    (square,) = SENSITIVITIES["cluster_moments"][str(request.curator.adjacency)]
    (k, d), kind = np.shape(request.arguments["centres"]), request.arguments["kind"]
    if {"spherical": k, "tied": d * d}.get(kind, k * d) == 1:
        square = 1
    bound = math.floor(2**15 * math.frexp(request.arguments["radius"])[0])
    scale = bound**2 * math.sqrt(square / (2.0 * float(request.share) * request.cost.rho))
    wanted = [scale, scale * 46341 / 2**16] if kind in ("tied", "full") else [scale]
    return wanted, [noise.scale for noise in request.mechanism.noise]


def _clipped_sum(request: Request) -> tuple[list[float], list[float]]:
    (changed,) = SENSITIVITIES["clipped_sum"][str(request.curator.adjacency)]
    d = len(request.arguments["start"])
    norms = (changed * GRID * math.sqrt(d), float(changed * GRID) ** 2)
    return _additive(request, [norms], np.ones(1))


def _score_sums(request: Request) -> tuple[list[float], list[float]]:
    (changed,) = SENSITIVITIES["score_sums"][str(request.curator.adjacency)]
    norms = (float(changed * request.arguments["l1_bound"]), float(changed * GRID) ** 2)
    return _additive(request, [norms], np.ones(1))


def _several_counts(request: Request) -> tuple[list[float], list[float]]:
    """A record changes the numbers of every column, or the sums of every pair."""
    l1, square = SENSITIVITIES[request.operator][str(request.curator.adjacency)]
    m = len(request.arguments["pairs" if request.operator == "pair_signs" else "center"])
    return _additive(request, [(m * l1, m * square)], np.ones(1))


def _strongest_pairs(request: Request) -> tuple[list[float], list[float]]:
    """Return the scale of as many selections as columns have a candidate."""
    (linf,) = SENSITIVITIES["strongest_pairs"][str(request.curator.adjacency)]
    m, share, cost = int(request.arguments["allowed"].any(axis=1).sum()), float(request.share), request.cost
    scale = math.sqrt(m / (2.0 * share * cost.rho)) if isinstance(cost, ZCDP) else 2.0 * m / (share * cost.epsilon)
    return [linf * scale], [request.mechanism.scale]


_CHECKS = {
    "stable_cells": _stable,
    "stable_scales": _stable,
    "stable_categories": _stable,
    "number_tables": _number_tables,
    "mean_log_scale": _mean_log_scale,
    "cluster_sums": _cluster_sums,
    "cluster_moments": _cluster_moments,
    "unit_count": _one_array,
    "clipped_sum": _clipped_sum,
    "score_sums": _score_sums,
    "second_moments": matrix_scales.second_moments,
    "magnitudes": _several_counts,
    "pair_signs": _several_counts,
    "strongest_pairs": _strongest_pairs,
    "solution": matrix_scales.solution,
    "tables": _tables,
    "grouped_tables": _tables,
    "worst_fit": _selection,
    "worst_parity": _selection,
    "record_count": _one_array,
    "matched_counts": _matched_counts,
    "distances": _distances,
    "model_errors": _model_errors,
    "parity_sums": _parity_sums,
    "parity_matrix": matrix_scales.parity_matrix,
    "interaction_matrix": matrix_scales.interaction_matrix,
    "interaction_sums": _interaction_sums,
    "ngram_tables": _ngram_tables,
    "order_departure": _order_departure,
    "count": _count,
    "step": _step,
    "vertices": _vertices,
    "edge_count": _one_array,
    "neighbour_sums": _one_array,
    "randomised_response": _randomised_response,
    "community_choice": _community_choice,
    "edge_votes": _edge_votes,
    "agreed_graph": _agreed_graph,
}
