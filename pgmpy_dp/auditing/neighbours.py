"""Made-up datasets that differ in one record, one user or one edge, for attacks on mechanisms.

None of them holds a real record. The *worst* ones are as far apart as the adjacency allows in every statistic that this
package counts; *random* ones try what nobody thought of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.schema import Schema

KINDS = ("worst", "random")


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two datasets that are neighbours.

    Make your own to attack what you suspect. Tables, arrays of records and graphs are checked: a bound says nothing
    about a guarantee for neighbours if the datasets are none. Of anything else nothing is checked.

    Parameters
    ----------
    first, second : Any
        What the mechanism takes.
    adjacency : {"add_remove", "replace_one", "edge"}
    note : str
        What they are, for the report.
    unit : hashable, optional
        Column of a table each of whose values is protected with all its rows. Default: each row is.

    Raises
    ------
    ValueError
        For an unknown adjacency; for tables, two-dimensional arrays or graphs that differ in more than it allows.

    Examples
    --------
    >>> import pandas as pd
    >>> Neighbours(pd.DataFrame({"a": [0, 0, 1]}), pd.DataFrame({"a": [0]}), "add_remove")
    Traceback (most recent call last):
        ...
    ValueError: first has 2 records that second lacks, second has 0 that first lacks, which are not neighbours under
    adjacency='add_remove'; ...
    >>> pair = Neighbours([1, 2, 3], [1, 2], "add_remove", "lists of ages")
    >>> pair[1]
    [1, 2]
    """

    first: Any
    second: Any
    adjacency: str
    note: str = ""
    unit: Hashable = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        if self.adjacency == Adjacency.EDGE:
            _require_one_edge(self.first, self.second)
        else:
            _require_one_record(self.first, self.second, self.adjacency, self.unit)

    def __getitem__(self, which: int) -> Any:
        return (self.first, self.second)[which]


def table_neighbours(
    schema: Schema | dict,
    adjacency: str = "add_remove",
    n: int = 20,
    kind: str = "worst",
    random_state: int | np.random.Generator | None = None,
) -> Neighbours:
    """Two tables of a discrete schema.

    Parameters
    ----------
    schema : Schema or dict of variable to list of states
    adjacency : {"add_remove", "replace_one"}
    n : int
        Records of the first table, at least 1.
    kind : {"worst", "random"}
        "worst": all records hold each variable's first state; in the second table one of them is missing, or holds
        each variable's last state, which moves every contingency table by as much as one record can.
        "random": independent uniform records, and one at random is missing, or another.
    random_state : int or numpy.random.Generator, optional
        For "random".

    Returns
    -------
    Neighbours
        Of pandas data frames.

    Examples
    --------
    >>> pair = table_neighbours({"a": ["no", "yes"]}, "replace_one", n=2)
    >>> pair.first["a"].tolist(), pair.second["a"].tolist()
    (['no', 'no'], ['no', 'yes'])
    """
    schema = Schema.coerce(schema, argument="schema")
    schema.require_discrete(argument="schema")
    _check(adjacency, n, kind)
    names = schema.variables
    rng = np.random.default_rng(random_state)
    sizes = [schema.cardinality(name) for name in names]
    drawn = np.stack([rng.integers(0, size, n + 1) for size in sizes], axis=1)
    if kind == "worst":
        drawn[:] = 0
        drawn[n] = np.array(sizes) - 1

    def frame(codes: np.ndarray) -> pd.DataFrame:
        columns = {
            name: pd.Series([schema.states[name][k] for k in codes[:, j]], dtype=object) for j, name in enumerate(names)
        }
        return pd.DataFrame(columns)

    first, last = drawn[:n], drawn[n:]
    second = first[:-1] if adjacency == Adjacency.ADD_REMOVE else np.concatenate([first[:-1], last])
    return Neighbours(frame(first), frame(second), adjacency, f"{kind} tables of {n} records")


def sequence_neighbours(
    schema: Schema | dict,
    adjacency: str = "add_remove",
    n: int = 3,
    length: int = 50,
    kind: str = "worst",
    random_state: int | np.random.Generator | None = None,
) -> Neighbours:
    """Users with a sequence each, in the wide form of `PrivateSequences` (columns "user" and "sequence").

    Parameters
    ----------
    schema : Schema or dict of one variable to its states
    adjacency : {"add_remove", "replace_one"}
    n, length : int
        Users of the first table, and visits of the user that differs; at least 1.
    kind : {"worst", "random"}
        "worst": every user stays in the first state for `length` visits, and the one that differs is missing, or stays
        in the last one. "random": uniform visits.
    random_state : int or numpy.random.Generator, optional

    Returns
    -------
    Neighbours

    Examples
    --------
    >>> sequence_neighbours({"page": ["a", "b"]}, n=2, length=3).second["sequence"].tolist()
    [['a', 'a', 'a']]
    """
    schema = Schema.coerce(schema, argument="schema")
    _check(adjacency, n, kind)
    states: tuple = schema.states[schema.variables[0]]
    rng = np.random.default_rng(random_state)
    visits = rng.integers(0, len(states), (n + 1, length)) if kind == "random" else np.zeros((n + 1, length), int)
    if kind == "worst":
        visits[n] = len(states) - 1
    sequences = [[states[k] for k in row] for row in visits]
    kept = sequences[: n - 1] + ([] if adjacency == Adjacency.ADD_REMOVE else sequences[n:])
    first, second = (
        pd.DataFrame({"user": pd.Series(range(len(part)), dtype=object), "sequence": pd.Series(part, dtype=object)})
        for part in (sequences[:n], kept)
    )
    return Neighbours(first, second, adjacency, f"{kind} sequences of {n} users")


def vector_neighbours(
    d: int,
    norm: float,
    adjacency: str = "add_remove",
    n: int = 5,
    kind: str = "worst",
    random_state: int | np.random.Generator | None = None,
) -> Neighbours:
    """Records of d numbers.

    Parameters
    ----------
    d : int
    norm : float
        Euclidean norm to which the mechanism clips; the record that differs is ten times as long, so that clipping is
        put to the test.
    adjacency : {"add_remove", "replace_one"}
    n : int
        Records of the first array, at least 1.
    kind : {"worst", "random"}
        "worst": all records are zero but the one that differs, which has equal coordinates; under replace_one it is
        replaced by one orthogonal to it. "random": normal records, and one long one in a random direction.
    random_state : int or numpy.random.Generator, optional

    Returns
    -------
    Neighbours
        Of arrays of shape (n, d) and (n - 1, d), or (n, d).

    Examples
    --------
    >>> pair = vector_neighbours(4, 1.0, n=2)
    >>> pair.first.tolist(), pair.second.tolist()
    ([[0.0, 0.0, 0.0, 0.0], [5.0, 5.0, 5.0, 5.0]], [[0.0, 0.0, 0.0, 0.0]])
    """
    _check(adjacency, n, kind)
    rng = np.random.default_rng(random_state)
    if kind == "worst":
        rows, long = np.zeros((n, d)), np.ones((2, d))
        long[1, 1::2] = -1.0
    else:
        rows, long = rng.normal(scale=norm, size=(n, d)), rng.normal(size=(2, d))
    long *= 10 * norm / np.linalg.norm(long, axis=1, keepdims=True)
    first = np.concatenate([rows[:-1], long[:1]])
    second = rows[:-1] if adjacency == Adjacency.ADD_REMOVE else np.concatenate([rows[:-1], long[1:]])
    return Neighbours(first, second, adjacency, f"{kind} records of {d} numbers")


def graph_neighbours(
    n: int, kind: str = "worst", edge_probability: float = 0.5, random_state: int | None = None
) -> Neighbours:
    """Two graphs on the vertices 0 .. n - 1 that differ in one edge.

    Parameters
    ----------
    n : int
        At least 2.
    kind : {"worst", "random"}
        "worst": two cliques of equal size, and the same with an edge between them, where the projection on correlation
        matrices moves furthest. "random": independent edges, one of which is flipped.
    edge_probability : float
        For "random".
    random_state : int, optional

    Returns
    -------
    Neighbours

    Examples
    --------
    >>> pair = graph_neighbours(4)
    >>> set(pair.second.edges) - set(pair.first.edges)
    {(1, 2)}
    """
    _check(Adjacency.ADD_REMOVE, n - 1, kind)
    if kind == "worst":
        first = nx.Graph()
        first.add_nodes_from(range(n))
        half = n // 2
        for part in (range(half), range(half, n)):
            first.add_edges_from((i, j) for i in part for j in part if i < j)
        changed = (half - 1, half)
    else:
        first = nx.gnp_random_graph(n, edge_probability, seed=random_state)
        changed = tuple(np.random.default_rng(random_state).choice(n, 2, replace=False).tolist())
    second = first.copy()
    if second.has_edge(*changed):
        second.remove_edge(*changed)
    else:
        second.add_edge(*changed)
    return Neighbours(first, second, Adjacency.EDGE, f"{kind} graphs of {n} vertices")


def _require_one_record(first: Any, second: Any, adjacency: str, unit: Hashable) -> None:
    """Both datasets are made up, so that messages may tell about them."""
    units = [_units(data, unit) for data in (first, second)]
    if units[0] is None or units[1] is None:
        return
    lost, gained = (units[0] - units[1]).total(), (units[1] - units[0]).total()
    allowed = lost + gained <= 1 if adjacency == Adjacency.ADD_REMOVE else lost == gained <= 1
    if not allowed:
        whose = "record" if unit is None else f"{unit!r} with all its rows"
        raise ValueError(
            f"first has {lost} records that second lacks, second has {gained} that first lacks, which are not "
            f"neighbours under adjacency={str(adjacency)!r}; change one {whose}"
        )


def _units(data: Any, unit: Hashable) -> Counter | None:
    """The records, or the people with all their records, as a multiset; None for what is neither table nor array."""
    if isinstance(data, pd.DataFrame):
        if unit is None:
            return Counter(map(repr, data.to_numpy(dtype=object).tolist()))
        return Counter(repr(sorted(map(repr, rows.to_numpy(dtype=object).tolist()))) for _, rows in data.groupby(unit))
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return Counter(map(repr, data.tolist()))
    return None


def _require_one_edge(first: Any, second: Any) -> None:
    if not (isinstance(first, nx.Graph) and isinstance(second, nx.Graph)):
        return
    if set(first) != set(second):
        raise ValueError("the graphs have different vertices, which are public; change one edge")
    edges = [{frozenset(edge) for edge in graph.edges} for graph in (first, second)]
    if len(edges[0] ^ edges[1]) > 1:
        raise ValueError(f"the graphs differ in {len(edges[0] ^ edges[1])} edges; change one")


def _check(adjacency: str, n: int, kind: str) -> None:
    Adjacency.parse(adjacency, allowed=(Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE))
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown; use one of {KINDS}")
    if n < 1:
        raise ValueError(f"n={n!r} leaves no record to differ in; pass at least 1 (for graphs 2)")
