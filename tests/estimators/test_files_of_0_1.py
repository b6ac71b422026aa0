"""Files that version 0.1.0 wrote are read: models, releases that are learned from again, schemas and ledgers."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, PrivateTable, Release, Schema, estimators
from pgmpy_dp.private.guarantee import ZCDP

FILES = Path(__file__).parent / "files_of_0_1"  # write.py there made them
SAID = json.loads((FILES / "said.json").read_text())
PATH = nx.path_graph(["a", "b", "c", "d"])
ARGUMENTS = {
    "PrivateBinaryMRF": {"width": 2.0},
    "PrivateIsing": {"width": 2.0},
    "PrivateIsing-frank-wolfe": {"width": 2.0, "method": "frank-wolfe"},
    "PrivateIsing-gradient": {"width": 2.0, "method": "gradient"},
    "PrivatePairwise": {"width": 2.0},
    "StableStructure": {"width": 2.0, "min_edge_weight": 0.5},
    "EdgeVoting": {"width": 2.0, "min_edge_weight": 0.5},
    "PrivateGraphicalLasso": {"row_norm": 3.0, "penalty": 0.1},
    "PrivateGraphicalLasso-output": {"row_norm": 3.0, "penalty": 0.1, "perturb": "output"},
    "PrivateGaussianMixture": {"n_components": 2},
    "PrivateBlockModel": {"method": "noisy-power"},
    "PrivateBlockModel-exponential": {"method": "exponential"},
    "PrivateBlockModel-response": {"method": "randomized-response"},
    "PrivateBlockModel-sdp": {"method": "sdp"},
    "PrivateMarkovChain-sgd": {"method": "sgd"},
}


def learner(name: str):
    return getattr(estimators, name.split("-")[0])(**ARGUMENTS.get(name, {}))


def names(kind: str) -> list[str]:
    return sorted(path.name.removesuffix(f".{kind}.npz") for path in FILES.glob(f"*.{kind}.npz"))


def test_there_is_a_file_of_each_estimator():
    learners = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit_release")}
    assert {name.split("-")[0] for name in names("release")} >= learners


@pytest.mark.parametrize("name", names("model"))
def test_a_model_is_what_it_was(name):
    path = FILES / f"{name}.model.npz"
    model = MarkovNetwork.load(path)
    assert model.privacy.guarantee.to_dict() == SAID[path.name]["cost"]
    for variable, table in SAID[path.name]["tables"].items():
        np.testing.assert_allclose(model.query([variable]).values, table, rtol=1e-9)
    assert len(model.sample(10, random_state=0)) == 10


@pytest.mark.parametrize("name", names("release"))
def test_a_release_is_what_it_was_and_is_learned_from(name):
    path = FILES / f"{name}.release.npz"
    release = Release.load(path)
    said = SAID[path.name]
    assert release.guarantee.to_dict() == said["cost"]
    assert release.mechanism == said["mechanism"]
    assert [float(np.sum(value, dtype=float)) for value in release.values] == pytest.approx(said["sums"], rel=1e-12)
    estimator = learner(name)
    if name in names("model") and name != "PrivateNetwork":
        estimator.fit_release(PATH, release)
    else:
        estimator.fit_release(release)
    assert estimator.privacy_.guarantee.to_dict() == said["cost"]
    assert estimator.privacy_.reproducible


def test_schemas_have_their_variables():
    schema = Schema.from_json(FILES / "schema.json")
    assert {name: schema[name] for name in PATH} == dict.fromkeys(PATH, ("no", "yes"))
    with_bounds = Schema.from_json(FILES / "schema-with-bounds.json")
    assert list(with_bounds) == [*PATH, "age"]
    assert with_bounds["age"] == Number(0, 100)


def test_a_ledger_has_its_charge_and_takes_another(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_bytes((FILES / "ledger.json").read_bytes())
    ledger = Ledger.open(path, budget=Budget(epsilon=3.0, delta=1e-6))
    (entry,) = ledger.entries
    assert entry.cost == ZCDP(0.020187099258749265)
    records = pd.DataFrame({name: ["no", "yes"] * 500 for name in PATH})
    table = PrivateTable(records, {name: ["no", "yes"] for name in PATH}, ledger=ledger)
    estimators.NaiveMLE(rho=0.1, random_state=0).fit(PATH, table)
    assert len(Ledger.open(path).entries) == 2
