"""Turn templates into pages."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pgmpy_dp import __version__
from pgmpy_dp.shown import quantity, shown


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
