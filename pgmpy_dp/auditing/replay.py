"""Replay: a fit is run on one dataset, and again on a neighbour with the answers of the first run instead of noise.

If answers are the same, everything that follows from them has to be the same: requests, models, printed text, warnings.
What differs has a way around the curator. And the exact statistics behind two equal requests may differ by no more than
what scaled the noise. Both are checked without any statistics, on one pair of datasets at a time, so odd records and
adversarial graphs can be tried by the thousand.
"""

from __future__ import annotations

import hashlib
import io
import logging
import pickle
import secrets
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.auditing.drawn_again import Drawn, drawn, drawn_again, undrawn
from pgmpy_dp.auditing.movements import movement
from pgmpy_dp.auditing.scales import stated_scales
from pgmpy_dp.learning.privacy_record import Privacy, UnderstatedGuarantee, composed
from pgmpy_dp.pgmpy_config import bars
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.charged_base import ChargedCurator
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.observer import Observer, Request, observed
from pgmpy_dp.private.data.units import fixed_key
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, ReservedZCDP
from pgmpy_dp.private.sensitive import Release

Key = tuple[bytes, int]

_ROUNDING = 1e-9  # relative: of norms that are computed in floating point here


@dataclass(frozen=True)
class ReplayReport:
    """The outcome of replay on one pair of datasets.

    Attributes
    ----------
    problems : tuple of str
        Empty if nothing is wrong.
    movement : dict of str to float
        For each operator that was asked: how far its exact statistics moved, over what scaled the noise; at most 1.
    requests : int
        How many requests the fit made.

    Examples
    --------
    >>> print(ReplayReport((), {"tables": 1.0}, 1))
    1 requests, moved tables 1 of the bound: nothing found
    """

    problems: tuple[str, ...]
    movement: Mapping[str, float]
    requests: int

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def __str__(self) -> str:
        moved = ", ".join(f"{name} {ratio:.3g}" for name, ratio in sorted(self.movement.items()))
        verdict = "nothing found" if self.holds else "; ".join(self.problems)
        return f"{self.requests} requests, moved {moved or 'nothing'} of the bound: {verdict}"


def replay(
    fit: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    answers: Callable[[Request], Any] | None = None,
    public: bool = True,
) -> ReplayReport:
    """Run a fit on some data and on a neighbour with the same answers, and compare.

    Parameters
    ----------
    fit : callable
        From data to what is published: a fitted estimator, a release, text. It makes its private data, and charges its
        ledger, itself, so that both runs start alike.
    data, neighbour : object
        Two datasets that are neighbours under the fit's adjacency. They are public: an audit never sees real records.
    answers : callable, optional
        From a request to an invented answer, see :func:`invented`; default: what the mechanism draws.
    public : bool
        Whether what `fit` returns is compared, by its pickle. False for fits whose result holds private data.

    Returns
    -------
    ReplayReport

    Notes
    -----
    Coins by which records are sampled or divided into parts are given to a record by its content and its place among
    equal ones, so that a record keeps its coin whatever else is in the data (a unit of several records by the contents
    of all that count, which are drawn by one key in both runs). Those that one dataset has alone are in
    every sample (`Coins`).

    What replay cannot see: wrong or reused noise (:mod:`pgmpy_dp.auditing.attack` looks for that), charges by
    other processes, time, memory and files, the soundness of a certificate's checker.

    Examples
    --------
    >>> import networkx as nx, pandas as pd
    >>> from pgmpy_dp.estimators import NaiveMLE
    >>> frame = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 1]})
    >>> states = {"a": [0, 1], "b": [0, 1]}
    >>> report = replay(
    ...     lambda frame: NaiveMLE(epsilon=1.0, state_names=states).fit(nx.Graph([("a", "b")]), frame), frame, frame[1:]
    ... )
    >>> report.holds, dict(report.movement)
    (True, {'tables': 1.0})
    """
    recorder = _Recorder(answers)
    first = _run(fit, data, recorder, public)
    if recorder.waits:
        # It stopped at the first sample: whose coins are forced depends on who is in the other dataset.
        scout = _Scout()
        _run(fit, neighbour, scout, public)
        recorder = _Recorder(answers, scout.dice.units or set())
        first = _run(fit, data, recorder, public)
    player = _Player(recorder)
    second = _run(fit, neighbour, player, public)
    problems = [*recorder.problems, *recorder.spending.understated(first.said), *player.problems]
    if len(player.events) < len(recorder.events):
        problems.append(f"the neighbour's run ends after {len(player.events)} of {len(recorder.events)} events")
    problems += [f"{what} differs: {_short(a)} and {_short(b)}" for what, a, b in first.differences(second)]
    return ReplayReport(tuple(problems), player.movement, player.requests)


@dataclass(frozen=True)
class _Outcome:
    """A run as a stranger sees it."""

    result: bytes | None
    error: str
    printed: str
    warned: tuple[str, ...]
    logged: tuple[str, ...]
    said: Any = None
    """The result itself, or the error."""

    def differences(self, other: _Outcome) -> Iterator[tuple[str, Any, Any]]:
        for name in ("error", "printed", "warned", "logged", "result"):
            if getattr(self, name) != getattr(other, name):
                yield name, getattr(self, name), getattr(other, name)


def _run(fit: Callable[[Any], Any], data: Any, observer: Observer, public: bool) -> _Outcome:
    said, result, error, printed = None, None, "", io.StringIO()
    with (
        fixed_key(bytes(32)),  # for the units that both runs have to draw the same records
        bars(False),  # they appear after a second, on a busy machine in one run alone
        observed(observer),
        warnings.catch_warnings(record=True) as caught,
        _logged() as logged,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            said = result = fit(data)
        except _Departed:
            pass  # noted already
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised} {getattr(raised, '__notes__', '')}"
            said, result = raised, getattr(raised, "release", None)
    stored = pickle.dumps(result) if public else None
    warned = tuple(f"{item.category.__name__}: {item.message}" for item in caught)
    return _Outcome(stored, error, printed.getvalue(), warned, tuple(logged), said)


@contextmanager
def _logged() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"{record.name}: {record.getMessage()}")  # type: ignore[method-assign]
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


class _Nameless(Observer):
    """Names that are drawn for each run would make a difference between two."""

    def paid(self, names: Mapping[str, str]) -> Mapping[str, str]:
        return {}


class _Recorder(_Nameless):
    """The first run: answers, requests and coins are kept."""

    def __init__(self, answers: Callable[[Request], Any] | None, others: set[tuple[bytes, int]] | None = None) -> None:
        self.answers = answers
        self.dice = Coins(others)
        self.waits = False
        self.events: list[tuple[str, Any, Any]] = []
        self.drawn: list[Drawn] = []  # of each answer
        self.coins: list[dict[tuple[bytes, int], int]] = []
        self.problems: list[str] = []
        self.spending = Spending()

    def opened(self, curator: ChargedCurator, budget: Budget, facts: Mapping[str, Any]) -> None:
        self.problems += self.spending.opened(curator)
        self.events.append(("opened", _seen((budget, facts, curator.cost)), None))

    def answer(self, request: Request, draw: Callable[[], Any]) -> Any:
        values, calls = drawn(request.mechanism, draw) if self.answers is None else (self.answers(request), [])
        self.drawn.append(calls)
        if self.answers is None and request.curator._rng is None:
            self.problems += [f"{request.operator}: {problem}" for problem in undrawn(request.mechanism, calls)]
        self.events.append(("asked", request, values))
        self.problems += stated_scales(request)
        self.problems += self.spending.answered(request)
        return values

    def generator(self, make: Callable[[], np.random.Generator]) -> np.random.Generator:
        seed = secrets.randbits(64)
        self.events.append(("generator", seed, None))
        return np.random.default_rng(seed)

    def block_seeds(self, n_blocks: int, draw: Callable[[], list[int]]) -> list[int]:
        seeds = draw()
        self.events.append(("block seeds", n_blocks, seeds))
        return seeds

    def lent(self, curator: Curator, parts: Sequence[Curator]) -> None:
        self.spending.lent(curator, parts)

    def returned(self, curator: Curator, parts: Sequence[Curator]) -> None:
        self.problems += self.spending.returned(curator, parts)

    def parts(self, units: Callable[[], np.ndarray], n_parts: int, draw: Callable[[], np.ndarray]) -> np.ndarray:
        coins = {key: _coin(key, n_parts) for key in _identities(units())}
        self.coins.append(coins)
        self.events.append(("parts", n_parts, None))
        return np.array(list(coins.values()), dtype=np.int64)

    def sample(self, units: Callable[[], np.ndarray], rate: float, draw: Callable[[], np.ndarray]) -> np.ndarray:
        if self.dice.others is None:
            self.waits = True
            raise _Departed("the other dataset is not known yet")
        self.events.append(("sampled", rate, None))
        return self.dice.sample(units, rate)

    def keys(self, units: Callable[[], list[bytes]], draw: Callable[[], np.ndarray]) -> np.ndarray:
        self.events.append(("numbered", None, None))
        return self.dice.keys(units)


class _Scout(Observer):
    """Finds who is in a dataset from which a fit takes samples, up to the first of them."""

    def __init__(self) -> None:
        self.dice = Coins(set())

    def sample(self, units: Callable[[], np.ndarray], rate: float, draw: Callable[[], np.ndarray]) -> np.ndarray:
        self.dice.sample(units, rate)
        raise _Departed("all that was looked for is found")


class Spending:
    """Shares and reserves kept a second time: what each curator should have left of what its ledger was charged."""

    def __init__(self) -> None:
        self._left: dict[int, tuple[Fraction, Fraction]] = {}
        self._curators: list[ChargedCurator] = []  # kept alive, so that no two have one id
        self._charged: list[Guarantee] = []

    def opened(self, curator: ChargedCurator) -> list[str]:
        cost, charged = curator.unit_cost, curator._data.ledger.entries[-1].cost
        self._charged.append(charged)
        reserve = 0.0
        if isinstance(charged, ReservedZCDP):
            reserve, charged = charged.eta, ZCDP(charged.rho)
        elif isinstance(charged, ApproxDP) and isinstance(cost, PureDP):
            reserve, charged = charged.delta, PureDP(charged.epsilon)
        self._keep(curator, Fraction(1), Fraction(reserve))
        return [] if charged == cost else [f"the ledger was charged {charged} for a curator of {cost}"]

    def understated(self, said: Any) -> list[str]:
        """Return where a plan releases under less than it charged; an estimator's says so by an error."""
        if isinstance(said, Release) and self._charged:
            total, known = composed(*self._charged), Privacy.of(said).total
            return [] if known is None or total.implies(known) else [f"{total} was charged for a release of {known}"]
        return [str(said)] if isinstance(said, UnderstatedGuarantee) else []

    def answered(self, request: Request) -> list[str]:
        if request.share <= 0:
            return [f"{request.operator}: it was answered for a share of {request.share}"]
        share, reserve = self._left[id(request.curator)]
        self._left[id(request.curator)] = share - request.share, reserve - request.eta
        return self._compared(request.curator, request.operator)

    def lent(self, curator: Curator, parts: Sequence[Curator]) -> None:
        for part in parts:
            self._keep(part, *self._left[id(curator)])

    def returned(self, curator: Curator, parts: Sequence[Curator]) -> list[str]:
        shares, reserves = zip(*(self._left[id(part)] for part in parts), strict=True)
        left, reserve = min(shares), min(reserves)
        if sys.exception() is not None:  # an operator that ends without an answer keeps its share, which is not seen
            left, reserve = min(left, curator.left), min(reserve, curator._reserve)
        self._left[id(curator)] = left, reserve
        return self._compared(curator, "parts")

    def _keep(self, curator: ChargedCurator, share: Fraction, reserve: Fraction) -> None:
        self._curators.append(curator)
        self._left[id(curator)] = share, reserve

    def _compared(self, curator: ChargedCurator, what: str) -> list[str]:
        left = self._left[id(curator)]
        if min(left) < 0:
            return [f"{what}: more was answered than the curator's cost pays for"]
        kept = curator.left, curator._reserve
        return [] if left == kept else [f"{what}: {_told(kept)} is left where {_told(left)} should be"]


def _told(left: tuple[Fraction, Fraction]) -> str:
    share, reserve = left
    return f"{share} (and {float(reserve):.3g} of the reserve)" if reserve else f"{share}"


class _Player(_Nameless):
    """The second run: the answers and coins of the first, and how far exact statistics moved."""

    def __init__(self, tape: _Recorder) -> None:
        self.tape = tape
        self.events: list[str] = []
        self.coins = iter(tape.coins)
        self.dice = Coins(tape.dice.units or set())
        self.movement: dict[str, float] = {}
        self.problems: list[str] = []
        self.requests = 0
        self.splits: list[Sequence[Curator]] = []
        self.moved: dict[int, ChargedCurator] = {}  # of each split, the part whose statistics moved

    def _next(self, kind: str) -> tuple[str, Any, Any]:
        number = len(self.events)
        self.events.append(kind)
        if number >= len(self.tape.events) or self.tape.events[number][0] != kind:
            self.problems.append(f"event {number} is {kind!r} in the neighbour's run alone")
            raise _Departed(f"the neighbour's run departs from the first one at event {number}, {kind!r}")
        return self.tape.events[number]

    def opened(self, curator: ChargedCurator, budget: Budget, facts: Mapping[str, Any]) -> None:
        _, seen, _ = self._next("opened")
        if seen != _seen((budget, facts, curator.cost)):
            self.problems.append("a curator was opened with other arguments")

    def answer(self, request: Request, draw: Callable[[], Any]) -> Any:
        _, before, values = self._next("asked")
        calls = self.tape.drawn[self.requests]
        self.requests += 1
        name = request.operator
        if before.operator != name:
            self.problems.append(f"{name} was asked in the place of {before.operator}")
            raise _Departed(f"the neighbour's run departs from the first one: {name}")
        for what in ("arguments", "share", "eta", "cost"):
            if _seen(getattr(before, what)) != _seen(getattr(request, what)):
                self.problems.append(f"{name}: its {what} differ")
        if before.mechanism.noise != request.mechanism.noise:
            self.problems.append(f"{name}: its noise differs")
        if type(before.mechanism) is not type(request.mechanism):
            self.problems.append(f"{name}: its mechanism differs")
        else:
            ratio = movement(before.mechanism, request.mechanism) / request.rows
            self.movement[name] = max(self.movement.get(name, 0.0), ratio)
            if not ratio <= 1.0 + _ROUNDING:
                self.problems.append(f"{name}: exact statistics moved by {ratio:.4g} of what scaled the noise")
            for number, parts in enumerate(self.splits):
                mine = ratio > 0 and any(part is request.curator for part in parts)
                if mine and self.moved.setdefault(number, request.curator) is not request.curator:
                    self.problems.append(f"{name}: exact statistics of two parts of the data moved")
            wrong = drawn_again(before.mechanism, request.mechanism, draw, values, calls)
            self.problems += [f"{name}: {problem}" for problem in wrong]
        return values

    def lent(self, curator: Curator, parts: Sequence[Curator]) -> None:
        self.splits.append(parts)

    def generator(self, make: Callable[[], np.random.Generator]) -> np.random.Generator:
        return np.random.default_rng(self._next("generator")[1])

    def parts(self, units: Callable[[], np.ndarray], n_parts: int, draw: Callable[[], np.ndarray]) -> np.ndarray:
        _, parts, _ = self._next("parts")
        if parts != n_parts:
            self.problems.append("the records were divided into another number of parts")
        before = next(self.coins)
        keys = _identities(units())
        # A record that was replaced leaves its coin to the one that is in its place.
        free = [coin for key, coin in before.items() if key not in keys]
        coins = [before[key] if key in before else (free.pop() if free else _coin(key, n_parts)) for key in keys]
        return np.array(coins, dtype=np.int64)

    def block_seeds(self, n_blocks: int, draw: Callable[[], list[int]]) -> list[int]:
        _, before, seeds = self._next("block seeds")
        if before != n_blocks:
            self.problems.append("another number of blocks voted")
            return draw()
        return seeds

    def sample(self, units: Callable[[], np.ndarray], rate: float, draw: Callable[[], np.ndarray]) -> np.ndarray:
        _, before, _ = self._next("sampled")
        if before != rate:
            self.problems.append("a sample was drawn with another rate")
        return self.dice.sample(units, rate)

    def keys(self, units: Callable[[], list[bytes]], draw: Callable[[], np.ndarray]) -> np.ndarray:
        self._next("numbered")
        return self.dice.keys(units)


class _Departed(BaseException):
    """Ends a run whose course has left the recorded one; an `except Exception` does not stop it."""


def _identities(records: np.ndarray) -> dict[tuple[bytes, int], None]:
    """Each record by its content and its place among the equal ones."""
    seen: Counter[bytes] = Counter()
    keys: dict[tuple[bytes, int], None] = {}
    for row in np.ascontiguousarray(records):
        content = row.tobytes()
        keys[content, seen[content]] = None
        seen[content] += 1
    return keys


def _coin(key: tuple[bytes, int], n_parts: int) -> int:
    digest = hashlib.blake2b(key[0] + key[1].to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % n_parts


def _seen(arguments: Any) -> bytes:
    """Public arguments as bytes: equal where they are equal to the last bit."""
    if isinstance(arguments, Mapping):
        return b"{" + b",".join(_seen(key) + b":" + _seen(value) for key, value in arguments.items()) + b"}"
    if isinstance(arguments, np.ndarray):
        return f"{arguments.dtype}{arguments.shape}".encode() + np.ascontiguousarray(arguments).tobytes()
    if isinstance(arguments, list | tuple):
        return b"[" + b",".join(map(_seen, arguments)) + b"]"
    return repr(arguments).encode()


def _short(value: Any) -> str:
    text = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
    return text if len(text) < 200 else text[:197] + "..."


class Coins:
    """Samples and random numbers of one run: coins by what a unit is and not by its place.

    A coin is a hash of a unit's content, of its number among equal ones and of the number of the draw. So a unit has
    the same coins in both runs, whatever else is in the data. Units that only one of the two datasets has are in every
    sample: else a step that they are not in would show nothing of them.

    Parameters
    ----------
    others : set of keys, optional
        The units of the other dataset. None where it is not known yet: then nothing may be sampled.
    """

    def __init__(self, others: set[Key] | None) -> None:
        self.others = others
        self.units: set[Key] | None = None
        self._draws = 0

    def sample(self, units: Callable[[], np.ndarray], rate: float) -> np.ndarray:
        """Positions of the units that take part, increasing."""
        keys = identities(np.ascontiguousarray(row).tobytes() for row in units())
        self.units = set(keys)
        assert self.others is not None
        self._draws += 1
        most = rate * 2.0**64
        heads = [key not in self.others or hashed(key, self._draws) < most for key in keys]
        return np.flatnonzero(np.array(heads, dtype=bool))

    def keys(self, units: Callable[[], list[bytes]]) -> np.ndarray:
        """A number for each part of a user."""
        self._draws += 1
        return np.array([hashed(key, self._draws) for key in identities(units())], dtype=np.uint64)


def identities(contents: Iterable[bytes]) -> list[Key]:
    """Return the identity of each unit: its content, and its number among the units of the same content.

    Examples
    --------
    >>> identities([b"a", b"b", b"a"])
    [(b'a', 0), (b'b', 0), (b'a', 1)]
    """
    seen: Counter[bytes] = Counter()
    keys = []
    for content in contents:
        keys.append((content, seen[content]))
        seen[content] += 1
    return keys


def hashed(key: Key, draw: int) -> int:
    """64 bits for a unit and a draw."""
    content, number = key
    text = content + number.to_bytes(8, "little") + draw.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
