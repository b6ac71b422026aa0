"""Private Ising, pairwise and t-wise learners against each other, the paper's own noise and no privacy at all.

::

    python -m benchmarks.markov_random_fields --out benchmarks/results

Populations are random fields on 3-regular graphs, grids and stars with random signs and a small field, every edge of
the same strength, of width 1.2 to 1.8. Records are drawn from them, and every method learns from the same records under
rho-zCDP and add_remove, with a public number of records and the true width as the public bound. The error is the
largest difference of a weight (Zhang, Kamath, Kulkarni and Wu 2020), averaged over the graphs. The made-up records are
public, so the noise is seeded. Every fit is one line of ``markov-random-fields.jsonl``; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

from benchmarks.field_sampling import sample_field
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields.published.nodewise_regressions import ising_from_regressions
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise, RandomField
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

SEED = 20261203
GRAPHS = ("3-regular", "grid", "star")
WIDTHS = {"3-regular": 1.2, "grid": 1.6, "star": 1.8}


@dataclass(frozen=True)
class Case:
    """One population and its number of records. `order` is 3 for t-wise fields, `states` is k."""

    family: str
    p: int
    states: int
    order: int
    graph: str
    n: int

    @property
    def label(self) -> str:
        """What kind of model it is."""
        return {"ising": "Ising", "pairwise": f"pairwise, k = {self.states}", "binary": f"t = {self.order}"}[
            self.family
        ]


def cases() -> list[Case]:
    """All populations: Ising at four sizes, pairwise with 3 and 5 states, polynomials of degree 3."""
    records = (1_000, 10_000, 100_000)
    found = [Case("ising", p, 2, 2, g, n) for p in (10, 20, 50, 100) for n in records for g in GRAPHS]
    found += [Case("pairwise", p, k, 2, g, n) for k, p in ((3, 10), (3, 20), (5, 10)) for n in records for g in GRAPHS]
    found += [Case("binary", p, 2, 3, g, n) for p in (10, 16) for n in records for g in GRAPHS]
    return found


RHOS = (0.1, 1.0)
PRIVATE = ("moments", "moments, dense", "frank-wolfe", "paper's noise")
WITH_GRAPH = ("moments, graph", "frank-wolfe, graph")
NON_PRIVATE = ("logistic regression",)
LABELS = {
    "logistic regression": "non-private l1 logistic regression (scikit-learn)",
    "moments": 'method="auto": noisy moments, l1, refit',
    "moments, dense": "noisy moments, sparse=False",
    "frank-wolfe": 'method="frank-wolfe"',
    "paper's noise": "Frank-Wolfe as published (Laplace noise, its T)",
    "moments, graph": "auto, graph given",
    "frank-wolfe, graph": "frank-wolfe, graph given",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.markov_random_fields", description=__doc__)
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s; below 1000 is for tuning")
    parser.add_argument("--families", nargs="+", default=["ising", "pairwise", "binary"])
    parser.add_argument("--largest-p", type=int, default=100)
    parser.add_argument("--report-only", action="store_true", help="only write the report of what is there")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows_path = raw_folder(out) / "markov-random-fields.jsonl"
    command = shlex.join(["python", "-m", "benchmarks.markov_random_fields", *(arguments or sys.argv[1:])])
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    if not options.report_only:
        wanted = [c for c in cases() if c.family in options.families and c.p <= options.largest_p]
        run(wanted, options.seed, rows_path, command)
    (out / "markov-random-fields.md").write_text(report(rows_path))
    print(f"wrote {out / 'markov-random-fields.md'}")


def run(wanted: Sequence[Case], seed: int, rows_path: Path, command: str) -> None:
    """Every method on every case that the file does not hold yet."""
    done = set()
    if rows_path.exists():
        header, *rows = map(json.loads, rows_path.read_text().splitlines())
        if header["seed"] != seed:
            raise SystemExit(f"{rows_path} holds a run of seed {header['seed']}: use another --out folder")
        done = {(Case(**row["case"]), row["rho"], row["method"]) for row in rows}
    else:
        header = {"seed": seed, "command": command, "machine": describe_machine()}
        rows_path.write_text(json.dumps(header) + "\n")
    with rows_path.open("a") as stream:
        for case in tqdm(wanted, unit="case"):
            missing = [fit for fit in _fits(case) if (case, *fit) not in done]
            if not missing:
                continue
            field = population(case, seed)
            codes = sample_field(field, case.n, _rng(seed, case, "records"))
            for rho, method in missing:
                noise_seed = int(_rng(seed, case, "noise", rho).integers(1 << 31))
                start = time.perf_counter()
                learned = METHODS[method](codes, case, field, rho, noise_seed)
                row = {"seconds": time.perf_counter() - start, "error": largest_error(learned, field)}
                row |= {"mean_error": mean_error(learned, field)}
                if method in ("frank-wolfe", "paper's noise") and case.family == "ising":
                    row["excess_risk"] = excess_risk(learned, codes)
                stream.write(json.dumps({"case": asdict(case), "rho": rho, "method": method, **row}) + "\n")
                stream.flush()


def _fits(case: Case) -> Iterator[tuple[float, str]]:
    if case.family == "ising":
        yield math.inf, "logistic regression"
    # As published it takes minutes a fit at p = 100.
    published_too = case.family == "ising" and case.p <= 50
    methods = tuple(m for m in PRIVATE if m != "paper's noise" or published_too)
    yield from itertools.product(RHOS, (*methods, *(WITH_GRAPH if case.family == "ising" else ())))


def _rng(seed: int, case: Case, *keys: object) -> np.random.Generator:
    text = repr((case, *keys)).encode()
    return np.random.default_rng([seed, *text])


def population(case: Case, seed: int) -> RandomField:
    """A random field. The population does not depend on the number of records."""
    rng = _rng(seed, Case(case.family, case.p, case.states, case.order, case.graph, 0), "population")
    graph = {
        "3-regular": lambda: nx.random_regular_graph(3, case.p, seed=int(rng.integers(1 << 31))),
        "grid": lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(*_sides(case.p)), ordering="sorted"),
        "star": lambda: nx.star_graph(case.p - 1),
    }[case.graph]()
    edges = [tuple(sorted(edge)) for edge in graph.edges]
    degree = max(dict(graph.degree).values())
    strength = (WIDTHS[case.graph] - 0.1) / degree
    fields = rng.choice([-0.1, 0.1], case.p)
    if case.family == "pairwise":
        k = case.states
        weights = {}
        for edge in edges:
            # A random centred table whose largest entry is the strength.
            table = rng.normal(size=(k, k))
            table -= table.mean(axis=0)
            table -= table.mean(axis=1, keepdims=True)
            weights[edge] = strength * table / np.abs(table).max()
        return Pairwise(tuple(np.zeros(k) for _ in range(case.p)), weights)
    if case.family == "binary":
        coefficients = {(i,): float(fields[i]) for i in range(case.p)}
        coefficients |= {edge: strength * float(rng.choice([-1, 1])) for edge in edges[::2]}
        # Third-order terms on paths of two edges, disjoint from the pairs so that each is a maximal monomial.
        used: set[int] = set()
        for node in graph:
            near = sorted(graph[node])[:2]
            if len(near) == 2 and not used & {node, *near}:
                used |= {node, *near}
                coefficients[tuple(sorted((node, *near)))] = strength * float(rng.choice([-1, 1]))
        return BinaryField(case.p, coefficients)
    weights = np.zeros((case.p, case.p))
    for i, j in edges:
        weights[i, j] = weights[j, i] = strength * rng.choice([-1, 1])
    return Ising(weights, fields)


def _sides(p: int) -> tuple[int, int]:
    rows = max(d for d in range(1, math.isqrt(p) + 1) if p % d == 0)
    return rows, p // rows


def _private(*, graph: bool = False, **options) -> Callable:
    def fit(codes: np.ndarray, case: Case, truth: RandomField, rho: float, seed: int) -> RandomField:
        names = [f"x{j}" for j in range(case.p)]
        common = {
            "width": truth.width,
            "rho": rho,
            "state_names": {name: list(range(case.states)) for name in names},
            "n_records": case.n,
            "graph": [(names[i], names[j]) for i, j in truth.edges()] if graph else None,
            "random_state": seed,
            **options,
        }
        estimator = {
            "ising": lambda: PrivateIsing(**common),
            "pairwise": lambda: PrivatePairwise(**common),
            "binary": lambda: PrivateBinaryMRF(order=case.order, **common),
        }[case.family]()
        return estimator.fit(pd.DataFrame(codes, columns=names)).field_

    return fit


def logistic_regression(codes: np.ndarray, case: Case, truth: RandomField, rho: float, seed: int) -> RandomField:
    """Nodewise l1-penalised logistic regressions, no privacy; the penalty, on the mean loss, was chosen on seed 7."""
    z = 2.0 * codes - 1.0
    n, p = z.shape
    penalty = 0.1 * math.sqrt(math.log(p) / n)
    weights = np.zeros((p, p))
    for i in range(p):
        others = np.delete(np.arange(p), i)
        fit = LogisticRegression(
            l1_ratio=1.0, C=1.0 / (n * penalty), solver="liblinear", intercept_scaling=100.0, tol=1e-4
        )
        fit.fit(z[:, others], codes[:, i])
        weights[i, others], weights[i, i] = fit.coef_[0], fit.intercept_[0]
    return ising_from_regressions(weights)[0]


def published(codes: np.ndarray, case: Case, truth: RandomField, rho: float, seed: int) -> RandomField:
    """Algorithm 1 with Laplace noise of scale D/eps0, eps0 = sqrt(rho_i/T), steps 2/(t+2) and T as published.

    What it is published to give is rho-zCDP; with this noise it does not give it. For comparison only.
    """
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(codes, axis=0, return_counts=True)
    z = 2.0 * distinct - 1.0
    p = case.p
    radius, share = 2.0 * truth.width, rho / p
    n_iter = max(2, round(radius ** (2 / 3) * (case.n * math.sqrt(share)) ** (2 / 3)))
    weights = np.zeros((p, p))  # row i: coefficients of the others, and in place i of the constant
    every = np.arange(p)
    for t in range(1, n_iter):
        free = np.diagonal(weights).copy()
        logits = z @ weights.T + free * (1.0 - z)  # z_i of regression i is the constant
        residuals = (expit(logits) - 0.5 * (1.0 + z)) * counts[:, np.newaxis]
        gradient = residuals.T @ z
        np.fill_diagonal(gradient, residuals.sum(axis=0))
        scores = np.hstack([-gradient, gradient])
        best = (scores + rng.laplace(scale=math.sqrt(n_iter / share), size=scores.shape)).argmax(axis=1)
        weights *= 1.0 - 2.0 / (t + 2.0)
        weights[every, best % p] += 2.0 / (t + 2.0) * np.where(best < p, radius, -radius)
    return ising_from_regressions(weights)[0]


METHODS: dict[str, Callable[[np.ndarray, Case, RandomField, float, int], RandomField]] = {
    "logistic regression": logistic_regression,
    "moments": _private(),
    "moments, dense": _private(method="moments", sparse=False),
    "frank-wolfe": _private(method="frank-wolfe"),
    "paper's noise": published,
    "moments, graph": _private(graph=True),
    "frank-wolfe, graph": _private(graph=True, method="frank-wolfe"),
}


def _differences(learned: RandomField, truth: RandomField) -> np.ndarray:
    """Differences of all weights of two fields of one family: edges, or monomials of degree 2 and more."""
    if isinstance(truth, Ising):
        assert isinstance(learned, Ising)
        upper = np.triu_indices(truth.n_variables, 1)
        return np.abs(learned.weights - truth.weights)[upper]
    if isinstance(truth, BinaryField):
        assert isinstance(learned, BinaryField)
        subsets = {s for s in (*truth.coefficients, *learned.coefficients) if len(s) > 1}
        return np.array([abs(truth.coefficients.get(s, 0.0) - learned.coefficients.get(s, 0.0)) for s in subsets])
    assert isinstance(learned, Pairwise)
    pairs = {*truth.weights, *learned.weights}
    a, b = learned.centred().weights, truth.centred().weights
    zero = np.zeros((1, 1))
    return np.array([np.abs(a.get(pair, zero) - b.get(pair, zero)).max() for pair in pairs])


def largest_error(learned: RandomField, truth: RandomField) -> float:
    """max over weights of the absolute difference."""
    return float(_differences(learned, truth).max(initial=0.0))


def mean_error(learned: RandomField, truth: RandomField) -> float:
    """Sum of the absolute differences over the number of edges of the truth."""
    return float(_differences(learned, truth).sum() / max(len(truth.edges()), 1))


def excess_risk(learned: Ising, codes: np.ndarray) -> float:
    """Largest difference, over nodes, between the mean logistic loss of the learned weights and the least one."""
    z = 2.0 * codes.astype(np.float64) - 1.0
    worst = 0.0
    for i in range(min(z.shape[1], 5)):
        features = z.copy()
        features[:, i] = 1.0
        row = 2.0 * learned.weights[i]
        row[i] = 2.0 * learned.fields[i]
        best = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-6).fit(features, codes[:, i]).coef_[0]
        losses = [np.logaddexp(0.0, -z[:, i] * (features @ w)).mean() for w in (row, best)]
        worst = max(worst, float(losses[0] - losses[1]))
    return worst


def report(rows_path: Path) -> str:
    """The Markdown report."""
    header, *rows = map(json.loads, rows_path.read_text().splitlines())
    table = pd.DataFrame([{**row["case"], "label": Case(**row["case"]).label, **row} for row in rows])
    table = table.drop(columns="case")
    parts = [
        "# Markov random fields: private learners against each other",
        f"Made by `{header['command']}`",
        f"on {header['machine']}; one thread on one core. Seed {header['seed']}. rho-zCDP, add_remove, public number "
        "of records. Largest error of a weight, mean over one 3-regular graph, one grid and one star (width 1.2, 1.6, "
        "1.8); smaller is better, the best private method in bold (among those that are not given the graph).",
        *(_errors(table, label) for label in dict.fromkeys(table["label"])),
        "## Against the targets\n\n" + _targets(table),
        "## Which method wins where\n\n" + _wins(table),
        "## How errors grow with p and fall with n sqrt(rho)\n\n" + _slopes(table),
        "## Seconds a fit\n\n" + _seconds(table),
    ]
    return "\n\n".join(parts) + "\n"


def _methods_in(table: pd.DataFrame) -> list[str]:
    return [method for method in LABELS if method in set(table["method"])]


def _errors(table: pd.DataFrame, label: str) -> str:
    chosen = table[table["label"] == label]
    methods = _methods_in(chosen)
    mean = chosen.groupby(["p", "n", "rho", "method"])["error"].mean()
    free = {(p, n): mean.get((p, n, math.inf, NON_PRIVATE[0]), math.nan) for p in set(chosen["p"]) for n in chosen["n"]}
    body = []
    for (p, n, rho), _ in chosen[np.isfinite(chosen["rho"])].groupby(["p", "n", "rho"]):
        values = {m: mean.get((p, n, rho, m), math.nan) for m in methods if m not in NON_PRIVATE}
        best = min(v for m, v in values.items() if not math.isnan(v) and m not in WITH_GRAPH)
        cells = [f"**{v:.3f}**" if v == best else "-" if math.isnan(v) else f"{v:.3f}" for v in values.values()]
        first = [f"{free[p, n]:.3f}"] if NON_PRIVATE[0] in methods else []
        body.append([str(p), f"{n:.0e}", f"{rho:g}", *first, *cells])
    ordered = [*(m for m in methods if m in NON_PRIVATE), *(m for m in methods if m not in NON_PRIVATE)]
    return f"## {label}\n\n" + markdown_table(["p", "n", "rho", *(LABELS[m] for m in ordered)], body)


def _targets(table: pd.DataFrame) -> str:
    ising = table[table["label"] == "Ising"]
    mean = ising.groupby(["method", "p", "n", "rho"])["error"].mean()
    body = []

    def check(what: str, value: float, limit: float) -> None:
        verdict = "not measured" if math.isnan(value) else "met" if value <= limit else "**not met**"
        body.append([what, f"{limit:g}", f"{value:.3f}", verdict])

    ratios = {
        (p, rho): mean.get(("moments", p, 100_000, rho), math.nan)
        / mean.get((NON_PRIVATE[0], p, 100_000, math.inf), math.nan)
        for p in (10, 20, 50, 100)
        for rho in RHOS
    }
    for (p, rho), ratio in ratios.items():
        check(f"auto over non-private, p = {p}, n = 1e5, rho = {rho:g}", ratio, 1.3)
    check("auto, p = 100, n = 1e4, rho = 1", mean.get(("moments", 100, 10_000, 1.0), math.nan), 0.06)
    check("auto, p = 100, n = 1e4, rho = .1", mean.get(("moments", 100, 10_000, 0.1), math.nan), 0.10)
    check("Frank-Wolfe, p = 10, n = 1e5, rho = 1", mean.get(("frank-wolfe", 10, 100_000, 1.0), math.nan), 0.02)
    check("Frank-Wolfe, p = 50, n = 1e5, rho = 1", mean.get(("frank-wolfe", 50, 100_000, 1.0), math.nan), 0.035)
    for n, rho in itertools.product((10_000, 100_000), RHOS):
        for p in (10, 20, 50):
            ratio = mean.get(("frank-wolfe", p, n, rho), math.nan) / mean.get(("paper's noise", p, n, rho), math.nan)
            check(f"Frank-Wolfe over the paper's noise and T, p = {p}, n = {n:.0e}, rho = {rho:g}", ratio, 0.65)
    return markdown_table(["target", "at most", "measured", ""], body)


def _wins(table: pd.DataFrame) -> str:
    private = table[np.isfinite(table["rho"])]
    methods = [m for m in _methods_in(private) if m not in WITH_GRAPH]
    private = private[private["method"].isin(methods)]
    body = []
    for score, name in (("error", "largest error"), ("mean_error", "mean error")):
        wide = private.pivot_table(index=["label", "p", "n", "rho"], columns="method", values=score)
        best = wide.idxmin(axis=1)
        for label in dict.fromkeys(private["label"]):
            chosen = best[best.index.get_level_values("label") == label]
            body.append([label, name, *(str(int((chosen == m).sum())) for m in methods), str(len(chosen))])
    return markdown_table(["model", "by", *(LABELS[m] for m in methods), "settings"], body)


def _slope(frame: pd.DataFrame, x: pd.Series, value: str) -> tuple[float, float]:
    """Least-squares slope of log value against log x, and its standard error."""
    a = np.log(x.to_numpy(dtype=float))
    b = np.log(frame[value].to_numpy(dtype=float))
    keep = np.isfinite(b)
    a, b = a[keep], b[keep]
    if len(set(a)) < 2:
        return math.nan, math.nan
    a = a - a.mean()
    slope = float(a @ b / (a @ a))
    residual = b - b.mean() - slope * a
    return slope, float(np.sqrt(residual @ residual / max(len(a) - 2, 1) / (a @ a)))


def _slopes(table: pd.DataFrame) -> str:
    ising = table[(table["label"] == "Ising") & np.isfinite(table["rho"])]
    body = []
    for method in _methods_in(ising):
        of_method = ising[ising["method"] == method]
        mean = of_method.groupby(["p", "n", "rho"])[["error", *(["excess_risk"] if "excess_risk" in ising else [])]]
        mean = mean.mean().reset_index()
        in_p = mean[(mean["n"] == 100_000) & (mean["rho"] == 0.1)]
        by_p = _slope(in_p, in_p["p"], "error")
        in_n = mean[mean["p"] == 20]
        by_n = _slope(in_n, in_n["n"] * np.sqrt(in_n["rho"]), "error")
        risk = (math.nan, math.nan)
        if "excess_risk" in mean and mean["excess_risk"].notna().any():
            risk = _slope(in_n, in_n["n"] * np.sqrt(in_n["rho"]), "excess_risk")
        cells = [f"{s:.2f} ± {e:.2f}" if not math.isnan(s) else "-" for s, e in (by_p, by_n, risk)]
        body.append([LABELS[method], *cells])
    note = (
        "Slopes of log error against log p (n = 1e5, rho = .1) and against log(n sqrt(rho)) (p = 20), with standard "
        "errors of the fit, and of the excess risk of a regression (largest of five nodes). Table 1 of the paper has "
        "n proportional to sqrt(p) for a given error alpha, and its private term alpha proportional to "
        "(sqrt(p)/(n sqrt(rho)))**(1/3); Theorem 1.3 bounds the excess risk by a multiple of (n sqrt(rho))**(-2/3). "
        "Both are upper bounds: flatter in p and steeper in n is better.\n\n"
    )
    head = ["method", "error against p", "error against n sqrt(rho)", "excess risk against n sqrt(rho)"]
    return note + markdown_table(head, body)


def _seconds(table: pd.DataFrame) -> str:
    median = table.groupby(["label", "p", "n", "method"])["seconds"].median()
    methods = _methods_in(table)
    body = []
    for (label, p), _ in table.groupby(["label", "p"], sort=False):
        n = int(table["n"].max())
        values = [median.get((label, p, n, m), math.nan) for m in methods]
        body.append([label, str(p), f"{n:.0e}", *("-" if math.isnan(v) else f"{v:.2f}" for v in values)])
    return markdown_table(["model", "p", "n", *(LABELS[m] for m in methods)], body)


if __name__ == "__main__":
    main()
