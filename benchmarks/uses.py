"""What a learned model is good for: prediction, counting queries, tables of pairs and triples, and likelihood together.

::

    python -m benchmarks.uses --out benchmarks/results
    python -m benchmarks.uses --tables breast --epsilons 1 --seeds 3 --modes plain workload
    python -m benchmarks.uses --modes star chow-liu plain target --out benchmarks/results --name target
    python -m benchmarks.uses --modes star target --lines build/uses.jsonl --as-far

Of each table a tenth is held out (`benchmarks.compare_tables`). Scores of a model: mean total variation of its tables
of pairs and of 300 triples to those of the records learned from; the mean relative error of 500 counting queries of
three or four conditions, each of which a random record fulfils (of what is rarer than 1 %, the error is divided by
1 %); how often gradient boosting that learned from as many synthetic records ranks a held-out record with a state of
the table's target above one without (AUC); the same of the model's own predictions, and their log-loss; the mean
log-likelihood of a held-out record; edges of the graph. All are of the same fits, and each fit is a line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_scores import classifier_auc, counting_error, model_scores, mutual_scopes
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import CollectiveMAP, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA = 1e-9
BEFORE = ", before"
COLUMNS = {"edges": 0, "pairs": 4, "triples": 4, "counts": 3, "auc": 3, "own_auc": 3, "log_loss": 3, "nats": 2}
MODES = ("independent", "star", "chow-liu", "plain", "pairs", "workload", "target")
"""Tables of single variables alone; all of the budget for pairs with the target, `CollectiveMAP` on this star;
`PrivateChowLiu`; `learn` with its defaults; with ``optimise="pairs"``; with a workload of all triples with the target;
with `target=`."""


def fitted(
    table: Table, codes: np.ndarray, mode: str, epsilon: float, seed: int
) -> CollectiveMAP | PrivateChowLiu | PrivateNetwork:
    """What was learned of the records in one of `MODES`."""
    frame = pd.DataFrame(codes, columns=table.names)
    states = {name: list(range(k)) for name, k in zip(table.names, table.cardinalities, strict=True)}
    given: dict[str, Any] = {"state_names": states, "random_state": seed}
    others = [name for name in table.names if name != table.target]
    if mode in ("independent", "star"):
        graph = nx.Graph()
        graph.add_nodes_from(table.names)
        if mode == "star":
            graph.add_edges_from((name, table.target) for name in others)
        return CollectiveMAP(epsilon, DELTA, noise="gaussian", **given).fit(graph, frame)
    if mode == "chow-liu":
        return PrivateChowLiu(epsilon, DELTA, **given).fit(frame)
    if mode == "pairs":
        given["optimise"] = mode
    if mode == "target":
        given["target"] = table.target
    if mode == "workload":
        given["workload"] = [(*pair, table.target) for pair in itertools.combinations(others, 2)]
    return PrivateNetwork(epsilon, DELTA, **given).fit(frame)


def scores(name: str, mode: str, epsilon: float, seed: int, quick: bool = False) -> dict:
    """One fit, and all its scores; quickly without those of synthetic records."""
    table = TABLES[name].read()
    unseen = held_out(table, seed)
    known, new = table.codes[~unseen], table.codes[unseen]
    start = time.process_time()
    network = fitted(table, known, mode, epsilon, seed)
    seconds = time.process_time() - start
    model = network.model_.to_log_linear()
    model = model.__class__(model.cliques, model.theta, memory_limit=2**32)
    graph = getattr(network, "graph_", nx.Graph())
    found = {"table": name, "mode": mode, "epsilon": epsilon, "seed": seed, "edges": graph.number_of_edges()}
    found["target_edges"] = graph.degree(table.target) if table.target in graph else 0
    found |= model_scores(model, known, new, mutual_scopes(table.cardinalities))
    if not quick:
        synthetic = network.model_.sample(len(known), random_state=seed)[list(table.names)].to_numpy().astype(np.int32)
        found |= {"auc": classifier_auc(synthetic, new, table), "counts": counting_error(synthetic, known, seed)}
    return found | own_prediction(network, new, table) | {"seconds": seconds}


def own_prediction(network: CollectiveMAP | PrivateChowLiu | PrivateNetwork, unseen: np.ndarray, table: Table) -> dict:
    """How well the model itself predicts the target of real records: AUC, mean over its states, and log-loss."""
    from sklearn.metrics import roc_auc_score

    told = network.model_.predict_proba(pd.DataFrame(unseen, columns=table.names), table.target).to_numpy()
    true = unseen[:, table.names.index(table.target)]
    states = [k for k in np.unique(true) if (true != k).any()]
    auc = [roc_auc_score(true == k, told[:, k]) for k in states]
    loss = -np.log(np.maximum(told[np.arange(len(true)), true], 1e-300))
    return {"own_auc": float(np.mean(auc)), "log_loss": float(loss.mean())}


def report(rows: list[dict]) -> str:
    """Means over seeds, one row for each table, epsilon and mode; with a star, how far AUC is from its own."""
    frame = pd.DataFrame(rows)
    columns = {column: digits for column, digits in COLUMNS.items() if column in frame}
    lines = []
    seed = ["table", "epsilon", "seed"]
    stars = frame[frame["mode"] == "star"].set_index(seed)["auc"] if "auc" in columns else pd.Series(dtype=float)
    more = ["auc less the star's"] if len(stars) else []
    for (name, epsilon, mode), group in frame.groupby(["table", "epsilon", "mode"], sort=False):
        cells = [f"{group[column].mean():.{digits}f}" for column, digits in columns.items()]
        if more:
            ahead = (group.set_index(seed)["auc"] - stars).dropna()
            cells.append(f"{ahead.mean():+.3f}" + (f" +- {ahead.sem():.3f}" if len(ahead) > 1 else ""))
        lines.append([TABLES[name].label, f"{epsilon:g}", mode, str(len(group)), *cells])
    return markdown_table(["table", "epsilon", "how", "seeds", *columns, *more], lines)


def settings(rows: list[dict], given: argparse.Namespace) -> list[tuple[str, float]]:
    """Tables and epsilons; with `target=` among the modes in the order of its AUC less the best of the others."""
    asked = list(itertools.product(given.tables, given.epsilons))
    if "target" not in given.modes or not rows:
        return asked
    frame = pd.DataFrame(rows)
    by = "auc" if "auc" in frame else "own_auc"
    auc = frame[frame["mode"].isin(given.modes)].pivot_table(by, ["table", "epsilon"], "mode")
    ahead = auc["target"] - auc.drop(columns="target").max(axis=1)
    return sorted(asked, key=lambda where: ahead.get(where, np.inf))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["breast", "mushrooms", "parkinsons"], choices=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="seed; default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="leave out what synthetic records are needed for")
    parser.add_argument("--lines", type=Path, default=Path("build/uses.jsonl"), help="one line for each fit; goes on")
    parser.add_argument("--as-far", action="store_true", help="report what there is, and fit nothing")
    parser.add_argument("--before", type=Path, help="lines that an earlier version wrote, for rows beside")
    parser.add_argument("--out", type=Path, help="folder of the report")
    parser.add_argument("--name", default="uses", help="of the report; default: %(default)s")
    given = parser.parse_args()
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    given.lines.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.lines.read_text().splitlines()] if given.lines.exists() else []
    done = {tuple(row[k] for k in ("table", "mode", "epsilon", "seed")) for row in rows}
    seeds = range(given.first, given.first + given.seeds)
    for seed, name, epsilon, mode in itertools.product(seeds, given.tables, given.epsilons, given.modes):
        if given.as_far or (name, mode, epsilon, seed) in done:
            continue
        rows.append(scores(name, mode, epsilon, seed, given.quick))
        with given.lines.open("a") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()}), flush=True)
    rows = [row for row in rows if row["seed"] in seeds]
    if given.before:
        earlier = [json.loads(line) for line in given.before.read_text().splitlines()]
        rows += [row | {"mode": f"{row['mode']}{BEFORE}"} for row in earlier]
        given.modes = [*(f"{mode}{BEFORE}" for mode in MODES), *given.modes]
    asked = [(*where, mode) for where in settings(rows, given) for mode in given.modes]
    order = {key: k for k, key in enumerate(asked)}
    rows = sorted(
        (row for row in rows if (row["table"], row["epsilon"], row["mode"]) in order),
        key=lambda row: order[row["table"], row["epsilon"], row["mode"]],
    )
    text = report(rows)
    if given.out:
        head = f"# What learned models are good for\n\n`{' '.join(['python -m benchmarks.uses', *sys.argv[1:]])}`\n\n"
        (given.out / f"{given.name}.md").write_text(f"{head}{describe_machine()}\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
