"""A ledger's file: written whole or not at all, changed by one process at a time, and never believed blindly.

A file that several processes spend from is changed under a lock: read again, checked, written, flushed to the disk, and
only then does the charge count and may noise be drawn. So a process that dies leaves one of two things: no charge and
no noise, or a charge whose noise may never have been drawn. That wastes budget and cannot overspend it.

The lock is the operating system's (``flock`` on POSIX) on a file of its own beside the ledger, ``<path>.lock``, which
stays there. It ends with the process that holds it, however that ends. It works between processes of one machine; on
network file systems it is as good as their locks are.

A charge writes the whole file anew and moves it into place, with a digest of its content. Appending a line would be
quicker. But then the end of a file that a crash cut, or that a copy lost, could not be told from a whole file, and what
it lacks would be spent again. Here such a file, or one in which a digit is another, is refused.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.entry import UNSAID, Entry, decode_unit
from pgmpy_dp.private.filter import Filter
from pgmpy_dp.schema import encode_label
from pgmpy_dp.schema.stored import DIGEST, content_digest, json_content, read_from, sealed, unsealed

_POLL = 0.01  # seconds between two attempts to take a lock
_HELD: set[tuple[int, int, Path]] = set()  # by which thread of which process


_FORMAT, _VERSION = "pgmpy_dp.ledger", 3
_REMEDY = "pass a file written by Ledger.save or Ledger.open, or put the last good copy back"


def write_ledger(path: Path, content: Filter) -> bytes:
    """Write a ledger to a JSON file, whole or not at all, and return what was written; OSError where that fails."""
    stored = sealed({"format": _FORMAT, "version": _VERSION, **content.to_dict()})
    text = (json.dumps(stored, indent=1, ensure_ascii=False) + "\n").encode()
    write_atomically(path, text, private=True)
    return text


def read_ledger(path: Path, text: bytes | None = None, key_kind: str | None = None) -> Filter:
    """The content of a ledger's file.

    Parameters
    ----------
    path : Path
    text : bytes, optional
        What the file holds, where it was read already.
    key_kind : {"text", "integer"}, optional
        How linked tables compared their key, where version 0.3 wrote the file, which does not say it.

    Raises
    ------
    ValueError
        If it is not a ledger, if it was damaged or edited, or if its entries overspend its budget; for a `key_kind`
        that not all of its entries can have had.
    OSError
        If it cannot be read.
    """
    text = path.read_bytes() if text is None else text
    with read_from(path, "a ledger", _REMEDY):
        stored = json_content(text)
        if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
            raise ValueError("it says nothing of a ledger")
        version = stored.get("version")
        if type(version) is not int or version not in range(1, _VERSION + 1):
            raise ValueError(f"its version is {version!r}, this package reads 1 to {_VERSION}; update pgmpy_dp")
        if version == 1 and not {DIGEST, "id"} & set(stored):
            # Of before there were digests. It gets a name of what never changes in it, and keeps that once charged.
            fixed = {"budget": stored["budget"], "entries": stored["entries"][:1]}
            return Filter.from_dict({**stored, "id": content_digest(fixed)[:32]})
        if version == 1:
            raise ValueError("ledgers of version 1 have no digest and no id, and it has one")
        content = Filter.from_dict(unsealed(stored))
    return _with_kinds(path, content, version, key_kind)


def _with_kinds(path: Path, content: Filter, version: int, key_kind: str | None) -> Filter:
    """The same with how identifiers were compared, where a file of version 0.3 leaves it open; else as it is."""
    linked = [_may_be_linked(entry) for entry in content.entries]
    first = content.entries[0].unit if any(linked) or (key_kind == "integer" and linked) else None
    if first is None or (version == _VERSION and getattr(first, "kind", None) != UNSAID):
        return content
    if key_kind == "integer" and not all(linked):
        raise ValueError(
            f"key_kind='integer', and entry {linked.index(False) + 1} of the ledger {str(path)!r} is of a table, where "
            '"007" and "7" are two: its costs never added up. Count it as spent, and open a new ledger'
        )
    unit = decode_unit(encode_label(getattr(first, "column", first)), key_kind or UNSAID)
    return replace(content, entries=tuple(replace(entry, unit=unit) for entry in content.entries))


def _may_be_linked(entry: Entry) -> bool:
    """Whether version 0.3 may have written this of linked tables, whose children's columns it called a.age and b.age.

    It kept the names of parents' columns: entries on these alone look like those of estimators of one table.
    """
    of_child = any(isinstance(name, str) and name[:2] in ("a.", "b.") for name in entry.columns)
    return entry.unit is not None and (of_child or entry.what.startswith("what linked tables of "))


class LedgerFile:
    """The file that one ledger is bound to, and what was last seen in it.

    Parameters
    ----------
    path : str or Path
        Links are followed once, now: two names of one file have one lock.
    timeout : float
        Seconds to wait for the lock.
    key_kind : {"text", "integer"}, optional
        As in :func:`read_ledger`.

    Raises
    ------
    FileNotFoundError
        If its folder does not exist.
    """

    def __init__(self, path: str | Path, timeout: float, key_kind: str | None = None) -> None:
        self.path = Path(path).resolve()
        self.timeout, self.key_kind = timeout, key_kind
        self._seen: tuple[bytes, Filter] | None = None
        self.begins: Filter | None = None  # what the first charge makes the file of, while there is none
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"path={str(path)!r}: the folder {str(self.path.parent)!r} does not exist; make it")

    @property
    def lock_path(self) -> Path:
        """The file that is locked, which holds nothing."""
        return self.path.with_name(self.path.name + ".lock")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process, and no other thread, is in such a block for the same file; TimeoutError if it takes long.

        RuntimeError where this thread is in such a block already, by another object for the file: it would wait for
        itself.
        """
        from filelock import FileLock, Timeout

        mine = os.getpid(), threading.get_ident(), self.path
        if mine in _HELD:
            raise RuntimeError(
                f"this thread is charging the ledger {str(self.path)!r} already; charge it after that. Nothing was "
                "charged now"
            )
        # A new object each time: it opens the file anew, so it also excludes other threads and forgets on a fork.
        lock = FileLock(str(self.lock_path), timeout=self.timeout)
        try:
            _HELD.add(mine)
            try:
                lock.acquire(poll_interval=_POLL)
            except Timeout:
                raise TimeoutError(
                    f"the lock {str(self.lock_path)!r} of the ledger was not free for {self.timeout:g} s: another "
                    "process is charging and has stopped, or very many are; nothing was charged. Wait or end that "
                    "process (the lock ends with it); do not delete the file, which would let two processes in"
                ) from None
            yield
        finally:
            try:
                lock.release()
            finally:
                _HELD.discard(mine)

    def exists(self) -> bool:
        """Whether there is a file already."""
        return self.path.exists()

    def read(self) -> Filter:
        """Return the file's content, which continues what was seen in it before.

        Raises
        ------
        ValueError
            If it is damaged or gone, has another budget than before, or lacks entries that it had.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            if self._seen is None and self.begins is not None:
                return self.begins
            raise ValueError(
                f"the ledger {str(self.path)!r} is gone, and with it what was spent; put it back, or open another"
            ) from None
        # Links from elsewhere were followed. A hard link is a second name, which the next write would part from this.
        if self.path.stat().st_nlink > 1:
            raise ValueError(
                f"the ledger {str(self.path)!r} has a second name (a hard link), under which it could be spent again; "
                "remove one of the names"
            )
        if self._seen is not None and text == self._seen[0]:
            return self._seen[1]
        content = read_ledger(self.path, text, self.key_kind)
        if self._seen is not None:
            self._require_continuation(self._seen[1], content)
        elif self.begins is not None:  # another process was quicker
            begins = self.begins
            agreed(self.path, content, begins.budget, begins.adjacency, begins.conversion_delta)
        self._seen = text, content
        return content

    def write(self, content: Filter) -> None:
        """Put `content` on the disk; to be called in a block of :meth:`locked`.

        Raises
        ------
        OSError
            If it cannot be written: then nothing may be drawn.
        """
        try:
            self._seen = write_ledger(self.path, content), content
        except OSError as error:
            error.add_note(f"The ledger {str(self.path)!r} could not be written, so nothing was charged or released.")
            raise

    def _require_continuation(self, before: Filter, now: Filter) -> None:
        same = now.budget == before.budget and now.entries[: len(before.entries)] == before.entries
        for name in ("adjacency", "conversion_delta"):
            same = same and getattr(before, name) in (None, getattr(now, name))
        if not same:
            raise ValueError(
                f"the ledger {str(self.path)!r} was edited, or replaced by another or by an older copy, since this "
                "process read it: entries that it had are missing, or its budget differs; put the last one back (where "
                "another process said its key_kind, open it again)"
            )


def agreed(
    path: Path, stored: Filter, budget: Budget | None, adjacency: str | None, conversion_delta: float | None
) -> Filter:
    """The stored ledger with what it leaves open and the arguments fix; ValueError where they differ from it."""
    if budget is not None and budget != stored.budget:
        text = f"{budget}" if isinstance(budget, Budget) else f"{budget!r}"
        raise ValueError(
            f"budget={text} differs from the {stored.budget} of the ledger {str(path)!r}, which cannot be changed; "
            "leave budget out to use the file's"
        )
    requested = Filter(stored.budget, adjacency, conversion_delta)  # type: ignore[arg-type]
    for name in ("adjacency", "conversion_delta"):
        new, there = getattr(requested, name), getattr(stored, name)
        if new is not None and new != there:
            if there is not None or stored.entries:
                raise ValueError(
                    f"{name}={str(new)!r} differs from {str(there)!r} of the ledger {str(path)!r}; leave {name} out to "
                    "use the file's"
                )
            stored = replace(stored, **{name: new})
    return stored
