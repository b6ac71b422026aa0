"""Do hidden classes, or tables of four and five variables, tell what `learn` does not?

::

    python -m benchmarks.beyond_triples --out benchmarks/results
    python -m benchmarks.beyond_triples --tables votes --epsilons 10 --seeds 0 1 2 --orders 3

Hidden classes: one more variable, given which all others are independent, fitted to the tables that `learn` released
(least squares by the noise's and the records' variance, pseudo-counts of single variables), from an EM fit to records
that its model draws. Their number is that of the smallest criterion, ``sum((y - N mu)^2/variance of the noise) + 2
parameters``, which is computed for `learn`'s model too: it is post-processing. "Both" draws each record from one of
the two models, by a fair coin. "Of the records" is the hidden-class model of the exact records, no private method.
Orders: `learn` with `max_order`. Scores: mean total variation of all pairs, of 300 triples and of 300 sets of four and
of five, to the records learned from; mean log-likelihood of a held-out record in nats.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from benchmarks.compare_scores import _table, mutual_scopes
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA, CLASSES, MOST_DRAWN = 1e-9, (2, 4, 8), 10_000
COLUMNS = ("pairs", "triples", "fours", "fives", "nats")


class HiddenClasses:
    """Shares of the classes, and of each variable's states within each: of shape (k,) and (k, states)."""

    def __init__(self, shares: np.ndarray, states: Sequence[np.ndarray]) -> None:
        self.shares, self.states = shares, list(states)

    def joint(self, scope: Sequence[int]) -> np.ndarray:
        """The table of the class and some variables."""
        table = self.shares
        for i in scope:
            own = self.states[i]
            table = table[..., None] * own.reshape(len(own), *(1,) * (table.ndim - 1), -1)
        return table

    def tables(self, scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        return [self.joint(scope).sum(axis=0) for scope in scopes]

    def of_records(self, codes: np.ndarray) -> np.ndarray:
        """Log-probability of each record with each class, shape (n, k)."""
        return np.log(self.shares) + sum(
            np.log(own.T[column]) for own, column in zip(self.states, codes.T, strict=True)
        )

    def log_probability(self, codes: np.ndarray) -> np.ndarray:
        return logsumexp(self.of_records(codes), axis=1)

    @property
    def parameters(self) -> int:
        return len(self.shares) - 1 + sum(own.shape[0] * (own.shape[1] - 1) for own in self.states)


def of_records(codes: np.ndarray, sizes: Sequence[int], k: int) -> HiddenClasses:
    """EM on records, one pseudo-record in each class."""
    n, belongs = len(codes), np.random.default_rng(0).dirichlet(np.full(k, 0.3), len(codes))
    rows = [(column == np.arange(size)[:, None]).astype(float) for column, size in zip(codes.T, sizes, strict=True)]
    singles = [(row.sum(axis=1) + 0.5) / (n + 0.5 * len(row)) for row in rows]
    for _ in range(60):
        total = belongs.sum(axis=0)
        states = [((row @ belongs + own[:, None]) / (total + 1)).T for row, own in zip(rows, singles, strict=True)]
        model = HiddenClasses((total + 1) / (n + k), states)
        belongs = softmax(model.of_records(codes), axis=1)
    return model


def of_tables(noisy: NoisyMarginals, start: HiddenClasses, expected: np.ndarray) -> HiddenClasses:
    """Penalised least squares of the noisy tables; `expected` are proportions that the variances are of."""
    cliques, n, k = noisy.cliques, noisy.n_records, len(start.shares)
    said = cliques.split(noisy.counts / n)
    weights = cliques.split(1 / (noisy.cell_variance / n**2 + np.maximum(expected, 0) / n + 1e-12))
    singles, ends = start.tables([[i] for i in range(len(start.states))]), np.cumsum([k, *map(np.size, start.states)])

    def parts(x: np.ndarray) -> list[np.ndarray]:
        shares, *states = np.split(x, ends[:-1])
        return [shares, *(own.reshape(k, -1) for own in states)]

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        shares, *states = (log_softmax(part, axis=-1) for part in parts(x))
        model = HiddenClasses(np.exp(shares), [np.exp(own) for own in states])
        pulls = [np.ones(k), *(np.tile(single, (k, 1)) for single in singles)]
        value = -sum(float((p * part).sum()) for p, part in zip(pulls, (shares, *states), strict=True))
        slopes = [-pull for pull in pulls]
        for scope, y, weight in zip(cliques.indices, said, weights, strict=True):
            joint = model.joint(scope)
            residual = joint.sum(axis=0) - y
            value += 0.5 * float((weight * residual**2).sum())
            moved = joint * (weight * residual)
            slopes[0] = slopes[0] + moved.sum(axis=tuple(range(1, moved.ndim)))
            for axis, i in enumerate(scope, start=1):
                slopes[1 + i] += moved.sum(axis=tuple(a for a in range(1, moved.ndim) if a != axis))
        likely = (model.shares, *model.states)
        back = [s - p * s.sum(axis=-1, keepdims=True) for s, p in zip(slopes, likely, strict=True)]
        return value, np.concatenate([np.ravel(part) for part in back])

    first = np.concatenate([np.log(start.shares), *(np.log(own).ravel() for own in start.states)])
    found = parts(minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x)
    return HiddenClasses(softmax(found[0]), [softmax(own, axis=1) for own in found[1:]])


class Both:
    """A fair coin between two models."""

    def __init__(self, *models: Any) -> None:
        self.models = models

    def tables(self, scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        return [(a + b) / 2 for a, b in zip(*(model.tables(scopes) for model in self.models), strict=True)]

    def log_probability(self, codes: np.ndarray) -> np.ndarray:
        return np.logaddexp(*(model.log_probability(codes) for model in self.models)) - math.log(2)


class Learned:
    """`learn`'s model, asked like the others."""

    def __init__(self, model: LogLinearModel) -> None:
        self.model, self.log_probability = model, model.log_probability

    def tables(self, scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        return self.model.marginals_of([tuple(scope) for scope in scopes])


def learned(name: str, table: Table, codes: np.ndarray, epsilon: float, seed: int, order: int) -> tuple:
    """What `learn` learned from, its model, and the seconds it took."""
    states = {i: list(range(k)) for i, k in enumerate(table.cardinalities)}
    start = time.process_time()
    network = PrivateNetwork(epsilon, DELTA, state_names=states, random_state=seed, max_order=order)
    network.fit(pd.DataFrame(codes))
    return network._noisy.merged(), network.model_.to_log_linear(), time.process_time() - start


def scopes_of(sizes: Sequence[int]) -> dict[str, list]:
    """The sets that models are scored by."""
    rng = np.random.default_rng(5)
    found: dict[str, list] = dict(zip(COLUMNS, mutual_scopes(sizes), strict=False))
    for name, order in (("fours", 4), ("fives", 5)):
        drawn = (tuple(sorted(rng.choice(len(sizes), order, replace=False).tolist())) for _ in range(20_000))
        small = dict.fromkeys(scope for scope in drawn if math.prod(sizes[i] for i in scope) <= 200_000)
        found[name] = list(small)[:300]
    return found


def rows_of(name: str, epsilon: float, seed: int, orders: Sequence[int]) -> list[dict]:
    """`learn` with some orders, and hidden classes beside the first of them."""
    table = TABLES[name].read()
    unseen, sizes = held_out(table, seed), table.cardinalities
    codes, rows, scopes = table.codes[~unseen], [], scopes_of(sizes)

    def add(how: str, model: Any, seconds: float, criterion: float | None = None) -> None:
        found: dict[str, float] = {}
        for kind, wanted in scopes.items():
            exact = (_table(codes, scope, sizes) for scope in wanted)
            found[kind] = float(
                np.mean([0.5 * np.abs(a - b).sum() for a, b in zip(model.tables(wanted), exact, strict=True)])
            )
        found["nats"] = float(model.log_probability(table.codes[unseen]).mean())
        rows.append({"table": name, "epsilon": epsilon, "seed": seed, "model": how, "criterion": criterion} | found)
        rows[-1]["seconds"] = seconds

    for order in orders:
        noisy, model, seconds = learned(name, table, codes, epsilon, seed, order)
        cliques, own = noisy.cliques, Learned(model)
        expected = cliques.join(own.tables(cliques.indices))

        def misfit(tables: np.ndarray, noisy: NoisyMarginals = noisy) -> float:
            return float(((noisy.counts - noisy.n_records * tables) ** 2 / noisy.cell_variance).sum())

        effects = {s for c in cliques.indices for r in range(1, len(c) + 1) for s in itertools.combinations(c, r)}
        free = sum(math.prod(sizes[i] - 1 for i in effect) for effect in effects)
        add(f"`learn`, order {order}", own, seconds, misfit(expected) + 2 * free)
        if order != orders[0]:
            continue
        drawn = model.sample(min(4 * len(codes), MOST_DRAWN), np.random.default_rng(0))
        tried = []
        for k in CLASSES:
            start = time.process_time()
            hidden = of_tables(noisy, of_records(drawn, sizes, k), expected)
            score = misfit(cliques.join(hidden.tables(cliques.indices))) + 2 * hidden.parameters
            tried.append((score, k, hidden, time.process_time() - start))
        score, k, hidden, seconds = min(tried, key=lambda one: one[0])
        add(f"{k} hidden classes", hidden, sum(one[3] for one in tried), score)
        add("both", Both(own, hidden), 0.0)
        add(f"{k} classes of the records", of_records(codes, sizes, k), 0.0)
    return rows


def report(rows: list[dict]) -> str:
    """One line per table, epsilon and model, in the order in which they were run: means over seeds."""
    kinds = ("table", "epsilon", "model")
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        how = "hidden classes" if "hidden" in row["model"] else row["model"]
        how = "classes of the records" if "of the records" in how else how
        found.setdefault((TABLES[row["table"]].label, f"{row['epsilon']:g}", how), []).append(row)
    lines = []
    for key, own in found.items():
        told = [f"{np.mean([row[c] for row in own]):.4f}" for c in COLUMNS[:-1]]
        criterion = "" if own[0]["criterion"] is None else f"{np.mean([row['criterion'] for row in own]):.0f}"
        seconds = f"{np.mean([row['seconds'] for row in own]):.1f}" if own[0]["seconds"] else ""
        lines.append([*key, str(len(own)), *told, f"{np.mean([row['nats'] for row in own]):.2f}", criterion, seconds])
    return markdown_table([*kinds, "seeds", *COLUMNS, "criterion", "seconds"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beyond_triples", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=["votes", "breast", "parkinsons", "pages"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--orders", nargs="+", type=int, default=[3, 4])
    parser.add_argument("--lines", type=Path, default=Path("build/beyond-triples.jsonl"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    given.lines.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.lines.read_text().splitlines()] if given.lines.exists() else []
    done = {(row["table"], row["epsilon"], row["seed"]) for row in rows}
    for name, epsilon, seed in itertools.product(given.tables, given.epsilons, given.seeds):
        if (name, epsilon, seed) not in done:
            made = rows_of(name, epsilon, seed, given.orders)
            with given.lines.open("a") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in made)
            rows += made
    text = report(rows)
    if given.out:
        head = f"# Beyond triples: hidden classes, and larger tables\n\n{describe_machine()}\n\n"
        (given.out / "beyond-triples.md").write_text(f"{head}{text}\n")
    print(text)


if __name__ == "__main__":
    main()
