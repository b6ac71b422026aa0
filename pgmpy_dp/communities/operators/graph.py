"""A private graph: public vertices, private edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import Facts, PrivateData
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.reading.frames import read_edge_list, read_keys
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import decode_label, encode_label, match_key
from pgmpy_dp.shown import quantity

MAX_VERTICES = 2**31 - 1  # so that a vertex, and a degree, is an integer of 32 bits


@dataclass(frozen=True, eq=False)
class GraphFacts(Facts):
    """The public facts of a graph.

    Parameters
    ----------
    adjacency : Adjacency
    n : int
        Vertices.
    """

    n: int


class PrivateGraph(PrivateData):
    """An undirected graph with public vertices and private edges, and one ledger for all that is learned from it.

    Neighbours are two graphs on the same vertices that differ in one edge. It offers no edges, no degrees and no
    preview, prints only public facts, and refuses to be copied or pickled.

    Parameters
    ----------
    graph : networkx.Graph, sparse or dense matrix, dataframe, or path
        * Any undirected graph of networkx, a pgmpy ``UndirectedGraph`` included.
        * A square matrix of numbers, of scipy or numpy: an entry that is not 0 makes an edge, wherever of the two
          places of a pair it stands.
        * A dataframe whose first two columns are the ends of edges; anything with columns. Further columns (weights)
          are not read.
        * The path of a text file with the two ends of an edge first in each line: separated by a comma in ``.csv``, a
          tab in ``.tsv``, and blanks in any other file.

        Edges have no weight: whatever a graph says of them is ignored. Self-loops are dropped, repeated edges count
        once, all in silence.
    nodes : sequence of hashable, optional
        The vertices, which are public, in the order of everything released. Required for a dataframe or file, whose
        edges must not decide who exists; an edge with another end is dropped, in silence. Values of a dataframe or file
        are compared with them like states (:func:`pgmpy_dp.schema.cells.match_key`). Default: the nodes of a graph of
        networkx; 0, 1, ... for a matrix, where it has to have as many entries as the matrix has rows.
    ledger : Ledger or Budget
        What may be spent on these edges, by everything together. A Budget starts a new ledger.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before anything is spent: a directed type of graph, a matrix that is not square or holds no
        numbers, vertices that are missing, repeated, or no labels (text, integers, booleans, finite floats, tuples of
        these). Nothing is raised because of an edge.

    Notes
    -----
    Privacy: reading maps every entry of the input, by itself, to one pair of vertices or to none, and the graph is the
    set of these pairs. A pair has one bit, whichever and however many entries say so.

    Examples
    --------
    >>> PrivateGraph(nx.karate_club_graph(), ledger=Budget(epsilon=1.0))
    PrivateGraph(34 vertices, adjacency='edge', spent 0-DP of 1-DP)
    """

    __slots__ = ("_matrix", "_nodes")

    def __init__(
        self, graph: Any, nodes: Iterable[Hashable] | None = None, *, ledger: Ledger | Budget | None = None
    ) -> None:
        super().__init__(Adjacency.EDGE, ledger, allowed=(Adjacency.EDGE,))
        declared = None if nodes is None else _checked_nodes(nodes)
        self._nodes, ends = _read(graph, declared)
        self._matrix = _symmetric(ends, len(self._nodes))

    def _of_edges(self, ends: np.ndarray) -> PrivateGraph:
        """The graph of some of these edges on all vertices, with the same ledger. For the boundary alone.

        Parameters
        ----------
        ends : ndarray of int, shape (n_edges, 2)

        Returns
        -------
        PrivateGraph
        """
        part = self._like_this()
        part._matrix = _symmetric((ends[:, 0], ends[:, 1]), self.n)
        return part

    def _split(self) -> tuple[Callable[[], np.ndarray], int, Callable[[np.ndarray], PrivateGraph]]:
        """Think of a draw for each pair of vertices, made whether or not it is an edge: parts differ in one edge."""
        upper = sp.triu(self._matrix, 1, format="coo")
        ends = np.column_stack([upper.row, upper.col])
        return lambda: ends, len(ends), lambda chosen: self._of_edges(ends[chosen])

    @property
    def nodes(self) -> Sequence[Hashable]:
        """The vertices, in order: a tuple, or a range where they are 0, 1, ..."""
        return self._nodes

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self._nodes)

    def facts(self) -> GraphFacts:
        return GraphFacts(self._adjacency, self.n)

    def _public(self) -> dict[str, Any]:
        named = not isinstance(self.nodes, range)
        return {"n": self.n, "nodes": [encode_label(node) for node in self.nodes] if named else None}

    def __repr__(self) -> str:
        return (
            f"PrivateGraph({quantity(self.n, 'vertex', 'vertices')}, adjacency={str(self._adjacency)!r}, "
            f"spent {self._ledger.spent} of {self._ledger.budget})"
        )


def adjacency_matrix(subject: PrivateGraph) -> sp.csr_array:
    """Exact 0/1 adjacency matrix, shape (n, n), int32, symmetric with zero diagonal; read only, for learners."""
    return subject._matrix


def edge_count(matrix: sp.csr_array) -> Sensitive:
    """Number of edges of an adjacency matrix, shape (1,); one edge changes it by 1."""
    return Sensitive(np.array([matrix.nnz // 2], dtype=np.int64), Adjacency.EDGE, 1.0, 1.0, 1.0)


def neighbour_sums(matrix: sp.csr_array, marks: np.ndarray) -> Sensitive:
    """Sum the marks of each vertex's neighbours, ``A U``.

    Parameters
    ----------
    matrix : csr_array, shape (n, n)
        Adjacency matrix.
    marks : ndarray of int, shape (n, columns)
        U, public. Each row is one sign with zeros, so that its norms are at most 1: signs of two communities in one
        column, or indicators of any number of communities in as many.

    Returns
    -------
    Sensitive
        Value of shape (n, columns).

    Raises
    ------
    ValueError
        For marks of another kind, which are public.

    Notes
    -----
    Privacy: an edge {i, j} more adds row j of U to row i of the sums, and row i of U to row j. Each of these has one
    entry of size 1 at most, so the sums move by at most 2 in l1 norm, sqrt(2) in l2 norm and 1 in any entry, for any
    number of communities.
    """
    u = checked_marks(marks, matrix.shape[0]).astype(np.int32)
    return Sensitive((matrix @ u).astype(np.int64), Adjacency.EDGE, 2.0, root_up(Fraction(2)), 1.0)


def checked_marks(marks: np.ndarray, n: int) -> np.ndarray:
    """Marks as :func:`neighbour_sums` takes them, in bytes; ValueError for others."""
    u = fresh_copy(marks, None)
    # Compared, not added up: absolute values and sums of narrow integers overflow.
    whole = u.ndim == 2 and len(u) == n and u.dtype.kind in "iu" and bool(np.isin(u, (-1, 0, 1)).all())
    if not whole or (np.count_nonzero(u, axis=1) > 1).any():
        raise ValueError(f"marks of shape {u.shape} must be integers with at most one 1 or -1 in each of the {n} rows")
    return u.astype(np.int8)


def _read(graph: Any, declared: Sequence[Hashable] | None) -> tuple[Sequence[Hashable], tuple[np.ndarray, np.ndarray]]:
    """The vertices, and positions of the two ends of each entry: -1 for an end that is no vertex."""
    if isinstance(graph, nx.Graph):
        if graph.is_directed():
            raise TypeError(
                f"graph is a {type(graph).__name__}, which is directed; communities are found in undirected graphs: "
                "pass graph.to_undirected() if the directions do not matter"
            )
        nodes = _checked_nodes(graph.nodes) if declared is None else declared
        position = {node: place for place, node in enumerate(nodes)}
        flat = np.fromiter((position.get(end, -1) for edge in graph.edges() for end in edge), dtype=np.int64)
        return nodes, (flat[::2], flat[1::2])
    if sp.issparse(graph) or isinstance(graph, np.ndarray):
        return _read_matrix(graph, declared)
    if declared is None:
        raise ValueError(
            "nodes=None, and graph is neither a matrix nor a networkx graph; pass nodes, the public list of all "
            "vertices. A list taken from the edges would tell who has one"
        )
    if isinstance(graph, str | Path):
        columns = read_edge_list(graph)
    else:
        source = open_source(graph)
        names = source.all_names()
        if len(names) < 2:
            raise ValueError(f"graph has the columns {names}; pass a table whose first two are the ends of edges")
        columns = read_keys(source, names[:2])
    places: dict[tuple, int] = {}
    for place, node in enumerate(declared):
        if places.setdefault(match_key(node), place) != place:
            raise ValueError(
                f"nodes has {declared[places[match_key(node)]]!r} and {node!r}, which a table or file cannot tell "
                "apart; keep one of them"
            )
    first, second = (
        np.array([places.get(key, -1) for key in keys], dtype=np.int64)[positions] for positions, keys in columns
    )
    return declared, (first, second)


def _read_matrix(
    matrix: Any, declared: Sequence[Hashable] | None
) -> tuple[Sequence[Hashable], tuple[np.ndarray, np.ndarray]]:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"graph is a matrix of shape {matrix.shape}; pass a square one, with a row for each vertex")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"graph is a matrix of type {matrix.dtype}; pass one of numbers or of truth values")
    n = matrix.shape[0]
    if declared is not None and len(declared) != n:
        raise ValueError(f"nodes has {len(declared)} vertices and the matrix {n} rows; pass one vertex for each row")
    nodes = _checked_nodes(range(n)) if declared is None else declared
    if sp.issparse(matrix):
        entries = matrix.tocoo()
        present = entries.data != 0
        return nodes, (entries.row[present], entries.col[present])
    rows, cols = np.nonzero(np.asarray(matrix))
    return nodes, (rows, cols)


def _checked_nodes(nodes: Iterable[Hashable]) -> Sequence[Hashable]:
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise TypeError(f"nodes={nodes!r} is a {type(nodes).__name__}; pass a list of vertices, e.g. range(100)")
    checked: Sequence[Hashable]
    if isinstance(nodes, range) and nodes == range(len(nodes)):
        checked = nodes
    else:
        checked = tuple(decode_label(encode_label(node)) for node in nodes)
    if not 0 < len(checked) <= MAX_VERTICES:
        raise ValueError(f"nodes has {len(checked)} vertices; pass a graph with 1 to {MAX_VERTICES} of them")
    if not isinstance(checked, range) and len(set(checked)) < len(checked):
        raise ValueError("nodes names a vertex twice (1, 1.0 and True are the same); name each once")
    return checked


def _symmetric(ends: tuple[np.ndarray, np.ndarray], n: int) -> sp.csr_array:
    """Adjacency matrix of the pairs, each once, without loops and without ends that are no vertices."""
    first, second = (np.asarray(part) for part in ends)
    kept = (first >= 0) & (second >= 0) & (first != second)
    places = first[kept].astype(np.int32), second[kept].astype(np.int32)
    one_way = sp.coo_array((np.ones(places[0].size, dtype=np.int32), places), shape=(n, n)).tocsr()
    one_way.data[:] = 1  # repeated entries were added up
    matrix = one_way + one_way.T.tocsr()
    matrix.data[:] = 1
    matrix.sort_indices()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix
