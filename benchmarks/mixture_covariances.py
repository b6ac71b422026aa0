"""Covariances of mixtures' components, numbers of components from the cells, and signs of too few of them.

::

    python -m benchmarks.mixture_covariances             # about 20 minutes on one core
    python -m benchmarks.mixture_covariances --runs 20   # more runs of each point

Centres as in `benchmarks.mixtures`, at distance 8, moved by 10^4; epsilon = 1, delta = 1e-6, replace_one. Standard
deviations are drawn uniformly: one scale of 1 for all; "spherical" .5 to 1.2 for each component; "diag" .4 to 1.25 for
each column of each; "tied" and "full" the same along random axes. The public scale is 1 for all of them. The loss is
the mean log-density of 4,000 new records under the true mixture less that under the released one, in nats. Noise comes
from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.gaussian_mixture import log_density, matching_error, random_centres, sample_mixture
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA, SEPARATION, SHIFT = 1e-6, 8.0, 1e4
ENOUGH = 0.1  # nats
KINDS: tuple[str | None, ...] = (None, "spherical", "diag", "tied", "full")
GROWTH = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
SIZES = [(2, 2, 1500, KINDS), (3, 8, 3000, KINDS), (5, 8, 6000, KINDS), (3, 32, 12_000, (None, "spherical", "diag"))]
CUT = [(5.0, "spherical", 3, 4, 20_000), (4.0, "spherical", 2, 2, 20_000), (5.0, "full", 2, 4, 40_000)]
AUTO: list[tuple[int, int, int, int, dict[str, Any]]] = [  # k, at most, d, n
    (1, 5, 8, 3000, {}),
    (3, 3, 8, 4500, {}),
    (3, 6, 8, 4500, {}),
    (3, 6, 8, 6000, {}),
    (3, 10, 8, 6000, {}),
    (5, 10, 8, 9000, {}),
    (8, 10, 8, 18_000, {}),
    (3, 6, 2, 3000, {}),
    (3, 6, 32, 18_000, {}),
    (3, 6, 32, 36_000, {}),
    (3, 6, 8, 16_000, {"weights": (0.6, 0.3, 0.1)}),
    (3, 6, 8, 9000, {"scale": None}),
    (3, 6, 8, 9000, {"separation": 5.0}),
]
FEWER = [(2, 3, 8, 6000), (3, 3, 8, 6000), (3, 4, 2, 9000), (4, 4, 2, 9000), (3, 5, 8, 12_000), (5, 5, 8, 12_000)]


def roots(kind: str | None, k: int, d: int, rng: np.random.Generator) -> float | np.ndarray:
    """Of made-up covariances."""
    if kind is None:
        return 1.0
    if kind in ("spherical", "diag"):
        return rng.uniform(0.5, 1.2, k) if kind == "spherical" else rng.uniform(0.4, 1.25, (k, d))
    found = []
    for _ in range(1 if kind == "tied" else k):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        found.append(np.linalg.cholesky((axes * rng.uniform(0.4, 1.25, d) ** 2) @ axes.T))
    return np.repeat(found, k // len(found), axis=0)


def fitted(rows: np.ndarray, seed: int, k: int | str, **options: Any) -> PrivateGaussianMixture:
    """By the settings of this page."""
    given = {"separation": SEPARATION, "scale": 1.0} | options
    estimator = PrivateGaussianMixture(
        k,
        epsilon=1.0,
        delta=DELTA,
        adjacency="replace_one",
        n_records=len(rows),
        random_state=seed,
        **given,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        return estimator.fit(rows)


def losses(
    kind: str | None, k: int, d: int, n: int, runs: int, separation: float = SEPARATION, fit: Sequence[str | None] = ()
) -> Iterator[dict[str, Any]]:
    """Of each run: loss of each type of covariances, error of the centres, seconds, loss without privacy."""
    for seed in range(runs):
        rng = np.random.default_rng([5000 + seed, n, k, d])
        centres = random_centres(k, d, separation, rng, shift=SHIFT)
        spread, weights = roots(kind, k, d, rng), np.full(k, 1.0 / k)
        rows, _ = sample_mixture(centres, weights, spread, n, rng)
        new, _ = sample_mixture(centres, weights, spread, 4000, rng)
        best = float(log_density(new, centres, weights, spread).mean())
        for asked in fit or (kind,):
            started = time.perf_counter()
            model = fitted(rows, seed, k, separation=separation, covariance_type=asked)
            seconds = time.perf_counter() - started
            exact = GaussianMixture(k, covariance_type=asked or "spherical", means_init=centres, random_state=0)
            yield {
                "asked": asked,
                "loss": best - model.score(new) if model.converged_ else math.inf,
                "error": matching_error(model.means_, centres),
                "seconds": seconds,
                "exact": best - float(exact.fit(rows).score(new)),
            }


def needed(runs: int) -> Iterator[list[str]]:
    """The smallest number of records tried at which four fifths of the runs lose little enough."""
    for k, d, least, kinds in SIZES:
        for kind in kinds:
            for growth in GROWTH:
                n = int(growth * least)
                found = list(losses(kind, k, d, n, runs))
                good = sum(run["loss"] <= ENOUGH for run in found)
                if 5 * good >= 4 * runs:
                    break
            middle, exact, seconds = (
                float(np.median([run[key] for run in found])) for key in ("loss", "exact", "seconds")
            )
            row = [str(k), str(d), kind or "one scale", f"{n:,}", f"{good}/{runs}", f"{middle:.3f}", f"{exact:.3f}"]
            yield [*row, f"{seconds:.1f}"]
            print(*row, flush=True)


def cut(runs: int) -> Iterator[list[str]]:
    """Components that are near to one another and of other scales: what assignment to the nearest centre cuts off."""
    for separation, kind, k, d, n in CUT:
        found = list(losses(kind, k, d, n, runs, separation, fit=(None, kind)))
        for asked in (None, kind):
            some = [run for run in found if run["asked"] == asked]
            middles = [float(np.median([run[key] for run in some])) for key in ("error", "loss", "exact")]
            row = [
                f"{separation:g}",
                str(k),
                str(d),
                f"{n:,}",
                kind,
                asked or "one scale",
                *(f"{m:.3f}" for m in middles),
            ]
            yield row
            print(*row, flush=True)


def automatic(runs: int) -> Iterator[list[str]]:
    """Numbers of components by the cells, beside a known k."""
    for k, most, d, n, changes in AUTO:
        options = dict(changes)
        weights = np.array(options.pop("weights", np.full(k, 1.0 / k)))
        separation = options.get("separation", SEPARATION)
        numbers: Counter[int] = Counter()
        right, known, flagged = [], [], 0
        for seed in range(runs):
            rng = np.random.default_rng([6000 + seed, n, k, d])
            centres = random_centres(k, d, separation, rng, shift=SHIFT)
            rows, _ = sample_mixture(centres, weights, 1.0, n, rng)
            model = fitted(rows, seed, "auto", max_components=most, **options)
            numbers[model.n_components_] += 1
            flagged += "looks too small" in model.status_
            right.append(matching_error(model.means_, centres))
            known.append(matching_error(fitted(rows, seed, k, **options).means_, centres))
        said = ", ".join(f"{name}={value}" for name, value in changes.items())
        errors = [f"{sum(e <= 1.0 for e in each)}/{runs}, {np.median(each):.2f}" for each in (right, known)]
        found = ", ".join(f"{number} ({times})" for number, times in sorted(numbers.items()))
        row = [str(k), str(most), str(d), f"{n:,}", said, found, *errors, str(flagged)]
        yield row
        print(*row, flush=True)


def signs(runs: int) -> Iterator[list[str]]:
    """How often `status_` says that there are more groups than components, where there are and where not."""
    for k, true, d, n in FEWER:
        found = Counter()
        for seed in range(runs):
            rng = np.random.default_rng([7000 + seed, n, true, d])
            centres = random_centres(true, d, SEPARATION, rng, shift=SHIFT)
            model = fitted(sample_mixture(centres, np.full(true, 1.0 / true), 1.0, n, rng)[0], seed, k)
            found["found"] += model.converged_
            found["small"] += "looks too small" in model.status_
        row = [str(k), str(true), str(d), f"{n:,}", f"{found['found']}/{runs}", f"{found['small']}/{runs}"]
        yield row
        print(*row, flush=True)


PARTS: dict[str, tuple[str, str, list[str], Callable[[int], Iterator[list[str]]]]] = {
    "needed": (
        "Records needed",
        f"The first number of records at which four fifths of the runs lose at most {ENOUGH} nats; tried are "
        f"{', '.join(f'{growth:g}' for growth in GROWTH)} times the least.",
        ["k", "d", "covariances", "records needed", "runs", "median loss", "of EM, not private", "seconds"],
        needed,
    ),
    "cut": (
        "Components that are near to one another",
        "Equal weights. The error is that of the worst centre.",
        ["separation", "k", "d", "records", "truth", "fit", "error", "loss", "loss of EM, not private"],
        cut,
    ),
    "auto": (
        "The number of components from the cells",
        "A success has every centre within 1 of a true one, and as many; the error is the median.",
        ["k", "at most", "d", "records", "", "k found (runs)", "auto: successes, error", "known k", "says too small"],
        automatic,
    ),
    "signs": (
        "Fits with too few components, and with enough",
        "How often `status_` says that `n_components` looks too small.",
        ["k of the fit", "groups", "d", "records", "centres found", "says that k is too small"],
        signs,
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixture_covariances", description=__doc__.split("::")[0]
    )
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="runs of each point (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all of them")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.mixture_covariances", *(arguments or sys.argv[1:])])
    started = time.perf_counter()
    text = [
        f"# Covariances and numbers of components of mixtures\n\n`{command}`, {describe_machine()}.",
        " ".join(__doc__.split("::")[1].split("\n\n", 2)[2].split()),
    ]
    for name in options.parts:
        title, said, columns, rows = PARTS[name]
        text.append(f"## {title}\n\n{said}\n\n" + markdown_table(columns, list(rows(options.runs))))
    text.append(f"Total: {time.perf_counter() - started:.0f} seconds.")
    path = folder / "mixture-covariances.md"
    path.write_text("\n\n".join(text) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
