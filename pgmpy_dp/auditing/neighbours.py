"""Made-up datasets that differ in one record, one user or one edge, for attacks on mechanisms.

None of them holds a real record. They are as far apart as the adjacency allows in every statistic that this package
counts.
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
) -> Neighbours:
    """Two tables of a discrete schema.

    All records hold each variable's first state. In the second table one of them is missing, or holds each variable's
    last state, which moves every contingency table by as much as one record can.

    Parameters
    ----------
    schema : Schema or dict of variable to list of states
    adjacency : {"add_remove", "replace_one"}
    n : int
        Records of the first table, at least 1.

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
    _check(adjacency, n)
    last = [] if adjacency == Adjacency.ADD_REMOVE else [-1]

    def frame(places: list[int]) -> pd.DataFrame:
        columns = {name: pd.Series([states[k] for k in places], dtype=object) for name, states in schema.states.items()}
        return pd.DataFrame(columns)

    return Neighbours(frame([0] * n), frame([0] * (n - 1) + last), adjacency, f"worst tables of {n} records")


def sequence_neighbours(
    schema: Schema | dict,
    adjacency: str = "add_remove",
    n: int = 3,
    length: int = 50,
) -> Neighbours:
    """Users with a sequence each, in the wide form of `PrivateSequences` (columns "user" and "sequence").

    Every user stays in the first state for `length` visits, and the one that differs is missing, or stays in the last.

    Parameters
    ----------
    schema : Schema or dict of one variable to its states
    adjacency : {"add_remove", "replace_one"}
    n, length : int
        Users of the first table, and visits of each; at least 1.

    Returns
    -------
    Neighbours

    Examples
    --------
    >>> sequence_neighbours({"page": ["a", "b"]}, n=2, length=3).second["sequence"].tolist()
    [['a', 'a', 'a']]
    """
    schema = Schema.coerce(schema, argument="schema")
    _check(adjacency, n)
    states: tuple = schema.states[schema.variables[0]]
    last = [] if adjacency == Adjacency.ADD_REMOVE else [states[-1:] * length]

    def frame(sequences: list[tuple]) -> pd.DataFrame:
        users = pd.Series(range(len(sequences)), dtype=object)
        return pd.DataFrame({"user": users, "sequence": pd.Series(map(list, sequences), dtype=object)})

    first = states[:1] * length
    return Neighbours(frame([first] * n), frame([first] * (n - 1) + last), adjacency, f"worst sequences of {n} users")


def vector_neighbours(
    d: int,
    norm: float,
    adjacency: str = "add_remove",
    n: int = 5,
) -> Neighbours:
    """Records of d numbers.

    All are zero but the one that differs, which has equal coordinates; under replace_one another one, nearly orthogonal
    to it, stands in its place.

    Parameters
    ----------
    d : int
    norm : float
        Euclidean norm to which the mechanism clips; the record that differs is ten times as long, so that clipping is
        put to the test.
    adjacency : {"add_remove", "replace_one"}
    n : int
        Records of the first array, at least 1.

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
    _check(adjacency, n)
    rows, long = np.zeros((n - 1, d)), np.ones((2, d))
    long[1, 1::2] = -1.0
    long *= 10 * norm / np.linalg.norm(long, axis=1, keepdims=True)
    second = rows if adjacency == Adjacency.ADD_REMOVE else np.concatenate([rows, long[1:]])
    return Neighbours(np.concatenate([rows, long[:1]]), second, adjacency, f"worst records of {d} numbers")


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


def _check(adjacency: str, n: int) -> None:
    Adjacency.parse(adjacency, allowed=(Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE))
    if n < 1:
        raise ValueError(f"n={n!r} leaves no record to differ in; pass at least 1")
