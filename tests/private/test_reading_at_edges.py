"""Where reading meets what it cannot decide: guessed types, connections that are in use, queries that fail, limits."""

from __future__ import annotations

import contextlib
import io
import math
import re
import sqlite3
import subprocess
import sys
import threading
import warnings

import dask
import dask.dataframe as dd
import duckdb
import ibis
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgmpy_dp import Budget, GuessedTypesWarning, Ledger, PrivateSequences, PrivateTable, PrivateVectors, Schema, learn
from pgmpy_dp.estimators import (
    PrivateChowLiu,
    PrivateGraphicalLasso,
    PrivateIsing,
    PrivateMarkovChain,
    PrivateNetwork,
    PrivateSGD,
)
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data import vectors
from pgmpy_dp.private.data.table import contingency_tables, shared_codes, table_units
from pgmpy_dp.private.data.vectors import vector_rows
from pgmpy_dp.private.reading import producers, records
from pgmpy_dp.private.reading.arrow_cells import cells_of
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.reading.variables import Variable
from tests.private.test_engines import LAZY, SCHEMA, SCOPES, arrow, assert_same, exact, many_rows, sums

BUDGET = {"ledger": Budget(epsilon=1.0)}
STATES = {"x": ["a", "b"]}


def counts(data, schema=STATES) -> list[int]:
    return contingency_tables(PrivateTable(data, schema, **BUDGET), [["x"]])[0].value.tolist()


class TestGuessedTypes:
    """A library makes texts of a whole column of numbers where one cell is none."""

    def by_csv(self, cells: list) -> pd.DataFrame:
        return pd.read_csv(io.StringIO("\n".join(["x,y", *(f"{cell},0" for cell in cells)])))

    def by_numpy(self, cells: list) -> pd.DataFrame:
        return pd.DataFrame(np.array([[cell, 0.0] for cell in cells]), columns=["x", "y"])

    def by_dask(self, cells: list) -> dd.DataFrame:
        with dask.config.set({"dataframe.convert-string": False}):
            return dd.from_pandas(self.by_numpy(cells), npartitions=2)

    @pytest.mark.parametrize("made", ["by_csv", "by_numpy", "by_dask"])
    @pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 1.5, 7.0])
    def test_one_stray_cell_moves_one_count(self, made, number):
        schema = Schema({"x": ["inf", "-inf", 1.5, 7, None]})
        first, second = ([number] * 2000 + more for more in ([], ["?"]))
        one, other = (counts(getattr(self, made)(cells), schema) for cells in (first, second))
        assert sum(one) == 2000 and one == other

    def test_dask_that_makes_texts_of_objects_is_refused_whatever_the_cells_are(self):
        for cells in ([1, 2], [1, "a"], [b"a", (1,)]):
            data = dd.from_pandas(pd.DataFrame({"x": pd.Series(cells)}), npartitions=1)
            with pytest.raises(ValueError, match=r"dask.config.set\(\{'dataframe.convert-string': False\}\)"):
                counts(data)

    @pytest.mark.parametrize("cells", [[7, 8], [7.0, math.nan], ["a", "b"], [7, "a"]])
    @pytest.mark.parametrize("make", [pd.DataFrame, lambda columns: pd.DataFrame(columns, dtype=object)])
    def test_persons_in_a_frame_are_warned_of_whatever_is_in_it(self, cells, make, tmp_path):
        frame = make({"x": ["a", "b"], "u": cells})
        with pytest.warns(GuessedTypesWarning, match=r"unit='u' is a column of a frame.*dtype=str"):
            PrivateTable(frame, STATES, unit="u", **BUDGET)
        with pytest.warns(GuessedTypesWarning):
            PrivateSequences(frame, STATES, unit="u", sequence="x", **BUDGET)
        with pytest.warns(GuessedTypesWarning):
            PrivateVectors(frame.assign(y=1.0), ["y"], unit="u", **BUDGET)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            PrivateTable(frame, STATES, **BUDGET)
            frame.astype(str).to_csv(tmp_path / "a.csv", index=False)
            PrivateTable(tmp_path / "a.csv", STATES, unit="u", **BUDGET)

    def test_persons_of_files_are_told_apart_by_what_is_written(self, tmp_path):
        names = [f"{k:08x}" for k in range(0x1234E000, 0x1234E000 + 3000)] + ["99e99999", "1e400", "7", "007", "7.0"]
        names += [str(2**53), str(2**53 + 1)]
        (tmp_path / "a.csv").write_text("\n".join(["x,u", *(f"a,{name}" for name in names)]))
        table = pa.table({"x": ["a"] * len(names), "u": names})
        whole = pa.table({"x": ["a"] * 4, "u": pa.array([2**53, 2**53 + 1, 2**63, 7], pa.uint64())})
        for data, n in ((tmp_path / "a.csv", len(names)), (table, len(names)), (duckdb.from_arrow(table), len(names))):
            assert table_units(PrivateTable(data, STATES, unit="u", **BUDGET))[1] == n
        for data in (whole, duckdb.from_arrow(whole), pl.from_arrow(whole)):
            assert table_units(PrivateTable(data, STATES, unit="u", **BUDGET))[1] == 4


class TestSqlite:
    """Any cell may be of any type there, whatever a column is declared to hold."""

    @pytest.mark.parametrize("kind", ["TIMESTAMP", "DATE", "REAL", "TEXT", "INTEGER", "BOOLEAN", "BLOB"])
    def test_one_odd_cell_raises_nothing_and_moves_nothing(self, kind, tmp_path):
        cells = {"TIMESTAMP": "2020-01-01 12:00:00", "DATE": "2020-01-01", "REAL": 1.5, "INTEGER": 3, "BOOLEAN": 1}
        cell = cells.get(kind, "a")
        schema = Schema({"x": ["2020-01-01T12:00:00", "2020-01-01", 1.5, 3, 1, "a", None]})
        found = []
        for name, odd in enumerate([None, "?", b"\xff", 1e300, 2**62, "0000-00-00", ""]):
            path = tmp_path / f"{name}.sqlite"
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute(f"CREATE TABLE cells (x {kind})")
                connection.executemany("INSERT INTO cells VALUES (?)", [(cell,)] * 9 + [(odd,)])
                if odd == "?":
                    connection.execute("INSERT INTO cells VALUES (CAST(x'ff' AS TEXT))")  # a text that is no UTF-8
                connection.commit()
            found.append(counts(ibis.sqlite.connect(path).table("cells"), schema))
        assert found[0][-1] == 1 and sorted(found[0])[-1] == 9
        assert all(each == [*found[0][:-1], 0] for each in found[1:])


def opener(relation) -> str:
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    return next(name for name in names if hasattr(relation, name))


class TestDuckDB:
    def relation(self, query: str):
        self.connection = duckdb.connect()  # which a relation of older versions does not hold
        return self.connection.sql(query)

    @pytest.mark.parametrize("held", ["execute", "reader"])
    def test_a_connection_in_use_is_found_before_the_charge_and_left_as_it_was(self, held):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE cells AS SELECT 'a' AS x FROM range(300000)").fetchall()
        relation = connection.table("cells")
        result = (connection.sql if held == "reader" else connection.execute)("SELECT * FROM cells")
        if held == "reader":
            result = getattr(result, opener(result))(1000)
        try:
            found = counts(relation)
        except OSError as error:  # some versions read it all the same
            assert "has not been fetched to the end" in str(error) and error.__context__ is None  # noqa: PT017
        else:
            assert found == [300_000, 0]
            return
        left = result.read_all().num_rows if held == "reader" else len(connection.fetchall())
        assert left == 300_000
        assert counts(relation) == [300_000, 0]
        assert connection.execute("SELECT 1").fetchall() == [(1,)]  # nor is it left in use

    @pytest.mark.parametrize("data", ["relation", "lazy"])
    def test_a_query_without_columns_is_one_sentence_of_ours(self, data):
        """Columns are asked for when data are opened: of a closed connection, of a query for what is not there."""
        connection = duckdb.connect()
        relation = connection.sql("SELECT 'a' AS x")
        connection.close()
        with pytest.raises(
            OSError, match=r"^(DuckDB|polars) failed while it read the (data|relation), before anything"
        ) as caught:
            counts({"relation": relation, "lazy": pl.LazyFrame({"y": ["a"]}).select("x")}[data])
        assert caught.value.__context__ is None

    @pytest.mark.parametrize("of_ibis", [False, True])
    @pytest.mark.filterwarnings("ignore:.*deprecated, use to_arrow:DeprecationWarning")  # ibis of newer DuckDB
    def test_threads_take_turns_on_one_connection(self, of_ibis):
        connection = ibis.duckdb.connect() if of_ibis else duckdb.connect()
        run = connection.raw_sql if of_ibis else connection.execute
        sizes = {"a": 400_000, "b": 300_000}
        for name, size in sizes.items():
            run(f"CREATE TABLE cells_{name} AS SELECT '{name}' AS x FROM range({size})")  # noqa: S608
        tables = [connection.table(f"cells_{name}") for name in sizes for _ in range(3)]
        barrier, found = threading.Barrier(len(tables)), []

        def read(table) -> None:
            barrier.wait()
            found.append(counts(table))

        threads = [threading.Thread(target=read, args=(table,)) for table in tables]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [[0, 300_000]] * 3 + [[400_000, 0]] * 3

    @pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError])
    def test_an_interrupted_pass_leaves_the_connection_free(self, raised, monkeypatch):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE cells AS SELECT 'a' AS x FROM range(300000)").fetchall()
        budget = Ledger(Budget(epsilon=1.0))
        with monkeypatch.context() as patched:
            patched.setattr(Variable, "marks", lambda self, column: (_ for _ in ()).throw(raised))
            with pytest.raises(raised) as caught:
                PrivateTable(connection.table("cells"), STATES, ledger=budget)
        # While the error is held, as in a notebook, the connection and the turn of other threads are free.
        found: list = []
        other = threading.Thread(target=lambda: found.append(counts(connection.table("cells"))))
        other.start()
        other.join(timeout=60)
        assert found == [[300_000, 0]] and caught.value is not None and not budget.entries

    def test_a_query_of_the_user_s_that_fails_on_a_cell_costs_nothing_and_quotes_nothing(self):
        """A limit: that it fails tells of the cell. Before the charge, and in a sentence of our own."""
        ledger_budget = Budget(epsilon=1.0)
        relation = self.relation("SELECT CAST(x AS INTEGER) AS x FROM (VALUES ('1'), ('needle')) AS t(x)")
        with pytest.raises(OSError, match="before anything was charged") as caught:
            PrivateTable(relation, {"x": [0, 1]}, ledger=ledger_budget)
        assert "needle" not in str(caught.value)
        assert caught.value.__context__ is None and caught.value.__cause__ is None

    @pytest.mark.parametrize(
        ("cell", "states"),
        [
            ("170141183460469231731687303715884105727::HUGEINT", [2.0**127, "x"]),
            ("123456789012345678901234567890123456789012::BIGNUM", [1.2345678901234568e41, "x"]),
            ("'12:00:00+01'::TIMETZ", ["12:00:00+01", "12:00:00"]),
            ("1::VARIANT", [1, "x"]),
            ("INTERVAL 30 DAY", ["P30D", "x"]),
        ],
    )
    def test_types_that_arrow_cannot_hold(self, cell, states):
        try:
            relation = self.relation(f"SELECT {cell} AS x FROM range(3)")  # noqa: S608
        except duckdb.Error:
            pytest.skip("a type of later versions")
        assert counts(relation, {"x": states}) == [3, 0]

    def test_declared_texts_come_as_places_and_count_as_any_text(self, monkeypatch):
        """In batches where all are declared, some and none; with signs that mean something in SQL, and collations."""
        states = ["a", "A", "", "it's", '"x"', "tab\t", "nul\0", "ü", "7"]
        cells = [*states, *states[:3], None, "a\0", " 7 ", "7.0", "other"]
        table = pa.table({"x": ["a"] * 200_000 + cells + [None, "?"] * 100_000})
        schema = {"x": [*states, "outside"]}
        expected = counts(table, schema)
        assert expected == [200_002, 2, 2, 1, 1, 1, 1, 1, 3, 0]
        connection = duckdb.connect()
        connection.execute("CREATE TABLE cells (x VARCHAR COLLATE NOCASE)")
        connection.register("made", table)
        connection.execute("INSERT INTO cells SELECT x FROM made")
        for most in (0, 9, 10, producers._MOST_DECLARED):
            monkeypatch.setattr(producers, "_MOST_DECLARED", most)
            assert counts(connection.table("cells"), schema) == counts(connection.from_arrow(table), schema) == expected
        asked = producers._sent("x", "VARCHAR", frozenset(states))
        assert len(asked) == 2 and "'it''s'" in asked[0] and "tab" not in asked[0] and "nul" not in asked[0]

    def test_a_time_that_a_file_declares_to_be_in_utc_has_its_zone(self, tmp_path):
        """A limit: as DuckDB names the type of a file's column. By its path the file has the time alone."""
        table, path = pa.table({"x": pa.array([10**6], pa.time64("us"))}), tmp_path / "a.parquet"
        try:
            pq.write_table(table, path, write_time_adjusted_to_utc=True)
        except TypeError:  # versions that always declare it
            pq.write_table(table, path)
        states = {"x": ["00:00:01", "00:00:01+00"]}
        assert counts(duckdb.read_parquet(str(path)), states) == [0, 1]
        assert counts(path, states) == [1, 0]

    @pytest.mark.parametrize("kind", ["HUGEINT[]", "STRUCT(a TIMETZ)", "INTERVAL[]"])
    def test_types_inside_of_others_are_refused_by_the_type(self, kind):
        with pytest.raises(ValueError, match=r"column 'x' has the type .* cast it in the relation"):
            counts(self.relation(f"SELECT NULL::{kind} AS x"))
        assert counts(self.relation("SELECT {'INTERVAL': 1} AS x"), STATES) == [0, 0] if kind == "INTERVAL[]" else True


class TestStreams:
    def test_a_reader_of_batches_is_read_once(self):
        table = arrow(many_rows(300))
        private = PrivateTable(table.to_reader(7), SCHEMA, **BUDGET)
        first = [each.value for each in contingency_tables(private, SCOPES)]
        assert_same(first, exact(table))
        assert_same([each.value for each in contingency_tables(private, SCOPES[::-1])][::-1], first)

    def test_a_second_pass_of_a_stream_is_refused_before_the_charge(self):
        """It would find no record, and charge for that."""
        reader = arrow(many_rows(30)).to_reader(7)
        exact(reader)
        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(ValueError, match="data is a stream that was read before"):
            PrivateTable(reader, SCHEMA, ledger=ledger)
        with pytest.raises(ValueError, match="data is a stream that was read before"):
            learn(reader, ledger.budget, SCHEMA)
        assert not ledger.entries

    def test_batches_are_cut_anywhere(self):
        table = arrow(many_rows(200))
        cut = pa.concat_tables([table[:0], table[:1], table[1:70], table[70:70], table[70:]])
        assert_same(exact(cut), exact(table))

    @pytest.mark.parametrize("other", [{"y": ["a"]}, {"y": ["a"], "x": ["a"]}, {"x": [1], "y": ["a"]}])
    def test_a_batch_of_other_columns_is_refused_before_the_charge(self, other):
        first = pa.record_batch({"x": ["a"], "y": ["a"]})
        batches = (batch for batch in (first, pa.record_batch(other)))
        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(OSError, match="a batch of data has other columns than its stream declares"):
            PrivateTable(pa.RecordBatchReader.from_batches(first.schema, batches), STATES, ledger=ledger)
        assert not ledger.entries

    def test_a_stream_that_fails_is_named_by_its_kind(self):
        class Source:
            def __arrow_c_stream__(self, requested_schema=None):
                def batches():
                    yield pa.record_batch({"x": ["a"]})
                    raise RuntimeError("needle")

                return pa.RecordBatchReader.from_batches(pa.schema({"x": pa.string()}), batches()).__arrow_c_stream__()

        with pytest.raises(OSError, match=r"^the Source failed while it read the data") as caught:
            counts(Source())
        assert "needle" not in str(caught.value) and caught.value.__context__ is None

    def test_a_single_column_is_no_table(self):
        with pytest.raises(TypeError, match="not a dataframe"):
            counts(pa.chunked_array([["a"]]))

    def test_empty_batches_and_none_at_all(self):
        empty = pa.table({"x": pa.array([], pa.string())})
        for data in (empty, empty.to_reader(), pa.RecordBatchReader.from_batches(empty.schema, [])):
            assert counts(data) == [0, 0]
            with pytest.raises(ValueError, match="no column for"):
                counts(empty.rename_columns(["y"]))

    def test_dictionaries_that_change_between_batches(self):
        one = pa.array(["a", "?"]).dictionary_encode()
        other = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int32()), ["b", "a"])
        batches = [pa.record_batch({"x": part}) for part in (one, other, one)]
        assert counts(pa.Table.from_batches(batches)) == [3, 1]


class TestFolders:
    """Files of one folder, whose columns are told apart by their names."""

    def test_columns_in_another_order(self, tmp_path):
        pq.write_table(pa.table({"x": ["a", "b"], "y": ["b", "b"]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"y": ["b", "b"], "x": ["a", "?"]}), tmp_path / "2.parquet")
        assert counts(tmp_path) == [2, 1] and counts(tmp_path, {"y": ["a", "b"], "x": ["a", "b"]}) == [2, 1]

    @pytest.mark.parametrize(
        ("others", "told"), [(["x"], "['y']"), (["x", "y", "z"], "['z']"), (["x", "x", "y"], "['x']")]
    )
    def test_a_file_without_a_column_or_with_one_more_is_refused_before_the_charge(self, others, told, tmp_path):
        pq.write_table(pa.table({"x": ["a"], "y": ["b"]}), tmp_path / "1.parquet")
        pq.write_table(pa.table([pa.array(["a"])] * len(others), others), tmp_path / "2.parquet")
        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=re.escape(f"1.parquet': {told}; pass files with the same columns")):
            PrivateTable(tmp_path, STATES, ledger=ledger)
        assert not ledger.entries

    def test_dictionaries_that_differ_between_files(self, tmp_path):
        for k, texts in enumerate((["a", "b"], ["b", "a", "?"], ["?"])):
            cells = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), texts)
            pq.write_table(pa.table({"x": cells}), tmp_path / f"{k}.parquet")
        assert counts(tmp_path) == [1, 1]


class TestLimits:
    """What is kept and what is read again never changes a result."""

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_codes(self, suffix, tmp_path, monkeypatch):
        table = arrow(many_rows(600)).select(["word", "whole", "kind"])
        path = tmp_path / f"a.{suffix}"
        pq.write_table(table, path) if suffix == "parquet" else table.to_pandas().to_csv(path, index=False)
        schema, scopes = SCHEMA.subset(["word", "whole", "kind"]), [["word"], ["whole", "kind"], ["kind", "word"]]
        found = []
        for most in (0, math.inf):
            monkeypatch.setattr(records, "MOST_KEPT", most)
            private = PrivateTable(path, schema, **BUDGET)
            assert (private._records._codes is None) == (most == 0)
            part = private._part(np.arange(len(shared_codes(private)[0])) % 2 == 0)
            found.append([each.value for one in (private, part) for each in contingency_tables(one, scopes)])
        assert_same(*found)

    def test_a_container_has_what_it_is_given(self, monkeypatch):
        def read(path):
            if path.name == "memory.max":
                return "4096\n"
            raise FileNotFoundError

        assert records.memory() >= 4096
        monkeypatch.setattr(records.Path, "read_text", read)
        assert records.memory() == 4096
        monkeypatch.setattr(records.Path, "read_text", lambda path: "max\n")
        monkeypatch.setattr(records, "os", None)  # a system that says nothing
        assert records.memory() == 0 and records.MOST_KEPT >= 1 << 30

    def test_numbers(self, tmp_path, monkeypatch):
        x = np.random.default_rng(3).normal(size=(5000, 3)) * [0.1, 5, 1e3]
        pq.write_table(pa.table(dict(zip("xyz", x.T, strict=True))), tmp_path / "a.parquet")
        kept = sums(tmp_path / "a.parquet")
        monkeypatch.setattr(vectors, "MOST_KEPT", 0)
        assert_same(sums(tmp_path / "a.parquet"), kept)
        data = PrivateVectors(tmp_path / "a.parquet", **BUDGET)
        assert data._rows is None and np.array_equal(vector_rows(data)[0], x)

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    @pytest.mark.parametrize("becomes", [None, b"x,y\na,needle\n"], ids=["removed", "another"])
    def test_a_file_that_is_read_again_and_was_changed_raises_after_the_charge(
        self, suffix, becomes, tmp_path, monkeypatch
    ):
        """A limit, of files beyond what is kept: one sentence without a word of the data, and the charge stays."""
        monkeypatch.setattr(records, "MOST_KEPT", 0)
        monkeypatch.setattr(vectors, "MOST_KEPT", 0)
        frame, path = pd.DataFrame({"x": ["a", "b"] * 50, "y": [0, 1] * 50}), tmp_path / f"a.{suffix}"
        frame.to_parquet(path) if suffix == "parquet" else frame.to_csv(path, index=False)
        table = PrivateTable(path, STATES, **BUDGET)
        numbers = PrivateVectors(path, ["y"], **BUDGET)
        path.unlink()
        if becomes is not None:
            path.write_bytes(becomes)
        told = "was changed while it was in use; what is learned has to be of one and the same file"
        with pytest.raises(OSError, match=told) as caught:
            PrivateChowLiu(epsilon=0.5).fit(table)
        assert "needle" not in str(caught.value) and caught.value.__context__ is None
        with pytest.raises(OSError, match=told):
            PrivateGraphicalLasso(epsilon=0.5, row_norm=1.0).fit(numbers)
        assert len(table.ledger.entries) == len(numbers.ledger.entries) == 1

    def test_what_is_no_file_is_kept_and_read_once(self, monkeypatch):
        monkeypatch.setattr(records, "MOST_KEPT", 0)
        for engine in LAZY[:2]:
            private = PrivateTable(engine(arrow(many_rows(50))), SCHEMA, **BUDGET)
            assert private._records._codes is not None

    def test_an_interrupted_read_has_charged_nothing(self, monkeypatch):
        def interrupted(self, names, spelled=()):
            yield from ()
            raise KeyboardInterrupt

        source = open_source(pa.table({"x": ["a"]}))
        monkeypatch.setattr(type(source), "batches", interrupted)
        with pytest.raises(KeyboardInterrupt):
            counts(source)


def test_a_fit_reads_before_it_charges(monkeypatch):
    """Whatever goes wrong while data are read costs nothing: all was read when the curator charges."""
    reader = pa.table({"x": ["a"] * 10}).to_reader()
    table = PrivateTable(reader, STATES, **BUDGET)
    with pytest.raises(StopIteration):
        reader.read_next_batch()
    assert not table.ledger.entries
    TableCurator(table, Budget(epsilon=0.5), what="", columns=[])
    assert len(table.ledger.entries) == 1


BITS = {"a": [0, 1], "b": [0, 1]}
LEARNERS = {
    "tables": lambda data: PrivateNetwork(rho=1.0, state_names=BITS, random_state=0).fit(data),
    "gradients": lambda data: PrivateIsing(rho=1.0, width=2.0, state_names=BITS, random_state=0).fit(data),
    "gradients of samples": lambda data: PrivateSGD(rho=1.0, n_steps=3, state_names=BITS, random_state=0).fit(
        nx.Graph([("a", "b")]), data
    ),
    "moments": lambda data: PrivateGraphicalLasso(epsilon=1.0, delta=1e-6, row_norm=4.0, random_state=0).fit(
        PrivateVectors(data, ["x", "y"], ledger=Budget(epsilon=1.0, delta=1e-6))
    ),
    "users": lambda data: PrivateMarkovChain(epsilon=1.0, state_names={"b": [0, 1]}, order="t", random_state=0).fit(
        data
    ),
}


@pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning")
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_seeded_release_is_the_same_from_every_reader(learner, tmp_path):
    """In streams and in any order too: sums are of integers, and coins are a record's own."""
    rng = np.random.default_rng(5)
    n, a = 300, rng.integers(0, 2, 300)
    cells = {"a": a, "b": (a + (rng.random(n) < 0.2)) % 2, "x": rng.normal(size=n), "y": rng.normal(size=n)}
    table = pa.table(cells | {"user": [f"u{k}" for k in rng.integers(0, 60, n)], "t": rng.permutation(n)})
    pq.write_table(table, tmp_path / "a.parquet")
    table.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    readers = [table, table.take(pa.array(rng.permutation(n))), table.to_reader(7), table.to_pandas()]
    readers += [pl.from_arrow(table), pl.from_arrow(table).lazy(), duckdb.from_arrow(table), ibis.memtable(table)]
    readers += [tmp_path / "a.parquet", tmp_path / "a.csv"]
    first, *others = ([v.tolist() for v in LEARNERS[learner](data).release_.values] for data in readers)
    assert first and all(other == first for other in others)


def test_a_dictionary_of_a_whole_file_is_looked_up_where_it_is_used():
    """Entries that nobody in a batch has are not even made values of Python."""
    column = pa.DictionaryArray.from_arrays(pa.array([90_000, None, 5]), [str(k) for k in range(100_000)])
    cells = cells_of(column)
    assert [cells.listed[k] for k in cells.places] == [b"90000", None, b"5"] and len(cells.listed) < 10


def test_workers_import_no_more_than_they_run():
    """Each worker of Spark starts with the module that reads for it."""
    heavy = {"pgmpy", "pandas", "scipy", "torch", "opendp", "networkx", "sklearn"}
    code = f"import sys, pgmpy_dp.private.reading.spark_source; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
