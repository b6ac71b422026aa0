"""The base of sources: to the reader data are names of columns, and batches of some of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from pgmpy_dp.private.reading.arrow_cells import NOT_OURS, Column, quietly
from pgmpy_dp.schema import Schema

ROWS = 1 << 17
"""Of a batch, where it is for us to say."""

Spelled = Sequence[frozenset[str] | None]
"""For each column, texts that are cells as they are, whatever they look like; None: all texts. For files of text."""


class EveryText(frozenset[str]):
    """The texts of a column of codes, in which every field is a text as it is written, an empty one if it is declared.

    Examples
    --------
    >>> "1,5" in EveryText(), "" in EveryText(), "" in EveryText([""])
    (True, False, True)
    """

    def __contains__(self, text: object) -> bool:
        return text != "" or super().__contains__(text)


_NO_NUMBERS = re.compile(r"timedelta|duration|interval|month_day_nano|time(32|64|_ns)?(\W|$)", re.IGNORECASE)
"""Types of durations and of times of day, as NumPy, pyarrow, DuckDB, ibis and Spark write them."""
_FLOATS = re.compile(r"(dictionary<values=)?!?(half_?|large_)?(float|double)", re.IGNORECASE)
_TEXTS = re.compile(r"(dictionary<values=)?!?(large_)?(string|utf8|varchar|char|enum)", re.IGNORECASE)


class Source(ABC):
    """Data of some kind, as :func:`~pgmpy_dp.private.reading.sources.open_source` opens it."""

    is_ours = False
    """Whether these are files that we open, which may be read again; everything else is read once."""

    ordered = True
    """Whether rows come in an order that is the data's own: an engine's may depend on other rows, and on the run."""

    guesses_types = False
    """Whether these are of a library whose readers guess the type of a column from its cells."""

    lines_without_record: tuple[int, int] | None = None
    """Lines that were no record in a pass: with one field too many, others. None of other data. Private as records."""

    names: list[Any]
    """Its columns."""

    def positions(self, names: Sequence[Hashable]) -> list[int]:
        """Position of the column for each name; ValueError for missing and repeated ones."""
        counts = Counter(self.names)
        columns = {name: name if name in counts else str(name) for name in names}
        missing = [name for name in names if columns[name] not in counts]
        if missing:
            raise ValueError(
                f"data has no column for {missing}, which are to be read; data has the columns "
                f"{list(self.names)[:50]}: rename the columns, or the variables or arguments that name them"
            )
        repeated = [name for name in names if counts[columns[name]] > 1]
        if repeated:
            raise ValueError(f"data has several columns named {repeated}; rename or remove all but one of each")
        shared = [name for name, times in Counter(columns.values()).items() if times > 1]
        if shared:
            raise ValueError(f"several variables of the schema would read the column {shared}; rename the variables")
        places = {name: place for place, name in enumerate(self.names)}
        return [places[columns[name]] for name in names]

    def all_names(self) -> list[Any]:
        """The names, to read every column; ValueError for repeated ones."""
        self.positions(list(dict.fromkeys(self.names)))
        return self.names

    def check_types(self, names: Sequence[Hashable]) -> None:
        """ValueError for columns of a declared type whose cells cannot all be read, with what to pass."""
        return None

    def types(self) -> list[Any]:
        """The declared type of each column, which is public; none of files of text, and where types are guessed."""
        return []

    def require_numbers(self, names: Iterable[Hashable]) -> None:
        """ValueError for columns of numbers or days whose type has durations or times of day, of which none is one.

        A declared type is the column's: what a cell holds decides nothing, and neither does how many there are. Types
        that a library guesses (`guesses_types`) refuse nothing.
        """
        types, names = list(map(str, () if self.guesses_types else self.types())), list(names)
        for name, place in zip(names, self.positions(names) if types else (), strict=bool(types)):
            if _NO_NUMBERS.match(types[place]):
                raise ValueError(
                    f"the column {name!r} has the type {types[place]}, of which no cell is a number or a day: pass "
                    "numbers, such as its seconds, or declare states, such as P1DT2H and 12:30:00"
                )

    def require_types(self, schema: Schema) -> None:
        """ValueError for columns of declared types of which no cell is what the schema says, numbers or codes."""
        self.require_numbers(schema.numbers)
        codes = [name for name in schema.variables if schema.reading(name).codes]
        types = list(map(str, () if self.guesses_types else self.types()))
        for name, place in zip(codes, self.positions(codes) if types else (), strict=bool(types)):
            if _FLOATS.match(types[place]):
                raise ValueError(
                    f"the column {name!r} is one of codes, and has the type {types[place]}: nobody knows how a float "
                    "was written, 3.1 or 3.10; make it texts or integers, or leave it out of codes"
                )

    def has_texts(self, name: Hashable) -> bool:
        """Whether a column is declared to hold texts; a type that was guessed from cells declares nothing."""
        types = () if self.guesses_types else self.types()
        return bool(types) and _TEXTS.match(str(types[self.positions([name])[0]])) is not None

    def declared_kind(self, name: Hashable) -> str | None:
        """Return what a column's declared type says, which no cell decided: "integers", "texts" or, of others, None."""
        return None

    def coded(self, schema: Schema) -> Any:
        """Records that are coded where they are (`CodedRecords`); None: code their batches here."""
        return None

    @contextmanager
    def one_pass(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Iterator[Iterator[list[Column]]]:
        """The batches of columns that can be read; whatever happens in the block, an engine's reader ends with it."""
        self.check_types(names)
        with closing(self.batches(names, spelled)) as batches:
            yield batches

    @abstractmethod
    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        """The columns, some rows at a time; OSError without a word of the data where they cannot be read to the end."""


def without_its_words(
    message: str, read: Callable[..., Any], *arguments: Any, but: tuple[type[BaseException], ...] = NOT_OURS
) -> Any:
    """Call; if it fails, OSError with a message of our own: the library's may quote a record. `but` are passed on."""
    try:
        return quietly(read, *arguments)
    except but:
        raise
    except BaseException:  # noqa: S110 - below, so that the engine's error is not even the context of ours
        pass
    raise OSError(message)
