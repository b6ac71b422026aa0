"""Checks of a schema in words, and the warning where next to no records were counted."""

from __future__ import annotations

import dataclasses
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgmpy_dp
from pgmpy_dp import Budget, DroppedRecordsWarning, FewRecordsWarning, PrivateTable, Release, check_schema
from pgmpy_dp.estimators import (
    CollectiveMAP,
    NaiveMLE,
    PrivateBinaryMRF,
    PrivateChowLiu,
    PrivateIsing,
    PrivateMarkovChain,
    PrivateNetwork,
    PrivatePairwise,
    PrivateSGD,
)
from pgmpy_dp.learning.few_records import FEW, few_records
from pgmpy_dp.plotting.errors import plot_marginals
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.tables.schema_check import SchemaCheck

N = 20_000
BUDGET = Budget(epsilon=2000.0)  # scales of 3/1000: no noise, but for a chance below exp(-300)


def frame(**changes) -> pd.DataFrame:
    columns = {"sex": ["F", "M"] * (N // 2), "age": [30, 60, 40, 50] * (N // 4), **changes}
    return pd.DataFrame(columns)


STATES = {"sex": ["F", "M"], "age": ["<45", ">=45"]}


class TestVerdicts:
    def verdicts(self, data, states=STATES, budget=BUDGET, **options):
        found = check_schema(data, budget, states, **options)
        return found.table["verdict"].to_dict(), found

    def test_a_right_schema(self):
        verdicts, found = self.verdicts(frame())
        assert verdicts == {"sex": "all", "age": "all"} and found.verdict == "all"
        assert not found.failed and found.poor == []
        assert found.n_records == found.n_matching == N and found.table["matched"].tolist() == [N, N]
        assert f"Records: about {N:,}" in str(found)

    @pytest.mark.parametrize(
        ("share", "verdict"),
        [(0.0, "nothing"), (0.04, "nothing"), (0.3, "less than half"), (0.7, "in part"), (1, "all")],
    )
    def test_columns_that_match_less(self, share, verdict):
        sex = np.where(np.arange(N) < share * N, "F", "f")
        verdicts, found = self.verdicts(frame(sex=sex))
        assert verdicts == {"sex": verdict, "age": "all"} and found.verdict == verdict
        assert found.table.loc["sex", "share"] == pytest.approx(share) and found.failed is (share < 0.05)
        assert found.poor == (["sex"] if share < 0.05 else [])
        assert f"{share * N:,.0f} of {N:,}" in str(found)

    def test_what_to_look_at_where_a_part_of_the_numbers_is_read(self):
        cost = ["158.83", "12", "7.5", "1.158,83"] * (N // 4)
        schema = pgmpy_dp.Schema({"sex": STATES["sex"], "age": pgmpy_dp.Number(0, 5000)})
        verdicts, found = self.verdicts(frame(age=cost), schema)
        assert verdicts == {"sex": "all", "age": "in part"}
        assert str(found).count("; declare the signs of decimals and thousands") == 1

    def test_no_record_matches_in_all_columns(self):
        data = frame(sex=["F", "f"] * (N // 2), age=["x", "40"] * (N // 2))
        verdicts, found = self.verdicts(data)
        assert verdicts == {"sex": "in part", "age": "in part"} and found.verdict == "nothing"
        assert found.failed and found.poor == [] and "hardly any record matches in all columns" in str(found)

    def test_an_other_state_keeps_records_and_hides_no_mismatch(self):
        schema = pgmpy_dp.Schema({"sex": ["F", "M", "?"], "age": STATES["age"]}, other={"sex": "?"})
        verdicts, found = self.verdicts(frame(sex=["f", "m"] * (N // 2)), schema)
        assert verdicts == {"sex": "nothing", "age": "all"} and found.verdict == "all" and found.n_matching == N
        assert found.failed and "other cells count as '?'" in str(found)

    def test_a_budget_that_is_too_small_says_nothing_of_columns(self):
        verdicts, found = self.verdicts(frame(), budget=Budget(epsilon=1e-9))
        assert set(verdicts.values()) == {"too noisy"}
        # Noise of 4e9: an estimate is 5 standard deviations above 0 with a chance of exp(-7)/2.
        _, found = self.verdicts(frame(), budget=Budget(epsilon=1e-9), random_state=1)
        assert found.failed and found.poor == [] and "next to nothing" in str(found).splitlines()[0]

    def test_a_public_number(self):
        _, found = self.verdicts(frame(), n_records=2 * N)
        assert (found.n_records, found.n_records_sd, found.n_matching) == (2.0 * N, 0.0, N)
        assert found.verdict == "in part" and "as declared" in str(found)
        _, found = self.verdicts(frame(), adjacency="replace_one", n_records=N)
        assert found.verdict == "all" and str(found.privacy_.adjacency) == "replace_one"

    @pytest.mark.parametrize("n_records", [None, 0])
    def test_no_records(self, n_records):
        verdicts, found = self.verdicts(frame().iloc[:0], n_records=n_records)
        assert set(verdicts.values()) == {"too noisy"}
        assert str(found)


class TestWhatIsLeftOut:
    def test_lines_that_are_no_record(self, tmp_path):
        """One in ten records has a line break in a column that nobody asks of: two lines that are no record."""
        path, remark = tmp_path / "records.csv", np.where(np.arange(N) % 10 == 0, "two\nlines", "one line")
        frame().assign(remark=remark)[["sex", "remark", "age"]].to_csv(path, index=False)
        found = check_schema(path, BUDGET, STATES)
        assert found.n_records == found.n_matching == 0.9 * N and found.n_no_record == 0.2 * N
        assert "no record: about 4,000: with another number of fields" in str(found) and not found.failed
        assert check_schema(frame(), BUDGET, STATES).n_no_record is None
        frame().to_csv(path, index=False)
        found = check_schema(path, BUDGET, STATES)
        assert found.n_no_record == 0 and "no record: about 0\n" in str(found)
        again = SchemaCheck.of(found.release_)
        assert str(again) == str(found)
        path.write_text("sex,age\n" + "F;30\n" * 500)
        assert check_schema(path, BUDGET, STATES).n_no_record == 500 and check_schema(path, BUDGET, STATES).failed

    @pytest.mark.parametrize(
        ("lines", "columns"),
        [("k,F,30\n", ["", "sex", "age"]), ("F,30,\n", ["sex", "age", ""]), ('"F",30,"x"\n', None)],
    )
    def test_lines_with_one_field_more_are_told(self, tmp_path, lines, columns):
        path, schema = tmp_path / "records.csv", {"sex": ["F", "M"], "age": pgmpy_dp.Number(0, 99)}
        path.write_text("sex,age\n" + lines * 500 + "F\n" * 7)
        found = check_schema(path, BUDGET, schema)
        assert (found.n_no_record, found.n_longer, found.n_records) == (507, 500, 0)
        assert "each line has one field more than the header" in str(found) and found.to_dict()["n_longer"] == 500
        path.write_text("sex,age\n" + "F,30\n" * 500 + "F\n" * 400 + lines)
        assert "are there line breaks in cells?" in str(check_schema(path, BUDGET, schema))
        if columns:
            path.write_text(lines * 500)
            named = check_schema(pgmpy_dp.TextFile(path, columns=columns), BUDGET, schema)
            assert named.n_matching == named.n_records == 500 and named.n_no_record == 0

    def test_blank_cells_are_told_apart(self, tmp_path):
        """Where blank is a state and where it is not, in a frame and in a file; the two counts add up."""
        cells = ["1"] * 500 + [None] * 300 + ["-9"] * 100 + ["odd"] * 100
        data = pd.DataFrame({"q": cells, "r": cells, "s": cells, "n": cells})
        schema = pgmpy_dp.Schema(
            {"q": ["1", "2"], "r": ["1", "2", None], "s": ["1", "rest"], "n": pgmpy_dp.Number(0, 9)},
            missing=["-9"],
            other={"s": "rest"},
        )
        data.to_csv(tmp_path / "a.csv", index=False)
        for records in (data, tmp_path / "a.csv"):
            found = check_schema(records, BUDGET, schema)
            assert found.table["blank"].tolist() == [400] * 4
            assert found.table["matched"].tolist() == [500, 900, 500, 900] and found.n_matching == 500
            text = str(found)
            assert text.count("about 400 are blank") == 4 and text.count("can be a state: None") == 1
            assert str(SchemaCheck.of(found.release_)) == text

    def test_a_number_that_matches_nothing_is_told_the_options_that_may_read_it(self):
        data = frame(age=["$1,000", "8.9%"] * (N // 2)).assign(day=["2020-01", "31.12.2020"] * (N // 2))
        schema = {"age": pgmpy_dp.Number(0, 99), "day": pgmpy_dp.Date("2020-01-01", "2020-12-31"), "sex": ["x", "y"]}
        text = str(check_schema(data, BUDGET, schema))
        assert text.count("units, thousands and decimal of the Number") == text.count("format %Y-%m") == 1
        assert text.count("declare numbers as Number") == 1  # of the column of states alone

    def test_a_check_of_before_blank_cells_were_counted_is_read(self):
        release = check_schema(frame(), BUDGET, STATES).release_
        facts, public = ({n: v for n, v in of.items() if n != "blank"} for of in (release.facts, release.public))
        old = dataclasses.replace(release, facts=facts, public=public, values=(release.values[0][:4],))
        found = SchemaCheck.of(old)
        assert found.table["blank"].isna().all() and "blank" not in found.to_dict()["columns"][0]
        assert found.table["matched"].tolist() == [N, N] and "blank" not in str(found)

    def test_records_left_out_are_told_with_what_keeps_them(self):
        age = pgmpy_dp.Number(0, 120, cuts=[45], missing="drop", outside="drop")
        sick = np.where(np.arange(N) % 4 == 0, None, "yes")
        schema = {"sex": ["F", "M"], "sick": ["yes", "no"], "age": age}
        told, _, spent = str(check_schema(frame(sick=sick), BUDGET, schema)).rpartition("\nSpent ")
        assert "A fit leaves records out: about 5,000 of 20,000 records (25%)" in told and "-DP under" in spent
        assert told.endswith(
            "sick: a state for all other cells, Schema({'sick': [..., 'other']}, other={'sick': 'other'})"
        )
        gone = np.where(np.arange(N) % 4 == 0, None, 30)
        told, *_ = str(check_schema(frame(age=gone), BUDGET, {"sex": ["F", "M"], "age": age})).rpartition("\nSpent ")
        assert told.endswith('age: Number(..., missing="state", outside="state")')
        assert "leaves records out" not in str(check_schema(frame(), BUDGET, STATES))
        few = check_schema(frame(sick=sick), Budget(epsilon=1e-3), {"sick": ["yes", "no"]}, random_state=0)
        assert "leaves records out" not in str(few)  # the noise could be all of it

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("name", ["NaiveMLE", "CollectiveMAP", "CollectiveEM", "PrivateChowLiu", "PrivateNetwork"])
    def test_a_public_number_with_records_left_out_is_warned_of_and_not_believed(self, name, adjacency):
        """What is missing was spread over all cells: .3 for a tenth."""
        rng = np.random.default_rng(0)
        a = rng.random(N) < 0.1
        b = np.where(rng.random(N) < 0.5, "?", np.where(a ^ (rng.random(N) < 0.1), "1", "0"))
        data = pd.DataFrame({"a": np.where(a, "1", "0"), "b": b})
        kind = getattr(pgmpy_dp.estimators, name)
        made = kind(
            epsilon=1.0,
            state_names={"a": ["0", "1"], "b": ["0", "1"]},
            adjacency=adjacency,
            n_records=N,
            random_state=0,
        )
        given = () if name in ("PrivateChowLiu", "PrivateNetwork") else (nx.Graph(["ab"]),)
        with pytest.warns(
            DroppedRecordsWarning, match=r"about (9,9|10,0).. of 20,000 records \(50%\).*missing=\"state\""
        ) as told:
            fitted = made.fit(*given, data)
        assert sum(w.category is DroppedRecordsWarning for w in told) == 1
        true = a[b != "?"].mean()
        assert fitted.n_records_ == pytest.approx((b != "?").sum(), abs=8 * fitted.n_records_sd_)
        assert fitted.model_.marginal(["a"]).values[1] == pytest.approx(true, abs=0.01)
        with pytest.warns(DroppedRecordsWarning):
            again = kind().fit_release(*given, fitted.release_)
        np.testing.assert_allclose(again.model_.marginal(["a"]).values[1], true, atol=0.01)
        whole = data.assign(b=np.where(b == "?", "0", b))
        with warnings.catch_warnings():
            warnings.simplefilter("error", DroppedRecordsWarning)
            assert made.fit(*given, whole).n_records_ == N


class TestCheckSchema:
    def test_a_table_pays_for_it_and_goes_on(self):
        table = PrivateTable(frame(), STATES, ledger=Budget(epsilon=1.0))
        found = check_schema(table, Budget(epsilon=0.25))
        assert str(table.ledger.left) == "0.75-DP" and found.privacy_.entries == table.ledger.entries
        with pytest.raises(BudgetExceeded):
            check_schema(table, Budget(epsilon=0.8))

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"budget": 0.1}, TypeError, "pass a Budget"),
            ({"schema": None}, ValueError, "pass a Schema"),
            ({"adjacency": "other"}, ValueError, "adjacency"),
            ({"adjacency": "replace_one"}, ValueError, "n_records"),
            ({"random_state": -1}, ValueError, "random_state"),
            ({"schema": {"height": ["1", "2"]}}, ValueError, "no column"),
        ],
    )
    def test_bad_input(self, options, error, words):
        arguments = {"df": frame(), "budget": BUDGET, "schema": STATES, **options}
        with pytest.raises(error, match=words):
            check_schema(**arguments)

    def test_a_table_and_arguments_must_agree(self):
        table = PrivateTable(frame(), STATES, ledger=Budget(epsilon=1.0), adjacency="replace_one", n_records=N)
        assert check_schema(table, Budget(epsilon=0.5), STATES).n_records == N
        for options in ({"schema": {"sex": ["F", "M"]}}, {"adjacency": "add_remove"}, {"n_records": 5}):
            with pytest.raises(ValueError, match="differs from the PrivateTable"):
                check_schema(table, Budget(epsilon=0.1), **options)
        assert len(table.ledger.entries) == 1

    def test_a_release_says_it_again(self, tmp_path):
        found = check_schema(frame(), Budget(rho=0.1), STATES)
        found.release_.save(tmp_path / "check.npz")
        again = SchemaCheck.of(Release.load(tmp_path / "check.npz"))
        assert str(again) == str(found) == str(pickle.loads(pickle.dumps(found)))
        with pytest.raises(ValueError, match="kind 'marginals'"):
            SchemaCheck.of(NaiveMLE(epsilon=1.0, state_names=STATES).fit(nx.Graph([("sex", "age")]), frame()).release_)
        with pytest.raises(TypeError, match="pass a Release"):
            SchemaCheck.of("check.npz")


@pytest.mark.parametrize(
    ("n", "sd", "said"), [(1, 6, True), (29.9, 6, True), (30, 6, False), (1, 0, False), (np.nan, np.nan, False)]
)
def test_when_records_are_few(n, sd, said):
    assert (few_records(n, sd) is not None) is said


BINARY = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
GRAPH = nx.path_graph(["a", "b", "c"])


@pytest.mark.filterwarnings("always::pgmpy_dp.FewRecordsWarning")
class TestFits:
    FITS = {
        "NaiveMLE": lambda data, **o: NaiveMLE(epsilon=1.0, state_names=BINARY, **o).fit(GRAPH, data),
        "CollectiveMAP": lambda data, **o: CollectiveMAP(epsilon=1.0, state_names=BINARY, **o).fit(GRAPH, data),
        "PrivateSGD": lambda data, **o: PrivateSGD(epsilon=1.0, delta=1e-3, n_steps=3, state_names=BINARY, **o).fit(
            GRAPH, data
        ),
        "PrivateChowLiu": lambda data, **o: PrivateChowLiu(rho=0.1, state_names=BINARY, **o).fit(data),
        "PrivateNetwork": lambda data, **o: PrivateNetwork(rho=0.1, n_rounds=2, state_names=BINARY, **o).fit(data),
        "PrivateIsing": lambda data, **o: PrivateIsing(1.0, epsilon=1.0, state_names=BINARY, **o).fit(data),
        "PrivatePairwise": lambda data, **o: PrivatePairwise(1.0, epsilon=1.0, state_names=BINARY, **o).fit(data),
        "PrivateBinaryMRF": lambda data, **o: PrivateBinaryMRF(1.0, order=2, epsilon=1.0, state_names=BINARY, **o).fit(
            data
        ),
    }

    @staticmethod
    def warned(fit, data, **options) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(data, **options)
        return [str(item.message) for item in caught if issubclass(item.category, FewRecordsWarning)]

    @pytest.mark.parametrize("name", FITS)
    def test_a_schema_that_fits_nothing(self, name):
        # With a chance of at most exp(-7)/2 an estimate of 0 records is 5 standard deviations above it: seeds.
        odd = pd.DataFrame({v: ["yes", "no"] * 2000 for v in BINARY})
        (said,) = self.warned(self.FITS[name], odd, random_state=1)
        assert "next to nothing" in said and "pgmpy_dp.check tells" in said
        right = pd.DataFrame({v: [0, 1] * 2000 for v in BINARY})
        assert self.warned(self.FITS[name], right, random_state=1) == []

    @pytest.mark.parametrize("name", FITS)
    def test_a_public_number_is_not_judged(self, name):
        options = {"adjacency": "replace_one", "n_records": 2, "random_state": 1}
        assert self.warned(self.FITS[name], pd.DataFrame({v: ["?", "?"] for v in BINARY}), **options) == []

    def test_it_is_said_again_of_the_release(self):
        fitted = self.FITS["NaiveMLE"]
        with pytest.warns(FewRecordsWarning) as caught:
            release = fitted(pd.DataFrame({v: ["?"] for v in BINARY}), random_state=1).release_
        assert caught[-1].filename == __file__
        with pytest.warns(FewRecordsWarning):
            NaiveMLE().fit_release(GRAPH, release)

    def test_as_an_error_it_loses_nothing(self):
        estimator = NaiveMLE(epsilon=1.0, state_names=BINARY, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FewRecordsWarning)
            with pytest.raises(FewRecordsWarning) as caught:
                estimator.fit(GRAPH, pd.DataFrame({v: ["?"] for v in BINARY}))
        assert caught.value.release == estimator.release_

    def test_the_rule_is_of_released_numbers(self):
        for seed in range(20):
            data = pd.DataFrame({v: [0, 1] * 4 for v in BINARY})
            estimator = NaiveMLE(epsilon=1.0, state_names=BINARY, random_state=seed)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                estimator.fit(GRAPH, data)
            said = any(issubclass(item.category, FewRecordsWarning) for item in caught)
            assert said is (estimator.n_records_ < FEW * estimator.n_records_sd_)


def test_a_model_of_texts_that_look_like_intervals_reads_records_and_files(tmp_path):
    """The schema was told once; what is made of it is not refused."""
    schema = pgmpy_dp.Schema({"age": ["[18, 30)", "[30, 60)"], "sex": ["F", "M"]}, texts=["age"])
    data = pd.DataFrame({"age": ["[18, 30)", "[30, 60)"] * 2000, "sex": ["F", "M"] * 2000})
    assert check_schema(data, BUDGET, schema).table["verdict"].tolist() == ["all", "all"]
    fitted = NaiveMLE(epsilon=10.0, state_names=schema).fit(nx.Graph([("age", "sex")]), data)
    model = fitted.model_
    model.save(tmp_path / "model.npz")
    again = pgmpy_dp.MarkovNetwork.load(tmp_path / "model.npz")
    assert again.log_likelihood(data) == model.log_likelihood(data)
    NaiveMLE().fit_release(nx.Graph([("age", "sex")]), fitted.release_)
    assert plot_marginals(model, data) is not None
    visits = pd.DataFrame({"user": range(500), "sequence": [["[18, 30)", "[30, 60)"]] * 500})
    chain = PrivateMarkovChain(epsilon=10.0, state_names=schema.subset(["age"]))
    assert len(chain.fit(visits).to_markov_network(3)) == 3
