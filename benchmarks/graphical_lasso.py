"""Seconds, memory and objectives of the graphical lasso: ours, scikit-learn's and (if installed) gglasso's.

::

    python -m benchmarks.graphical_lasso --out benchmarks/results

Moments of records from a random 3-regular graphical model, rho = sqrt(log d / n) times the mean of their diagonal. Each
solve runs in a process of its own on one thread. Seconds are processor seconds, which other work on the machine moves
least. "Above the bound" is the objective less a proved lower bound on the minimum (our dual point, solved to a gap of
1e-10 d; 1e-7 d with a cap).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, peak_rss, reset_peak_rss, resident
from benchmarks.report import markdown_table

CASES = {30: 2_000, 100: 2_000, 300: 2_000, 1000: 5_000}
"""Records for each number of variables."""

METHODS = ("ours, gap 1e-7 d", "ours, gap 1e-9 d", "ours, capped at half", "scikit-learn, tol 1e-5 d", "gglasso")


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphical_lasso", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(CASES), help="numbers of variables")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--case", nargs=2, metavar=("SIZE", "METHOD"), help="run one here, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.case:
        print(json.dumps(measure(int(options.case[0]), options.case[1])))
        return
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    body: list[list[str]] = []
    for d in options.sizes:
        for method in METHODS:
            if "capped" in method and d > 300:  # minutes: hundreds of iterations
                continue
            command = [sys.executable, "-m", "benchmarks.graphical_lasso", "--case", str(d), method]
            threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads))
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | threads)
            row = json.loads(done.stdout.splitlines()[-1])
            if row is None:
                continue
            seconds = [f"{row[name]:.3g}" for name in ("processor", "wall")]
            found = [f"{row['objective']:.6f}", f"{row['above']:.1e}", f"{row['degree']:.1f}", row["note"]]
            body.append([str(d), method, *seconds, f"{row['megabytes']:.0f}", *found])
            print(body[-1], flush=True)
            write(out, body, options.threads)


def write(out: Path, body: list[list[str]], threads: int) -> None:
    """The table so far."""
    head = ["d", "solver", "processor s", "wall s", "memory, MB"]
    head += ["objective", "above the bound", "mean degree", "how it ended"]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    records = ", ".join(f"{n} for d = {d}" for d, n in CASES.items())
    text = [
        "# The graphical lasso",
        "Made by `python -m benchmarks.graphical_lasso`",
        f"on {describe_machine()}; {threads} thread(s), load averages {load} at the end (wall seconds are of a shared "
        f"machine). Median of three solves below d = 300, one from there on. n = {records}. Memory is the peak above "
        'the size before the solve. "Above the bound": the objective less a proved lower bound on the minimum. The '
        "capped program, with half of the largest eigenvalue for a cap, is another one, with a higher minimum.",
        markdown_table(head, body),
    ]
    (out / "graphical-lasso.md").write_text("\n\n".join(text) + "\n")


def measure(d: int, method: str) -> dict | None:
    """One solver on one problem; None if it is not installed."""
    import networkx as nx
    import numpy as np

    from benchmarks.random_graphs import named_graph
    from pgmpy_dp.gaussian.gaussian_distribution import sample_gaussian
    from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso

    rng = np.random.default_rng(20261205)
    upper = np.triu(nx.to_numpy_array(named_graph("regular", d, rng), nodelist=range(d)), 1)
    upper *= rng.uniform(0.2, 0.5, size=(d, d)) * rng.choice([-1, 1], size=(d, d))
    theta = upper + upper.T
    theta += np.diag(np.abs(theta).sum(axis=1) + 0.2)
    x = sample_gaussian(np.zeros(d), theta, CASES[d], rng)
    S = x.T @ x / len(x)
    rho = float(np.diagonal(S).mean() * np.sqrt(np.log(d) / len(x)))
    R = rho * (1 - np.eye(d))
    del x
    cap = np.linalg.eigvalsh(graphical_lasso(S, rho, tolerance=1e-5).precision)[-1] / 2 if "capped" in method else None

    def solve() -> tuple[np.ndarray, str]:
        if method.startswith("ours"):
            tolerance = 1e-7 if "1e-7" in method or cap is not None else 1e-9
            solution = graphical_lasso(S, rho, max_eigenvalue=cap, tolerance=tolerance)
            return solution.precision, f"{solution.n_iter} iterations"
        if method.startswith("scikit-learn"):
            from sklearn.covariance import graphical_lasso as theirs

            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                _, precision, n_iter = theirs(S, rho, tol=1e-5 * d, return_n_iter=True)
            return precision, f"{n_iter} sweeps" + (", did not converge" if caught else "")
        from gglasso.solver.single_admm_solver import ADMM_SGL

        solution, info = ADMM_SGL(S, rho, np.eye(d), tol=1e-5, rtol=1e-5, verbose=False)
        return solution["Theta"], str(info["status"])

    if method == "gglasso":
        try:
            import gglasso.solver.single_admm_solver  # noqa: F401
        except ImportError:
            return None
    runs = []
    reset_peak_rss()
    before = resident()
    for _ in range(3 if d < 300 else 1):
        clock, wall = time.process_time(), time.perf_counter()
        precision, note = solve()
        runs.append((time.process_time() - clock, time.perf_counter() - wall))
    megabytes = (peak_rss() - before) / 1e6
    precision = (precision + precision.T) / 2
    best = graphical_lasso(S, rho, max_eigenvalue=cap, tolerance=1e-7 if cap is not None else 1e-10)
    nonzero = precision != 0
    objective = (S * precision).sum() + (R * np.abs(precision)).sum() - np.linalg.slogdet(precision)[1]
    return {
        "processor": sorted(run[0] for run in runs)[len(runs) // 2],
        "wall": sorted(run[1] for run in runs)[len(runs) // 2],
        "megabytes": megabytes,
        "objective": float(objective),
        "above": float(objective) - (best.objective - best.duality_gap),
        "degree": float((nonzero.sum() - d) / d),
        "note": note,
    }


if __name__ == "__main__":
    main()
