"""Centres of Gaussian mixtures under privacy: successes and errors, against a known ball, diffprivlib and no privacy.

::

    python -m benchmarks.mixtures                # below 15 minutes on one core
    python -m benchmarks.mixtures --runs 40      # more runs of each point

k spherical Gaussians of scale 1 whose centres are the corners of a simplex (all at the given distance), moved by 10^4;
epsilon = 1, delta = 1e-6 and replace_one unless stated. A run succeeds where every centre is within 1 of a true one;
the error is the largest distance of a centre, its median over the runs that found centres. Noise comes from seeds:
nothing here is private.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, peak_rss, reset_peak_rss, resident, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.gaussian_mixture import matching_error, random_centres, sample_mixture
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

BASE: dict[str, Any] = {"k": 3, "d": 8, "separation": 8.0, "epsilon": 1.0, "shift": 1e4, "adjacency": "replace_one"}
DELTA = 1e-6
POINTS: list[tuple[str, dict[str, Any], Sequence[int]]] = [
    ("as in the target", {}, (3000, 4500, 6000, 8000)),
    ("add_remove, n private", {"adjacency": "add_remove"}, (3000, 4500, 6000, 8000)),
    ("epsilon 0.5", {"epsilon": 0.5}, (6000, 9000)),
    ("epsilon 2", {"epsilon": 2.0}, (1500, 2250)),
    ("separation 5", {"separation": 5.0}, (4000, 6000, 9000)),
    ("separation 12", {"separation": 12.0}, (3000,)),
    ("k = 1", {"k": 1}, (1500, 3000)),
    ("k = 2", {"k": 2}, (1500, 3000)),
    ("k = 5", {"k": 5}, (6000, 9000)),
    ("k = 8", {"k": 8}, (9000, 18_000)),
    ("d = 2", {"d": 2}, (1500, 3000)),
    ("d = 4", {"d": 4}, (2250, 3000)),
    ("d = 16", {"d": 16}, (4500, 6000)),
    ("d = 32", {"d": 32}, (9000, 18_000)),
    ("weights .6, .3, .1", {"weights": (0.6, 0.3, 0.1)}, (8000, 16_000)),
    ("scale estimated", {"scale": None}, (6000, 9000)),
]
HIGH = (20_000, 40_000, 80_000)  # d = 64
LARGE = ((1_000_000, 16), (1_000_000, 32), (10_000_000, 16))


def population(point: dict[str, Any], n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records and true centres."""
    rng = np.random.default_rng([seed, n, point["k"], point["d"]])
    centres = random_centres(point["k"], point["d"], point["separation"], rng, shift=point["shift"])
    weights = np.array(point.get("weights") or np.full(point["k"], 1.0 / point["k"]))
    return sample_mixture(centres, weights, 1.0, n, rng)[0], centres


def ours(rows: np.ndarray, point: dict[str, Any], seed: int, **options: Any) -> np.ndarray | None:
    """Centres of PrivateGaussianMixture, which is told k, the separation and (unless estimated) the scale."""
    replace = point["adjacency"] == "replace_one"
    estimator = PrivateGaussianMixture(
        point["k"],
        separation=point["separation"],
        scale=point.get("scale", 1.0),
        epsilon=point["epsilon"],
        delta=DELTA,
        adjacency=point["adjacency"],
        n_records=len(rows) if replace else None,
        random_state=seed,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        return estimator.fit(rows).means_


def known_ball(rows: np.ndarray, point: dict[str, Any], seed: int, radius: float, n_steps: int = 7) -> np.ndarray:
    """DP Lloyd (Su et al. 2016, with Gaussian noise) in a public ball about the origin: random starts, noisy means."""
    rng = np.random.default_rng(seed)
    k, d = point["k"], rows.shape[1]
    rows = rows * np.minimum(1.0, radius / np.maximum(np.linalg.norm(rows, axis=1), 1e-12))[:, None]
    rho = approx_to_zcdp(point["epsilon"], DELTA) / n_steps
    noise = 2.0 / math.sqrt(2.0 * rho)  # replace_one: (count, sum / radius) moves by at most 2
    directions = rng.normal(size=(k, d))
    centres = directions / np.linalg.norm(directions, axis=1, keepdims=True) * radius * rng.random((k, 1)) ** (1 / d)
    for _ in range(n_steps):
        nearest = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for j in range(k):
            count = (nearest == j).sum() + noise * rng.normal()
            total = rows[nearest == j].sum(axis=0) + noise * radius * rng.normal(size=d)
            if count > 3.0 * noise:
                centres[j] = np.clip(total / count, -radius, radius)
    return centres


def diffprivlib_centres(rows: np.ndarray, point: dict[str, Any], seed: int) -> np.ndarray:
    """diffprivlib's KMeans (pure epsilon) in a public box of +-12 about the origin."""
    from diffprivlib.models import KMeans as PrivateKMeans

    bounds = (np.full(rows.shape[1], -12.0), np.full(rows.shape[1], 12.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivateKMeans(point["k"], epsilon=point["epsilon"], bounds=bounds, random_state=seed)
        return model.fit(np.clip(rows, -12.0, 12.0)).cluster_centers_


def measure(name: str, point: dict[str, Any], n: int, runs: int, learn: Callable[..., Any]) -> dict[str, Any]:
    """Successes, fits without an answer, median error and seconds of one method at one point."""
    errors, seconds = [], 0.0
    for seed in range(runs):
        rows, centres = population(point, n, 1000 + seed)
        started = time.perf_counter()
        found = learn(rows, point, seed)
        seconds += time.perf_counter() - started
        errors.append(matching_error(found, centres))
    finite = [error for error in errors if math.isfinite(error)]
    return {
        "name": name,
        "n": n,
        "runs": runs,
        "success": sum(error <= 1.0 for error in errors),
        "none": runs - len(finite),
        "error": float(np.median(finite)) if finite else math.nan,
        "seconds": seconds / runs,
    }


def baselines(runs: int) -> Iterator[dict[str, Any]]:
    """What knows a ball, and what is not private."""
    near = {**BASE, "shift": 0.0}
    for radius in (10.0, 35.0, 433.0):
        yield measure(
            f"DP Lloyd in a known ball of radius {radius:g}",
            near,
            6000,
            runs,
            lambda rows, point, seed, radius=radius: known_ball(rows, point, seed, radius),
        )
    try:
        import diffprivlib  # noqa: F401
    except ImportError:
        yield {"name": "diffprivlib KMeans: not installed here", "n": 50_000}
    else:
        yield measure("diffprivlib KMeans, box of +-12", near, 50_000, min(runs, 10), diffprivlib_centres)
    yield measure(
        "k-means, not private",
        BASE,
        5000,
        runs,
        lambda rows, point, seed: KMeans(point["k"], n_init=10, random_state=seed).fit(rows).cluster_centers_,
    )
    yield measure(
        "EM, not private",
        BASE,
        5000,
        runs,
        lambda rows, point, seed: (
            GaussianMixture(point["k"], covariance_type="spherical", n_init=3, random_state=seed).fit(rows).means_
        ),
    )


def digits(runs: int) -> Iterator[list[str]]:
    """scikit-learn's digits, 1,797 records of 64 pixels: no mixture, and far too few; and copies with noise."""
    data = load_digits()
    projected = data.data @ np.linalg.svd(data.data - data.data.mean(axis=0), full_matrices=False)[2][:6].T
    for copies in (1, 20):
        rng = np.random.default_rng(0)
        rows = np.repeat(projected, copies, axis=0) + rng.normal(size=(copies * len(projected), 6)) * (copies > 1)
        labels = np.repeat(data.target, copies)
        for epsilon in (1.0, 8.0):
            statuses, scores = [], []
            for seed in range(runs):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
                    estimator = PrivateGaussianMixture(
                        10, separation=20.0, epsilon=epsilon, delta=DELTA, random_state=seed
                    ).fit(rows)
                statuses.append(estimator.status_)
                if estimator.converged_:
                    scores.append(adjusted_rand_score(labels, estimator.predict(rows)))
            exact = adjusted_rand_score(labels, KMeans(10, n_init=3, random_state=0).fit_predict(rows))
            common = max(set(statuses), key=statuses.count)
            yield [
                f"{copies} x {len(projected):,}",
                f"{epsilon:g}",
                f"{len(scores)}/{runs}",
                common,
                f"{np.mean(scores):.2f}" if scores else "-",
                f"{exact:.2f}",
            ]


def large() -> Iterator[list[str]]:
    """Seconds and memory where there are many records."""
    for n, d in LARGE:
        point = {**BASE, "d": d}
        rows, centres = population(point, n, 7)
        reset_peak_rss()
        before = resident()
        started = time.perf_counter()
        error = matching_error(ours(rows, point, 0), centres)
        seconds = time.perf_counter() - started
        more = (peak_rss() - before) / 2**30
        yield [f"{n:,}", str(d), f"{error:.4f}", f"{seconds:.1f}", f"{rows.nbytes / 2**30:.2f}", f"{more:.2f}"]
        print(n, d, error, seconds, more, flush=True)
        del rows


def _row(found: dict[str, Any]) -> list[str]:
    if "runs" not in found:
        return [found["name"], f"{found['n']:,}", "-", "-", "-", "-"]
    return [
        found["name"],
        f"{found['n']:,}",
        f"{found['success']}/{found['runs']}",
        str(found["none"]),
        f"{found['error']:.3f}",
        f"{found['seconds']:.2g}",
    ]


def _figure(found: list[dict[str, Any]], path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name in ("as in the target", "add_remove, n private"):
        rows = [row for row in found if row["name"] == name]
        axes[0].plot([r["n"] for r in rows], [r["success"] / r["runs"] for r in rows], "o-", label=name)
        axes[1].plot([r["n"] for r in rows], [r["error"] for r in rows], "o-", label=name)
    axes[0].set(xlabel="records", ylabel="share of successes", ylim=(0, 1.05))
    axes[1].set(xlabel="records", ylabel="median error, in scales", ylim=(0, None))
    axes[0].legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixtures", description="Centres of mixtures.")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=20, help="runs of each point (default: %(default)s)")
    parser.add_argument(
        "--high-runs", type=int, default=3, help="runs of each point with d = 64 (default: %(default)s)"
    )
    parser.add_argument("--dimensions-only", action="store_true", help="only the points with d of 16 and more")
    parser.add_argument("--skip-large", action="store_true", help="leave out n = 10^6 and 10^7")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    header = ["setting", "records", "successes", "no answer", "median error", "seconds"]
    command = shlex.join(["python", "-m", "benchmarks.mixtures", *(arguments or sys.argv[1:])])
    sections = [
        f"# Centres of Gaussian mixtures\n\n`{command}`, {describe_machine()}.\n\n{__doc__.split('::')[0].strip()}"
    ]
    started = time.perf_counter()
    # Memory first, while this process is small.
    if not (options.skip_large or options.dimensions_only):
        body = list(large())
        columns = ["records", "columns", "error", "seconds", "GiB of records", "GiB on top of them, at most"]
        sections.append("## Many records\n\n" + markdown_table(columns, body))
    found = []
    points = [point for point in POINTS if not options.dimensions_only or point[1].get("d", 0) >= 16]
    for name, changes, sizes in points:
        for n in sizes:
            found.append(measure(name, {**BASE, **changes}, n, options.runs, ours))
            print(*_row(found[-1]), flush=True)
    sections.append(
        "## Successes and errors\n\nk = 3, d = 8, separation 8, epsilon = 1, delta = 1e-6, centres moved by 10^4, "
        "replace_one, but for what is said.\n\n" + markdown_table(header, [_row(row) for row in found])
    )
    high = []
    for n in HIGH:
        high.append(measure("d = 64", {**BASE, "d": 64}, n, options.high_runs, ours))
        print(*_row(high[-1]), flush=True)
    sections.append("## High dimension\n\n" + markdown_table(header, [_row(row) for row in high]))
    if options.dimensions_only:
        (folder / "mixtures-dimensions.md").write_text("\n\n".join(sections) + "\n")
        return
    others = list(baselines(options.runs))
    sections.append(
        "## Others\n\nCentres at the origin for those that need a ball or a box.\n\n"
        + markdown_table(header, [_row(row) for row in others])
    )
    columns = ["records", "epsilon", "found", "most frequent status", "adjusted Rand index", "of k-means, not private"]
    sections.append(
        "## Digits\n\nscikit-learn's digits on their first 6 principal axes (not computed privately), 10 components, "
        "separation 20, scale estimated. No mixture of spherical Gaussians, and few records; 20 copies of each with "
        "noise added show what more records would do.\n\n" + markdown_table(columns, list(digits(min(options.runs, 5))))
    )
    sections.append(f"Total: {time.perf_counter() - started:.0f} seconds.")
    everything = [*found, *high, *others]
    (raw_folder(folder) / "mixtures.jsonl").write_text("".join(json.dumps(row) + "\n" for row in everything))
    _figure(found, raw_folder(folder) / "mixtures.png")
    path = folder / "mixtures.md"
    path.write_text("\n\n".join(sections) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
