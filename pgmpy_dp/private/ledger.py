"""The budget of one dataset and the record of what was spent from it: check, charge, release.

A ledger belongs to the records, not to an estimator. Every release is charged to it before any noise is drawn, and a
charge that does not fit is refused and leaves the ledger as it was. :mod:`pgmpy_dp.private.filter` and ``ledger.md``
say by which rule, and why that is valid when each cost is chosen after seeing earlier results.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, NoReturn

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private.adjacency import Adjacency, Tables, agreement, exchange_words
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.entry import Entry, decode_unit, encode_unit, entries_table
from pgmpy_dp.private.filter import Account, Filter
from pgmpy_dp.private.filter import BudgetExceeded as BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, Guarantee, PureDP, fresh_guarantee
from pgmpy_dp.private.ledger_file import LedgerFile, agreed, read_ledger, write_ledger
from pgmpy_dp.private.turns import Turns
from pgmpy_dp.schema import decode_label, encode_label

_BUSY = (
    "this thread is charging this ledger already: a signal's handler, a finaliser or an argument charges it in the "
    "middle of a charge, and one of the two would be forgotten; charge it after that. Nothing was charged now"
)


class Ledger:
    """Budget of one dataset and every charge against it; safe to share between threads, and by a file of processes.

    ``Ledger(budget)`` lives in the memory of this process. ``Ledger.open(path, budget)`` lives in a file: every charge
    is on the disk before noise is drawn, and all processes that open the file spend from the same budget.

    Parameters
    ----------
    budget : Budget
    adjacency : str, optional
        Under which the charges' guarantees must hold. Default: that of the first charge.
    conversion_delta : float, optional
        Part of an (epsilon, delta) budget's delta that converts zCDP costs, in [0, delta]; the rest is room for costs
        that have a delta themselves. Default: decided by the first charge, see :mod:`pgmpy_dp.private.filter`.

    Notes
    -----
    Privacy: the interaction with the records through everything charged here satisfies ``budget.guarantee`` under
    ``adjacency``, also when costs are chosen adaptively. Sums may exceed the budget by a relative 1e-12 (rounding).
    `spent` and `left` are sums of costs and inform; the guarantee is the budget's. Two copies of a ledger could be
    spent twice, so it refuses to be copied or pickled, and one in memory refuses charges in a forked process: share a
    file with :meth:`open`. A charge in the middle of a charge of the same thread is refused. What the ledger hands out
    are copies: who changes one changes nothing here.

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> ledger = Ledger(Budget(epsilon=1.0))
    >>> _ = ledger.charge(PureDP(0.4), what="ages", columns=("age",), mechanism="laplace", adjacency="add_remove")
    >>> str(ledger.spent), str(ledger.left)
    ('0.4-DP', '0.6-DP')
    """

    __slots__ = ("_file", "_filter", "_turns", "_whole")  # so that nothing can be put in the place of `charge`

    def __init__(self, budget: Budget, *, adjacency: str | None = None, conversion_delta: float | None = None) -> None:
        self._bind(Filter(budget, adjacency, conversion_delta), None)  # type: ignore[arg-type]  # parsed there

    def _bind(self, content: Filter, file: LedgerFile | None, whole: Entry | None = None) -> None:
        if hasattr(self, "_filter"):
            raise RuntimeError("this ledger has its budget, and what was spent of it; make another one")
        self._filter, self._file, self._turns, self._whole = content, file, Turns(_BUSY), whole

    @classmethod
    def open(
        cls,
        path: str | Path,
        budget: Budget | None = None,
        *,
        adjacency: str | None = None,
        conversion_delta: float | None = None,
        timeout: float = 60.0,
        at_once: bool = True,
        key_kind: str | None = None,
    ) -> Ledger:
        """The ledger in a file, made if there is none: a charge is on the disk before it counts.

        Parameters
        ----------
        path : str or Path
            A file written by this method or by :meth:`save`; or a new one, in a folder that exists. Beside it lies
            ``<path>.lock``, which keeps processes apart.
        budget : Budget, optional
            Needed for a new file. For one that exists it may be left out; it must be the file's.
        adjacency, conversion_delta : optional
            As in :class:`Ledger`. For a file that exists: as in the file, or what is not fixed there yet.
        timeout : float, default 60
            Seconds to wait for the lock before a charge fails.
        at_once : bool, default True
            Whether a new file is made now, or what is not fixed in an old one is. False: the first charge does it, so
            that what is refused leaves all as it was.
        key_kind : {"text", "integer"}, optional
            How linked tables compared their key in entries that version 0.3 wrote, which do not say it: as their
            `LinkedSchema` had it. Such a file takes no charge before that, and says it afterwards. Others stay as they
            are.

        Returns
        -------
        Ledger
            It reads the file again at every use.

        Raises
        ------
        ValueError
            Without a file and a budget; for arguments that differ from the file; for a file that is not a ledger,
            overspends its budget, or has a second name (a hard link).
        OSError
            If the file cannot be read or written.
        TimeoutError
            If another process holds the lock for longer than `timeout`.

        Notes
        -----
        Privacy: a charge takes the lock, reads the file, checks, writes it and flushes it to the disk, and returns. Who
        draws noise only after :meth:`charge` has returned never draws noise that the file does not know of, whatever
        ends the process. A process that ends between the two has wasted what it charged. If the charge raises anything,
        no noise may be drawn. The file is believed: who can write it can forget what was spent.

        Examples
        --------
        >>> import tempfile
        >>> from pgmpy_dp.private.guarantee import PureDP
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/census.json", Budget(epsilon=1.0))
        >>> _ = ledger.charge(PureDP(0.4), what="ages", columns=("age",), mechanism="laplace", adjacency="add_remove")
        >>> str(Ledger.open(folder.name + "/census.json").left)
        '0.6-DP'
        >>> folder.cleanup()
        """
        if key_kind not in (None, "text", "integer"):
            raise ValueError(f"key_kind={key_kind!r}; pass 'text' or 'integer', as the LinkedSchema had it, or None")
        file = LedgerFile(path, checked_number("timeout", timeout, positive=False), key_kind)
        if not file.exists():
            if budget is None:
                raise ValueError(
                    f"budget=None, and {str(path)!r} does not exist; pass the Budget that may be spent, or the path of "
                    "a ledger that exists"
                )
            new = Filter(budget, adjacency, conversion_delta)  # type: ignore[arg-type]  # parsed there
            if at_once:
                with file.locked():
                    if not file.exists():  # no other process was quicker
                        file.write(new)
            else:
                file.begins = new
        stored = file.read()
        if (agreed(file.path, stored, budget, adjacency, conversion_delta) != stored or key_kind) and at_once:
            with file.locked():
                file.write(agreed(file.path, file.read(), budget, adjacency, conversion_delta))
        ledger = cls.__new__(cls)
        ledger._bind(file.read(), file)
        return ledger

    @property
    def path(self) -> Path | None:
        """The file that the ledger lives in, see :meth:`open`; None for one in memory."""
        return None if self._file is None else self._file.path

    @property
    def id(self) -> str:
        """A random name, which its file and its copies keep: a schema that was paid for here says it."""
        return self._filter.id

    @property
    def budget(self) -> Budget:
        """The most that may be spent in total."""
        return replace(self._filter.budget)

    @property
    def adjacency(self) -> Adjacency | None:
        """The adjacency of all charges; None until the first one if none was passed."""
        return self._current().adjacency

    @property
    def conversion_delta(self) -> float | None:
        """Part of delta that converts zCDP costs; None until it is fixed."""
        return self._current().conversion_delta

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        return tuple(entry.copied() for entry in self._current().entries)

    @property
    def public_tables(self) -> Tables:
        """Columns of tables of these records that are public: neighbours agree on them, for earlier charges too."""
        return self._tables(self._current())

    def _tables(self, content: Filter) -> Tables:
        entries = content.entries if self._whole is None else (self._whole,)
        return tuple(dict.fromkeys(scope for entry in entries for scope in entry.public_tables))

    def _known(self) -> dict[str, Any]:
        """What a release tells of them, as the last charge has read it: to read a file again may fail."""
        tables = [[encode_label(name) for name in scope] for scope in self._tables(self._filter)]
        return {"public_tables": [{"from": "these records", "tables": tables}]} if tables else {}

    @property
    def private(self) -> bool:
        """False as soon as one charge was for reproducible (seeded) noise."""
        return not any(entry.reproducible for entry in self._current().entries)

    @property
    def spent(self) -> Guarantee:
        """Costs of all charges, added up: the tighter of the sums. No guarantee, which is ``budget.guarantee``.

        Where costs may depend on earlier results, so does their sum: it is small where somebody stopped early because
        the results were extreme. Up to 4,000 randomised responses of 0.05-DP, stopped at the worst moment, exceed the
        epsilon of the sum at that moment with 3.1 times its delta (exactly, in ``tests/private/test_ledger.py``). The
        budget's guarantee holds however the interaction goes and wherever it stops. A sum is a guarantee only if all
        costs were fixed before the first result.
        """
        return self._current().spent

    @property
    def left(self) -> Guarantee:
        """Largest cost that still fits, in the measure the budget is being spent in.

        For an (epsilon, delta) budget: the budget itself while nothing is spent; then a zCDP cost if zCDP costs can
        still be charged, otherwise what is left of the plain sums.
        """
        return self._current().left

    @property
    def account(self) -> Account:
        """The spent part, the rest and the whole of the budget, all in the measure it is being spent in.

        For an (epsilon, delta) budget from which zCDP costs are paid the measure is rho, and the budget allows the rho
        that converts to it; `spent` and `left` differ in measure there. As with them, the guarantee is the budget's.
        """
        return self._current().account

    def check(self, cost: Guarantee, *, adjacency: str | None = None, unit: Hashable = None) -> None:
        """Raise what :meth:`charge` would raise for this cost; change nothing.

        Parameters
        ----------
        cost : PureDP, ZCDP, ReservedZCDP or ApproxDP
        adjacency : {"add_remove", "replace_one", "edge"}, optional
            Of the release that would cost this; default: not checked.
        unit : hashable, optional
            What the release would protect: None is a record.

        Raises
        ------
        BudgetExceeded
            If the cost does not fit in what is left, or cannot be paid from a budget of this measure.
        ValueError
            If the ledger is bound to another adjacency, or its entries protect another unit; if its file is damaged.
        RuntimeError
            If the ledger is in memory and this process is a copy (a fork) of the one that made it.
        """
        guarantee, protected = fresh_guarantee(cost), decode_unit(encode_unit(unit))
        self._require_process()
        self._current().check(guarantee, adjacency, protected)

    def charge(
        self,
        cost: Guarantee,
        *,
        what: str,
        columns: Iterable[Hashable],
        mechanism: str,
        adjacency: str,
        reproducible: bool = False,
        unit: Hashable = None,
        public_tables: Iterable[Iterable[Hashable]] = (),
    ) -> Entry:
        """Record one release, before its noise is drawn.

        Parameters
        ----------
        cost : PureDP, ZCDP, ReservedZCDP or ApproxDP
        what : str
            What is released, for the reader of the entry.
        columns : iterable of hashable
            Whose values it depends on.
        mechanism : str
        adjacency : {"add_remove", "replace_one", "edge"}
            Under which `cost` holds.
        reproducible : bool
            Whether the noise comes from a seed; the ledger then says that nothing is protected.
        unit : hashable, optional
            What is protected: None is a record, else the column whose values are, each with all of its rows, or a
            :class:`~pgmpy_dp.private.entry.Unit`, which says how its cells are compared.
        public_tables : iterable of iterable of hashable
            Columns of each table of these records that is public as it is, for "replace_one" and records alone. A
            charge of ``PureDP(0.0)`` enters tables that somebody else publishes. Nothing takes them back.

        Returns
        -------
        Entry
            As recorded.

        Raises
        ------
        BudgetExceeded, ValueError, RuntimeError
            As :meth:`check`, and as :meth:`open` for a ledger in a file. A refusal changes nothing.
        """
        # What a caller passes may run code of its own. It is read here, once, before the ledger is; after that there
        # are only values of Python's own types, which nobody else has.
        entry = Entry(
            what=str.__str__(str(what)),
            columns=tuple(decode_label(encode_label(name)) for name in columns),
            mechanism=str.__str__(str(mechanism)),
            cost=fresh_guarantee(cost),
            adjacency=Adjacency.parse(adjacency),
            reproducible=bool(reproducible),
            unit=decode_unit(encode_unit(unit)),
            public_tables=tuple(tuple(decode_label(encode_label(c)) for c in scope) for scope in public_tables),
        )
        self._require_of_whole(entry)
        if self._file is not None and not self._file.exists():
            self._current().charged(entry)  # what is refused leaves no lock behind
        with self._changing():
            before = self._current()
            content = before.charged(entry)
            if self._file is not None:
                self._file.write(content)
            elif self._filter is not before:
                raise RuntimeError(_BUSY)
            self._filter = content
        return entry.copied()

    def set_aside(self, cost: Guarantee, **facts: Any) -> Ledger:
        """Charge a whole cost now, and return a ledger of it alone: for several releases that are paid for as one.

        Parameters
        ----------
        cost : PureDP or ZCDP
            The most that all charges to the part may cost together. What is not spent is not returned.
        **facts
            As :meth:`charge` takes them, about everything together.

        Returns
        -------
        Ledger
            In memory, with the cost as its budget, and with the name (`id`) of this one, which paid.

        Raises
        ------
        TypeError
            For a cost of another kind, whose parts do not add up to it.
        BudgetExceeded, ValueError, RuntimeError
            As :meth:`charge`; nothing is set aside.

        Notes
        -----
        Privacy: ``ledger.md``, "Parts that are set aside". The part takes charges for the same unit and adjacency
        alone, and for repeatable noise only if that was said when it was set aside.

        Examples
        --------
        >>> from pgmpy_dp.private.guarantee import PureDP
        >>> ledger, of = Ledger(Budget(epsilon=1.0)), {"columns": ("age",), "adjacency": "add_remove"}
        >>> part = ledger.set_aside(PureDP(0.4), what="ages, and whether they are right", mechanism="laplace", **of)
        >>> _ = part.charge(PureDP(0.3), what="ages", mechanism="laplace", **of)
        >>> str(part.left), str(ledger.left)
        ('0.1-DP', '0.6-DP')
        """
        whole_cost = fresh_guarantee(cost)
        if not isinstance(whole_cost, PureDP | ZCDP):
            raise TypeError(f"cost={cost!r} is a {type(cost).__name__}, of which no part is made; pass PureDP or ZCDP")
        budget = Budget.of(whole_cost)  # refuses a cost of nothing before it is charged
        whole = self.charge(whole_cost, **facts)
        part = Ledger.__new__(Ledger)
        known = replace(whole, public_tables=self._tables(self._filter))
        part._bind(Filter(budget, whole.adjacency, id=self.id), None, known)
        return part

    def _require_of_whole(self, entry: Entry) -> None:
        """ValueError for what was not said of a part when it was set aside: its charge is the one that people read."""
        whole = self._whole
        if whole is None:
            return
        if entry.unit != whole.unit:
            raise ValueError(f"unit={entry.unit!r} differs from the unit {whole.unit!r} that this was set aside for")
        if not {*entry.public_tables} <= {*whole.public_tables}:
            raise ValueError("public_tables are others than those of the ledger that this was set aside from")
        if entry.reproducible and not whole.reproducible:
            raise ValueError("noise from a seed is asked of a budget that was set aside for noise without one")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """No other thread, no other process and nothing else in this thread changes the ledger in this block."""
        self._require_process()
        with self._turns.taken():
            if self._file is None:
                yield
            else:
                with self._file.locked():
                    yield

    def _require_process(self) -> None:
        """RuntimeError in a process to which a ledger in memory was copied."""
        if self._turns.process != os.getpid():
            if self._file is None:
                raise RuntimeError(
                    "this ledger is in the memory of another process, of which this one is a copy (a fork): each copy "
                    "could spend the whole budget; open a file in both with Ledger.open(path, budget)"
                )
            # The copied lock may be held by a thread that was not copied. Between processes the file's lock counts.
            self._turns = Turns(_BUSY)

    def _current(self) -> Filter:
        if self._file is not None:
            self._require_process()
            with self._turns.lock:
                self._filter = self._file.read()
        return self._filter

    def summary(self) -> str:
        """All charges as a table of text, with their sum and the guarantee below.

        Returns
        -------
        str
        """
        content = self._current()
        lines, known = entries_table(content.entries), agreement(tables := self._tables(content))
        lines.append(f"costs add up to {(account := content.account)}{known}")
        if account.pays_for is not None:
            words = f"in the budget's words: {content.spent} is spent, a release of {account.pays_for} is left"
            lines.append(words + known)
        unit = content.entries[0].unit if content.entries else None
        lines.append(
            f"guarantee, also if costs were chosen by results: {content.budget.guarantee}{known}, "
            f"adjacency {content.adjacency or 'not yet fixed'}{'' if unit is None else f', unit {unit!r}'}"
        )
        lines += [exchange_words(tables, content.budget.guarantee)] * bool(tables)
        if any(entry.reproducible for entry in content.entries):
            lines.append("NOT PRIVATE: reproducible noise was used; the guarantee holds only for noise without a seed")
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        # What was read last: showing an object must not fail because a file is gone.
        content, where = self._filter, "" if self._file is None else f", path={str(self._file.path)!r}"
        where = f"{agreement(self._tables(content))}, entries={len(content.entries)}{where}"
        return f"Ledger(budget={content.budget}, spent={content.spent}{where})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Ledger cannot be copied or pickled (a copy could be spent twice); use save() and load(), or "
            "share a file with Ledger.open"
        )

    def save(self, path: str | Path) -> None:
        """Write a copy of the ledger to a JSON file, whole or not at all.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        ValueError
            If another ledger is open there (:meth:`open`): what was charged to it would be forgotten.
        OSError
            If the file cannot be written.
        """
        if self._whole is not None:
            raise ValueError(
                "this ledger was set aside, and its file could be spent again; save the one that paid for it"
            )
        target = LedgerFile(path, 0.0)
        if target.lock_path.exists() and self.path != target.path:
            raise ValueError(
                f"{str(path)!r} is a ledger that processes share (it has {target.lock_path.name!r} beside it): a copy "
                "saved over it would forget what they charged; choose another path"
            )
        if self.path != target.path:  # its own file holds everything already
            write_ledger(target.path, self._current())

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """A copy in memory of a ledger in a file.

        Charges to the copy are not in the file until it is saved again. To spend from the file itself, :meth:`open` it.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Ledger

        Raises
        ------
        ValueError
            If the file holds no ledger, or its entries overspend its budget.
        """
        ledger = cls.__new__(cls)
        ledger._bind(read_ledger(Path(path)), None)
        return ledger
