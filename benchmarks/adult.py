"""Adult census data: hold-out log-likelihood of models learned from the same noisy tables.

::

    python -m benchmarks.adult --out benchmarks/results

A public graph of 15 edges over 13 attributes (869 cells). For each split, a fifth of the records is
held out; the tables of the others get discrete Laplace noise once per epsilon, and every method learns
from these. The score is the mean negative log-likelihood of the held-out records above that of the fit
without noise. The records are public (UCI Adult, 1994 US census), so the noise is seeded.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy and jax are imported

import networkx as nx
import numpy as np
from tqdm import tqdm

from benchmarks.data import find
from benchmarks.folders import raw_folder
from benchmarks.methods import LABELS, MBI_ALL, MBI_MD, METHODS, Problem
from benchmarks.populations import noisy_tables
from benchmarks.report import markdown_table
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sum_product import inference_size
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood
from pgmpy_dp.schema import Schema

EPSILONS = (0.03, 0.1, 1.0)

EDGES = (
    ("age", "marital-status"),
    ("age", "hours-per-week"),
    ("marital-status", "relationship"),
    ("relationship", "sex"),
    ("relationship", "race"),
    ("relationship", "income"),
    ("race", "native-country"),
    ("education", "occupation"),
    ("education", "income"),
    ("occupation", "workclass"),
    ("occupation", "sex"),
    ("occupation", "income"),
    ("sex", "hours-per-week"),
    ("capital-gain", "income"),
    ("capital-loss", "income"),
)
"""A graph of common knowledge, not learned from the records."""

_METHODS = ("uniform", "naive_1e-3", "naive", "naive_oracle", "em", "em_best_stop", "em_published", "map", *MBI_ALL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adult", description="Hold-out likelihood on Adult.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261201, help="default: %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="splits, each with its own noise (default: %(default)s)")
    parser.add_argument("--methods", nargs="+", choices=_METHODS, default=list(_METHODS), metavar="METHOD")
    parser.add_argument("--private-total", action="store_true", help="no method is told the record count")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.adult", *(arguments or sys.argv[1:])])
    name = "adult-private-total" if options.private_total else "adult"
    rows = run(options.splits, options.seed, options.methods, public_total=not options.private_total)
    with (raw_folder(out) / f"{name}.jsonl").open("w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    (out / f"{name}.md").write_text(_report(rows, command, options))
    print(f"wrote {out / name}.md")


def run(splits: int, seed: int, methods: Sequence[str], *, public_total: bool = True) -> list[dict]:
    """Fit every method on every split and epsilon.

    Returns
    -------
    list of dict
        "split", "epsilon", "method", "nll" (mean hold-out nll of the method), "reference" (of the non-private
        fit), "seconds".
    """
    cliques, codes = load_adult()
    rows = []
    with tqdm(total=splits * len(EPSILONS) * len(methods), unit="fit") as progress:
        for split in range(splits):
            held_out = np.random.default_rng([seed, split, 0]).random(len(codes)) < 0.2
            counts, test_counts = _counts(cliques, codes[~held_out]), _counts(cliques, codes[held_out])
            n_train = int((~held_out).sum())
            nll = functools.partial(_mean_nll, cliques, test_counts / held_out.sum())
            # The least penalty that keeps the non-private fit finite where a cell is empty: one standard
            # normal prior spread over all records.
            reference = nll(maximum_likelihood(cliques, counts, l2=1.0 / n_train).model.theta)
            for epsilon in EPSILONS:
                rng = np.random.default_rng([seed, split, 1, round(1e6 * epsilon)])
                noisy = noisy_tables(cliques, counts, epsilon, rng, total=n_train if public_total else None)
                problem = Problem(counts, noisy, nll)
                for method in methods:
                    outcome = METHODS[method](problem)
                    rows.append(
                        {"split": split, "epsilon": epsilon, "method": method, "nll": nll(outcome.theta),
                         "reference": reference, "seconds": outcome.seconds, "note": outcome.note}
                    )  # fmt: skip
                    progress.update()
    return rows


def load_adult() -> tuple[Cliques, np.ndarray]:
    """The tables of `EDGES`, and the records as state numbers.

    Returns
    -------
    cliques : Cliques
    codes : ndarray of shape (48842, 13)

    Raises
    ------
    FileNotFoundError
        If it is not where `benchmarks.data.find` looks.
    """
    folder = find("adult_disc.csv.gz", "adult_disc.domain.json")
    schema = Schema.from_json(folder / "adult_disc.domain.json")
    graph = nx.Graph()
    graph.add_nodes_from(schema)
    graph.add_edges_from(EDGES)
    cliques = Cliques.from_graph(graph, schema.cardinalities)
    number = [{state: k for k, state in enumerate(schema.states[name])} for name in cliques.variables]
    with gzip.open(folder / "adult_disc.csv.gz", "rt", newline="") as stream:
        records = csv.DictReader(stream)
        codes = [[m[record[name]] for m, name in zip(number, cliques.variables, strict=True)] for record in records]
    return cliques, np.array(codes)


def _mean_nll(cliques: Cliques, proportions: np.ndarray, theta: np.ndarray) -> float:
    """Mean of -log p over records whose tables have these proportions."""
    if not np.isfinite(theta).all():
        return float("inf")
    return LogLinearModel(cliques, theta).log_partition - float(theta @ proportions)


def _counts(cliques: Cliques, codes: np.ndarray) -> np.ndarray:
    tables = []
    for scope, shape, size in zip(cliques.indices, cliques.shapes, cliques.sizes, strict=True):
        cells = np.ravel_multi_index(tuple(codes[:, i] for i in scope), shape)
        tables.append(np.bincount(cells, minlength=size))
    return np.concatenate(tables)


def _report(rows: list[dict], command: str, options: argparse.Namespace) -> str:
    cliques, _ = load_adult()
    score: dict[tuple[str, float], np.ndarray] = {}
    seconds: dict[str, float] = {}
    for method in options.methods:
        of_method = [row for row in rows if row["method"] == method]
        seconds[method] = float(np.median([row["seconds"] for row in of_method]))
        for epsilon in EPSILONS:
            at = [row for row in of_method if row["epsilon"] == epsilon]
            score[method, epsilon] = np.array([row["nll"] - row["reference"] for row in at])
    labels = dict(LABELS)
    for name, members, label in (
        ("best", MBI_MD, "mbi, best of four per draw (oracle)"),
        ("every", MBI_ALL, "mbi, best of all eight per draw (oracle)"),
    ):
        if set(members) <= set(options.methods):
            labels[name] = label
            for epsilon in EPSILONS:
                score[name, epsilon] = np.min([score[m, epsilon] for m in members], axis=0)
    shown = [*options.methods, *(name for name in ("best", "every") if name in labels)]
    body = []
    for method in shown:
        cells = [f"{v.mean():.4f} [{v.min():.4f}, {v.max():.4f}]" for v in (score[method, e] for e in EPSILONS)]
        body.append([labels[method], *cells, f"{seconds[method]:.3g}" if method in seconds else ""])
    reference = np.mean([row["reference"] for row in rows])
    total = "private, estimated from the tables" if options.private_total else "public"
    parts = [
        "# Adult: hold-out log-likelihood",
        f"Made by `{command}`",
        f"on {describe_machine()}; one thread on one core.",
        f"{len(EDGES)} edges, {cliques.n_cells} cells, junction tree of {inference_size(cliques)}. "
        f"{options.splits} splits (80 % to learn from), seed {options.seed}; record count {total}.",
        "Mean negative log-likelihood of a held-out record above the fit without noise, in nats "
        f"(which has {reference:.4f}): mean over splits, in brackets the smallest and the largest. Smaller is "
        "better. Seconds are medians over all fits; for mbi all but the first few are compiled.",
        markdown_table(["method", *(f"epsilon = {e:g}" for e in EPSILONS), "seconds"], body),
    ]
    if "map" in options.methods:
        parts.append("Splits on which CollectiveMAP is better:\n\n" + _wins(score, shown, labels))
    return "\n\n".join(parts) + "\n"


def _wins(score: dict[tuple[str, float], np.ndarray], shown: Sequence[str], labels: dict[str, str]) -> str:
    body = []
    for method in (m for m in shown if m != "map"):
        wins = [f"{np.sum(score['map', e] < score[method, e])} of {len(score['map', e])}" for e in EPSILONS]
        body.append([labels[method], *wins])
    return markdown_table(["than", *(f"epsilon = {e:g}" for e in EPSILONS)], body)


if __name__ == "__main__":
    main()
