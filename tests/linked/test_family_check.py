"""Checks of linked tables: families of each kind are counted, and what a user knows before a fit."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Number, Release, Schema, learn_linked
from pgmpy_dp.linked import LinkedSchema, PrivateLinkedNetwork, PrivateLinkedTables
from pgmpy_dp.linked.family_check import FamilyCheck, check_linked
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.tables import Tables
from tests.linked.families import CHILD, FAMILIES, HOUSEHOLDS, PARENT, PART, PERSONS, RICH, SCHEMA, frames

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]


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

    @pytest.mark.parametrize("seed", range(3))
    def test_families_that_break_a_rule_are_counted(self, seed):
        """By hand, in families of up to 8 of whom 4 count, with cells that are blank, or outside bounds and states."""
        rng = np.random.default_rng(seed)
        homes = pd.DataFrame({"house": range(400), "built": rng.choice([1950, 1970, 1990, None, 3000], 400)})
        of = np.repeat(homes["house"], rng.integers(0, 9, 400))
        persons = pd.DataFrame({"house": of, "role": rng.choice(["head", "other", "?"], len(of), p=[0.3, 0.6, 0.1])})
        persons["came"] = rng.choice([1960, 1970, 1980, None, 0], len(of))
        rules = ["count(role = head) = 1", "count(role = other) < n", "built <= came", "came < built + 30"]
        years = Number(1900, 2020, resolution=1, missing="state", outside="state")
        linked = LinkedSchema(
            {"built": years},
            {"role": ["head", "other"], "came": years},
            **{"key": "house", "most": 4, "impossible": rules},
        )
        check = check_linked(homes, persons, RICH, linked, random_state=seed)
        broken = dict.fromkeys(rules, 0)
        for house, built in homes.itertuples(index=False):
            theirs = persons[persons["house"] == house]
            (heads, others, unknown), n = (
                ((theirs["role"] == role).sum() for role in ("head", "other", "?")),
                len(theirs),
            )
            known = [year for year in theirs["came"] if year in (1960, 1970, 1980) and built in (1950, 1970, 1990)]
            broken[rules[0]] += bool(n and not heads <= 1 <= heads + unknown)
            broken[rules[1]] += bool(n and others == n)
            broken[rules[2]] += any(year < built for year in known)
            broken[rules[3]] += any(year >= built + 30 for year in known)
        assert list(check.broken.index) == rules and min(broken.values()) > 5
        assert np.abs(check.broken - pd.Series(broken)).max() < 3
        assert f"{rules[0]}: about {check.broken[rules[0]]:,.0f} (" in str(check)
        assert [one["rule"] for one in check.to_dict()["rules"]] == rules

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


def test_the_noise_of_a_check_is_what_its_docstring_says():
    noises = Tables.planned(7, Adjacency.ADD_REMOVE, PureDP(0.05), 1).noise
    assert noises[0].scale == pytest.approx(7 / 0.05)
    found = check_linked(*frames([("h", "n")], [("h", 3, "f")]), Budget(epsilon=0.05), SCHEMA)
    assert found.sd == pytest.approx(math.sqrt(2) * 4 / 0.05, rel=0.01)
    assert LinkedSchema(PARENT, Schema(CHILD), "house", 7).child == SCHEMA.child
