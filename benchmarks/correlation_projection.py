"""Seconds of the projection on correlation matrices, to a certified distance, against SCS and plain scipy.

::

    python -m benchmarks.correlation_projection --out benchmarks/results

Graphs of the stochastic block model, centred and scaled as the block model's learner does, solved to 1e-3 of the
sensitivity. Times are of one thread: seconds of the processor, and on the clock.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp.communities.operators.block_projection import BlockProjection
from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.communities.published.correlation_newton import project_correlation
from pgmpy_dp.private.mathematics.certificates import certified_projection

CASES = (
    (30, 10, 0.8),
    (60, 15, 0.8),
    (100, 20, 0.8),
    (300, 30, 0.8),
    (500, 40, 0.8),
    (1000, 40, 0.8),
    (1000, 100, 0.5),
    (2000, 100, 0.8),
    (4000, 100, 0.8),
    (4000, 100, 0.5),
)
"""Vertices, degree, bias."""
LARGEST = {"SCS": 300, "scipy": 1000, "Newton": 2000}
SHARE = 1e-3


def planted(n: int, degree: float, bias: float, seed: int = 0) -> sp.csr_matrix:
    """Adjacency matrix of two communities of n/2 vertices."""
    labels = np.where(np.arange(n) < n // 2, 1, -1)
    draws = np.random.default_rng(seed).random((n, n)) < (1 + bias * np.outer(labels, labels)) * degree / n
    upper = np.triu(draws, 1)
    return sp.csr_matrix(upper + upper.T, dtype=float)


def with_scs(target: np.ndarray, tolerance: float) -> np.ndarray:
    """The primal problem, by cvxpy's SCS."""
    import cvxpy

    n = len(target)
    x = cvxpy.Variable((n, n), PSD=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - target)), [cvxpy.diag(x) == 1.0 / n])
    problem.solve(solver=cvxpy.SCS, eps=tolerance / 10, max_iters=100_000)
    return np.asarray(x.value)


def with_scipy(target: np.ndarray, tolerance: float) -> np.ndarray:
    """The dual problem, by scipy's L-BFGS-B and numpy's complete eigendecomposition; no certificate, no start."""
    n = len(target)

    def dual(y: np.ndarray) -> tuple[float, np.ndarray]:
        values, vectors = np.linalg.eigh(target + np.diag(y))
        values = np.maximum(values, 0.0)
        return n * (0.5 * float(values @ values) - float(y.sum()) / n), n * ((vectors**2) @ values) - 1.0

    gradient_tol = tolerance / 2
    solution = minimize(dual, np.zeros(n), jac=True, method="L-BFGS-B", options={"gtol": gradient_tol, "ftol": 0.0})
    return solution.x


def timed(solve: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """Result, seconds of the processor, seconds on the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    result = solve()
    return result, time.process_time() - cpu, time.perf_counter() - clock


def rows_of(n: int, degree: float, bias: float) -> list[list[str]]:
    """A row of the table for each solver that this size allows."""
    program = BlockProjection(n, degree, bias, tolerance=SHARE)
    sensitivity = program.sensitivity * np.sqrt(2)
    tolerance = SHARE * sensitivity
    target = SparseMinusConstant(planted(n, degree, bias), program.scale, program.scale * degree / n)
    dense = target.toarray()
    case = f"{n}, {degree}, {bias}"
    body = []

    def add(solver: str, seconds: float, clock: float, distance: float, note: str) -> None:
        body.append([case, solver, f"{seconds:.2f}", f"{clock:.2f}", f"{distance / sensitivity:.1e}", note])
        print(body[-1], flush=True)

    found, seconds, clock = timed(lambda: project_correlation(target, tolerance=tolerance / 2))
    point, more, more_clock = timed(lambda: certified_projection(dense, found.y, found.factor))
    rank = f"rank {found.factor.shape[1]}, {found.n_iter} eigendecompositions"
    add("ours: solver", seconds, clock, found.distance, f"{found.status}; {rank}; the distance is an estimate")
    add("ours: and certificate", seconds + more, clock + more_clock, point.distance, "certified")
    if n <= LARGEST["Newton"]:
        newton, seconds, clock = timed(lambda: project_correlation(dense, tolerance=1e-6 * sensitivity))
        add("Newton to 1e-6", seconds, clock, newton.distance, newton.status)
    if n <= LARGEST["scipy"]:
        y, seconds, clock = timed(lambda: with_scipy(dense, tolerance))
        add("scipy", seconds, clock, certified_projection(dense, y).distance, "certified afterwards")
    if n <= LARGEST["SCS"] and find_spec("cvxpy") is None:
        print("SCS is left out: cvxpy is not installed (pip install 'pgmpy_dp[bench]')", flush=True)
    elif n <= LARGEST["SCS"]:
        x, seconds, clock = timed(lambda: with_scs(dense, tolerance))
        exact = project_correlation(dense, tolerance=1e-8).matrix
        add("SCS", seconds, clock, float(np.linalg.norm(x - exact)), "from Newton's solution")
    return body


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.correlation_projection", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--largest", type=int, default=4000, help="leave out larger graphs (default: %(default)s)")
    options = parser.parse_args(arguments)
    import torch

    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    torch.set_num_threads(threads)
    project_correlation(np.eye(3))  # imports
    body = [row for case in CASES if case[0] <= options.largest for row in rows_of(*case)]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    head = ["n, degree, bias", "solver", "processor, s", "clock, s", "distance / sensitivity", "note"]
    text = [
        "# Seconds of the projection on correlation matrices",
        "",
        "Made by `OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.correlation_projection`",
        "",
        f"on {describe_machine()}. One thread; the clock is slower than the processor where other work ran beside it.",
        "Target: 1e-3 of the sensitivity (`BlockProjection(n, degree, bias)`), in Frobenius norm.",
        "",
        markdown_table(head, body),
        "",
    ]
    (out / "correlation-projection.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
