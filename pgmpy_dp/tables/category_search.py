"""Discovery of categories and cuts that nobody has listed, for a part of the budget, before a fit is paid for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.named_values import distinct_names, scope_name
from pgmpy_dp.private.operators.column_operators import (
    NumberTables,
    StableCategories,
    category_histogram,
    category_labels,
)
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import MISSING, Number, Reading, Schema, encode_label
from pgmpy_dp.shown import quantity
from pgmpy_dp.tables.quantile_cuts import (
    consistent_counts,
    divided_at,
    equal_firsts,
    n_steps,
    quantile_cuts,
    split_firsts,
)

CATEGORIES = "categories"
"""The word that declares a column whose categories are discovered."""

STAND_INS = (CATEGORIES, 0), (CATEGORIES, 1)
"""States of a column whose categories are not known yet: labels that no cell has."""

_ROUNDS = 3
_KINDS = ("number", "text", "tuple")


@dataclass(frozen=True)
class DiscoverSettings:
    """The settings of a discovery, fixed before the records are looked at.

    Parameters
    ----------
    schema : Schema
        All columns in their order, and how cells are spelled. Columns whose categories are discovered have
        their certain states, and made-up ones; see :meth:`of`.
    categories : tuple of hashable
        These columns.
    other : hashable, optional
        State of all cells that have no category. None: their records do not count.
    max_categories, max_length : int
        Of each column, and of a label.
    bins : int, optional
        About how many cells a column of numbers gets. None: numbers are not cut, and stay undivided.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise, **not private**.
    """

    schema: Schema
    categories: tuple[Hashable, ...]
    other: Hashable | None = "other"
    max_categories: int = 100
    max_length: int = 100
    bins: int | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        if not self.categories and not self.numbers:
            raise ValueError(
                f"variables has states or cuts for each of {list(self.schema)}, so nothing is to be found; declare "
                f"{CATEGORIES!r} for columns that have to be looked at, or pass bins= to cut a Number"
            )
        narrow = [name for name, number in self.numbers.items() if n_steps(number) < 2]
        if narrow:
            raise ValueError(
                f"{narrow} have bounds or a resolution too narrow for labels of 15 digits; subtract a part"
            )
        _schema(self, dict.fromkeys(self.categories, ()), {})  # errors in the rest show now

    @classmethod
    def of(
        cls,
        variables: Mapping[Any, Any],
        *,
        other: Hashable | None = "other",
        recode: Mapping[Any, Mapping[Any, Any]] | None = None,
        reading: Mapping[str, Any] | None = None,
        codes: Sequence[Hashable] = (),
        impossible: Iterable[str | Mapping] = (),
        **settings: Any,
    ) -> DiscoverSettings:
        """The columns from declarations, of which some are the word "categories", and some are of codes."""
        if not isinstance(variables, Mapping) or not variables:
            raise TypeError(
                f"variables={variables!r} is not a mapping; "
                f"pass {{name: {CATEGORIES!r}, a Number, or a list of states}}"
            )
        wanted = [name for name, declared in variables.items() if isinstance(declared, str) and declared == CATEGORIES]
        texts = {n: d for n, d in variables.items() if isinstance(d, str) and n not in wanted}
        if texts:
            raise ValueError(
                f"variables has {texts}; a text for a column is {CATEGORIES!r}, else pass states or a Number"
            )
        listed = {
            n: d
            for n, d in variables.items()
            if n not in wanted and (not isinstance(d, Number) or d.divided or settings.get("bins") is None)
        }
        if impossible and not listed:
            raise ValueError("impossible has rules, but all columns are to be found; give their states or cuts")
        if impossible:  # whether a rule suits what will be found is not known before it is paid for
            try:
                Schema(listed, codes=[n for n in listed if n in codes], impossible=impossible)
            except ValueError as error:
                raise ValueError(f"{error}; rules name columns with states or cuts, none that is to be found") from None
        content = dict(variables)
        for name in wanted:
            targets = (recode or {}).get(name, {})
            certain = [label for label in targets.values() if label is not None] if isinstance(targets, Mapping) else []
            key = Reading(codes=name in codes).key
            states = {key(state): state for state in (*certain, *(() if other is None else (other,)))}
            content[name] = [*states.values(), *STAND_INS]  # a variable has two states at least
        schema = Schema(content, texts=wanted, recode=recode, codes=codes, impossible=impossible, **(reading or {}))
        return cls(schema, tuple(wanted), other, **settings)

    @property
    def numbers(self) -> dict[Hashable, Number]:
        """The columns of numbers that are cut."""
        undivided = {name: number for name, number in self.schema.numbers.items() if not number.divided}
        return undivided if self.bins is not None else {}

    @property
    def columns(self) -> Schema:
        """The columns that are looked at."""
        return self.schema.subset([*self.categories, *self.numbers])


def require_payable(settings: DiscoverSettings, budget: Any) -> None:
    """Raise a TypeError if this is not a budget, a ValueError if it lacks a delta that categories need."""
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.2, delta=1e-8)")
    if settings.categories and not budget.delta:
        raise ValueError(
            f"budget={budget} has no delta, without which categories that nobody has listed cannot be told: that one "
            "occurs at all would tell of the one record that has it. Pass Budget(epsilon=..., delta=...), e.g. "
            f"delta=1e-9, or lists of states for {list(settings.categories)}"
        )


def run(data: PrivateColumns, settings: DiscoverSettings, budget: Budget) -> Release:
    """Release the categories and the cuts, as a schema.

    Refuses what are no columns or no budget, a budget without a delta where there are categories, and one that is too
    small for any count.

    Parameters
    ----------
    data : PrivateColumns
        Of ``settings.columns``.

    Returns
    -------
    Release
        ``kind="discovery"``, with the discovered schema. Its arrays are the number of records, unless that is
        public, and for each of ``public["counted"]``, pairs of a column and labels, how many records each label has.
        Those of numbers are computed from several noisy tables, and so have no noise of their own.

    Notes
    -----
    Privacy
        *Sensitivity.* Of categories :class:`~pgmpy_dp.private.operators.column_operators.StableCategories`,
        of numbers :class:`~pgmpy_dp.private.operators.column_operators.NumberTables`. Divisions of later
        rounds are functions of what earlier ones released.

        *Guarantee.* The budget. With categories: the rho that converts to (epsilon, .9 delta), and an eta of .1 delta
        for the threshold. Without: an epsilon, or a rho, whichever has less noise.

        *Source.* Korolova, Kenthapadi, Mishra and Ntoulas 2009; Hay, Rastogi, Miklau and Suciu 2010.

        *Side channels.* Running time and memory depend on the records, and on how many different cells they have.

    Shares: each column, and the number of records, gets the same share. Columns of more than 128 values are counted
    three times, each time in finer cells where there are many records, for a third of their share.
    """
    require_data_and_budget(data, PrivateColumns, budget)
    plan = _Shares(settings, budget, data.adjacency, data.n_records is None)
    curator = Curator(
        data,
        budget,
        what=" and ".join(
            f"{what} of {quantity(columns, 'column')}"
            for what, columns in (("categories", settings.categories), ("cuts", settings.numbers))
            if columns
        ),
        columns=data.schema.variables,
        mechanism="stability_histogram" if settings.categories else None,
        reserve=plan.reserve,
        pure=isinstance(plan.cost, PureDP),
        random_state=settings.random_state,
    )
    with curator.keeping():
        by_column = _categories(curator, settings, plan) if settings.categories else {}
        values: list[np.ndarray] = []
        cuts: dict[Hashable, Number] = {}
        if settings.numbers or plan.with_count:
            values, cuts, cells = _cuts(curator, settings, plan)
            by_column |= {name: (list(cuts[name].cells), cells[name]) for name in cuts}
        schema = _schema(settings, {name: by_column[name][0] for name in settings.categories}, cuts)
        public = {
            "found": schema.to_dict(),
            "counted": [[encode_label(name), [encode_label(s) for s in by_column[name][0]]] for name in by_column],
            "threshold": None if plan.histogram is None else plan.histogram.threshold,
            "sd": None if plan.histogram is None else math.sqrt(plan.histogram.noise.variance),
            "settings": {
                **{"budget": budget.guarantee.to_dict(), "other": encode_label(settings.other), "bins": settings.bins},
                **{"max_categories": settings.max_categories, "max_length": settings.max_length},
            },
        }
        names = distinct_names([*(["n_records"] if values else []), *(scope_name([name]) for name in by_column)])
        values += [counts for _, counts in by_column.values()]
        return curator.release("discovery", public, dict(zip(names, values, strict=True)))


class _Shares:
    """The share of each question, from public numbers; ValueError where a budget cannot pay for it."""

    def __init__(self, settings: DiscoverSettings, budget: Budget, adjacency: Adjacency, with_count: bool) -> None:
        self.with_count = with_count
        n_marks = len(settings.categories)
        self.deep = [
            name for name, number in settings.numbers.items() if len(equal_firsts(number)) - 1 < n_steps(number)
        ]
        n_tables = len(settings.numbers) + with_count
        require_payable(settings, budget)
        self.reserve = budget.delta / 10 if n_marks else 0.0
        self.cost: PureDP | ZCDP = (
            cost_of(budget, self.reserve)
            if n_marks
            else least_noise(
                lambda cost: (
                    NumberTables.planned(n_tables - with_count, with_count, adjacency, cost, Fraction(1)).noise
                ),
                [1] * n_tables,
                budget,
            )
        )
        self.categories = Fraction(n_marks, n_marks + n_tables)
        by_round = [n_tables, *([len(self.deep)] * (_ROUNDS - 1) if self.deep else [])]
        # The same noise in all rounds.
        self.rounds = [(1 - self.categories) * Fraction(tables, max(1, sum(by_round))) for tables in by_round]
        self.histogram = None
        if n_marks:
            self.histogram = category_histogram(n_marks, adjacency, self.cost, self.categories, self.reserve)
        self.sd = 0.0
        if n_tables:
            noise = NumberTables.planned(n_tables - with_count, with_count, adjacency, self.cost, self.rounds[0]).noise
            self.sd = math.sqrt(noise[-1].variance)


def _categories(curator: Curator, settings: DiscoverSettings, plan: _Shares) -> dict[Hashable, tuple[list, np.ndarray]]:
    """Labels and noisy counts of each column, in the order of the marks; no more than are allowed.

    Of spellings that count as one, that with the highest noisy count is the label, and their noisy counts are summed:
    post-processing of what was released.
    """
    operator = StableCategories(settings.categories, settings.max_length)
    rows, counts = curator.ask(operator, plan.categories, Fraction(plan.reserve))
    labels = category_labels(rows)
    categories = {}
    for number, name in enumerate(settings.categories):
        reading, spellings = settings.schema.reading(name), dict[tuple, list[int]]()
        for k, (column, label) in enumerate(labels):
            if column == number:
                spellings.setdefault(reading.spelled(reading.key(label)), []).append(k)
        sums = {max(places, key=counts.__getitem__): int(counts[places].sum()) for places in spellings.values()}
        kept = np.array(sorted(sorted(sums, key=lambda k: -sums[k])[: settings.max_categories]), dtype=np.intp)
        is_plain = all(len(places) == 1 for places in spellings.values())
        summed = curator.picked(counts, kept) if is_plain else np.array([sums[k] for k in kept.tolist()])
        categories[name] = [labels[k][1] for k in kept], summed
    return categories


def _cuts(
    curator: Curator, settings: DiscoverSettings, plan: _Shares
) -> tuple[list[np.ndarray], dict[Hashable, Number], dict[Hashable, np.ndarray]]:
    """Count the records, if wanted, divide each column, and estimate how many records each cell has."""
    counted: list[np.ndarray] = []
    firsts = {name: equal_firsts(number) for name, number in settings.numbers.items()}
    rounds: dict[Hashable, list] = {name: [] for name in firsts}
    bins = settings.bins or 0  # without it no column of numbers is cut
    divided: dict[Hashable, Number] = {}
    estimates: dict[Hashable, np.ndarray] = {}
    for k, share in enumerate(plan.rounds):
        names = plan.deep if k else list(firsts)
        for name in names:
            if k:
                heavy = max(estimates[name].sum() / (2 * bins), 2.0 * plan.sd)
                firsts[name] = split_firsts(firsts[name], estimates[name], heavy)
            divided[name] = divided_at(settings.numbers[name], firsts[name])
        operator = NumberTables([(name, divided[name]) for name in names], plan.with_count and not k)
        answers = curator.ask(operator, share)
        counted += answers[: len(answers) - len(names)]
        for name, counts in zip(names, answers[len(answers) - len(names) :], strict=True):
            rounds[name].append((firsts[name], counts[: len(firsts[name]) - 1]))
            estimates[name] = consistent_counts(rounds[name])
    cuts, cells = {}, {}
    for name, number in settings.numbers.items():
        cuts[name] = quantile_cuts(number, firsts[name], estimates[name], bins, plan.sd)
        cells[name] = _summed(divided[name], estimates[name], cuts[name])
    return counted, cuts, cells


def _summed(fine: Number, estimates: np.ndarray, coarse: Number) -> np.ndarray:
    """Sum the estimates of fine cells over each coarse cell, by where fine cells begin, and round the sums."""
    place = np.searchsorted(coarse.edges[1:-1], fine.edges[:-1], side="right")
    return np.rint(np.bincount(place, weights=estimates, minlength=len(coarse.cells))).astype(np.int64)


def _schema(settings: DiscoverSettings, labels: Mapping[Hashable, Iterable], cuts: Mapping[Hashable, Number]) -> Schema:
    """The schema with the new states and cuts: numbers first, then texts, missing, and the other-state last."""
    states: dict[Hashable, list] = {}
    for name, new in labels.items():
        reading = settings.schema.reading(name)
        certain = [s for s in settings.schema.states[name] if s not in STAND_INS]
        by_key: dict[tuple, Hashable] = {}
        for label in (*certain, *new):
            by_key.setdefault(reading.spelled(reading.key(label)), label)
        missing = by_key.pop(MISSING, MISSING) is None
        last = [] if settings.other is None else [by_key.pop(reading.spelled(reading.key(settings.other)))]
        keys = sorted(by_key, key=lambda key: (_KINDS.index(key[0]), key[1:] if key[0] != "tuple" else repr(key)))
        if len(keys) + missing + len(last) < 2:
            missing = True  # a variable has two states at least
        states[name] = [*(by_key[key] for key in keys), *([None] if missing else []), *last]
        states[name] += [CATEGORIES] * (len(states[name]) < 2)
    other = {} if settings.other is None else {name: listed[-1] for name, listed in states.items()}
    return settings.schema.replaced({**states, **cuts}, others=other)
