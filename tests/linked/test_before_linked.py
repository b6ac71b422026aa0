"""Check, plan and discover of linked tables, in Python and on the command line: what a user knows before a fit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, FewRecordsWarning, Ledger, Number, Release, Schema, learn_linked
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.linked import LinkedSchema, PrivateLinkedNetwork, PrivateLinkedTables, made_up_families
from pgmpy_dp.linked.family_check import FamilyCheck, check_linked
from pgmpy_dp.linked.linked_plan import plan_linked
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.verbs import discover
from tests.linked.families import CHILD, PARENT, SCHEMA, frames
from tests.linked.test_linked_cli import run

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

HOUSEHOLDS, PERSONS, FAMILIES = made_up_families(3_000, random_state=0)
PART = LinkedSchema(FAMILIES.parent, FAMILIES.child, "household", 3, names=FAMILIES.names)
RICH = Budget(epsilon=50.0)  # noise of less than a family


class TestCheck:
    def test_families_of_each_kind_are_counted(self):
        homes = HOUSEHOLDS.copy()
        homes.loc[homes["household"] == "h3", "region"] = "nowhere"
        parents = pd.concat([homes.iloc[:2_900], homes.iloc[:40]])
        persons = PERSONS[PERSONS["household"] != "h50"]
        found = check_linked(parents, persons, RICH, PART)
        size = PERSONS.groupby("household").size().reindex(homes["household"])
        plain = [f"h{k}" for k in range(2_900) if k >= 40 and k != 50]
        expected = {
            **{"no parent": 100, "several parents": 40, "outside": 0, "no child": 1},
            **{"children": (size[plain] <= 3).sum(), "more children": (size[plain] > 3).sum()},
        }
        assert np.abs(found.kinds - pd.Series(expected)).max() < 3
        assert "more than 3 of person; they count as so many, of which 3 are drawn" in str(found)
        assert "of one person alone 100-DP" in str(found) and not found.failed

    def test_cells_outside_the_schema_are_counted_for_each_table(self):
        persons = PERSONS.assign(status=PERSONS["status"].where(PERSONS.index % 4 > 0, "?"), sex="female")
        homes = HOUSEHOLDS.assign(tenure="own")
        found = check_linked(homes, persons, RICH, FAMILIES)
        assert found.poor == [("household", "tenure"), ("person", "sex")] and found.failed
        share = (persons["status"] != "?").groupby(persons["household"]).mean().mean()
        assert found.table["share"][("person", "status")] == pytest.approx(share, abs=0.01)
        assert found.table["verdict"][("person", "status")] == "in part"
        assert "person with a cell outside the schema stay in their families" in str(found)

    def test_keys_that_do_not_match_are_told(self):
        found = check_linked(HOUSEHOLDS, PERSONS.assign(household=PERSONS["household"].str.upper()), RICH, FAMILIES)
        assert found.failed and "Hardly any of household has person: compare how the two tables spell" in str(found)
        whole = LinkedSchema(FAMILIES.parent, FAMILIES.child, "household", 6, key_kind="integer", names=FAMILIES.names)
        assert "next to nothing" in str(check_linked(HOUSEHOLDS, PERSONS, RICH, whole))  # all are nobody's

    def test_a_small_budget_says_that_it_is_too_small(self):
        persons = PERSONS[PERSONS["household"].isin(HOUSEHOLDS["household"][:50])]
        found = check_linked(HOUSEHOLDS[:50], persons, Budget(epsilon=0.01), FAMILIES, random_state=0)
        assert set(found.table["verdict"]) <= {"too noisy", "nothing", "less than half", "in part"} and found.failed

    @pytest.mark.parametrize(
        ("budget", "adjacency"),
        [(Budget(epsilon=1.0), "add_remove"), (Budget(rho=0.1), "replace_one"), (Budget(1.0, 1e-9), "add_remove")],
    )
    def test_it_charges_the_tables_own_ledger_and_is_read_again(self, budget, adjacency, tmp_path):
        n = {} if adjacency == "add_remove" else {"n_records": 3_000}
        whole = Budget(epsilon=9.0, delta=1e-6) if budget.rho is None else Budget(rho=1.0)
        private = PrivateLinkedTables(HOUSEHOLDS, PERSONS, FAMILIES, ledger=whole, adjacency=adjacency, **n)
        found = check_linked(private, None, budget)
        (entry,) = private.ledger.entries
        assert entry.unit == "household" and found.privacy_.unit == "household"
        assert entry.cost == found.release_.guarantee and found.release_.guarantee.implies(budget.guarantee)
        found.release_.save(tmp_path / "r.npz")
        again = FamilyCheck.of(Release.load(tmp_path / "r.npz"))
        assert again.kinds.equals(found.kinds) and again.linked == FAMILIES and str(again) == str(found)
        with pytest.raises(ValueError, match="'linked_check'"):
            PrivateLinkedNetwork().fit_release(found.release_)

    def test_one_file_with_several_rows_a_person(self):
        found = check_linked(PERSONS, None, RICH, {"sex": ["f", "m"]}, key="household")
        assert found.kinds["children"] == pytest.approx(3_000, abs=10) and "without a row among" not in str(found)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"budget": None}, "pass a Budget"),
            ({"schema": {"sex": ["f", "m"]}}, "key=None"),
            ({"key": "house"}, "differs"),
            ({"adjacency": "replace_one"}, "n_records"),
            ({"n_records": -1}, "n_records=-1"),
            ({"children": PERSONS[["age"]]}, "person: data has no column"),
        ],
    )
    def test_what_is_refused(self, change, message):
        arguments = {"parents": HOUSEHOLDS, "children": PERSONS, "budget": RICH, "schema": FAMILIES, **change}
        with pytest.raises((TypeError, ValueError), match=message):
            check_linked(**arguments)

    def test_a_release_of_another_kind_is_none(self):
        private = PrivateLinkedTables(HOUSEHOLDS[:99], PERSONS, FAMILIES, ledger=Budget(rho=2.0))
        check_linked(private, None, Budget(rho=1.0))
        release = learn_linked(private, None, Budget(rho=1.0), n_rounds=1).release_
        with pytest.raises(ValueError, match="kind 'marginals'"):
            FamilyCheck.of(release)


class TestPlan:
    @pytest.mark.parametrize(("n", "siblings"), [(50, 0), (2_000, 1), (60_000, 1)])
    def test_it_foresees_what_a_fit_measures(self, n, siblings):
        """Noise is that of the release, and siblings are those that a fit takes, of about as many families."""
        budget = Budget(rho=0.01)
        plan = plan_linked(FAMILIES, budget, n)
        assert plan.siblings == siblings
        homes, persons, _ = made_up_families(min(n, 2_000), random_state=1)
        fit = learn_linked(homes, persons, budget, FAMILIES, n_rounds=None if n < 5_000 else 1, random_state=0)
        pairs = list(zip(fit.release_.scopes, fit.release_.noise, strict=True))
        noise = dict(reversed(pairs))  # the first table of each
        for row, scope in (("person.age", ("a.age",)), ("region", ("region",)), ("n", ("n",))):
            assert plan.table["scale"][row] == pytest.approx(noise[scope].scale, rel=0.01)
        if n < 5_000:
            assert plan.table["scale"]["n - person.sex"] == pytest.approx(noise["n", "a.sex"].scale, rel=0.01)
            kept = [name for name in plan.table.index if name.startswith("person.sex -") or name.endswith("another")]
            assert any(name.endswith("another") for name in kept) == bool(siblings)
            if siblings:
                # Less than is foreseen where a fit measures single columns again.
                of_two = plan.table["scale"]["person.sex - person.sex of another"]
                assert of_two == pytest.approx(noise["a.sex", "b.sex"].scale, rel=0.2)
            assert fit.release_.public["settings"]["siblings"] == siblings

    def test_it_says_what_is_promised_to_whom_and_that_large_families_are_top_coded(self):
        told = str(plan_linked(FAMILIES, Budget(epsilon=3.2, delta=1e-9), 6_000))
        assert "to one person, added, removed or changed among its siblings: (6.78" in told
        assert "more than 6 of person count as 6 or more" in told and "one sibling" in told
        pure = plan_linked(PART, Budget(epsilon=1.0), 6_000, adjacency="replace_one")
        assert str(pure.guarantee_of_a_child) == "1-DP" and "under replace_one" in str(pure)
        assert str(plan_linked(PART, Budget(epsilon=1.0), 6_000).guarantee_of_a_child) == "2-DP"

    def test_chains_numbers_and_one_file(self):
        schema = {"cost": Number(0, 1_000), "ill": ["no", "yes"]}
        chain = LinkedSchema(None, schema, "patient", 4, order=["cost"])
        told = str(plan_linked(chain, Budget(epsilon=3.0), 600))
        assert "learned given the one before it" in told and "of which 4 are the first" in told
        assert "cost: cells of a fine grid" in told and "child.ill of the one before" in told
        assert plan_linked(schema, Budget(epsilon=3.0), 600, key="patient").linked.most == 8

    def test_time_and_memory_are_near_what_was_measured(self):
        """benchmarks/results/linked.md: 219 s and 1.55 GiB of learning 1,000,000 families at (3.2, 1e-9)."""
        size = plan_linked(made_up_families(0, 9)[2], Budget(epsilon=3.2, delta=1e-9), 1_000_000).size
        assert 219 / 2 < size.seconds < 219 * 2 and 1.2 < size.memory_bytes / 2**30 < 2.0

    def test_what_is_refused(self):
        for wrong, message in (
            ({"n": 0}, "n=0"),
            ({"siblings": 2}, "siblings=2"),
            ({"adjacency": "none"}, "adjacency"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                plan_linked(FAMILIES, RICH, **{"n": 100, **wrong})


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


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def there(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        HOUSEHOLDS.to_csv("h.csv", index=False)
        PERSONS.to_csv("p.csv", index=False)
        PART.to_json("linked.json")

    def test_check(self):
        told = json.loads(run("check --parents h.csv --children p.csv --schema linked.json --epsilon 9 --json").stdout)
        assert told["kinds"]["more children"] > 100 and told["verdict"] == "all" and told["key"] == "household"
        assert told["guarantee_of_a_child"]["epsilon"] == 18.0
        assert [column["table"] for column in told["columns"]] == ["household"] * 2 + ["person"] * 4
        assert "up to" not in run("check --children p.csv --unit household --variable sex=f,m --epsilon 9").stdout
        assert (
            "match next to nothing"
            in run("check --children p.csv --unit household --variable sex=a,b --rho 9", 1).stdout
        )

    def test_plan(self):
        told = json.loads(run("plan --schema linked.json --epsilon 3.2 --delta 1e-9 --n 6000 --json").stdout)
        assert told["siblings"] == 1 and told["guarantee_of_a_child"]["epsilon"] > 6.7 and told["most"] == 3
        assert "top-coded" in run("plan --schema linked.json --rho 0.1 --n 6000").stdout

    def test_discover_and_fit_in_one_ledger(self):
        account = "--ledger l.json --budget-epsilon 9 --budget-delta 1e-7"
        told = run(
            "discover --parents h.csv --children p.csv --key household --most 4 --names household,person "
            '--categories household.tenure,status --number "age=0:99:1 missing drop" --count "age >= 16" '
            f'--missing "?" --missing person.age=-1 --epsilon 2 --delta 1e-8 {account} --out found.json'
        )
        assert "of each household one row" in told.stdout and "Wrote found.json" in told.stdout
        schema = LinkedSchema.from_json("found.json")
        assert list(schema.parent) == ["tenure"] and list(schema.child) == ["age", "status"] and schema.most == 4
        assert len(Ledger.load("l.json").entries) == 2
        fit = "fit --parents h.csv --children p.csv --schema found.json --epsilon 3 --delta 1e-8 --ledger l.json"
        assert "its schema included" in run(f"{fit} --out m.npz").stdout
        assert "did not pay" in run(f"{fit.replace('l.json', 'other.json')} --out other.npz", 2).stderr

    @pytest.mark.parametrize(
        ("command", "message"),
        [
            ("check --epsilon 1 --schema linked.json", "DATA is missing"),
            ("check p.csv --children p.csv --epsilon 1 --schema linked.json", "leave it out"),
            ("check --parents h.csv --epsilon 1 --schema linked.json", "--children is missing"),
            ("check --parents h.csv --children p.csv --schema linked.json --epsilon 1 --rows-per-unit 2", "--rows-per"),
            ("plan --schema linked.json --epsilon 1 --n 9 --target age", "learned in one way"),
            ("plan --schema linked.json --epsilon 1 --n 9 --edges age-sex", "learned in one way"),
            ("discover --children p.csv --categories sex --epsilon 1 --delta 1e-9", "--key is missing"),
            ("discover --children p.csv --key household --categories sex --rho 1", "--most is missing"),
            ("discover p.csv --children p.csv --key household --most 3 --categories sex --rho 1", "leave it out"),
            (
                "discover --parents h.csv --children p.csv --key household --most 3 --categories sex --rho 1",
                "--parents",
            ),
            ("discover --children p.csv --key household --most 3 --categories job --rho 1", "neither"),
            ("discover --children p.csv --key household --most 3 --categories sex --rho 1", "no delta"),
            (
                "discover --children p.csv --key household --most 3 --categories sex --missing job=9 --rho 1",
                "job is not",
            ),
            ("discover --children p.csv --key h --most 3 --categories sex --epsilon 1 --delta 1e-9", "no column"),
        ],
    )
    def test_what_is_refused(self, command, message):
        out = " --out found.json" if command.startswith("discover") else ""
        account = "" if command.startswith("plan") else " --ledger l.json --budget-epsilon 9 --budget-delta 1e-7"
        told = run(command + out + account, 2)
        assert message in " ".join(told.stderr.split()), told.stderr
        assert not Path("found.json").exists() and not Path("l.json").exists()


def test_the_noise_of_a_check_is_what_its_docstring_says():
    noises = Tables.planned(7, Adjacency.ADD_REMOVE, PureDP(0.05), 1).noise
    assert noises[0].scale == pytest.approx(7 / 0.05)
    found = check_linked(*frames([("h", "n")], [("h", 3, "f")]), Budget(epsilon=0.05), SCHEMA)
    assert found.sd == pytest.approx(math.sqrt(2) * 4 / 0.05, rel=0.01)
    assert LinkedSchema(PARENT, Schema(CHILD), "house", 7).child == SCHEMA.child
