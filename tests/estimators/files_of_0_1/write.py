"""Writes the files beside it, with version 0.1.0 of the package (commit c78a41f).

git archive c78a41f pgmpy_dp | tar x -C OLD
PYTHONPATH=OLD python tests/estimators/files_of_0_1/write.py
"""

import json
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

import pgmpy_dp
from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release, Schema, estimators, learn

FOLDER = Path(__file__).parent
NAMES = ["a", "b", "c", "d"]
STATES = {name: ["no", "yes"] for name in NAMES}
PATH = nx.path_graph(NAMES)
SEEDED = {"delta": 1e-6, "random_state": 1}


def binary_records(rng: np.random.Generator) -> pd.DataFrame:
    """Four variables, each the one before with a fifth of its values turned."""
    columns = [rng.random(3000) < 0.5]
    for _ in NAMES[1:]:
        columns.append(columns[-1] ^ (rng.random(3000) < 0.2))
    return pd.DataFrame({name: np.where(column, "yes", "no") for name, column in zip(NAMES, columns, strict=True)})


def write_networks(records: pd.DataFrame) -> None:
    parameters = {"epsilon": 1.0, "state_names": STATES, **SEEDED}
    for name in ("NaiveMLE", "CollectiveEM", "CollectiveMAP", "PrivateSGD"):
        estimator = getattr(estimators, name)(**parameters)
        model = MarkovNetwork(PATH).fit(records, estimator=estimator)
        model.save(FOLDER / f"{name}.model.npz")
        estimator.release_.save(FOLDER / f"{name}.release.npz")
    network = learn(records, Budget(epsilon=1.0, delta=1e-6), STATES, random_state=1)
    network.model_.save(FOLDER / "PrivateNetwork.model.npz")
    network.release_.save(FOLDER / "PrivateNetwork.release.npz")


def write_structures(records: pd.DataFrame) -> None:
    table = {"epsilon": 2.0, "state_names": STATES, **SEEDED}
    votes = {"width": 2.0, "min_edge_weight": 0.5}
    for name, estimator in {
        "PrivateChowLiu": estimators.PrivateChowLiu(**table),
        "PrivateIsing": estimators.PrivateIsing(width=2.0, **table),
        "PrivateIsing-frank-wolfe": estimators.PrivateIsing(width=2.0, method="frank-wolfe", **table),
        "PrivateIsing-gradient": estimators.PrivateIsing(width=2.0, method="gradient", **table),
        "PrivatePairwise": estimators.PrivatePairwise(width=2.0, **table),
        "PrivateBinaryMRF": estimators.PrivateBinaryMRF(width=2.0, **table),
        "StableStructure": estimators.StableStructure(**votes, **table),
        "EdgeVoting": estimators.EdgeVoting(**votes, **table),
    }.items():
        estimator.fit(records).release_.save(FOLDER / f"{name}.release.npz")


def write_others(rng: np.random.Generator) -> None:
    numbers = rng.normal(size=(3000, 4))
    groups = np.vstack([rng.normal(size=(8000, 2)) + 20, rng.normal(size=(8000, 2)) - 20])
    two = nx.stochastic_block_model([40, 40], [[0.5, 0.05], [0.05, 0.5]], seed=1)
    visits = pd.DataFrame({"user": np.repeat(np.arange(800), 6), "sequence": 0, "page": rng.choice(["x", "y"], 4800)})
    lasso = {"row_norm": 3.0, "penalty": 0.1, "epsilon": 1.0, **SEEDED}
    blocks = {"epsilon": 4.0, "delta": 1e-4, "random_state": 1}
    chains = {"epsilon": 2.0, "state_names": {"page": ["x", "y"]}, "order": None, **SEEDED}
    visits = visits.groupby(["user", "sequence"])["page"].agg(list).reset_index()
    for name, estimator, data in (
        ("PrivateGraphicalLasso", estimators.PrivateGraphicalLasso(**lasso), numbers),
        (
            "PrivateGraphicalLasso-output",
            estimators.PrivateGraphicalLasso(perturb="output", n_records=3000, **lasso),
            numbers,
        ),
        ("PrivateGaussianMixture", estimators.PrivateGaussianMixture(n_components=2, epsilon=2.0, **SEEDED), groups),
        ("PrivateBlockModel", estimators.PrivateBlockModel(method="noisy-power", **blocks), two),
        ("PrivateBlockModel-response", estimators.PrivateBlockModel(method="randomized-response", **blocks), two),
        ("PrivateBlockModel-sdp", estimators.PrivateBlockModel(method="sdp", **blocks), two),
        (
            "PrivateBlockModel-exponential",
            estimators.PrivateBlockModel(method="exponential", **blocks),
            nx.path_graph(20),
        ),
        ("PrivateMarkovChain", estimators.PrivateMarkovChain(**chains), visits),
        ("PrivateMarkovChain-sgd", estimators.PrivateMarkovChain(method="sgd", **chains), visits),
    ):
        estimator.fit(data).release_.save(FOLDER / f"{name}.release.npz")


def write_schemas_and_ledger(records: pd.DataFrame) -> None:
    Schema(STATES).to_json(FOLDER / "schema.json")
    Schema({**STATES, "age": pgmpy_dp.Bounds(0, 100)}).to_json(FOLDER / "schema-with-bounds.json")
    ledger = Ledger.open(FOLDER / "ledger.json", budget=Budget(epsilon=3.0, delta=1e-6))
    table = PrivateTable(records, STATES, ledger=ledger)
    estimators.PrivateChowLiu(epsilon=1.0, delta=1e-7, random_state=1).fit(table)
    FOLDER.joinpath("ledger.json.lock").unlink(missing_ok=True)


def write_what_they_say() -> None:
    """What 0.1.0 itself reads in them, which later versions have to read too."""
    said = {}
    for path in sorted(FOLDER.glob("*.model.npz")):
        model = MarkovNetwork.load(path)
        tables = {name: model.marginal([name]).values.ravel().tolist() for name in NAMES}
        said[path.name] = {"cost": model.privacy.guarantee.to_dict(), "tables": tables}
    for path in sorted(FOLDER.glob("*.release.npz")):
        release = Release.load(path)
        sums = [float(np.sum(value, dtype=float)) for value in release.values]
        said[path.name] = {"cost": release.guarantee.to_dict(), "mechanism": release.mechanism, "sums": sums}
    (FOLDER / "said.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    if pgmpy_dp.__version__ != "0.1.0":
        sys.exit(f"this is {pgmpy_dp.__version__} from {pgmpy_dp.__file__}: pass PYTHONPATH with version 0.1.0")
    rng = np.random.default_rng(0)
    binary = binary_records(rng)
    write_networks(binary)
    write_structures(binary)
    write_others(rng)
    write_schemas_and_ledger(binary)
    write_what_they_say()
