"""An office's rule: which numbers of an answer are precise enough to be printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from pgmpy_dp.models.answer import NO_DRAWS, Answer, Estimate


@dataclass(frozen=True)
class PrintingRule:
    """The widest interval of a number that may be printed.

    Parameters
    ----------
    most : float
        Half of the interval is at most so much, times the number itself.
    absolute : bool
        Half of the interval is at most so much: 0.01 is one percentage point of a share. Of a mean or a quantile it is
        so much times the declared range; of days always, for which nothing is zero.

    Examples
    --------
    >>> rule = PrintingRule(0.1)
    >>> rule.lets(Estimate(0.30, 0.28, 0.33)), rule.lets(Estimate(0.03, 0.01, 0.06))
    (True, False)
    >>> PrintingRule(0.03, absolute=True).lets(Estimate(0.03, 0.01, 0.06))
    True
    """

    most: float
    absolute: bool = False

    @classmethod
    def read(cls, text: str | None, model: Any) -> PrintingRule | None:
        """The rule from its text: "0.1" or "0.01 absolute", None for none; ValueError for others, and without draws."""
        if text is None:
            return None
        parts = re.fullmatch(r"\s*(\d*\.?\d+(?:e-?\d+)?)\s*(relative|absolute)?\s*", text)
        if parts is None or model.posterior is None:
            why = "pass '0.1' for a tenth of the number, or '0.01 absolute'"
            raise ValueError(f"rule={text!r}: {why if parts is None else NO_DRAWS}")
        return cls(float(parts[1]), parts[2] == "absolute")

    def lets(self, one: Estimate, span: float | None = None) -> bool:
        """Whether a number may be printed: a share, or a mean or a quantile within a range of length `span`."""
        if one.lower is None or one.upper is None:
            return False
        unit = (1.0 if span is None else span) if self.absolute else abs(one.value)
        return (one.upper - one.lower) / 2 <= self.most * unit

    def of(self, answer: Answer) -> tuple[list[bool], dict[Any, bool]]:
        """Which shares of an answer, in C order, and which of its numbers may be printed.

        None may where nothing vouches for their intervals.
        """
        vouched, number = answer.worth.refusal is None and answer.worth.outside is None, answer.number
        shares = [vouched and self.lets(share) for share in answer.estimates]
        rule = self if number is None or number.kind == "number" else replace(self, absolute=True)
        span = None if number is None else number.upper - number.lower
        return shares, {key: vouched and rule.lets(one, span) for key, one in answer.numbers.items()}

    def words(self, level: str, model: Any) -> str:
        """A sentence that says what is marked on a page with intervals of this level, or why nothing is."""
        if why := nothing_vouches(model):
            return why
        most = f"{100 * self.most:g}"
        of = (
            f"{most} points (of means and quantiles {most} % of their range)"
            if self.absolute
            else f"{most} % of the number"
        )
        return (
            f"✓ may be printed by the rule: half of its {level} interval is at most {of}. Days count against their "
            "range. Nothing is marked where nothing vouches for the interval."
        )


def nothing_vouches(model: Any) -> str | None:
    """Why no number of a model may be printed by any rule; None where some may."""
    if (posterior := model.posterior) is None or posterior.discrepancy is not None or posterior.is_complete:
        return None
    return (
        "No number is marked for printing. The model was fitted without probes, which are tables that are counted only "
        "to tell how wrong the graph is. So nothing vouches for its intervals. Fit it once more with probes: pgmpy-dp "
        "fit has them unless --edges or another --structure than learn is passed, and so has PrivateNetwork in Python."
    )
