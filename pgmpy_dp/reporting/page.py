"""Turn templates into pages."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pgmpy_dp import __version__
from pgmpy_dp.shown import quantity, shown

_BESIDE_ROWS = 3  # the height of what a table has beside its rows


def _finalized(value: object) -> object:
    """Replace signs that turn the direction of text: they can fake a name, and pages are copied to terminals."""
    return shown(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    # Names and states are public, and still anybody's text: everything is escaped.
    made = Environment(
        loader=PackageLoader("pgmpy_dp.reporting"),
        autoescape=select_autoescape(["html", "css", "js"], default_for_string=True),  # a .yaml quotes its texts
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"yaml": as_yaml, "quantity": quantity}
    return made


def as_yaml(text: str) -> str:
    """A text in double quotes, which JSON writes as YAML does."""
    return json.dumps("\n".join(map(shown, text.split("\n"))), ensure_ascii=False)


def render(template: str, **content: Any) -> str:
    """A page from a template.

    Parameters
    ----------
    template : str
        Name of a file in templates/.
    **content
        What it shows.
    """
    return _environment().get_template(template).render(version=__version__, **content)


def in_columns(variables: Sequence[Mapping[str, Any]], most: int = 3) -> list[list[dict[str, Any]]]:
    """Items in columns as short as they can be, each with its place: so a printed page fills its columns.

    Browsers balance columns on a screen, and leave those of a last printed page empty.

    Parameters
    ----------
    variables : sequence of mapping
        With "rows", and "summary" if it has one.
    most : int
        Number of columns.

    Examples
    --------
    >>> [[one["place"] for one in column] for column in in_columns([{"rows": "1" * n} for n in (9, 2, 3, 4, 1)])]
    [[1], [2, 3], [4, 5]]
    """
    heights = [_BESIDE_ROWS + len(one["rows"]) + len(one.get("summary") or ()) for one in variables]

    def filled(tallest: int) -> list[list[dict[str, Any]]]:
        columns: list[list[dict[str, Any]]] = []
        left = 0
        for place, (one, height) in enumerate(zip(variables, heights, strict=True), 1):
            if height > left or not columns:
                columns.append([])
                left = tallest
            columns[-1].append({**one, "place": place})
            left -= height
        return columns

    enough = range(max(heights, default=0), sum(heights) + 1)
    return filled(enough[bisect_left(enough, -most, key=lambda tallest: -len(filled(tallest)))])


def as_html(markdown: str) -> Any:
    r"""A person's text as part of a page: no HTML of its own, no pictures, headings below those of the page.

    Examples
    --------
    >>> as_html("# Births\n\n<b>of 2014</b>, [more](https://example.org)")
    Markup('<h3>Births</h3>\n<p>&lt;b&gt;of 2014&lt;/b&gt;, <a href="https://example.org">more</a></p>\n')
    """
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    parser = MarkdownIt("commonmark", {"html": False}).disable("image")
    tokens = parser.parse("\n".join(map(shown, markdown.splitlines())))
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = "h3"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the renderer escapes all texts
