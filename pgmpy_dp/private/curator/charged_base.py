"""The base of all curators: private data that a ledger was charged for, and the answers about them.

Its subclasses say how it pays for an answer: by a share, or by a place on a schedule. ``proof.md`` says why whatever is
computed from a curator's answers has the guarantee that was charged at its opening.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from secrets import token_hex
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.mechanism import Mechanism
from pgmpy_dp.private.curator.observer import Coins, Request, observer
from pgmpy_dp.private.data.data_base import PrivateData, reading, require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from pgmpy_dp.private.named_values import Question, distinct_names, told
from pgmpy_dp.private.noise.samplers import exercised, seeded_generator
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.private.trusted_types import require_trusted
from pgmpy_dp.private.turns import Turns

Step = TypeVar("Step")
Cost = PureDP | ZCDP | ApproxDP  # the last for curators whose operators are accounted jointly

_NOTHING = Fraction(0)
_BUSY = "this curator is answering a question; ask the next one after that"


@dataclass(frozen=True)
class Answer:
    """The noisy arrays that one operator released, and their noise.

    Attributes
    ----------
    operator : str
    arguments : mapping
        Public arguments, as the operator checked them; of very many, their number. They cannot be changed.
    share : Fraction
        Of the curator's cost.
    mechanism : str
    values : object
        What the operator returned: noisy arrays, in a tuple where there are several; a position.
    noise : tuple of Noise or None
        One per array.
    question : Question
        The same for a release, as it was when it was asked.
    names : tuple of str
        Of the arrays, in a release.
    public : mapping of str to list
        What a release says because of it, after what it says because of others.
    """

    operator: str
    arguments: Mapping[str, Any]
    share: Fraction
    mechanism: str
    values: Any
    noise: tuple[Noise | None, ...]
    question: Question
    names: tuple[str, ...] = ()
    public: Mapping[str, Any] = field(default_factory=dict)


def _fixed(value: Any) -> Any:
    """An array whose numbers are bytes of Python, which nobody makes writeable again; anything else as it is."""
    return np.ndarray(value.shape, value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value


def _kept_as_it_is(value: Any) -> Any:
    """A public argument that nobody can change any more: mappings and lists are copied, arrays read-only copies."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: _kept_as_it_is(item) for name, item in value.items()})
    if isinstance(value, list | tuple):
        try:
            hash(value)  # thousands of scopes: there is nothing in them to copy
        except TypeError:
            return tuple(map(_kept_as_it_is, value))
    if isinstance(value, np.ndarray):
        return _fixed(value)
    return value


def require_to_open(curator: ChargedCurator, data: PrivateData, budget: Budget) -> None:
    """Raise TypeError for a curator or data of others, and for what is no budget; no method, which they would have."""
    require_trusted("this curator", curator, "write a plan that asks one of those there are")
    require_data_and_budget(data, curator.kind, budget)
    require_trusted("data", data, "a curator takes the kinds of private data that there are")


class ChargedCurator(ABC):
    """Private data that a ledger was charged for, whole, before anything is counted; abstract.

    :class:`~pgmpy_dp.private.curator.curator_base.Curator` divides the charge into shares; an answer costs the share
    that is named with the question. :class:`~pgmpy_dp.private.curator.schedule.GradientCurator` has a schedule instead,
    and counts requests: nothing else can be asked of it.

    Attributes
    ----------
    left : Fraction
        What is not spent, of 1.
    cost : PureDP, ZCDP or ApproxDP
        The cost of everything together; where units have several records, that for one record. ApproxDP where operators
        are accounted jointly. Noise is scaled by it, so it cannot be set.
    unit_cost : PureDP, ZCDP or ApproxDP
        The cost of everything together, for a unit: the ledger is charged it. The same where a record is a unit.
    answers : tuple of Answer
        What was released, oldest first.
    """

    kind: type[PrivateData] = PrivateData
    """Of the data that it takes."""

    _cost: Any  # PureDP or ZCDP; ApproxDP where operators are accounted jointly
    _unit_cost: Any
    _reserve = Fraction(0)  # of delta, for operators that can fail
    _paid: Mapping[str, str]  # the names of the ledger and of its charge

    def _open(
        self,
        data: PrivateData,
        budget: Budget,
        cost: Cost,
        charged: Guarantee,
        *,
        what: str,
        columns: Iterable[Hashable] | None,
        mechanism: str,
        random_state: int | None,
    ) -> None:
        """Charge the data's ledger; only then there is something to spend.

        A subclass sets its other attributes afterwards: whoever opens a curator a second time changes nothing of the
        first.
        """
        self._start(data, cost, seeded_generator(random_state))
        if data._in_other_hands:
            raise RuntimeError("a solver or a block function sees these records now; open the curator after it is done")
        self._mechanism, self._guarantee = mechanism, charged
        facts: dict[str, Any] = {
            "what": what,
            "columns": tuple(data._names if columns is None else columns),
            "mechanism": self._mechanism,
            "adjacency": data.adjacency,
            "reproducible": self._rng is not None,
        }
        # What can be missing, or busy, is found before anything is spent.
        if self._rng is None:
            exercised()
        data.ledger.charge(charged, unit=self.unit, public_tables=data._agreed, **facts)
        for plan in data._plans:
            plan.append(charged)
        # Only now is there anything to spend: an object whose opening was refused answers nothing.
        self._left = Fraction(1)
        self._known = data.ledger._known()
        if self._rng is None:  # what is repeatable has no name of its own
            self._paid = observer().paid({"ledger": data.ledger.id, "charge": token_hex(16)})
        observer().opened(self, budget, facts)

    def _of_a_record(self, cost: Any) -> Any:
        """Return the part of a unit's cost for an operator that knows how far one record moves its answer."""
        return cost

    def _start(self, data: PrivateData, cost: Cost, rng: np.random.Generator | None) -> None:
        # In one step: another thread, or an argument while it was read, may be opening it.
        if vars(self).setdefault("_began", mine := object()) is not mine:
            raise RuntimeError("a curator is opened once; make another one")
        self._data, self._unit_cost, self._rng, self._coins = data._like_this(), cost, rng, Coins(rng)
        self._facts: Any = self._data.facts()
        self._cost = self._of_a_record(cost)
        self._left = Fraction(0)
        self._answers: list[Answer] = []
        self._answered, self._interrupted = False, False
        self._vouched: list[str] = []
        self._paid, self._known = {}, dict[str, Any]()
        self._picked: list[tuple[np.ndarray, Noise | None, Answer]] = []
        self._turns = Turns(_BUSY)

    @property
    def cost(self) -> Any:
        """The cost of everything together, for one record where units have several."""
        return replace(self._cost)  # its own is in nobody's hands

    @property
    def unit_cost(self) -> Any:
        """The cost of everything together, for a unit."""
        return replace(self._unit_cost)

    @property
    def left(self) -> Fraction:
        """The shares that are not spent; they begin as 1."""
        return self._left

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers that were released, oldest first."""
        return tuple(replace(answer, question=answer.question.copy()) for answer in self._answers)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All arrays of the answers, oldest first; without those of steps, which a plan sums up as they come."""
        return tuple(value for value, *_ in self._drawn())

    @property
    def named(self) -> dict[str, np.ndarray]:
        """The same by the names that a release gives them, where the plan gives none."""
        answers = list({id(answer): answer for *_, answer in self._drawn()}.values())
        return dict(zip(distinct_names(name for answer in answers for name in answer.names), self.arrays, strict=True))

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency under which the guarantee holds."""
        return self._data.adjacency

    @property
    def facts(self) -> Any:
        """The public facts of the data, as they are counted now."""
        return replace(self._facts)

    @property
    def unit(self) -> Hashable:
        """The protected unit: None is one record; else the column each value of which, with all rows, is protected."""
        return self._data.unit

    def generator(self) -> np.random.Generator:
        """The generator of a plan's own random numbers, such as starting points; never of noise that protects.

        It is seeded by the operating system, or is that of `random_state`.
        """
        with self._turn():
            return self._coins.generator()

    def called(self, *names: str) -> dict[str, np.ndarray]:
        """The same by names that the plan gives; those at the end that there are no arrays for are left out."""
        return dict(zip(names, self.arrays, strict=False))

    def release(
        self,
        kind: str,
        facts: Mapping[str, Any],
        values: Mapping[str, np.ndarray] | None = None,
    ) -> Release:
        """Everything that was released so far, with its noise and the guarantee.

        It can be taken at any time, also after an interruption: what was paid for is not lost.

        Parameters
        ----------
        kind : str
        facts : mapping
            The plan's facts. They do not replace those of the boundary.
        values : mapping of str to ndarray of integers, optional
            What the plan keeps, by its names. An array that an operator returned has that operator's noise; any other
            was computed from answers, and is marked as without noise. Default: `named`.
        """
        drawn = self._drawn()
        kept = self.named if values is None else dict(values.items())  # read once: names, arrays and noise agree
        every = (*drawn, *self._all("_picked"))
        known = {id(value): (noise, answer) for value, noise, answer in every}  # kept, with their ids
        of_each = [known.get(id(value), (None, None)) for value in kept.values()]
        return Release(
            kind=kind,
            values=tuple(kept.values()),
            noise=tuple(noise for noise, _ in of_each),
            public={**self._public(), **self._marks()},
            adjacency=self.adjacency,
            guarantee=self._guarantee,
            mechanism=self._mechanism,
            reproducible=self._rng is not None,
            facts=facts,
            questions=tuple(None if answer is None else answer.question for _, answer in of_each),
            names=tuple(kept),
        )

    def picked(self, array: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Some entries of an array that an operator returned, which keep its noise in a release."""
        (known,) = (known for value, *known in self._drawn() if value is array)
        self._picked.append((_fixed(array[places]), *known))
        return self._picked[-1][0]

    @contextmanager
    def keeping(self, release: Callable[[], Release | None] = lambda: None) -> Iterator[None]:
        """An exception that ends the block early, Ctrl-C too, carries what `release` makes of the answers so far.

        The release says so: its ``public["interrupted"]`` is True. Where `release` returns None, it is of kind
        "interrupted", and has all answers.
        """
        try:
            yield
        except BaseException as error:
            self._interrupted = True
            if self._has_answered():
                error.release = release() or self.release("interrupted", {})  # type: ignore[attr-defined]
                error.add_note("What was released so far is paid for: it is this exception's .release, for fit_release")
            raise

    def following(self, steps: Generator[Step, None, None], release: Callable[[Step], Release]) -> Release:
        """The release of the last of a plan's steps; what ends them early has that of the step before it.

        Parameters
        ----------
        steps : generator
            States of the plan, for example one after each answer.
        release : callable
            Makes a release from one of them.
        """
        last: Step | None = None
        with self.keeping(lambda: None if last is None else release(last)), closing(steps):
            for step in steps:
                last = step
        assert last is not None
        return release(last)

    def _drawn(self) -> list[tuple[np.ndarray, Noise | None, Answer]]:
        noisy = [answer for answer in self._all("_answers") if answer.noise]
        return [(*pair, answer) for answer in noisy for pair in zip(answer.values, answer.noise, strict=True)]

    def _public(self) -> dict[str, Any]:
        """Public facts of the data, and of what was asked."""
        return self._data._public()

    def _marks(self) -> dict[str, Any]:
        """Return the facts that a release has to tell of its answers, whatever the plan tells."""
        vouched = sorted(set(self._all("_vouched")))
        marks = ({"vouched_for": vouched} if vouched else {}) | ({"interrupted": True} if self._interrupted else {})
        return marks | self._known | ({"paid": dict(self._paid)} if self._paid else {})

    @reading("counted: nothing was released, and the share is spent")
    def _answer_now(
        self,
        operator: str,
        arguments: Mapping[str, Any],
        share: Fraction,
        mechanism: Callable[[Any, Fraction], Mechanism],
        eta: Fraction = _NOTHING,
        *,
        keep: bool = True,
        of_units: bool = False,
        noted: Mapping[str, Any] | None = None,
        names: Callable[[int], Sequence[str]] | None = None,
        public: Mapping[str, Any] | None = None,
    ) -> Any:
        """Debit, count, draw, remember: the one way out. In this thread's turn, of a share and an eta that are checked.

        `mechanism` counts; it is called after the debit. An operator whose proof is for units, with all their records,
        says so (`of_units`) and has a unit's cost to spend. Steps of which a plan keeps the sum are not remembered
        (`keep`): they would take memory without end. So would large arguments, which smaller ones replace (`noted`).
        """
        # Whoever has numpy's errors raised or printed would see there what records overflow.
        with np.errstate(all="ignore"):
            self._debit(operator, share, eta)
            exact = mechanism(self._unit_cost if of_units else self._cost, share)
            rows = 1 if of_units else self._data._rows_of_unit
            request = Request(self, operator, arguments, share, eta, self._unit_cost, exact, rows)
            values = observer().answer(request, lambda: request.mechanism.draw(self._rng))
            # The release says what was answered, whatever a plan does.
            several = isinstance(values, list | tuple)
            values = type(values)(map(_fixed, values)) if several else _fixed(values)
            self._answered = True
            if arguments.get("vouched_for"):
                self._vouched.append(arguments["function"])
            if keep:
                said = _kept_as_it_is(arguments if noted is None else noted)
                kept = tuple(values) if isinstance(values, list) else values
                question = Question(operator, told(said), str(share), exact.name)
                called = tuple([operator] * len(exact.noise) if names is None else names(len(exact.noise)))
                shown = _kept_as_it_is(public or {})
                self._answers.append(
                    Answer(operator, said, share, exact.name, kept, exact.noise, question, called, shown)
                )
            return values

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Change an open curator; who may not, a fork too, is refused before it would wait for the lock."""
        self._require_open()
        with self._turns.taken():
            self._require_open()
            yield

    def _require_open(self) -> None:
        if self._turns.process != os.getpid():
            raise RuntimeError(
                "this curator is a copy in another process (a fork) than the one that opened it: its budget could be "
                "spent twice; open a curator in each process, with a ledger in a file (Ledger.open)"
            )
        if self._data._in_other_hands:
            raise RuntimeError(
                "a solver or a block function sees these records now; no curator of them answers meanwhile"
            )

    @abstractmethod
    def _debit(self, operator: str, share: Fraction, eta: Fraction) -> None:
        """Take what an answer costs; BudgetExceeded, and nothing taken, where that is not there."""

    def _all(self, name: str) -> list[Any]:
        """A list of what was answered."""
        return list(getattr(self, name))

    def _has_answered(self) -> bool:
        return self._answered

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(cost={self._unit_cost}, left={float(self._left):.6g}, answers={len(self._answers)})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: its budget could be spent twice, and it holds "
            "private records; keep its release"
        )
