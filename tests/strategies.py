"""Schemas, frames and graphs as odd as their documentation allows, for property tests."""

from __future__ import annotations

import datetime
import decimal
import math

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from pgmpy_dp.schema import match_key

TEXTS = [
    "",
    " ",
    "a",
    "A",
    "é",
    "e\u0301",
    "🎈",
    "\u0627",
    "\u202ex",
    "a" * 300,
    "0",
    "1.0",
    "nan",
    "None",
    "\n",
    "^a$",
    "*",
]
texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=5))
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**53, 2**53 + 2, 2**63, -(2**64), 10**400, 0.1, 1e-320, 1e308]),
    st.floats(allow_nan=False, allow_infinity=False),
)
labels = st.one_of(texts, numbers, st.booleans(), st.tuples(texts, st.integers(0, 2)))
names = st.lists(labels, min_size=1, max_size=4, unique_by=str).filter(lambda found: len(set(found)) == len(found))
states = st.lists(st.one_of(labels, st.none()), min_size=2, max_size=5, unique_by=match_key)

OUTSIDE = [
    *(None, math.nan, pd.NA, pd.NaT, math.inf, -math.inf, "stray", b"\xff", [1, [2]], {"a": 1}, (), object(), 1j),
    *(np.float32(0.5), np.int8(1), np.str_("a"), np.bool_(True), decimal.Decimal("1.0"), decimal.Decimal("sNaN")),
    *(datetime.date(2020, 1, 1), pd.Timestamp("2020-01-01", tz="Asia/Kolkata"), np.datetime64("2020-01-01"), 10**5000),
]


@st.composite
def schemas(draw) -> dict:
    """Names and states of one to four variables."""
    return {name: draw(states) for name in draw(names)}


@st.composite
def frames(draw, schema: dict, max_rows: int = 12) -> pd.DataFrame:
    """Rows inside the schema and outside of it, repeated ones too, as objects or in whatever type pandas finds."""
    cell = {
        name: st.one_of(st.sampled_from(list(declared)), st.sampled_from(OUTSIDE)) for name, declared in schema.items()
    }
    rows = draw(st.lists(st.tuples(*cell.values()), max_size=max_rows))
    rows += draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else []
    columns = pd.Index(list(schema), tupleize_cols=False, dtype=object)
    frame = pd.DataFrame(index=range(len(rows)), columns=columns, dtype=object)
    for place in range(len(columns)):
        values = np.empty(len(rows), dtype=object)
        values[:] = [row[place] for row in rows]
        try:
            frame.isetitem(place, values)
        except OverflowError:  # pandas 2.2 looks for a type with room for 10**400
            frame.isetitem(place, pd.Series(values, frame.index, dtype=object))
    return frame


def categorical(column: pd.Series, unused: list) -> pd.Series:
    """A column as a categorical, with categories that no row has."""
    kinds = [value for value in unused if isinstance(value, str)]
    return pd.Series(pd.Categorical(column, categories=[*dict.fromkeys([*column.dropna(), *kinds])]))


@st.composite
def text_frames(draw) -> tuple[dict, dict[str, object]]:
    """A schema of texts, and one table in several engines and types."""
    schema = {
        name: draw(st.lists(texts, min_size=2, max_size=4, unique_by=match_key))
        for name in draw(st.lists(texts, min_size=1, max_size=3, unique=True))
    }
    cells = {name: st.one_of(st.sampled_from(declared), st.none(), texts) for name, declared in schema.items()}
    rows = draw(st.lists(st.tuples(*cells.values()), max_size=10))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(schema)}
    typed = {name: pl.Series(values, dtype=pl.String) for name, values in columns.items()}
    polars = pl.DataFrame(typed)
    arrow = pa.table([pa.array(values, pa.string()) for values in columns.values()], names=list(columns))
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    return schema, {
        "pandas": frame,
        "pandas categorical": pd.DataFrame({name: categorical(frame[name], TEXTS[2:6]) for name in schema}),
        "pandas text": frame.astype("string"),
        "polars": polars,
        "polars lazy": polars.lazy(),
        "polars categorical": pl.DataFrame({name: column.cast(pl.Categorical) for name, column in typed.items()}),
        "pyarrow": arrow,
        "pyarrow dictionary": pa.table(
            [column.combine_chunks().dictionary_encode() for column in arrow.columns], names=list(columns)
        ),
    }


@st.composite
def graphs(draw, max_nodes: int = 7) -> nx.Graph:
    """Any undirected graph: no edges, isolated nodes, several components, loops; names of mixed types."""
    nodes = draw(
        st.lists(labels, min_size=1, max_size=max_nodes, unique_by=str).filter(
            lambda found: len(set(found)) == len(found)
        )
    )
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=12)))
    return graph
