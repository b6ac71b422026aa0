"""Whether intervals of a regression hold better for its question of products, with close covariates and without.

::

    python -m benchmarks.regression_products --out benchmarks/results

`regress` asks between its rounds how covariates go together along the first step. Here it is run beside two rounds of a
quarter and three quarters that ask for no products, on noisy sums over all rows of a table: the exact ones of its
cells, with Gaussian noise of what the boundary draws. Numbers are cut at quantiles, and count as their cell's median.
Networks are learned with default settings from the same rows; `regress` has two fifths of the rho, `learn` three.

"Records": how often intervals of level .9 with the noise alone hold the coefficients of the rows themselves.
"Population": the same of whole intervals, and coefficients that differ from these by an error of sampling. "Lowest" is
the worst coefficient's. "Bias" is the mean error of a coefficient on one network, in standard errors: the mean, and the
largest. "Width" is the median standard error over that without privacy. Coefficients without an interval are left out.
The question was chosen on affairs and telco. Diamonds are near separation: few records decide, of which products of all
say little. Bank's covariates hardly depend on each other. A share of .9 has a standard error of .015 or more.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config
from scipy.special import expit

from benchmarks.data import find
from benchmarks.folders import raw_folder
from benchmarks.regressions import Z90
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, MarkovNetwork, Schema, learn
from pgmpy_dp.models.placed_model import PlacedModel
from pgmpy_dp.models.regression import score_rounds
from pgmpy_dp.models.regression.formula import States, analysis_of
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.models.regression.score_rounds import Round
from pgmpy_dp.private.operators.score_sums import COUNT, GRID, POINT, SHAPE, VALUE, ScoreSums

RHOS, NETWORKS, FITS = (0.087, 0.18), 3, 24
TABLES: dict[str, tuple[str, int | None, dict[str, int], list[Any], str]] = {
    "affairs": (
        "fair of statsmodels", None,
        {
            **dict.fromkeys(("rate_marriage", "age", "yrs_married", "children"), 0),
            **dict.fromkeys(("religious", "educ", "occupation", "occupation_husb"), 0),
        },
        [("affair", "affairs", lambda v: v > 0)],
        "affair ~ occupation + educ + occupation_husb + rate_marriage + age + yrs_married + children + religious",
    ),
    "diamonds": (
        "diamonds.csv", 12_000, dict.fromkeys(("carat", "depth", "table", "x", "y"), 8),
        [("dear", "price", lambda v: v > 2401), "cut", "color"], "dear ~ carat + x + depth + table + cut",
    ),
    "telco": (
        "telco-churn.csv", None, dict.fromkeys(("tenure", "MonthlyCharges", "TotalCharges"), 8),
        ["Contract", "PaperlessBilling", "InternetService", "Churn"],
        "Churn ~ tenure + MonthlyCharges + TotalCharges + Contract + PaperlessBilling",
    ),
    "parkinsons": (
        "parkinsons_updrs.csv.gz", None,
        {**dict.fromkeys(("age", "Jitter", "Shimmer", "NHR", "HNR", "RPDE", "PPE"), 8), "total_UPDRS": 10},
        ["sex"], "total_UPDRS ~ age + sex + Jitter + Shimmer + NHR + HNR + PPE",
    ),
    "taxi": (
        "nist-taxi.zip", 15_000, {"trip_miles": 8, "trip_seconds": 8, "fare": 8, "tips": 5},
        [("pay", "payment_type", lambda v: v != 2), "shift"], "pay ~ trip_miles + trip_seconds + fare",
    ),
    "bank": (
        "bank-churn.csv", None, {"CreditScore": 6, "Age": 8, "Tenure": 6, "EstimatedSalary": 6},
        ["IsActiveMember", "HasCrCard", "Gender", "Geography", "Exited"],
        "Exited ~ CreditScore + Age + Tenure + EstimatedSalary + HasCrCard + IsActiveMember",
    ),
}  # fmt: skip
"""File, rows drawn of it, cells of each number (0: its values), other columns or (name, column, what is 1), formula."""


def read(name: str) -> tuple[pd.DataFrame, dict[str, list[float]], dict[str, list[Any]]]:
    """A table, the values of its numbers, and the states of its other columns."""
    file, sample, numbers, others, _ = TABLES[name]
    if name == "affairs":
        rows = importlib.import_module("statsmodels.api").datasets.fair.load_pandas().data
    else:
        rows = pd.read_csv(find(file) / file)
    rows = (rows if sample is None else rows.sample(sample, random_state=1)).rename(columns={"Jitter(%)": "Jitter"})
    made, medians = {}, {}
    for one, k in numbers.items():
        values = pd.to_numeric(rows[one], errors="coerce").fillna(0).to_numpy(float)
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, k + 1))[1:-1] if k else values[values > values.min()])
        which = np.searchsorted(cuts, values, side="right")
        middle = np.round([np.median(values[which == j]) for j in range(len(cuts) + 1)], 6)
        made[one], medians[one] = middle[which], middle.tolist()
    for one in others:
        made[one if isinstance(one, str) else one[0]] = (
            rows[one].to_numpy() if isinstance(one, str) else one[2](rows[one[1]]).to_numpy().astype(int)
        )
    states = {one: np.unique(values).tolist() for one, values in made.items() if one not in medians}
    return pd.DataFrame(made), medians, states


@dataclass(frozen=True, eq=False)
class Sums:
    """What a curator would answer of n records in the cells of these equations."""

    records: ScoreEquations
    n: int
    rho: float
    rng: np.random.Generator

    def noise(self, asked: ScoreSums, share: Fraction) -> tuple[SimpleNamespace]:
        """Its variance, with a little more than that of the rho, as the boundary draws it."""
        return (SimpleNamespace(variance=1.05**2 * GRID**2 / (2 * self.rho * float(share))),)

    def ask(self, asked: ScoreSums, share: Fraction) -> np.ndarray:
        """Noisy sums."""
        x, predictor = self.records.x, self.records.x @ np.array(asked.point) / POINT
        y = self.records.y * any(asked.response[1])
        residual = y - (expit(predictor) if asked.family == "logit" else predictor)
        v = (x * np.clip(residual, -4, 4)[:, None]) @ np.asarray(asked.shape).T / SHAPE
        v = v / np.maximum(np.sqrt((v**2).sum(axis=1) + (COUNT / GRID) ** 2), 1.0)[:, None]
        sums = self.n * GRID * np.append(self.records.probability @ v, COUNT / GRID)
        return sums + np.sqrt(self.noise(asked, share)[0].variance) * self.rng.standard_normal(len(sums))


def without_products(
    curator: Sums, one: ScoreEquations, asked: ScoreSums, orders: Any, parts: Any
) -> tuple[ScoreEquations, list[Round], float, float]:
    """Two rounds that ask for no products; as `in_rounds`."""
    made: list[Round] = []
    counted, precision = 0.0, 0.0
    for share in (Fraction(1, 4), Fraction(3, 4)):
        asked = score_rounds.question(one, made[-1].next_point(one), orders) if made else asked
        (noise,), sums = curator.noise(asked, share), curator.ask(asked, share)
        counted, precision = counted + sums[-1] / noise.variance, precision + 1 / noise.variance
        made.append(Round.of(one, asked, sums, noise, max(counted / precision / COUNT, 1.0)))  # type: ignore[arg-type]
    return one, made, max(counted / precision / COUNT, 1.0), 1.0 / (COUNT * np.sqrt(precision))


METHODS = {"nothing": without_products, "products": score_rounds.in_rounds}


def of_network(name: str, rho: float, seed: int, fits: int, folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Errors, deviations and where there are intervals, of fits around one network, by method."""
    (rows, medians, states), formula = read(name), TABLES[name][-1]
    path = folder / f"regression-products-{name}-{rho:g}-{seed}.npz"
    if not path.exists():
        learn(rows, Budget(rho=0.6 * rho), Schema({**medians, **states}), random_state=seed).model_.save(path)
    placed = PlacedModel.of_network(MarkovNetwork.load(path))
    scores = {one: {value: value for value in values} for one, values in medians.items()}
    analysis = analysis_of(formula, States.checked(placed, scores), "linear" if name == "parkinsons" else "logit")
    model = ScoreEquations.of(analysis, placed.model)
    places = [rows[one].map({state: k for k, state in enumerate(placed.states[one])}) for one in analysis.variables]
    cells, counts = np.unique(np.stack(places, axis=1), axis=0, return_counts=True)
    y = analysis.response[1][cells[:, 0]] / VALUE
    records = ScoreEquations(analysis, analysis.design(cells, scaled=True), y, counts / len(rows), model.back, 1.0)
    root = records.root(1e-9)
    truth = records.back @ root * analysis.unit + np.eye(len(root))[0] * analysis.origin
    sampling = records.sampling(root) / len(rows) * analysis.unit**2
    drawn = np.random.default_rng(1).standard_normal((fits, len(root))) @ np.linalg.cholesky(sampling).T
    first = score_rounds.question(model, model.root(0.1 / len(rows)), {})
    made = {}
    for method, rounds in METHODS.items():
        told = []
        for k in range(fits):
            curator = Sums(records, len(rows), 0.4 * rho, np.random.default_rng([seed, k, 5]))
            result = score_rounds._result(*rounds(curator, model, first, {}, score_rounds.shares(1, 2)), 1)  # type: ignore[arg-type]
            noise, error = np.diag(result["cov_noise"]), np.array(result["params"]) - truth
            inside = ~np.array(result["no_interval"]) & (result["status"] not in ("far", "few"))
            total = np.sqrt(noise + np.diag(result["cov_sampling"]))
            told.append((error, np.sqrt(noise), total, error + drawn[k], inside, np.sqrt(np.diag(sampling))))
        names = ("error", "noise", "total", "drawn", "inside", "plain")
        made[method] = dict(zip(names, map(np.array, zip(*told, strict=True)), strict=True))
    return made


def line(some: list[dict[str, np.ndarray]]) -> list[str]:
    """Of networks: coverage of the records' and the population's coefficients, bias and width."""
    told = []
    for error, deviation in (("error", "noise"), ("drawn", "total")):
        held = [np.where(o["inside"], np.abs(o[error]) <= Z90 * o[deviation], np.nan) for o in some]
        each = np.concatenate(held)
        often = np.isfinite(each).mean(axis=0) >= 1 / 12
        told += [f"{np.nanmean(each):.3f}", f"{np.nanmean(each[:, often], axis=0).min():.2f}"]
    rms = [np.sqrt((o["total"] ** 2).mean(axis=0)) for o in some]
    bias = [np.abs(o["error"].mean(axis=0)) / each for o, each in zip(some, rms, strict=True)]
    width = np.median([each / o["plain"][0] for o, each in zip(some, rms, strict=True)])
    return [*told, f"{np.mean(bias):.2f}", f"{np.max(bias):.2f}", f"{width:.2f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression_products")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--fits", type=int, default=FITS, help="around each network (default: %(default)s)")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    config.set_show_progress(False)
    rows = []
    for name in options.tables:
        for rho in RHOS:
            made = [of_network(name, rho, seed, options.fits, raw_folder(out)) for seed in range(NETWORKS)]
            for method in METHODS:
                rows.append([name, f"{rho:g}", method, *line([one[method] for one in made])])
                print(*rows[-1], flush=True)
    write(out, rows)


def write(out: Path, rows: list[list[str]]) -> None:
    """The page of results, in the order of `TABLES`: the worst first."""
    header = ["table", "rho", "asked", "records", "lowest", "population", "lowest", "bias", "largest", "width"]
    command = "python -m benchmarks.regression_products"
    text = (__doc__ or "").replace(f"::\n\n    {command} --out benchmarks/results\n\n", "")
    head = f"# The question of products\n\n`{command}`, {describe_machine()}\n\n{text}\n"
    (out / "regression-products.md").write_text(head + markdown_table(header, rows) + "\n")


if __name__ == "__main__":
    main()
