"""Declarations to be filled in, from a frame's names and types."""

from __future__ import annotations

from datetime import date

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pgmpy_dp import Date, Number, Schema

COLUMNS = {"sex": ["F", "M"], "age": [30, 40], "pay": [1.5, 2.0], "day": [date(2020, 1, 1)] * 2, "ill": [True, False]}
WANTED = {"sex": [], "age": Number, "pay": Number, "day": Date, "ill": [False, True]}


@pytest.mark.parametrize("frame", [pa.table(COLUMNS), pl.DataFrame(COLUMNS), pl.DataFrame(COLUMNS).lazy()])
def test_names_and_types(frame):
    assert Schema.like(frame) == WANTED


def test_pandas():
    frame = pd.DataFrame(COLUMNS).assign(day=pd.to_datetime(COLUMNS["day"]))
    assert Schema.like(frame) == WANTED == Schema.like(frame.iloc[:0])


def test_it_has_to_be_filled_in():
    columns = Schema.like(pa.table(COLUMNS))
    with pytest.raises(ValueError, match="'sex' has 0 state"):
        Schema({"sex": columns["sex"]})
    with pytest.raises(TypeError, match=r"pass a list of states in a fixed order, or Number\(lower, upper\)"):
        Schema(columns | {"sex": ["F", "M"]})


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError, match="--from-header"):
        Schema.like("records.csv")
