"""Private answers to all parities of up to t binary variables: noise on all, multiplicative weights, perturbed leader.

::

    python -m benchmarks.query_release --quick            # p = 8 and 12, a minute on one core
    python -m benchmarks.query_release --out benchmarks/results
    python -m benchmarks.query_release --pure             # the rows of a pure epsilon alone

Records are drawn from a random sparse binary field: a chain with p/2 more pairs and p/3 triples, of interactions .2 to
.5 in absolute value. The error of an answer is that of the mean over these records (not of the field), so that without
noise it would be 0. Noise comes from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateBinaryMRF
from pgmpy_dp.fields.noisy_parities import ParityPlan, _steps, plan_parities
from pgmpy_dp.fields.operators.parities import ParitySums, parity_sums
from pgmpy_dp.fields.published.perturbed_leader import linear_values
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of, sign_of_size, transform
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.schema import Schema

METHODS = ("noise", "pmw", "sepfem")
PURE = (Budget(epsilon=0.5), Budget(epsilon=2.0))


@dataclass(frozen=True)
class Setting:
    """One point: variables, order, records and budget."""

    p: int
    order: int
    n: int
    budget: Budget

    @property
    def weakness(self) -> float:
        """s: standard deviation of the noise of a mean when all sums get it, root mean squared over them."""
        plan = self.plan("noise")
        if plan.features is None:
            noise = ParitySums.planned(plan.family, self.p, plan.adjacency, False, plan.cost, Fraction(1)).noise[0]
            return math.sqrt(noise.variance) / self.n
        assert isinstance(plan.cost, PureDP)
        (noise,) = plan.features.noise(plan.adjacency, False, plan.cost, Fraction(1))
        return math.sqrt(noise.variance * float((plan.features.deviations**2).mean())) / self.n

    def plan(self, method: str) -> ParityPlan:
        """What is asked, from public numbers."""
        schema = Schema({f"x{j}": [0, 1] for j in range(self.p)})
        chosen = settings_of(PrivateBinaryMRF()).but(order=self.order, method=method)
        return plan_parities(schema, Adjacency.ADD_REMOVE, self.n, chosen, self.budget)


def settings(quick: bool, pure: bool = False) -> list[Setting]:
    """All points; the quick ones leave out p = 16 and 20, the pure ones all but those of an epsilon."""
    of_epsilon = [
        Setting(p, order, n, budget)
        for p, order in ((8, 2), (12, 2), (16, 2), (8, 3), (12, 3))
        for n in (100, 300, 1_000, 10_000)
        for budget in PURE
    ]
    if pure:
        return of_epsilon
    points = [
        Setting(p, order, n, Budget(rho=rho))
        for p in ((8, 12) if quick else (8, 12, 16))
        for order in (2, 3)
        for n in (100, 1_000, 10_000, 100_000)
        for rho in (0.1, 1.0)
    ]
    if not quick:
        points += [Setting(20, 3, n, Budget(rho=0.1)) for n in (1_000, 10_000)]
    return points + of_epsilon


def draw_records(p: int, n: int, seed: int) -> np.ndarray:
    """Codes, shape (n, p), of independent records of a random field of at most 20 variables."""
    rng = np.random.default_rng([seed, p, n])
    subsets = [tuple(sorted((i, (i + 1) % p))) for i in range(p)]
    subsets += [tuple(sorted(rng.choice(p, 2, replace=False).tolist())) for _ in range(p // 2)]
    subsets += [tuple(sorted(rng.choice(p, 3, replace=False).tolist())) for _ in range(p // 3)]
    weights = rng.uniform(0.2, 0.5, len(subsets)) * rng.choice([-1.0, 1.0], len(subsets))
    masks = masks_of(subsets)
    potential = transform(np.bincount(masks, weights * sign_of_size(masks), 1 << p)) + linear_values(
        rng.uniform(-0.2, 0.2, p)
    )
    mass = np.exp(potential - potential.max())
    cells = rng.choice(1 << p, size=n, p=mass / mass.sum())
    return ((cells[:, None] >> np.arange(p)) & 1).astype(np.uint8)


def measure(setting: Setting, method: str, seed: int) -> tuple[float, float, float]:
    """Largest and mean absolute error of the means, and seconds."""
    codes = draw_records(setting.p, setting.n, seed)
    exact = parity_sums(codes, setting.order) / setting.n
    schema = Schema({f"x{j}": [0, 1] for j in range(setting.p)})
    plan = setting.plan(method)
    table = PrivateTable(pd.DataFrame(codes, columns=schema.variables), schema, ledger=setting.budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        state = [seed, METHODS.index(method)]
        pure = isinstance(plan.cost, PureDP)
        curator = TableCurator(table, setting.budget, what=method, columns=[], pure=pure, random_state=state)
    started = time.perf_counter()
    *_, ((sums, *_), _) = _steps(curator, plan)
    seconds = time.perf_counter() - started
    error = np.abs(np.clip(sums / setting.n, -1.0, 1.0) - exact)
    return float(error.max()), float(error.mean()), seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.query_release", description="Answers to all parities.")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="populations of each setting (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="without p = 16 and 20")
    parser.add_argument("--pure", action="store_true", help="the points of a pure epsilon alone")
    parser.add_argument("--first-seed", type=int, default=2000, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    results = {}
    for setting in tqdm(settings(options.quick, options.pure)):
        seeds = range(options.first_seed, options.first_seed + (1 if setting.p == 20 else options.seeds))
        results[setting] = {m: np.mean([measure(setting, m, s) for s in seeds], axis=0) for m in METHODS}
    command = shlex.join(["python", "-m", "benchmarks.query_release", *(arguments or sys.argv[1:])])
    path = Path(options.out) / f"query-release{'-quick' * options.quick}{'-pure' * options.pure}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(results, command, options.seeds))
    print(f"wrote {path}")


def report(results: dict[Setting, dict[str, np.ndarray]], command: str, seeds: int) -> str:
    """The page of results."""
    lines = ["# Answering all parities", "", f"Made by `{command}`", "", f"on {describe_machine()}.", ""]
    lines += [
        f"Errors of the means, clipped to [-1, 1], over {seeds} populations (one at p = 20): largest / mean over all",
        "parities of up to t of p variables. s is the standard deviation of the noise of a mean if all sums get noise.",
        "The last column is the mean absolute parity, the error of answering 0. add_remove, n public, default rounds.",
        "",
    ]
    rows = []
    for setting, by_method in results.items():
        best = min(METHODS, key=lambda m: by_method[m][0])
        cells = [
            f"**{e[0]:.3f}** / {e[1]:.3f}" if m == best else f"{e[0]:.3f} / {e[1]:.3f}" for m, e in by_method.items()
        ]
        exact = parity_sums(draw_records(setting.p, setting.n, 0), setting.order) / setting.n
        seconds = " / ".join(f"{by_method[m][2]:.2g}" for m in METHODS)
        rows.append(
            [setting.p, setting.order, f"{setting.n:,}", setting.budget, f"{setting.weakness:.3f}", *cells, seconds]
            + [f"{np.abs(exact).mean():.3f}"]
        )
    header = ["p", "t", "n", "budget", "s", *METHODS, "seconds", "answering 0"]
    lines += [markdown_table(header, [[str(cell) for cell in row] for row in rows]), "", *_verdict(results)]
    return "\n".join(lines) + "\n"


def _verdict(results: dict[Setting, dict[str, np.ndarray]]) -> list[str]:
    """Who wins where, counted."""
    lines = [
        "## Who wins where",
        "",
        "Largest error, number of settings won, and geometric mean of pmw's over noise's:",
        "",
    ]
    rows = []
    bands = ((0.0, 0.003), (0.003, 0.01), (0.01, 0.03), (0.03, 0.1), (0.1, 0.3), (0.3, math.inf))
    for kind, (low, high) in itertools.product(("zCDP", "DP"), bands):
        inside = [
            r
            for setting, r in results.items()
            if low <= setting.weakness < high and (setting.budget.rho is None) == (kind == "DP")
        ]
        if inside:
            wins = [sum(min(METHODS, key=lambda m: r[m][0]) == method for r in inside) for method in METHODS]
            ratios = [np.exp(np.mean([math.log(r["pmw"][k] / r["noise"][k]) for r in inside])) for k in (0, 1)]
            name = f"{low:g} to {high:g}" if math.isfinite(high) else f"above {low:g}"
            rows.append([kind, name, *map(str, wins), f"{ratios[0]:.2f}", f"{ratios[1]:.2f}"])
    lines.append(markdown_table(["budget", "s", *METHODS, "pmw/noise, largest", "pmw/noise, mean"], rows))
    return lines


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main()
