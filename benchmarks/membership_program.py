"""The membership program for Gaussian mixtures: time, links, sensitivity, records required; and blocks clustered.

::

    python -m benchmarks.membership_program --out benchmarks/results

Data are made here, k = 3 clusters of equal size in d = 8 dimensions unless stated, centres at equal distances; scale 1.
Nothing in it is private.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp.mixtures.gaussian_mixture import matching_error, random_centres, sample_mixture
from pgmpy_dp.mixtures.operators.kmeans import batched_kmeans
from pgmpy_dp.mixtures.published.membership_program import membership_clusters, membership_program
from pgmpy_dp.mixtures.published.pipeline_study import linked_means, study_cells, study_pipeline
from pgmpy_dp.private import accounting
from pgmpy_dp.theory.membership_records import program_noise, required_records

K, D = 3, 8


def balanced(n: int, separation: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records, labels and centres of K clusters of n/K records."""
    rng = np.random.default_rng(seed)
    centres = random_centres(K, D, separation, rng, shift=1e4)
    labels = np.arange(n) % K
    return centres[labels] + rng.normal(size=(n, D)), labels, centres


def solver_rows() -> list[list[str]]:
    """Seconds until the distance from the optimum is certified to a twentieth of the optimum's sensitivity."""
    rows = []
    for n in (60, 150, 300):
        points, _, _ = balanced(n, 32.0, 0)
        start = time.perf_counter()
        found = membership_program(points, K, 1.0, tolerance=0.1 * math.sqrt(2 * n / K), max_iter=None)
        seconds = time.perf_counter() - start
        rows.append([f"{n}", f"{found.n_iter}", f"{seconds:.1f}", f"{found.distance / (n / math.sqrt(K)):.2%}"])
    return rows


def link_rows() -> list[list[str]]:
    """What the program links at a separation, and the part of n that the test would see as not linked."""
    rows = []
    for separation in (5.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0):
        points, labels, _ = balanced(150, separation, 1)
        w = membership_program(points, K, 1.0, tolerance=1.0, max_iter=3000).weights
        same = labels[:, None] == labels[None, :]
        unlinked = np.mean(1 - np.minimum(linked_means(w, points)[1] / (150 / K), 1))
        rows.append(
            [
                f"{separation:g}",
                *(f"{np.quantile(w[same], q):.2f}" for q in (0.01, 0.1, 0.5)),
                f"{np.quantile(w[~same], 0.99):.2f}",
                f"{unlinked:.3f}",
            ]
        )
    return rows


def sensitivity_rows() -> list[list[str]]:
    """How far one record moved the optimum, against the bound."""
    rows = []
    for n in (60,):
        for separation in (8.0, 32.0):
            points, labels, centres = balanced(n, separation, 2)
            first = membership_program(points, K, 1.0, tolerance=0.2, max_iter=20_000).weights
            moved = []
            for place in (centres[(labels[0] + 1) % K], centres.mean(axis=0), centres[labels[0]] + 500.0):
                other = points.copy()
                other[0] = place
                second = membership_program(other, K, 1.0, tolerance=0.2, max_iter=20_000, reach=400.0).weights
                moved.append(float(np.linalg.norm(first - second)))
            bound = 2 * math.sqrt(2 * n / K)
            rows.append([f"{n}", f"{separation:g}", *(f"{m:.2f}" for m in moved), f"{bound:.2f}"])
    return rows


def direct_rows() -> list[list[str]]:
    """Releasing W itself: spectral norm of the noise over that of the matrix of true clusters."""
    multiplier = 1 / math.sqrt(2 * accounting.approx_to_zcdp(1.0, 1e-6))
    rows = []
    for n in (300, 1500):
        # Only the upper triangle is released; in it the sensitivity is 1/sqrt(2) of the whole matrix's.
        scale = 2 * math.sqrt(n / K) * multiplier
        noise = np.triu(np.random.default_rng(n).normal(scale=scale, size=(n, n)))
        noise = noise + np.triu(noise, 1).T
        rows.append([f"{n}", f"{scale:.0f}", f"{np.abs(np.linalg.eigvalsh(noise)).max() / (n / K):.1f}"])
    return rows


def required_rows() -> list[list[str]]:
    """Numbers of records from which on the noise after the test leaves the centres."""
    rows = []
    cases = [(3, 8, 32.0, 1.0), (3, 8, 32.0, 0.5), (3, 8, 32.0, 10.0), (3, 8, 100.0, 1.0), (3, 8, 1000.0, 1.0)]
    cases += [(2, 8, 32.0, 1.0), (5, 8, 32.0, 1.0), (3, 2, 32.0, 1.0), (3, 16, 32.0, 1.0), (2, 1, 1000.0, 100.0)]
    for k, d, separation, epsilon in cases:
        rows.append(
            [
                f"{k}",
                f"{d}",
                f"{separation:g}",
                f"{epsilon:g}",
                f"{required_records(k, d, separation, epsilon, 1e-6):.1e}",
            ]
        )
    return rows


def factor_rows(
    factors: Sequence[float] = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), n: int = 150, runs: int = 20
) -> list[list[str]]:
    """Algorithm 6.5 with its noise times a factor, on made-up records; not private with any."""
    rows = []
    for separation in (32.0, 8.0):
        points, _, centres = balanced(n, separation, 1)
        weights = membership_program(points, K, 1.0, tolerance=1.0, max_iter=3000).weights
        for factor in factors:
            rng, epsilon, delta = np.random.default_rng(0), 1.0, 1e-6
            studies = [
                study_pipeline(points, K, 1.0, separation, epsilon, delta, rng, noise=factor, weights=weights)
                for _ in range(runs)
            ]
            noise, refused = studies[0].noise, sum(study.cells is None for study in studies)
            right = sum(matching_error(study.means, centres) < 2.0 for study in studies)
            row = [f"{separation:g}", f"{factor:g}", f"{studies[0].unlinked:.0f}", f"{noise.test.limit:,}"]
            row += [f"{refused}/{runs}", f"{noise.rate * n:.0f}", f"{noise.row_error:.3g}", f"{noise.threshold}"]
            rows.append([*row, f"{right}/{runs}"])
    return rows


def size_rows(runs: int = 20) -> list[list[str]]:
    """The noise of Algorithm 6.5 by the number of records, and what it leaves of rows that are at their centres."""
    rows, separation = [], 32.0
    for n in (300, 10**10, 10**17, 10**20, 10**23, int(required_records(K, D, separation, 1.0, 1e-6))):
        noise = program_noise(n, K, D, separation, 1.0, 1e-6)
        right = 0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            centres = random_centres(K, D, 1.001 * separation, rng)
            drawn = centres[rng.integers(K, size=rng.poisson(noise.rate * n))]
            right += matching_error(study_cells(drawn, K, noise, rng).means, centres) < separation / 2
        row = [f"{n:.1e}", "yes" if noise.proved else "no", f"{noise.test.sensitivity:.1e}", f"{noise.test.limit:.1e}"]
        row += [f"{noise.eta:.0e}", f"{noise.bad}", f"{noise.rate * n:,.0f}", f"{noise.row_error:.3g}"]
        rows.append([*row, f"{right}/{runs}"])
    return rows


FACTOR_HEAD = ["separation", "noise times", "not linked", "limit", "refused", "rows drawn", "noise of a row"]
FACTOR_HEAD += ["rows a cell needs", "centres within 2 scales"]
SIZE_HEAD = ["n", "a bound holds", "not linked moves by", "limit", "eta", "bad rows", "rows drawn", "noise of a row"]
SIZE_HEAD += ["steps after the test find the centres"]


def block_rows() -> list[list[str]]:
    """Largest error of a centre in a block, by the program and by k-means with 5 starts: median, and below 2 scales."""
    rows = []
    for n in (15, 30, 60):
        for separation in (5.0, 8.0):
            errors: dict[str, list[float]] = {"program": [], "k-means": []}
            seconds = 0.0
            for seed in range(40):
                rng = np.random.default_rng(seed)
                centres = random_centres(K, D, separation, rng, shift=1e4)
                points, _ = sample_mixture(centres, np.full(K, 1 / K), 1.0, n, rng)
                start = time.perf_counter()
                errors["program"].append(matching_error(membership_clusters(points, K, 1.0), centres))
                seconds += time.perf_counter() - start
                found, _ = batched_kmeans(points[None], np.ones((1, n)), rng.random((5, 1, K)))
                errors["k-means"].append(matching_error(found[0], centres))
            cells = [f"{np.median(e):.2f}, {np.sum(np.array(e) < 2.0)}/40" for e in errors.values()]
            rows.append([f"{n}", f"{separation:g}", *cells, f"{1e3 * seconds / 40:.0f}"])
    return rows


SECTIONS = (
    (solver_rows, "Time of the program", ["n", "steps", "seconds", "certified distance, of n/sqrt(k)"]),
    (link_rows, "Links at n = 150", ["separation", "within: 1 %", "10 %", "50 %", "across: 99 %", "not linked, of n"]),
    (
        sensitivity_rows,
        "One record moved (two certified solutions, .2 each)",
        ["n", "separation", "to another cluster", "between", "far off", "bound 2 sqrt(2n/k)"],
    ),
    (direct_rows, "Releasing W, epsilon = 1, delta = 1e-6", ["n", "noise of an entry", "spectral noise over signal"]),
    (factor_rows, "Algorithm 6.5 on 150 made-up records, epsilon = 1, delta = 1e-6", FACTOR_HEAD),
    (size_rows, "Algorithm 6.5 by the number of records, separation 32, epsilon = 1, delta = 1e-6", SIZE_HEAD),
    (required_rows, "Records required, delta = 1e-6", ["k", "d", "separation", "epsilon", "n"]),
    (
        block_rows,
        "Clusterer of blocks: median error, and blocks below 2 scales",
        ["records", "separation", "program", "k-means, 5 starts", "program, ms"],
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.membership_program", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    options = parser.parse_args(arguments)
    parts = [
        "# The membership program\n",
        f"Made by `python -m benchmarks.membership_program`\n\non {describe_machine()}\n",
    ]
    for measure, title, head in SECTIONS:
        start = time.perf_counter()
        parts.append(f"## {title}\n\n{markdown_table(head, measure())}\n")
        print(f"{parts[-1]}\n{time.perf_counter() - start:.0f} s", flush=True)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "membership-program.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
