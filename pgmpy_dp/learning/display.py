"""Short displays of fitted estimators and results in notebooks, of public numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from pgmpy_dp.learning.few_records import FEW, HARDLY_INSIDE
from pgmpy_dp.schema import encode_label
from pgmpy_dp.shown import quantity, shown

_SHOWN = 8
"""States of a variable that are named."""


def as_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """HTML of a table under a line of text.

    Examples
    --------
    >>> as_table("<x>", ["a"], [["&"]])
    '<p>&lt;x&gt;</p><table><tr><th>a</th></tr><tr><td>&amp;</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p>{escape(title)}</p><table><tr>{head}</tr>{body}</table>"


def as_text(text: str) -> str:
    """HTML of a text in columns."""
    return f"<pre>{escape(text)}</pre>"


class Shown:
    """An object that a notebook shows as a terminal does, by its ``str``."""

    def _repr_html_(self) -> str:
        return as_text(str(self))


class ShowsFit(Shown):
    """An estimator of tables that shows what a fit has learned: released numbers and public ones."""

    @property
    def failed(self: Any) -> bool:
        """Whether next to no record was inside the schema, by released and public numbers alone."""
        return self.n_records_ < max(FEW * self.n_records_sd_, HARDLY_INSIDE * (self.release_.n_records or 0))

    def _records(self) -> str:
        """The noun for what is counted."""
        return "Records"

    def _facts(self: Any) -> dict[str, Any]:
        """The facts about a fit, for programs."""
        return {
            **self.privacy_.told(),
            "variables": [encode_label(name) for name in self.model_.nodes],
            "edges": [[encode_label(u), encode_label(v)] for u, v in self.model_.edges],
        }

    def _lines(self: Any) -> list[str]:
        """The lines that a person reads."""
        edges, variables = quantity(self.model_.number_of_edges(), "edge"), quantity(self.model_.nodes, "variable")
        return [f"Learned {edges} between {variables}: {self.privacy_}"]

    def to_dict(self: Any) -> dict[str, Any]:
        """JSON-able form of a fit that set `model_`.

        Returns
        -------
        dict
        """
        doubts = self._doubts(self.release_, self.privacy_, vars(self)).values()
        return {
            **self._facts(),
            "mechanism": self.privacy_.mechanism,
            "n_records": float(self.n_records_),
            "n_records_sd": float(self.n_records_sd_),
            "warnings": [line for said in doubts if said is not None for line in said.split("\n")],
        }

    def __str__(self: Any) -> str:
        if getattr(self, "model_", None) is None:
            return repr(self)
        number, sd = self.n_records_, self.n_records_sd_
        count = f"about {number:,.0f} (standard deviation {sd:,.0f})" if sd else f"{number:,.0f}, as declared"
        return "\n".join([*self._lines(), f"{self._records()}{' inside the schema' if sd else ''}: {count}"])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The forms for notebooks, which ask for this before they ask for HTML."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def states_text(states: Sequence[object]) -> str:
    """States with commas between, the first few of many.

    Examples
    --------
    >>> states_text(["no", None]), states_text(range(20))
    ('no, None', '0, 1, 2, 3, 4, 5, 6, ..., 19')
    """
    texts = [shown(state) for state in states]
    return ", ".join(texts if len(texts) <= _SHOWN else [*texts[: _SHOWN - 1], "...", texts[-1]])
