"""Files of records: every line is read on its own, silently, and messages do not quote the file."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Budget, PrivateTable, Schema, TextFile
from pgmpy_dp.private.data.table import contingency_tables, shared_codes
from pgmpy_dp.private.reading import records, text_source
from pgmpy_dp.schema import interval_cuts, interval_states

SCHEMA = Schema({"job": ["office", "field, remote", "none"], "age": interval_states([25, 45])})
GOOD = [b"1,office,24", b'2,"field, remote",25', b"3,none,44.9", b"4,none,45"]


def read(path, schema: Schema = SCHEMA) -> list[list[int]]:
    return shared_codes(PrivateTable(path, schema, ledger=Budget(epsilon=1.0)))[0].tolist()


def codes_of(path, content: bytes, schema: Schema = SCHEMA) -> list[list[int]]:
    path.write_bytes(content)
    return read(path, schema)


def test_text_and_numbers_become_states(tmp_path):
    content = b"id,job,age\r\n" + b"\r\n".join(GOOD)
    assert codes_of(tmp_path / "a.csv", content) == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.csv", b"\xef\xbb\xbf" + content + b"\n\n") == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.csv.gz", gzip.compress(content)) == [[0, 0], [1, 1], [2, 1], [2, 2]]
    assert codes_of(tmp_path / "a.tsv", b"age\tjob\n>=45\tnone\n[25,45)\tfield, remote") == [[2, 2], [1, 1]]


ODD = [
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
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_no_line_changes_how_another_is_read(tmp_path, odd, place, recwarn):
    clean = [[0, 0], [1, 1], [2, 1], [2, 2]]
    lines = [*GOOD[:place], odd, *GOOD[place:]]
    found = codes_of(tmp_path / "a.csv", b"id,job,age\n" + b"\n".join(lines) + b"\n")
    assert [row for k, row in enumerate(found) if not (len(found) == 5 and k == place)] == clean
    assert len(found) <= 5
    assert not recwarn.list


def naive_frame(content: bytes) -> pd.DataFrame:
    """The lines of a text as a frame, by the documentation: split by the csv module each on its own."""
    header, *lines = content.split(b"\n")
    names = header.decode().split(",")
    rows = []
    for line in lines:
        text = line.decode("utf-8", errors="replace").rstrip("\r")
        try:
            fields = next(csv.reader([text])) if '"' in text else text.split(",")
        except csv.Error:
            continue
        if text and len(fields) == len(names):
            rows.append([field or None for field in fields])
    return pd.DataFrame(rows, columns=names, dtype=object)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_every_way_of_reading_counts_the_same(tmp_path, place):
    pa, duckdb, pl = map(pytest.importorskip, ("pyarrow", "duckdb", "polars"))
    lines = [*GOOD[:place], *ODD, *GOOD[place:]]
    content = b"id,job,age\n" + b"\n".join(lines)
    frame = naive_frame(content)
    expected = read(frame)
    assert len(expected) > len(GOOD)
    assert codes_of(tmp_path / "a.csv", content) == expected
    assert codes_of(tmp_path / "a.csv.gz", gzip.compress(content)) == expected
    arrow = pa.table({name: pa.array(frame[name], pa.string()) for name in frame})
    frame.to_parquet(tmp_path / "a.parquet")
    connection = duckdb.connect()  # held: older versions close one that nobody holds
    assert read(arrow) == read(connection.from_arrow(arrow)) == expected
    assert read(pl.from_arrow(arrow)) == read(pl.from_arrow(arrow).lazy()) == expected
    assert read(tmp_path / "a.parquet") == expected


SMALL = Schema({"a": [0, 1, None], "b": ["x", "y", ""]})
parts = st.lists(
    st.sampled_from(
        [b"0", b"x", b"y", b",", b"\n", b"\n", b'"', b"\r", b"\xff", b"\0", b" ", b"\\", b"1,x\n", b"0,y\n"]
    )
)


@given(parts, st.integers(0, 40))
def test_any_bytes_are_read_line_by_line(tmp_path_factory, parts, left_out):
    path = tmp_path_factory.mktemp("bytes") / "a.csv"
    lines = b"".join(parts).split(b"\n")

    def records(lines):
        return codes_of(path, b"\n".join([b"a,b", *lines]), SMALL)

    whole = records(lines)
    frame = naive_frame(b"\n".join([b"a,b", *lines]))
    assert whole == read(frame.assign(b=frame["b"].fillna("")), SMALL)
    # A neighbouring file has one line less: its records are the same but for one at most.
    k = left_out % len(lines)
    assert whole == records(lines[:k]) + records(lines[k : k + 1]) + records(lines[k + 1 :])


def test_files_larger_than_a_block_are_read_in_blocks(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"job": rng.choice(["office", "field, remote", "none", "?"], 3000), "age": rng.normal(40, 20, 3000)}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = read(frame)
    scopes = [["job"], ["age", "job"]]

    def counts(data):
        table = PrivateTable(data, SCHEMA, ledger=Budget(epsilon=1.0))
        return [part.value.tolist() for part in contingency_tables(table, scopes)]

    kept = counts(tmp_path / "a.csv")
    monkeypatch.setattr(text_source, "_BYTES_AT_ONCE", 1000)
    monkeypatch.setattr(records, "MOST_KEPT", 0)  # so that it is counted block by block
    assert counts(tmp_path / "a.csv") == counts([tmp_path / "a.csv"]) == kept == counts(frame)
    assert read(tmp_path / "a.csv") == expected
    twice = [[2 * np.array(part)] for part in kept]
    assert all(np.array_equal(a, b[0]) for a, b in zip(counts([tmp_path / "a.csv"] * 2), twice, strict=True))


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
    frame = pd.DataFrame({"age": [24, 25, 44.9, None, 45], "diary": list("abcde"), "job": ["office"] * 5})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = [[0, 0], [0, 1], [0, 1], [0, 2]]
    assert read(tmp_path / "a.parquet") == expected
    assert read(tmp_path / "a.csv") == expected


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz"])
def test_messages_do_not_quote_the_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"needle,needle,needle\nneedle,office,24\n")
    with pytest.raises((ValueError, OSError)) as caught:
        read(path)
    assert "needle" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_bad_files_are_named(tmp_path):
    with pytest.raises(OSError, match="nothing"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match=r"is not a \.csv"):
        read(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_bytes(b"job,job,age\n")
    with pytest.raises(ValueError, match=r"several columns named \['job'\]"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("cut", [15, 30, -8])
def test_a_damaged_archive_is_named_and_not_quoted(tmp_path, cut):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"job,age\n" + b"needle,24\n" * 50, mtime=0)[:cut])
    with pytest.raises(OSError, match=r"a\.csv\.gz' is damaged") as caught:
        read(path)
    assert "needle" not in str(caught.value)


def test_a_damaged_parquet_file_is_named_and_not_quoted(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"job": ["needle"] * 50, "age": [3] * 50}).to_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    with pytest.raises(ValueError, match="is not a Parquet file that pyarrow can open") as caught:
        read(path)
    assert "needle" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_parquet_that_ends_early_is_told_without_a_word_of_it(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"job": [f"needle {k}" for k in range(5000)], "age": range(5000)})
    frame.to_parquet(path, use_dictionary=False)
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[:4] + b"\xff" * half + content[4 + half :])
    with pytest.raises(OSError, match="could not be read to its end") as caught:
        PrivateTable(path, Schema({"job": ["needle 7", "needle 8"]}), ledger=Budget(epsilon=1.0))
    assert "needle" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_file_that_changes_is_told_and_not_quoted(tmp_path, name, monkeypatch):
    """What is learned is of one dataset: the file is looked at again in every pass over it, and after the first."""
    frame = pd.DataFrame({"job": ["needle", "office"] * 50})
    write = {
        "a.csv": lambda f: f.to_csv(tmp_path / name, index=False),
        "a.parquet": lambda f: f.to_parquet(tmp_path / name),
    }
    write[name](frame)
    monkeypatch.setattr(records, "MOST_KEPT", 0)
    table = PrivateTable(tmp_path / name, Schema({"job": ["office", "none"]}), ledger=Budget(epsilon=1.0))
    assert contingency_tables(table, [["job"]])[0].value.tolist() == [50, 0]
    write[name](pd.concat([frame, frame]))
    assert contingency_tables(table, [["job"]])[0].value.tolist() == [50, 0]  # counted before
    with pytest.raises(OSError, match="was changed while it was in use") as caught:
        shared_codes(table)
    assert "needle" not in str(caught.value)


@pytest.mark.parametrize("first", ["a,1", "\ufeffb,2", '"a', "7,7", "", "PAR1,1", "x" * 200_000])
def test_without_a_header_every_line_is_a_record_whatever_the_first_is(tmp_path, first):
    """What the first line holds decides nothing: not an error, and not how others are read."""
    (tmp_path / "a.csv").write_text(f"{first}\nb,2\na,1\n", encoding="utf-8")
    schema = Schema({"c": ["a", "b"], "d": [1, 2]})
    rows = read(TextFile(tmp_path / "a.csv", columns=["c", "d"]), schema)
    assert rows[-2:] == [[1, 1], [0, 0]] and len(rows) == (3 if first == "a,1" else 2)
    with pytest.raises(ValueError, match=r"no column for \['e'\]"):
        read(TextFile(tmp_path / "a.csv", columns=["c", "d"]), Schema({"e": [1, 2]}))
    for columns, error in (("c,d", TypeError), (["", ""], ValueError), ([1, 2], TypeError)):
        with pytest.raises(error, match="columns="):
            TextFile(tmp_path / "a.csv", columns=columns)


def test_a_file_that_grows_while_it_is_read_is_refused_before_the_charge(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("job\noffice\nnone\n")
    blocks = text_source._blocks

    def growing(name, has_header):
        yield from blocks(name, has_header)
        with path.open("a") as file:
            file.write("needle\n")

    monkeypatch.setattr(text_source, "_blocks", growing)
    with pytest.raises(OSError, match="was changed while it was in use"):
        read(path, Schema({"job": ["office", "none"]}))


def test_a_folder_of_parquet_files(tmp_path):
    frame = pd.DataFrame({"job": ["office", "none", "?", "office"]})
    (tmp_path / "year=1").mkdir()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "empty").mkdir()
    frame.iloc[:2].to_parquet(tmp_path / "year=1" / "0.parquet")
    frame.iloc[2:].to_parquet(tmp_path / "1.pq")
    frame.to_parquet(tmp_path / "_temporary" / "0.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    schema = Schema({"job": ["office", "none"]})
    assert sorted(read(tmp_path, schema)) == [[0], [0], [1]] == sorted(read(str(tmp_path), schema))
    with pytest.raises(FileNotFoundError, match="folder without a Parquet file"):
        read(tmp_path / "empty", schema)


def test_a_table_from_a_file_is_one_from_its_frame(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y", "?"], 500), "b": rng.choice(["1", "2"], 500)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    schema = Schema({"b": [1, 2], "a": ["x", "y"]})
    assert read(tmp_path / "a.csv", schema) == read(frame, schema)


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
