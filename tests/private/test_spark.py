"""Spark in local mode: counts, codes, moments and contributions equal to the digit. Needs PySpark and Java."""

from __future__ import annotations

import os
import shutil
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pgmpy_dp.private.data.lazy import LazySource

from pgmpy_dp import Budget
from pgmpy_dp.estimators import PrivateChowLiu
from pgmpy_dp.private.data.sequences import PrivateSequences, chain_tables
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
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
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
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
def test_windows_of_spark(on_spark, length, states, times, monkeypatch):
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
    monkeypatch.setattr(LazySource, "cells", lambda *_: pytest.fail("fetched cells"))
    assert_same([t.value for t in chain_tables(here, length)], [t.value for t in chain_tables(there, length)])


def test_a_fit_is_the_fit_from_memory(on_spark):
    rng = np.random.default_rng(8)
    a = rng.integers(0, 2, 1000)
    table = pa.table({"a": a, "b": (a + (rng.random(1000) < 0.2)) % 2, "c": rng.integers(0, 3, 1000)})
    options = {"epsilon": 1.0, "state_names": {"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}, "random_state": 0}
    here, there = (PrivateChowLiu(**options).fit(data) for data in (table, on_spark(table)))
    assert [v.tolist() for v in here.release_.values] == [v.tolist() for v in there.release_.values]
