"""Ledgers of every version are read for ever, and schemas of 0.1 and 0.2; their releases and models by version 0.3."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, Number, PrivateTable, Schema, estimators
from pgmpy_dp.private.guarantee import ZCDP
from tests.estimators.how_they_are_read import PATH

HERE = Path(__file__).parent
FIRST, SECOND = HERE / "files_of_0_1", HERE / "files_of_0_2"  # of version 0.1.0 (c78a41f) and 0.2.0 (37541c3e)
RECORDS = pd.DataFrame({name: ["no", "yes"] * 500 for name in PATH})


def test_schemas_have_their_variables():
    schema = Schema.from_json(FIRST / "schema.json")
    assert {name: schema[name] for name in PATH} == dict.fromkeys(PATH, ("no", "yes"))
    with_bounds = Schema.from_json(FIRST / "schema-with-bounds.json")
    assert list(with_bounds) == [*PATH, "age"]
    assert with_bounds["age"] == Number(0, 100)
    assert Schema.from_json(SECOND / "schema.json") == schema
    assert Schema.from_json(SECOND / "schema-with-numbers.json")["age"] == Number(0, 100, spikes=())


def test_a_ledger_has_its_charge_and_takes_another(tmp_path):
    path = Path(shutil.copy(FIRST / "ledger.json", tmp_path))
    ledger = Ledger.open(path, budget=Budget(epsilon=3.0, delta=1e-6))
    (entry,) = ledger.entries
    assert entry.cost == ZCDP(0.020187099258749265)
    table = PrivateTable(RECORDS, {name: ["no", "yes"] for name in PATH}, ledger=ledger)
    estimators.NaiveMLE(rho=0.1, random_state=0).fit(PATH, table)
    assert len(Ledger.open(path).entries) == 2


def test_a_discovered_schema_says_what_it_cost(tmp_path):
    path = Path(shutil.copy(SECOND / "ledger.json", tmp_path))
    schema = Schema.from_json(SECOND / "discovered.json")
    table = PrivateTable(RECORDS, schema, ledger=Ledger.open(path))
    fitted = estimators.NaiveMLE(rho=1e-3, random_state=0).fit(PATH, table)
    assert fitted.privacy_.schema.guarantee == Ledger.open(path).entries[0].cost
    assert len(Ledger.open(path).entries) == 3 and json.loads(path.read_text())["version"] == 3
    with pytest.raises(ValueError, match="discovered under unit=None"):
        PrivateTable(RECORDS.assign(who=1), schema, ledger=Ledger.open(path), unit="who")
    with pytest.raises(ValueError, match="did not pay"):
        PrivateTable(RECORDS, schema, ledger=Ledger(Budget(epsilon=3.0, delta=1e-6)))
