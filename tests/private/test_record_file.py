"""Files of records: every line is read on its own, silently, and messages do not quote the file."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable, Schema
from pgmpy_dp.private.data.frame import encode
from pgmpy_dp.private.data.record_file import read_file
from pgmpy_dp.private.data.table import table_codes
from pgmpy_dp.schema import interval_cuts, interval_states

SCHEMA = Schema({"job": ["office", "field, remote", "none"], "age": interval_states([25, 45])})
GOOD = [b"1,office,24", b'2,"field, remote",25', b"3,none,44.9", b"4,none,45"]


def codes_of(path, content: bytes, schema: Schema = SCHEMA) -> list[list[int]]:
    path.write_bytes(content)
    return encode(read_file(path, schema), schema).tolist()


def test_text_and_numbers_become_states(tmp_path):
    content = b"id,job,age\r\n" + b"\r\n".join(GOOD)
    assert codes_of(tmp_path / "a.csv", content) == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.csv", b"\xef\xbb\xbf" + content + b"\n\n") == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.csv.gz", gzip.compress(content)) == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.tsv", b"age\tjob\n>=45\tnone\n[25,45)\tfield, remote") == [[2, 2], [1, 1]]


@pytest.mark.parametrize(
    "odd",
    [
        b'9,"office,24',
        b'9,"office',
        b'"',
        b'""",,""',
        b"\xff\xfe,office,24",
        b"9,\xff,24",
        b"9,office",
        b"9,office,24,24",
        b"9,office,twenty",
        b"9,office,nan",
        b"9,office,1e999",
        b"\x00,\x00,\x00",
        b"9,of\rfice,3",
        b'9,"of\rfice",3',
        b"",
        b"x" * 200_000,
        b'"' + b"x" * 200_000 + b'",office,3',
    ],
)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_no_line_changes_how_another_is_read(tmp_path, odd, place, recwarn):
    clean = [[0, 0], [1, 1], [2, 1], [2, 2]]
    lines = [*GOOD[:place], odd, *GOOD[place:]]
    found = codes_of(tmp_path / "a.csv", b"id,job,age\n" + b"\n".join(lines) + b"\n")
    assert [row for k, row in enumerate(found) if not (len(found) == 5 and k == place)] == clean
    assert len(found) <= 5
    assert not recwarn.list


def test_a_quoted_line_break_ends_its_record(tmp_path):
    content = b'id,job,age\n1,"off\nice",24\n2,office,24\n'
    assert codes_of(tmp_path / "a.csv", content) == [[0, 0]]


def test_an_empty_field_is_missing_where_that_is_a_state(tmp_path):
    content, path, b = b"a,b\n,x\ny,x\n,z\n", tmp_path / "a.csv", ["x", "z"]
    assert codes_of(path, content, Schema({"a": ["y", None], "b": b})) == [
        [1, 0],
        [0, 0],
        [1, 1],
    ]
    assert codes_of(path, content, Schema({"a": ["y", ""], "b": b})) == [[1, 0], [0, 0], [1, 1]]
    assert codes_of(path, content, Schema({"a": ["y", "w"], "b": b})) == [[0, 0]]


def test_parquet_says_the_same_as_text(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"age": [24, 25, 44.9, None, 45], "diary": list("abcde"), "job": ["office"] * 5})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = [[0, 0], [0, 1], [0, 1], [0, 2]]
    assert encode(read_file(tmp_path / "a.parquet", SCHEMA), SCHEMA).tolist() == expected
    assert encode(read_file(tmp_path / "a.csv", SCHEMA), SCHEMA).tolist() == expected


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz"])
def test_messages_do_not_quote_the_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"needle,needle,needle\nneedle,office,24\n")
    with pytest.raises((ValueError, OSError)) as caught:
        read_file(path, SCHEMA)
    assert "needle" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_bad_files_are_named(tmp_path):
    with pytest.raises(OSError, match="nothing"):
        read_file(tmp_path / "nothing.csv", SCHEMA)
    with pytest.raises(ValueError, match=r"no \.csv"):
        read_file(tmp_path / "a.xlsx", SCHEMA)
    (tmp_path / "a.csv").write_bytes(b"job,job,age\n")
    with pytest.raises(ValueError, match=r"several columns named \['job'\]"):
        read_file(tmp_path / "a.csv", SCHEMA)


@pytest.mark.parametrize("cut", [15, 30, -8])
def test_a_damaged_archive_is_named_and_not_quoted(tmp_path, cut):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"job,age\n" + b"needle,24\n" * 50, mtime=0)[:cut])
    with pytest.raises(OSError, match=r"a\.csv\.gz' is damaged") as caught:
        read_file(path, SCHEMA)
    assert "needle" not in str(caught.value)


def test_a_damaged_parquet_file_is_named_and_not_quoted(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"job": ["needle"] * 50, "age": [3] * 50}).to_parquet(path)
    content = bytearray(path.read_bytes())
    for spoilt in (content[:-40], content[:30] + b"\0" * 30 + content[60:]):
        path.write_bytes(spoilt)
        with pytest.raises(OSError, match="cannot be read as a Parquet file") as caught:
            read_file(path, SCHEMA)
        assert "needle" not in str(caught.value)


def test_a_table_from_a_file_is_one_from_its_frame(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y", "?"], 500), "b": rng.choice(["1", "2"], 500)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    states = {"b": [1, 2], "a": ["x", "y"]}
    from_file = PrivateTable.from_file(tmp_path / "a.csv", states, ledger=Budget(epsilon=1.0))
    assert np.array_equal(table_codes(from_file), table_codes(PrivateTable(frame, states, ledger=Budget(epsilon=1.0))))


@pytest.mark.parametrize("cuts", [[0.0], [-1.5, 0.25, 1e9], [1, 2, 3, 4]])
def test_intervals_can_be_read_back(cuts):
    assert interval_cuts(interval_states(cuts)) == [float(cut) for cut in cuts]


@pytest.mark.parametrize(
    "states", [["<25", ">=45"], ["<25", "[25,40)", ">=45"], ["a", "b"], [1, 2], ["<", ">="], ["[1,2)", "<1", ">=2"]]
)
def test_other_states_are_no_intervals(states):
    assert interval_cuts(states) is None


@pytest.mark.parametrize("cuts", [[], [2, 1], [1, 1], [float("nan")], [float("inf")]])
def test_cuts_that_are_none(cuts):
    with pytest.raises(ValueError, match="ascending"):
        interval_states(cuts)
