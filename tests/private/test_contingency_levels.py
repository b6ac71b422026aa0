"""Tables by levels are those by leaves, added up: in memory, in files that are read again, and of persons."""

from __future__ import annotations

import zlib
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Budget, Levels, PrivateTable, Schema
from pgmpy_dp.learning.merging import merged_cells
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.joint_tables import LevelColumns
from pgmpy_dp.private.data.table import contingency_tables
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.reading import records as coded_records
from pgmpy_dp.private.reading import spark_source

COUNTY = {f"t{k}": f"c{k % 7}" for k in range(20)}
STATE = {f"c{k}": f"s{k % 3}" for k in range(7)}
SCHEMA = Schema(
    {
        "race": ["a", "b", "c"],
        "tract": Levels(list(COUNTY)[:15], county=COUNTY, state=STATE),
        "sex": ["F", "M"],
        "icd": Levels.from_prefix(["E11", "E12", "I10", "I11"], {"chapter": 1}),
    },
    other={"tract": "unknown"},
)
LEAVES = [("tract", "race"), ("icd", "tract", "sex"), ("tract",), ("sex", "icd"), ("race", "tract", "icd", "sex")]
CASES = [  # each with the place of its leaf table
    (("county", "race"), 0),
    (("state", "race"), 0),
    (("chapter", "state", "sex"), 1),
    (("icd", "county", "sex"), 1),
    (("state",), 2),
    (("sex", "chapter"), 3),
    (("race", "state", "chapter", "sex"), 4),
]


def frame(n=900, seed=0):
    rng = np.random.default_rng(seed)
    tracts = [*COUNTY, "?"]
    codes = ["E11", "E12", "E13", "I10", "I77", "Z1"]
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "county": "c0",  # which is not read
            "tract": rng.choice(tracts, n),
            "icd": rng.choice(codes, n),
            "race": rng.choice(["a", "b", "c", "?"], n, p=[0.6, 0.2, 0.19, 0.01]),
            "who": rng.integers(0, 300, n),
        }
    )


def summed(schema, scope, leaf_table):
    return merged_cells(leaf_table, [one and one.places for one in schema.leaf_scope(scope).values()])


def assert_added_up(table):
    leaves = [one.value for one in contingency_tables(table, LEAVES)]
    levels = contingency_tables(table, [scope for scope, _ in CASES])
    for (scope, k), level in zip(CASES, levels, strict=True):
        assert level.value.tolist() == summed(SCHEMA, scope, leaves[k]).tolist()
        assert level.value.sum() > 0
        assert (level.l1, level.l2, level.linf) == tuple(
            getattr(contingency_tables(table, [("sex",)])[0], norm) for norm in ("l1", "l2", "linf")
        )


@pytest.mark.parametrize("rows", [{}, {"unit": "who", "rows_per_unit": 2}, {"unit": "who", "rows_per_unit": "shares"}])
def test_in_memory(rows):
    assert_added_up(PrivateTable(frame(), SCHEMA, ledger=Budget(rho=1.0), random_state=0, **rows))


def test_in_files_that_are_read_again(tmp_path, monkeypatch):
    frame().to_csv(tmp_path / "records.csv", index=False)
    monkeypatch.setattr(coded_records, "MOST_KEPT", 10)
    assert_added_up(table := PrivateTable(tmp_path / "records.csv", SCHEMA, ledger=Budget(rho=1.0)))
    assert table._records._codes is None


def test_of_many_records_by_bits():
    assert_added_up(PrivateTable(frame(5000), SCHEMA, ledger=Budget(rho=1.0), adjacency="replace_one", n_records=5000))


def test_of_a_part_of_the_records():
    table = PrivateTable(frame(), SCHEMA, ledger=Budget(rho=1.0))
    kept = table._records.codes()
    assert_added_up(table._part(np.arange(len(kept)) % 2 == 0))


def test_in_states_that_merged():
    table = PrivateTable(frame(), SCHEMA, ledger=Budget(rho=1.0))
    exact = contingency_tables(table, [("state", "race")])[0].value
    merged = SCHEMA.replaced({"race": ["a", "other"]})
    again = contingency_tables(table._merged(merged, {"race": (0, 1, 1)}), [("state", "race")])[0].value
    assert again.tolist() == merged_cells(exact, [None, (0, 1, 1)]).tolist()


@given(st.data())
def test_of_any_tree(data):
    leaves = [f"x{k}" for k in range(data.draw(st.integers(3, 9)))]
    parents = {leaf: data.draw(st.sampled_from("pqr")) for leaf in leaves}
    try:
        schema = Schema({"x": Levels(leaves, up=parents), "y": [0, 1]})
    except ValueError:  # too few states
        return
    rows = data.draw(st.lists(st.tuples(st.sampled_from([*leaves, "?"]), st.integers(0, 1)), max_size=30))
    table = PrivateTable(pd.DataFrame(rows, columns=["x", "y"]), schema, ledger=Budget(rho=1.0))
    fine, coarse = (one.value for one in contingency_tables(table, [("y", "x"), ("y", "up")]))
    assert coarse.tolist() == summed(schema, ("y", "up"), fine).tolist()
    expected = [
        [sum(parents.get(x) == p and y == k for x, y in rows) for p in schema.levels["up"].states] for k in (0, 1)
    ]
    assert coarse.tolist() == expected


@pytest.mark.parametrize(
    ("scope", "message"),
    [(("county", "state"), "has 'tract' twice"), (("tract", "state"), "has 'tract' twice"), (("town",), "unknown")],
)
def test_scopes_without_a_table_are_refused_before_anything_is_spent(scope, message):
    table = PrivateTable(frame(), SCHEMA, ledger=Budget(rho=1.0))
    curator = TableCurator(table, Budget(rho=1.0), what="tables")
    with pytest.raises(ValueError, match=message):
        curator.ask(Tables([scope]), Fraction(1))
    assert curator.left == 1
    noisy = curator.ask(Tables([("chapter", "county")]), Fraction(1))[0]
    assert noisy.shape == (SCHEMA.cardinality("chapter"), SCHEMA.cardinality("county"))


def test_where_sparks_workers_are():
    """What a worker does, without Spark; test_spark_source.py asks Spark."""
    columns = [pa.array(frame()[name].astype(str)) for name in SCHEMA.variables]
    batch = pa.record_batch(columns, names=[str(k) for k in range(len(columns))])
    (coded,) = spark_source._Coding(SCHEMA)(iter([batch]))
    position = {name: k for k, name in enumerate((*SCHEMA.variables, *SCHEMA.levels))}
    covers = [tuple(position[name] for name in scope) for scope, _ in CASES]
    counting = spark_source._Counting(LevelColumns(SCHEMA), [None] * len(SCHEMA), covers)
    (made,) = counting(iter([coded.select(["batch"])]))
    counts = np.frombuffer(zlib.decompress(made["counts"][0].as_py()), np.int64)
    here = contingency_tables(PrivateTable(frame(), SCHEMA, ledger=Budget(rho=1.0)), [scope for scope, _ in CASES])
    assert counts.tolist() == np.concatenate([one.value.ravel() for one in here]).tolist()
