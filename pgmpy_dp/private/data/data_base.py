"""The base of all private data: an adjacency, a ledger, and silence about their records."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, NoReturn, ParamSpec, Self, TypeVar

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.adjacency import Adjacency, Tables
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.trusted_types import require_trusted

Asked = ParamSpec("Asked")
Made = TypeVar("Made")

_MOST = 10**15  # records: exact sums of so many fit 64 bits


@dataclass(frozen=True, eq=False)
class Facts:
    """The public facts of some data at one time: shapes and noise are made from them and from nothing else of the data.

    Previews make facts of data that are not there.

    Parameters
    ----------
    adjacency : Adjacency
    """

    adjacency: Adjacency

    @property
    def arguments(self) -> dict[str, Any]:
        """The facts that every question about the data depends on besides its own arguments."""
        return {}

    @property
    def public(self) -> dict[str, Any]:
        """The facts that a release tells where answers have their own names for parts of the data."""
        return {}


def _forget(error: BaseException | None) -> None:
    """Empty the frames of an error, which hold records and exact statistics.

    Tools that show the variables of a traceback, such as notebooks in verbose mode and trackers of errors, then find
    none.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def reading(outcome: str) -> Callable[[Callable[Asked, Made]], Callable[Asked, Made]]:
    """Errors of what is called on records say nothing of them: their frames are emptied, full memory names no size.

    Parameters
    ----------
    outcome : str
        What was done with records, and what is spent, for the message where memory ran out.

    Examples
    --------
    >>> @reading("read: nothing was spent")
    ... def read(records):
    ...     raise MemoryError(f"for {len(records)} records")
    >>> read([1, 2])
    Traceback (most recent call last):
    MemoryError: memory ran out while records were read: nothing was spent
    """

    def guard(read: Callable[Asked, Made]) -> Callable[Asked, Made]:
        def guarded(*arguments: Asked.args, **options: Asked.kwargs) -> Made:
            try:
                return read(*arguments, **options)
            except MemoryError:
                pass  # how much did not fit may be how many records there are
            except BaseException as error:
                _forget(error)
                raise
            raise MemoryError(f"memory ran out while records were {outcome}")

        return wraps(read)(guarded)

    return guard


class PrivateData:
    """Records behind an adjacency and a ledger; abstract.

    It offers no rows, no length and no preview, prints only public facts, and refuses to be copied or pickled.

    Parameters
    ----------
    adjacency : str
    ledger : Ledger or Budget
        What may be spent on these records, by everything together. A Budget starts a new ledger.
    allowed : iterable of str
        The adjacencies that this kind of data can have.

    Raises
    ------
    TypeError, ValueError
        For a ledger that is none, or that is of another adjacency.
    """

    __slots__ = ("_adjacency", "_agreed", "_hands", "_ledger", "_memory", "_plans")

    _rows_of_unit = 1
    """Records that a unit has at most, of data whose operators know how far one record moves them."""

    def __init_subclass__(cls) -> None:
        """Every kind reads records in its constructor, before any charge: its errors say nothing of them."""
        if "__init__" in vars(cls):
            cls.__init__ = reading("read: nothing was spent")(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        adjacency: str,
        ledger: Ledger | Budget | None,
        allowed: Iterable[str] = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE),
    ) -> None:
        self._adjacency = Adjacency.parse(adjacency, allowed=allowed)
        self._ledger = _checked_ledger(ledger, self._adjacency)
        self._hands: list[None] = []  # one entry for each piece of outside code that sees records; parts share it
        self._memory: dict[Any, Any] = {}  # exact statistics that are asked about again
        self._agreed: Tables = ()  # public tables of these records, which the next charge enters into the ledger
        self._plans: tuple[list[Guarantee], ...] = ()  # what each plan that has these data was charged; parts share it

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency: which data count as neighbours of these."""
        return self._adjacency

    @property
    def ledger(self) -> Ledger:
        """The ledger, which has what was spent on these records and what is left."""
        return self._ledger

    def set_aside(self, cost: Guarantee, *, what: str, mechanism: str, reproducible: bool = False) -> Self:
        """Return the data with a ledger of this cost alone, for which their ledger is charged the whole, now and once.

        Parameters
        ----------
        cost : PureDP or ZCDP
            The most that all questions to them may cost together; where units have several records, for a unit.
        what, mechanism : str
            For the reader of the ledger.
        reproducible : bool
            Whether noise comes from a seed.

        Returns
        -------
        PrivateData
            See :meth:`~pgmpy_dp.Ledger.set_aside`, which refuses what cannot be paid.
        """
        require_trusted("these data", self, "set a part of a ledger aside for the kinds of private data that there are")
        other = self._like_this()
        other._ledger = self._ledger.set_aside(
            cost,
            what=what,
            columns=self._names,
            mechanism=mechanism,
            adjacency=self._adjacency,
            reproducible=reproducible,
            unit=self.unit,
            public_tables=self._agreed,
        )
        return other

    def agreeing_on(self, public_tables: Iterable[Iterable[Hashable]]) -> Self:
        """Return the same data, whose charges say that tables of these records are public (`Ledger.charge`).

        Parameters
        ----------
        public_tables : iterable of iterable of hashable
            The columns of each. What they count is not compared with the records.

        Returns
        -------
        PrivateData
        """
        other = self._like_this()
        other._agreed = (*self._agreed, *map(tuple, public_tables))
        return other

    def for_a_plan(self, charged: list[Guarantee]) -> Self:
        """Return the same data for one plan, and for what it makes of them: a list gets what they are charged.

        Parameters
        ----------
        charged : list of Guarantee
            Receives the charge of each curator of these data, also of one of a part that is set aside. What others
            charge to the ledger meanwhile, in other threads or processes, is not the plan's.

        Returns
        -------
        PrivateData
        """
        other = self._like_this()
        other._plans = (*self._plans, charged)
        return other

    @property
    def unit(self) -> Hashable | None:
        """The column whose values are protected as a whole; None for single records."""
        return getattr(self, "_unit", None)

    @property
    def _names(self) -> tuple[Hashable, ...]:
        """Columns that answers may depend on; none where nothing has a name."""
        return ()

    def _public(self) -> dict[str, Any]:
        """Return what a release tells of the data."""
        return {}

    def facts(self) -> Facts:
        """Return the public facts of these data.

        Returns
        -------
        Facts
        """
        return Facts(self._adjacency)

    def _like_this(self) -> Self:
        """The same data with a memory of its own. No two curators share one: each writes to it in its own turn."""
        other = object.__new__(type(self))
        for base in type(self).__mro__:
            for name in vars(base).get("__slots__", ()):
                setattr(other, name, getattr(self, name))
        other._memory = {}
        return other

    def _merged(self, schema: Any, places: Any) -> Self:
        raise TypeError(f"a {type(self).__name__} has no states that could merge")

    def _split(self) -> tuple[Callable[[], np.ndarray], int, Callable[[np.ndarray], Self]]:
        """The units that draw coins: what each is, as rows of integers, how many there are, and the data of some."""
        raise TypeError(f"a {type(self).__name__} is not divided into random parts")

    @property
    def _in_other_hands(self) -> bool:
        """Whether code outside the boundary, a solver or a block function, sees records of these data now."""
        return bool(self._hands)

    @contextmanager
    def _handed_out(self) -> Iterator[None]:
        """Outside code sees records in this block: no curator of these data answers meanwhile, or is opened.

        Returns
        -------
        context manager
        """
        self._hands.append(None)
        try:
            yield
        finally:
            self._hands.pop()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be copied or pickled: it holds private records; keep the Release, or make the {name} "
            "again from the data with a loaded Ledger"
        )


def require_data_and_budget(
    data: object,
    data_type: type[PrivateData],
    budget: object,
    *,
    name: str = "data",
    example: str = "a Budget, e.g. Budget(epsilon=1.0)",
) -> None:
    """Raise TypeError for data of another kind, or for what is not a budget.

    Parameters
    ----------
    data : object
    data_type : type
        Of data that the caller takes.
    budget : object
    name : str
        What the caller calls the data.
    example : str
        What the message tells to pass as the budget.
    """
    if not isinstance(data, data_type):
        wanted = data_type.__name__ if data_type.__name__.endswith("s") else f"a {data_type.__name__}"
        raise TypeError(f"{name} is a {type(data).__name__}; pass {wanted}")
    require_budget(budget, example)


def checked_public_count(name: str, value: Any, adjacency: Adjacency) -> int | None:
    """The public number of records or users that the argument `name` declares, or None under ``add_remove``."""
    if value is None and adjacency == Adjacency.REPLACE_ONE:
        raise ValueError(
            f"{name}=None with adjacency='replace_one', under which this number is public; "
            f"pass {name}, or use adjacency='add_remove'"
        )
    return None if value is None else checked_integer(name, value, 0, _MOST)


def _checked_ledger(ledger: Ledger | Budget | None, adjacency: Adjacency) -> Ledger:
    """The ledger of some data: one of its own for a Budget, else the given one if its adjacency is the same."""
    if isinstance(ledger, Budget):
        return Ledger(ledger, adjacency=adjacency)
    if not isinstance(ledger, Ledger):
        raise TypeError(
            f"ledger={ledger!r} is a {type(ledger).__name__}; pass the Budget that may be spent on these records, "
            "e.g. ledger=Budget(epsilon=1.0), or the Ledger that they have already"
        )
    require_trusted("ledger", ledger, "pass a Ledger")
    if ledger.adjacency is not None and ledger.adjacency != adjacency:
        raise ValueError(
            f"adjacency={str(adjacency)!r} differs from the ledger's {str(ledger.adjacency)!r}; use the ledger's, "
            "or a ledger of its own"
        )
    return ledger
