"""How often the intervals of private regressions hold, how wide they are, and how often a null is rejected.

::

    python -m benchmarks.regressions --out benchmarks/results

Each table is taken as the population: its rows, drawn with replacement, with one more covariate z that depends on a
covariate and not on the response. `learn` has four fifths of the rho that converts to (epsilon, 1e-9), with its default
settings, and `regress` the last fifth, on other record sets than the network was learned from. Coverage is of intervals
of level .9 for the population's coefficients; standard errors are clustered by network. "Width" is the median over
coefficients of the standard error over that of a regression without privacy on as many records; "forecast" the median
of what was foretold over what it was. "z" is how often an interval of .9 excludes 0 for the null covariate.

Runs that were made are kept, and the command goes on where it ended. MST is run where PRIVATE_PGM names a folder with
the source of private-pgm, as for `benchmarks.compare`. The method was chosen on Adult and on another
table that is not here. On the tables of churn and recidivism nothing was chosen but when a model is said to be too far,
which poor networks of Adult and of recidivism decided.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare import environment
from benchmarks.data import FOLDERS
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, MarkovNetwork, Number, Schema, learn, plan
from pgmpy_dp.models.regression.declared_analyses import regress
from pgmpy_dp.models.regression.formula import Analysis, States, analysis_of
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.private import accounting
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.reading.frames import encode

Z90 = 1.6448536269514722
SHARE = 0.2  # of rho, for the regression
DELTA = 1e-9


@dataclass(frozen=True)
class Population:
    """A table with a regression of it.

    Parameters
    ----------
    rows : pandas.DataFrame
    schema : Schema
        With "z".
    formula, family : str
    depends : callable
        From the rows to a mask: where z is 1 with probability .85, and .15 elsewhere.
    how : dict
        Further arguments of `regress`.
    """

    rows: pd.DataFrame
    schema: Schema
    formula: str
    family: str
    high: np.ndarray
    how: dict[str, Any]

    def sample(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Records drawn with replacement, with z."""
        chosen = rng.integers(len(self.rows), size=n)
        z = (rng.random(n) < np.where(self.high[chosen], 0.85, 0.15)).astype(int)
        return self.rows.iloc[chosen].reset_index(drop=True).assign(z=z)

    def analysis(self) -> Analysis:
        """The analysis in the states of the schema."""
        middles = {name: number.centres for name, number in self.schema.numbers.items()}
        states = States(self.schema.states, middles, {}, self.how.get("scores", {}))
        return analysis_of(self.formula, states, self.family)

    def equations(self, analysis: Analysis) -> ScoreEquations:
        """Score equations of the population itself."""
        both = pd.concat([self.rows.assign(z=z) for z in (0, 1)], ignore_index=True)
        weights = np.concatenate([np.where(self.high, 0.15, 0.85), np.where(self.high, 0.85, 0.15)])
        return of_cells(analysis, self.codes(analysis, both), weights)

    def codes(self, analysis: Analysis, records: pd.DataFrame) -> np.ndarray:
        """Codes of records in the variables of the analysis."""
        schema = self.schema.subset(analysis.variables)
        codes = encode(records, schema)
        return codes[:, [list(schema.variables).index(name) for name in analysis.variables]].astype(np.int64)


def of_cells(analysis: Analysis, codes: np.ndarray, weights: np.ndarray) -> ScoreEquations:
    """Score equations of weighted records."""
    cells, which = np.unique(codes, axis=0, return_inverse=True)
    probability = np.bincount(which.ravel(), weights)
    x, y = analysis.design(cells, scaled=False), analysis.response[1][cells[:, 0]] / (1 << 16) * analysis.unit
    scale = np.abs(x).max(axis=0)
    return ScoreEquations(
        analysis, x / scale, y + analysis.origin, probability / probability.sum(), np.diag(1 / scale), 1.0
    )


def adult() -> Population | None:
    """Income of more than 50,000 by five scores, sex with marriage, and a null: nine coefficients."""
    folder = next((f for f in FOLDERS if (f / "adult_disc.csv.gz").exists()), None)
    if folder is None:
        return None
    rows = pd.read_csv(folder / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
    states = dict(Schema.from_json(folder / "adult_disc.domain.json").states)
    degrees = {"Bachelors", "Masters", "Doctorate", "Prof-school"}
    scores = {
        "age": {s: float(k) for k, s in enumerate(states["age"])},
        "hours-per-week": {s: float(k) for k, s in enumerate(states["hours-per-week"])},
        "education": {s: float(s in degrees) for s in states["education"]},
        "marital-status": {s: float(s.startswith("Married")) for s in states["marital-status"]},
        "race": {s: float(s == "White") for s in states["race"]},
        "sex": {s: float(s == "Female") for s in states["sex"]},
    }
    formula = "income ~ age + education + `hours-per-week` + race + sex*`marital-status` + z"
    schema = Schema({**states, "z": [0, 1]})
    high = (rows["sex"] == "Female").to_numpy()
    return Population(rows, schema, formula, "logit", high, {"scores": scores})


def churn() -> Population | None:
    """Customers who leave, by numbers, categories and an interaction: ten coefficients."""
    file = next((f / "telco-churn.csv" for f in FOLDERS if (f / "telco-churn.csv").exists()), None)
    if file is None:
        return None
    names = ["SeniorCitizen", "Partner", "Dependents", "tenure", "InternetService", "Contract", "PaperlessBilling"]
    names += ["PaymentMethod", "MonthlyCharges", "Churn"]
    rows = pd.read_csv(file)[names]
    numbers = {
        "tenure": Number(0, 72, cuts=[6, 12, 24, 36, 48, 60], resolution=1, missing="drop"),
        "MonthlyCharges": Number(0, 120, cuts=[20, 40, 60, 80, 100], missing="drop"),
    }
    states = {name: numbers.get(name) or sorted(rows[name].unique().tolist()) for name in names}
    formula = "Churn ~ tenure + MonthlyCharges + Contract + InternetService + SeniorCitizen*PaperlessBilling + z"
    high = (rows["PaperlessBilling"] == "Yes").to_numpy()
    return Population(rows, Schema({**states, "z": [0, 1]}), formula, "logit", high, {})


def recidivism() -> Population | None:
    """Arrests within two years, by age, sex, race with rare groups, and priors: twelve coefficients."""
    file = next((f / "compas-two-years.csv" for f in FOLDERS if (f / "compas-two-years.csv").exists()), None)
    if file is None:
        return None
    names = ["sex", "age_cat", "race", "priors_count", "c_charge_degree", "score_text", "two_year_recid"]
    rows = pd.read_csv(file)[names]
    priors = Number(0, 40, cuts=[1, 2, 4, 8, 16], resolution=1, missing="drop")
    states: dict[str, Any] = {name: sorted(rows[name].unique().tolist()) for name in names}
    formula = "two_year_recid ~ sex + age_cat + race + priors_count + c_charge_degree + z"
    high = (rows["sex"] == "Female").to_numpy()
    return Population(rows, Schema({**states, "priors_count": priors, "z": [0, 1]}), formula, "logit", high, {})


def hours() -> Population | None:
    """Adult's hours of work, as a number: a linear regression of eight coefficients."""
    base = adult()
    if base is None:
        return None
    formula = "`hours-per-week` ~ age + education + race + sex*`marital-status` + z"
    return Population(base.rows, base.schema, formula, "linear", base.high, base.how)


def charges() -> Population | None:
    """The customers' monthly charges: a linear regression."""
    base = churn()
    if base is None:
        return None
    formula = "MonthlyCharges ~ tenure + Contract + Partner + PaperlessBilling + z"
    return Population(base.rows, base.schema, formula, "linear", base.high, base.how)


TABLES = {"adult": adult, "churn": churn, "recidivism": recidivism, "hours": hours, "charges": charges}
_NETWORK_OF = {"hours": "adult", "charges": "churn"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regressions", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--records", nargs="+", type=int, default=[5_000, 20_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--networks", type=int, default=10, help="of each setting (default: %(default)s)")
    parser.add_argument("--sets", type=int, default=40, help="record sets around each network (default: %(default)s)")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    file, done = raw_folder(out) / "regressions.jsonl", set()
    rows: list[dict[str, Any]] = []
    if file.exists():
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        done = {(row["table"], row["n"], row["epsilon"], row["network"]) for row in rows}
    populations = {name: TABLES[name]() for name in options.tables}
    for name in [name for name, population in populations.items() if population is None]:
        print(f"{name}: its file is not there; python -m benchmarks.data says where to get it")
        del populations[name]
    # Every setting once, then again: what there is so far is of all of them.
    settings = itertools.product(range(options.networks), populations, options.records, options.epsilons)
    for network, name, n, epsilon in settings:
        if (name, n, epsilon, network) in done:
            continue
        row = of_network(name, populations[name], n, epsilon, network, options.sets, raw_folder(out))
        rows.append(row)
        with file.open("a") as log:
            log.write(json.dumps(row) + "\n")
        print(name, n, epsilon, network, row["seconds"], summary([row]), flush=True)
    command = shlex.join(["python", "-m", "benchmarks.regressions", *(arguments or sys.argv[1:])])
    beside = {what: compared(what, populations, rows, raw_folder(out)) for what in BESIDE}
    (out / "regressions.md").write_text(page(rows, beside, command))


def compared(
    what: str, populations: Mapping[str, Population], rows: Sequence[dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """What synthetic records say beside each row; what was made before is kept, and what cannot be made is left out."""
    file = folder / f"regressions-{what}.jsonl"
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    seen = {(one["table"], one["n"], one["epsilon"], one["network"]) for one in known}
    for row in rows:
        population = populations.get(row["table"])
        if population and (row["table"], row["n"], row["epsilon"], row["network"]) not in seen:
            made = BESIDE[what](population, row, folder)
            if made is None:
                break
            known.append(made)
            with file.open("a") as log:
                log.write(json.dumps(made) + "\n")
    return known


def network_of(name: str, population: Population, n: int, epsilon: float, seed: int, folder: Path) -> MarkovNetwork:
    """A network that `learn` made of records of its own, kept in a file."""
    path = folder / f"regressions-{_NETWORK_OF.get(name, name)}-{n}-{epsilon:g}-{seed}.npz"
    if path.exists():
        return MarkovNetwork.load(path)
    records = population.sample(n, np.random.default_rng([7, seed, n]))
    rho = accounting.approx_to_zcdp(epsilon, DELTA)
    model = learn(records, Budget(rho=(1 - SHARE) * rho), population.schema, random_state=seed).model_
    model.save(path)
    return model


def of_network(
    name: str, population: Population, n: int, epsilon: float, seed: int, sets: int, folder: Path
) -> dict[str, Any]:
    """All record sets around one network: errors and standard errors of each, over those without privacy."""
    begun = time.process_time()
    network = network_of(name, population, n, epsilon, seed, folder)
    analysis = population.analysis()
    equations = population.equations(analysis)
    truth = equations.root(0.0)
    plain = np.sqrt(np.diag(equations.sampling(truth)) / n)
    truth = equations.back @ truth
    budget = Budget(rho=SHARE * accounting.approx_to_zcdp(epsilon, DELTA))
    how: dict[str, Any] = {"family": population.family, "schema": population.schema, **population.how}
    planned = {key: value for key, value in how.items() if key != "schema"}
    forecast = plan(network, budget, n, formula=population.formula, **planned).table["bse"].to_numpy()
    made: dict[str, list] = {"errors": [], "errors_plain": [], "deviations": [], "deviations_plain": []}
    made |= {"without_interval": [], "steps": []}
    statuses, model_errors = [], []
    rng = np.random.default_rng([11, seed, n, round(10 * epsilon)])
    for number in range(sets):
        records = population.sample(n, rng)
        fit = regress(
            network, population.formula, records, budget, others=True, random_state=int(rng.integers(2**31)), **how
        )
        assert list(fit.params.index) == [column.name for column in analysis.columns]
        own = of_cells(analysis, population.codes(analysis, records), np.ones(n))
        without = own.root(1e-6 / n)
        made["errors"].append(((fit.params - truth) / plain).round(4).tolist())
        made["deviations"].append((np.sqrt(np.diag(fit.cov_params())) / plain).round(4).tolist())
        made["without_interval"].append(list(fit.release_.public["analyses"][0]["no_interval"]))
        made["steps"].append(round(fit.release_.public["analyses"][0]["step"], 2))
        made["errors_plain"].append(((own.back @ without - truth) / plain).round(4).tolist())
        spread = np.sqrt(np.diag(own.sampling(without)) / n)
        made["deviations_plain"].append((spread / plain).round(4).tolist())
        statuses.append(fit.status)
        if number == 0:
            model_errors = ((fit.network_params - truth) / plain).round(3).tolist()
    return {
        **{"table": name, "n": n, "epsilon": epsilon, "network": seed, "sets": sets},
        **made,
        **{"statuses": statuses, "model_errors": model_errors, "names": list(fit.params.index)},
        **{"forecast": (forecast / plain).round(4).tolist(), "seconds": round(time.process_time() - begun, 1)},
    }


def of_synthetic(population: Population, row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Agreement of synthetic sets that are drawn from the network, each of as many records; see `agreement`."""
    name, n, epsilon, seed = row["table"], row["n"], row["epsilon"], row["network"]
    network, analysis = network_of(name, population, n, epsilon, seed, folder), population.analysis()
    drawn = (network.sample(n, number, method="independent") for number in range(5))
    return agreement(population, row, [population.codes(analysis, records) for records in drawn])


def of_mst(population: Population, row: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """Agreement of the synthetic records of MST, of the records of the network and the whole epsilon; see `agreement`.

    None where the source of private-pgm is not there (:data:`benchmarks.compare.PEERS`).
    """
    place = environment("private-pgm")
    if isinstance(place, str):
        print(f"MST: {place}")
        return None
    name, n, epsilon, seed = row["table"], row["n"], row["epsilon"], row["network"]
    schema, path = population.schema, folder / f"regressions-mst-{_NETWORK_OF.get(name, name)}-{n}-{epsilon:g}-{seed}"
    result = path.with_name(path.name + "-out.npz")
    if not result.exists():
        source = path.with_name(path.name + "-in.npz")
        records = population.sample(n, np.random.default_rng([7, seed, n]))
        sizes, rho = [len(states) for states in schema.states.values()], accounting.approx_to_zcdp(epsilon, DELTA)
        asked = {"epsilon": epsilon, "delta": DELTA, "rho": rho, "seed": seed}
        np.savez(source, codes=encode(records, schema), cardinalities=np.array(sizes), **asked)
        script = Path(__file__).with_name("compare_peers.py")
        command = [place["python"], str(script), "mst", str(source), str(result)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": place["PYTHONPATH"]})
    columns = [list(schema.variables).index(name) for name in population.analysis().variables]
    return agreement(population, row, [np.load(result)["synthetic"][:, columns].astype(np.int64)])


def agreement(population: Population, row: dict[str, Any], sets: Sequence[np.ndarray]) -> dict[str, Any]:
    """How often intervals of synthetic sets hold, and agreement with regressions of records; neither adds any noise.

    "sign" and "decision" are the shares of coefficients whose sign, and whose being other than 0 at .05, are those of a
    regression of the records without privacy: of `regress`, and of the sets, of codes of the analysis's variables.
    """
    name, n, epsilon, seed = row["table"], row["n"], row["epsilon"], row["network"]
    analysis = population.analysis()
    equations = population.equations(analysis)
    truth = equations.root(0.0)
    plain = np.sqrt(np.diag(equations.sampling(truth)) / n)
    truth = equations.back @ truth / plain
    ours = truth + np.array(row["errors"]), np.array(row["deviations"])
    theirs = truth + np.array(row["errors_plain"]), np.array(row["deviations_plain"])
    covered, synthetic = [], []
    for codes in sets:
        own = of_cells(analysis, codes, np.ones(len(codes)))
        b = own.root(1e-6 / n)
        estimate, deviation = own.back @ b / plain, np.sqrt(np.diag(own.sampling(b)) / n) / plain
        covered.append(np.abs(estimate - truth) <= Z90 * deviation)
        synthetic.append((estimate, deviation))
    made = tuple(np.array([one[k] for one in synthetic]) for k in (0, 1))
    at = [np.abs(estimate) > 1.96 * deviation for estimate, deviation in (ours, made, theirs)]
    return {
        **{"table": name, "n": n, "epsilon": epsilon, "network": seed, "covered": float(np.mean(covered))},
        "sign": [float((np.sign(one[0][:5]) == np.sign(theirs[0][:5])).mean()) for one in (ours, made)],
        "decision": [float((one[:5] == at[2][:5]).mean()) for one in at[:2]],
    }


BESIDE = {"synthetic": of_synthetic, "mst": of_mst}
"""Synthetic records whose regressions stand beside those of `regress`: the network's, and MST's."""


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage and its standard error by network, width, forecast, and how often the null was rejected."""
    covered, plain, shown, widths, foretold, null, null_plain, statuses = [], [], [], [], [], [], [], []
    worst: dict[str, list] = {}
    for row in rows:
        error, deviation = np.array(row["errors"]), np.array(row["deviations"])
        refused = np.array([status in ("far", "few") for status in row["statuses"]])
        there = ~(np.array(row["without_interval"]) | refused[:, None])
        inside = (np.abs(error) <= Z90 * deviation)[there]
        covered.append(inside.mean() if there.any() else np.nan)
        shown.append(there.mean())
        plain.append((np.abs(np.array(row["errors_plain"])) <= Z90 * np.array(row["deviations_plain"])).mean())
        typical = np.median(deviation, axis=0)
        widths.append(np.median(typical))
        foretold.append(np.median(np.array(row["forecast"]) / typical))
        z = row["names"].index("z[T.1]")
        null.append((np.abs(error[:, z]) > Z90 * deviation[:, z])[there[:, z]].mean() if there[:, z].any() else np.nan)
        beside = np.abs(np.array(row["errors_plain"])[:, z]) > Z90 * np.array(row["deviations_plain"])[:, z]
        null_plain.append(beside.mean())
        statuses += row["statuses"]
        for k, name in enumerate(row["names"]):
            if there[:, k].any():
                worst.setdefault(name, []).append((np.abs(error[:, k]) <= Z90 * deviation[:, k])[there[:, k]].mean())
    lowest = min(worst, key=lambda name: np.mean(worst[name]), default="")
    model = [float(np.median(np.abs(row["model_errors"]))) for row in rows]
    return {
        "cover": float(np.nanmean(covered)),
        "se": float(np.nanstd(covered, ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else float("nan"),
        "plain": float(np.mean(plain)),
        "lowest": f"{np.mean(worst[lowest]):.2f} ({lowest})" if lowest else "",
        "width": float(np.nanmedian(widths)),
        "forecast": float(np.nanmedian(foretold)),
        "null": float(np.nanmean(null)),
        "null_plain": float(np.mean(null_plain)),
        "shown": float(np.mean(shown)),
        "model": float(np.median(model)),
        "status": {name: statuses.count(name) for name in sorted(set(statuses))},
    }


def page(rows: list[dict[str, Any]], beside: Mapping[str, list[dict[str, Any]]], command: str) -> str:
    """The page of results, the worst setting of each table first."""
    groups: dict[tuple[str, int, float], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["table"], row["n"], row["epsilon"]), []).append(row)
    lines = []
    for (name, n, epsilon), some in sorted(groups.items(), key=lambda one: list(TABLES).index(one[0][0])):
        s = summary(some)
        told = ", ".join(f"{count} {status}" for status, count in s["status"].items())
        lines.append([
            name, f"{n:,}", f"{epsilon:g}", f"{s['cover']:.3f} ± {s['se']:.3f}", f"{s['plain']:.3f}", s["lowest"],
            f"{s['width']:.2f}", f"{s['forecast']:.2f}", f"{s['null']:.3f}", f"{s['null_plain']:.3f}",
            f"{s['shown']:.2f}", f"{s['model']:.1f}", told,
        ])  # fmt: skip
    header = ["table", "records", "epsilon", "covered", "without privacy", "lowest coefficient", "width"]
    header += ["forecast", "z rejected", "without privacy", "have intervals", "model alone off by", "status"]
    text = "\n\n".join(
        part.strip()
        for part in (__doc__ or "").split("::\n\n    python -m benchmarks.regressions --out benchmarks/results\n")
    )
    second = []
    for name, n, epsilon in groups:
        told: list[str] = []
        for every in beside.values():
            some = [one for one in every if (one["table"], one["n"], one["epsilon"]) == (name, n, epsilon)]
            means = [np.mean([one[k] for one in some], axis=0) if some else [np.nan] * 2 for k in ("sign", "decision")]
            covered = np.mean([one["covered"] for one in some]) if some else np.nan
            told += [f"{x:.2f}" for pair in means for x in pair] if not told else [f"{pair[1]:.2f}" for pair in means]
            told.append(f"{covered:.2f}")
        second.append([name, f"{n:,}", f"{epsilon:g}", *(x.replace("nan", "") for x in told)])
    more = ["table", "records", "epsilon", "signs: regress", "synthetic", "decisions at .05: regress", "synthetic"]
    more += ["synthetic covers", "signs: MST", "decisions: MST", "MST covers"]
    note = (
        '"Model alone off by": the median error of the network\'s own coefficients, in standard errors without privacy.'
    )
    said = (
        "The same regressions from one synthetic set, drawn from the network, and from the records that MST "
        "(private-pgm's own script) makes for the whole epsilon of the records that the network was learned from: how "
        "often sign and decision are those of a regression of the records, and how often intervals of level .9 hold. "
        f"Of MST there are {len(beside['mst'])} sets, one of each network; where nothing stands, it was not run."
    )
    head = f"# Private regressions\n\n`{command}`, {describe_machine()}\n\n{text}\n\n{note}\n\n"
    tables = (markdown_table(header, lines), said, markdown_table(more, second))
    return head + "\n\n".join(tables) + "\n"


if __name__ == "__main__":
    main()
