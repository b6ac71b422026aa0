"""A model that leaves only if it meets criteria that were declared before, tested with noise; else nothing leaves."""

from __future__ import annotations

import gc
import logging
import math
import os
import traceback
from asyncio import CancelledError
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from pgmpy_dp.checks import checked_number, require_flag
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.privacy_record import released
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.pgmpy_config import bars
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget, unit_budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.silence import silence
from pgmpy_dp.schema import Schema
from pgmpy_dp.tables.networks.budget_shares import network_shares, select_and_measure
from pgmpy_dp.tables.networks.private_network import PrivateNetwork
from pgmpy_dp.tables.publishing import noisy_test
from pgmpy_dp.tables.publishing.criteria import Criteria

MARK = "publish only if "
"""What every charge of an attempt begins with in a ledger: it is how a second one is seen."""


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Shown):
    """Whether a model was published; true if it was, and ``str`` of it is what may be told.

    Attributes
    ----------
    published : bool
    learner : PrivateNetwork or None
        Fitted; None where nothing was published.
    tests : pandas.DataFrame or None
        For each criterion its bound, its noisy value, and whether it is met; None where nothing was published.
    """

    published: bool
    learner: PrivateNetwork | None = None
    tests: pd.DataFrame | None = None

    def __bool__(self) -> bool:
        return self.published

    @property
    def model_(self) -> MarkovNetwork | None:
        """The model; None where nothing was published."""
        return None if self.learner is None else self.learner.model_

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        tests = (
            [] if self.tests is None else self.tests[["criterion", "bound", "found"]].astype(object).to_dict("records")
        )
        return {"published": self.published, **({"tests": tests} if self.published else {})}

    def __str__(self) -> str:
        if self.tests is None:
            return "No: the criteria are not met, in a test with noise. Nothing is published, and nothing else is told."
        lines = [f"  {row.criterion}: {row.found:.4g}, with noise" for row in self.tests.itertuples()]
        return "\n".join([str(self.learner), "Published because all criteria are met:", *lines])

    def __repr__(self) -> str:
        return "Decision(no)" if self.learner is None else f"Decision(yes, {self.learner.model_!r})"


def publish_if(df: Any, budget: Budget, criteria: Any, schema: Any = None, **how: Any) -> Decision:
    """Publish a model of one table or not, for :func:`pgmpy_dp.publish_if`; `how` has its options and the learner's."""
    answer = _attempted(df, budget, criteria, schema, **how)
    if not isinstance(answer, tuple):
        gc.collect()  # of what was released nothing stays, not even as garbage
    if isinstance(answer, type):  # out of the frames that had what was released
        raise answer("the fit or its test ended without an answer: nothing is published, and the budget is spent")
    if answer is None:
        return Decision(False)
    learner, tests = answer
    learner._warn(stacklevel=3)
    return Decision(True, learner, tests)


def preview_publish_if(
    criteria: Any,
    n: int,
    budget: Budget,
    schema: Schema | dict,
    *,
    test_share: float = 0.1,
    rows_per_unit: int | str = 1,
) -> pd.DataFrame:
    """Preview the margins of `publish_if`'s test, from public numbers: nothing is spent and no record is read.

    Parameters
    ----------
    criteria, budget, schema, test_share, rows_per_unit
        As `publish_if` takes them.
    n : int
        The assumed number of records: a public guess.

    Returns
    -------
    pandas.DataFrame
        For each criterion its ``bound`` and the ``margin``. If every error is below its bound by the margin or more,
        and every bound is twice its margin or more, the answer is "no" with a probability of at most `CHANCE`. If one
        error is above its bound by more than the margin, it is "yes" with one of at most `CHANCE`, over twice the
        number of criteria. In between it is either. A bound below its margin is never met: ask for more budget.
        ``sd``: the standard deviation of the noise, in records.

    Examples
    --------
    >>> criteria = [{"test": "distance", "at_most": 0.03}]
    >>> margins = preview_publish_if(criteria, 20_000, Budget(epsilon=1.0, delta=1e-9), {"a": [0, 1], "b": [0, 1]})
    >>> margins["margin"].round(4).tolist()
    [0.0019]
    """
    require_budget(budget)
    share = Fraction(checked_number("test_share", test_share, positive=True, below_one=True))
    n = int(checked_number("n", n, positive=True))
    declared = Criteria.of(criteria, Schema.coerce(schema, argument="schema"))
    test = unit_budget(_budgets(cost_of(budget), share)[1], rows_per_unit)
    sd = noisy_test.planned_noise(declared, test)[0].variance ** 0.5
    margins = noisy_test.margins(declared, n, test, noisy_test.CHANCE)
    rows = [(str(one), one.bound, margin, sd) for one, margin in zip(declared.each, margins, strict=True)]
    return pd.DataFrame(rows, columns=["criterion", "bound", "margin", "sd"])


def _budgets(whole: PureDP | ZCDP, share: Fraction) -> tuple[Budget, Budget]:
    """The budgets of the fit and of the test, which sum to the whole."""
    cost_type, test = type(whole), float(share * whole.amount)
    fit = float(whole.amount - Fraction(test))
    while Fraction(fit) + Fraction(test) > whole.amount:
        fit = math.nextafter(fit, 0.0)
    return Budget.of(cost_type(fit)), Budget.of(cost_type(test))


def _opened(ledger: Any, budget: Budget, adjacency: str) -> Ledger:
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise TypeError(f"ledger={ledger!r} is a {type(ledger).__name__}; pass the file of the records' ledger")
    whole = None if Path(ledger).exists() else budget
    return Ledger.open(Path(ledger), whole, adjacency=adjacency, at_once=False)


def _attempts(ledger: Ledger) -> int:
    return sum(entry.what.startswith(MARK) for entry in ledger.entries)


_Answer = tuple[PrivateNetwork, pd.DataFrame] | type[BaseException] | None


def _attempted(
    df: Any,
    budget: Budget,
    criteria: Any,
    schema: Any,
    *,
    ledger: Any = None,
    test_share: float = 0.1,
    again: bool = False,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
    **options: Any,
) -> _Answer:
    """Check, charge, and answer: what was learned and its test, if it may be seen; None for "no"; a kind of error."""
    require_budget(budget)
    require_flag("again", again)
    share = Fraction(checked_number("test_share", test_share, positive=True, below_one=True))
    whole = cost_of(budget)
    fit, test = _budgets(whole, share)
    if isinstance(df, PrivateTable):
        if ledger is not None:
            raise TypeError("ledger was passed with a PrivateTable, which has one; pass ledger=None")
        account, known = df.ledger, df.schema
        options = {"adjacency": str(df.adjacency), **options}
    else:
        known = Schema.coerce(schema, argument="schema")
    declared = Criteria.of(criteria, known)
    if not isinstance(df, PrivateTable):
        account = _opened(ledger, budget, options.get("adjacency", str(Adjacency.ADD_REMOVE)))
    if account.path is None:
        raise ValueError("the ledger is in memory: pass one in a file (Ledger.open), which remembers the attempt")
    learner = PrivateNetwork(fit.epsilon, fit.delta, fit.rho, schema, **options)
    taken, table, _ = learner._prepared(df, account, unit=unit, rows_per_unit=rows_per_unit)
    # What the plans of both parts would refuse is refused now.
    network_shares(table.schema, table.adjacency, taken._options, require_table_and_budget(table, fit))
    noisy_test.planned_noise(declared, require_table_and_budget(table, test))
    if _attempts(account) and not again:
        raise ValueError(
            f"{str(account.path)!r} has an attempt to publish already: what a second one publishes is selected among "
            "several, and costs as much again; pass again=True (--again) if that is meant, and it will say so"
        )
    n = len(declared)
    met = "1 criterion is met" if n == 1 else f"{n} criteria are met"
    what = f"{MARK}{met} ({declared.digest[:16]}): the fit and its test"
    seed = options.get("random_state")
    part = table.set_aside(whole, what=what, mechanism=select_and_measure(whole), reproducible=seed is not None)
    attempt = _attempts(account)
    if attempt > 1 and not again:
        raise RuntimeError("another attempt was charged at the same time: nothing was counted, and the budget is spent")
    facts = {
        "name": declared.name,
        "criteria": [str(one) for one in declared.each],
        "digest": declared.digest,
        "declared": declared.declared,
        "attempt": attempt,
        "test_share": float(share),
    }
    public = {"settings": {"budget": budget.guarantee.to_dict()}, "published_if": facts}
    return _answer(learner.clone(), taken, table, part, (fit, test), whole, declared, public)


def _answer(*arguments: Any) -> _Answer:
    """Run `_tested`. What ends it early is not raised: an error, its context and frames hold what it saw."""
    try:
        with _silence():
            return _tested(*arguments)
    except BaseException as error:
        error_type, seen = type(error), [error]
        while (one := seen[-1].__cause__ or seen[-1].__context__) is not None and one not in seen:
            seen.append(one)
        for one in seen:
            traceback.clear_frames(one.__traceback__)
            vars(one).clear()
    return next((end for end in _ENDS if issubclass(error_type, end)), RuntimeError)


_ENDS = (KeyboardInterrupt, SystemExit, CancelledError)
"""What tells a program to end, and is raised anew."""


def _tested(
    learner: PrivateNetwork,
    taken: PrivateNetwork,
    table: PrivateTable,
    part: PrivateTable,
    budgets: tuple[Budget, Budget],
    whole: PureDP | ZCDP,
    criteria: Criteria,
    facts: dict[str, Any],
) -> _Answer:
    fit, test = budgets
    release = released(part, taken._run, fit)
    settings = {**release.facts["settings"], **facts["settings"]}
    release = release.published_with(whole, {**facts, "settings": settings})
    learner._take(taken, release, table, told=False)
    tests = noisy_test.run(part, learner.observed_model_, criteria, test, learner.random_state)
    return (learner, tests) if bool(tests["met"].all()) else None


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing is shown, logged or warned of in this block, by one attempt at a time: these are the process's."""
    with silence(), bars(False):
        disabled = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(disabled)
