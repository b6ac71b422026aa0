"""An Ising model of yes-or-no attributes of the Adult census data, with and without privacy, and its picture.

::

    python -m benchmarks.adult_ising --out benchmarks/results

The privacy unit is one person's record. 13 attributes are made yes or no by rules that were fixed in advance (`RULES`).
A fifth of the records is held out. With 13 variables the model is exact: the score is the mean log-likelihood of the
held-out records.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateIsing
from pgmpy_dp.fields.random_fields import Ising
from pgmpy_dp.inference.lbfgs import minimize_lbfgs
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

WIDTH = 10.0
"""Bound on the width. Attributes of one person can determine each other (married and husband), so it is generous."""

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
_METHODS = {"auto (moments)": {}, "frank-wolfe": {"method": "frank-wolfe"}}

RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "45 or older": ("age", ("45-54", "55-64", ">=65")),
    "under 25": ("age", ("<25",)),
    "private sector": ("workclass", ("Private",)),
    "self-employed": ("workclass", ("Self-emp-not-inc", "Self-emp-inc")),
    "degree": ("education", ("Bachelors", "Masters", "Doctorate", "Prof-school")),
    "married": ("marital-status", ("Married-civ-spouse", "Married-AF-spouse")),
    "professional": ("occupation", ("Exec-managerial", "Prof-specialty", "Tech-support")),
    "has own child's role": ("relationship", ("Own-child",)),
    "white": ("race", ("White",)),
    "male": ("sex", ("Male",)),
    "capital gain": ("capital-gain", ("1-4999", "5000-9999", ">=10000")),
    "over 40 hours": ("hours-per-week", ("41-50", ">50")),
    "over 50K": ("income", (">50K",)),
}
"""Attribute: the column it is made from and the states that mean yes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adult_ising", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261203, help="default: %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="splits, each with its own noise (default: %(default)s)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.adult_ising", *(arguments or sys.argv[1:])])
    frame = read_attributes()
    rows, fields = [], {}
    for split in range(options.splits):
        held_out = np.random.default_rng([options.seed, split]).random(len(frame)) < 0.2
        train, test = frame[~held_out], _signs(frame[held_out])
        reference = maximum_likelihood(_signs(train))
        rows.append(("no privacy", np.inf, log_likelihood(reference, test), 0.0))
        for number, (epsilon, (method, choice)) in enumerate(itertools.product(EPSILONS, _METHODS.items())):
            seed = options.seed + 100 * split + number
            estimator = PrivateIsing(
                width=WIDTH,
                epsilon=epsilon,
                delta=DELTA,
                state_names={name: [False, True] for name in frame},
                n_records=None,
                random_state=seed,
                **choice,
            ).fit(train)
            field = estimator.field_
            error = float(np.abs(field.weights - reference.weights).max())
            rows.append((method, epsilon, log_likelihood(field, test), error))
            if split == 0 and method == "auto (moments)":
                fields[epsilon] = field
        fields.setdefault(np.inf, reference)
    draw(fields, list(frame), raw_folder(out) / "adult-ising.png")
    (out / "adult-ising.md").write_text(report(pd.DataFrame(rows), options, command))
    print(f"wrote {out / 'adult-ising.md'}")


def read_attributes() -> pd.DataFrame:
    """The 13 attributes of the 48,842 records, True for yes."""
    frame = pd.read_csv(Path(__file__).resolve().parent.parent / "data" / "adult_disc.csv.gz", dtype=str)
    return pd.DataFrame({name: frame[column].isin(states) for name, (column, states) in RULES.items()})


def _signs(frame: pd.DataFrame) -> np.ndarray:
    return 2.0 * frame.to_numpy(dtype=np.float64) - 1.0


def _states(p: int) -> np.ndarray:
    return 2.0 * ((np.arange(1 << p)[:, np.newaxis] >> np.arange(p)) & 1) - 1.0


def maximum_likelihood(z: np.ndarray) -> Ising:
    """The exact non-private fit, by enumeration; a penalty of one record keeps it finite."""
    n, p = z.shape
    upper = np.triu_indices(p, 1)
    states = _states(p)
    features = np.hstack([states, states[:, upper[0]] * states[:, upper[1]]])
    target = np.concatenate([z.mean(axis=0), (z.T @ z / n)[upper]])

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        scores = features @ theta
        top = scores.max()
        weights = np.exp(scores - top)
        total = weights.sum()
        value = top + np.log(total) - target @ theta + 0.5 * theta @ theta / n
        return float(value), weights @ features / total - target + theta / n

    theta = minimize_lbfgs(objective, np.zeros(len(target)), max_iter=1000, gradient_tol=1e-8).x
    a = np.zeros((p, p))
    a[upper] = theta[p:]
    return Ising(a + a.T, theta[:p])


def log_likelihood(field: Ising, z: np.ndarray) -> float:
    """Mean log-probability of the records, exact."""
    states = _states(field.n_variables)

    def scores(x: np.ndarray) -> np.ndarray:
        return 0.5 * ((x @ field.weights) * x).sum(axis=1) + x @ field.fields

    every = scores(states)
    top = every.max()
    return float(scores(z).mean() - top - np.log(np.exp(every - top).sum()))


def draw(fields: dict[float, Ising], names: Sequence[str], path: Path) -> None:
    """The non-private graph and the private ones, on the same places; edges of at least .1, width by strength."""
    places = nx.circular_layout(nx.complete_graph(len(names)))
    shown = [np.inf, *(e for e in EPSILONS[::-1] if e in fields)][:3]
    figure, axes = plt.subplots(1, len(shown), figsize=(5.2 * len(shown), 5.4), layout="constrained")
    for axis, epsilon in zip(axes, shown, strict=True):
        weights = fields[epsilon].weights
        edges = [(i, j) for i, j in zip(*np.triu_indices(len(names), 1), strict=True) if abs(weights[i, j]) >= 0.1]
        graph = nx.Graph(edges)
        graph.add_nodes_from(range(len(names)))
        nx.draw_networkx_edges(
            graph,
            places,
            edgelist=edges,
            width=[min(6.0, 5.0 * abs(weights[e])) for e in edges],
            edge_color=["#0072B2" if weights[e] > 0 else "#D55E00" for e in edges],
            ax=axis,
        )
        nx.draw_networkx_nodes(graph, places, node_size=60, node_color="black", ax=axis)
        for i, (x, y) in places.items():
            side = "left" if x > 0.1 else "right" if x < -0.1 else "center"
            axis.text(1.1 * x, 1.13 * y, names[i], ha=side, va="center", fontsize=9)
        axis.set_title("no privacy" if np.isinf(epsilon) else f"epsilon = {epsilon:g}, delta = {DELTA:g}")
        axis.set_xlim(-1.9, 1.9)
        axis.set_ylim(-1.35, 1.35)
        axis.axis("off")
    figure.suptitle("Ising model of attributes in Adult: blue attracts, orange repels, edges of at least 0.1")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def report(rows: pd.DataFrame, options: argparse.Namespace, command: str) -> str:
    """The Markdown report."""
    rows.columns = ["method", "epsilon", "log_likelihood", "error"]
    mean = rows.groupby(["method", "epsilon"])[["log_likelihood", "error"]].agg(["mean", "std"])
    free = mean.loc[("no privacy", np.inf)]
    body = [["no privacy", "-", f"{free['log_likelihood', 'mean']:.4f}", "-", "-"]]
    for method, epsilon in itertools.product(_METHODS, EPSILONS):
        row = mean.loc[(method, epsilon)]
        below = free["log_likelihood", "mean"] - row["log_likelihood", "mean"]
        body.append(
            [
                method,
                f"{epsilon:g}",
                f"{row['log_likelihood', 'mean']:.4f}",
                f"{below:.4f}",
                f"{row['error', 'mean']:.3f}",
            ]
        )
    return (
        "\n\n".join(
            [
                "# An Ising model of the Adult census data",
                f"Made by `{command}`",
                f"on {describe_machine()}; seed {options.seed}, {options.splits} splits with their own noise.",
                f"48,842 records, 13 attributes (`RULES` in benchmarks/adult_ising.py), (epsilon, {DELTA:g})-DP for "
                "one record under add_remove, the number of records private, width bound "
                f"{WIDTH:g}. Mean log-likelihood of held-out records in nats (exact), how far it is below the "
                "non-private fit's, and the largest difference of a weight from the non-private fit's. How strongly "
                "moments that noise makes impossible are held back (the prior of `match_ising`) was chosen on other "
                "splits of these records.",
                markdown_table(
                    ["method", "epsilon", "held-out log-likelihood", "below no privacy", "largest error"], body
                ),
                "The command draws the learned graphs as `adult-ising.png` in build/results.",
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
