"""Discovery in linked tables: both tables' categories and cuts under one unit, in one ledger."""

from __future__ import annotations

import pandas as pd
import pytest

from pgmpy_dp import Budget, FewRecordsWarning, Ledger, Number, learn_linked
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.linked import LinkedSchema, PrivateLinkedTables, made_up_families
from pgmpy_dp.linked.linked_plan import plan_linked
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.verbs import discover
from tests.linked.families import FAMILIES, HOUSEHOLDS, PERSONS

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

DECLARED = {
    "parent": {"tenure": "categories", "region": list(FAMILIES.parent["region"])},
    "child": {"status": "categories", "age": Number(0, 99, resolution=1, missing="drop")},
    "key": "household",
    "most": 6,
}
SPENT = Budget(epsilon=2.0, delta=1e-8)


class TestDiscover:
    def test_both_tables_under_the_unit_in_one_ledger_and_the_sum_is_printed(self, tmp_path):
        ledger = Ledger(Budget(epsilon=6.0, delta=1e-7), adjacency="add_remove")
        found = discover(
            *(HOUSEHOLDS, {**DECLARED, "counts": ["age >= 16"], "names": FAMILIES.names}, SPENT),
            children=PERSONS,
            ledger=ledger,
        )
        assert found.schema.parent["tenure"] == ("owns", "rents", "other") and found.schema.counts == ("age >= 16",)
        assert set(found.schema.child["status"]) == {"child", "employed", "retired", "other"}
        assert [entry.unit for entry in ledger.entries] == ["household"] * 2
        assert found.privacy_.guarantee.implies(SPENT.guarantee) and not found.failed
        found.to_json(tmp_path / "s.json")
        schema = LinkedSchema.from_json(tmp_path / "s.json")
        assert schema == found.schema
        fit = learn_linked(
            PrivateLinkedTables(HOUSEHOLDS, PERSONS, schema, ledger=ledger), None, Budget(1.0, 1e-9), n_rounds=2
        )
        own = fit.release_.guarantee
        assert fit.privacy_.schema is not None and "its schema included" in repr(fit.model_)
        assert fit.privacy_.guarantee.rho == pytest.approx(own.rho + found.privacy_.guarantee.rho)
        assert f"one person alone: {fit.model_.privacy_of_a_child}" in repr(fit.model_)
        plan = plan_linked(schema, Budget(1.0, 1e-9), 3_000)
        assert plan.privacy.guarantee == fit.privacy_.guarantee

    def test_a_ledger_that_did_not_pay_is_refused(self):
        schema = discover(HOUSEHOLDS, DECLARED, SPENT, children=PERSONS).schema
        with pytest.raises(ValueError, match="this ledger did not pay"):
            PrivateLinkedTables(HOUSEHOLDS, PERSONS, schema, ledger=Ledger(SPENT, adjacency="add_remove"))
        whole = LinkedSchema(schema.parent, schema.child, "household", 6, key_kind="integer")
        with pytest.raises(ValueError, match=r'Keep to one: texts, .* or key_kind="integer"'):
            PrivateLinkedTables(HOUSEHOLDS, PERSONS, whole, ledger=SPENT)

    def test_it_holds_in_replay(self):
        homes, persons, _ = made_up_families(60, random_state=3)

        @pytest.mark.filterwarnings("ignore::pgmpy_dp.FewRecordsWarning")
        def fit(data):
            import warnings

            with warnings.catch_warnings(action="ignore"):
                found = discover(data[0], DECLARED, Budget(epsilon=20.0, delta=1e-3), children=data[1])
            return [[value.tolist() for value in part.release_.values] for part in found.parts], str(found)

        without = homes[homes["household"] != "h7"], persons[persons["household"] != "h7"]
        assert replay(fit, (homes, persons), without).holds

    def test_nothing_to_find_in_one_table_costs_nothing(self):
        known = {**DECLARED, "parent": {"tenure": ["owns", "rents"]}}
        found = discover(HOUSEHOLDS, known, SPENT, children=PERSONS)
        assert found.parent is None and len(found.child.privacy_.entries) == 1
        assert found.schema.parent.discovered == () and found.privacy_.guarantee.implies(SPENT.guarantee)
        alone = discover(PERSONS, {**DECLARED, "parent": None}, SPENT)
        assert alone.schema.parent is None and alone.schema.least == 1

    def test_few_families_are_told(self):
        with pytest.warns(FewRecordsWarning):
            found = discover(HOUSEHOLDS[:9], DECLARED, Budget(epsilon=0.1, delta=1e-9), children=PERSONS[:9])
        assert found.failed

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"budget": Budget(epsilon=1.0)}, "no delta"),
            ({"df": None}, "parents and parent"),
            ({"parent": {"tenure": ["owns", "rents"]}, "child": {"sex": ["f", "m"]}}, "nothing is to be found"),
            ({"counts": ["status = child"]}, "counts: 'status = child'"),
            ({"counts": ["tenure = owns"]}, "a column of the parent table"),
            ({"counts": ["age >= 16"], "bins": 5}, "pass cuts of it"),
            ({"order": ["when"]}, "order names"),
            ({"key": "tenure"}, "leave it out of the schema"),
            ({"key": ["household", "clinic"]}, "parents of two kinds"),
            ({"children": PERSONS[["age"]]}, "no column for"),
            ({"impossible": {"child": ["tenure = owns -> age < 16"]}}, "tenure"),
            ({"impossible": ["age < 16 -> status = child"]}, "pass rules by table"),
            ({"unit": "household"}, "names the key"),
        ],
    )
    def test_what_is_refused_before_anything_is_spent(self, change, message):
        ledger = Ledger(Budget(epsilon=6.0, delta=1e-7), adjacency="add_remove")
        arguments = {"df": HOUSEHOLDS, "children": PERSONS, "budget": SPENT, "ledger": ledger}
        of_schema = {"parent", "child", "key", "counts", "order"}
        described = {**DECLARED, **{name: value for name, value in change.items() if name in of_schema}}
        passed = {**arguments, **{name: value for name, value in change.items() if name not in of_schema}}
        with pytest.raises((TypeError, ValueError), match=message):
            discover(variables=described, **passed)
        assert not ledger.entries


def test_codes_of_both_tables_stay_as_they_are_written(tmp_path):
    """Found, checked and learned: rows of families have them twice, beside states of their own."""
    regions, zips = ["01", "1", "+1"], ["02116", "2116"]
    households = pd.DataFrame({"household": range(900), "region": [regions[k % 3] for k in range(900)]})
    persons = pd.DataFrame({"household": [k // 2 for k in range(1800)], "zip": [zips[k % 2] for k in range(1800)]})
    files = tmp_path / "households.csv", tmp_path / "persons.csv"
    for frame, file in zip((households, persons), files, strict=True):
        frame.to_csv(file, index=False)
    described = {"parent": {"region": "categories"}, "child": {"zip": "categories"}, "key": "household", "most": 2}
    budget = Budget(epsilon=100.0, delta=1e-9)
    found = discover(files[0], described, budget, children=files[1]).schema
    assert set(found.parent["region"]) == {*regions, "other"} and set(found.child["zip"]) == {*zips, "other"}
    assert found.parent.reading("region").codes and found.child.reading("zip").codes
    assert LinkedSchema.from_dict(found.to_dict()).child == found.child
    wide = wide_table(found).schema
    assert [name for name in wide if wide.reading(name).codes] == ["region", "a.zip", "b.zip"]
    meant = discover(files[0], described, budget, children=files[1], codes=False).schema
    assert meant.parent["region"] == (1, "other") and not meant.child.reading("zip").codes
    named = discover(households, described, budget, children=persons, codes=["child.zip"]).schema
    assert set(named.child["zip"]) == {*zips, "other"} and named.parent["region"] == (1, "other")
