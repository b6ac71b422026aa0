"""The block model's projection and its solvers: Newton's method, and behind it one that is proved to arrive."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.communities.operators.block_projection import BlockProjection
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.communities.published.correlation_newton import NEEDS_TORCH, project_correlation
from pgmpy_dp.communities.published.correlation_path import central_path, least_accuracy
from pgmpy_dp.learning import convex_program
from pgmpy_dp.learning.devices import chosen_device, require_torch
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.operators.solutions import Solution, Solver, noise_plan, part_of
from pgmpy_dp.private.sensitive import Release


def projection(n: int, degree: float, bias: float, **options: Any) -> BlockProjection:
    """The program, whose solutions are released within what the last of its solvers is proved to reach.

    Parameters
    ----------
    n, degree, bias, **options
        Of :class:`~pgmpy_dp.communities.operators.block_projection.BlockProjection`.

    Raises
    ------
    ImportError
        If torch is not installed, which Newton's method needs.
    TypeError, ValueError
        For arguments out of range.

    Notes
    -----
    The distance grows with the number of vertices: to 4e-3 of the sensitivity at 4,000 vertices of degree 40, for
    instance. The last solver ends certified on every graph after a public number of steps, in floating point, where
    ``n^2`` times the largest row sum of abs(Y) is at most 4e10: ``communities/published/correlation_path.md`` has the
    proof and what it assumes of LAPACK.

    Examples
    --------
    >>> projection(60, degree=30.0, bias=1.0).reach < 1e-8
    True
    """
    require_torch(NEEDS_TORCH)
    program = BlockProjection(n, degree, bias, **options)
    return replace(program, reach=least_accuracy(program.n, program.row_sum) or 0.0)


def solvers(program: BlockProjection, device: str | None = None) -> list[Solver]:
    """Newton's method, with half of the distance left for what the certificate adds; the central path.

    Parameters
    ----------
    device : str, optional
        Torch device of Newton's method. Default: that of pgmpy's torch backend, else the processor. What follows where
        it fails, and the certificates, are the processor's.
    """
    accuracy = program.distance * math.sqrt(2.0)
    newton = f"{__name__}.by_newton", {"tolerance": 0.5 * accuracy, "device": chosen_device(device)}
    return [newton, (f"{__name__}.by_path", {"accuracy": accuracy})]


@outside_function
def by_newton(target: SparseMinusConstant, tolerance: float, device: str | None) -> dict[str, np.ndarray]:
    """Dual numbers and a factor of the projection."""
    projection = project_correlation(target, tolerance=tolerance, device=device)
    return {"y": projection.y, "factor": projection.factor}


@outside_function
def by_path(target: SparseMinusConstant, accuracy: float) -> dict[str, np.ndarray]:
    """Two factors; nothing where even I/n is near enough, in settings that bury any graph."""
    if accuracy >= 1.0:
        return {}
    pair = central_path(target.toarray(), accuracy)
    return {"factor": pair.factor, "dual_factor": pair.dual_factor}


def projected(
    curator: Curator,
    program: BlockProjection,
    share: Fraction | int,
    eta: float = 0.0,
    device: str | None = None,
) -> np.ndarray:
    """The noisy projection, shape (n, n), symmetric; its diagonal is 1/n, or what was released of it."""
    (entries,) = curator.ask(Solution(program, solvers(program, device)), share, eta)
    return _matrix(program.public(), entries, noise_plan(program, part_of(curator.cost, share, eta)).exponent)


def release(
    program: BlockProjection,
    graph: PrivateGraph,
    budget: Budget,
    *,
    device: str | None = None,
    random_state: int | None = None,
) -> Release:
    """Release the projection alone, as any stable program; :func:`released_matrix` reads it.

    Examples
    --------
    >>> cliques = np.kron(np.eye(2), np.ones((30, 30))) - np.eye(60)
    >>> budget = Budget(epsilon=8.0, delta=1e-6)
    >>> noisy = released_matrix(release(projection(60, 30.0, 1.0), PrivateGraph(cliques, ledger=budget), budget))
    >>> noisy.shape, bool((noisy[:30, :30].mean() > 0) and (noisy[:30, 30:].mean() < 0))
    ((60, 60), True)
    """
    by = solvers(program, device)
    return convex_program.release(program, graph, budget, solvers=by, random_state=random_state)


def released_matrix(release: Release) -> np.ndarray:
    """The noisy X of a release of the projection, shape (n, n); ValueError for another kind. Post-processing."""
    require_kind(release, "block_projection")
    return _matrix(release.public, release["solution"].array, int(release.public["grid_exponent"]))


def _matrix(public: Any, entries: np.ndarray, exponent: int) -> np.ndarray:
    n = int(public["n"])
    matrix = np.eye(n) / n
    rows, columns = np.triu_indices(n, 0 if public["analysis"] == "published" else 1)
    matrix[rows, columns] = matrix[columns, rows] = np.ldexp(entries.astype(float), exponent)
    return matrix
