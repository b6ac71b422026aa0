"""Private sequences of states, several visits and several sequences per user; the user is what is protected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.coding import key_coder
from pgmpy_dp.private.data.contributions import (
    GRID,
    chosen_segments,
    contribution_sensitivity,
    count_table,
    share_table,
)
from pgmpy_dp.private.data.data_base import Facts, PrivateData, checked_public_count
from pgmpy_dp.private.data.table_distances import WHOLE, surplus
from pgmpy_dp.private.discovered import require_same_promise
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.reading.arrow_cells import Column, by_counting, in_order, keyed, quietly
from pgmpy_dp.private.reading.owners import Owners, warn_of_guessed_types
from pgmpy_dp.private.reading.source_base import EveryText, Source
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import Schema, decode_label, encode_label, match_key

_OUTSIDE = -1
_MISSING = match_key(None)


@dataclass(frozen=True)
class Visits:
    """Columns of users' visits, long (a visit in a row) where there is an order, else wide (a sequence in a row).

    Parameters
    ----------
    schema : Schema
        Of one discrete variable, the state that is visited.
    unit : hashable
        Column of users.
    state : hashable
        Column of states, or of sequences of them.
    order : hashable, optional
        Column of times.
    separator : str, optional
        Wide form: between the states of a text; default: white space.

    Raises
    ------
    TypeError, ValueError
        For a separator that could be part of a state, and for columns that are not different.
    """

    schema: Schema
    unit: Hashable
    state: Hashable
    order: Hashable | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None:
            if not isinstance(separator, str) or not separator:
                raise TypeError(
                    f"separator={separator!r} is not a text; pass the text between two states, or None for spaces"
                )
            if any(sign.isalnum() or sign in "+-." for sign in separator):
                raise ValueError(
                    f"separator={separator!r} could be part of a state; separate the states by other characters"
                )
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"the columns {self.columns} of unit, order, sequence and states must differ; rename one")

    @property
    def columns(self) -> list[Hashable]:
        """Columns of unit and state, or of unit, order and state."""
        return [self.unit, *([] if self.order is None else [self.order]), self.state]

    @property
    def null(self) -> int | None:
        """The code of the null state None, which says that nothing was observed."""
        states: tuple = self.schema.states[self.schema.variables[0]]
        return states.index(None) if None in states else None


@dataclass(frozen=True, eq=False)
class SequenceFacts(Facts):
    """The public facts of users' sequences.

    Parameters
    ----------
    adjacency : Adjacency
    schema : Schema
        One variable, the states.
    n_users : int, optional
        The number of users, where it is public.
    """

    schema: Schema
    n_users: int | None = None

    @property
    def n_states(self) -> int:
        """The number of states."""
        (count,) = self.schema.cardinalities.values()
        return count


class PrivateSequences(PrivateData):
    """Users with their sequences of visited states, behind a schema, an adjacency and a ledger.

    Like :class:`~pgmpy_dp.private.data.table.PrivateTable` it shows no records, prints only public facts and refuses to
    be copied or pickled. Unlike there, neighbours differ in a whole *user*: everything that carries one value of the
    column `unit`, however many rows and visits that is.

    Parameters
    ----------
    data : dataframe, str or Path
        Anything with columns, as for :class:`~pgmpy_dp.private.data.table.PrivateTable`, in one of two
        forms. *Wide*: each row is one sequence, and a user may have several
        rows.
        *Long*: each row is one visit; a user's visits in the order of the column `order` are one sequence. Rows that
        tie keep their order, in memory and in files. Lazy frames and relations have none that depends on the user's
        rows alone: there they are put in the order of the schema's states, unknown ones first.
    schema : Schema or mapping
        One discrete variable with all states that can be visited. In the long form it names the column of the states. A
        state None is *null*: nothing was observed at that step.
    unit : hashable, default "user"
        Column that says whose row it is, told apart exactly (:func:`~pgmpy_dp.private.reading.owners.identity`): ``7``
        and ``"7"`` are one user, ``"007"`` and ``"7.0"`` two others. Rows without one belong to nobody and are dropped.
    sequence : hashable, default "sequence"
        Wide form: column of lists, or of texts of states separated by `separator`.
    order : hashable, optional
        Long form: column of times. Giving it chooses the long form.
    separator : str, optional
        Default: white space.
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
        One user more or fewer; or one user's data replaced by any other, with a public number of users.
    ledger : Ledger or Budget
        What may be spent on these users. Its entries say which unit they protect, and a ledger takes one kind only.
    n_users : int, optional
        The number of users, if it is public; required under ``replace_one``. It is believed, never compared.

    Raises
    ------
    TypeError, ValueError
        For bad arguments and missing columns. Nothing is raised because of a record: a user without a visit, with one
        visit, with nothing but nulls or unknown states, or with 15,000 visits, is a user like any other.

    Notes
    -----
    A visit to a state outside the schema takes the other-state if there is one; otherwise it stays in its place as
    unknown, and the pairs it is part of are not counted (dropping it would make neighbours of visits that were none).

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0))
    PrivateSequences(2 states, unit='user', adjacency='add_remove', n_users=None, spent 0-DP of 1-DP)
    """

    __slots__ = ("_n_users", "_read", "_schema", "_unit", "_visits")

    def __init__(
        self,
        data: Any,
        schema: Schema | Any,
        *,
        unit: Hashable = "user",
        sequence: Hashable = "sequence",
        order: Hashable | None = None,
        separator: str | None = None,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_users: int | None = None,
    ) -> None:
        self._schema = checked_schema(schema)
        if unit is None:
            raise TypeError("unit=None names no column; pass the column that says whose row it is, e.g. unit='user'")
        self._unit = decode_label(encode_label(unit))
        super().__init__(adjacency, ledger)
        require_same_promise(self._schema, self._ledger if ledger is None else ledger, self._adjacency, self._unit)
        self._n_users = checked_public_count("n_users", n_users, self._adjacency)
        self._visits = Visits(self._schema, unit, _state_column(self._schema, sequence, order), order, separator)
        source = open_source(data)
        source.positions(self._visits.columns)  # all are there
        if order is not None:
            source.require_types(self._schema)
        warn_of_guessed_types(source, unit)
        self._read = _sequences(source, self._visits)

    def facts(self) -> SequenceFacts:
        return SequenceFacts(self._adjacency, self._schema, self._n_users)

    @property
    def schema(self) -> Schema:
        """Public description of the states."""
        return self._schema

    @property
    def n_users(self) -> int | None:
        """The declared public number of users, or None."""
        return self._n_users

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return tuple(self._schema.variables)

    def _public(self) -> dict[str, Any]:
        return {"schema": self._schema.to_dict(), "unit": encode_label(self._unit), "n_users": self._n_users}

    def __repr__(self) -> str:
        return (
            f"PrivateSequences({self._schema.cardinality(self._schema.variables[0])} states, unit={self._unit!r}, "
            f"adjacency={str(self._adjacency)!r}, n_users={self._n_users}, "
            f"spent {self._ledger.spent} of {self._ledger.budget})"
        )


def segment_identities(data: PrivateSequences, owner: np.ndarray) -> list[bytes]:
    """Return the identity of each segment, whoever else is in the data: its user's visits, and its place among them.

    Parameters
    ----------
    data : PrivateSequences
    owner : ndarray of integers, shape (segments,)
        Whose each segment is, as :func:`chain_events` hands it on.
    """
    owners, lengths, codes = data._read
    visits = np.split(codes, np.cumsum(lengths)[:-1]) if len(lengths) else []
    content: dict[int, bytes] = {}
    for user, part in zip(owners.tolist(), visits, strict=True):
        content[user] = content.get(user, b"") + len(part).to_bytes(8, "little") + part.tobytes()
    seen: Counter[int] = Counter()
    identities = []
    for user in owner.tolist():
        identities.append(content[user] + seen[user].to_bytes(8, "little"))
        seen[user] += 1
    return identities


def chain_tables(
    data: PrivateSequences,
    segment_length: int | None = None,
    max_segments: int | None = None,
    rng: np.random.Generator | None = None,
    keys: Callable[[np.ndarray], np.ndarray] | None = None,
    lengths: Sequence[int] = (1, 2),
) -> list[Sensitive]:
    """Beginnings and n-grams of all segments, summed over time, each user's contribution bounded.

    Parameters
    ----------
    data : PrivateSequences
    segment_length : int, optional
        Visits in a segment: sequences are cut from their start into pieces of this length, the last one shorter.
        N-grams across a cut do not count. Default: each sequence is one segment.
    max_segments : int, optional
        Count at most this many segments of each user, chosen at random; needs `segment_length`. Default: users are
        counted by shares (:mod:`pgmpy_dp.private.data.contributions`).
    rng : numpy.random.Generator, optional
        For tests and benchmarks only.
    keys : callable, optional
        From whose each segment is to a random number for each, by which they are chosen. Default:
        :func:`~pgmpy_dp.private.data.contributions.segment_keys`.
    lengths : sequence of int, default (1, 2)
        What is counted: 1 for the states that segments begin with, n for runs of n successive states.

    Returns
    -------
    list of Sensitive
        One for each of `lengths`: initial states, shape (K,); pairs of successive states (from, to), shape (K, K);
        triples, shape (K, K, K); and so on.

    Notes
    -----
    A segment with no state but null and unknown ones counts nowhere. Otherwise its first state counts in the first
    table (null too, unknown not). An n-gram counts if all its states are known and not all are null.

    Privacy
        A user's additions to each table are non-negative integers that sum to at most M: by shares ``M = 2**20`` in
        each of the tables; by the cap m among beginnings and m (L - n + 1) among n-grams, L the segment length: a
        segment of at most L visits has at most L - n + 1 of them. Other users do not change them. The sensitivities
        are those of :func:`~pgmpy_dp.private.data.contributions.contribution_sensitivity`, table by table. In units of
        M, t tables together have l1 sensitivity t and l2 sensitivity sqrt(t) under ``add_remove``; 2 t and sqrt(2 t)
        under ``replace_one``: l1 norms add up, squared l2 norms add up.

        Running time and memory depend on the data, the result's shape does not.

    """
    n_states = data._schema.cardinality(data._schema.variables[0])
    if max_segments is None:
        events = chain_events(data, segment_length, lengths=lengths)
        tables = [share_table(*event, n_states**n) for event, n in zip(events, lengths, strict=True)]
    else:
        assert segment_length is not None
        events = chain_events(data, segment_length, max_segments, rng, keys, lengths)
        tables = [count_table(*event[1:], n_states**n) for event, n in zip(events, lengths, strict=True)]
    most = user_additions(segment_length, max_segments, lengths)
    return [
        Sensitive(table.reshape((n_states,) * n), data._adjacency, *contribution_sensitivity(data._adjacency, m))
        for table, n, m in zip(tables, lengths, most, strict=True)
    ]


def user_additions(
    segment_length: int | None = None, max_segments: int | None = None, lengths: Sequence[int] = (1, 2)
) -> tuple[int, ...]:
    """The most that one user adds to the table of each length, in the integers of :func:`chain_tables`.

    Examples
    --------
    >>> user_additions(5, 2), user_additions(5, 2, [3]), user_additions()
    ((2, 8), (6,), (1048576, 1048576))
    """
    if max_segments is None or segment_length is None:
        return (GRID,) * len(lengths)
    return tuple(max_segments * (1 if n == 1 else segment_length - n + 1) for n in lengths)


def departure_sensitivity(adjacency: Adjacency) -> tuple[float, float, float]:
    """l1, l2 and l-infinity sensitivity of ``order_departure``'s three numbers together; the l2 one rounded up."""
    square, largest = (3, 1) if changed_records(adjacency) == 1 else (5, 2)
    return 3.0 * GRID, math.nextafter(math.sqrt(square * GRID**2), math.inf), float(largest * GRID)


def order_departure(data: PrivateSequences, parts: np.ndarray, segment_length: int | None = None) -> Sensitive:
    """Measure how far the triples are from what a first-order chain makes of their first two states, and count them.

    Parameters
    ----------
    data : PrivateSequences
    parts : ndarray of int64, shape (K, K)
        The chain's transition probabilities, rows by the state that is left, by
        :func:`~pgmpy_dp.private.data.table_distances.whole_parts`: W = `WHOLE` to a row.
    segment_length : int, optional
        As for :func:`chain_tables`.

    Returns
    -------
    Sensitive
        In shares of users, of `GRID`, shape (3,): the distance, the total of the triples, and their effective number.

    Notes
    -----
    T is the table of triples by shares of :func:`chain_tables`, and T_ij the sum of its row (i, j). The distance is the
    sum over rows of ``U(T_ij.) = sum_k max(0, T_ijk - T_ij P_jk)``, P = parts/W. A first-order chain leaves j with the
    same probabilities whatever was before it, so that the distance is then what chance makes. The effective number, the
    sum of 1/K over users of K triples, says how much that is: K triples of one user count 1/K each, and a sum of
    them has at most 1/K of the variance of a count.

    Privacy
        A user adds u >= 0 to T, of sum a <= M = 2**20, and to the effective number a whole number e from 0 to M,
        ``floor(M/K)``, 0 without a triple.

        *Distance alone.* U is half the l1 norm of ``n - (sum n) P_j``, a linear function of a row n, hence a seminorm,
        and so is the sum over rows, D: it moves by at most D of what T moves by. Of rows that are not negative D is at
        most the sum, as ``max(0, n_k - s P_jk) <= n_k`` with s >= 0.

        *Together.* Under ``add_remove`` the three move by at most (a, a, e), hence by 3 M in l1 and sqrt(3) M in l2
        norm. Under ``replace_one``, u and e leaving and v, of sum b, and f entering, T moves by v - u, in rows that may
        be different, and ``D(v - u) <= D(u) + D(v) <= a + b``. The total moves by abs(a - b), the effective number by
        abs(e - f) <= M. So the l1 norm is at most ``2 max(a, b) + M <= 3 M``, and the squared l2 norm
        ``(a + b)**2 + (a - b)**2 + M**2 = 2 a**2 + 2 b**2 + M**2 <= 5 M**2``.

        W D is a whole number, computed exactly. It is rounded as ``floor((2 W D + W)/(2 W))``, which for
        ``W D <= x <= W D + W g``, g whole, does not fall and rises by at most g; a and b are whole.
    """
    n_states = data._schema.cardinality(data._schema.variables[0])
    ((user, cell, informative),) = chain_events(data, segment_length, lengths=(3,))
    rows = share_table(user, cell, informative, n_states**3).reshape(-1, n_states)
    departure = sum(map(surplus, rows, np.tile(parts, (n_states, 1))))
    in_all = np.bincount(user[informative].astype(np.intp))
    effective = int((GRID // in_all[in_all > 0]).sum())
    numbers = [(2 * departure + WHOLE) // (2 * WHOLE), int(rows.sum()), effective]
    return Sensitive(np.array(numbers, dtype=np.int64), data._adjacency, *departure_sensitivity(data._adjacency))


def chain_events(
    data: PrivateSequences,
    segment_length: int | None = None,
    max_segments: int | None = None,
    rng: np.random.Generator | None = None,
    keys: Callable[[np.ndarray], np.ndarray] | None = None,
    lengths: Sequence[int] = (1, 2),
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Beginnings and n-grams one by one; arguments and what counts as for :func:`chain_tables`.

    Returns
    -------
    list of tuples (user, cell, informative)
        As :func:`~pgmpy_dp.private.data.contributions.share_table` takes them; an n-gram's cell has its first state as
        the leading digit to the base K.
    """
    n_states = data._schema.cardinality(data._schema.variables[0])
    null = data._visits.null
    sequence_owner, visits, codes = data._read
    starts = np.cumsum(visits) - visits
    position = np.arange(len(codes)) - np.repeat(starts, visits)
    if segment_length is not None:
        position %= segment_length
    is_first = position == 0
    segment = np.cumsum(is_first) - 1
    owner = np.repeat(sequence_owner, visits)[is_first]
    seen = np.zeros(len(owner), dtype=bool)
    known = codes != _OUTSIDE
    seen[segment[known if null is None else known & (codes != null)]] = True
    if max_segments is not None:
        kept = np.flatnonzero(seen)
        whose = owner[kept]
        seen[kept] = chosen_segments(whose, max_segments, rng, None if keys is None else keys(whose))
    events = []
    for n in lengths:
        start = n - 1  # the last visit of the first run
        is_last = position[start:] >= start if start else is_first
        whose = segment[start:][is_last]
        cell = np.zeros(len(whose), dtype=np.int64)
        informative, nulls = seen[whose], np.full(len(whose), n > 1)
        for back in range(start, -1, -1):
            state = codes[start - back : len(codes) - back][is_last]
            cell *= n_states
            cell += state
            informative &= state != _OUTSIDE
            nulls &= False if null is None else state == null
        events.append((owner[whose], cell, informative & ~nulls))
    return events


def checked_schema(schema: Schema | Any, argument: str = "schema") -> Schema:
    """`schema` as a Schema of one discrete variable; ValueError otherwise."""
    checked = Schema.coerce(schema, argument=argument)
    checked.require_discrete(argument=argument)
    if len(checked) != 1:
        raise ValueError(
            f"{argument} declares the variables {list(checked.variables)}; sequences are of one variable: pass one, "
            "e.g. {'page': ['front', 'news', ...]}, with all states that can be visited"
        )
    return checked


def read_sequences(
    data: Any,
    schema: Schema,
    *,
    unit: Hashable,
    sequence: Hashable = "sequence",
    order: Hashable | None = None,
    separator: str | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sequences as numbers; arguments as :class:`PrivateSequences`.

    Returns
    -------
    owner : ndarray of int64, shape (sequences,)
        Whose each sequence is, 0, 1, ...
    lengths : ndarray of int64, shape (sequences,)
        Visits in it, 0 allowed.
    codes : ndarray of int32, shape (visits,)
        Positions in the states, -1 for unknown; sequence after sequence.

    Notes
    -----
    Privacy: one user's sequences depend on the rows of that user alone. Cells are read value by value, users are told
    apart by the key of their identifier, and visits are put in order within a user by keys whose order is fixed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 2, 1], "time": [9, 1, 8], "page": ["b", "a", "?"]})
    >>> [part.tolist() for part in read_sequences(frame, Schema({"page": ["a", "b"]}), unit="user", order="time")]
    [[0, 1], [2, 1], [-1, 1, 0]]
    """
    visits = Visits(schema, unit, _state_column(schema, sequence, order), order, separator)
    return _sequences(open_source(data), visits)


def _state_column(schema: Schema, sequence: Hashable, order: Hashable | None) -> Hashable:
    return sequence if order is None else schema.variables[0]


def _sequences(source: Source, visits: Visits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sequences from a source with :attr:`Visits.columns`."""
    owners, times = Owners(), []
    cells: list[Column] = []
    states: list[np.ndarray] = []
    variable = Variable(visits.schema, visits.schema.variables[0])
    texts = EveryText() if visits.schema.reading(visits.schema.variables[0]).codes else frozenset[str]()
    spelled = [None, *[frozenset[str]()] * (len(visits.columns) - 2), texts]
    with source.one_pass(visits.columns, spelled) as batches:
        for first, *middle, last in batches:
            owners.add(first)
            times += middle
            if visits.order is None:
                cells.append(last)
            else:
                states.append(variable.codes(variable.marks(last)))
    if visits.order is None:
        owner = owners.numbered()
        named = owner >= 0
        place = key_coder(visits.schema, visits.schema.variables[0])
        visit_key = visits.schema.reading(visits.schema.variables[0]).key
        state, state_keys = quietly(keyed, cells, visit_key)
        parsed = [
            np.array([place(visit) for visit in _visits(key, visits.separator, visit_key)], dtype=np.int32)
            for key in state_keys
        ]
        chosen = [parsed[k] for k in state[named]]
        lengths = np.array([len(part) for part in chosen], dtype=np.int64)
        return owner[named], lengths, np.concatenate([np.empty(0, np.int32), *chosen])
    codes = np.concatenate([np.empty(0, np.int32), *states], dtype=np.int32)
    codes[codes == variable.states] = _OUTSIDE
    places = np.arange(len(codes))
    if not source.ordered:  # by state, unknown ones first
        places = by_counting(codes + 1, places)
    places = quietly(in_order, times, places)
    del times  # before the owners: what is held at once is least so
    owner = owners.numbered()
    if len(owner) and owner.min() < 0:
        places = places[owner[places] >= 0]
    lengths = np.bincount(owner[places])  # nobody has none
    return np.arange(len(lengths)), lengths, codes[by_counting(owner, places)]


def _visits(key: tuple, separator: str | None, visit_key: Callable[[str], tuple]) -> list[tuple]:
    """Keys of the visits in one cell of the wide form, from the cell's own key."""
    if key == _MISSING:
        return []
    if key[0] == "tuple":
        return list(key[1:])
    if key[0] == "text":
        return [visit_key(part) for part in key[1].split(separator) if part]
    return [key]
