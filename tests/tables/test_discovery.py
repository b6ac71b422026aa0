"""Categories and cuts found for a part of the budget: what is found, what is not, what it costs, and fits after it.

False alarms: counts are many deviations from the threshold (at least 8 below or above), which is below 1e-14 each.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import (
    Budget,
    Date,
    FewRecordsWarning,
    Ledger,
    Number,
    PrivateTable,
    Release,
    Schema,
    check_schema,
    discover,
)
from pgmpy_dp.estimators import NaiveMLE, PrivateNetwork
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import PureDP, ReservedZCDP
from pgmpy_dp.private.operators.column_operators import NumberTables, category_labels
from pgmpy_dp.tables.category_search import DiscoverSettings
from pgmpy_dp.tables.discovery import Discovery

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def messy(n=4000, seed=0) -> pd.DataFrame:
    """Texts with blanks, a missing value spelled twice, a rare category, whole numbers, dates."""
    rng = np.random.default_rng(seed)
    job = rng.choice([" nurse", "nurse", "Baker ", "?", ""], n, p=[0.3, 0.2, 0.3, 0.1, 0.1]).astype(object)
    job[:2] = "astronaut"
    pay = np.where(rng.random(n) < 0.7, 0, np.rint(rng.exponential(20_000, n)))
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    frame = {"job": job, "grade": rng.integers(1, 4, n), "age": rng.integers(18, 90, n), "pay": pay, "day": day}
    return pd.DataFrame(frame).assign(sex=rng.choice(["F", "M"], n))


VARIABLES = {
    "job": "categories",
    "sex": ["F", "M"],
    "grade": "categories",
    "age": Number(0, 120, resolution=1),
    "pay": Number(0, 1_000_000, resolution=1),
    "day": Date("2000-01-01", "2026-12-31"),
}
READING = {"strip": True, "casefold": ["job"], "missing": ["?", ""]}


@pytest.fixture(scope="module")
def found() -> Discovery:
    return discover(messy(), VARIABLES, BUDGET, bins=16, **READING)


class TestWhatIsFound:
    def test_schema(self, found):
        assert list(found.schema) == list(VARIABLES)
        assert found.schema["job"] == ("Baker", "nurse", None, "other")
        assert found.schema["grade"] == (1, 2, 3, "other")
        assert dict(found.schema.other) == {"job": "other", "grade": "other"}
        assert found.schema["sex"] == ("F", "M")
        age, pay, day = (found.schema.numbers[name] for name in ("age", "pay", "day"))
        assert (age.lower, age.upper, age.resolution) == (0, 120, 1)
        assert 12 <= len(age.cells) <= 20 and pay.cells[0] == "[0,1)" and len(pay.cells) >= 3
        assert isinstance(day, Date) and len(day.cells) >= 8
        assert found.schema.reading("job").strip and found.schema.reading("job").missing

    def test_counts(self, found):
        counts = found.counts["job"]
        assert counts.index.tolist() == [None, "Baker", "nurse"]
        assert abs(int(counts["nurse"]) - 2000) < 400
        assert abs(found.n_records - 4000) < 12 * found.n_records_sd
        assert abs(found.counts["age"].sum() - 4000) < 1500
        assert list(found.counts) == ["job", "grade", "age", "pay", "day"]

    def test_cost(self, found):
        cost = found.guarantee
        assert isinstance(cost, ReservedZCDP) and cost.eta == 1e-7
        assert BUDGET.guarantee.delta == 1e-6
        (entry,) = found.privacy_.entries
        assert entry.cost == cost and entry.columns == ("job", "grade", "age", "pay", "day")
        assert entry.what == "categories of 2 columns and cuts of 3 columns"

    def test_numbers_stay_as_they_are_where_no_cuts_are_asked(self):
        age = Number(0, 120, resolution=1)
        found = discover(messy(), {"job": "categories", "age": age}, BUDGET, missing=["?"])
        assert found.schema["age"] == age and list(found.counts) == ["job"]
        assert "numbers 0 to 120, which fits divide" in str(found)
        assert found.privacy_.entries[0].what == "categories of 1 column"

    def test_said(self, found):
        text = str(found)
        assert "Records: about" in text and "others are 'other'" in text and "as declared, 2 states" in text
        assert "under add_remove" in text and repr(found).startswith("Discovery(Schema(6 variables")
        assert "astronaut" not in text + json.dumps(found.release_.facts["found"])

    def test_a_release_and_a_file_are_enough(self, found, tmp_path):
        found.release_.save(tmp_path / "found.npz")
        again = Discovery.of(Release.load(tmp_path / "found.npz"))
        assert again.schema == found.schema and str(again.counts) == str(found.counts)
        assert again.release_ == pickle.loads(pickle.dumps(found.release_))
        found.to_json(tmp_path / "schema.json")
        assert Schema.from_json(tmp_path / "schema.json") == found.schema
        written = json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))["discovered"][0]
        assert written["guarantee"] == found.guarantee.to_dict()
        with pytest.raises(ValueError, match="needs one of kind 'discovery'"):
            Discovery.of(check_schema(messy(50), Budget(epsilon=100.0), {"sex": ["F", "M"]}).release_)

    def test_a_seed_decides(self):
        first, second = (discover(messy(300), VARIABLES, BUDGET, bins=16, random_state=1, **READING) for _ in range(2))
        assert first.release_ == second.release_ and first.release_.reproducible
        turned = discover(messy(300)[::-1], VARIABLES, BUDGET, bins=16, random_state=1, **READING)
        assert turned.release_ == first.release_  # the order of the records is no matter

    def test_limits(self):
        frame = pd.DataFrame({"c": np.repeat([f"category {k}" for k in range(9)], range(1000, 10_000, 1000))})
        two = discover(frame, {"c": "categories"}, BUDGET, max_categories=2)
        assert two.schema["c"] == ("category 7", "category 8", "other")
        with pytest.warns(FewRecordsWarning, match=r"no category of \['c'\]"):
            none = discover(frame, {"c": "categories"}, BUDGET, max_length=9)
        assert none.schema["c"] == (None, "other") and none.poor == ["c"] and none.failed and none.left_out == []

    def test_a_column_in_which_nothing_is_found_is_left_out(self):
        frame = pd.DataFrame({"key": [f"k{k}" for k in range(4_000)], "c": ["a", "b"] * 2_000, "d": "one"})
        with pytest.warns(
            FewRecordsWarning, match=r"no category of \['key'\] .* and the schema leaves them out; to keep"
        ):
            found = discover(frame, {"key": "categories", "c": "categories", "d": ["one"]}, BUDGET)
        assert list(found.schema) == ["c"] and found.left_out == found.poor == ["key"] and not found.failed
        assert found.schema.discovered and found.schema.constants == {"d": "one"}
        assert "left out of the schema: to keep such a column" in str(found) and found.to_dict()["left_out"] == ["key"]
        again = Discovery.of(found.release_)
        assert again.schema == found.schema and str(again) == str(found)

    @pytest.mark.parametrize(("other", "states"), [("b", ("a", "b")), (None, ("a", "b")), ("rest", ("a", "b", "rest"))])
    def test_the_other_state(self, other, states):
        frame = pd.DataFrame({"c": ["a"] * 2000 + ["b"] * 1000 + ["c"] * 3})
        found = discover(frame, {"c": "categories"}, BUDGET, other=other)
        assert found.schema["c"] == states and found.schema.other.get("c") == other

    def test_rules_about_what_is_known(self):
        known = {"sex": ["F", "M"], "age": Number(0, 120, cuts=[18, 65])}
        rules = ["age < 18 -> sex = F"]
        found = discover(messy(), {"job": "categories", **known}, BUDGET, impossible=rules, **READING)
        assert found.schema.impossible == tuple(rules) and found.schema["job"] == ("Baker", "nurse", None, "other")
        assert found.schema.zeros == Schema(known, impossible=rules).zeros != []

    def test_recoded_categories(self):
        frame = pd.DataFrame({"c": ["<=50K"] * 2000 + ["<=50K."] * 1000 + [">50K."] * 900})
        recode = {"c": {"<=50K.": "<=50K", ">50K.": ">50K", "x": "never seen"}}
        found = discover(frame, {"c": "categories"}, BUDGET, recode=recode)
        assert found.schema["c"] == ("<=50K", ">50K", "never seen", "other")
        assert abs(found.counts["c"]["<=50K"] - 3000) < 200

    def test_labels_that_look_like_intervals_are_texts(self):
        frame = pd.DataFrame({"c": ["[0,10)"] * 900 + ["[10,20)"] * 900})
        found = discover(frame, {"c": "categories"}, BUDGET)
        table = PrivateTable(frame, found.schema, ledger=Budget(epsilon=1.0))
        assert found.schema["c"] == ("[0,10)", "[10,20)", "other")
        assert table.schema == found.schema

    def test_next_to_no_records(self):
        with pytest.warns(FewRecordsWarning, match="next to nothing"):
            found = discover(messy(3), {"age": Number(0, 120), "job": "categories"}, BUDGET, bins=16)
        assert found.few and "next to nothing" in str(found)
        public = {"adjacency": "replace_one", "n_records": 4000}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = discover(messy(), {"age": Number(0, 120)}, Budget(epsilon=1.0), bins=16, **public)
        assert "4,000, as declared" in str(found) and found.guarantee == PureDP(1.0)


class TestLedger:
    SPLIT = (Budget(epsilon=0.3, delta=1e-9), Budget(epsilon=0.6, delta=1e-7))

    def test_a_fit_and_a_discovery_in_either_order(self):
        """One ledger, whichever is first; a fit needs a schema, so the one before it has another one."""
        small, large = self.SPLIT
        frame, variables = messy(2000), {"job": "categories", "grade": "categories", "sex": ["F", "M"]}
        for first in (True, False):
            ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
            known = PrivateTable(frame, {"sex": ["F", "M"], "grade": [1, 2, 3]}, ledger=ledger)
            fit = lambda table: PrivateNetwork(epsilon=large.epsilon, delta=large.delta).fit(table)  # noqa: E731
            if not first:
                fit(known)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FewRecordsWarning)
                found = discover(frame, variables, small, ledger=ledger, **READING)
            if first:
                fitted = fit(PrivateTable(frame, found.schema, ledger=ledger))
                assert set(fitted.model_.nodes) == {"job", "grade", "sex"}
            kinds = {type(entry.cost).__name__ for entry in ledger.entries}
            assert kinds == {"ReservedZCDP", "ZCDP"}
            assert ledger.spent.epsilon < 1.0 and ledger.left.rho > 0

    def test_the_same_delta_as_the_ledger_fits(self):
        """A tenth of delta is the threshold's, as a ledger sets nine tenths aside for conversion."""
        ledger = Ledger(BUDGET)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewRecordsWarning)
            discover(messy(500), VARIABLES, Budget(epsilon=0.3, delta=1e-6), bins=16, ledger=ledger, **READING)
        NaiveMLE(epsilon=0.3, delta=1e-6, noise="gaussian").fit(
            nx.path_graph(["sex", "grade"]),
            PrivateTable(messy(500), {"sex": ["F", "M"], "grade": [1, 2, 3]}, ledger=ledger),
        )
        assert len(ledger.entries) == 2

    def test_too_little_left(self):
        ledger = Ledger(Budget(epsilon=0.1, delta=1e-6))
        with pytest.raises(BudgetExceeded):
            discover(messy(50), VARIABLES, BUDGET, bins=16, ledger=ledger, **READING)
        assert not ledger.entries

    def test_the_adjacency_of_the_ledger(self):
        ledger = Ledger(BUDGET, adjacency="replace_one")
        found = discover(messy(), {"age": Number(0, 120)}, Budget(epsilon=0.5), bins=16, ledger=ledger, n_records=4000)
        assert str(found.privacy_.adjacency) == "replace_one"


@pytest.mark.parametrize(
    ("variables", "options", "told"),
    [
        ({"job": "categories"}, {"budget": Budget(epsilon=1.0)}, "has no delta"),
        ({"job": "categories"}, {"budget": Budget(rho=1.0)}, "has no delta"),
        ({"job": "categories"}, {"budget": 1.0}, "pass a Budget"),
        ({"job": "category"}, {}, "a text for a column is 'categories'"),
        ({"sex": ["F", "M"]}, {}, "nothing is to be found"),
        ({}, {}, "is not a mapping"),
        (["job"], {}, "is not a mapping"),
        ({"town": "categories"}, {}, "no column for"),
        ({"age": Number(1e15, 1e15 + 2)}, {"bins": 16}, "too narrow"),
        ({"age": Number(0, 120)}, {}, "nothing is to be found"),
        ({"age": Number(0, 120)}, {"bins": 1}, "bins"),
        ({"age": Number(0, 120)}, {"bins": 101}, "from 2 to 100"),
        ({"job": "categories"}, {"max_categories": 0}, "max_categories"),
        ({"job": "categories"}, {"max_length": 1.5}, "max_length"),
        ({"job": "categories"}, {"other": ["x"]}, "cannot use"),
        ({"job": "categories"}, {"missing": ["other"]}, "read as another"),
        ({"job": "categories"}, {"strip": ["town"]}, "not variables"),
        ({"job": "categories"}, {"impossible": ["job = a"]}, "all columns are to be found"),
        ({"job": "categories", "sex": ["F", "M"]}, {"impossible": ["sex = F -> job = a"]}, "none that is to be found"),
        (
            {"age": Number(0, 9), "sex": ["F", "M"]},
            {"impossible": ["sex = F -> age < 5"], "bins": 16},
            "none that is to be found",
        ),
        ({"job": "categories"}, {"adjacency": "replace_one"}, "n_records=None"),
        ({"job": "categories"}, {"random_state": -1}, "random_state"),
        ({"age": Number(0, 120)}, {"budget": Budget(epsilon=1e-18), "bins": 16}, "bury any count"),
    ],
)
def test_bad_arguments_cost_nothing(variables, options, told):
    ledger = Ledger(Budget(epsilon=10.0, delta=1e-3))
    budget = options.pop("budget", BUDGET)
    with pytest.raises((TypeError, ValueError), match=told):
        discover(messy(20), variables, budget, ledger=ledger, **options)
    assert not ledger.entries


def test_records_of_one_protected_unit_are_not_asked_row_by_row():
    ledger = Ledger(Budget(epsilon=10.0, delta=1e-3))
    table = PrivateTable(messy(20), {"sex": ["F", "M"]}, ledger=ledger)
    with pytest.raises(TypeError, match="df is a PrivateTable, whose columns are declared already; pass the records"):
        discover(table, VARIABLES, BUDGET)
    ledger.charge(
        PureDP(1.0), what="a fit", columns=["sex"], mechanism="laplace", adjacency="add_remove", unit="person"
    )
    with pytest.raises(ValueError, match="person"):
        discover(messy(20), VARIABLES, BUDGET, ledger=ledger)
    assert len(ledger.entries) == 1


def test_an_interrupted_discovery_keeps_what_it_paid_for(monkeypatch):
    monkeypatch.setattr(NumberTables, "_exact", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    ledger = Ledger(BUDGET)
    with pytest.raises(KeyboardInterrupt) as caught:
        discover(messy(), VARIABLES, BUDGET, bins=16, ledger=ledger, **READING)
    release = caught.value.release
    assert release.kind == "interrupted" and release.public["interrupted"] and len(ledger.entries) == 1
    rows, counts = release.values
    assert {label for _, label in category_labels(rows)} >= {"Baker", "nurse", None, 1, 2, 3}
    assert (
        release.noise[0] is None and release.noise[1].distribution == "discrete_gaussian" and len(counts) == len(rows)
    )


def test_settings_do_not_touch_what_they_get():
    variables, recode = {"job": "categories", "sex": ["F", "M"]}, {"job": {"a": "b"}}
    settings = DiscoverSettings.of(variables, recode=recode)
    assert variables["job"] == "categories" and recode == {"job": {"a": "b"}}
    assert settings.categories == ("job",) and list(settings.columns) == ["job"] and settings.numbers == {}


def test_text_files_and_frames_agree(tmp_path):
    """False alarms: below 1e-14, as above; thresholds are far from all counts."""
    lines = ["job,age", *itertools.chain.from_iterable([[" nurse,30", "baker,?", '"baker",70'] * 700])]
    with gzip.open(tmp_path / "records.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    variables = {"job": "categories", "age": Number(0, 120, resolution=1)}
    how = {"bins": 16, "strip": True, "missing": ["?"], "random_state": 3}
    made = discover(tmp_path / "records.csv.gz", variables, BUDGET, **how)
    frame = pd.DataFrame([line.replace('"', "").split(",") for line in lines[1:]], columns=["job", "age"])
    assert made.release_ == discover(frame, variables, BUDGET, **how, codes=True).release_
    assert made.schema["job"] == ("baker", "nurse", "other") and math.isfinite(made.threshold)


class TestPersons:
    BUDGET = Budget(epsilon=1.0, delta=1e-7)

    def stays(self, n: int = 3_000) -> pd.DataFrame:
        """Two rows a person, and one who has 400 with a rare category."""
        who = [*np.repeat(np.arange(n), 2).tolist(), *["many"] * 400]
        wards = ["north", "south"] * n + ["secret"] * 400
        return pd.DataFrame({"patient": who, "ward": wards, "sex": ["F", "F", "M", "M"] * (n // 2) + ["F"] * 400})

    def test_a_person_with_many_rows_gives_nothing_away(self):
        """Who protects records lists a category of one person."""
        variables = {"ward": "categories"}
        assert "secret" in discover(self.stays(), variables, self.BUDGET).schema["ward"]
        found = discover(self.stays(), variables, self.BUDGET, unit="patient")
        assert found.schema["ward"] == ("north", "south", "other")
        # False alarms below 1e-9: the noise has a standard deviation of about 10.
        assert abs(found.n_records - 3_001) < 7 * found.n_records_sd < 300
        assert abs(found.counts["ward"].sum() - 3_000) < 300
        assert found.privacy_.unit == found.schema.discovered[0]["unit"] == "patient"
        assert "all rows of one 'patient'" in str(found)

    def test_the_steward_s_whole_way(self, tmp_path):
        """Discover, look, check, fit: one unit, one ledger."""
        ledger = Ledger.open(tmp_path / "ledger.json", Budget(epsilon=2.0, delta=1e-6))
        stays, own = self.stays(), {"unit": "patient", "rows_per_unit": "shares"}
        variables = {"ward": "categories", "sex": ["F", "M"]}
        found = discover(stays, variables, self.BUDGET, unit="patient", ledger=ledger)
        found.to_json(tmp_path / "schema.json")
        schema = Schema.from_json(tmp_path / "schema.json")
        table = PrivateTable(stays, schema, ledger=Ledger.open(tmp_path / "ledger.json"), **own)
        check = check_schema(table, Budget(rho=1e-3))
        assert check.privacy_.schema.unit == "patient"
        fitted = PrivateNetwork(rho=1e-3).fit(table)
        assert str(fitted.privacy_).startswith(f"{fitted.privacy_.guarantee} under add_remove")
        assert "of all rows of one 'patient'" not in str(fitted.privacy_).split("under")[0]
        assert {entry.unit for entry in ledger.entries} == {"patient"} and len(ledger.entries) == 3
        with pytest.raises(ValueError, match="discovered under unit='patient', and unit=None"):
            PrivateTable(stays, schema, ledger=ledger)

    @pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
    def test_every_reader_draws_the_same(self, kind, tmp_path):
        stays = self.stays(400).astype(str)
        stays.to_csv(tmp_path / "stays.csv", index=False)
        stays.to_parquet(tmp_path / "stays.parquet")
        data = stays if kind == "frame" else tmp_path / f"stays.{kind}"
        found = discover(data, {"ward": "categories"}, self.BUDGET, unit="patient", random_state=0)
        of_codes = kind != "frame"  # of a file texts are codes by default
        plain = discover(stays, {"ward": "categories"}, self.BUDGET, unit="patient", random_state=0, codes=of_codes)
        assert found.release_ == plain.release_

    def test_the_number_of_persons_is_public_where_one_is_replaced(self):
        found = discover(
            self.stays(), {"ward": "categories"}, self.BUDGET, unit="patient", adjacency="replace_one", n_records=3_001
        )
        assert found.n_records == 3_001 and found.release_.public["unit"] == "patient"

    @pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.FewRecordsWarning")
    @pytest.mark.parametrize("rows", [0, 300])
    @pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
    def test_nobody_s_records_and_none_are_noise(self, rows, kind, tmp_path):
        """False alarms: below 1e-9."""
        frame = pd.DataFrame({"patient": pd.Series([None] * rows, dtype=object), "ward": ["north"] * rows})
        frame.to_csv(tmp_path / "stays.csv", index=False)
        frame.to_parquet(tmp_path / "stays.parquet")
        data = frame if kind == "frame" else tmp_path / f"stays.{kind}"
        found = discover(data, {"ward": "categories"}, self.BUDGET, unit="patient")
        assert abs(found.n_records) < 7 * found.n_records_sd and not len(found.counts["ward"])

    def test_bad_arguments(self):
        for unit, told in (("ward", "leave it out of the variables"), ("nobody", "nobody")):
            with pytest.raises(ValueError, match=told):
                discover(self.stays(6), {"ward": "categories"}, self.BUDGET, unit=unit)
