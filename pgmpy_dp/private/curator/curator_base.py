"""A curator holds private data and a budget of which every answer takes a share; it is asked operators.

It divides data and budget into parts, and counts merged states. ``proof.md`` says why whatever is computed from its
answers has the guarantee that was charged when it was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np

from pgmpy_dp.checks import checked_number, exact_fraction, exact_integer
from pgmpy_dp.private import accounting
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.charged_base import ChargedCurator, Cost, require_to_open
from pgmpy_dp.private.curator.mechanism import Mechanism
from pgmpy_dp.private.curator.observer import observer
from pgmpy_dp.private.data.data_base import PrivateData, reading
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP, part_for_each, share_of_cost
from pgmpy_dp.private.noise.measures import noise_budget
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.private.trusted_types import require_trusted
from pgmpy_dp.schema import Schema

Answered = TypeVar("Answered")
Units = tuple[Callable[[], np.ndarray], int, Callable[[np.ndarray], PrivateData]]


def cost_of(budget: Budget, reserve: float = 0.0, *, pure: bool = False) -> PureDP | ZCDP:
    """The guarantee whose shares operators spend: zCDP wherever the budget allows it, else pure.

    Parameters
    ----------
    budget : Budget
        Of units of several records: what one record may cost
        (:class:`~pgmpy_dp.private.budget.UnitBudget`).
    reserve : float, default 0
        Part of an (epsilon, delta) budget's delta that is kept for operators that can fail; in [0, delta), or all of
        it where the cost is pure.
    pure : bool, default False
        Whether to spend epsilon in pure shares although the budget has a delta.

    Returns
    -------
    PureDP or ZCDP
        For (epsilon, delta) the largest rho that dp-accounting converts to (epsilon, delta - reserve).

    Raises
    ------
    ValueError
        For a reserve that the budget's delta cannot give, and pure shares of a rho budget.

    Examples
    --------
    >>> cost_of(Budget(epsilon=1.0)), cost_of(Budget(rho=0.1))
    (PureDP(epsilon=1.0), ZCDP(rho=0.1))
    """
    reserve = checked_number("reserve", reserve, positive=False, below_one=True)
    if reserve > budget.delta or (reserve == budget.delta > 0 and not pure):
        raise ValueError(
            f"reserve={reserve!r} is too much for the delta of the budget {budget}, of which it is a part; pass an "
            "epsilon with a larger delta, or no reserve"
        )
    if budget.rho is not None:
        if pure:
            raise ValueError(f"pure shares were asked of the budget {budget}, which has no epsilon; pass an epsilon")
        return part_for_each(ZCDP(budget.rho), budget.rows)
    assert budget.epsilon is not None
    if pure or not budget.delta:
        return part_for_each(PureDP(budget.epsilon), budget.rows)
    # Rounded down: what converts and what is kept are not more than delta together.
    converting = float(np.nextafter(budget.delta - reserve, 0.0)) if reserve else budget.delta
    return part_for_each(ZCDP(accounting.approx_to_zcdp(budget.epsilon, converting)), budget.rows)


_LEAST_SHARE = Fraction(1, 10**100)


def checked_share(share: Fraction | float) -> Fraction:
    """A share as an exact fraction; ValueError if it is not positive."""
    exact = exact_fraction(share, "share")
    if exact <= 0:
        raise ValueError(f"share={share!r} is not positive; pass the part of the curator's cost to spend")
    if exact < _LEAST_SHARE:
        raise ValueError(f"share={share!r} is less than {float(_LEAST_SHARE):g}, whose noise would bury any count")
    return exact


def checked_eta(eta: Fraction | float) -> Fraction:
    """A part of the reserve as an exact fraction; ValueError if it is not in (0, 1)."""
    exact = exact_fraction(eta, "eta")
    if not 0 < exact < 1:
        raise ValueError(
            f"eta={float(exact)!r} is not between 0 and 1; pass the part of the curator's reserve to spend"
        )
    return exact


def _plain(value: Any) -> Any:
    """The same as lists and dictionaries of its own, which a file can hold."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


class Curator(ChargedCurator):
    """Private data with a budget of their own, of which every answer takes a share.

    Opening a curator charges the data's ledger with the whole budget, before anything is counted; nothing is returned.
    What it cost, what is left and what was answered are attributes that every curator has.

    Parameters
    ----------
    data : PrivateData
    budget : Budget
        What may be spent through this curator. Of (epsilon, delta) it has the largest rho that converts to it.
    what : str
        The purpose, for readers of the ledger.
    mechanism : str, optional
        The mechanism, for readers of the ledger and of the release. Default: the kind of noise.
    columns : iterable of hashable
        Columns whose values answers may depend on, for readers of the ledger. Default: all.
    reserve : float, default 0
        Part of delta kept for operators that can fail.
    pure : bool, default False
        Whether to spend the epsilon of an (epsilon, delta) budget in pure shares, instead of the rho that converts.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. Nothing is protected then.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left.
    TypeError, ValueError
        For data of another kind, a budget that is none, a reserve that the budget cannot give.

    Notes
    -----
    Privacy: see ``proof.md``. Operators take public arguments and a share, and know sensitivities themselves; a plan
    that is wrong can waste budget or learn badly. A curator refuses calls in a copy of its process, and refuses to be
    copied or pickled: its shares could be spent twice. It refuses calls while code from outside the boundary sees
    records of the same data, and calls of a thread that is in the middle of an answer to it. Subclasses from elsewhere
    are not opened: they could set the numbers that noise is made from.
    """

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        *,
        what: str,
        columns: Iterable[Hashable] | None = None,
        mechanism: str | None = None,
        reserve: float = 0.0,
        pure: bool = False,
        random_state: int | None = None,
    ) -> None:
        require_to_open(self, data, budget)
        # Read once: what the ledger is charged is what operators have.
        reserve = checked_number("reserve", reserve, positive=False, below_one=True)
        cost = cost_of(Budget.of(budget.guarantee), reserve, pure=pure)
        mechanism = mechanism or noise_budget(cost).distribution
        named: Any = {"what": what, "columns": columns, "mechanism": mechanism, "random_state": random_state}
        self._open(data, budget, cost, cost.with_reserve(reserve) if reserve else cost, **named)
        self._reserve = Fraction(reserve)

    def _of_a_record(self, cost: Any) -> Any:
        return part_for_each(cost, self._data._rows_of_unit)

    def _start(self, data: PrivateData, cost: Cost, rng: np.random.Generator | None) -> None:
        super()._start(data, cost, rng)
        self._reserve = Fraction(0)
        self._fine: dict[str, Any] | None = None  # what was asked before states merged
        self._parts: list[Curator] = []  # that have what is left, as long as their block lasts
        self._closed = False

    def _public(self) -> dict[str, Any]:
        gathered: dict[str, list] = {}
        for answer in self._all("_answers"):
            for name, said in answer.public.items():
                gathered.setdefault(name, []).extend(map(_plain, said))
        facts = super()._public() | (self._facts.public | gathered if gathered else {})
        return facts if self._fine is None else {**facts, "fine": self._fine}

    def ask(self, operator: Operator[Answered], share: Fraction | float, eta: Fraction | float = 0) -> Answered:
        """Ask an operator about the data; the answer has the noise that a share of the cost pays for.

        Parameters
        ----------
        operator : Operator
            Of a class of :mod:`pgmpy_dp.private.operators`. Its docstring has the sensitivity and the guarantee.
        share : Fraction or float
            Of the curator's cost.
        eta : Fraction or float, default 0
            Of its reserve, for operators that can fail.

        Returns
        -------
        object
            What the operator's docstring says.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        RuntimeError
            Where states were merged meanwhile, by another thread say; nothing is spent.
        TypeError, ValueError
            For what is no operator, for an operator that does not suit these data, for bad arguments, and for noise
            that would bury any count; nothing is spent.

        Notes
        -----
        Privacy
            The question is copied, and its noise planned from public facts, before this curator's turn. In its turn
            these facts are still the same, the share is debited, and the copy counts. So nothing that the caller can
            change has a part in the noise or in what is counted.
        """
        request, facts, mechanism, share, eta = self._planned(operator, share, eta)
        arguments = request.arguments(facts)
        with self._turn():
            if facts is not self._facts:
                raise RuntimeError(
                    "states were merged while this question was asked, which is of those before; ask again"
                )
            drawn = self._answer_now(
                request.name,
                arguments,
                share,
                lambda _cost, _share: mechanism.over(request._exact(self._data, facts, mechanism, self._coins)),
                eta,
                keep=request.kept,
                of_units=request.of_units,
                noted=request.noted(facts, arguments),
                names=request.names,
                public=request.public(),
            )
        return request.answered(drawn)

    def noise(self, operator: Operator[Any], share: Fraction | float = 1) -> tuple[Noise | None, ...]:
        """The noise that asking would add, of each array: public; refuses what :meth:`ask` does, and spends nothing."""
        return self._planned(operator, share, 0)[2].noise

    def _planned(
        self, operator: Operator[Answered], share: Fraction | float, eta: Fraction | float
    ) -> tuple[Operator[Answered], Any, Mechanism, Fraction, Fraction]:
        """A question as this curator's own copy, the facts that it is about, its noise, share and eta."""
        cls, facts = type(operator), self._facts
        if not issubclass(cls, Operator):
            raise TypeError(f"operator={operator!r} is a {cls.__name__}; pass an operator, e.g. Tables([('a',)])")
        require_trusted("operator", operator, "ask one of those that are there")
        if not isinstance(facts, cls.asks):
            raise TypeError(f"{cls.__name__} is no question about a {type(self._data).__name__}")
        request, share, eta = cls.checked(operator, facts), checked_share(share), exact_fraction(eta, "eta")
        if eta and not request.of_units and self._data._rows_of_unit > 1:
            # A group's eta is more than m times a record's.
            raise ValueError(f"{cls.name} can fail, and its proof is for single records; pass rows_per_unit=1")
        if eta and not request.can_fail:
            raise ValueError(f"eta={float(eta)!r} for {cls.name}, which cannot fail; leave it out")
        cost = self._unit_cost if request.of_units else self._cost
        return request, facts, request.mechanism(facts, cost, share, eta), share, eta

    def merge(self, schema: Any, places: Mapping[Hashable, Sequence[int]]) -> None:
        """Count a table in fewer states from now on; nothing is asked of the records.

        Parameters
        ----------
        schema : Schema
            The variables with their merged states.
        places : mapping of name to sequence of int
            For each variable that changes, which merged state each of its states became: public, or a function of what
            was released.

        Raises
        ------
        TypeError, ValueError
            Where these do not agree with the schema before, and for data without states.

        Notes
        -----
        Privacy
            A record's merged state is a function of its state, hence of that record alone, and so it is when merged
            states merge again. So a record adds 1 to one cell of a merged table, as it does in any other, and the
            sensitivities of all operators are what they were.
        """
        after = Schema.coerce(schema, argument="schema")
        checked = {name: tuple([exact_integer(place) for place in listed]) for name, listed in places.items()}
        with self._turn():
            merged = self._data._merged(after, checked)
            facts = merged.facts()
            fine = {"schema": self._facts.schema.to_dict(), "tables": len(self.arrays), **facts.arguments}
            if self._fine is not None:
                fine["fine"] = self._fine
            self._data, self._facts, self._fine = merged, facts, fine

    def split(self, n_parts: int) -> AbstractContextManager[list[Self]]:
        """Curators of disjoint random parts of the data's units, each with all that this one has left.

        This one answers nothing until the `with` block ends, and then loses the largest share that one of them used.

        Parameters
        ----------
        n_parts : int

        Yields
        ------
        list of Curator
            Their numbers of records are private, also where that of the data is public.

        Notes
        -----
        Memory: parts are codes in memory, a byte a cell for up to 256 states. Data behind a path or an engine are
        fetched for that, once for all splits (``docs/engines.md``): with their parts 2 GB for 10^8 records of 10
        variables.

        Privacy
            Every record (of a graph every pair of vertices, of data with a unit every unit) goes to a part by a draw of
            its own, and the guarantees of the parts do not add up.

            *One part differs.* Give neighbouring data the same draws: the one record that differs is in the same part
            in both, whatever it holds, and the other parts are the same, under every adjacency. The draws are
            independent of the records, hence have one distribution under both data, and a guarantee that holds given
            the draws holds on average over them: for (epsilon, delta) by linearity in the probabilities, for zCDP by
            joint quasi-convexity of Renyi divergences. Draws are made for kept records; a record that is outside the
            schema in one of the tables has a draw in the other only, which changes nothing for the others. (Parts by a
            hash of the content, or by position among the kept records, would change two parts, or many.)

            *Parallel composition.* If mechanism A satisfies rho-zCDP, or epsilon-DP, under the data's adjacency, and B
            too, then running A on one part and B on another satisfies it together; A and B may be chosen one after the
            other, B by A's output.
        """
        return self._parted(n_parts, self._data._split)

    def _child(self, data: PrivateData) -> Self:
        """A curator of a part of the data, which has nothing to spend until it is lent something."""
        child = object.__new__(type(self))
        child._start(data, self._unit_cost, self._rng)
        child._mechanism, child._guarantee, child._paid = self._mechanism, self._guarantee, self._paid
        child._fine, child._known = self._fine, self._known
        return child

    @contextmanager
    def _parted(self, n_parts: int, read: Callable[[], Units]) -> Iterator[list[Any]]:
        """Curators of random parts of the units that `read` finds: what they are, how many, and the data of some."""
        self._require_open()  # before records are read and coins drawn that nobody would use
        parts = self._children(n_parts, read)
        with self._lending(list(parts)):
            yield parts

    @reading("read: nothing was released")
    def _children(self, n_parts: int, read: Callable[[], Units]) -> list[Self]:
        units, count, made = read()
        part = self._coins.parts(units, count, n_parts)
        return [self._child(made(part == k)) for k in range(n_parts)]

    @contextmanager
    def _lending(self, parts: list[Curator]) -> Iterator[None]:
        """Parts have this curator's share and reserve until the block ends; then it loses the most that one used."""
        lent = list(parts)
        try:
            with self._turn():
                for part in parts:
                    part._left, part._reserve = self._left, self._reserve
                self._parts = lent
            observer().lent(self, parts)
            yield
        finally:
            if self._parts is lent:  # else the block around this one has ended before it, and closed everything
                with self._turns.taken():
                    self._reclaim()

    def _reclaim(self) -> None:
        """Close the parts for good, with the parts of parts whose blocks may last still; take back what is left.

        It takes this curator's turn and then, from the outermost to the innermost, those of all its parts: where this
        thread is in the middle of a part's answer, it is refused before that part is closed.
        """
        with ExitStack() as turns:
            for part in self._parts:
                turns.enter_context(part._turns.taken())
                part._reclaim()
            if parts := self._parts:
                for part in parts:
                    part._closed = True
                left, reserve = min([part._left for part in parts]), min([part._reserve for part in parts])
                answers, picked, vouched = self._all("_answers"), self._all("_picked"), self._all("_vouched")
                answered = self._has_answered()
                # No call, hence no signal's handler, comes between these: all of it is as it was, or as it is to be.
                self._answers, self._picked, self._vouched, self._answered = answers, picked, vouched, answered
                self._left, self._reserve, self._parts = left, reserve, []
                observer().returned(self, parts)

    def _all(self, name: str) -> list[Any]:
        """A list of this one's, with those of the parts whose blocks last: what they answered is this one's."""
        return super()._all(name) + [item for part in self._parts for item in part._all(name)]

    def _has_answered(self) -> bool:
        return self._answered or True in [part._has_answered() for part in self._parts]

    def _require_open(self) -> None:
        super()._require_open()
        if self._closed:
            raise RuntimeError(
                "this curator's `with` block has ended, and its budget went back to the one it is part of"
            )
        if self._parts:
            raise RuntimeError("this curator's budget is with its parts; ask them, or end their `with` block first")

    def _debit(self, operator: str, share: Fraction, eta: Fraction) -> None:
        """Take a share, and a part of the reserve; BudgetExceeded, and nothing taken, where too little is left."""
        if share > self._left:
            raise BudgetExceeded(
                f"refused: a share of {float(share):.6g} of {self._unit_cost} was asked, {float(self._left):.6g} is "
                "left; ask for less, or use what was released already",
                spent=share_of_cost(self._unit_cost, 1 - self._left),
                asked=share_of_cost(self._unit_cost, share),
                left=share_of_cost(self._unit_cost, self._left),
            )
        if eta < 0 or eta > self._reserve:
            raise ValueError(
                f"eta={float(eta):.3g} was asked of a reserve of {float(self._reserve):.3g}: this operator can fail, "
                "which delta pays for; open the curator with an (epsilon, delta) budget and a larger reserve"
            )
        self._left -= share
        self._reserve -= eta
