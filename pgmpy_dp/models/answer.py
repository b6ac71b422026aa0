"""A model's answer to a question, and what it is worth: one object for terminals, files, notebooks and pages.

Everything that shows answers shows these: the command line, reports, notebooks. The explorer computes in a browser,
with the sentences of `SENTENCES`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmpy_dp.learning.display import Shown
from pgmpy_dp.models.evidence import Known
from pgmpy_dp.schema import Number, encode_label
from pgmpy_dp.shown import aligned, shown

if TYPE_CHECKING:
    import pandas as pd

QUARTILES = (0.25, 0.5, 0.75)

SENTENCES = {
    "share": "What is known holds for {share} of all{records}.",
    "records": ", about {number} records",
    "unmeasured": "Tables of these pairs were not measured, and follow from others: {pairs}.",
    "refusal": "There are no intervals: {why}.",
    "outside": "Nothing vouches for these intervals: {why}. They may be too narrow.",
}
"""The sentences about an answer, in Python and on the explorer's page."""

NO_DRAWS = "the model has no posterior, which learn makes with draws=30, and fit and refit with --draws 30"

_NAMES = {"mean": "mean", 0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}


class Pair(NamedTuple):
    """Two variables whose table was not measured, and how far the model's is expected to be off, in total variation.

    The error is None where nothing tells it: without draws, and where the graph counts as the truth.
    """

    one: Hashable
    other: Hashable
    error: float | None

    def __str__(self) -> str:
        error = "" if self.error is None else f" (expected error {100 * self.error:.2f} %)"
        return f"{shown(self.one)} – {shown(self.other)}{error}"


class Estimate(NamedTuple):
    """A mean or a quantile with its interval, None without draws; of days, since 1970. NaN where there is no value."""

    value: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Worth:
    """The worth of an answer: its unmeasured pairs, its records, and the reasons for missing intervals.

    Attributes
    ----------
    unmeasured : sequence of Pair
        Pairs of the question's variables whose tables were not measured.
    share, records : float or None
        The share and the number of records for which the evidence holds; None where the model does not say how many.
    missing : str or None
        Why a variable of numbers or days has no mean.
    piled : str or None
        Where many of its numbers lie in one of the narrowest cells that were counted.
    refusal, outside, conditional : str or None
        Why there are no intervals; why nothing vouches for them; what is to be said of a model that was published
        because it met criteria.
    weighting : str or None
        By what the answer is weighted, and what that does to it.
    strangers : str or None
        That two children of one family can hardly be told from two strangers.
    """

    unmeasured: Sequence[Pair] = ()
    share: float = 1.0
    records: float | None = None
    missing: str | None = None
    piled: str | None = None
    refusal: str | None = NO_DRAWS
    outside: str | None = None
    conditional: str | None = None
    strangers: str | None = None
    weighting: str | None = None

    @property
    def sentences(self) -> list[str]:
        """The sentences that a person is told."""
        pairs = ", ".join(map(str, self.unmeasured))
        told = [
            self.weighting,
            self.missing,
            self.piled,
            SENTENCES["unmeasured"].format(pairs=pairs) if pairs else None,
            self.conditional,
            self.strangers,
        ]
        if self.refusal:
            told.append(SENTENCES["refusal"].format(why=self.refusal))
        elif self.outside:
            told.append(SENTENCES["outside"].format(why=self.outside))
        return [one for one in told if one]

    @property
    def held(self) -> str:
        """A sentence that says for how many records the evidence holds."""
        number = "" if self.records is None else SENTENCES["records"].format(number=f"{self.records:,.0f}")
        return SENTENCES["share"].format(share=f"{100 * self.share:.1f} %", records=number)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        names = ("share", "records", "missing", "piled", "outside", "conditional", "strangers", "weighting")
        pairs = [[encode_label(one), encode_label(other), error] for one, other, error in self.unmeasured]
        return {"unmeasured": pairs, "no_intervals": self.refusal} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Shown):
    """The distribution of some variables; ``str`` of it is a table to read, in notebooks too.

    Attributes
    ----------
    states : mapping of name to sequence
        The states of these variables.
    evidence : mapping of name to Evidence
        The evidence, as it was passed and as it counts.
    shares : ndarray
        An axis for each name.
    worth : Worth
    interval : mapping of str to ndarray
        "lower" and "upper", and with counts "count", "count_lower", "count_upper"; empty where there are no intervals.
        Where a range cuts through a state, it reaches from none of the state's records in the range to all of them.
    numbers : mapping of "mean" and levels of quantiles to Estimate
        Of one variable of numbers or days, where it is not missing; empty where it hardly ever is there.
    number : Number or None
        As which it is declared.
    of : str or None
        Whom the question is about, in a model of linked tables.
    level : float
        The level of intervals.
    alike : pair of Estimate, or None
        Of two children of one family, how often they have the same state, and how much more often than two strangers.
    """

    states: Mapping[Hashable, Sequence]
    evidence: Known
    shares: np.ndarray
    worth: Worth
    interval: Mapping[str, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[Any, Estimate] = field(default_factory=dict)
    number: Number | None = None
    of: str | None = None
    level: float = 0.9
    alike: tuple[Estimate, Estimate] | None = None

    @property
    def rows(self) -> Iterator[tuple[tuple, dict[str, float]]]:
        """Each joint state with its share and interval, C order."""
        parts = {"probability": self.shares, **self.interval}
        flat = [(name, values.ravel().tolist()) for name, values in parts.items()]
        for k, cell in enumerate(itertools.product(*self.states.values())):
            yield cell, {name: values[k] for name, values in flat}

    @property
    def estimates(self) -> list[Estimate]:
        """The share of each joint state with its interval, C order."""
        return [Estimate(p["probability"], p.get("lower"), p.get("upper")) for _, p in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        names = list(map(str, self.states))
        document: dict[str, Any] = {
            "variables": names,
            "evidence": {str(name): one.told for name, one in self.evidence.items()},
            "counted": {str(name): one.pairs for name, one in self.evidence.items()},
            "of": self.of,
            "table": [dict(zip(names, map(encode_label, cell), strict=True)) | parts for cell, parts in self.rows],
            "level": self.level,
            **self.worth.to_dict(),
        }
        if self.alike:
            document["alike"] = dict(zip(("same", "more_than_strangers"), map(list, self.alike), strict=True))
        if self.numbers:
            document["summary"] = {str(k): self._plain(one.value) for k, one in self.numbers.items()}
            ends = {str(k): self._ends(one) for k, one in self.numbers.items() if one.lower is not None}
            document["summary_intervals"] = ends
        return document

    def to_frame(self) -> pd.DataFrame:
        """A row for each joint state: a column for each variable, then "probability" and the interval's."""
        import pandas as pd

        cells, parts = zip(*self.rows, strict=True)
        frame = pd.DataFrame(dict(enumerate(map(pd.Series, map(list, zip(*cells, strict=True))))))
        frame.columns = pd.Index(list(self.states), tupleize_cols=False)
        return frame.assign(**pd.DataFrame(list(parts)))

    def __str__(self) -> str:
        names = ", ".join(map(shown, self.states))
        known = ", ".join(f"{shown(name)}={shown(one.told)}" for name, one in self.evidence.items())
        header = [*map(shown, self.states), f"P({names}{' | ' if known else ''}{known})"]
        header += [f"{100 * self.level:g} % interval"] if self.interval else []
        header += ["records"] if "count" in self.interval else []
        lines = [header]
        for cell, p in self.rows:
            line = [*map(state_text, cell), f"{p['probability']:.4f}"]
            if self.interval:
                line.append(f"{p['lower']:.4f} to {p['upper']:.4f}")
            if "count" in p:
                line.append(f"{p['count']:,.0f} ({p['count_lower']:,.0f} to {p['count_upper']:,.0f})")
            lines.append(line)
        told = [aligned(lines)]
        told += [note for name, one in self.evidence.items() if (note := one.note(name, bool(self.interval)))]
        if self.numbers:
            told.append(f"Where it is not missing: {', '.join(map(self._number_text, self.numbers))}")
        if self.alike:
            same, more = map(percent_text, self.alike)
            told.append(f"Both have the same in {same}; more often than two strangers by {more}")
        return "\n".join([*told, *([self.worth.held] if self.evidence else []), *self.worth.sentences])

    __repr__ = __str__

    def _plain(self, value: float | None, rounded: Callable[[float], int] = int) -> Any:
        """A number, or a day's text; None where there is none."""
        if value is None or math.isnan(value):
            return None
        assert self.number is not None
        return round(float(value), 6) if self.number.kind == "number" else self.number.text(rounded(round(value, 6)))

    def _ends(self, one: Estimate) -> list[Any]:
        return [self._plain(one.lower, math.floor), self._plain(one.upper, math.ceil)]

    def _number_text(self, key: Any) -> str:
        one = self.numbers[key]
        values = [self._plain(one.value), *self._ends(one)]
        value, low, high = (f"{v:.6g}" if isinstance(v, float) else v for v in values)
        name = _NAMES.get(key) or f"{100 * key:g} % quantile"
        return f"{name} {value}" + ("" if one.lower is None else f" ({low} to {high})")


def percent_text(one: Estimate) -> str:
    """A share with its interval, if it has one.

    Examples
    --------
    >>> percent_text(Estimate(0.25, 0.2, 0.31)), percent_text(Estimate(-0.5))
    ('25.0 % (20.0 to 31.0)', '-50.0 %')
    """
    ends = "" if one.lower is None or one.upper is None else f" ({100 * one.lower:.1f} to {100 * one.upper:.1f})"
    return f"{100 * one.value:.1f} %{ends}"


def state_text(state: object) -> str:
    """A state as answers name it.

    Examples
    --------
    >>> state_text(None), state_text(float("nan")), state_text(" "), state_text("none")
    ('missing', 'missing', '(blank)', 'none')
    """
    if state is None or state != state:  # only NaN is not itself
        return "missing"
    return shown(state) if str(state).strip() else "(blank)"
