"""Differences as columns: a function of two cells of one record, however these are written."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pgmpy_dp import Budget, Date, Number, Schema
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.reading.differences import with_differences
from pgmpy_dp.private.reading.frames import encode_and_match
from pgmpy_dp.private.reading.sources import open_source

SCHEMA = Schema(
    {"in": Date("2024-01-01", "2024-12-31"), "out": Date("2024-01-01", "2024-12-31")},
    impossible=["in <= out"],
    missing=["?"],
).with_differences()
CELLS = [
    ("2024-03-01", "2024-03-04", 3),
    ("2024-03-04", "2024-03-01", -3),  # it breaks the rule: outside, and its record counts
    ("?", "2024-03-01", None),
    ("2024-03-01", "never", None),
    ("2023-03-01", "2024-01-05", 4),  # clipped, as the cell itself is
]
FRAME = pd.DataFrame([cells[:2] for cells in CELLS], columns=["in", "out"])


def differences(data, schema=SCHEMA, name="out - in"):
    with with_differences(open_source(data), schema).one_pass([name]) as batches:
        return [value for (column,) in batches for value in column.to_pylist()]


@pytest.mark.parametrize("made", [lambda f: f, pa.Table.from_pandas, lambda f: f.assign(more=1).astype("category")])
def test_each_record_has_its_own(made):
    assert differences(made(FRAME)) == [wanted for *_, wanted in CELLS]


def test_of_files(tmp_path):
    FRAME.to_csv(tmp_path / "stays.csv", index=False)
    assert differences(str(tmp_path / "stays.csv")) == [wanted for *_, wanted in CELLS]


def test_how_a_record_is_read_does_not_depend_on_others():
    alone = [differences(FRAME.iloc[[k]])[0] for k in range(len(FRAME))]
    assert differences(FRAME.iloc[::-1])[::-1] == alone == differences(FRAME)


@pytest.mark.parametrize("as_text", [False, True])
def test_numbers_count_in_steps_of_their_resolution(as_text):
    low, high = [0.3, 0.1, math.nan, 7.0], [0.7, 0.25, 1.0, math.inf]
    frame = pd.DataFrame({"low": low, "high": high})
    number = Number(0, 1, resolution=0.1)
    schema = Schema({"low": number, "high": number}, impossible=["low <= high"]).with_differences()
    result = differences(frame.astype(str) if as_text else frame, schema, "high - low")
    np.testing.assert_allclose(np.array(result, float), [0.4, 0.1, np.nan, 0.0], atol=1e-9)


def test_what_is_outside_and_has_no_number_has_no_difference():
    number = Number(0, 9, resolution=1, outside="state")
    schema = Schema({"low": number, "high": number}, impossible=["low <= high"]).with_differences()
    assert differences(pd.DataFrame({"low": [-1, 2], "high": [4, 11]}), schema, "high - low") == [None, None]


def test_a_table_counts_them_and_drops_no_record():
    table = PrivateTable(FRAME, SCHEMA.subset(["in", "out"]), ledger=Budget(epsilon=1.0))
    assert table.schema == SCHEMA
    codes, matched = encode_and_match(FRAME, SCHEMA.fine())
    states = SCHEMA.fine().states["out - in"]
    assert matched.tolist()[:2] == [5, 5] and matched[2 + 2] == 2  # and two are blank, of five
    assert [states[code] for code in codes[:, 2]] == ["[3,4)", "outside", None, None, "[4,6)"]
