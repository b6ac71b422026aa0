"""PrivateGraph: public vertices, one bit for each pair however it is written, odd entries dropped in silence."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from pgmpy.base import DAG, UndirectedGraph

from pgmpy_dp import Budget, Ledger, PrivateGraph
from pgmpy_dp.communities.operators.graph import adjacency_matrix
from pgmpy_dp.private.curator.curator_base import Curator

TRIANGLE = [(0, 1), (1, 2), (0, 2)]
ODD = nx.MultiGraph([(0, 1), (1, 0), (0, 1), (1, 2), (2, 0), (3, 3)])


def private(graph=ODD, nodes=None, **changes) -> PrivateGraph:
    return PrivateGraph(graph, nodes, **{"ledger": Budget(epsilon=1.0), **changes})


def edges(subject: PrivateGraph) -> list[tuple[int, int]]:
    matrix = adjacency_matrix(subject)
    assert matrix.dtype == np.int32 and (matrix != matrix.T).nnz == 0 and not matrix.diagonal().any()
    assert set(matrix.data.tolist()) <= {1} and matrix.has_canonical_format
    return sorted(zip(*(part.tolist() for part in sp.triu(matrix).tocoo().coords), strict=True))


class TestReading:
    @pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph, UndirectedGraph])
    def test_graphs(self, kind):
        graph = kind([(0, 1), (1, 2), (2, 0), (2, 2)])
        graph.add_node(3)
        nx.set_edge_attributes(graph, 0.0, "weight")
        assert edges(private(graph)) == sorted(TRIANGLE) and private(graph).nodes == (0, 1, 2, 3)
        assert edges(private(graph, [2, 9, 0])) == [(0, 2)]

    @pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float64, bool])
    @pytest.mark.parametrize(
        "form", [np.array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array, sp.dia_array]
    )
    def test_matrices(self, kind, form):
        dense = np.zeros((4, 4), dtype=kind)
        dense[[0, 1, 2, 2, 3], [1, 2, 1, 0, 3]] = 1
        subject = private(form(dense))
        assert edges(subject) == sorted(TRIANGLE) and subject.nodes == range(4)
        assert private(form(dense), list("abcd")).nodes == ("a", "b", "c", "d")

    def test_entries_of_a_matrix_are_read_on_their_own(self):
        dense = np.array([[5, -1, 0], [1, 0, np.nan], [0, 0, 0]])
        assert edges(private(dense)) == [(0, 1), (1, 2)]
        stored_zero = sp.csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), shape=(3, 3))
        assert edges(private(stored_zero)) == [(1, 2)]
        repeated = (np.array([1, -1, 255, 1]), ([0, 0, 1, 2], [1, 1, 2, 1]))
        assert edges(private(sp.coo_array(repeated, shape=(3, 3)))) == [(0, 1), (1, 2)]

    @pytest.mark.parametrize(
        "engine", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), duckdb.from_df]
    )
    def test_dataframes(self, engine):
        rows = [
            ("a", "b", 3.0),
            ("b", "a", 0.0),
            ("c", "c", 1.0),
            ("b", "z", 1.0),
            (None, "a", 1.0),
            ("c", "b", np.nan),
        ]
        frame = engine(pd.DataFrame(rows, columns=["from", "to", "weight"]))
        assert edges(private(frame, ["a", "b", "c"])) == [(0, 1), (1, 2)]

    @pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t"), (".txt", "  "), ("", "\t ")])
    def test_files(self, tmp_path, suffix, separator):
        path = tmp_path / f"edges{suffix}"
        lines = ["source target", "# note", "1 2 7", "2 1", '"2" "3"', "3 9", "3", "", "1.0 3\r", "4 4"]
        odd = b"\xff\xfe 1\n" if separator.isspace() else b"\xff\xfe,1\n"
        path.write_bytes("\n".join(line.replace(" ", separator) for line in lines).encode() + b"\n" + odd)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for name in (path, str(path)):
                subject = private(name, [1, 2, 3, 4])
                assert edges(subject) == sorted(TRIANGLE)
        assert edges(private(path, ["1", "2"])) == [(0, 1)]

    def test_an_empty_file_is_an_empty_graph(self, tmp_path):
        (tmp_path / "edges").write_bytes(b"")
        assert edges(private(tmp_path / "edges", range(3))) == []

    def test_ways_to_write_a_graph_agree(self):
        graph = nx.gnp_random_graph(30, 0.2, seed=1)
        expected = edges(private(graph))
        matrix = nx.to_scipy_sparse_array(graph)
        frame = pd.DataFrame(list(graph.edges()))
        assert expected and expected == edges(private(matrix)) == edges(private(matrix.toarray()))
        assert expected == edges(private(sp.tril(matrix))) == edges(private(frame, range(30)))

    def test_one_edge_more_is_one_bit_more(self):
        pairs = list(itertools.combinations(range(4), 2))
        for chosen in itertools.product([0, 1], repeat=len(pairs)):
            graph = nx.empty_graph(4)
            graph.add_edges_from(pair for pair, there in zip(pairs, chosen, strict=True) if there)
            assert edges(private(graph)) == [pair for pair, there in zip(pairs, chosen, strict=True) if there]

    def test_public_arguments_are_checked(self):
        for directed in (nx.DiGraph([(0, 1)]), nx.MultiDiGraph(), DAG([("a", "b")])):
            with pytest.raises(TypeError, match="directed"):
                private(directed)
        with pytest.raises(ValueError, match="square"):
            private(np.ones((2, 3)))
        with pytest.raises(ValueError, match="square"):
            private(np.ones(4))
        with pytest.raises(TypeError, match="of numbers"):
            private(np.array([["a"]]))
        with pytest.raises(ValueError, match="nodes has 3 vertices and the matrix 2 rows"):
            private(np.ones((2, 2)), range(3))
        with pytest.raises(ValueError, match="nodes=None"):
            private(pd.DataFrame({"from": [0], "to": [1]}))
        with pytest.raises(ValueError, match="first two"):
            private(pd.DataFrame({"from": [0]}), [0])
        with pytest.raises(TypeError, match="not a dataframe"):
            private(7, range(3))
        with pytest.raises(FileNotFoundError):
            private("no such file", range(3))
        with pytest.raises(ValueError, match="0 vertices"):
            private(nx.Graph())
        with pytest.raises(ValueError, match="0 vertices"):
            private(np.empty((0, 0)))
        with pytest.raises(ValueError, match="vertex twice"):
            private(nodes=[1, True])
        with pytest.raises(ValueError, match="cannot tell apart"):
            private(pd.DataFrame({"from": [0], "to": [1]}), [1, "1"])
        with pytest.raises(TypeError, match="nodes='ab'"):
            private(nodes="ab")
        with pytest.raises(TypeError, match="cannot use"):
            private(nx.Graph([(0, frozenset())]))
        with pytest.raises(TypeError, match="ledger=None"):
            private(ledger=None)


class TestSubject:
    def test_nothing_but_public_facts(self):
        assert [name for name in dir(private()) if not name.startswith("_")] == [
            *("adjacency", "agreeing_on", "facts", "for_a_plan", "ledger", "n", "nodes", "set_aside", "unit")
        ]
        texts = {repr(private(graph)) for graph in (nx.empty_graph(5), nx.complete_graph(5), nx.star_graph(4))}
        assert texts == {"PrivateGraph(5 vertices, adjacency='edge', spent 0-DP of 1-DP)"}
        for attempt in (len, iter, vars, pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                attempt(private())

    def test_it_does_not_follow_the_data(self):
        dense = np.zeros((3, 3))
        subject = private(dense)
        dense[:] = 1
        assert edges(subject) == []
        with pytest.raises(ValueError, match="read-only"):
            adjacency_matrix(private()).data[:] = 0

    def test_a_ledger_is_shared(self):
        ledger = Ledger(Budget(rho=1.0), adjacency="edge")
        assert private(ledger=ledger).ledger is ledger and private().adjacency == "edge"
        with pytest.raises(ValueError, match="differs from the ledger's"):
            private(ledger=Ledger(Budget(rho=1.0), adjacency="add_remove"))


class TestHalves:
    def halves(self, subject, **options):
        budget = Budget(epsilon=1.0)
        with Curator(subject, budget, what="halves", columns=(), **options).split(2) as parts:
            assert [part.facts.n for part in parts] == [subject.n] * 2
            return [adjacency_matrix(part._data) for part in parts]

    def test_they_are_disjoint_and_together_the_graph(self):
        subject = private(nx.gnp_random_graph(60, 0.5, seed=0))
        with pytest.warns(UserWarning, match="NOT private"):
            first, second = self.halves(subject, random_state=0)
        assert ((first + second) != adjacency_matrix(subject)).nnz == 0
        assert ((first != first.T).nnz, (second != second.T).nnz) == (0, 0)
        # 885 coins of the stated seed
        assert abs(first.nnz - second.nnz) < 0.2 * (first.nnz + second.nnz)

    def test_without_edges(self):
        assert [half.shape for half in self.halves(private(nx.empty_graph(3)))] == [(3, 3)] * 2
