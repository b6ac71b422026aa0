"""Files of versions 0.1.0 and 0.2.0 are read: models, releases that are learned from again, schemas and ledgers."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, PrivateTable, Release, Schema, estimators
from pgmpy_dp.models.score_reading import ModelScore
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.tables.discovery import Discovery
from pgmpy_dp.tables.schema_check import SchemaCheck

HERE = Path(__file__).parent
FOLDERS = [HERE / "files_of_0_1", HERE / "files_of_0_2"]  # write.py there made them
FILES, NEWER = FOLDERS
SAID = {folder: json.loads((folder / "said.json").read_text()) for folder in FOLDERS}
OF_BOTH = {
    *("CollectiveEM", "CollectiveMAP", "EdgeVoting", "NaiveMLE", "PrivateBinaryMRF", "PrivateBlockModel"),
    *("PrivateChowLiu", "PrivateGaussianMixture", "PrivateGraphicalLasso", "PrivateIsing", "PrivateMarkovChain"),
    *("PrivateNetwork", "PrivatePairwise", "PrivateSGD", "StableStructure"),
}
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
    "PrivateMarkovChain-auto": {"chain_order": "auto"},
    "PrivateGraphicalLasso-pairs": {"perturb": "pairs", "bounds": [(-4.0, 6.0)] * 4, "center": "private"},
    "PrivateGraphicalLasso-bounds": {"bounds": [(-4.0, 6.0)] * 4, "center": "private", "penalty": 0.1},
}


def learner(name: str):
    return getattr(estimators, name.split("-")[0])(**ARGUMENTS.get(name, {}))


def names(kind: str, folder: Path = FILES) -> list[str]:
    return sorted(path.name.removesuffix(f".{kind}.npz") for path in folder.glob(f"*.{kind}.npz"))


def each(kind: str):
    found = [(folder, name) for folder in FOLDERS for name in names(kind, folder)]
    return pytest.mark.parametrize(("folder", "name"), found, ids=[f"{f.name[-3:]}-{name}" for f, name in found])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_there_is_a_file_of_each_estimator(folder):
    learners = {name.split("-")[0] for name in names("release", folder)}
    assert learners >= OF_BOTH and set(estimators.__all__) >= OF_BOTH


@each("model")
def test_a_model_is_what_it_was(folder, name):
    path = folder / f"{name}.model.npz"
    model, said = MarkovNetwork.load(path), SAID[folder][path.name]
    assert model.privacy.guarantee.to_dict() == said["cost"]
    for variable, table in said["tables"].items():
        np.testing.assert_allclose(model.query([variable]).values, table, rtol=1e-9)
    assert len(model.sample(10, random_state=0)) == 10


@each("release")
def test_a_release_is_what_it_was_and_is_learned_from(folder, name):
    path = folder / f"{name}.release.npz"
    release, said = Release.load(path), SAID[folder][path.name]
    assert release.guarantee.to_dict() == said["cost"]
    assert release.mechanism == said["mechanism"]
    assert [float(np.sum(value, dtype=float)) for value in release.values] == pytest.approx(said["sums"], rel=1e-12)
    assert not [value for value in release.names if value.startswith("value ")]
    estimator = learner(name)
    if name.split("-")[0] in names("model") and name.split("-")[0] != "PrivateNetwork":
        estimator.fit_release(PATH, release)
    else:
        estimator.fit_release(release)
    assert estimator.privacy_.guarantee.to_dict() == said["cost"]
    assert estimator.privacy_.reproducible


@each("release")
def test_a_release_is_written_anew(folder, name, tmp_path):
    before = Release.load(folder / f"{name}.release.npz")
    before.save(tmp_path / "again.npz")
    assert Release.load(tmp_path / "again.npz") == before


class TestOf02:
    def test_names_are_those_of_today(self):
        """A value that is asked today has the name that it gets from a file of before."""
        for name, found in {
            "PrivateIsing": ("sums", "n_records"),
            "PrivatePairwise": ("fields", "pairs", "n_records"),
            "PrivateIsing-frank-wolfe": ("vertices", "n_records"),
            "PrivateGraphicalLasso": ("diagonal", "off_diagonal", "count"),
            "PrivateGraphicalLasso-bounds": ("diagonal", "off_diagonal", "sum", "count", "magnitudes", "second_sum"),
            "PrivateMarkovChain": ("initial", "transitions"),
            "NaiveMLE": ("a, b", "b, c", "c, d"),
            "StableStructure": ("distance", "edges"),
            "EdgeVoting": ("votes",),
        }.items():
            assert Release.load(NEWER / f"{name}.release.npz").names == found

    def test_facts_of_the_boundary_are_apart(self):
        release = Release.load(NEWER / "PrivateNetwork-persons.release.npz")
        assert release.unit == "who" and release.public["rows_per_unit"] == "shares"
        assert "unit" not in release.facts and release.facts["settings"] == release.public["settings"]

    def test_posteriors_priors_and_numbers(self):
        model = MarkovNetwork.load(NEWER / "CollectiveMAP-posterior.model.npz")
        assert len(model.posterior.draws.theta) == 20 and model.privacy.prior is not None
        assert (
            MarkovNetwork.load(NEWER / "PrivateNetwork-persons.model.npz").sample(3, random_state=0)["age"].max() < 100
        )

    def test_what_is_found_before_a_fit(self):
        found = Discovery.of(Release.load(NEWER / "discovered.one.npz"))
        assert found.schema["a"] == ("no", "yes", "other") and found.schema.discovered[0]["guarantee"]
        assert SchemaCheck.of(Release.load(NEWER / "check.one.npz")).n_records > 0
        assert len(ModelScore.of(Release.load(NEWER / "score.one.npz")).each) == 10

    def test_a_discovered_schema_says_what_it_cost(self, tmp_path):
        path = tmp_path / "ledger.json"
        path.write_bytes((NEWER / "ledger.json").read_bytes())
        schema = Schema.from_json(NEWER / "discovered.json")
        records = pd.DataFrame({name: ["no", "yes"] * 500 for name in PATH})
        table = PrivateTable(records, schema, ledger=Ledger.open(path))
        fitted = estimators.NaiveMLE(rho=1e-3, random_state=0).fit(PATH, table)
        assert fitted.privacy_.schema.guarantee == Ledger.open(path).entries[0].cost
        assert len(Ledger.open(path).entries) == 3 and json.loads(path.read_text())["version"] == 3
        with pytest.raises(ValueError, match="discovered under unit=None"):
            PrivateTable(records.assign(who=1), schema, ledger=Ledger.open(path), unit="who")
        with pytest.raises(ValueError, match="did not pay"):
            PrivateTable(records, schema, ledger=Ledger(Budget(epsilon=3.0, delta=1e-6)))

    def test_schemas(self):
        assert Schema.from_json(NEWER / "schema.json") == Schema.from_json(FILES / "schema.json")
        assert Schema.from_json(NEWER / "schema-with-numbers.json")["age"] == Number(0, 100)


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
