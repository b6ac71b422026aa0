"""Property tests of the data layer: any schema, any frame, any graph, against what the documentation says."""

from __future__ import annotations

import logging
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, PrivateGraph, PrivateSequences, PrivateTable, PrivateVectors, Schema
from pgmpy_dp.communities.operators.graph import adjacency_matrix
from pgmpy_dp.private.data.table import contingency_tables
from pgmpy_dp.private.data.vectors import vector_rows
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.schema import match_key
from pgmpy_dp.sequences.operators.sequences import chain_tables
from pgmpy_dp.shown import quantity
from tests.private.test_frames import naive_encode
from tests.strategies import OUTSIDE, frames, graphs, schemas, text_frames

ONE = Budget(epsilon=1.0)
quiet = settings(
    max_examples=settings.default.max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def rows_of(frame: pd.DataFrame, schema: Schema) -> list[dict]:
    return [
        dict(zip(schema, row, strict=True))
        for row in zip(*(frame.iloc[:, j] for j in range(frame.shape[1])), strict=True)
    ]


class TestTables:
    @quiet
    @given(st.data())
    def test_any_schema_and_frame_agree_with_the_naive_twin_in_silence(self, caplog, data):
        schema = Schema(data.draw(schemas()))
        frame = data.draw(frames({name: schema[name] for name in schema}))
        with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            codes = encode(frame, schema)
            table = PrivateTable(frame, schema, ledger=ONE)
        assert not caught and not caplog.records
        assert codes.tolist() == naive_encode(rows_of(frame, schema), schema)
        said = "adjacency='add_remove', n_records=None, spent 0-DP of 1-DP"
        assert repr(table) == f"PrivateTable({quantity(schema, 'variable')}, {said})"

    @quiet
    @given(st.data())
    def test_other_states_take_everything_outside(self, data):
        declared = data.draw(schemas())
        other = {name: states[0] for name, states in declared.items()}
        schema = Schema(declared, other=other)
        frame = data.draw(frames(declared))
        codes = encode(frame, schema)
        assert len(codes) == len(frame)
        assert codes.tolist() == naive_encode(rows_of(frame, schema), schema)

    @quiet
    @given(st.data())
    def test_order_and_repetition_of_records(self, data):
        declared = data.draw(schemas())
        frame = data.draw(frames(declared))
        order = data.draw(st.permutations(range(len(frame))))
        scopes = [tuple(declared), *((name,) for name in declared)]

        def counts(rows):
            return [table.value for table in contingency_tables(PrivateTable(rows, declared, ledger=ONE), scopes)]

        once, permuted, twice = (
            counts(frame),
            counts(frame.iloc[order]),
            counts(frame.iloc[[*range(len(frame)), *order]]),
        )
        assert all(
            np.array_equal(a, b) and np.array_equal(2 * a, c) for a, b, c in zip(once, permuted, twice, strict=True)
        )

    @quiet
    @given(text_frames())
    def test_every_engine_counts_the_same(self, drawn):
        declared, engines = drawn
        schema = Schema(declared)
        expected = naive_encode(rows_of(engines["pandas"], schema), schema)
        for name, data in engines.items():
            assert encode(data, schema).tolist() == expected, name


class TestVectors:
    cells = st.one_of(st.floats(), st.integers(), st.sampled_from(OUTSIDE), st.sampled_from(["1.5", "x", True]))

    @quiet
    @given(st.lists(st.tuples(cells, cells), max_size=8))
    def test_each_cell_is_read_on_its_own(self, rows):
        columns = {}
        for place, name in enumerate("pq"):
            columns[name] = np.empty(len(rows), dtype=object)
            columns[name][:] = [row[place] for row in rows]
        try:
            frame = pd.DataFrame(columns)
        except OverflowError:  # pandas 2.2 looks for a type with room for 10**400
            frame = pd.DataFrame(columns, dtype=object)
        kept, _ = vector_rows(PrivateVectors(frame, ledger=ONE))
        keys = [[match_key(value) for value in row] for row in rows]
        naive = [[key[1] for key in row] for row in keys if all(k[0] == "number" and np.isfinite(k[1]) for k in row)]
        assert kept.tolist() == naive


class TestSequences:
    @quiet
    @given(
        st.lists(
            st.tuples(st.integers(0, 3), st.lists(st.sampled_from(["a", "b", "?", None]), max_size=5)), max_size=8
        ),
        st.data(),
    )
    def test_wide_and_long_forms_and_any_order_of_users_agree(self, sequences, data):
        schema = {"page": ["a", "b", None]}
        owners = dict(sequences)  # one sequence each, for the long form has one
        wide = pd.DataFrame({"user": list(owners), "sequence": pd.Series(list(owners.values()), dtype=object)})
        visits = [(user, time, page) for user, pages in owners.items() for time, page in enumerate(pages)]
        long = pd.DataFrame(data.draw(st.permutations(visits)), columns=["user", "time", "page"], dtype=object)

        def tables(frame, **options):
            return [t.value for t in chain_tables(PrivateSequences(frame, schema, ledger=ONE, **options))]

        expected = tables(wide)
        order = data.draw(st.permutations(range(len(wide))))
        for other in (tables(long, order="time"), tables(wide.iloc[order])):
            assert all(np.array_equal(a, b) for a, b in zip(expected, other, strict=True))


class TestGraphs:
    @quiet
    @given(graphs(), st.data())
    def test_networkx_matrices_and_edge_lists_agree(self, graph, data):
        nodes = list(graph)
        bare = nx.Graph(graph.edges)
        bare.remove_edges_from(list(nx.selfloop_edges(bare)))
        expected = np.zeros((len(nodes), len(nodes)), dtype=int)
        place = {node: k for k, node in enumerate(nodes)}
        for u, v in bare.edges:
            expected[place[u], place[v]] = expected[place[v], place[u]] = 1
        dense = nx.to_numpy_array(graph, nodelist=nodes)
        read = [
            PrivateGraph(graph, ledger=ONE),
            PrivateGraph(dense, nodes, ledger=ONE),
            PrivateGraph(sp.coo_array(dense), nodes, ledger=ONE),
        ]
        if len({match_key(node) for node in nodes}) == len(nodes):
            edges = [edge[:: data.draw(st.sampled_from([1, -1]))] for edge in graph.edges]
            edges = data.draw(st.permutations(edges + edges[:2]))
            table = pd.DataFrame(
                {end: pd.Series([edge[k] for edge in edges], dtype=object) for k, end in enumerate("uv")}
            )
            read.append(PrivateGraph(table, nodes, ledger=ONE))
            stray = pd.concat(
                [table, pd.DataFrame({"u": [nodes[0], None], "v": ["nobody at all", object()]}, dtype=object)]
            )
            read.append(PrivateGraph(stray, nodes, ledger=ONE))
        for subject in read:
            assert np.array_equal(adjacency_matrix(subject).toarray(), expected)
            assert (
                repr(subject)
                == f"PrivateGraph({quantity(nodes, 'vertex', 'vertices')}, adjacency='edge', spent 0-DP of 1-DP)"
            )
