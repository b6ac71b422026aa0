"""How what was learned shows itself in a notebook: short, and only what is public."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pgmpy_dp.shown import shown

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


def states_text(states: Sequence[object]) -> str:
    """States with commas between, the first few of many.

    Examples
    --------
    >>> states_text(["no", None]), states_text(range(20))
    ('no, None', '0, 1, 2, 3, 4, 5, 6, ..., 19')
    """
    texts = [shown(state) for state in states]
    return ", ".join(texts if len(texts) <= _SHOWN else [*texts[: _SHOWN - 1], "...", texts[-1]])
