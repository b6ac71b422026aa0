"""Spark in local mode: codes, counts, persons, numbers and visits equal to the digit. Needs PySpark and Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgmpy_dp
from pgmpy_dp import Budget, Ledger, Schema
from pgmpy_dp.estimators import PrivateChowLiu
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables, matched_records, shared_codes
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.private.reading import spark_source
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables
from tests.private import test_contingency_levels
from tests.private.test_engines import READ, SCHEMA, SCOPES, arrow, assert_same, exact, many_rows, sums

pytest.importorskip("pyspark", reason="PySpark is not installed; make test-spark installs it")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Spark needs Java 17 or newer, and there is no java here", allow_module_level=True)

# PySpark's own, about the version of pandas.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        session = (
            SparkSession.builder.master("local[2,3]")  # two at a time, and a task that fails is tried three times
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def on_spark(spark, tmp_path):
    def read(table: pa.Table):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        pq.write_table(table, path)
        return spark.read.parquet(str(path))

    return read


@pytest.mark.parametrize("schema", [SCHEMA, READ], ids=["states", "numbers"])
def test_counts_and_codes_are_those_of_memory(on_spark, schema):
    table = arrow(many_rows())
    frame = on_spark(table)
    assert_same(exact(frame, schema), exact(table, schema))
    here, there = (shared_codes(PrivateTable(d, schema, ledger=Budget(epsilon=1.0)))[0] for d in (table, frame))
    assert sorted(map(tuple, here.tolist())) == sorted(map(tuple, there.tolist()))  # Spark's rows have no order


def test_tables_by_levels_are_those_by_leaves(on_spark):
    frame = on_spark(pa.Table.from_pandas(test_contingency_levels.frame(), preserve_index=False))
    test_contingency_levels.assert_added_up(PrivateTable(frame, test_contingency_levels.SCHEMA, ledger=Budget(rho=1.0)))


def test_nothing_to_count(on_spark):
    frame = on_spark(arrow([]))
    assert [part.sum() for part in exact(frame)] == [0] * len(SCOPES)


def test_moments_are_those_of_memory(on_spark):
    x = np.random.default_rng(3).normal(size=(5000, 3)) * [0.1, 5, 1e300]
    x[7] = [np.nan, 1, 1]
    x[8] = [np.inf, 1, 1]
    table = pa.table(dict(zip("xyz", x.T, strict=True)))
    expected = sums(table)
    assert expected[-1].item() == 4998
    assert_same(sums(on_spark(table)), expected)


def test_texts_are_numbers_too(on_spark):
    table = pa.table({"x": ["1", " 2.5 ", "zz", "1e400"], "y": [True, False, True, True], "z": [1, 2, 3, 4]})
    assert_same(sums(on_spark(table)), sums(table))


def test_contributions_are_bounded_alike(on_spark):
    rng = np.random.default_rng(7)
    user = ["u", "7", "7.0", "v"]
    table = pa.table(
        {
            "user": [user[k] for k in rng.integers(0, 4, 200)],
            "t": rng.permutation(200),
            "page": rng.choice(["a", "b", "?"], 200),
        }
    )
    options = {"schema": {"page": ["a", "b"]}, "order": "t", "ledger": Budget(epsilon=1.0)}
    here, there = (chain_tables(PrivateSequences(data, **options)) for data in (table, on_spark(table)))
    assert_same([t.value for t in here], [t.value for t in there])


@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("states", [["a", "b"], [None, "a"]])
@pytest.mark.parametrize(
    "times", [[-1.5, 0.0, -0.0, 2.0, np.nan, np.inf], pd.to_datetime(["2020-01-05 00:00", "2020-01-05 01:00", None])]
)
def test_windows_of_spark(on_spark, length, states, times):
    """Times tie: such visits are in the order of their states."""
    rng = np.random.default_rng(8)
    code = {state: k for k, state in enumerate(states)}
    rows = pd.DataFrame(
        {
            "user": rng.choice(np.array(["u1", "u2", "v", None], dtype=object), 400),
            "t": np.asarray(times)[rng.integers(0, len(times), 400)],
            "page": rng.choice(np.array(["a", "b", "?", None], dtype=object), 400),
        }
    )
    ordered = rows.iloc[
        np.argsort([code.get(None if pd.isna(page) else page, -1) for page in rows["page"]], kind="stable")
    ]
    here, there = (pa.Table.from_pandas(data, preserve_index=False) for data in (ordered, rows))
    options = {"schema": {"page": states}, "order": "t", "ledger": Budget(epsilon=1.0)}
    here, there = (PrivateSequences(data, **options) for data in (here, on_spark(there)))
    assert_same([t.value for t in chain_tables(here, length)], [t.value for t in chain_tables(there, length)])


def test_a_fit_is_the_fit_from_memory(on_spark):
    rng = np.random.default_rng(8)
    a = rng.integers(0, 2, 1000)
    table = pa.table({"a": a, "b": (a + (rng.random(1000) < 0.2)) % 2, "c": rng.integers(0, 3, 1000)})
    options = {"epsilon": 1.0, "state_names": {"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}, "random_state": 0}
    here, there = (PrivateChowLiu(**options).fit(data) for data in (table, on_spark(table)))
    assert [v.tolist() for v in here.release_.values] == [v.tolist() for v in there.release_.values]


STATES = {"a": ["x", "y"], "b": [0, 1, 2]}


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    rows = {"a": rng.choice(["x", "y", "z"], 600), "b": rng.integers(0, 4, 600), "who": rng.integers(0, 90, 600)}
    return pa.table(rows)


def tables(data, **options):
    """Exact tables, and how many records match."""
    options = {"ledger": Budget(epsilon=1.0), "random_state": 1 if "unit" in options else None} | options
    table = PrivateTable(data, STATES, **options)
    found = [*contingency_tables(table, [("a",), ("b", "a")]), matched_records(table)]
    return [each.value.tolist() for each in found]


@pytest.mark.parametrize("rows", [1, 2, "shares"])
def test_persons_are_those_of_memory(on_spark, people, rows):
    assert tables(on_spark(people), unit="who", rows_per_unit=rows) == tables(people, unit="who", rows_per_unit=rows)


def test_numbers_are_those_of_memory(on_spark):
    x = np.random.default_rng(4).normal(size=(300, 2))
    data = pa.table({"x": x[:, 0], "y": x[:, 1]})
    here, there = (
        vector_rows(PrivateVectors(d, ["x", "y"], ledger=Budget(epsilon=1.0)))[0] for d in (data, on_spark(data))
    )
    assert sorted(map(tuple, here.tolist())) == sorted(map(tuple, there.tolist()))


def test_columns_are_told_apart_by_their_places(on_spark, spark):
    """Spark takes names that differ by case for one, and parses dots and backticks."""
    data = pa.table({"a.b": ["x", "y", "y"], "`a`": ["x", "x", "x"], "A": [0, 0, 1]})
    frame = on_spark(data).withColumnRenamed("A", "a.B")
    schema = {"a.b": ["x", "y"], "`a`": ["x", "y"], "a.B": [0, 1]}
    table = PrivateTable(frame, schema, ledger=Budget(epsilon=1.0))
    found = contingency_tables(table, [("a.b",), ("`a`",), ("a.B",)])
    assert [each.value.tolist() for each in found] == [[1, 2], [3, 0], [2, 1]]


@pytest.mark.parametrize("kills", [False, True], ids=["a task that fails", "a worker that is killed"])
def test_what_is_tried_again_counts_once(on_spark, people, kills, tmp_path):
    tried = tmp_path / "tried"

    def odd(batches):
        import os
        import signal

        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        with open(tried, "a") as file:
            file.write(f"{context.partitionId()} {context.attemptNumber()}\n")
        if context.attemptNumber() == 0:
            if kills:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("the first time")

    frame = on_spark(people)
    expected = tables(people)
    assert tables(frame.mapInArrow(odd, frame.schema)) == expected
    assert "0 1" in tried.read_text().splitlines()


def test_the_data_are_read_once(on_spark, people, tmp_path):
    read = tmp_path / "read"

    def counted(batches):
        for batch in batches:
            with open(read, "a") as file:
                file.write(f"{batch.num_rows}\n")
            yield batch

    frame = on_spark(people)
    table = PrivateTable(frame.mapInArrow(counted, frame.schema), STATES, ledger=Budget(epsilon=1.0))
    for scope in [("a",), ("b",), ("a", "b")]:
        contingency_tables(table, [scope])
    shared_codes(table)
    assert sum(map(int, read.read_text().split())) == len(people)


def test_merged_states_are_those_of_memory(on_spark, people):
    merged = Schema({"a": ["x", "y"], "b": [0, 1]})
    made = []
    for data in (people, on_spark(people)):
        table = PrivateTable(data, STATES, ledger=Budget(epsilon=1.0))._merged(merged, {"b": [0, 1, 1]})
        made.append([each.value.tolist() for each in contingency_tables(table, [("a", "b"), ("b",)])])
    assert made[0] == made[1]


def test_a_query_that_fails_says_nothing_of_the_data(on_spark, people, capfd):
    """Not the exception, nor its context, nor the log of the Java beside us; and nothing is charged."""

    def failing(batches):
        for batch in batches:
            raise ValueError(f"secret {batch.column(0)[0]}")
        yield

    frame, budget = on_spark(people), Budget(epsilon=1.0)
    with pytest.raises(OSError, match="Spark failed while it read the data, before anything was charged") as caught:
        PrivateChowLiu(epsilon=1.0, state_names=STATES).fit(frame.mapInArrow(failing, frame.schema))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    with pytest.raises(OSError):
        PrivateVectors(frame.mapInArrow(failing, frame.schema), ["b"], ledger=budget)
    shown = capfd.readouterr()
    assert "secret" not in shown.out + shown.err
    level = frame.sparkSession.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()
    assert level.toString() == "ERROR"  # as it was


def test_codes_that_cannot_be_made_again_raise_after_the_charge(on_spark, people, tmp_path, capfd):
    """A limit: what is kept is lost with its workers, and the frame's own data are gone. The charge stays."""
    table = PrivateTable(on_spark(people), STATES, ledger=Budget(epsilon=1.0))
    table._records._coded.unpersist(blocking=True)
    for path in tmp_path.glob("*.parquet"):
        path.unlink()
    told = "Spark could not read the codes that it keeps; what was charged stays charged"
    with pytest.raises(OSError, match=told) as caught:
        PrivateChowLiu(epsilon=0.5).fit(table)
    assert caught.value.__context__ is None and len(table.ledger.entries) == 1
    assert capfd.readouterr().err == ""


def test_workers_need_the_package(on_spark, people, monkeypatch):
    monkeypatch.setattr(spark_source, "_version", lambda: "9.9")
    with pytest.raises(
        ModuleNotFoundError, match=r"Spark's workers need pgmpy_dp 9.9, and some have version [0-9.]+: install"
    ):
        tables(on_spark(people))


@pytest.mark.parametrize("read", [tables, lambda data, **b: PrivateVectors(data, ["b"], **b)], ids=["codes", "numbers"])
def test_workers_without_the_package_are_named_before_the_charge(on_spark, people, read, tmp_path, monkeypatch, capfd):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "pgmpy_dp.py").write_text("raise ModuleNotFoundError('No module named pgmpy_dp')")
    python = tmp_path / "python"
    # Where it starts in is before what it is told to look in.
    python.write_text(f'#!/bin/sh\ncd /\nPYTHONPATH="{tmp_path}/none:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    frame, ledger = on_spark(people), Ledger(Budget(epsilon=1.0))
    monkeypatch.setattr(frame.sparkSession.sparkContext, "pythonExec", str(python))
    with pytest.raises(ModuleNotFoundError) as caught:
        read(frame, ledger=ledger)
    assert str(caught.value) == (
        f"Spark's workers need pgmpy_dp {pgmpy_dp.__version__}, and some have none: install it for the Python of each "
        "worker"
    )
    assert not ledger.entries
    assert capfd.readouterr() == ("", "")


def test_a_worker_says_which_version_it_has(spark):
    assert spark_source._versions(spark.range(1)) == {pgmpy_dp.__version__}


def test_a_worker_without_the_package_says_so():
    """The function that asks comes without its module, which such a worker could not import."""
    from pyspark import cloudpickle

    sent = cloudpickle.dumps(spark_source._version_there)
    code = (
        f"import sys; sys.modules['pgmpy_dp'] = None; import pickle; asked = pickle.loads({sent!r}); "
        "print([batch.to_pydict() for batch in asked([None])])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[{'version': ['']}]"


def test_types_that_cannot_be_handed_over_are_refused(spark):
    frame = spark.sql("SELECT INTERVAL '1' MONTH AS a, 1 AS b")
    with pytest.raises(ValueError, match=r"column 'a' has Spark's type interval month, .* cast it to string"):
        PrivateTable(frame, {"a": ["x", "y"], "b": [0, 1]}, ledger=Budget(epsilon=1.0))


def test_codes_are_let_go(on_spark, people):
    frame = on_spark(people)
    table = PrivateTable(frame, STATES, ledger=Budget(epsilon=1.0))
    coded = table._records._coded
    assert coded.storageLevel.useMemory
    del table
    assert not coded.storageLevel.useMemory
