"""The identity of cells: as states, as codes, as units and as integer keys, by examples and by properties."""

from __future__ import annotations

import ast
import datetime
import decimal
import math
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, GuessedTypesWarning, Number, PrivateSequences, PrivateTable, Schema, TextFile
from pgmpy_dp.models.evidence import state_of
from pgmpy_dp.private.data.coding import OutsideCounted
from pgmpy_dp.private.data.table import contingency_tables
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.private.reading.owners import identity
from pgmpy_dp.schema import MISSING, match_key
from pgmpy_dp.sequences.operators.sequences import read_sequences
from tests.strategies import OUTSIDE, labels, texts

ZIPS = ["02116", "2116", "+2116", "2116.0", "2116e0", " 2116"]


def code(cell: object) -> object:
    """What a cell is as a code: its text, None for missing, ... for no code."""
    key = match_key(cell, "code")
    return key[1] if key[0] == "text" else None if key == MISSING else ...


class TestCodes:
    @pytest.mark.parametrize(
        "text",
        [*ZIPS, "", " ", "inf", "Infinity", "nan", "NaN", "NA", "None", "True", "TRUE", "12E3", "3.10", "\u0663\u0661"],
    )
    def test_a_text_is_itself(self, text):
        assert code(text) == code(text.encode()) == code(np.str_(text)) == text

    @pytest.mark.parametrize(
        ("cell", "meant"),
        [
            *((2116, "2116"), (np.int8(-7), "-7"), (2**63 + 1, "9223372036854775809"), (999000011000000103,) * 2),
            *(
                (True, "True"),
                (np.bool_(False), "False"),
                (7.0, "7"),
                (np.float32(-0.0), "0"),
                (2.0**53 - 1, 2**53 - 1),
            ),
            *((3.1, ...), (2.0**53, ...), (math.inf, ...), (1e300, ...), (np.float16(0.5), ...), (0.5 + 0j, ...)),
            *((None, None), (math.nan, None), (pd.NA, None), (pd.NaT, None), (decimal.Decimal("NaN"), None)),
            *((decimal.Decimal("999000011000000103"),) * 2, (decimal.Decimal("3.10"), "3.1")),
            *((datetime.date(2020, 1, 31), "2020-01-31"), (np.datetime64("2020-01-31T12:00"), "2020-01-31T12:00:00")),
            *((b"\xff", ...), (decimal.Decimal("sNaN"), ...), (decimal.Decimal("1E+999999999"), "1E+999999999")),
        ],
    )
    def test_what_typed_cells_are(self, cell, meant):
        assert code(cell) == (meant if meant is None or meant is ... else str(meant))

    def test_lists_are_lists_of_codes(self):
        assert match_key(["007", 7, 0.5], "code") == ("tuple", ("text", "007"), ("text", "7"), ("unreadable",))

    @given(st.text(), st.text())
    def test_two_texts_are_two_codes(self, one, other):
        assert (match_key(one, "code") == match_key(other, "code")) == (one == other)

    @given(st.integers(), st.integers())
    def test_two_integers_are_two_codes(self, one, other):
        assert (match_key(one, "code") == match_key(other, "code")) == (one == other)
        assert match_key(str(one), "code") == match_key(one, "code")


@settings(max_examples=200)
@given(
    st.one_of(labels, texts, st.binary(), st.sampled_from(OUTSIDE), st.floats(), st.decimals(), st.complex_numbers())
)
def test_keys_of_all_kinds_are_total_and_finer_than_what_cells_mean(cell):
    for kind in ("meaning", "code", "unit", "integer"):
        assert isinstance(hash(match_key(cell, kind)), int)
        assert match_key(cell, kind) == match_key(cell, kind)
    text = code(cell)
    if isinstance(text, str) and not isinstance(cell, int | decimal.Decimal):  # which a double rounds
        assert match_key(text) == match_key(cell)  # what is one code means one thing
        assert identity(cell) == b"=" + text.encode("utf-8", "surrogatepass")


def test_a_decimal_is_told_apart_by_all_of_its_digits():
    """Beyond the 28 that Python's context has; two persons were one."""
    one, other = (decimal.Decimal(f"12345678901234567890123456789012.0{k}") for k in (1, 2))
    assert identity(one) != identity(other) and match_key(one, "code") != match_key(other, "code")
    assert identity(decimal.Decimal("0.5000")) == b"=0.5"


SCHEMA = Schema(
    {"zip": ["02116", "2116", "other"], "flag": ["TRUE", "True", None], "n": [1, 2]},
    other={"zip": "other"},
    codes=["zip", "flag"],
)


class TestSchema:
    def test_round_trips(self, tmp_path):
        SCHEMA.to_json(tmp_path / "s.json")
        made = [Schema.from_json(tmp_path / "s.json"), Schema.from_dict(SCHEMA.to_dict())]
        made += [pickle.loads(pickle.dumps(SCHEMA)), SCHEMA.replaced({}), SCHEMA.subset(SCHEMA)]
        assert all(each == SCHEMA and each.reading("zip").codes and not each.reading("n").codes for each in made)
        assert SCHEMA.to_dict()["variables"][0]["codes"] is True and SCHEMA.to_dict()["version"] == 4
        assert (
            Schema({"a": ["x", "y"]}, codes=True) == Schema({"a": ["x", "y"]}, codes=["a"]) != Schema({"a": ["x", "y"]})
        )
        assert Schema({"a": ["01", "1"], "b": Number(0, 9)}, codes=True).reading("b").codes is False
        assert Schema.from_dict({"domain": {"a": ["01", "1"]}, "codes": ["a"]}).reading("a").codes

    def test_one_without_codes_is_written_as_before(self):
        plain = Schema({"a": ["x", "y"], "b": [0, 1]})
        assert plain.to_dict()["version"] == 1 and not any("codes" in entry for entry in plain.to_dict()["variables"])
        with pytest.raises(ValueError, match="counted as the same value; if these are codes pass codes="):
            Schema({"zip": ["02116", "2116"]})

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"variables": {"a": [3.1, 3.2]}}, "has the state 3.1, and a float is no code"),
            ({"variables": {"a": [7, "7"]}}, "counted as the same value; remove"),
            ({"variables": {"a": Number(0, 9)}}, "codes names 'a', a variable of numbers"),
            ({"codes": ["b"]}, "codes names .'b'., which are not variables"),
            ({"codes": "a"}, "codes='a' is not a list of names"),
            ({"missing": {"a": [0.5]}}, "missing.'a'. has 0.5, and a float is no code"),
            ({"recode": {"a": {0.5: "01"}}}, "recode.'a'. reads 0.5 as '01', and a float is no code"),
            ({"recode": {"a": {"x": "001"}}}, "none of its states"),
            ({"missing": ["01"]}, "which missing or recode read as another"),
        ],
    )
    def test_what_is_refused(self, options: Mapping, told):
        with pytest.raises((TypeError, ValueError), match=told):
            Schema(**{"variables": {"a": ["01", "1"]}, "codes": ["a"], **options})

    def test_entries_of_a_file_say_true_or_false(self):
        content = SCHEMA.to_dict()
        content["variables"][0]["codes"] = "yes"
        with pytest.raises(ValueError, match="variable 'zip' has codes='yes'; write true or false"):
            Schema.from_dict(content)

    def test_how_codes_are_spelled(self):
        read = {"strip": True, "casefold": True, "missing": ["?", -9, 0.5], "recode": {"a": {"b01": "a01", 1: "01"}}}
        schema = Schema({"a": ["A01", "01", None], "n": [1, 2]}, codes=["a"], **read)
        coded = schema.coder("a"), schema.reading("a").key
        cells = ["a01 ", "B01", " 01", 1, "1", "001", "?", "-9", -9, -9.0, 0.5, "nan", ""]
        assert [coded[0](coded[1](cell)) for cell in cells] == [0, 0, 1, 1, 1, -1, 2, 2, 2, 2, -1, -1, 2]
        assert schema.coder("n")(match_key(0.5)) == -1  # missing there

    def test_intervals_are_texts_among_codes(self):
        states = ["<5", "[5,10)", ">=10"]
        for listed in (states, states[:2], ["<5", "[5, 10)", ">=10"]):  # the last two would be refused
            schema = Schema({"a": listed}, codes=True)
            assert schema.coder("a")(schema.reading("a").key(4)) == -1 and schema.pieces("a") is None
            assert schema.coder("a")(schema.reading("a").key("<5")) == 0

    def test_rules_and_evidence_name_codes_as_they_are_written(self):
        rules = ["zip = 2116 -> n = 1", {"flag": ["True"], "n": [2]}]
        schema = Schema(dict(SCHEMA), other=SCHEMA.other, codes=["zip", "flag"], impossible=rules)
        assert schema.zeros == [{"zip": {1}, "n": {1}}, {"flag": {1}, "n": {1}}]
        with pytest.raises(ValueError, match="compare"):
            Schema(dict(SCHEMA), codes=["zip", "flag"], impossible=["zip < 3000 -> n = 1"])
        with pytest.raises(ValueError, match="is not a state"):
            Schema(dict(SCHEMA), codes=["zip", "flag"], impossible=["zip = 002116 -> n = 1"])
        assert [state_of(SCHEMA, "zip", cell) for cell in ("02116", 2116, "2116")] == [0, 1, 1]
        assert [state_of(SCHEMA, "flag", cell) for cell in ("TRUE", True, None)] == [0, 1, 2]
        for cell in ("+2116", 2116.5, "2116.0", "0:9999"):
            with pytest.raises(ValueError, match="is not a state of it"):
                state_of(SCHEMA, "zip", cell)

    def test_cells_outside_are_counted_apart(self):
        counted = OutsideCounted(SCHEMA)
        assert counted.cardinalities == {"zip": 4, "flag": 4, "n": 3}


def counts(data, schema: Schema) -> list[int]:
    table = PrivateTable(data, schema, ledger=Budget(epsilon=1.0))
    return contingency_tables(table, [[schema.variables[0]]])[0].value.tolist()


class TestReaders:
    WHOLE = Schema(
        {"c": ["02116", "2116", "3.10", "3.1", "12E3", "12000", "True", "TRUE", "inf", "1,5", ""]}, codes=True
    )

    def test_fields_of_text_files_are_as_they_are_written(self, tmp_path):
        rows = [
            "c",
            "02116",
            '"02116"',
            "2116",
            "3.10",
            "3.1",
            "12E3",
            "12000",
            "TRUE",
            "inf",
            "nan",
            " 2116",
            "",
            '""',
        ]
        (tmp_path / "a.csv").write_text("\n".join(f"{row};x" for row in rows), encoding="utf-8")
        for options in ({}, {"decimal": ",", "thousands": "."}, {"encoding": "cp1252", "decimal": ","}):
            file = TextFile(tmp_path / "a.csv", delimiter=";", **options)
            # 'nan' and ' 2116' are outside; an empty field is the text "", for it is a state
            assert counts(file, self.WHOLE) == [2, 1, 1, 1, 1, 1, 0, 1, 1, 0, 2]
            assert counts(file, Schema({"c": ["2116", None]}, codes=True)) == [1, 2]
        named = Schema({"c": ["2116", "1,5", None]}, codes=True, strip=True)
        assert counts(TextFile(tmp_path / "a.csv", delimiter=";", decimal=","), named) == [2, 0, 2]

    def test_a_field_is_never_rewritten_as_a_number_of_its_file(self, tmp_path):
        (tmp_path / "a.txt").write_text("c;d\n1.500;0\n1500;0\n1,5;0\n", encoding="utf-8")
        file = TextFile(tmp_path / "a.txt", delimiter=";", decimal=",", thousands=".")
        assert counts(file, Schema({"c": ["1500", "1.500", "1,5", "1.5"]}, codes=True)) == [1, 1, 1, 0]
        assert counts(file, Schema({"c": ["1500", "1.5"]})) == [2, 1]

    @pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
    def test_a_declared_float_is_refused_before_anything_is_charged(self, kind, tmp_path):
        table = pa.table({"c": pa.array([np.float16(1.0), np.float16(2.0)]).cast(kind)})
        schema = Schema({"c": ["1", "2"]}, codes=True)
        for data in (table, table.to_batches()[0], pa.RecordBatchReader.from_batches(table.schema, table.to_batches())):
            with pytest.raises(ValueError, match=r"is one of codes, and has the type .*: nobody knows how a float was"):
                PrivateTable(data, schema, ledger=Budget(epsilon=1.0))
        pq.write_table(pa.table({"c": [1, 2]}), tmp_path / "0.parquet")
        pq.write_table(table, tmp_path / "1.parquet")
        with pytest.raises(ValueError, match="is one of codes"):
            PrivateTable(str(tmp_path / "*.parquet"), schema, ledger=Budget(epsilon=1.0))
        assert counts(tmp_path / "0.parquet", schema) == [1, 1]

    def test_a_missing_cell_of_a_frame_changes_no_other(self):
        """Pandas makes floats of its integers; a float that is declared nowhere is no reason to refuse."""
        schema = Schema({"c": ["7", "8", None]}, codes=True)
        frames = [pd.DataFrame({"c": [7, 8, 7]}), pd.DataFrame({"c": [7, 8, 7, None]})]
        with pytest.warns(GuessedTypesWarning, match=r"codes=\['c'\] names columns of a frame.*one odd code"):
            assert [counts(frame, schema) for frame in frames] == [[2, 1, 0], [2, 1, 1]]

    def test_words_are_what_they_are_in_any_frame(self, recwarn):
        schema = Schema({"c": ["a", "b", None]}, codes=True)
        assert counts(pd.DataFrame({"c": ["a", "b", None]}), schema) == [1, 1, 1]
        assert not recwarn

    def test_categories_and_booleans(self):
        frame = pd.DataFrame({"c": pd.Categorical(["02116", "2116", "02116"]), "d": [True, False, True]})
        schema = Schema({"c": ["02116", "2116"], "d": ["True", "False"]}, codes=True)
        assert encode(frame, schema).tolist() == [[0, 0], [1, 1], [0, 0]]
        assert encode(pa.Table.from_pandas(frame), schema).tolist() == [[0, 0], [1, 1], [0, 0]]

    def test_visits_are_codes(self):
        schema, frame = (
            Schema({"page": ["01", "1"]}, codes=True),
            pd.DataFrame({"user": [1, 1], "sequence": ["01 1", "01"]}),
        )
        _, lengths, codes = read_sequences(frame, schema, unit="user")
        assert lengths.tolist() == [2, 1] and codes.tolist() == [0, 1, 0]
        table = pa.table({"user": [1], "t": [1], "page": [1.0]})
        with pytest.raises(ValueError, match="is one of codes"):
            PrivateSequences(table, schema, unit="user", order="t", ledger=Budget(epsilon=1.0))


def rendered(key: tuple, missing: str) -> str:
    """A key as the page writes it."""
    if key[0] in ("missing", "unreadable"):
        return missing if key == MISSING else "outside"
    if key[0] == "number":
        return f"{key[1]:g}"
    text = key[1].removeprefix(b"=") if key[0] == "unit" else key[1].encode()
    return "itself" if text == b"\xff" else text.decode()


def test_the_page_says_what_is_the_same():
    page = (Path(__file__).parents[2] / "docs" / "cells.md").read_text(encoding="utf-8")
    section = page.split("## What is the same")[1].split("\n## ")[0]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    assert len(rows) > 10 and rows[0][1:3] == ["state", "code"]
    for cell, *said in rows[2:]:
        value = ast.literal_eval(cell.strip("`"))
        keys = [match_key(value, kind) for kind in ("meaning", "code", "unit", "integer")]
        shown = [
            rendered(key, missing)
            for key, missing in zip(keys, ["missing", "missing", "nobody", "nobody"], strict=True)
        ]
        assert shown == said, cell
