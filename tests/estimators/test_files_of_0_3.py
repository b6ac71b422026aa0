"""Every kind of file of version 0.3.0 loads and answers, those of methods that are gone or have moved too."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import (
    Budget,
    Ledger,
    LinkedModel,
    LinkedSchema,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    Schema,
    estimators,
)
from pgmpy_dp.linked import PrivateLinkedNetwork, PrivateLinkedTables
from pgmpy_dp.linked.family_check import FamilyCheck
from pgmpy_dp.models.score_reading import ModelScore
from pgmpy_dp.tables.discovery import Discovery
from pgmpy_dp.tables.schema_check import SchemaCheck
from tests.estimators.how_they_are_read import PATH, answers, learned_again

FILES = Path(__file__).parent / "files_of_0_3"  # write.py there made them
SAID = json.loads((FILES / "said.json").read_text())


def each(kind: str):
    return pytest.mark.parametrize("name", [p.name.removesuffix(f".{kind}.npz") for p in FILES.glob(f"*.{kind}.npz")])


def release_of(file: str) -> Release:
    return Release.load(FILES / file)


def test_there_is_a_file_of_each_estimator_and_each_kind():
    since = {"PrivateLinearGaussian", "PrivateLogisticRegression"}  # 0.3 had none of them
    of_one_table = set(estimators.__all__) - {"PrivateNetworkClassifier", "PrivateLinkedNetwork", *since}
    assert {path.name.split("-")[0].split(".")[0] for path in FILES.glob("*.release.npz")} >= of_one_table
    assert {path.name for path in FILES.glob("*.npz")} == set(SAID)


@each("model")
def test_a_model_is_what_it_was(name):
    said, model = SAID[f"{name}.model.npz"], MarkovNetwork.load(FILES / f"{name}.model.npz")
    assert model.privacy.guarantee.to_dict() == said["cost"]
    for variable, table in said["tables"].items():
        np.testing.assert_allclose(model.query([variable]).values, table, rtol=1e-9)
    assert len(model.sample(10, random_state=0)) == 10


def test_posteriors_priors_and_numbers_of_models():
    model = MarkovNetwork.load(FILES / "CollectiveMAP-posterior.model.npz")
    assert len(model.posterior.draws.theta) == 20 and model.privacy.prior is not None
    ages = MarkovNetwork.load(FILES / "PrivateNetwork.model.npz").sample(50, random_state=0)["age"]
    assert 0 <= ages.min() < 18 and 65 < ages.max() < 100


@pytest.mark.parametrize("file", sorted(file for file in SAID if "sums" in SAID[file]))
def test_a_release_is_what_it_was(file, tmp_path):
    release, said = release_of(file), SAID[file]
    assert release.guarantee.to_dict() == said["cost"] and release.mechanism == said["mechanism"]
    assert [float(np.sum(value, dtype=float)) for value in release.values] == said["sums"]
    assert list(release.names) == said["names"]  # a key in a file stays
    release.save(tmp_path / "again.npz")
    assert Release.load(tmp_path / "again.npz") == release


@each("release")
def test_the_same_is_learned_from_a_release(name):
    release = release_of(f"{name}.release.npz")
    fitted = learned_again(name, release)
    assert fitted.release_ == release
    assert answers(name, fitted) == pytest.approx(SAID[f"{name}.release.npz"]["answers"], rel=1e-3, abs=1e-3)


def test_interactions_inside_others_of_a_method_that_is_gone():
    """With a least weight halves of the records give coefficients for interactions that are not maximal."""
    release = release_of("PrivateBinaryMRF-linf.release.npz")
    fitted = estimators.PrivateBinaryMRF(2.0, min_edge_weight=0.4).fit_release(release)
    expected = {("a", "b"): 0.6153846, ("a", "c"): -0.0024189647, ("b", "c"): 0.46153846, ("b", "d"): 0.076923077}
    expected |= {("c", "d"): 0.61678224, ("a", "c", "d"): 0.051282051}
    assert fitted.weights_ == pytest.approx(expected, rel=1e-6)
    assert (fitted.n_records_, fitted.n_records_sd_) == (2862.0, pytest.approx(57.583409))


def test_what_is_released_beside_models():
    found = Discovery.of(release_of("discovered.one.npz"))
    assert found.schema["a"] == ("no", "yes", "other") and found.schema.discovered[0]["guarantee"]
    assert SchemaCheck.of(release_of("check.one.npz")).n_records > 0
    assert len(ModelScore.of(release_of("score.one.npz")).each) > 0
    assert FamilyCheck.of(release_of("linked-check.one.npz")).kinds["children"] > 500


def test_schemas():
    schema = Schema.from_json(FILES / "schema.json")
    assert schema["age"] == Number(0, 100, cuts=[18, 65], missing="state")
    assert schema.options["recode"]["a"] == {"y": "yes"}
    assert schema["day"] == ("2026-01-01", None) and len(schema.impossible) == 1
    linked = LinkedSchema.from_json(FILES / "linked-schema.json")
    assert (linked.key, linked.most, linked.parent["region"]) == ("house", 3, ("n", "s"))
    assert LinkedSchema.from_json(FILES / "linked-discovered.json").parent.discovered


def test_a_ledger_has_its_charges_and_takes_another(tmp_path):
    """Also one that paid for the schema of the next fit."""
    path = Path(shutil.copy(FILES / "ledger.json", tmp_path))
    ledger, schema = Ledger.open(path), Schema.from_json(FILES / "discovered.json")
    assert ledger.budget == Budget(epsilon=6.0, delta=1e-5) and len(ledger.entries) == 3
    table = PrivateTable(pd.DataFrame({name: ["no", "yes"] * 500 for name in PATH}), schema, ledger=ledger)
    fitted = estimators.NaiveMLE(rho=1e-3, random_state=0).fit(PATH, table)
    assert fitted.privacy_.schema.guarantee == ledger.entries[0].cost and len(Ledger.open(path).entries) == 4


def test_linked_tables(tmp_path):
    release = release_of("PrivateLinkedNetwork.linked.npz")
    fitted = PrivateLinkedNetwork(epsilon=2.0).fit_release(release)
    assert fitted.privacy_.guarantee.to_dict() == SAID["PrivateLinkedNetwork.linked.npz"]["cost"]
    model = LinkedModel.load(FILES / "PrivateLinkedNetwork.families.npz")
    assert model.privacy.guarantee == release.guarantee and model.linked == fitted.model_.linked
    parents, children = model.sample(50, random_state=0)
    assert len(parents) == 50 and set(children) == {"house", "age", "sex"}
    path = Path(shutil.copy(FILES / "linked-ledger.json", tmp_path))
    ledger = Ledger.open(path, key_kind="text")
    PrivateLinkedNetwork(rho=0.01).fit(PrivateLinkedTables(parents, children, model.linked, ledger=ledger))
    assert len(Ledger.open(path).entries) == 2
