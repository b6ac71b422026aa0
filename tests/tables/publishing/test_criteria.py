"""Criteria: what a file may say, what is refused before anything is charged, and what each compares."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp import Budget, Date, Levels, MarkovNetwork, Number, PrivateTable, Schema
from pgmpy_dp.tables.publishing import noisy_test
from pgmpy_dp.tables.publishing.criteria import Criteria

SCHEMA = Schema({"age": Number(0, 100, cuts=[20, 60]), "job": ["x", "y"], 7: [True, False], "pay": Number(0, 1000)})
DISTANCE = {"test": "distance", "at_most": 0.03}


class TestReading:
    def test_every_kind_from_a_file(self, tmp_path):
        listed = [
            DISTANCE,
            {"test": "cells", "tables": [["age", "job"], ["7"]], "share": 0.95, "within": 0.01},
            {"test": "mean", "of": "pay", "at_most": 20},
            {"test": "log_loss", "target": "job", "given": ["age", "7"], "clip": 3, "at_most": 0.6},
        ]
        path = tmp_path / "criteria.json"
        path.write_text(json.dumps({"name": "for the board", "criteria": listed}))
        found = Criteria.of(path, SCHEMA)
        assert found.name == "for the board" and len(found) == 4
        assert found.each[0].tables == (("age",), ("job",), (7,), ("pay",))
        assert found.each[1].tables == (("age", "job"), (7,)) and found.each[1].share == 0.95
        assert found.each[2].part == 0.02 and found.each[3].part == pytest.approx(0.2)
        assert found.each[3].tables == (("job", "age", 7),)
        assert [str(one).split(" ")[0] for one in found.each] == ["none", "95", "the", "log-loss"]

    def test_the_digest_is_of_what_is_asked(self):
        first = Criteria.of([DISTANCE], SCHEMA)
        assert first.digest == Criteria.of({"criteria": [dict(reversed(DISTANCE.items()))]}, SCHEMA).digest
        assert first.digest != Criteria.of([DISTANCE | {"at_most": 0.031}], SCHEMA).digest
        assert first.digest != Criteria.of([DISTANCE | {"tables": [["job"]]}], SCHEMA).digest

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ([], "no list of 1 to 100"),
            ("nowhere.json", "nowhere.json"),
            ({"criteria": [DISTANCE], "more": 1}, r"\['more'\]"),
            ({"name": 3, "criteria": [DISTANCE]}, "the name 3"),
            ([DISTANCE] * 101, "no list of 1 to 100"),
            ([{"test": "auc"}], "criterion 1 has the test 'auc'; there are distance, cells, mean, log_loss"),
            ([DISTANCE, {"test": "distance"}], r"criterion 2 \(distance\) lacks at_most"),
            ([DISTANCE | {"within": 1}], r"criterion 1 \(distance\) has \['within'\]"),
            ([DISTANCE | {"at_most": 0}], "at_most=0"),
            ([DISTANCE | {"at_most": 1.0}], "is always met"),
            ([DISTANCE | {"tables": []}], "no list of sets"),
            ([DISTANCE | {"tables": "age"}], "no list of sets"),
            ([DISTANCE | {"tables": ["age"]}], "has the variables 'age'"),
            ([DISTANCE | {"tables": [["nobody"]]}], "names 'nobody'; the schema has age, job, 7, pay"),
            ([DISTANCE | {"tables": [["age", "age"]]}], "each once"),
            ([DISTANCE | {"tables": [["age", "job"], ["job", "age"]]}], "a set of variables twice"),
            ([{"test": "cells", "share": 1.1, "within": 0.1}], "share=1.1"),
            ([{"test": "mean", "of": "job", "at_most": 1}], "is no number of the schema"),
            ([{"test": "mean", "of": "pay", "at_most": 1000}], "is always met"),
            ([{"test": "log_loss", "target": "job", "given": ["job"], "clip": 3, "at_most": 1}], "a variable twice"),
            ([{"test": "log_loss", "target": "job", "given": [], "clip": 3, "at_most": 1}], "name 1 to 8"),
            ([{"test": "log_loss", "target": "job", "given": ["age"], "clip": 3, "at_most": 3}], "is always met"),
        ],
    )
    def test_what_is_refused(self, given, told):
        with pytest.raises((ValueError, OSError), match=told):
            Criteria.of(given, SCHEMA)

    @pytest.mark.parametrize("given", [3, [3], [["distance", 0.3]], None])
    def test_what_is_none(self, given):
        with pytest.raises((TypeError, ValueError), match="criteri"):
            Criteria.of(given, SCHEMA)

    def test_a_file_that_is_none_is_not_quoted(self, tmp_path):
        path = tmp_path / "criteria.json"
        path.write_text("secret,records\n")
        with pytest.raises(ValueError, match="is no JSON") as caught:
            Criteria.of(path, SCHEMA)
        assert "secret" not in str(caught.value)

    def test_tables_that_are_too_large(self):
        wide = Schema({name: list(range(120)) for name in "abc"})
        with pytest.raises(ValueError, match=r"1,728,000 cells"):
            Criteria.of([DISTANCE | {"tables": [["a", "b", "c"]]}], wide)


def model_of(frame, schema):
    """A model of two variables whose table is that of a frame."""
    first, second = schema.variables
    counts = pd.crosstab(frame[first], frame[second]).reindex(schema.states[first]).fillna(0)
    states = {name: list(schema.states[name]) for name in schema.variables}
    model = MarkovNetwork([(first, second)])
    values = counts.reindex(columns=schema.states[second]).fillna(0).to_numpy(float)
    model.add_factors(DiscreteFactor([first, second], list(values.shape), values, state_names=states))
    return model


class TestWhatIsCompared:
    """With hardly any noise: each number is the error that the criterion says."""

    STATES = Schema({"a": ["x", "y", "z"], "b": [0, 1]})
    RNG = np.random.default_rng(0)
    FRAME = pd.DataFrame({"a": RNG.choice(["x", "y", "z"], 4000, p=[0.5, 0.3, 0.2]), "b": RNG.integers(0, 2, 4000)})
    OTHER = pd.DataFrame({"a": RNG.choice(["x", "y", "z"], 900, p=[0.4, 0.3, 0.3]), "b": RNG.integers(0, 2, 900)})

    def found(self, criteria, frame=None, schema=None, model=None):
        schema = schema or self.STATES
        table = PrivateTable(self.FRAME if frame is None else frame, schema, ledger=Budget(epsilon=1e7))
        model = model_of(self.OTHER, self.STATES) if model is None else model
        return noisy_test.run(table, model, Criteria.of(criteria, table.schema), Budget(epsilon=1e7))

    def probabilities(self, scope):
        of_model = self.OTHER.groupby(scope).size().div(len(self.OTHER))
        of_records = self.FRAME.groupby(scope).size().div(len(self.FRAME))
        return of_model.sort_index(), of_records.sort_index()

    def test_distances_and_cells(self):
        criteria = [
            {"test": "distance", "at_most": 0.5},
            {"test": "distance", "tables": [["b", "a"]], "at_most": 0.01},
            {"test": "cells", "tables": [["a", "b"]], "share": 0.5, "within": 0.5},
            {"test": "cells", "tables": [["a", "b"]], "share": 1.0, "within": 0.5},
        ]
        tests = self.found(criteria)
        off = [abs(m - r) for m, r in (self.probabilities(scope) for scope in (["a"], ["b"], ["a", "b"]))]
        wanted = [max(off[0].sum(), off[1].sum()) / 2, off[2].sum() / 2, sorted(off[2])[2], off[2].max()]
        assert tests["found"].to_numpy() == pytest.approx(wanted, abs=2e-4)
        assert tests["met"].tolist() == [True, False, True, True]

    def test_tables_of_levels_are_sums_over_leaves(self):
        schema = Schema({"a": Levels(["x", "y", "z"], kind={"x": "p", "y": "q", "z": "q"}), "b": [0, 1]})
        model = model_of(self.OTHER, schema)
        model.schema = schema
        frame, other = (of.assign(kind=of["a"].map({"x": "p", "y": "q", "z": "q"})) for of in (self.FRAME, self.OTHER))
        by_kind = [of.groupby(["b", "kind"]).size() / len(of) for of in (frame, other)]
        given = by_kind[1] / by_kind[1].groupby(level="b").transform("sum")
        criteria = [
            {"test": "distance", "tables": [["b", "kind"], ["kind"]], "at_most": 0.5},
            {"test": "log_loss", "target": "kind", "given": ["b"], "clip": 5.0, "at_most": 4},
        ]
        found = self.found(criteria, schema=schema, model=model)["found"]
        assert found[0] == pytest.approx(abs(by_kind[0] - by_kind[1]).sum() / 2, abs=2e-4)
        assert found[1] == pytest.approx((-np.log(given) * by_kind[0]).sum(), abs=1e-3)
        for wrong, told in (
            ([DISTANCE | {"tables": [["a", "kind"]]}], "criterion 1 .distance. has 'a' twice"),
            ([{"test": "log_loss", "target": "a", "given": ["kind"], "clip": 3, "at_most": 1}], "has 'a' twice"),
            ([{"test": "mean", "of": "kind", "at_most": 1}], "is no number of the schema"),
            ([DISTANCE | {"tables": [["state"]]}], "the schema has a, b, kind"),
        ):
            with pytest.raises(ValueError, match=told):
                Criteria.of(wrong, schema)

    def test_losses_are_clipped(self):
        model, records = self.probabilities(["a", "b"])
        given = model / model.groupby(level="b").transform("sum")
        for clip in (0.8, 5.0):
            criteria = [{"test": "log_loss", "target": "a", "given": ["b"], "clip": clip, "at_most": clip * 0.9}]
            wanted = (np.minimum(-np.log(given), clip) * records).sum()
            assert self.found(criteria)["found"].item() == pytest.approx(wanted, abs=1e-3)

    def test_what_the_model_thinks_impossible_loses_the_clip(self):
        sure = model_of(pd.DataFrame({"a": ["x"], "b": [0]}), self.STATES)
        criteria = [{"test": "log_loss", "target": "a", "given": ["b"], "clip": 2.0, "at_most": 1.9}]
        possible = float(((self.FRAME["a"] == "x") & (self.FRAME["b"] == 0)).mean())
        found = self.found(criteria, model=sure)["found"].item()
        assert found == pytest.approx(2 * (1 - possible), abs=1e-3)

    @pytest.mark.parametrize(
        "number",
        [Number(0, 100, cuts=[20, 60]), Number(0, 100, bins=25, missing="drop"), Number(0, 100, resolution=1)],
        ids=["cuts", "bins", "undivided"],
    )
    def test_means_are_of_cells_in_the_declared_range(self, number):
        schema = Schema({"n": number, "b": [0, 1]})
        frame = pd.DataFrame({"n": [5.0, 150.0, 30.0, 30.0, None] * 400, "b": [0, 1] * 1000})
        other = Schema({"n": number.fine(), "b": [0, 1]}) if not number.divided else schema
        cells = list(other.states["n"])
        of_model = np.zeros((len(cells), 2))
        of_model[:1] = 1.0  # all in the first cell
        model = MarkovNetwork([("n", "b")])
        states = {"n": cells, "b": [0, 1]}
        model.add_factors(DiscreteFactor(["n", "b"], list(of_model.shape), of_model, state_names=states))
        model.schema = other
        own = other.numbers["n"].centres
        place = np.searchsorted(other.numbers["n"].edges[1:-1], [5.0, 100.0, 30.0, 30.0], side="right")
        known = 4 if number.missing == "drop" else 5  # what is missing counts as the model's mean
        wanted = abs(sum(own[k] - own[0] for k in place)) / known
        criteria = [{"test": "mean", "of": "n", "at_most": 90.0}]
        assert self.found(criteria, frame, schema, model)["found"].item() == pytest.approx(wanted, abs=0.05)

    def test_days_are_numbers(self):
        schema = Schema({"d": Date("2020-01-01", "2020-12-31", bins=12), "b": [0, 1]})
        found = Criteria.of([{"test": "mean", "of": "d", "at_most": 10}], schema)
        assert found.each[0].unit == 365

    def test_nothing_is_met_where_there_is_nobody(self):
        tests = noisy_test.run(
            PrivateTable(self.FRAME.iloc[:0], self.STATES, ledger=Budget(epsilon=1e7)),
            *(model_of(self.OTHER, self.STATES), Criteria.of([DISTANCE], self.STATES), Budget(epsilon=1e7)),
        )
        assert not tests["met"].any() and math.isnan(tests["found"].item())
