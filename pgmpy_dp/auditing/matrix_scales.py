"""Scales of noise by closed formulas, of matrices and of optima: a part of :mod:`pgmpy_dp.auditing.scales`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy import stats

from pgmpy_dp.private import accounting
from pgmpy_dp.private.curator.observer import Request
from pgmpy_dp.private.guarantee import ZCDP

SENSITIVITIES: dict[str, dict[str, Any]] = {
    # of positive semidefinite matrices in all, over the trace that one record has at most
    "parity_matrix": {"add_remove": (1,), "replace_one": (2,)},
    "interaction_matrix": {"add_remove": (1,), "replace_one": (2,)},
    # nuclear and squared Frobenius norm, over the trace that one record or person has at most
    "second_moments": {"add_remove": (1, 1), "replace_one": (2, 2)},
}

GRID = 2**15  # integers in the norm to which records of numbers are clipped


def second_moments(request: Request) -> tuple[list[float], list[float]]:
    """Scale, and standard deviation of an entry; of one-sided noise that its degrees give delta and fewer do not."""
    plan, d, t = request.mechanism.plan, len(request.arguments["center"]), float(GRID**2)
    nuclear, square = (1, 1) if d == 1 else SENSITIVITIES["second_moments"][str(request.curator.adjacency)]
    l1 = t * ((d + 1) / 2 if nuclear == 1 else math.sqrt(d * (d + 3) / 2))
    share, name = float(request.share), plan.mechanism
    if isinstance(request.cost, ZCDP):
        sigma = t * math.sqrt(square / (2.0 * share * request.cost.rho))
        wanted = [sigma, sigma if name == "gaussian" else sigma / math.sqrt(2.0)]
    elif name == "analytic-goe":
        epsilon, sigma = share * request.cost.epsilon, plan.scale
        mu, both = t * math.sqrt(square) / sigma, 1.0 + math.exp(epsilon)
        spent = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        spent += both * d * (d + 1) / 2 / (12.0 * sigma**2 - 1.0)
        fits = 0.99 * float(request.eta) <= spent <= float(request.eta)
        wanted = [sigma if fits else math.nan, sigma / math.sqrt(2.0)]
    elif name == "one-sided-wishart":
        deltas = [_one_sided(k - d + 1, share * request.cost.epsilon) for k in (plan.degrees, plan.degrees - 1)]
        fits = deltas[0] <= float(request.eta) < deltas[1] and nuclear == 1
        wanted = [t, math.sqrt(plan.degrees) * t if fits else math.nan]
    else:
        epsilon = share * request.cost.epsilon
        if name == "double-wishart":
            wanted = [nuclear * t / (2.0 * epsilon), nuclear * t / (2.0 * epsilon) * math.sqrt(2.0 * (d + 1))]
        elif name == "frobenius":
            wanted = _k_norm(math.sqrt(square) * t / epsilon, d)
        else:
            wanted = 2 * [max(l1, 2.0 * d * t if name == "published-laplace" else 0.0) / epsilon]
    return wanted, [plan.scale, plan.off_diagonal.scale]


def _matrix(request: Request, trace: float) -> tuple[list[float], list[float]]:
    """Scale of double Wishart noise: half the trace of what moves, over epsilon."""
    mechanism: Any = request.mechanism
    (changed,) = SENSITIVITIES[request.operator][str(request.curator.adjacency)]
    wanted = changed * trace / (2.0 * float(request.share) * request.cost.epsilon)
    return [wanted], [mechanism.scale / (mechanism.fine * mechanism.grid)]


def parity_matrix(request: Request) -> tuple[list[float], list[float]]:
    """A record's features are +-1, times their weights."""
    return _matrix(request, float(sum(w**2 for w in request.arguments["weights"])))


def interaction_matrix(request: Request) -> tuple[list[float], list[float]]:
    """Helmert's contrasts in units of 2**-16, and the constant that leaves the least noise beside them."""
    schema: Any = request.curator.facts.schema
    sizes = [schema.cardinality(name) for name in schema.variables]
    pairs = request.arguments["pairs"]
    chosen = itertools.combinations(range(len(sizes)), 2) if pairs is None else pairs
    both = sum((sizes[i] - 1) * (sizes[j] - 1) for i, j in chosen)
    free, rest = sum(sizes) - len(sizes), sum(1.0 - 1.0 / k for k in sizes)
    square = (math.sqrt(free**2 + 8.0 * both * rest * free) - free) / (4.0 * both) if both else rest
    trace = max(1, round(2**16 * math.sqrt(square))) ** 2
    for k in sizes:
        lengths = [round(2**16 / math.sqrt(j * (j + 1))) for j in range(1, k)]
        norms = [sum(x**2 for x in lengths[a:]) + (a * lengths[a - 1]) ** 2 * (a > 0) for a in range(k)]
        trace += max(norms) if k > 1 else 0
    return _matrix(request, float(trace))


def _k_norm(scale: float, d: int) -> list[float]:
    size = d * (d + 1) / 2
    return [scale, scale * math.sqrt((size + 1) / 2.0)]


def _one_sided(degrees: int, epsilon: float) -> float:
    """Delta of chi-squared variables that are shifted by one: the largest over half-lines."""
    y = np.linspace(0.0, degrees + 60.0 * math.sqrt(degrees), 20_001)
    below = stats.chi2.cdf(y, degrees) - math.exp(epsilon) * stats.chi2.cdf(y - 1.0, degrees)
    above = stats.chi2.sf(y - 1.0, degrees) - math.exp(epsilon) * stats.chi2.sf(y, degrees)
    return float(max(below.max(), above.max()))


def solution(request: Request) -> tuple[list[float], list[float]]:
    """Scales from what the program says; how far optima of the boundary's own programs move is computed here."""
    arguments, cost, share = request.arguments, request.cost, float(request.share)
    program, step, sensitivity = arguments["program"], request.mechanism.step, arguments["sensitivity"]
    if arguments["function"].endswith(".PrecisionProgram"):
        square = SENSITIVITIES["second_moments"][str(request.curator.adjacency)][1] if program["d"] > 1 else 1
        lipschitz = program["max_eigenvalue"] ** 2 * program["row_norm"] ** 2 / program["n_records"]
        sensitivity = math.sqrt(square) * lipschitz
    if arguments["function"].endswith(".BlockProjection"):  # of the entries above the diagonal; as published on it too
        n, s = program["n"], program["theta"] / (program["bias"] * program["degree"] * (program["n_communities"] - 1))
        sensitivity = math.sqrt(24.0 * s / n) if program["analysis"] == "published" else math.sqrt(s * min(2.0 / n, s))
    moved = sensitivity + 2.0 * arguments["distance"]
    if arguments["noise"] == "gaussian":
        (noise,), integers = request.mechanism.noise, moved / step + math.sqrt(arguments["size"])
        if isinstance(cost, ZCDP):
            return [integers / math.sqrt(2.0 * share * cost.rho)], [noise.scale]
        mu, epsilon, delta = integers / noise.scale, share * cost.epsilon, float(request.eta)
        if epsilon > 700.0 or math.exp(epsilon) * arguments["size"] / (24.0 * noise.scale**2) > delta:
            spent = accounting.zcdp_to_approx(mu**2 / 2.0, delta)  # noise of a rho, see `fine_grid`
            return ([spent] if 0.99 * epsilon <= spent <= epsilon else [epsilon]), [spent]
        spent = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        both = 1.0 + math.exp(epsilon)
        spent += both * (arguments["size"] / (24.0 * noise.scale**2 - 1.0) + arguments["failure"])
        return ([spent] if 0.99 * delta <= spent <= delta else [delta]), [spent]
    plan, d = request.mechanism.plan, program["d"]
    integers = (moved + d * step) / step * (1.0 + 1e-9)
    if isinstance(cost, ZCDP):
        sigma = integers / math.sqrt(2.0 * share * cost.rho)
        return [sigma, sigma / math.sqrt(2.0)], [plan.scale, plan.off_diagonal.scale]
    return _k_norm(integers / (share * cost.epsilon), d), [plan.scale, plan.off_diagonal.scale]
